"""Delete by our own evaluator: in the user's process, or in tasks that Spark hands files to.

plan = plan_delete(snapshot, "id > 3", options)    # ExpressionError where our evaluator does not know the condition
plan.bytes_to_read                                 # 0 where partition values alone decide: whole files leave
result = run_delete(plan, LocalRunner(), Place("process", "..."))
"""

from __future__ import annotations

from dataclasses import dataclass

from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.row_changes.result import Place, RowChangeResult
from delta_pyds.commands.task_runner import TaskRunner
from delta_pyds.table.snapshot import Snapshot


@dataclass(frozen=True)
class DeletePlan:
    """``bytes_to_read``: of the candidate files, 0 where whole files leave unread."""

    bytes_to_read: int


def plan_delete(snapshot: Snapshot, condition: str | None, options: CommandOptions) -> DeletePlan:
    """Raises: ExpressionError, ColumnNotFoundError; UserError (DELTA_CANNOT_MODIFY_APPEND_ONLY)."""
    raise NotImplementedError


def run_delete(plan: DeletePlan, runner: TaskRunner, place: Place) -> RowChangeResult:
    raise NotImplementedError
