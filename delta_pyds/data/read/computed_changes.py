"""Changes that were not recorded: which rows of a commit's files left the table, came or were updated.

A commit that rewrites a file removes and adds rows that did not change. Compared by row id, a row of both sides is the
same one: unchanged if its row commit version is the same, else the two images of an update. Compared by values, equal
rows of both sides cancel each other one by one, and the others are deletes and inserts.

Protocol: "Row Tracking", "Reader Requirements for AddCDCFile".
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from itertools import groupby

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from delta_pyds.columnar.roaring import bitmap_of, live_mask
from delta_pyds.columnar.row_difference import differing_rows
from delta_pyds.columnar.row_origins import row_numbers
from delta_pyds.data.read.compared_rows import ComparedRows, with_change_type
from delta_pyds.data.read.concurrent import (
    SHORT_FILE_BYTES,
    TASK_THREADS,
    default_threads,
    read_in_task,
    read_numbered,
    useful_threads,
)
from delta_pyds.data.read.deletion_vector import inline_vector
from delta_pyds.data.read.held_rows import HeldSides, Sides
from delta_pyds.data.read.output import output_schema
from delta_pyds.errors import ProtocolError
from delta_pyds.protocol.schema import StructField, StructType, nullable_throughout
from delta_pyds.tasks.scan_state import ScanFile, ScanState

# rows of each side that threads hold before they are compared
_AHEAD_BYTES = 32 * 1024 * 1024
# files that replaced marked rows: more of them may not fit, and all of their values would spill
_FEW_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True)
class _Changed:
    """Rows of one change type, each by the number of its file and its position there."""

    change_type: str
    rows: pa.RecordBatch


def with_changed_rows(state: ScanState, files: Iterable[ScanFile], *, threads: int = 1) -> Iterator[ScanFile]:
    """Replace files that are compared with each other by their changed rows: each file once for each change type.

    Args:
        state: of a change feed.
        files: those of one group follow each other. Other files stay as they are.
        threads: the number of files of a group that are read at once.
    Raises: as ``data.read.reader.read``; ProtocolError if two rows have one id; StorageError if the local disk is full.
    """
    for group, members in _grouped(files):
        if group is None:
            yield from members
        else:
            yield from _Comparison(state, list(members), threads).changed_files()


def read_changes(state: ScanState, files: Iterable[ScanFile]) -> Generator[pa.RecordBatch, None, None]:
    """The rows of a scan of changes, in a task. Rows that wait in memory for their partners are not read again.

    Args:
        state, files: as of ``with_changed_rows``.
    Raises: the same.
    """
    # the files of a group are in one task, so other processors may have nothing to do
    threads = min(TASK_THREADS, default_threads(state.table_root))

    def found() -> Iterator[ScanFile | pa.RecordBatch]:
        for group, members in _grouped(files):
            if group is None:
                yield from members
            else:
                yield from _Comparison(state, list(members), threads).changes()

    for are_files, some in groupby(found(), key=lambda one: isinstance(one, ScanFile)):
        if are_files:
            with closing(read_in_task(state, some)) as batches:
                yield from batches
        else:
            yield from some


def _grouped(files: Iterable[ScanFile]) -> Iterator[tuple[int | None, Iterator[ScanFile]]]:
    return groupby(files, key=lambda file: None if file.compared is None else file.compared.group)


class _Comparison:
    """One group of files. Positions and numbers of files are the last two columns of all batches."""

    def __init__(self, state: ScanState, members: Sequence[ScanFile], threads: int) -> None:
        assert state.compared_columns is not None
        pairs = [(file, file.compared) for file in members if file.compared is not None]
        self._state = state
        row_ids = pairs[0][1].row_ids
        self._by_row_id = row_ids is not None
        removed = [file for file, compared in pairs if compared.removed]
        added = [file for file, compared in pairs if not compared.removed]
        self._files = [*removed, *added]
        self._num_removed = len(removed)
        self._threads = threads
        # By row ids alone less is decoded, but files with changed rows are read again. They are read once if they are
        # short, or if most of their rows must have changed: removed ones were marked, and what came is little.
        short = all(file.size_bytes <= SHORT_FILE_BYTES for file in members)
        marked = all(file.selected is not None for file in removed)
        whole = not self._by_row_id or short or (marked and sum(f.size_bytes for f in added) <= _FEW_BYTES)
        self._output = ComparedRows.of(state, first=2 if self._by_row_id else 0) if whole else None
        columns = tuple(map(_nullable, state.compared_columns)) if self._output or not self._by_row_id else ()
        self._scan = replace(
            state,
            output=StructType(columns),
            inputs=StructType(()),
            predicate=None,
            skip=None,
            row_position=True,
            row_ids=row_ids,
            file_leaves=0,
        )
        types = output_schema(self._scan).types
        self._num_columns = len(columns)
        # all values decide, or the row id alone
        self._keys = 1 if self._by_row_id else len(columns)
        numbers = self._column_numbers
        self._schema = pa.schema([(str(i), types[at]) for i, at in enumerate(numbers)] + [("file", pa.int64())])

    @property
    def _column_numbers(self) -> list[int]:
        """The compared columns and the position, among the columns of the scan. The path before it is left out."""
        position = self._num_columns + 1
        row_id = [position + 1, position + 2] if self._by_row_id else []
        return [*row_id, *range(self._num_columns), position]

    def changed_files(self) -> Iterator[ScanFile]:
        """Yield each file with its changed rows, once for each change type."""
        return self._files_with_rows(self._rows().compared_together())

    def changes(self) -> Iterator[ScanFile | pa.RecordBatch]:
        """The same; but rows of the scan, if they are in memory already."""
        sides = self._rows()
        if self._output is None or sides.spilled:
            yield from self._files_with_rows(sides.compared_together())
            return
        for before, after in sides.compared_together():
            for changed in self._changed(before, after):
                start = 0
                # rows of files with equal partition values are returned together
                files = ((self._with_change_type(number, changed), count) for number, count in _counts(changed.rows))
                for _, some in groupby(files, key=lambda one: one[0].partition_values):
                    (file, count), *others = some
                    count += sum(more for _, more in others)
                    yield from self._output.rows_of_scan(file, changed.rows.slice(start, count), self._files)
                    start += count

    def _files_with_rows(self, sides: Iterable[Sides]) -> Iterator[ScanFile]:
        found: dict[tuple[int, str], BitMap64] = {}
        for before, after in sides:
            for changed in self._changed(before, after):
                for number, positions in positions_by_file(changed.rows):
                    found.setdefault((number, changed.change_type), BitMap64()).update(positions)
        for number, change_type in sorted(found):
            yield changed_rows_of(self._state, self._files[number], change_type, found[number, change_type])

    def _changed(self, before: pa.RecordBatch, after: pa.RecordBatch) -> Iterable[_Changed]:
        return self._changed_by_id(before, after) if self._by_row_id else _changed_values(before, after)

    def _with_change_type(self, number: int, changed: _Changed) -> ScanFile:
        return with_change_type(self._state, self._files[number], changed.change_type)

    def _rows(self) -> HeldSides:
        """The rows before and after the commit."""
        sides = HeldSides(self._schema, self._keys, None if self._by_row_id else _without_equal_rows)
        for side, number, batch in self._in_step():
            columns = [batch.column(at) for at in self._column_numbers]
            columns.append(pa.repeat(pa.scalar(number, pa.int64()), batch.num_rows))
            sides.add(side, pa.RecordBatch.from_arrays(columns, schema=self._schema))
        return sides

    def _in_step(self) -> Iterator[tuple[int, int, pa.RecordBatch]]:
        """Yield batches with their side and the number of their file, about as many rows of both sides at any time.

        So rows that did not change mostly cancel before more are read.
        """
        first = self._num_removed
        threads = useful_threads(self._scan, self._files, self._threads)
        # files share a plan only if their partition values are equal, and no column needs them here
        files = [replace(file, partition_values=()) for file in self._files]
        with ExitStack() as stack:
            streams = [
                stack.enter_context(
                    closing(read_numbered(self._scan, some, threads=max(1, threads // 2), ahead_bytes=_AHEAD_BYTES))
                )
                for some in (files[:first], files[first:])
            ]
            rows, running = [0, 0], [0, 1]
            while running:
                side = min(running, key=rows.__getitem__)
                found = next(streams[side], None)
                if found is None:
                    running.remove(side)
                    continue
                number, batch = found
                rows[side] += batch.num_rows
                yield side, number + side * first, batch

    def _changed_by_id(self, before: pa.RecordBatch, after: pa.RecordBatch) -> Iterator[_Changed]:
        for side in (before, after):
            self._check_unique(side.column(0))
        partner = _partners(after.column(0), before.column(0))
        found = partner.is_valid()
        unchanged = pc.and_(found, pc.fill_null(pc.equal(before.column(1).take(partner), after.column(1)), False))
        updated = pc.and_not(found, unchanged)
        left = live_mask(bitmap_of(partner.filter(found)), 0, before.num_rows)
        yield _Changed("delete", before.filter(left))
        yield _Changed("update_preimage", before.take(partner.filter(updated).sort()))
        yield _Changed("update_postimage", after.filter(updated))
        yield _Changed("insert", after.filter(pc.invert(found)))

    def _check_unique(self, ids: pa.Array) -> None:
        """Protocol: "Row IDs"."""
        ascending = pc.all(pc.greater(ids.slice(1), ids.slice(0, max(len(ids) - 1, 0)))).as_py()
        # numbering the ids costs much more, and files mostly have them in order
        if not ascending and len(pc.unique(ids)) != len(ids):
            file = self._files[self._num_removed].path
            raise ProtocolError(
                f"two rows of a commit of the table {self._state.table_root} have the same row id, in the files of the "
                f"commit that added '{file}': its changes cannot be computed by row ids. Read them with the option "
                "computeChanges=values, and restore the table to a version with unique ids.",
                code="DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS",
                table=self._state.table_root,
                path=file,
            )


def changed_rows_of(state: ScanState, file: ScanFile, change_type: str, positions: BitMap64) -> ScanFile:
    """The rows of a file at these positions, which are live, as changes of this type."""
    changed = with_change_type(state, file, change_type)
    vector = inline_vector(positions)
    return replace(changed, deletion_vector=None, selected=vector, change_data=False, compared=None)


def _partners(ids: pa.Array, others: pa.Array) -> pa.Array:
    """The number of the equal id among the others, for each id; null for an id without an equal."""
    if ids.equals(others):
        # a rewritten file mostly keeps its order, and comparing is much cheaper than looking up
        return row_numbers(0, len(ids))
    return pc.index_in(ids, value_set=others).cast(pa.int64())


def _nullable(field: StructField) -> StructField:
    # rows of old versions may have nulls in a column that is NOT NULL now; they fail when they are returned
    return replace(field, data_type=nullable_throughout(field.data_type), nullable=True)


def _changed_values(before: pa.RecordBatch, after: pa.RecordBatch) -> tuple[_Changed, _Changed]:
    left, right = ([*side.columns[:-2]] or [pa.nulls(side.num_rows)] for side in (before, after))
    gone, new = differing_rows(left, right)
    return _Changed("delete", before.take(gone)), _Changed("insert", after.take(new))


def _without_equal_rows(sides: Sides) -> Sides:
    before, after = _changed_values(*sides)
    return before.rows, after.rows


def _counts(rows: pa.RecordBatch) -> Iterator[tuple[int, int]]:
    """Yield each file's number and the number of its rows. The files come in order."""
    for entry in pc.value_counts(rows.column(rows.num_columns - 1)):
        yield entry["values"].as_py(), entry["counts"].as_py()


def positions_by_file(rows: pa.RecordBatch) -> Iterator[tuple[int, BitMap64]]:
    """Yield the number of each file and the positions of its rows. They are the last two columns, in order of files."""
    positions, start = rows.column(rows.num_columns - 2), 0
    for number, count in _counts(rows):
        yield number, bitmap_of(positions.slice(start, count))
        start += count
