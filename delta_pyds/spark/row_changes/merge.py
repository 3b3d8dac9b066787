"""Merge: rows of a source match rows of a table, and clauses change both; by our own evaluator or a query of Spark.

Invariants: the source is computed once, the table is read at one version, and each condition is evaluated once for each
row. Duplicate source matches of a row are an error, unless the only clause for matched rows deletes all of them.

Protocol: "Deletion Vectors", "Change Data Files", "Row Tracking".
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
from pyroaring import BitMap64
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from delta_pyds.catalog.opening import table_storage
from delta_pyds.columnar.roaring import bitmap_of, live_mask, serialize
from delta_pyds.commands.commit import discard_files
from delta_pyds.commands.row_changes.commit_rows import commit_rows, counts_by_action, run_again
from delta_pyds.commands.row_changes.footer_check import bounds_hold, split_keys
from delta_pyds.commands.row_changes.mend import CommandOnRows
from delta_pyds.commands.row_changes.merge import matched_source_rows, plan_merge, run_merge
from delta_pyds.commands.row_changes.plan import (
    CommandOptions,
    RowChangePlan,
    TargetFiles,
    change_state,
    mends_races,
    scan_of,
    target_files,
)
from delta_pyds.commands.row_changes.resolved import MergeClause, ResolvedCommand
from delta_pyds.commands.row_changes.result import Place, RowChangeResult, Timing
from delta_pyds.errors import ColumnNotFoundError, ExpressionError
from delta_pyds.expr.logic import and_
from delta_pyds.spark.job_description import described
from delta_pyds.spark.partition_conditions import rows_read
from delta_pyds.spark.planning.types import to_spark
from delta_pyds.spark.row_changes.apply import apply_rows
from delta_pyds.spark.row_changes.computed import CompletedChanges, complete_changes
from delta_pyds.spark.row_changes.expressions import refuse_internal_names
from delta_pyds.spark.row_changes.file_rows import file_rows
from delta_pyds.spark.row_changes.frame_identity import with_identity_of
from delta_pyds.spark.row_changes.handle import TableHandle
from delta_pyds.spark.row_changes.merge_frame import CLAUSE_COLUMN, MergeRows, union
from delta_pyds.spark.row_changes.merge_pruning import Pruning, pruning
from delta_pyds.spark.row_changes.merge_query import MergeQuery, merge_query
from delta_pyds.spark.row_changes.merge_source import MergeSource, materialize_source, with_materialized_source
from delta_pyds.spark.row_changes.place import (
    command_options,
    require_shared_files,
    require_supported,
    rewrite_runner,
    with_subqueries_of,
)
from delta_pyds.spark.row_changes.repeatable import errors_of_mends, names_of, require_repeatable, texts_of
from delta_pyds.spark.row_changes.resolution import Given, resolved_merge
from delta_pyds.spark.row_changes.session_settings import SessionSettings
from delta_pyds.spark.row_changes.target_frame import TargetFrame, by_either_reader, target_frame
from delta_pyds.spark.row_sources import depends_on_table
from delta_pyds.spark.source.error_transport import errors_as_they_were
from delta_pyds.table.definition.identity import furthest_marks
from delta_pyds.table.snapshot import Snapshot, open_snapshot
from delta_pyds.tasks.changed_rows import ACTION_COLUMN, SOURCE_ROW_COLUMN, Action, ChangeState
from delta_pyds.tasks.row_changes import TableFile
from delta_pyds.tasks.write_state import ColumnSource, TaskOutput

_WRITTEN = (Action.UPDATE, Action.INSERT, Action.UPDATE_NOT_MATCHED_BY_SOURCE)
# the most bytes of a small source that one task inserts
_BYTES_PER_INSERT = 32 * 1024 * 1024


def merge_rows(
    target: TableHandle,
    source: DataFrame,
    condition: Column | str,
    clauses: Sequence[MergeClause[Column | str]],
    schema_evolution: bool = False,
) -> RowChangeResult:
    """Merge a source into the table.

    ``condition``, conditions and values see the table under ``target.alias`` and the source under its own aliases.
    ``schema_evolution``: adds columns that the table lacks, if they are assigned or covered by ``*``.

    Raises: the DeltaError of planning, of a task or of the commit; errors of Spark for an expression.
    """
    effective = [c for c in clauses if c.action != "update" or c.assignments != {} or c.condition is not None]

    def once() -> RowChangeResult:
        timing = Timing(time.monotonic())
        # If the source is lost, its rows come again from the version of its own DataFrame. A later version of the
        # target would hide the commits in between, which may have changed those rows.
        pinned = replace(target, pinned=target.open())

        def run(level: StorageLevel) -> RowChangeResult:
            return _merge(pinned, source, condition, effective, level, timing, schema_evolution=schema_evolution)

        return with_materialized_source(run)

    with errors_as_they_were():
        return run_again(target.max_runs, once)


def _merge(
    target: TableHandle,
    source: DataFrame,
    condition: Column | str,
    clauses: Sequence[MergeClause[Column | str]],
    level: StorageLevel,
    timing: Timing,
    *,
    schema_evolution: bool,
) -> RowChangeResult:
    snapshot, options = target.open(), command_options(target)
    reads = depends_on_table(source, snapshot.table_root)
    options = replace(options, reads_table=reads, reads_where=rows_read(source, snapshot.table_root) if reads else None)
    command = resolved_merge(target, snapshot, source, condition, clauses, options, schema_evolution=schema_evolution)
    materialized, reason = None, command.refusal
    if command.rules is not None:
        materialized = materialize_source(source, level)
        done, reason = _by_process(target, command, materialized, options)
        if done is not None:
            return done
    if target.engine != "spark":
        require_supported(target, reason)
    require_shared_files(target)
    refuse_internal_names(command.expressions(), snapshot)
    settings = SessionSettings(target.spark)
    query = merge_query(target, command, source, options)
    if materialized is None:
        materialized = materialize_source(query.source, level)
    source_rows = materialized.as_frame_of(query.source)

    def run(chosen: TableHandle) -> RowChangeResult:
        return _Query(chosen, query, source_rows, options, settings).commit(timing, Place("spark", reason))

    return by_either_reader(target, run)


def _by_process(
    target: TableHandle, command: ResolvedCommand[Given], source: MergeSource, options: CommandOptions
) -> tuple[RowChangeResult | None, str]:
    """The merge by our own evaluator, or the reason why Spark runs it."""
    if source.rows is None:
        return None, "the source is too large to materialize in this process."
    try:
        plan = plan_merge(command, source.rows.drop_columns(SOURCE_ROW_COLUMN), options)
    except (ExpressionError, ColumnNotFoundError) as e:
        return None, f"our evaluator does not support an expression: {e.message}"
    size = plan.bytes_to_read
    if size > target.process_bytes and target.engine != "process":
        return None, f"this process would read {size:,} bytes, more than the limit of {target.process_bytes:,}."
    place = Place("process", f"our evaluator supports every expression; it must read {size:,} bytes")
    return run_merge(plan, place), ""


class _Query:
    """One Spark run of a merge, from the materialized source to the outputs of its tasks."""

    def __init__(
        self,
        target: TableHandle,
        query: MergeQuery,
        source: MergeSource,
        options: CommandOptions,
        settings: SessionSettings,
    ) -> None:
        self._settings = settings
        self._target, self._query, self._source, self._options = target, query, source, options
        self._command, self._snapshot = query.command, query.command.snapshot
        kinds = {clause.kind for clause in self._command.clauses}
        self._matched, self._inserts = "matched" in kinds, "not_matched" in kinds
        self._by_source = "not_matched_by_source" in kinds
        self._one_match = self._command.one_match
        # all matched rows are deleted, so duplicate matches do no harm
        self._deletes_all = not self._one_match and self._matched
        self._pruned, self._table = _pruned_target(target, query, source, options, self._snapshot)
        self._files = target_files(self._snapshot, self._table.files, options, self._table.names)
        self._size = self._table.files.num_bytes
        self._mends = mends_races(self._snapshot, options)
        # the identity values that tasks have assigned
        self._marks: list[Mapping[str, int]] = []
        # complete when the frame is
        self._state: ChangeState = change_state(self._files, query.write, one_match=self._one_match)

    def commit(self, timing: Timing, place: Place) -> RowChangeResult:
        """Run the tasks, and commit their outputs."""
        # files of later versions are ruled out by the condition alone
        candidates = scan_of(self._snapshot, self._options, self._pruned.own)
        outputs = self._outputs()
        self._marks += [output.identity_marks for output in outputs]
        after = self._command.after
        plan = RowChangePlan(
            "MERGE",
            self._files,
            self._state,
            self._options,
            parameters=self._command.parameters,
            read=and_(self._pruned.files),
            metadata=after.metadata,
            protocol=after.protocol,
        )
        return commit_rows(
            plan,
            outputs,
            runner=rewrite_runner(self._target, self._size),
            place=place,
            timing=replace(timing.found(), materialize_source_ms=self._source.milliseconds),
            source_rows=self._source.number_of_rows,
            on_rows=CommandOnRows(self._run_on, candidates, source=self, confirm=self._settings.require_same),
        )

    def _outputs(self) -> list[TaskOutput]:
        """Run the tasks. After an error, the files of the tasks that ended are deleted."""
        outputs: list[TaskOutput] = []
        try:
            for frame, size in self._frames(outputs):
                outputs += self._apply(frame, size)
        except BaseException:
            discard_files(self._snapshot.table_root, self._target.storage_options, outputs)
            raise
        return outputs

    # --- the frames

    def _rows(self, *, with_source_rows: bool = False) -> MergeRows:
        types = [field.dataType for field in to_spark(self._command.schema).fields]
        return MergeRows(
            self._query.columns,
            types,
            with_old=self._state.change_data,
            with_source_rows=with_source_rows,
            with_inserted_rows=self._inserts and self._mends,
            row_ids=self._snapshot.configuration.has_row_tracking,
            matches_counted=self._one_match,
        )

    def _frames(self, outputs: list[TaskOutput]) -> Iterator[tuple[DataFrame, int]]:
        """The frames to apply, in order, with the bytes that each reads. The second may need outputs of the first."""
        target, source = with_identity_of(self._table.frame, self._query.target), self._joined_source()
        if self._source.is_small and not self._deletes_all:
            if self._table.files:
                rows = self._rows(with_source_rows=self._inserts)
                yield self._of_target(rows, target, source), self._size
            if self._inserts:
                new = self._not_matched(outputs)
                if new.num_rows:
                    yield self._inserted(self._source.of_rows(new), new), 0
            return
        yield self._by_join(self._rows(), target, source), self._size

    def _inserted(self, frame: DataFrame, rows: pa.Table) -> DataFrame:
        return self._rows().inserted(frame.coalesce(1 + rows.nbytes // _BYTES_PER_INSERT))

    def _of_target(self, rows: MergeRows, target: DataFrame, source: DataFrame) -> DataFrame:
        """The rows of the table only: inserted rows come later."""
        if not self._by_source:
            return rows.matched(target, source)
        if self._target.remote or self._deletes_all:
            return union([rows.matched(target, source), rows.not_matched_by_source(target, source)])
        return rows.all_in_one(target, source, "left")

    def _by_join(self, rows: MergeRows, target: DataFrame, source: DataFrame) -> DataFrame:
        """Rows of all kinds."""
        if not (self._deletes_all or self._target.remote) and (self._by_source or self._matched):
            if not (self._inserts or self._by_source):
                return rows.matched(target, source)
            how = "full" if self._inserts and self._by_source else "right" if self._inserts else "left"
            return rows.all_in_one(target, source, how)
        frames = []
        if self._matched or self._one_match:
            frames.append(rows.matched(target, source))
        if self._inserts:
            frames.append(rows.unmatched(target, source))
        if self._by_source:
            frames.append(rows.not_matched_by_source(target, source))
        return union(frames)

    def _not_matched(self, outputs: Sequence[TaskOutput]) -> pa.Table:
        """The rows of a small source that no row of the table matched."""
        assert self._source.rows is not None
        met = matched_source_rows(outputs)
        if not met:
            return self._source.rows
        return self._source.rows.filter(live_mask(met, 0, self._source.rows.num_rows))

    def _apply(self, frame: DataFrame, size: int) -> list[TaskOutput]:
        completed = self._completed(frame)
        self._options = with_subqueries_of(self._options, completed.frame, self._snapshot.table_root)
        self._state = self._state_of(self._files, completed)
        return apply_rows(completed.frame.drop(CLAUSE_COLUMN), self._state, read_bytes=size)

    def _completed(self, frame: DataFrame) -> CompletedChanges:
        written = F.col(ACTION_COLUMN).isin([int(action) for action in _WRITTEN])
        return complete_changes(frame, self._query.write, written=written, given=self._query.given)

    def _state_of(self, files: TargetFiles, completed: CompletedChanges) -> ChangeState:
        return change_state(
            files,
            completed.write,
            one_match=self._one_match,
            insert_columns=completed.insert_columns,
            with_origins=self._mends,
        )

    # --- after a lost race: see ``mend.CommandOnRows`` and ``mend.SourceRows``

    def _run_on(self, now: RowChangePlan, files: Sequence[TableFile]) -> list[TaskOutput]:
        """The changes of these rows of the table; of a merge that inserts, also the source's rows that match them."""
        rows = self._rows(with_source_rows=self._inserts and not self._deletes_all)
        with errors_of_mends(self._settings):
            matches = []
            if self._inserts and self._deletes_all:
                # before the tasks write files, which nobody would delete if it failed
                matches.append(self._matching(self._source.frame, self._rows_of(now, files)))
            frame = self._of_target(rows, self._rows_of(now, files), self._joined_source())
            return [*self._apply_again(now, frame), *matches]

    def first_result(self, plan: RowChangePlan, files: Sequence[TableFile]) -> TaskOutput:
        now = replace(plan, state=replace(plan.state, dry_run=True))
        outputs = self._run_on(now, files) if files else []
        return TaskOutput(counts=counts_by_action(outputs), matched_source_rows=serialize(matched_source_rows(outputs)))

    def settle(
        self, plan: RowChangePlan, lost: TaskOutput, brought: Sequence[TaskOutput]
    ) -> tuple[BitMap64, list[TaskOutput]]:
        if not self._inserts:
            return BitMap64(), []
        met, before = matched_source_rows(brought), matched_source_rows([lost])
        if perhaps := before - met:
            # these matched rows that are gone, and may still match others
            met |= self._matched_in(plan, perhaps)
        unmet = before - met
        return met, self._insert(plan, unmet) if unmet else []

    def _rows_of(self, now: RowChangePlan, files: Sequence[TableFile]) -> DataFrame:
        rows = file_rows(self._target.spark, now, files, row_ids=self._snapshot.configuration.has_row_tracking)
        return with_identity_of(rows, self._query.target)

    def _joined_source(self) -> DataFrame:
        return F.broadcast(self._source.frame) if self._source.is_small else self._source.frame

    def _apply_again(self, now: RowChangePlan, frame: DataFrame) -> list[TaskOutput]:
        completed = self._completed(frame)
        command, write = self._command, self._query.write
        names = [*names_of(self._target, self._snapshot), *self._source.original.columns]
        names += [] if command.source_alias is None else [command.source_alias]
        require_repeatable(completed.frame, command.expressions(), of_table=texts_of(write), names=names)
        state = replace(self._state_of(now.target, completed), dry_run=now.state.dry_run)
        outputs = apply_rows(completed.frame.drop(CLAUSE_COLUMN), self._numbered_on(state))
        self._marks += [output.identity_marks for output in outputs]
        return outputs

    def _matching(self, source: DataFrame, target: DataFrame) -> TaskOutput:
        """The rows of the source that match these rows of the table."""
        met = source.join(target, self._query.columns.on.column, "left_semi").select(SOURCE_ROW_COLUMN)
        with described(self._target.spark, "rows of the source that match"):
            numbers = met.distinct().toArrow().column(0).combine_chunks()
        return TaskOutput(matched_source_rows=serialize(bitmap_of(numbers.cast(pa.int64()))))

    def _matched_in(self, now: RowChangePlan, numbers: BitMap64) -> BitMap64:
        """Those of these rows of the source that match a row of the table after the winners."""
        storage = table_storage(self._target.path, self._target.storage_options)
        snapshot = open_snapshot(storage, self._target.path, version=now.target.version)
        source = self._source.chosen(numbers)

        def run(chosen: TableHandle) -> TaskOutput:
            _, table = _pruned_target(chosen, self._query, source, self._options, snapshot, matched_only=True)
            return self._matching(source.frame, with_identity_of(table.frame, self._query.target))

        with errors_of_mends(self._settings):
            return matched_source_rows([by_either_reader(self._target, run)])

    def _insert(self, now: RowChangePlan, numbers: BitMap64) -> list[TaskOutput]:
        """Insert these rows of the source."""
        source = self._source.chosen(numbers)
        with errors_of_mends(self._settings):
            if source.rows is None:
                frame = self._rows().inserted(source.frame)
            else:
                frame = self._inserted(source.frame, source.rows)
            return self._apply_again(now, frame)

    def _numbered_on(self, state: ChangeState) -> ChangeState:
        """The state of tasks that assign identity values after those of earlier tasks."""
        marks = furthest_marks(self._marks, state.write.schema)
        if not marks:
            return state
        write = replace(state.write, columns=_with_marks(state.write.columns, marks))
        inserts = None if state.insert_columns is None else _with_marks(state.insert_columns, marks)
        return replace(state, write=write, insert_columns=inserts)


