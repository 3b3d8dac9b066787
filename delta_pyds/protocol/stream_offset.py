"""Stream offsets: the JSON that Spark keeps in a query's checkpoint.

The fields are those of the reference implementation, so that a checkpoint
explains itself, and the keys have one order, because Spark compares offsets as text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from delta_pyds.errors import UserError

# Before the first file of a version.
BASE_INDEX = -1
# At a commit that changes the schema, all before it is read; a tracked schema makes the stream stop there.
METADATA_CHANGE_INDEX = -20
_POST_METADATA_CHANGE_INDEX = -19
_SOURCE_VERSIONS: dict[int, tuple[int, ...]] = {1: (), 3: (METADATA_CHANGE_INDEX, _POST_METADATA_CHANGE_INDEX)}
_MAX_SHOWN = 300
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
        found = value if isinstance(value, Mapping) else {}
        source_version = found.get("sourceVersion")
        if _is_number(source_version) and source_version not in _SOURCE_VERSIONS:
            raise UserError(
                f"the query's checkpoint holds an offset of source version {source_version!r}, and this version "
                f"reads 1 and 3: {value!r}. It was written by a newer release: use that one, or start the query with "
                "a new checkpoint location.",
                code="DELTA_INVALID_SOURCE_VERSION",
                source_version=source_version,
            )
        table_id, version, index, is_initial = (found.get(key) for key in _KEYS[1:])
        # bool is checked for itself: True is an int in Python
        if not _is_number(source_version) or not isinstance(table_id, str) or not isinstance(is_initial, bool):
            raise _malformed(value)
        if not _is_number(version) or not _is_number(index):
            raise _malformed(value)
        at_change = index in _SOURCE_VERSIONS[source_version]
        if version < 0 or (index < BASE_INDEX and not at_change) or (at_change and is_initial):
            raise _malformed(value)
        return StreamOffset(table_id, version, METADATA_CHANGE_INDEX if at_change else index, is_initial)


def _is_number(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63


def _malformed(value: object) -> UserError:
    text = repr(value)
    shown = text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + " ..."
    return UserError(
        f"the query's checkpoint holds an offset that is none of this source: {shown}. The checkpoint belongs to "
        "another source, or was damaged: start the query with a new checkpoint location.",
        code="DELTA_INVALID_SOURCE_OFFSET_FORMAT",
    )
