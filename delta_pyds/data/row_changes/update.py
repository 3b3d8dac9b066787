"""Updates rows of the table's files, by our own evaluator.

Either changed rows are written to new files and marked as deleted in the old files, or whole files with such rows are
rewritten. Values are computed from the old row, and only for rows that change: for other rows they may raise an error.

Protocol: "Deletion Vectors", "Row Tracking", "Change Data Files".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.columnar.evaluate import matches
from delta_pyds.columnar.row_origins import of_whole_file
from delta_pyds.columnar.rows import batch_resolver
from delta_pyds.data.read.reader import open_rows, read
from delta_pyds.data.row_changes.change_files import ChangeFiles
from delta_pyds.data.row_changes.changed_rows import ChangedRows
from delta_pyds.data.row_changes.files import joined_files, with_row_ids
from delta_pyds.data.row_changes.find import found_in
from delta_pyds.data.row_changes.new_rows import NewRows
from delta_pyds.data.write.derived_columns import computed_column
from delta_pyds.data.write.task_session import TaskSession, check_time_zone
from delta_pyds.data.write.writer import DataFileWriter
from delta_pyds.protocol.schema import StructType
from delta_pyds.tasks.changed_rows import (
    ACTION_COLUMN,
    FILE_COLUMN,
    NEW_PREFIX,
    OLD_PREFIX,
    POSITION_COLUMN,
    ROW_ID_COLUMN,
    Action,
)
from delta_pyds.tasks.row_changes import TableFile, UpdateRows
from delta_pyds.tasks.write_state import FoundRows, ReplacedFile, TaskOutput


def update_rows(task: UpdateRows) -> TaskOutput:
    """Update the rows of some files. Raises: as ``read``, ``ChangedRows`` and ``DataFileWriter``."""
    return _FileRewriter(task).run() if task.rewrite else _mark_and_write(task)


class _Values:
    """The new values of rows: the columns ``NEW_PREFIX``, by position in the table's schema."""

    def __init__(self, task: UpdateRows, session: TaskSession) -> None:
        table = task.change.write.table_root
        self._names = list(task.scan.output.names)
        self._assigned = {
            i: computed_column(source, session, table, "the new value of column") for i, source in task.assigned
        }
        computed = {i for i, source in enumerate(task.change.write.columns) if source.input is None}
        # the columns that get new values: assigned columns, and generated columns that depend on them
        self.changing = sorted(self._assigned.keys() | computed)
        self._given = [i for i in range(len(self._names)) if i not in computed]

    def table_rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The table's columns of a batch that was read, by logical name."""
        return pa.RecordBatch.from_arrays(batch.columns[: len(self._names)], names=self._names)

    def new_columns(self, rows: pa.RecordBatch) -> tuple[list[pa.Array], list[str]]:
        """The new columns of rows of the table, and their names."""
        columns = batch_resolver(rows)
        arrays = [
            self._assigned[i](columns, rows.num_rows) if i in self._assigned else rows.column(i) for i in self._given
        ]
        return arrays, [f"{NEW_PREFIX}{i}" for i in self._given]


def _mark_and_write(task: UpdateRows) -> TaskOutput:
    session = TaskSession(task.number, task.ansi)
    values = _Values(task, session)
    changed = ChangedRows(task.change, session)
    state = replace(task.scan, row_position=True)
    files: dict[int | str, FoundRows] = {}
    try:
        for file in task.files:
            with open_rows(state, file.scan) as rows:
                for batch in rows.batches():
                    changed.take(_changed_batch(task, values, file.number, batch))
                    files[file.number] = found_in(file.number, rows)
        output = changed.close()
    except BaseException:
        # also for GeneratorExit and KeyboardInterrupt: a killed task deletes as many files as it can
        changed.discard()
        raise
    return replace(output, found=tuple(replace(files[one.file], positions=one.positions) for one in output.found))


