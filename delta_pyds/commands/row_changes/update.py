"""Update by our own evaluator: in the user's process, or in tasks that Spark hands files to.

    command = resolve_update(snapshot, "id > 3", {"v": "v + 1"})
    plan = plan_update(command, options)      # ExpressionError: our evaluator does not support an expression
    plan.bytes_to_read
    result = run_update(plan, Place("process", "..."))             # in this process
    result = run_update(plan, Place("tasks", "..."), SparkRunner(spark))

Values are computed from the old row. A generated column that depends on an assigned one is recomputed.

Protocol: "Deletion Vectors", "Add File and Remove File", "Generated Columns".
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count

from delta_pyds.commands.row_changes.assignments import plan_assignments
from delta_pyds.commands.row_changes.commit_rows import commit_rows, local_runner
from delta_pyds.commands.row_changes.condition import bind_condition, scan_where
from delta_pyds.commands.row_changes.find_rows import file_bundles, table_files
from delta_pyds.commands.row_changes.mend import CommandOnRows
from delta_pyds.commands.row_changes.plan import (
    CommandOptions,
    RowChangePlan,
    change_state,
    files_state,
    marks_deletions,
    target_files,
)
from delta_pyds.commands.row_changes.resolved import ResolvedCommand
from delta_pyds.commands.row_changes.result import Place, RowChangeResult, Timing
from delta_pyds.commands.task_runner import TaskRunner
from delta_pyds.data.row_changes.update import update_rows
from delta_pyds.table.scan.live_files import live_files
from delta_pyds.table.scan.partition_match import is_partition_predicate
from delta_pyds.table.scan.scan import Scan
from delta_pyds.tasks.changed_rows import Action
from delta_pyds.tasks.row_changes import TableFile, UpdateRows
from delta_pyds.tasks.write_state import ColumnSource, TaskOutput


@dataclass(frozen=True)
class UpdatePlan:
    """``scan``: finds the rows. ``assigned``: see ``tasks.row_changes.UpdateRows``. ``bytes_to_read``: all files."""

    change: RowChangePlan
    scan: Scan
    assigned: tuple[tuple[int, ColumnSource], ...]
    rewrite: bool
    bytes_to_read: int
    timing: Timing


def plan_update(command: ResolvedCommand[str], options: CommandOptions) -> UpdatePlan:
    """Bind condition and values, and find the candidate files by partition values and statistics.

    Raises: ExpressionError for expressions that our evaluator does not support exactly, and for an assignment to a
        nested field; ColumnNotFoundError.
    """
    timing = Timing(time.monotonic())
    snapshot = command.snapshot
    predicate = bind_condition(command.condition, snapshot.schema, options)
    assigned, ingest = plan_assignments(snapshot, command.clauses[0].assignments, options)
    scan = scan_where(snapshot, predicate, options)
    target = target_files(snapshot, list(live_files(scan)), options)
    change = RowChangePlan(
        "UPDATE",
        target,
        change_state(target, files_state(snapshot, options, ingest.columns, ingest.checks), with_origins=True),
        options,
        command.parameters,
        predicate,
    )
    # if all rows of a file change, the file is removed, and no row needs a deletion vector
    rewrite = not marks_deletions(snapshot.configuration) or is_partition_predicate(
        predicate, snapshot.configuration.partition_columns
    )
    read = sum(file.size or 0 for file in target.files)
    return UpdatePlan(change, scan, assigned, rewrite, read, timing)


def run_update(plan: UpdatePlan, place: Place, runner: TaskRunner | None = None) -> RowChangeResult:
    """Update the rows and commit. ``runner``: None runs in threads of this process.

    Raises: as the tasks and ``commit_rows``.
    """
    change, state = plan.change, plan.scan.state
    runner = runner or local_runner(change)
    numbers = count()

    def run_on(now: RowChangePlan, files: Sequence[TableFile]) -> list[TaskOutput]:
        if plan.rewrite:
            # a winner may have brought some rows of a file back: all its rows are rewritten
            files = [replace(file, scan=replace(file.scan, selected=None)) for file in files]
        tasks = [
            UpdateRows(next(numbers), state, now.state, some, plan.assigned, plan.rewrite, change.options.ansi)
            for some in file_bundles(files, runner)
        ]
        return runner.run(update_rows, tasks)

    outputs = run_on(change, table_files(change.target, state))
    return commit_rows(
        change,
        outputs,
        runner=runner,
        place=place,
        timing=plan.timing.found(),
        on_rows=CommandOnRows(run_on, plan.scan, Action.UPDATE),
    )
