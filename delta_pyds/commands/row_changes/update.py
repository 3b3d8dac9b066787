"""Update by our own evaluator: in the user's process, or in tasks that Spark hands files to.

plan = plan_update(snapshot, "id > 3", {"v": "v + 1"}, options)   # ExpressionError: our evaluator does not know
result = run_update(plan, LocalRunner(), Place("process", "..."))
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.row_changes.result import Place, RowChangeResult
from delta_pyds.commands.task_runner import TaskRunner
from delta_pyds.table.snapshot import Snapshot


@dataclass(frozen=True)
class UpdatePlan:
    """``bytes_to_read``: of the candidate files."""

    bytes_to_read: int


def plan_update(
    snapshot: Snapshot, condition: str | None, assignments: Mapping[str, str], options: CommandOptions
) -> UpdatePlan:
    """Raises: ExpressionError, ColumnNotFoundError; UserError (DELTA_CANNOT_MODIFY_APPEND_ONLY)."""
    raise NotImplementedError


def run_update(plan: UpdatePlan, runner: TaskRunner, place: Place) -> RowChangeResult:
    raise NotImplementedError
