"""Where a stream stands in a table's log: the JSON that Spark keeps in a query's checkpoint.

The fields are those of the reference implementation, so that a checkpoint
explains itself, and the keys have one order, because Spark compares offsets as text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from delta_pyds.errors import UserError

# Before the first file of a version.
BASE_INDEX = -1
# At a commit that changes the schema, all before it is read; a tracked schema makes the stream stop there.
METADATA_CHANGE_INDEX = -20
_POST_METADATA_CHANGE_INDEX = -19
_SOURCE_VERSIONS = {1: (), 3: (METADATA_CHANGE_INDEX, _POST_METADATA_CHANGE_INDEX)}
_KEYS = ("sourceVersion", "reservoirId", "reservoirVersion", "index", "isStartingVersion")


@dataclass(frozen=True)
class StreamOffset:
    """The last file that was read.

    ``table_id``: the table's ``metaData.id``. ``version``, ``index``: the file
    with this number (from 0) in this version, ``BASE_INDEX`` where none of the
    version was read. ``is_initial``: the files are those of the snapshot of the
    version, not those of its commit.
    """

    table_id: str
    version: int
    index: int = BASE_INDEX
    is_initial: bool = False

    @property
    def position(self) -> tuple[int, bool, int]:
        """Ascends as a stream proceeds: a snapshot stands after the commits that made it."""
        # before the files of a version comes a change of its schema, and before that nothing at all
        return self.version, self.is_initial, METADATA_CHANGE_INDEX - 1 if self.index == BASE_INDEX else self.index

    @property
    def at_metadata_change(self) -> bool:
        return self.index in _SOURCE_VERSIONS[3]

    def to_json(self) -> dict[str, Any]:
        values = (
            3 if self.at_metadata_change else 1,
            self.table_id,
            self.version,
            self.index,
            self.is_initial,
        )
        return dict(zip(_KEYS, values, strict=True))

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> StreamOffset:
        """Read what a checkpoint holds.

        Raises: UserError (DELTA_INVALID_SOURCE_VERSION, DELTA_INVALID_SOURCE_OFFSET_FORMAT) for what no
            version of this source or of the reference's has written.
        """
        found = tuple(value.get(key) for key in _KEYS) if isinstance(value, Mapping) else ()
        source_version = found[0] if found else None
        if source_version is not None and source_version not in _SOURCE_VERSIONS:
            raise UserError(
                f"the query's checkpoint holds an offset of source version {source_version!r}, and this version "
                f"reads 1 and 3: {value!r}. It was written by a newer release: use that one, or start the query with "
                "a new checkpoint location.",
                code="DELTA_INVALID_SOURCE_VERSION",
                source_version=source_version,
            )
        types = (int, str, int, int, bool)
        # True is an int in Python
        if not found or any(type(f) is not t for f, t in zip(found, types, strict=True)):
            raise _malformed(value)
        _, table_id, version, index, is_initial = found
        known = index >= BASE_INDEX or index in _SOURCE_VERSIONS[source_version]  # type: ignore[index]
        if version < 0 or not known or (is_initial and index < BASE_INDEX):
            raise _malformed(value)
        return StreamOffset(
            table_id, version, METADATA_CHANGE_INDEX if index in _SOURCE_VERSIONS[3] else index, is_initial
        )


def _malformed(value: object) -> UserError:
    return UserError(
        f"the query's checkpoint holds an offset that is none of this source: {value!r}. The checkpoint belongs to "
        "another source, or was damaged: start the query with a new checkpoint location.",
        code="DELTA_INVALID_SOURCE_OFFSET_FORMAT",
    )
