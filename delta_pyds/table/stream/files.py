"""The numbered files of one commit, or of one snapshot, in a stream."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.table.scan.row_selection import RowSelection


@dataclass(frozen=True)
class StreamFiles:
    """Those that are read, among all that are counted.

    ``numbers``: of each, its index in the stream's offsets, ascending; what is
    left out by an option or by a predicate leaves its number unused, so that
    offsets mean the same whatever the options are. ``sizes``: in bytes.
    ``rows``: of ``columnar.scan_files``.
    """

    numbers: pa.Int64Array
    sizes: pa.Int64Array
    rows: pa.RecordBatch

    def __len__(self) -> int:
        return len(self.numbers)

    def place_after(self, index: int) -> int:
        """Where the first file with a higher index than this is."""
        return bisect_right(self.numbers, index, key=lambda number: number.as_py())

    def number(self, place: int) -> int:
        return int(self.numbers[place].as_py())

    def between(self, after: int, last: int | None) -> pa.RecordBatch:
        """The rows of the files with ``after < index <= last``, to the end without ``last``."""
        first = self.place_after(after)
        end = len(self) if last is None else self.place_after(last)
        return self.rows.slice(first, max(end - first, 0))


# a slice of it is never given out, so it needs no columns
NO_FILES = StreamFiles(
    pa.array([], pa.int64()), pa.array([], pa.int64()), pa.RecordBatch.from_pylist([], schema=pa.schema([]))
)


def select_files(files: pa.RecordBatch, selection: RowSelection, exclude: re.Pattern[str] | None) -> StreamFiles:
    """Count the rows, which have the fields that ``selection`` looks at, and leave out what is not wanted."""
    wanted = both(selection.keep(files.to_struct_array()) if files.num_rows else None, included(files, exclude))
    rows = selection.to_scan_batch(files)
    numbers = pa.array(range(files.num_rows), pa.int64())
    if wanted is not None:
        rows, numbers = rows.filter(wanted), numbers.filter(wanted)
    return StreamFiles(numbers, sizes_of(rows), rows)


def sizes_of(rows: pa.RecordBatch) -> pa.Int64Array:
    return pc.max_element_wise(pc.fill_null(rows.column("size"), 0), 0)


def included(files: pa.RecordBatch, exclude: re.Pattern[str] | None) -> pa.BooleanArray | None:
    """Which paths the pattern is not found in; None where all are wanted."""
    if exclude is None:
        return None
    # Arrow's expressions are another dialect
    return pa.array([exclude.search(path) is None for path in files.column("path").to_pylist()], pa.bool_())


def both(one: pa.BooleanArray | None, other: pa.BooleanArray | None) -> pa.BooleanArray | None:
    if one is None or other is None:
        return one if other is None else other
    return pc.and_(one, other)
