"""Reads data files: live rows in logical columns.

Invariant: rows are numbered by their position in the whole file before any are filtered or skipped. So deletion vectors
and row ids always apply to the rows that they were written for.

Protocol: "Reader Requirements for Deletion Vectors", "Reader Requirements for
Column Mapping", "Reader Requirements for Row Tracking", "Change Data Files".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from delta_pyds.columnar.evaluate import matches
from delta_pyds.data.columns import Constant, record_batch
from delta_pyds.data.read.batch_size import PROBE_ROWS, BatchSizer
from delta_pyds.data.read.data_file import DataFile, open_data_file
from delta_pyds.data.read.deletion_vector import DeletedRows, LiveRows, SelectedRows, load_deletion_vector
from delta_pyds.data.read.file_plan import Decoded, FilePlan, Source
from delta_pyds.data.read.output import output_schema, stored_or_default
from delta_pyds.data.read.row_groups import RowGroup, row_groups_in, runs
from delta_pyds.data.read.shared_plans import SharedPlans
from delta_pyds.errors import DeltaError
from delta_pyds.expr.nodes import Expr, may_fail
from delta_pyds.protocol.deletion_vector import DeletionVectorDescriptor
from delta_pyds.storage.base import Storage
from delta_pyds.storage.read_ahead import Expectation
from delta_pyds.tasks.scan_state import ScanFile, ScanState

__all__ = ["OpenRows", "open_rows", "output_schema", "read"]

# decoding more rows at once is not faster, and with fewer rows small row groups would make small batches
_ROWS_PER_RUN = 1 << 20
_ROWS_PER_DECISION = 1 << 16
# the footer's row count is trusted up to this many rows per byte if no column is decoded; repeated values may have more
_ROWS_PER_BYTE = 64
# with so few rows their width needs no probe
_FEW_ROWS = 1_024
# A filter copies the remaining rows by their numbers, which suits values of fixed width. Above this share of remaining
# rows, text is faster to copy in the runs between dropped rows.
_TEXT_IN_RUNS = 0.5
# above this share, so is every type
_ALL_IN_RUNS = 0.99


def read(state: ScanState, file: ScanFile, plans: SharedPlans | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the live rows of a data file, or of the split described by ``file``, that satisfy the predicate.

    Rows come in the file's order, in batches of 1 to ``state.batch_rows`` rows (fewer if rows are wide) with exactly
    the schema ``output_schema(state)``. Live rows are those in ``file.selected`` (or all rows without it), minus those
    in ``file.deletion_vector``. A row of a change data file must have a change type, even if the scan does not return
    that column.

    Args:
        plans: those of this state, for callers that read many files.
    Raises:
        FileNotFoundInStorageError, CorruptDataFileError, SchemaMismatchError, UnsupportedFeatureError,
            DeletionVectorError, ProtocolError: each names the file.
    """
    with open_rows(state, file, plans) as rows:
        yield from rows.batches()


@dataclass(frozen=True)
class OpenRows:
    """An open data file of a scan. ``deleted``: its deletion vector, already checked."""

    deleted: DeletedRows | None
    _reader: _FileReader

    def batches(self) -> Iterator[pa.RecordBatch]:
        """As ``read``."""
        return self._reader.batches()

    def num_records(self) -> int:
        """The number of rows in the file, including deleted ones."""
        return self._reader.num_records()


@contextmanager
def open_rows(state: ScanState, file: ScanFile, plans: SharedPlans | None = None) -> Iterator[OpenRows]:
    """Open a file for callers that need more than its rows. Raises: as ``read``."""
    plans = plans or SharedPlans(state)
    storage = plans.storage
    deleted = _loaded(storage, state, file.deletion_vector)
    selected = _loaded(storage, state, file.selected)
    with open_data_file(partial(plans.source_of, file), state, file) as data:
        for vector in (deleted, selected):
            if vector is not None:
                vector.check_within(data.num_rows, file.path)
        live = deleted if selected is None else SelectedRows.of(selected, deleted)
        with data.named_errors:
            reader = _FileReader(plans, file, data, live)
        yield OpenRows(deleted, reader)


