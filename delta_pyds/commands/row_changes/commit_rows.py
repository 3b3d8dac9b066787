"""The end of every command that changes rows.

    result = run_again(options.max_runs, once)   # once: opens the snapshot, finds the rows, calls commit_rows

Invariant: after an error the table is as before, and the files of the outputs are deleted. If the outcome of the commit
is unknown, the files stay.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from delta_pyds.commands.commit import (
    CommandEnd,
    FileChanges,
    commit_or_discard,
    discard_files,
    live_rows,
    metadata_with_identities,
)
from delta_pyds.commands.row_changes.finish import Finish
from delta_pyds.commands.row_changes.mend import CommandOnRows, RowMend
from delta_pyds.commands.row_changes.operation import Counted, operation_of
from delta_pyds.commands.row_changes.plan import RowChangePlan, mends_races
from delta_pyds.commands.row_changes.result import Place, RowChangeResult, Timing
from delta_pyds.commands.table_reads import record_reads
from delta_pyds.commands.task_runner import LocalRunner, TaskRunner
from delta_pyds.errors import ConflictError, DeltaError
from delta_pyds.protocol.actions import Metadata
from delta_pyds.redaction import safe_logger
from delta_pyds.table.scan.partition_match import partition_part
from delta_pyds.table.transaction.adoption import IDENTITY_TAG
from delta_pyds.table.transaction.commit_info import Operation
from delta_pyds.table.transaction.mend import Mend, MendedChanges, Mends, NetChanges, NothingToCommitError
from delta_pyds.table.transaction.row_tracking import PRESERVED_TAG
from delta_pyds.table.transaction.transaction import Transaction
from delta_pyds.tasks.changed_rows import Action
from delta_pyds.tasks.write_state import TaskOutput

T = TypeVar("T")
logger = safe_logger(__name__)


def commit_rows(
    plan: RowChangePlan,
    outputs: Sequence[TaskOutput],
    *,
    runner: TaskRunner,
    place: Place,
    timing: Timing | None = None,
    source_rows: int | None = None,
    on_rows: CommandOnRows | None = None,
) -> RowChangeResult:
    """Finish the command and commit it as one version. As in the reference, there is no commit if no row changes.

    ``outputs``: the outputs of the tasks that took the changed rows (``ChangedRows.close``) or found rows
    (``find_rows``), with all files that were written for the command. ``runner``: rewrites files of a table without
    deletion vectors. ``source_rows``: the number of rows of a merge's source. ``timing``: begins with this call by
    default. ``on_rows``: runs the command on given rows, to mend it after a lost race. Without it a conflict is an
    error.

    Raises: ConflictError if this commit conflicts with another one; CommitOutcomeUnknownError if the commit may be in
    the log; UserError (DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE); DeltaError
    (DELTA_NUM_RECORDS_MISMATCH) if the counts of rows disagree; errors of the tasks.
    """
    command = _Command(plan, outputs, runner, timing or Timing(time.monotonic()), source_rows)
    write = plan.state.write
    mend = None
    with commit_or_discard(write.table_root, write.storage_options, outputs) as end:
        changes = command.finish(end)
        transaction = _transaction(plan, changes, command.outputs)
        if transaction is None:
            # a task may have written a file whose rows are all unchanged
            return command.result(None, place)
        if on_rows is not None and mends_races(plan.target.snapshot, plan.options):
            mend = command.mend(RowMend(plan, command.outputs, on_rows, runner), end)
        try:
            committed = end.commit(
                transaction,
                command.operation(changes),
                user_metadata=plan.options.user_metadata,
                isolation_level=plan.options.isolation_level,
                tags=_tags(plan, command.outputs),
                mend=mend,
            )
        except NothingToCommitError:
            return command.result(None, place)
        except ConflictError as error:
            # a DataFrame keeps the version of the table that it was made from, and an unknown source may be one
            error.may_run_again = plan.options.reads_table is False
            raise
    command.discard_unused()
    return command.result(committed.version, place)


class _Command:
    """One command between its tasks and its commit. After a lost race, it is finished again."""

    def __init__(
        self,
        plan: RowChangePlan,
        outputs: Sequence[TaskOutput],
        runner: TaskRunner,
        timing: Timing,
        source_rows: int | None,
    ) -> None:
        self._plan = plan
        self.outputs = outputs
        self._runner = runner
        self._timing = timing
        self._source_rows = source_rows
        self._finish: Finish | None = None
        self._unused: list[TaskOutput] = []
        self._mends = Mends()

    def finish(self, end: CommandEnd) -> FileChanges:
        """The changes to files. The files of the end's tasks become part of ``end``."""
        plan = self._plan
        actions, outputs = counts_by_action(self.outputs), self.outputs
        self._unused = []
        if not actions.keys() - {Action.INSERT, Action.KEEP}:
            # readers take the changes of a command that only inserted from its new files
            self._unused = [TaskOutput(change_files=output.change_files) for output in outputs if output.change_files]
            outputs = [replace(output, change_files=()) for output in outputs]
        finish = Finish(
            plan.target,
            plan.state.write,
            self._runner,
            records_deletions=plan.kind == "DELETE",
            one_match=plan.state.one_match,
            # a merge that only deletes may match a row several times, but change files would record each match
            repeats=plan.kind == "MERGE" and not plan.state.one_match and not plan.state.change_data,
            earlier=self._finish,
        )
        end.add(finish.made)
        changes, self._rows = _changes(plan, finish, outputs, Counted(actions, None, self._source_rows))
        self._timing = self._timing.ended()
        self._discard(finish.superseded)
        self._finish = finish
        return changes

    def operation(self, changes: FileChanges) -> Operation:
        return operation_of(self._plan, changes, self._rows, self._timing, self._mends)

    def mend(self, state: RowMend, end: CommandEnd) -> Mend:
        """The function that a transaction calls after it lost a race."""
        end.add(state.made)

        def mend(net: NetChanges) -> MendedChanges | None:
            mended = state.after(net)
            if mended is None:
                return None
            self._discard(mended.superseded)
            self._plan, self.outputs = mended.plan, mended.outputs
            self._mends = self._mends.and_one(mended.num_rows)
            changes = self.finish(end)
            changes.require_visible(mended.plan.target.snapshot)
            # assigned identity values alone change nothing
            metadata = _metadata(mended.plan, self.outputs) if changes or mended.plan.metadata is not None else None
            if not changes and metadata is None and mended.plan.protocol is None:
                raise NothingToCommitError
            return MendedChanges(
                self.operation(changes),
                changes.adds(),
                changes.removes,
                changes.change_files,
                mended.read_files,
                metadata,
            )

        return mend

    def discard_unused(self) -> None:
        """Delete the change files that the commit does not need. Protocol: "Change Data Files"."""
        self._discard(self._unused)

    def _discard(self, outputs: Sequence[TaskOutput]) -> None:
        """Delete files that no commit names or will name."""
        write = self._plan.state.write
        discard_files(write.table_root, write.storage_options, outputs)

    def result(self, version: int | None, place: Place) -> RowChangeResult:
        plan, rows = self._plan, self._rows
        deleted = rows.deleted
        return RowChangeResult(
            version=version,
            num_affected_rows=-1 if deleted is None else deleted + rows.updated + rows.inserted,
            num_updated_rows=rows.updated,
            num_deleted_rows=-1 if deleted is None else deleted,
            num_inserted_rows=rows.inserted,
            num_files_read=0 if plan.whole_files else len(plan.target.files),
            place=place,
            auto_compact=plan.target.snapshot.configuration.properties.auto_compact,
        )