def _pruned_target(
    target: TableHandle,
    query: MergeQuery,
    source: MergeSource,
    options: CommandOptions,
    snapshot: Snapshot,
    *,
    matched_only: bool = False,
) -> tuple[Pruning, TargetFrame]:
    """The rows of the table that may match the source; all rows if a clause changes those that match none.

    ``matched_only``: leave out the others anyway.
    """
    changes_others = any(clause.kind == "not_matched_by_source" for clause in query.command.clauses)
    pruned = Pruning()
    if matched_only or not changes_others:
        pruned = pruning(query.command, query.columns.on.sql, source, options)
        exact, in_files = split_keys(pruned.keys, snapshot.configuration.partition_columns)
        before = scan_of(snapshot, options, (*pruned.own, *exact))
        if in_files and not bounds_hold(before, scan_of(snapshot, options, pruned.files), in_files):
            pruned = pruned.without_keys()
    frame = target_frame(
        target.spark,
        snapshot,
        prune=pruned.rows,
        pushed=pruned.files,
        row_ids=snapshot.configuration.has_row_tracking,
        storage_options=target.storage_options,
        time_zone=target.time_zone,
        engine=target.reader,
    )
    return pruned, frame


def _with_marks(columns: Sequence[ColumnSource], marks: Mapping[str, int]) -> tuple[ColumnSource, ...]:
    """The column sources, with these high-water marks of identity columns."""
    return tuple(
        replace(one, identity=replace(one.identity, high_water_mark=marks[one.field.name]))
        if one.identity is not None and one.field.name in marks
        else one
        for one in columns
    )