def _loaded(storage: Storage, state: ScanState, vector: DeletionVectorDescriptor | None) -> DeletedRows | None:
    return None if vector is None else load_deletion_vector(storage, state.table_root, vector)


@dataclass(frozen=True)
class _Rows:
    """Rows to return, still in the file's columns.

    They are the ``count`` rows of ``[first_row, first_row + length)`` that ``mask`` keeps; no mask keeps all.
    ``batch``: the rows, if they were decoded in the form to return.
    """

    early: Sequence[pa.Array]
    late: Sequence[pa.Array]
    first_row: int
    length: int
    mask: pa.BooleanArray | None
    count: int
    batch: pa.RecordBatch | None = None


class _LiveMasks:
    """Masks of the live rows of ``[start, start + total)``, requested in order.

    They are built for a million rows at a time: a wrong footer may state more rows than fit into memory.
    """

    def __init__(self, live: LiveRows, start: int, total: int) -> None:
        self._live = live
        self._start = start
        self._total = total
        self._first = self._end = 0
        self._mask: pa.BooleanArray | None = None

    def between(self, at: int, length: int) -> pa.BooleanArray:
        """The mask of ``length`` rows from ``at`` on, counted from the first row of the range."""
        if self._mask is None or at + length > self._end:
            self._first, self._end = at, min(self._total, at + max(length, _ROWS_PER_RUN))
            self._mask = self._live.live(self._start + self._first, self._end - self._first)
        return self._mask.slice(at - self._first, length)


