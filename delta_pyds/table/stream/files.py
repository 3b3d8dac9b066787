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
    """The files of a commit or snapshot that are read, with their numbers among all its files.

    Attributes:
        numbers: the index of each file in the stream's offsets, ascending. Files excluded by an option or a predicate
            leave their number unused, so that offsets do not depend on options.
        sizes: in bytes.
        rows: of ``columnar.scan_files``.
    """

    numbers: pa.Int64Array
    sizes: pa.Int64Array
    rows: pa.RecordBatch

    def __len__(self) -> int:
        return len(self.numbers)

    def position_after(self, index: int) -> int:
        """The position of the first file with a higher index."""
        return bisect_right(self.numbers, index, key=lambda number: number.as_py())

    def number(self, position: int) -> int:
        return int(self.numbers[position].as_py())

    def between(self, after: int, last: int | None) -> pa.RecordBatch:
        """The rows of the files with ``after < index <= last``; without ``last``, to the end."""
        first = self.position_after(after)
        end = len(self) if last is None else self.position_after(last)
        return self.rows.slice(first, max(end - first, 0))


# no slice of it is ever returned, so it needs no columns
NO_FILES = StreamFiles(
    pa.array([], pa.int64()), pa.array([], pa.int64()), pa.RecordBatch.from_pylist([], schema=pa.schema([]))
)


def select_files(files: pa.RecordBatch, selection: RowSelection, exclude: re.Pattern[str] | None) -> StreamFiles:
    """Number the files, which have the fields that ``selection`` needs, and drop unwanted ones."""
    wanted = and_masks(selection.keep(files.to_struct_array()) if files.num_rows else None, path_mask(files, exclude))
    rows = selection.to_scan_batch(files)
    numbers = pa.array(range(files.num_rows), pa.int64())
    if wanted is not None:
        rows, numbers = rows.filter(wanted), numbers.filter(wanted)
    return StreamFiles(numbers, sizes_of(rows), rows)


def sizes_of(rows: pa.RecordBatch) -> pa.Int64Array:
    return pc.max_element_wise(pc.fill_null(rows.column("size"), 0), 0)


def path_mask(files: pa.RecordBatch, exclude: re.Pattern[str] | None) -> pa.BooleanArray | None:
    """A mask of the paths that do not contain the pattern; None if there is no pattern."""
    if exclude is None:
        return None
    # the option takes Python's regular expressions, which differ from Arrow's
    return pa.array([exclude.search(path) is None for path in files.column("path").to_pylist()], pa.bool_())


def and_masks(one: pa.BooleanArray | None, other: pa.BooleanArray | None) -> pa.BooleanArray | None:
    if one is None or other is None:
        return one if other is None else other
    return pc.and_(one, other)
