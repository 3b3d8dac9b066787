"""Deletes the rows of a table for which a predicate is true: the first half of ``replaceWhere``.

Protocol: "Deletion Vectors", "Row Tracking", "Add File and Remove File".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from delta_pyds.commands.commit import FileChanges
from delta_pyds.commands.row_changes.find_rows import run_find, table_files
from delta_pyds.commands.row_changes.finish import Finish
from delta_pyds.commands.row_changes.plan import CommandOptions, TargetFiles, target_files
from delta_pyds.commands.task_runner import TaskRunner
from delta_pyds.expr.nodes import Expr
from delta_pyds.table.scan.live_files import live_files
from delta_pyds.table.scan.scan import Scan
from delta_pyds.tasks.write_state import TaskOutput, WriteState, WrittenFile


@dataclass(frozen=True)
class ReplacedRows:
    """The rows to replace, found by a query. ``outputs``: the outputs of its tasks, which read files of ``target``.

    ``read``: a predicate that every such row satisfies; TRUE if none is known.
    """

    target: TargetFiles
    outputs: Sequence[TaskOutput]
    read: Expr


class RowRemoval:
    """Deletes the rows that a scan's predicate selects, or that were found before, as ``Finish`` does.

    Invariants: nothing is committed; ``outputs`` names the files of all finished rounds of tasks, also after an error.
    The runner deletes the files of a failed round (see ``TaskRunner``).
    """

    def __init__(self, scan: Scan, state: WriteState, runner: TaskRunner, replaced: ReplacedRows | None = None) -> None:
        options = CommandOptions(storage_options=state.storage_options, time_zone=state.time_zone)
        self._scan = scan
        self._runner = runner
        self._replaced = replaced
        self._target = replaced.target if replaced else target_files(scan.snapshot, list(live_files(scan)), options)
        self._finish = Finish(self._target, state, runner, records_deletions=True)

    @property
    def outputs(self) -> Sequence[TaskOutput]:
        return self._finish.made

    def run(self, written: Sequence[WrittenFile], *, now_ms: int) -> FileChanges:
        """Run the tasks. ``written``: the new files of the same commit; change files get their rows too.

        Raises: as the tasks.
        """
        if self._replaced:
            found = self._replaced.outputs
        else:
            scan = self._scan.state
            found = run_find(table_files(self._target, scan), scan, self._runner)
        return self._finish.run(found, now_ms=now_ms, written=written)
