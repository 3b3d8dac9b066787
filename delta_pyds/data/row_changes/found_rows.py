"""Positions of the rows that a task found, by file. Each row occurs once.

Protocol: "Deletion Vectors".
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from delta_pyds.columnar.roaring import bitmap_of, serialize
from delta_pyds.data.columns import grouped
from delta_pyds.errors import DeltaError, UserError
from delta_pyds.tasks.write_state import FoundRows

_NONE = BitMap64()


class Positions:
    """Bitmaps of rows by file. A file is given by its number or its name."""

    def __init__(self) -> None:
        self._files: dict[int | str, BitMap64] = {}

    def add(self, files: pa.Array, positions: pa.Array) -> bool:
        """Add the rows if each of them is new. Returns: whether they were added.

        Raises: DeltaError for a row without a file or position.
        """
        if files.null_count or positions.null_count or (len(positions) and pc.min(positions).as_py() < 0):
            raise DeltaError("internal error: a row to delete has no file, or no position in its file.")
        parts = []
        for file, some in _by_file(files, positions):
            rows = bitmap_of(some)
            if len(rows) < len(some) or rows.intersect(self._files.get(file, _NONE)):
                return False
            parts.append((file, rows))
        for file, rows in parts:
            known = self._files.setdefault(file, rows)
            if known is not rows:
                known |= rows
        return True

    def unknown(self, files: pa.Array, positions: pa.Array) -> pa.BooleanArray:
        """Whether each row is new: neither an earlier row nor the bitmaps have it. Slow: only for repeated rows."""
        seen: set[tuple[int | str, int]] = set()
        result = []
        for row in zip(files.to_pylist(), positions.to_pylist(), strict=True):
            result.append(row not in seen and row[1] not in self._files.get(row[0], _NONE))
            seen.add(row)
        return pa.array(result, pa.bool_())

    def first_common(self, other: Positions) -> int | str | None:
        """A file in which both have the same row; None if they share no row."""
        common = (f for f, rows in other._files.items() if f in self._files and rows.intersect(self._files[f]))
        return next(common, None)

    def found(self, kept: Positions) -> tuple[FoundRows, ...]:
        """All rows, serialized. ``kept``: the rows that a merge matched and leaves unchanged."""
        return tuple(
            FoundRows(
                file,
                serialize(self._files.get(file, _NONE)),
                serialize(kept._files[file]) if file in kept._files else None,
            )
            for file in dict.fromkeys([*self._files, *kept._files])
        )


def _by_file(files: pa.Array, positions: pa.Array) -> Iterator[tuple[int | str, pa.Array]]:
    encoded = files if pa.types.is_dictionary(files.type) else files.dictionary_encode()
    names = encoded.dictionary.to_pylist()
    return ((names[code], some) for code, some in grouped(positions, encoded.indices, len(names)))


def duplicate_source_matches(table: str) -> UserError:
    """The error if two rows of a merge's source match one row of the table."""
    return UserError(
        f"more than one row of the merge's source matches the same row of the table {table}, so its change is not "
        "defined. Nothing was committed. Let each row of the table match one row of the source, for example by "
        "dropDuplicates on the columns of the condition.",
        code="DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE",
        table=table,
    )