class _FileReader:
    def __init__(self, plans: SharedPlans, file: ScanFile, data: DataFile, live: LiveRows | None) -> None:
        self._state = state = plans.state
        self._file = file
        self._data = data
        self._live = live
        self._plan, self._is_shared = plans.plan_of(file, data)
        self._schema = plans.schema
        self._numbers = plans.row_numbers
        data.may_have_views = self._plan.has_views
        self._named_errors = data.named_errors
        self._sizer = BatchSizer(data.metadata, data, self._plan.widths, state.batch_rows)

    def batches(self) -> Iterator[pa.RecordBatch]:
        file = self._file
        with self._named_errors:
            groups = row_groups_in(self._data.metadata, self._data, file.start, file.length, file.size_bytes)
            groups = self._plan.kept(groups)
        if self._live is not None:
            groups = [g for g in groups if self._live.live_in(g.first_row, g.num_rows)]
        # with a predicate each row group is skipped on its own, unless it is tiny
        few = min(self._state.batch_rows, _ROWS_PER_DECISION)
        rows_per_run = _ROWS_PER_RUN if self._state.predicate is None else few
        for run in self._expected(list(runs([g for g in groups if g.num_rows], rows_per_run))):
            for rows in self._late(run) if self._plan.late.leaves else self._early(run):
                if rows.count:
                    if rows.batch is None:
                        with self._named_errors:
                            batch = self._output(rows)
                    else:
                        batch = rows.batch
                    yield from self._sizer.pieces(batch)

    def _expected(self, all_runs: Sequence[list[RowGroup]]) -> Iterator[list[RowGroup]]:
        """Yield the runs; while one is decoded, the next one is requested from the store."""
        if not self._data.prefetches:
            yield from all_runs
            return
        waiting = deque(all_runs)
        following = self._expect(waiting[0] if waiting else [])
        try:
            while waiting:
                run, current = waiting.popleft(), following
                following = self._expect(waiting[0] if waiting else [])
                with current:
                    yield run
        finally:
            following.close()

    def _expect(self, run: Sequence[RowGroup]) -> Expectation:
        return self._data.expect([g.index for g in run], self._plan.early.leaves)

    def num_records(self) -> int:
        total = self._data.num_rows
        if total <= _ROWS_PER_BYTE * self._file.size_bytes:
            return total
        # more rows than plausible for the file's size: count them instead of trusting the footer
        groups = range(self._data.metadata.num_row_groups)
        return sum(b.num_rows for b in self._data.decode(groups, [self._data.smallest_leaf()], PROBE_ROWS))

    # --- which rows

    def _early(self, run: Sequence[RowGroup]) -> Iterator[_Rows]:
        """Decode the first pass, and drop rows that are not live or do not match."""
        start, total = run[0].first_row, sum(g.num_rows for g in run)
        live = None
        if self._live is not None and self._live.live_in(start, total) < total:
            live = _LiveMasks(self._live, start, total)
        at = 0
        for batch, length in self._decoded(self._plan.early.leaves, run):
            if live is None and self._state.predicate is None and self._is_output(batch):
                yield _Rows((), (), start + at, length, None, length, batch)
                at += length
                continue
            with self._named_errors:
                arrays: Sequence[pa.Array] = () if batch is None else batch.columns
                mask = None if live is None else live.between(at, length)
                if self._state.predicate is not None and (mask is None or mask.true_count):
                    mask = self._matching(self._state.predicate, arrays, length, mask)
                count = length if mask is None else mask.true_count
                if mask is not None and count < length:
                    # columns that only the predicate needed are dropped
                    arrays = filter_arrays(arrays, mask, count) if self._plan.returns_early else ()
            yield _Rows(arrays, (), start + at, length, mask if count < length else None, count)
            at += length

    def _matching(
        self, predicate: Expr, arrays: Sequence[pa.Array], length: int, live: pa.BooleanArray | None
    ) -> pa.BooleanArray:
        """A mask of the rows that are live and match."""
        batch = self._plan.predicate_batch(arrays, length)
        if live is None:
            return matches(predicate, batch, length)
        if may_fail(predicate) and live.true_count < length:
            # a deleted row must not cause an error
            found = matches(predicate, batch.filter(live), live.true_count)
            return pc.replace_with_mask(live, live, found)
        return pc.and_(live, matches(predicate, batch, length))

    def _late(self, run: Sequence[RowGroup]) -> Iterator[_Rows]:
        """Decode the second pass for the rows that passed the first one; skip it if no row did."""
        start, queue, masks, left = run[0].first_row, ArrayQueue(), [], 0
        for rows in self._early(run):
            masks.append(pa.repeat(True, rows.length) if rows.mask is None else rows.mask)
            left += rows.count
            if rows.count:
                queue.push(rows.early, rows.count)
        if not left:
            return
        mask = pa.concat_arrays(masks)
        at = 0
        for batch, length in self._decoded(self._plan.late.leaves, run):
            here = mask.slice(at, length)
            count = here.true_count
            if count and batch is not None:
                with self._named_errors:
                    late = filter_arrays(batch.columns, here, count)
                yield _Rows(queue.pop(count), late, start + at, length, here if count < length else None, count)
            at += length

    def _is_output(self, batch: pa.RecordBatch | None) -> bool:
        """Whether a decoded batch has the output's columns."""
        return batch is not None and self._plan.returns_decoded and batch.schema.equals(self._schema, True)

    def _decoded(self, leaves: Sequence[int], run: Sequence[RowGroup]) -> Iterator[tuple[pa.RecordBatch | None, int]]:
        """Batches with their numbers of rows; numbers alone if no column is needed."""
        with self._named_errors:
            rows = self._sizer.rows(run)
            hidden: Sequence[int] = ()
            if min(rows, run[0].num_rows) > _FEW_ROWS or self._sizer.may_be_large(run[0], run[0].num_rows):
                hidden = self._sizer.hidden(leaves)
        if not leaves:
            total = sum(g.num_rows for g in run)
            if total > _ROWS_PER_BYTE * self._file.size_bytes:
                # more rows than plausible for the file's size: count them instead of trusting the footer
                for batch in self._data.decode([g.index for g in run], [self._data.smallest_leaf()], rows):
                    yield None, batch.num_rows
                return
            for at in range(0, total, rows):
                yield None, min(rows, total - at)
            return
        for count in self._sizer.probes(hidden, run[0]):
            for batch in self._data.decode([run[0].index], hidden, count):
                self._sizer.observe_hidden(batch, run[0])
                break
            rows = self._sizer.rows(run)
        for batch in self._data.decode([g.index for g in run], leaves, rows):
            self._sizer.observe(batch)
            yield batch, batch.num_rows

    # --- which columns

    @cached_property
    def _path(self) -> Constant:
        return Constant(pa.scalar(self._file.path, pa.string()))

    def _output(self, rows: _Rows) -> pa.RecordBatch:
        try:
            return self._assemble(rows)
        except (DeltaError, pa.ArrowException):
            if not self._is_shared:
                raise
            # a shared plan names another file in its errors
            self._plan, self._is_shared = FilePlan(self._state, self._file, self._data), False
            return self._assemble(rows)

    def _assemble(self, rows: _Rows) -> pa.RecordBatch:
        if self._plan.change_type is not None:
            _array(self._plan.change_type, rows)
        arrays = [_array(s, rows) for s in self._plan.outputs]
        if self._state.row_position or self._state.row_ids is not None:
            if rows.mask is None:
                positions = self._numbers.between(rows.first_row, rows.length)
            else:
                positions = pc.add(pc.indices_nonzero(rows.mask).cast(pa.int64()), rows.first_row)
            if self._state.row_position:
                arrays += [self._path.array(rows.count), positions]
            if self._state.row_ids is not None:
                arrays += self._row_tracking(rows, positions)
        return record_batch(arrays, self._schema, rows.count)

    def _row_tracking(self, rows: _Rows, positions: pa.Array) -> list[pa.Array]:
        stored_id, stored_version = (
            None if s is None else _array(s, rows) for s in (self._plan.row_id, self._plan.row_commit_version)
        )
        base, version = self._file.base_row_id, self._file.default_row_commit_version
        row_id = None if base is None else pc.add(positions, base)
        default = None if version is None else pa.scalar(version, pa.int64())
        return [
            stored_or_default(stored_id, row_id, rows.count, "row id", self._file.path),
            stored_or_default(stored_version, default, rows.count, "row commit version", self._file.path),
        ]


