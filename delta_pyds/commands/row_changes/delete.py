"""Delete by our own evaluator: in the user's process, or in tasks that Spark hands files to.

    command = resolve_delete(snapshot, "id > 3")
    plan = plan_delete(command, options)      # ExpressionError: our evaluator does not support the condition
    plan.bytes_to_read                                 # 0 if partition values alone decide: whole files are removed
    result = run_delete(plan, Place("process", "..."))             # in this process
    result = run_delete(plan, Place("tasks", "..."), SparkRunner(spark))

Protocol: "Deletion Vectors", "Add File and Remove File".
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from delta_pyds.commands.row_changes.commit_rows import commit_rows, local_runner
from delta_pyds.commands.row_changes.condition import bind_condition, scan_where
from delta_pyds.commands.row_changes.find_rows import run_find, table_files
from delta_pyds.commands.row_changes.mend import CommandOnRows
from delta_pyds.commands.row_changes.plan import (
    CommandOptions,
    RowChangePlan,
    change_state,
    files_state,
    target_files,
)
from delta_pyds.commands.row_changes.resolve import resolve_delete
from delta_pyds.commands.row_changes.resolved import ResolvedCommand
from delta_pyds.commands.row_changes.result import Place, RowChangeResult, Timing
from delta_pyds.commands.task_runner import TaskRunner
from delta_pyds.expr.nodes import TRUE
from delta_pyds.table.scan.live_files import live_files
from delta_pyds.table.scan.partition_match import files_matching, is_partition_predicate
from delta_pyds.table.scan.scan import Scan
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.tasks.changed_rows import Action


@dataclass(frozen=True)
class DeletePlan:
    """``scan``: finds the rows. ``bytes_to_read``: the candidate files; 0 if whole files are removed unread."""

    change: RowChangePlan
    scan: Scan
    bytes_to_read: int
    timing: Timing


def plan_delete(command: ResolvedCommand[str], options: CommandOptions) -> DeletePlan:
    """Bind the condition, and find the candidate files by partition values and statistics.

    Raises: ExpressionError for a condition that our evaluator does not support exactly; ColumnNotFoundError.
    """
    timing = Timing(time.monotonic())
    snapshot = command.snapshot
    predicate = bind_condition(command.condition, snapshot.schema, options)
    scan = scan_where(snapshot, predicate, options)
    files = live_files(scan)
    whole = is_partition_predicate(predicate, snapshot.configuration.partition_columns)
    if whole and predicate != TRUE:
        # skipping may keep too many files, so it never decides which files are removed
        files = files_matching(
            files, predicate, snapshot.schema, table=snapshot.table_root, time_zone=options.time_zone
        )
    target = target_files(snapshot, list(files), options)
    change = RowChangePlan(
        "DELETE",
        target,
        change_state(target, files_state(snapshot, options)),
        options,
        command.parameters,
        predicate,
        whole_files=whole,
    )
    read = 0 if whole else sum(file.size or 0 for file in target.files)
    return DeletePlan(change, scan, read, timing)


def plan_truncate(snapshot: Snapshot, options: CommandOptions) -> DeletePlan:
    """Remove all files without reading them. Raises: as ``resolve_delete``."""
    plan = plan_delete(resolve_delete(snapshot, None), options)
    return replace(plan, change=replace(plan.change, kind="TRUNCATE", parameters={}))


def run_delete(plan: DeletePlan, place: Place, runner: TaskRunner | None = None) -> RowChangeResult:
    """Find the rows and commit. ``runner``: None runs in threads of this process.

    Raises: as the tasks and ``commit_rows``.
    """
    runner = runner or local_runner(plan.change)
    state = plan.scan.state
    found = [] if plan.change.whole_files else run_find(table_files(plan.change.target, state), state, runner)
    return commit_rows(
        plan.change,
        found,
        runner=runner,
        place=place,
        timing=plan.timing.found(),
        on_rows=CommandOnRows(lambda _, files: run_find(files, state, runner), plan.scan, Action.DELETE),
    )
