"""Rewrites the files of one partition into files along a curve through some of their columns.

The values of the columns are read once: a sample of them defines ranges and cuts the curve into pieces. Then all rows
are read, assigned to their pieces, and written piece by piece, sorted, so that row groups are clustered too. Memory is
bounded: rows wait on the local disk, and a piece that is too large to be sorted at once is sorted in parts.

Protocol: "Clustered Table", "Add File and Remove File", "Row Tracking".
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.columnar.row_origins import row_numbers
from delta_pyds.columnar.rows import batch_resolver
from delta_pyds.data.columns import grouped
from delta_pyds.data.layout.compact import AHEAD_BYTES, LiveRows
from delta_pyds.data.layout.curve import bits_per_column, curve_positions
from delta_pyds.data.read.concurrent import read_concurrently
from delta_pyds.data.spill import Spill
from delta_pyds.data.write.writer import DataFileWriter
from delta_pyds.one_ahead import one_ahead
from delta_pyds.protocol.schema import StructType
from delta_pyds.tasks.layout import ClusterFiles
from delta_pyds.tasks.write_state import TaskOutput, WrittenFile

# the rows that wait in memory; others wait on the local disk
_MEMORY_BYTES = 128 << 20
_SAMPLED_ROWS = 200_000
# the encoded size of a piece: about a row group
_PIECE_BYTES = 16 << 20
_MOST_PIECES = 4_096
# the maximum that is sorted at once
_SORTED_BYTES = 128 << 20
_POSITION = "position"
# the number of a row among all rows of the task: rows that others delete meanwhile are found by it
_NUMBER = "number"
# numbers in random order take some 3 bytes each
_MOST_NUMBERED_ROWS = 1 << 24


def cluster_files(task: ClusterFiles) -> TaskOutput:
    """Write the new files. Raises: as ``read`` and ``DataFileWriter``; StorageError for the local disk."""
    curve = _Curve(task)
    rows = LiveRows(task.scan, task.files, list(task.write.schema.names), task.threads)
    pieces = Pieces(curve.pieces)
    numbered, seen = task.num_rows <= _MOST_NUMBERED_ROWS, 0
    with closing(rows.batches()) as batches:
        for batch in batches:
            positions = curve.positions(batch)
            if numbered:
                batch = batch.append_column(_NUMBER, row_numbers(seen, batch.num_rows))
                seen += batch.num_rows
            pieces.add(batch.append_column(_POSITION, positions), curve.piece(positions))
    writers = [DataFileWriter(task.write, number, with_origins=numbered) for number in range(task.num_files)]
    files: list[WrittenFile] = []
    try:
        finished = 0
        in_files = _in_files(pieces, curve.pieces, task.num_files)
        # with several threads the next rows are sorted while the current ones are encoded
        with closing(one_ahead(in_files) if task.threads > 1 else in_files) as rows_of_files:
            for number, batch in rows_of_files:
                while finished < number:
                    writers[finished].finish()
                    finished += 1
                last = batch.num_columns - 1
                if numbered:
                    writers[number].write(batch.remove_column(last), batch.column(last))
                else:
                    writers[number].write(batch)
        for writer in writers[finished:]:
            writer.finish()
        for writer in writers:
            files += writer.close()
    except BaseException:
        # also for GeneratorExit and KeyboardInterrupt: a killed task must leave as little as possible
        for writer in writers:
            with suppress(Exception):
                writer.discard()
        raise
    return TaskOutput(tuple(files), copied_rows=sum(f.num_records for f in files), replaced=rows.counted())


class _Curve:
    """The curve of one task, from a sample of its rows. ``pieces``: the number of pieces it is cut into."""

    def __init__(self, task: ClusterFiles) -> None:
        self._task = task
        sample = list(self._sample())
        most = 1 << bits_per_column(len(task.by))
        columns = [pa.chunked_array(chunks).combine_chunks() for chunks in zip(*sample, strict=True)] if sample else []
        self._ranges = [Ranges(column, most) for column in columns]
        size = sum(file.scan.size_bytes for file in task.files)
        wanted = min(max(task.num_files, size // _PIECE_BYTES), _MOST_PIECES, max(1, len(columns[0]) if columns else 1))
        self._cuts = pa.array([], pa.uint64())
        if columns:
            self._cuts = cut_points(self._positions(columns), max(wanted, task.num_files))
        self.pieces = len(self._cuts) + 1

    def positions(self, batch: pa.RecordBatch) -> pa.Array:
        column = batch_resolver(batch)
        return self._positions([column(path) for path in self._task.by])

    def piece(self, positions: pa.Array) -> pa.Array:
        """The number of the piece of each position."""
        count = len(self._cuts)
        both = pa.concat_arrays([self._cuts, positions])
        order = pc.sort_indices(both)
        number = pc.cumulative_sum(pc.less(order, pa.scalar(count, pa.uint64())).cast(pa.int64()))
        return number.take(pc.sort_indices(order).slice(count))

    def _positions(self, columns: list[pa.Array]) -> pa.Array:
        numbers = [r.numbers(c) for r, c in zip(self._ranges, columns, strict=True)]
        return curve_positions(self._task.curve, numbers)

    def _sample(self) -> Iterator[list[pa.Array]]:
        """Some values of the columns, at equal steps through all rows."""
        step = max(1, self._task.num_rows // _SAMPLED_ROWS)
        names = {path[0] for path in self._task.by}
        output = StructType(tuple(f for f in self._task.scan.output if f.name in names))
        state = replace(self._task.scan, output=output, row_ids=None)
        seen = 0
        files = (file.scan for file in self._task.files)
        threads = self._task.threads
        with closing(read_concurrently(state, files, threads=threads, ahead_bytes=AHEAD_BYTES)) as batches:
            for batch in batches:
                first = -seen % step
                seen += batch.num_rows
                rows = batch.take(pa.array(range(first, batch.num_rows, step), pa.int64())) if step > 1 else batch
                if rows.num_rows:
                    column = batch_resolver(rows)
                    yield [column(path) for path in self._task.by]


class Ranges:
    """The ranges of one column's values with about equal numbers of rows, from a sample.

    Invariant: a greater value never has a lower number; nulls come first. A type that cannot be sorted is one range.

    ``sample``: some of its values; ``most``: the maximum number of ranges.
    """

    def __init__(self, sample: pa.Array, most: int) -> None:
        values = sample.drop_null()
        values = values.take(pc.sort_indices(values))
        bounds: list[int] = []
        for number in range(1, most - 1):
            at = number * len(values) // (most - 1)
            if at and (not bounds or bounds[-1] != at) and at < len(values):
                bounds.append(at)
        # the first value of each range except the first; a repeated bound would be a range without rows
        self._bounds = values.take(pa.array(bounds, pa.int64())).unique() if bounds else values.slice(0, 0)

    def numbers(self, values: pa.Array) -> pa.Array:
        """The range number of each value; 0 is for nulls."""
        count = len(self._bounds)
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        # the sort is stable, so a bound comes before equal values: it is the first value of its range
        both = pa.concat_arrays([self._bounds.cast(values.type), values])
        order = pc.sort_indices(both)
        is_bound = pc.less(order, pa.scalar(count, pa.uint64()))
        number = pc.add(pc.cumulative_sum(is_bound.cast(pa.int64())), 1)
        back = pc.sort_indices(order).slice(count)
        return pc.if_else(values.is_valid(), number.take(back), pa.scalar(0, pa.int64()))


def cut_points(positions: pa.Array, pieces: int) -> pa.Array:
    """The positions that cut a sample into at most that many pieces with about equal numbers of rows."""
    positions = positions.take(pc.sort_indices(positions))
    at = sorted({number * len(positions) // pieces for number in range(1, pieces)} - {0})
    return positions.take(pa.array([n for n in at if n < len(positions)], pa.int64())).unique()


def _in_files(pieces: Pieces, number: int, num_files: int) -> Generator[tuple[int, pa.RecordBatch], None, None]:
    """The sorted rows of all pieces in order, each batch with the number of its file."""
    for file in range(num_files):
        for piece in range(file * number // num_files, (file + 1) * number // num_files):
            for batch in _sorted(pieces.take(piece)):
                yield file, batch


def _sorted(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows sorted by the position column, without it; in parts if there are too many rows."""
    waiting: list[pa.RecordBatch] = []
    num_bytes = 0
    for batch in batches:
        waiting.append(batch)
        num_bytes += batch.nbytes
        if num_bytes >= _SORTED_BYTES:
            yield from _in_order(waiting)
            waiting, num_bytes = [], 0
    if waiting:
        yield from _in_order(waiting)