def local_runner(plan: RowChangePlan, threads: int | None = None) -> LocalRunner:
    """Threads of this process. If one fails, the files of all are deleted."""
    write = plan.state.write
    return LocalRunner(threads, discard=partial(discard_files, write.table_root, write.storage_options))


def run_again(max_runs: int, run: Callable[[], T]) -> T:
    """Call ``run`` again while its commit conflicts with another one, ``max_runs`` times at most.

    Each run must read the table again. Raises: the ConflictError of the last run, or the first one after which it
        may not run again; any other error at once.
    """
    for left in range(max_runs - 1, 0, -1):
        try:
            return run()
        except ConflictError as error:
            if not error.may_run_again:
                raise
            logger.info("The command is run again, %d times at most: %s", left, error)
    return run()


def _changes(
    plan: RowChangePlan, finish: Finish, outputs: Sequence[TaskOutput], rows: Counted
) -> tuple[FileChanges, Counted]:
    """The changes to files and the counts of rows, compared with each other."""
    now_ms = int(time.time() * 1000)
    if plan.whole_files:
        changes = FileChanges()
        changes.remove(plan.target.files, now_ms=now_ms)
        return changes, Counted({}, live_rows(plan.target.files))
    changes = finish.run(outputs, now_ms=now_ms)
    deleted = rows[Action.DELETE] + rows[Action.DELETE_NOT_MATCHED_BY_SOURCE] - finish.repeated_rows
    # updated rows are deleted and written again, unless their task rewrote the whole file
    marked = (changes.deleted_rows or 0) - (0 if any(output.replaced for output in outputs) else rows.updated)
    written = sum(file.num_records - file.num_deleted for file in (*changes.written, *changes.rewritten))
    recorded = sum(
        file.num_records
        for output in (*outputs, *(some.output for some in finish.recorded))
        for file in output.change_files
    )
    expected = rows.updated + rows.inserted
    if (
        marked != deleted
        or written != expected + changes.copied_rows
        or (recorded and recorded != deleted + 2 * rows.updated + rows.inserted)
    ):
        raise DeltaError(
            f"the counts of the command disagree: its tasks deleted {deleted} rows of the table "
            f"{plan.target.snapshot.table_root}, updated {rows.updated} and inserted {rows.inserted}, but {marked} "
            f"rows are removed, {written} were written, {changes.copied_rows} of them copied, and {recorded} are in "
            "change files. Nothing was committed; run the command again.",
            code="DELTA_NUM_RECORDS_MISMATCH",
            table=plan.target.snapshot.table_root,
        )
    return changes, replace(rows, deleted=deleted)