def _array(source: Source, rows: _Rows) -> pa.Array:
    return source.array(rows.early, rows.late) if isinstance(source, Decoded) else source.array(rows.count)


class ArrayQueue:
    """Arrays of equal length side by side, in chunks; a first-in, first-out queue of rows."""

    def __init__(self) -> None:
        self._chunks: deque[tuple[Sequence[pa.Array], int]] = deque()

    def push(self, arrays: Sequence[pa.Array], length: int) -> None:
        self._chunks.append((arrays, length))

    def pop(self, length: int) -> Sequence[pa.Array]:
        """The next ``length`` rows; not copied if they are one chunk."""
        parts: list[Sequence[pa.Array]] = []
        while length:
            arrays, available = self._chunks.popleft()
            if available > length:
                self._chunks.appendleft(([a.slice(length) for a in arrays], available - length))
                arrays, available = [a.slice(0, length) for a in arrays], length
            parts.append(arrays)
            length -= available
        if len(parts) == 1:
            return parts[0]
        return [pa.concat_arrays(list(column)) for column in zip(*parts, strict=True)]


def filter_arrays(arrays: Sequence[pa.Array], mask: pa.BooleanArray, count: int) -> list[pa.Array]:
    """The rows for which the mask, which has no nulls, is true. ``count``: the number of these rows."""
    if count == len(mask) or not arrays:
        return list(arrays)
    share = count / len(mask)
    in_runs = [share > _ALL_IN_RUNS or (share > _TEXT_IN_RUNS and _is_text(a.type)) for a in arrays]
    picked = [a for a, runs in zip(arrays, in_runs, strict=True) if not runs]
    if picked:
        # all at once, so that the mask is turned into row numbers once
        batch = pa.RecordBatch.from_arrays(picked, names=[""] * len(picked))
        picked = batch.filter(mask).columns
    rest = iter(picked)
    return [pc.array_filter(a, mask) if runs else next(rest) for a, runs in zip(arrays, in_runs, strict=True)]


def _is_text(data_type: pa.DataType) -> bool:
    return bool(pt.is_string(data_type) or pt.is_binary(data_type))
