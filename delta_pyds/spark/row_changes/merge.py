"""Merge: rows of a source meet rows of a table, and clauses say what becomes of them; by a query of Spark.

Invariants: the source is seen once, the table at one version, and each condition is asked once of each row. A row of
the table that several rows of the source meet is an error, by the merge's condition alone, but where the only clause
for matched rows deletes all of them.

Protocol: "Deletion Vectors", "Change Data Files", "Row Tracking".
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyroaring import BitMap64
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from delta_pyds.columnar.roaring import deserialize, live_mask
from delta_pyds.commands.commit import discard_files
from delta_pyds.commands.row_changes.commit_rows import commit_rows, run_again
from delta_pyds.commands.row_changes.merge import MergeRequest, bind_request, run_merge
from delta_pyds.commands.row_changes.merge import MergeSource as KnownSource
from delta_pyds.commands.row_changes.merge import plan_merge as plan_known_merge
from delta_pyds.commands.row_changes.plan import (
    CommandOptions,
    RowChangePlan,
    change_state,
    check_may_change,
    target_files,
)
from delta_pyds.commands.row_changes.result import Place, RowChangeResult, Timing
from delta_pyds.commands.row_changes.second_look import bounds_hold, split_keys
from delta_pyds.errors import ColumnNotFoundError, ExpressionError, UserError
from delta_pyds.expr.nodes import TRUE, And, Expr
from delta_pyds.spark.planning.types import from_spark, to_spark
from delta_pyds.spark.row_changes.apply import apply_rows
from delta_pyds.spark.row_changes.computed import complete_changes
from delta_pyds.spark.row_changes.expressions import refuse_internal_names, shown_text
from delta_pyds.spark.row_changes.handle import TableHandle
from delta_pyds.spark.row_changes.merge_clauses import ClauseKind, MergeClause, check_clauses
from delta_pyds.spark.row_changes.merge_frame import CLAUSE_COLUMN, MergeRows, union
from delta_pyds.spark.row_changes.merge_plan import TARGET_ALIAS, MergePlan, plan_merge
from delta_pyds.spark.row_changes.merge_pruning import Pruning, pruning
from delta_pyds.spark.row_changes.merge_source import MergeSource, keep_source, with_source_kept
from delta_pyds.spark.row_changes.merge_texts import merge_request
from delta_pyds.spark.row_changes.place import (
    command_options,
    require_known,
    require_shared_files,
    runner_beside_spark,
)
from delta_pyds.spark.row_changes.stand_in import alias_of, stand_in
from delta_pyds.spark.row_changes.target_frame import TargetFrame, target_frame
from delta_pyds.spark.source.error_transport import errors_as_they_were
from delta_pyds.table.scan.scan import Scan, plan_scan
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.tasks.changed_rows import ACTION_COLUMN, SOURCE_ROW_COLUMN, Action, ChangeState
from delta_pyds.tasks.write_state import TaskOutput

if TYPE_CHECKING:
    from pyspark import StorageLevel
    from pyspark.sql import Column, DataFrame

_WRITTEN = (Action.UPDATE, Action.INSERT, Action.UPDATE_NOT_MATCHED_BY_SOURCE)
_KINDS: tuple[tuple[ClauseKind, str], ...] = (
    ("matched", "matchedPredicates"),
    ("not_matched", "notMatchedPredicates"),
    ("not_matched_by_source", "notMatchedBySourcePredicates"),
)
# rows of a small source that are inserted in one task
_BYTES_PER_INSERT = 32 * 1024 * 1024


def merge_rows(
    target: TableHandle,
    source: DataFrame,
    condition: Column | str,
    clauses: Sequence[MergeClause],
    schema_evolution: bool = False,
) -> RowChangeResult:
    """Merge a source into the table.

    ``condition``, conditions and values see the table under ``target.alias`` and the source under its own aliases.
    ``schema_evolution``: columns that are assigned, or covered by ``*``, and that the table lacks are added.

    Raises: what planning, a task and the commit raise, each its own DeltaError; what Spark raises for an expression.
    """
    effective = [c for c in clauses if c.action != "update" or c.assignments != {} or c.condition is not None]
    check_clauses(effective)
    with errors_as_they_were():
        return run_again(
            target.max_runs,
            lambda: with_source_kept(
                lambda level: _merge(target, source, condition, effective, level, schema_evolution=schema_evolution)
            ),
        )


def _merge(
    target: TableHandle,
    source: DataFrame,
    condition: Column | str,
    clauses: Sequence[MergeClause],
    level: StorageLevel,
    *,
    schema_evolution: bool,
) -> RowChangeResult:
    timing = Timing(time.monotonic())
    snapshot, options = target.open(), command_options(target)
    check_may_change(snapshot, "MERGE" if all(c.kind == "not_matched" for c in clauses) else "UPDATE")
    parameters = _parameters(condition, clauses)
    kept, reason = None, "a query of Spark was asked for"
    if target.engine != "spark":
        request = merge_request(
            target.spark,
            source,
            condition,
            clauses,
            target=snapshot.schema,
            target_alias=target.alias,
            parameters=parameters,
        )
        done, kept, reason = _by_process(target, snapshot, source, request, options, level, schema_evolution)
        if done is not None:
            return done
        require_known(target, reason)
    require_shared_files(target)
    given = [value for clause in clauses for value in (clause.condition, *(clause.assignments or {}).values())]
    refuse_internal_names([condition, *given], snapshot)
    plan = plan_merge(target, snapshot, source, condition, clauses, options, schema_evolution=schema_evolution)
    kept = keep_source(plan.source, level) if kept is None else kept.standing_in_for(plan.source)
    run = _Run(target, snapshot, options, plan, kept)
    outputs = run.outputs()
    command = RowChangePlan(
        "MERGE",
        run.files,
        run.state,
        options,
        parameters=parameters,
        read=run.read,
        metadata=plan.after.metadata,
        protocol=plan.after.protocol,
    )
    return commit_rows(
        command,
        outputs,
        runner=runner_beside_spark(target, run.size),
        place=Place("spark", reason),
        timing=replace(timing.found(), materialize_source_ms=kept.milliseconds),
        source_rows=kept.number_of_rows,
    )


def _by_process(
    target: TableHandle,
    snapshot: Snapshot,
    source: DataFrame,
    request: MergeRequest | None,
    options: CommandOptions,
    level: StorageLevel,
    schema_evolution: bool,
) -> tuple[RowChangeResult | None, MergeSource | None, str]:
    """The merge by our own evaluator; else the source if it is kept already, and why it is Spark's."""
    if schema_evolution:
        return None, None, "the schema may evolve."
    if request is None:
        return None, None, "what an expression means is for Spark alone to say."
    try:
        schema = from_spark(source.schema)
        bind_request(snapshot, request, schema, options)
    except UserError as e:
        # Spark has its say: of what is wrong too
        return None, None, f"our evaluator does not know an expression: {e.message}"
    kept = keep_source(source, level)
    if kept.rows is None:
        return None, kept, "the source is larger than what this process keeps."
    try:
        plan = plan_known_merge(
            snapshot, request, KnownSource(kept.rows.drop_columns(SOURCE_ROW_COLUMN), schema), options
        )
    except (ExpressionError, ColumnNotFoundError) as e:
        return None, kept, f"our evaluator does not know an expression: {e.message}"
    size = plan.bytes_to_read
    if size > target.process_bytes and target.engine != "process":
        return None, kept, f"{size:,} bytes are to be read, more than {target.process_bytes:,}."
    place = Place("process", f"every expression is known to our evaluator, and {size:,} bytes are to be read")
    return run_merge(plan, place), kept, ""