def counts_by_action(outputs: Sequence[TaskOutput]) -> dict[int, int]:
    """Numbers of rows by action, without actions that did not occur."""
    actions: Counter[int] = Counter()
    for output in outputs:
        actions.update(output.counts)
    return dict(+actions)


def _transaction(plan: RowChangePlan, changes: FileChanges, outputs: Sequence[TaskOutput]) -> Transaction | None:
    """The transaction with everything that the command read and changes; None if nothing changes."""
    metadata = _metadata(plan, outputs)
    if not changes and metadata is None and plan.protocol is None:
        return None
    snapshot = plan.target.snapshot
    transaction = Transaction(snapshot)
    part = partition_part(plan.read, snapshot.configuration.partition_columns)
    transaction.record_where(part, time_zone=plan.options.time_zone)
    transaction.record_files(plan.target.paths)
    options = plan.options
    if options.reads_table:
        record_reads(transaction, snapshot, options.reads_where, time_zone=options.time_zone)
    if metadata is not None:
        transaction.set_metadata(metadata)
    if plan.protocol is not None:
        transaction.set_protocol(plan.protocol)
    if plan.options.application is not None:
        transaction.set_application(*plan.options.application)
    changes.put_into(transaction)
    return transaction


def _metadata(plan: RowChangePlan, outputs: Sequence[TaskOutput]) -> Metadata | None:
    current = plan.metadata or plan.target.snapshot.metadata
    return metadata_with_identities(plan.metadata, current, plan.state.write.schema, outputs)


def _tags(plan: RowChangePlan, outputs: Sequence[TaskOutput]) -> dict[str, str]:
    """Tags of the commit, for the transactions after it."""
    tags = {}
    if plan.metadata is None and _metadata(plan, outputs) is not None:
        tags[IDENTITY_TAG] = "true"
    if plan.target.row_id_columns is not None:
        # rewritten rows keep their ids
        tags[PRESERVED_TAG] = "true"
    return tags