def _changed_batch(task: UpdateRows, values: _Values, number: int, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows of a batch that was read, with the columns that ``ChangedRows`` takes."""
    width, count = len(task.scan.output.fields), batch.num_rows
    rows = values.table_rows(batch)
    arrays, names = values.new_columns(rows)
    arrays += [
        pa.repeat(pa.scalar(number, pa.int32()), count),
        batch.column(width + 1),  # after the file's path
        pa.repeat(pa.scalar(int(Action.UPDATE), pa.int8()), count),
    ]
    names += [FILE_COLUMN, POSITION_COLUMN, ACTION_COLUMN]
    if task.change.row_id_columns is not None:
        arrays.append(batch.column(width + 2))
        names.append(ROW_ID_COLUMN)
    if task.change.change_data:
        arrays += rows.columns
        names += [f"{OLD_PREFIX}{i}" for i in range(width)]
    return pa.RecordBatch.from_arrays(arrays, names=names)


class _FileRewriter:
    """Rewrites the files that have changed rows."""

    def __init__(self, task: UpdateRows) -> None:
        write = task.change.write
        session = TaskSession(task.number, task.ansi)
        check_time_zone(write, session)
        self._task = task
        self._session = session
        self._values = _Values(task, session)
        self._files = with_row_ids(write, task.change.row_id_columns)
        with_origins = task.change.with_origins
        self._writer = DataFileWriter(self._files, task.number, with_origins=with_origins)
        self._change_files = ChangeFiles(write, task.number, with_origins=with_origins)
        self._new_rows: NewRows | None = None
        self._updated = self._copied = 0

    def run(self) -> TaskOutput:
        replaced = []
        try:
            for group in self._groups():
                replaced += [self._rewrite(index, file) for index, file in group if self._matches_any(file)]
                self._writer.end_files()
            files, change_files = self._writer.close(), self._change_files.close()
        except BaseException:
            for writer in (self._writer, self._change_files):
                with suppress(Exception):
                    writer.discard()
            raise
        return TaskOutput(
            files,
            change_files=change_files,
            copied_rows=self._copied,
            replaced=tuple(replaced),
            counts={int(Action.UPDATE): self._updated} if self._updated else {},
            origin_files=tuple(file.number for file in self._task.files),
        )

    def _groups(self) -> list[list[tuple[int, TableFile]]]:
        """Files whose rows may share a new file."""
        partitions, schema = self._task.change.write.partition_columns, self._files.schema
        if any(schema.fields[i].name in partitions for i in self._values.changing):
            # the rows of a file may go to many partitions
            return [list(enumerate(self._task.files))]
        return list(joined_files(self._task.files))

    def _rewrite(self, index: int, file: TableFile) -> ReplacedFile:
        copied, updated = self._copied, self._updated
        for batch in read(replace(self._task.scan, predicate=None, skip=None), file.scan):
            self._write(batch, index)
        updated = self._updated - updated
        return ReplacedFile(file.number, updated + self._copied - copied, updated)

    def _matches_any(self, file: TableFile) -> bool:
        """Whether any row changes: reading stops at the first one."""
        state = replace(self._task.scan, output=StructType(()), row_ids=None)
        batches: Iterator[pa.RecordBatch] = read(state, file.scan)
        return next(batches, None) is not None

    def _write(self, batch: pa.RecordBatch, index: int) -> None:
        rows = self._values.table_rows(batch)
        predicate = self._task.scan.predicate
        mask = None if predicate is None else matches(predicate, rows, rows.num_rows)
        count = rows.num_rows if mask is None else mask.true_count
        columns = list(rows.columns)
        if count:
            old = rows if count == rows.num_rows else rows.filter(mask)
            new = self._updated_rows(old)
            for i in self._values.changing:
                columns[i] = (
                    new.column(i) if count == rows.num_rows else _replace_where(columns[i], mask, new.column(i))
                )
            if self._task.change.change_data:
                origins = of_whole_file(index, count)
                self._change_files.record(old.columns, count, "update_preimage", origins)
                self._change_files.record(new.columns, count, "update_postimage", origins)
        columns += self._row_id_columns(batch, mask, count)
        rows = pa.RecordBatch.from_arrays(columns, names=list(self._files.schema.names))
        self._writer.write(rows, of_whole_file(index, rows.num_rows))
        self._updated += count
        self._copied += batch.num_rows - count

    def _updated_rows(self, old: pa.RecordBatch) -> pa.RecordBatch:
        """The rows after the update, as the table stores them."""
        arrays, names = self._values.new_columns(old)
        values = pa.RecordBatch.from_arrays(arrays, names=names)
        if self._new_rows is None:
            self._new_rows = NewRows(self._task.change.write, self._session, values.schema)
        return self._new_rows.apply(values)

    def _row_id_columns(self, batch: pa.RecordBatch, mask: pa.Array | None, count: int) -> Sequence[pa.Array]:
        """The columns of row ids and commit versions.

        Row ids stay. The commit version of a changed row is null, which means the new commit's version.
        """
        columns = self._task.change.row_id_columns
        if columns is None:
            return ()
        width = len(self._task.scan.output.fields)
        row_id, version = batch.column(width), batch.column(width + 1)
        if count == batch.num_rows:
            version = pa.nulls(count, pa.int64())
        elif count:
            version = pc.if_else(mask, pa.scalar(None, pa.int64()), version)
        pairs = ((columns.row_id, row_id), (columns.row_commit_version, version))
        return [array for name, array in pairs if name is not None]


def _replace_where(column: pa.Array, mask: pa.Array, new: pa.Array) -> pa.Array:
    """The column with the new values, in their order, in the rows for which the mask is true."""
    if new.type != column.type:
        new = new.cast(column.type)
    if not pa.types.is_nested(column.type):
        return pc.replace_with_mask(column, mask, new)
    # Arrow has no such kernel for nested types
    number = pc.subtract(pc.cumulative_sum(mask.cast(pa.int64())), 1)
    taken = pc.if_else(mask, pc.add(number, len(column)), pa.array(range(len(column)), pa.int64()))
    return pa.concat_arrays([column, new]).take(taken)
