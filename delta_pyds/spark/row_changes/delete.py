"""Delete: by our own evaluator if it supports the condition, else by a query of Spark.

Invariant: in one version of the table, all rows for which the condition is true are deleted. A condition that is not
deterministic is evaluated once for each row.

Protocol: "Deletion Vectors", "Add File and Remove File".
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from delta_pyds.commands.row_changes.commit_rows import commit_rows, run_again
from delta_pyds.commands.row_changes.delete import plan_delete, plan_truncate, run_delete
from delta_pyds.commands.row_changes.mend import CommandOnRows
from delta_pyds.commands.row_changes.plan import CommandOptions, RowChangePlan, files_state, target_files
from delta_pyds.commands.row_changes.resolved import ResolvedCommand
from delta_pyds.commands.row_changes.result import Place, RowChangeResult, Timing
from delta_pyds.spark.row_changes.apply import apply_rows
from delta_pyds.spark.row_changes.expressions import mentioned, refuse_internal_names
from delta_pyds.spark.row_changes.file_rows import file_rows
from delta_pyds.spark.row_changes.found_rows import FoundRows, chosen_rows, find_and_mark
from delta_pyds.spark.row_changes.handle import TableHandle
from delta_pyds.spark.row_changes.place import (
    command_options,
    place_of_supported,
    require_shared_files,
    require_supported,
    rewrite_runner,
    with_subqueries_of,
)
from delta_pyds.spark.row_changes.repeatable import (
    errors_of_mends,
    names_of,
    require_independent_decisions,
    require_repeatable,
)
from delta_pyds.spark.row_changes.resolution import Given, own_plan, resolved_delete
from delta_pyds.spark.row_changes.session_settings import SessionSettings
from delta_pyds.spark.source.error_transport import errors_as_they_were
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.tasks.changed_rows import ACTION_COLUMN, FILE_COLUMN, POSITION_COLUMN, Action, ChangeState
from delta_pyds.tasks.row_changes import TableFile
from delta_pyds.tasks.write_state import TaskOutput


def delete_rows(target: TableHandle, condition: Column | str | None) -> RowChangeResult:
    """Delete the rows for which the condition is true; all rows without a condition.

    Raises: the DeltaError of planning, of a task or of the commit; errors of Spark for the condition.
    """
    with errors_as_they_were():
        return run_again(target.max_runs, lambda: _delete(target, condition))


def truncate_rows(target: TableHandle) -> RowChangeResult:
    """Delete all rows, as TRUNCATE in the history. Raises: the DeltaError of planning or of the commit."""
    place = Place("process", "whole files are removed")
    return run_again(target.max_runs, lambda: run_delete(plan_truncate(target.open(), command_options(target)), place))


def _delete(target: TableHandle, condition: Column | str | None) -> RowChangeResult:
    snapshot, options = target.open(), command_options(target)
    command = resolved_delete(target, snapshot, condition)
    reason = "the user chose engine 'spark'"
    if target.engine != "spark":
        plan, reason = own_plan(target, command, lambda texts: plan_delete(texts, options))
        if plan is not None:
            return run_delete(plan, *place_of_supported(target, plan.bytes_to_read))
        require_supported(target, reason)
    return _by_spark(target, command, options, reason)


def _by_spark(
    target: TableHandle, command: ResolvedCommand[Given], options: CommandOptions, reason: str
) -> RowChangeResult:
    require_shared_files(target)
    snapshot = command.snapshot
    condition = "true" if command.condition is None else command.condition
    refuse_internal_names([condition], snapshot)
    timing, settings = Timing(time.monotonic()), SessionSettings(target.spark)
    # whether rows need change files depends on what the commit does with their data files
    state = ChangeState(files_state(snapshot, options))
    found, outputs = find_deleted(target, snapshot, condition, state)
    options = with_subqueries_of(options, found.frame, snapshot.table_root)
    plan = RowChangePlan(
        "DELETE",
        target_files(snapshot, found.table.files, options, found.table.names),
        state,
        options,
        parameters=command.parameters,
        read=found.read,
    )
    return commit_rows(
        plan,
        outputs,
        runner=rewrite_runner(target, found.read_bytes),
        place=Place("spark", reason),
        timing=timing.found(),
        on_rows=deletion_on_rows(target, found, condition, settings),
    )


def find_deleted(
    target: TableHandle, snapshot: Snapshot, condition: Column | str, state: ChangeState
) -> tuple[FoundRows, list[TaskOutput]]:
    """The rows for which the condition is true, marked as deleted by tasks that write no file."""
    return find_and_mark(
        target, snapshot, condition, _deleted, columns=mentioned([condition], snapshot.schema), state=state
    )


def deletion_on_rows(
    target: TableHandle, found: FoundRows, condition: Column | str, settings: SessionSettings
) -> CommandOnRows:
    """The same query on given rows of files, for a command that lost a race. ``settings``: before ``found``."""
    scan = found.table.scan

    def query(now: RowChangePlan, files: Sequence[TableFile]) -> DataFrame:
        rows = file_rows(target.spark, now, files, columns=scan.state.output)
        return chosen_rows(target, rows, condition, _deleted)

    def run_on(now: RowChangePlan, files: Sequence[TableFile]) -> list[TaskOutput]:
        with errors_of_mends(settings):
            frame = query(now, files)
            require_repeatable(frame, [condition], names=names_of(target, scan.snapshot))
            return apply_rows(frame, now.state)

    def check(now: RowChangePlan) -> None:
        with errors_of_mends(settings):
            require_independent_decisions(query(now, ()), [condition])

    return CommandOnRows(run_on, scan, Action.DELETE, check=check, confirm=settings.require_same)


def _deleted(rows: DataFrame) -> DataFrame:
    action = F.lit(int(Action.DELETE)).cast("tinyint").alias(ACTION_COLUMN)
    return rows.select(FILE_COLUMN, POSITION_COLUMN, action)
