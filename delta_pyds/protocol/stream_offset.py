"""Stream offsets: the JSON that Spark stores in a query's checkpoint.

The fields are the reference's, so that tools understand the checkpoint. The
keys have one order, because Spark compares offsets as text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from delta_pyds.errors import UserError
from delta_pyds.protocol.foreign_json import short

# The index before the first file of a version.
BASE_INDEX = -1
# The index of a commit that changes the schema. All earlier files are read. A stream that tracks schemas stops here.
METADATA_CHANGE_INDEX = -20
_POST_METADATA_CHANGE_INDEX = -19
_SOURCE_VERSIONS: dict[int, tuple[int, ...]] = {1: (), 3: (METADATA_CHANGE_INDEX, _POST_METADATA_CHANGE_INDEX)}
_KEYS = ("sourceVersion", "reservoirId", "reservoirVersion", "index", "isStartingVersion")


@dataclass(frozen=True)
class StreamOffset:
    """The last file that a stream has read.

    ``table_id``: the table's ``metaData.id``. ``index``: the number of the file in this version, from 0; ``BASE_INDEX``
    before the first. ``is_initial``: files are counted in the version's snapshot, not in its commit.
    """

    table_id: str
    version: int
    index: int = BASE_INDEX
    is_initial: bool = False

    @property
    def position(self) -> tuple[int, bool, int]:
        """A key that ascends as the stream proceeds; a snapshot comes after the commits that made it."""
        # the order in a version: its start, a change of its schema, its files
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
        """Parse the offset in a checkpoint.

        Raises: UserError (DELTA_INVALID_SOURCE_VERSION, DELTA_INVALID_SOURCE_OFFSET_FORMAT) for an offset that
            neither this source nor the reference's has written.
        """
        found = value if isinstance(value, Mapping) else {}
        source_version = found.get("sourceVersion")
        if _is_number(source_version) and source_version not in _SOURCE_VERSIONS:
            raise UserError(
                f"the query's checkpoint holds an offset of source version {source_version!r}, but this release "
                f"reads 1 and 3: {value!r}. A newer release wrote it: use that release, or start the query with a new "
                "checkpoint location.",
                code="DELTA_INVALID_SOURCE_VERSION",
                source_version=source_version,
            )
        table_id, version, index, is_initial = (found.get(key) for key in _KEYS[1:])
        # True is an int in Python, so bool is checked explicitly
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
    return UserError(
        f"the query's checkpoint holds an offset that this source did not write: {short(value, 300)}. The checkpoint "
        "is damaged or belongs to another source: start the query with a new checkpoint location.",
        code="DELTA_INVALID_SOURCE_OFFSET_FORMAT",
    )
