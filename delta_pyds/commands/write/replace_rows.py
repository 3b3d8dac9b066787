"""Deletes the rows of a table for which a predicate is true: the first half of ``replaceWhere``.

Protocol: "Deletion Vectors", "Row Tracking", "Add File and Remove File".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from delta_pyds.commands.commit import CommandEnd, FileChanges, discard_files
from delta_pyds.commands.row_changes.find_rows import run_find, table_files
from delta_pyds.commands.row_changes.finish import Finish
from delta_pyds.commands.row_changes.mend import CommandOnRows, RowMend
from delta_pyds.commands.row_changes.plan import CommandOptions, RowChangePlan, TargetFiles, change_state, target_files
from delta_pyds.commands.task_runner import TaskRunner
from delta_pyds.expr.nodes import Expr
from delta_pyds.table.scan.live_files import live_files
from delta_pyds.table.scan.scan import Scan
from delta_pyds.table.transaction.mend import NetChanges
from delta_pyds.tasks.changed_rows import Action
from delta_pyds.tasks.write_state import TaskOutput, WriteState, WrittenFile


@dataclass(frozen=True)
class ReplacedRows:
    """The rows to replace, found by a query. ``outputs``: of its tasks, which read files of ``target``.

    ``read``: a predicate that every such row satisfies; TRUE if none is known. ``on_rows``: finds such rows
    again after a lost race.
    """

    target: TargetFiles
    outputs: Sequence[TaskOutput]
    read: Expr
    on_rows: CommandOnRows


class RowRemoval:
    """Deletes the rows that a scan's predicate selects, or that were found before, as ``Finish`` does.

    Invariants: nothing is committed; ``end`` has the files of all finished rounds of tasks, also after an error.
    The runner deletes the files of a failed round (see ``TaskRunner``).
    """

    def __init__(
        self,
        scan: Scan,
        predicate: Expr,
        state: WriteState,
        runner: TaskRunner,
        end: CommandEnd,
        replaced: ReplacedRows | None = None,
    ) -> None:
        options = CommandOptions(storage_options=state.storage_options, time_zone=state.time_zone)
        target = replaced.target if replaced else target_files(scan.snapshot, list(live_files(scan)), options)
        self._plan = RowChangePlan("DELETE", target, change_state(target, state), options, read=predicate)
        self._scan, self._state, self._runner, self._end = scan, state, runner, end
        self._found: Sequence[TaskOutput] | None = replaced.outputs if replaced else None
        own = CommandOnRows(lambda _, files: run_find(files, scan.state, runner), scan, Action.DELETE)
        self._on_rows = replaced.on_rows if replaced else own
        self._mend: RowMend | None = None
        self._finish: Finish | None = None

    def run(self, written: Sequence[WrittenFile], *, now_ms: int) -> FileChanges:
        """Run the tasks. ``written``: the new files of the same commit; change files get their rows too.

        Raises: as the tasks.
        """
        if self._found is None:
            scan = self._scan.state
            self._found = run_find(table_files(self._plan.target, scan), scan, self._runner)
        finish = Finish(self._plan.target, self._state, self._runner, records_deletions=True, earlier=self._finish)
        self._end.add(finish.made)
        changes = finish.run(self._found, now_ms=now_ms, written=written)
        self._discard(finish.superseded)
        self._finish = finish
        return changes

    def after(self, net: NetChanges) -> int | None:
        """Find the rows again where these commits changed the table; ``run`` then deletes these rows.

        Returns: the number of rows that were decided again. None if that is not possible.
        """
        if self._mend is None:
            assert self._found is not None
            self._mend = RowMend(self._plan, self._found, self._on_rows, self._runner)
            self._end.add(self._mend.made)
        mended = self._mend.after(net)
        if mended is None:
            return None
        self._discard(mended.superseded)
        self._plan, self._found = mended.plan, mended.outputs
        return mended.num_rows

    def _discard(self, outputs: Sequence[TaskOutput]) -> None:
        """Delete files that no commit names or will name."""
        discard_files(self._state.table_root, self._state.storage_options, outputs)
