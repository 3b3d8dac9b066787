"""The end of every command that changes rows.

    result = run_again(options.max_runs, lambda: once())   # once: opens the snapshot, finds the rows, calls commit_rows

Invariant: after an error the table is as before, and the files of the outputs are deleted, but where the outcome of the
commit is unknown: then they stay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from delta_pyds.commands.row_changes.plan import RowChangePlan
from delta_pyds.commands.row_changes.result import Place, RowChangeResult
from delta_pyds.commands.task_runner import TaskRunner
from delta_pyds.tasks.write_state import TaskOutput

T = TypeVar("T")


@dataclass(frozen=True)
class Timing:
    """``started_ms``: of the command, by ``time.monotonic() * 1000``. ``scan_ms``: until its rows were found."""

    started_ms: float
    scan_ms: int = 0
    materialize_source_ms: int = 0


def commit_rows(
    plan: RowChangePlan,
    outputs: Sequence[TaskOutput],
    *,
    runner: TaskRunner,
    place: Place,
    timing: Timing | None = None,
    source_rows: int | None = None,
) -> RowChangeResult:
    """Finish the command and commit it as one version; no commit where no row changes.

    ``outputs``: of the tasks that took the changed rows (``ChangedRows.close``) or found rows (``find_rows``).
    ``runner``: rewrites files where the table does not use deletion vectors. ``source_rows``: of a merge.
    """
    raise NotImplementedError


def run_again(max_runs: int, run: Callable[[], T]) -> T:
    """Call ``run`` until it does not lose against another commit, ``max_runs`` times at most.

    Raises: the ConflictError of the last run; whatever else a run raises, at once.
    """
    raise NotImplementedError