def _in_order(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    rows = pa.Table.from_batches(batches)
    last = rows.num_columns - 1
    order = pc.sort_indices(rows.column(last))
    yield from rows.remove_column(last).take(order).combine_chunks().to_batches()


class Pieces:
    """Rows that wait, by piece, until all rows have arrived: in memory, and beyond a limit on the local disk.

    Invariant: each row is returned once, with its piece, in the order of arrival. Memory is bounded, except for
    rows that the caller keeps.

    ``number``: the number of pieces, which are counted from 0. Raises: StorageError if the local disk is full or fails.
    """

    def __init__(self, number: int) -> None:
        self._waiting: list[list[pa.RecordBatch]] = [[] for _ in range(number)]
        self._spilled: list[list[tuple[Spill, int]]] = [[] for _ in range(number)]
        self._held_bytes = 0

    def add(self, rows: pa.RecordBatch, pieces: pa.Array) -> None:
        """Add rows. ``pieces``: the piece number of each row."""
        self._held_bytes += rows.nbytes
        for piece, some in grouped(rows, pieces):
            self._waiting[piece].append(some)
        if self._held_bytes >= _MEMORY_BYTES:
            self._spill()

    def take(self, piece: int) -> Iterator[pa.RecordBatch]:
        """The rows of a piece."""
        spilled, self._spilled[piece] = self._spilled[piece], []
        for spill, number in spilled:
            yield spill.batch(number)
        waiting, self._waiting[piece] = self._waiting[piece], []
        yield from waiting

    def _spill(self) -> None:
        """Move all waiting rows to the local disk: all, because one slice keeps the whole batch in memory."""
        numbers: list[int] = []

        def batches() -> Iterator[pa.RecordBatch]:
            for piece, waiting in enumerate(self._waiting):
                for batch in pa.Table.from_batches(waiting).combine_chunks().to_batches() if waiting else ():
                    numbers.append(piece)
                    yield batch

        spill = Spill(next(some[0] for some in self._waiting if some).schema, batches())
        for number, piece in enumerate(numbers):
            self._spilled[piece].append((spill, number))
        self._waiting = [[] for _ in self._waiting]
        self._held_bytes = 0