def counts_matches(clauses: Sequence[Any]) -> bool:
    """Whether several rows of the source on one row of the table are an error.

    They are not where matched rows stay as they are, and where all matched rows are deleted. Reference: MERGE.
    """
    if all(clause.kind == "not_matched" for clause in clauses):
        return False
    matched = [clause for clause in clauses if clause.kind == "matched"]
    return not (len(matched) == 1 and matched[0].action == Action.DELETE and matched[0].condition is None)


@dataclass
class _Run:
    """One run of a merge, from the kept source to the outputs of its tasks."""

    target: TableHandle
    snapshot: Snapshot
    options: CommandOptions
    plan: MergePlan
    source: MergeSource

    def __post_init__(self) -> None:
        merge = self.plan.merge
        kinds = {clause.kind for clause in merge.clauses}
        self.inserts, self.by_source = "not_matched" in kinds, "not_matched_by_source" in kinds
        self.counted = counts_matches(merge.clauses)
        # matched rows that all leave, however often they are matched
        self.deletes_all = not self.counted and "matched" in kinds
        self.pruned = Pruning() if self.by_source else self._pruning()
        self.table = self._table()
        self.files = target_files(self.snapshot, self.table.files, self.options, self.table.names)
        self.size = sum(file.size for file in self.table.files)
        # filled when the frame is complete
        self.state: ChangeState = change_state(self.files, self.plan.write, one_match=self.counted)

    @property
    def read(self) -> Expr:
        parts = self.pruned.files
        return TRUE if not parts else parts[0] if len(parts) == 1 else And(parts)

    def outputs(self) -> list[TaskOutput]:
        """Let the tasks run. After an error the files of those that ended are deleted."""
        outputs: list[TaskOutput] = []
        try:
            for frame, size in self._frames(outputs):
                outputs += self._apply(frame, size)
        except BaseException:
            discard_files(self.snapshot.table_root, self.target.storage_options, outputs)
            raise
        return outputs

    # --- planning

    def _pruning(self) -> Pruning:
        found = pruning(
            self.plan.merge.on.sql,
            self.snapshot.schema,
            self.source,
            target_alias=self.target.alias or TARGET_ALIAS,
            source_alias=alias_of(self.plan.source),
            supports=self.snapshot.configuration.supports,
            time_zone=self.options.time_zone,
            ansi=self.options.ansi,
        )
        exact, in_files = split_keys(found.keys, self.snapshot.configuration.partition_columns)
        if in_files and not bounds_hold(self._scan((*found.own, *exact)), self._scan(found.files), in_files):
            return found.without_keys()
        return found

    def _scan(self, conditions: Sequence[Expr]) -> Scan:
        return plan_scan(
            self.snapshot,
            pushed=conditions,
            storage_options=self.target.storage_options,
            time_zone=self.target.time_zone,
        )

    def _table(self) -> TargetFrame:
        return target_frame(
            self.target.spark,
            self.snapshot,
            prune=self.pruned.rows,
            pushed=self.pruned.files,
            row_ids=self.snapshot.configuration.has_row_tracking,
            storage_options=self.target.storage_options,
            time_zone=self.target.time_zone,
        )

    # --- the frames

    def _rows(self, *, with_source_rows: bool = False) -> MergeRows:
        types = [field.dataType for field in to_spark(self.plan.after.configuration.schema).fields]
        return MergeRows(
            self.plan.merge,
            types,
            with_old=self.state.change_data,
            with_source_rows=with_source_rows,
            row_ids=self.snapshot.configuration.has_row_tracking,
            matches_counted=self.counted,
        )

    def _frames(self, outputs: list[TaskOutput]) -> Any:
        """The frames to apply, one after the other, with the bytes that each reads. The second may need what the first
        brought."""
        target, source = stand_in(self.table.frame, self.plan.target), self.source.frame
        if self.source.is_small and not self.deletes_all:
            if self.table.files:
                rows = self._rows(with_source_rows=self.inserts)
                yield self._of_target(rows, target, F.broadcast(source)), self.size
            if self.inserts:
                new = self._not_matched(outputs)
                if new.num_rows:
                    frame = self.source.of_rows(new).coalesce(1 + new.nbytes // _BYTES_PER_INSERT)
                    yield self._rows().inserted(frame), 0
            return
        if self.source.is_small:
            source = F.broadcast(source)
        yield self._by_join(self._rows(), target, source), self.size

    def _of_target(self, rows: MergeRows, target: DataFrame, source: DataFrame) -> DataFrame:
        """Rows of the table alone: what is inserted comes later."""
        if not self.by_source:
            return rows.matched(target, source)
        if self.target.remote:
            return union([rows.matched(target, source), rows.left_alone(target, source)])
        return rows.all_in_one(target, source, "left")

    def _by_join(self, rows: MergeRows, target: DataFrame, source: DataFrame) -> DataFrame:
        """Rows of all kinds."""
        matched = any(clause.kind == "matched" for clause in self.plan.merge.clauses)
        if not (self.deletes_all or self.target.remote) and (self.by_source or matched):
            if not (self.inserts or self.by_source):
                return rows.matched(target, source)
            how = "full" if self.inserts and self.by_source else "right" if self.inserts else "left"
            return rows.all_in_one(target, source, how)
        frames = []
        if matched or self.counted:
            frames.append(rows.matched(target, source))
        if self.inserts:
            frames.append(rows.unmatched(target, source))
        if self.by_source:
            frames.append(rows.left_alone(target, source))
        return union(frames)

    def _not_matched(self, outputs: Sequence[TaskOutput]) -> pa.Table:
        """The rows of a small source that no row of the table met."""
        assert self.source.rows is not None
        met = BitMap64()
        for output in outputs:
            if output.matched_source_rows is not None:
                met |= deserialize(output.matched_source_rows)
        if not met:
            return self.source.rows
        return self.source.rows.filter(live_mask(met, 0, self.source.rows.num_rows))

    def _apply(self, frame: DataFrame, size: int) -> list[TaskOutput]:
        written = F.col(ACTION_COLUMN).isin([int(action) for action in _WRITTEN])
        completed = complete_changes(frame, self.plan.write, written=written, given=self.plan.given)
        self.state = change_state(
            self.files, completed.write, one_match=self.counted, insert_columns=completed.insert_columns
        )
        return apply_rows(completed.frame.drop(CLAUSE_COLUMN), self.state, read_bytes=size)


def _parameters(condition: Column | str, clauses: Sequence[MergeClause]) -> dict[str, Any]:
    """As the reference names them."""
    parameters: dict[str, Any] = {"predicate": [shown_text(condition)]}
    for kind, name in _KINDS:
        told = []
        for clause in clauses:
            if clause.kind == kind:
                predicate = {} if clause.condition is None else {"predicate": shown_text(clause.condition)}
                told.append({**predicate, "actionType": clause.action})
        parameters[name] = told
    return parameters
