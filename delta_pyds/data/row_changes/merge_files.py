"""The tasks of a merge that joins in this process: they change rows of the table's files, and insert source rows.

Invariants: a file is read by one task, so the task sees all rows of the source that match a row of the table. The
condition's columns are decoded for all rows. Other columns are decoded only for rows that a clause may change, and only
if a clause needs them.

Protocol: "Deletion Vectors", "Change Data Files", "Row Tracking".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from delta_pyds.columnar.evaluate import evaluate
from delta_pyds.columnar.roaring import bitmap_of, live_mask, serialize
from delta_pyds.columnar.row_origins import pack, row_numbers
from delta_pyds.columnar.rows import Resolver, struct_field
from delta_pyds.data.read.deletion_vector import inline_vector
from delta_pyds.data.read.reader import OpenRows, open_rows, read
from delta_pyds.data.row_changes.changed_rows import ChangedRows
from delta_pyds.data.row_changes.found_rows import duplicate_source_matches
from delta_pyds.data.row_changes.join import JoinedSource, both_sides, taking, true_rows
from delta_pyds.data.write.task_session import TaskSession
from delta_pyds.errors import CorruptDataFileError
from delta_pyds.expr.nodes import Expr, references
from delta_pyds.protocol.schema import StructType
from delta_pyds.tasks.changed_rows import (
    ACTION_COLUMN,
    FILE_COLUMN,
    NEW_PREFIX,
    OLD_PREFIX,
    POSITION_COLUMN,
    ROW_ID_COLUMN,
    SOURCE_ROW_COLUMN,
    ChangeState,
)
from delta_pyds.tasks.merge import TARGET, Clause, MergeRules
from delta_pyds.tasks.row_changes import TableFile
from delta_pyds.tasks.scan_state import ScanState
from delta_pyds.tasks.write_state import FoundRows, TaskOutput

# the number of rows that are matched, or inserted, at once
_ROWS_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class MergeFiles:
    """``scan``: all columns of the table, with row ids if it tracks rows; it has no predicate, but may have ``skip``.

    ``source`` and ``files``: all tasks of this process share them.
    """

    scan: ScanState
    files: tuple[TableFile, ...]
    rules: MergeRules
    state: ChangeState
    session: TaskSession
    source: JoinedSource


def merge_files(task: MergeFiles) -> TaskOutput:
    """Find the rows of the files that match rows of the source, or match none, and change them by the clauses.

    ``TaskOutput.matched_source_rows``: row numbers in ``task.source.rows``, if the merge inserts the other rows.
    Raises: as ``read`` and ``ChangedRows``; UserError
        (DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE); ExpressionError.
    """
    merge = _FileMerge(task)
    output = _written(task, (batch for file in task.files for batch in merge.changes(file)))
    found = (replace(merge.known[one.file], positions=one.positions, kept=one.kept) for one in output.found)
    output = replace(output, found=tuple(found))
    if not task.rules.not_matched:
        return output
    return replace(
        output, matched_source_rows=serialize(merge.matched_source_rows), source_matches=merge.source_matches()
    )


@dataclass(frozen=True)
class InsertRows:
    """``matched``: numbers of the rows of the source that matched rows of the table."""

    rules: MergeRules
    state: ChangeState
    session: TaskSession
    source: JoinedSource
    matched: BitMap64


def insert_rows(task: InsertRows) -> TaskOutput:
    """Insert the rows of the source that matched no row. Raises: as ``ChangedRows``; ExpressionError."""
    return _written(task, _inserts(task))


def _inserts(task: InsertRows) -> Iterator[pa.RecordBatch]:
    total = task.source.rows.num_rows
    for start in range(0, total, _ROWS_AT_ONCE):
        unmatched = live_mask(task.matched, start, min(_ROWS_AT_ONCE, total - start))
        rows = pc.add(pc.indices_nonzero(unmatched).cast(pa.int64()), start)
        columns = both_sides(None, task.source.columns(rows))
        for taken in _take_clauses(task.rules.not_matched, columns, row_numbers(0, len(rows))):
            nowhere = {FILE_COLUMN: pa.int32(), POSITION_COLUMN: pa.int64()}
            columns_of_row = {name: pa.nulls(len(taken.rows), t) for name, t in nowhere.items()}
            yield _changed(taken, {**columns_of_row, SOURCE_ROW_COLUMN: rows.take(taken.rows)})


def _written(task: MergeFiles | InsertRows, batches: Iterable[pa.RecordBatch]) -> TaskOutput:
    rows = ChangedRows(task.state, task.session)
    try:
        for batch in batches:
            rows.take(batch)
        return rows.close()
    except BaseException:
        # also for KeyboardInterrupt: the files are in no commit, but they are large
        with suppress(Exception):
            rows.discard()
        raise


@dataclass(frozen=True)
class _MatchedRows:
    """Rows of a file that clauses may change. ``source``: the source row that each matched; null if it matched none.

    ``positions`` ascend. ``target``: the columns of these rows that were read to find them.
    """

    positions: pa.Array
    source: pa.Array
    target: Resolver


class _FileMerge:
    def __init__(self, task: MergeFiles) -> None:
        self.matched_source_rows = BitMap64()
        self._matches: list[pa.Array] = []
        # facts about each file, so that the end of the command need not open it again
        self.known: dict[int | str, FoundRows] = {}
        self._task = task
        rules, schema = task.rules, task.scan.output
        condition = [*(key.target for key in rules.on.keys), *rules.on.target, *rules.on.both]
        wanted = {path[1] for expr in condition for path in references(expr) if path[0] == TARGET}
        self._finding = replace(
            task.scan,
            output=StructType(tuple(f for f in schema if f.name in wanted)),
            row_position=True,
            row_ids=None,
            # if no clause changes unmatched rows, rows that cannot match are not read
            skip=None if rules.not_matched_by_source else task.scan.skip,
        )
        clauses = (*rules.matched, *rules.not_matched_by_source)
        used = {path[1] for c in clauses for e in c.expressions() for path in references(e) if path[0] == TARGET}
        if task.state.change_data and clauses:
            used |= set(schema.names)
        self._row_ids = task.state.row_id_columns is not None and any(c.values for c in clauses)
        # None if only the columns that found the rows are needed
        self._reading: ScanState | None = None
        if self._row_ids or not used <= wanted:
            self._reading = replace(
                task.scan,
                output=StructType(tuple(f for f in schema if f.name in used)),
                row_position=True,
                row_ids=task.scan.row_ids if self._row_ids else None,
                skip=None,
            )

    def source_matches(self) -> bytes:
        """See ``TaskOutput.source_matches``."""
        if sum(map(len, self._matches)) == len(self.matched_source_rows):
            return b""
        return pack(pa.concat_arrays(self._matches))

    def changes(self, file: TableFile) -> Iterator[pa.RecordBatch]:
        with open_rows(self._finding, file.scan) as rows:
            met = list(self._matched_rows(rows))
            if met:
                before = None if rows.deleted is None else serialize(rows.deleted.positions)
                self.known[file.number] = FoundRows(
                    file.number, b"", num_records=rows.num_records(), deleted_before=before
                )
        if not met:
            return
        if self._reading is None:
            for some in met:
                yield from self._taken(file, some.target, some.positions, some.source, None)
            return
        positions = pa.concat_arrays([some.positions for some in met])
        source = pa.concat_arrays([some.source for some in met])
        scan = replace(file.scan, selected=inline_vector(bitmap_of(positions)))
        at = 0
        for batch in read(self._reading, scan):
            target, found = _columns(self._reading, batch)
            if not found.equals(positions.slice(at, batch.num_rows)):
                break
            # row ids follow the positions
            row_ids = batch.column(len(self._reading.output.fields) + 2) if self._row_ids else None
            yield from self._taken(file, target, found, source.slice(at, batch.num_rows), row_ids)
            at += batch.num_rows
        if at != len(positions):
            raise CorruptDataFileError(
                f"the data file '{file.scan.path}' was changed while it was read: run the command again.",
                path=file.scan.path,
            )

    def _matched_rows(self, rows: OpenRows) -> Iterator[_MatchedRows]:
        rules = self._task.rules
        for batch in _joined(rows.batches()):
            target, positions = _columns(self._finding, batch)
            mine, theirs = self._task.source.matches(target, batch.num_rows)
            if rules.not_matched:
                self.matched_source_rows |= bitmap_of(theirs)
                self._matches.append(theirs)
            again = pc.equal(mine.slice(1), mine.slice(0, max(len(mine) - 1, 0)))
            if again.true_count:
                if rules.one_match:
                    raise duplicate_source_matches(self._task.state.write.table_root)
                first = pa.concat_arrays([pa.array([True]), pc.invert(again)])
                mine, theirs = mine.filter(first), theirs.filter(first)
            if rules.not_matched_by_source:
                met_by = pc.index_in(row_numbers(0, batch.num_rows), value_set=mine)
                yield _MatchedRows(positions, theirs.take(met_by), target)
            elif rules.matched and len(mine):
                yield _MatchedRows(positions.take(mine), theirs, taking(target, mine))

    def _taken(
        self,
        file: TableFile,
        target: Resolver,
        positions: pa.Array,
        source: pa.Array,
        row_ids: pa.Array | None,
    ) -> Iterator[pa.RecordBatch]:
        rules, schema = self._task.rules, self._task.scan.output
        matched = pc.indices_nonzero(pc.is_valid(source)).cast(pa.int64())
        alone = pc.indices_nonzero(pc.is_null(source)).cast(pa.int64())
        both = both_sides(target, self._task.source.columns(source))
        for clauses, rows in ((rules.matched, matched), (rules.not_matched_by_source, alone)):
            for taken in _take_clauses(clauses, both, rows):
                columns = {
                    FILE_COLUMN: pa.repeat(pa.scalar(file.number, pa.int32()), len(taken.rows)),
                    POSITION_COLUMN: positions.take(taken.rows),
                }
                if row_ids is not None:
                    columns[ROW_ID_COLUMN] = row_ids.take(taken.rows)
                if self._task.state.change_data:
                    was = taking(target, taken.rows)
                    columns |= {f"{OLD_PREFIX}{i}": was((f.name,)) for i, f in enumerate(schema)}
                yield _changed(taken, columns)


def _columns(state: ScanState, batch: pa.RecordBatch) -> tuple[Resolver, pa.Array]:
    """The columns of the table, and the positions of the rows; that column may have the name of a table column."""
    count = len(state.output.fields)
    index = {field.name: number for number, field in enumerate(state.output)}
    return lambda path: struct_field(batch.column(index[path[0]]), path[1:]), batch.column(count + 1)


def _changed(taken: _ClauseRows, columns: dict[str, pa.Array]) -> pa.RecordBatch:
    columns = {**columns, ACTION_COLUMN: pa.repeat(pa.scalar(int(taken.clause.action), pa.int8()), len(taken.rows))}
    columns |= {f"{NEW_PREFIX}{i}": array for i, array in enumerate(taken.values) if array is not None}
    return pa.RecordBatch.from_pydict(columns)


def _joined(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in larger batches."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= _ROWS_AT_ONCE:
            yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()
            waiting, rows = [], 0
    if rows:
        yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()


@dataclass(frozen=True)
class _ClauseRows:
    """The rows that a clause changes. ``rows``: their numbers, int64, ascending. ``values``: see ``Clause.values``."""

    clause: Clause[Expr]
    rows: pa.Array
    values: tuple[pa.Array | None, ...]


def _take_clauses(clauses: Sequence[Clause[Expr]], columns: Resolver, rows: pa.Array) -> Iterator[_ClauseRows]:
    """Yield the rows that each clause changes: of the clauses, the first one whose condition is true changes a row.

    Conditions and values are evaluated only for rows that reach them. ``clauses``: all of one kind. ``rows``: row
    numbers in ``columns``.

    Raises: ExpressionError for a row without a value under ANSI rules.
    """
    for clause in clauses:
        if not len(rows):
            return
        taken = rows
        if clause.condition is None:
            rows = rows.slice(0, 0)
        else:
            mask = true_rows([clause.condition], taking(columns, rows), len(rows))
            if mask is not None:
                taken, rows = rows.filter(mask), rows.filter(pc.invert(mask))
            else:
                rows = rows.slice(0, 0)
        if len(taken):
            resolve = taking(columns, taken)
            values = [None if value is None else evaluate(value, resolve, len(taken)) for value in clause.values]
            yield _ClauseRows(clause, taken, tuple(values))
