"""Writes changed rows as bitmaps of positions, new files and change files, for every command.

    rows = ChangedRows(state, session)
    try:
        for batch in batches:      # columns of tasks.changed_rows
            rows.take(batch)
        output = rows.close()
    except BaseException:
        rows.discard()
        raise

Columns of a batch, in any order; others are ignored:

- FILE_COLUMN (int32 number or string name, null for inserts), POSITION_COLUMN (int64, null for inserts), ACTION_COLUMN
  (int8): required.
- NEW_PREFIX+i: the i-th column of ``state.write.schema``, for rows that are written (UPDATE, INSERT,
  UPDATE_NOT_MATCHED_BY_SOURCE); any value for others. If ``state.write.columns[i].input`` is None, the column may be
  missing: defaults, generated values and identity values are computed here. ``input`` may be any number: values are
  taken from NEW_PREFIX+i. ``state.insert_columns``, if given, replaces ``write.columns`` for inserted rows.
- OLD_PREFIX+i: the old value of the i-th column, if ``state.change_data``; any value for inserts. A missing one is
  null.
- ROW_ID_COLUMN: the row's id; null for inserts. If it is missing, the id is ``state.base_row_ids[file] + position``.
- SOURCE_ROW_COLUMN: for the actions KEEP, UPDATE, DELETE it is collected in ``TaskOutput.matched_source_rows``, unless
  it is null. For INSERT it is the row's origin.
- CHECK_PREFIX+i: boolean, whether a written row satisfies ``state.write.checks[i]``, which is then not evaluated here.

``TaskOutput.counts`` has for each action its number of rows. ``found.positions``: UPDATE, DELETE, and both by source;
``found.kept``: KEEP, only if ``state.one_match``.

Protocol: "Deletion Vectors", "Change Data Files", "Row Tracking".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from delta_pyds.columnar.roaring import bitmap_of, serialize
from delta_pyds.columnar.row_origins import UNKNOWN, of_source_rows, of_table_rows
from delta_pyds.columnar.schema import arrow_type
from delta_pyds.data.columns import null_column
from delta_pyds.data.row_changes.change_files import ChangeFiles
from delta_pyds.data.row_changes.files import with_row_ids
from delta_pyds.data.row_changes.found_rows import Positions, duplicate_source_matches
from delta_pyds.data.row_changes.new_rows import NewRows
from delta_pyds.data.write.store_assignment import plan_assignment
from delta_pyds.data.write.task_session import TaskSession, check_same_time_zone
from delta_pyds.data.write.writer import DataFileWriter
from delta_pyds.errors import DeltaError
from delta_pyds.tasks.changed_rows import (
    ACTION_COLUMN,
    FILE_COLUMN,
    OLD_PREFIX,
    POSITION_COLUMN,
    ROW_ID_COLUMN,
    SOURCE_ROW_COLUMN,
    Action,
    ChangeState,
)
from delta_pyds.tasks.write_state import TaskOutput, WrittenFile

_MATCHED = (Action.KEEP, Action.UPDATE, Action.DELETE)
_UPDATES = (Action.UPDATE, Action.UPDATE_NOT_MATCHED_BY_SOURCE)
_DELETES = (Action.DELETE, Action.DELETE_NOT_MATCHED_BY_SOURCE)


class ChangedRows:
    """The changed rows of one task.

    Invariants: each row of the table counts once; the files that ``close`` names are complete. Memory is bounded,
    except for the bitmaps.
    """

    def __init__(self, state: ChangeState, session: TaskSession) -> None:
        """Raises: OptionError if an expression of the table was bound for another time zone than the session's."""
        check_same_time_zone(state.write, session)
        self._state = state
        self._session = session
        self._of_files = with_row_ids(state.write, state.row_id_columns)
        self._positions, self._kept = Positions(), Positions()
        self._counts: Counter[int] = Counter()
        self._source_rows: BitMap64 | None = None
        self._origins = _Origins() if state.with_origins else None
        self._updated: NewRows | None = None
        self._inserted: NewRows | None = None
        self._files: DataFileWriter | None = None
        self._change_files = ChangeFiles(state.write, session.partition_id, with_origins=state.with_origins)

    def take(self, batch: pa.RecordBatch) -> None:
        """Write a batch of changed rows: see the module for its columns.

        Raises: UserError (DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE); ConstraintViolationError,
            ExpressionError for values; StorageError; DeltaError for rows without file or position.
        """
        if not batch.num_rows:
            return
        if batch.column(ACTION_COLUMN).null_count:
            raise DeltaError("internal error: a changed row has no action.")
        if SOURCE_ROW_COLUMN in batch.schema.names:
            self._note_source(_with_action(batch, _MATCHED))
        batch = self._noted(batch)
        for counted in batch.column(ACTION_COLUMN).value_counts().to_pylist():
            self._counts[int(counted["values"])] += counted["counts"]
        if self._state.dry_run:
            return
        updates, inserts = _with_action(batch, _UPDATES), _with_action(batch, (Action.INSERT,))
        if updates.num_rows:
            self._updated = self._updated or NewRows(self._state.write, self._session, batch.schema)
            self._change(updates, "update_preimage")
            self._write(self._updated.apply(updates), updates, "update_postimage", inserted=False)
        if inserts.num_rows:
            self._inserted = self._inserted or self._new_inserts(batch.schema)
            self._write(self._inserted.apply(inserts), inserts, "insert", inserted=True)
        self._change(_with_action(batch, _DELETES), "delete")

    def close(self) -> TaskOutput:
        """Finish all files."""
        files = () if self._files is None else self._files.close()
        change_files = self._change_files.close()
        most = self._state.most_origin_bytes
        if most is not None and sum(len(file.origins or b"") for file in (*files, *change_files)) > most:
            files, change_files = _without_origins(files), _without_origins(change_files)
        marks: dict[str, int] = {}
        for rows in (self._updated, self._inserted):
            # updated rows keep their identity values, so no column is in both
            marks |= {} if rows is None else rows.identity_marks
        return TaskOutput(
            files,
            marks,
            change_files=change_files,
            found=self._positions.found(self._kept),
            counts=dict(self._counts),
            matched_source_rows=None if self._source_rows is None else serialize(self._source_rows),
            origin_files=() if self._origins is None else self._origins.files,
        )

    def discard(self) -> None:
        """Delete all files, as far as the storage allows. May be called at any time, and repeatedly."""
        for writer in (self._files, self._change_files):
            if writer is not None:
                with suppress(Exception):
                    writer.discard()

    # --- the rows of the table

    def _noted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Record the rows of the table. Returns: the batch without repeated rows, if those are allowed."""
        leaving = _with_action(batch, (*_UPDATES, *_DELETES))
        kept = _with_action(batch, (Action.KEEP,)) if self._state.one_match else batch.slice(0, 0)
        fresh = self._positions.add(*_rows(leaving)) and self._kept.add(*_rows(kept))
        if fresh and self._positions.first_common(self._kept) is None:
            return batch
        if self._state.one_match:
            raise duplicate_source_matches(self._state.write.table_root)
        if leaving.num_rows < batch.num_rows or _with_action(leaving, _DELETES).num_rows < leaving.num_rows:
            raise DeltaError("internal error: a row to change was given twice, so its new values are ambiguous.")
        # a row to delete may be given more than once
        batch = leaving.filter(self._positions.unknown(*_rows(leaving)))
        self._positions.add(*_rows(batch))
        return batch

    def _note_source(self, matched: pa.RecordBatch) -> None:
        numbers = matched.column(SOURCE_ROW_COLUMN)
        if numbers.null_count == len(numbers):
            # only inserted rows have the number
            return
        rows = bitmap_of(numbers.cast(pa.int64()))
        if self._source_rows is None:
            self._source_rows = BitMap64()
        self._source_rows |= rows

    def _row_ids(self, batch: pa.RecordBatch) -> pa.Array:
        positions = batch.column(POSITION_COLUMN)
        files = batch.column(FILE_COLUMN).dictionary_encode()
        # files that Spark names have the same names here
        known = {str(name): base for name, base in self._state.base_row_ids.items()}
        bases = pa.array([known.get(str(name)) for name in files.dictionary.to_pylist()], pa.int64())
        ids = pc.add(bases.take(files.indices), positions)
        if ROW_ID_COLUMN in batch.schema.names:
            ids = pc.coalesce(batch.column(ROW_ID_COLUMN), ids)
        if ids.null_count:
            raise DeltaError("internal error: a changed row has no row id, and its file has no base row id.")
        return ids

    # --- their new values

    def _new_inserts(self, incoming: pa.Schema) -> NewRows:
        write = self._state.write
        columns = self._state.insert_columns
        return NewRows(write if columns is None else replace(write, columns=columns), self._session, incoming)

    def _write(self, rows: pa.RecordBatch, batch: pa.RecordBatch, change: str, *, inserted: bool) -> None:
        """Write rows of the table, computed from ``batch``, and record the change."""
        if self._files is None:
            self._files = DataFileWriter(
                self._of_files, self._session.partition_id, with_origins=self._state.with_origins
            )
        columns = self._state.row_id_columns
        extra: list[pa.Array] = []
        if columns is not None:
            if columns.row_id is not None:
                extra.append(pa.nulls(rows.num_rows, pa.int64()) if inserted else self._row_ids(batch))
            if columns.row_commit_version is not None:
                # null means the version of this commit
                extra.append(pa.nulls(rows.num_rows, pa.int64()))
        names = self._of_files.schema.names
        origins = None if self._origins is None else self._origins.of(batch)
        self._files.write(pa.RecordBatch.from_arrays([*rows.columns, *extra], names=list(names)), origins)
        if self._state.change_data:
            self._change_files.record(rows.columns, rows.num_rows, change, origins)

    def _change(self, batch: pa.RecordBatch, change: str) -> None:
        """Record a change of rows with their old values."""
        if not self._state.change_data or not batch.num_rows:
            return
        arrays = []
        for i, field in enumerate(self._state.write.schema):
            column = f"{OLD_PREFIX}{i}"
            if column not in batch.schema.names:
                arrays.append(null_column(arrow_type(field.data_type)).array(batch.num_rows))
                continue
            array = batch.column(column)
            convert = plan_assignment(array.type, field.data_type, field.name, self._state.write.table_root).convert
            arrays.append(array if convert is None else convert(array))
        origins = None if self._origins is None else self._origins.of(batch)
        self._change_files.record(arrays, batch.num_rows, change, origins)


class _Origins:
    """The origins of changed rows. ``files``: the files of the table, by the index that origins have."""

    def __init__(self) -> None:
        self._index: dict[int | str, int] = {}

    @property
    def files(self) -> tuple[int | str, ...]:
        return tuple(self._index)

    def of(self, batch: pa.RecordBatch) -> pa.Array:
        """The origin of each row. Inserted rows come from the source."""
        names = batch.column(FILE_COLUMN).dictionary_encode()
        index = pa.array(
            [self._index.setdefault(n, len(self._index)) for n in names.dictionary.to_pylist()], pa.int64()
        )
        origins = of_table_rows(index.take(names.indices), batch.column(POSITION_COLUMN))
        if origins.null_count and SOURCE_ROW_COLUMN in batch.schema.names:
            origins = pc.coalesce(origins, of_source_rows(batch.column(SOURCE_ROW_COLUMN)))
        return origins.fill_null(UNKNOWN)


def _without_origins(files: Sequence[WrittenFile]) -> tuple[WrittenFile, ...]:
    return tuple(replace(file, origins=None) for file in files)


def _with_action(batch: pa.RecordBatch, actions: Sequence[Action]) -> pa.RecordBatch:
    """The rows with one of the actions; the batch itself if these are all."""
    wanted = pc.is_in(batch.column(ACTION_COLUMN), value_set=pa.array([int(a) for a in actions], pa.int8()))
    count = wanted.true_count
    if count == batch.num_rows:
        return batch
    return batch.filter(wanted) if count else batch.slice(0, 0)


def _rows(batch: pa.RecordBatch) -> tuple[pa.Array, pa.Array]:
    return batch.column(FILE_COLUMN), batch.column(POSITION_COLUMN)
