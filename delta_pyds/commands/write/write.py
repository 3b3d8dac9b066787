"""Append and overwrite: planned before any row is written, committed as one version.

The plan travels with the writer to another process, which commits the outputs of the tasks. The two processes share
nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from delta_pyds.catalog.opening import table_storage, task_options
from delta_pyds.commands.commit import (
    CommandEnd,
    FileChanges,
    commit_or_discard,
    discard_files,
    metadata_with_identities,
    reopen,
)
from delta_pyds.commands.table_reads import record_reads
from delta_pyds.commands.task_runner import LocalRunner, TaskRunner
from delta_pyds.commands.write.micro_batch import MicroBatch
from delta_pyds.commands.write.replace_files import FileRemoval
from delta_pyds.commands.write.replace_rows import ReplacedRows, RowRemoval
from delta_pyds.commands.write.request import WriteRequest
from delta_pyds.commands.write.target import Target, open_target, plan_target
from delta_pyds.errors import (
    UNKNOWN_EXPRESSION,
    DeltaError,
    OptionError,
    ProtocolChangedError,
    UserError,
)
from delta_pyds.expr.nodes import TRUE, Expr
from delta_pyds.expr.parse import parse_predicate
from delta_pyds.log.segment import LogSegment
from delta_pyds.protocol.actions import Metadata, Protocol
from delta_pyds.protocol.features import Feature
from delta_pyds.protocol.paths import path_key
from delta_pyds.protocol.properties import parse_properties
from delta_pyds.redaction import safe_logger
from delta_pyds.table.definition.ingest_plan import plan_ingest
from delta_pyds.table.definition.write_state import write_state
from delta_pyds.table.scan.partition_match import in_partitions, is_partition_predicate, partition_part
from delta_pyds.table.scan.scan import Scan, plan_scan
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.table.transaction.adoption import IDENTITY_TAG
from delta_pyds.table.transaction.commit_info import Operation, condition_for_the_log
from delta_pyds.table.transaction.mend import MendedChanges, Mends, NetChanges, NothingToCommitError
from delta_pyds.table.transaction.transaction import CommitPolicy, Committed, TableToCreate, Transaction
from delta_pyds.tasks.write_state import TaskOutput, WriteState, WrittenFile

if TYPE_CHECKING:
    from delta_pyds.commands.layout.auto_compact import AutoCompaction


logger = safe_logger(__name__)
_REPLACES = {"replace": "REPLACE TABLE AS SELECT", "createOrReplace": "CREATE OR REPLACE TABLE AS SELECT"}
_NOTHING_CHANGES = "Nothing was written to %s: there are no rows to write or to delete."


@dataclass(frozen=True)
class WritePlan:
    """A write that was checked and can start.

    ``state``: the state of the tasks. ``base_version``: the version that the plan was made from, None for a new table.
    ``segment``: the files of that version, so that the commit need not list them. ``known``: its protocol and metadata,
    if the commit needs nothing else of it. ``nothing_to_do``: why nothing is written, empty otherwise.
    ``replaces_rows``: files of the table may lose some of their rows and keep others (``replaceWhere`` on data columns,
    ``replaceUsing``). ``replaces_by_query``: only a query of Spark can find them.
    """

    request: WriteRequest
    state: WriteState | None = None
    target: Target | None = None
    base_version: int | None = None
    nothing_to_do: str = ""
    segment: LogSegment | None = None
    known: tuple[Protocol, Metadata] | None = None
    replaces_rows: bool = False
    replaces_by_query: bool = False


def plan_write(request: WriteRequest, *, spark: bool = False) -> WritePlan:
    """Check everything that can be checked before a byte is written, and plan the work of the tasks.

    ``spark``: a session is available, and computes what our own evaluator does not support (see ``plan_ingest``).

    Raises: UserError, OptionError, ExpressionError, UnsupportedFeatureError,
        StorageError; each names the table and what to do.
    """
    request.check()
    storage = table_storage(request.table_root, request.storage_options)
    storage.require_put_if_absent(request.table_root)
    snapshot = open_target(request)
    if snapshot is not None and request.create_mode == "ignore":
        return WritePlan(request, nothing_to_do=f"there is a table at {request.table_root}, and createMode is ignore")
    if snapshot is not None and request.application is not None:
        app_id, version = request.application
        stored = snapshot.transactions.get(app_id)
        if stored is not None and stored.version >= version:
            return WritePlan(
                request,
                nothing_to_do=f"version {version} of the application '{app_id}' was written to {request.table_root} "
                f"before (version {stored.version} is stored)",
            )
    target = plan_target(request, snapshot)
    replaces_rows, by_query = _check_removal(request, target, snapshot, spark)
    configuration = target.configuration
    ingest = plan_ingest(
        configuration.schema,
        configuration=configuration.configuration,
        incoming=request.incoming,
        time_zone=request.time_zone,
        replace_where=request.replace_where,
        supports=configuration.supports,
        table=request.table_root,
        spark=spark,
    )
    state = write_state(
        configuration,
        ingest.columns,
        ingest.checks,
        clustering=target.clustering,
        storage_options=task_options(storage, request.storage_options),
        time_zone=request.time_zone,
        target_file_bytes=request.target_file_bytes,
        max_records_per_file=request.max_records_per_file,
        compression=request.compression,
    )
    if snapshot is None:
        return WritePlan(request, state, target)
    return WritePlan(
        request,
        state,
        target,
        snapshot.version,
        segment=snapshot.segment,
        known=_required_state(request, snapshot),
        replaces_rows=replaces_rows,
        replaces_by_query=by_query,
    )


def _required_state(request: WriteRequest, snapshot: Snapshot) -> tuple[Protocol, Metadata] | None:
    """Protocol and metadata, for a write that only adds files and needs nothing else of the log."""
    supports = snapshot.configuration.supports
    if request.mode != "append" or request.application is not None or request.replaces_table:
        return None
    if supports(Feature.DOMAIN_METADATA) or supports(Feature.ROW_TRACKING):
        return None
    return snapshot.protocol, snapshot.metadata


def _check_removal(request: WriteRequest, target: Target, snapshot: Snapshot | None, spark: bool) -> tuple[bool, bool]:
    """Whether single rows are replaced, and whether only Spark can find them.

    Raises: UserError, OptionError for rows that must stay; ExpressionError, ColumnNotFoundError for a predicate that
    our parser does not support, if no session is available.
    """
    if request.mode != "overwrite" or snapshot is None:
        return False, False
    # the replaced table must allow deletes
    before = snapshot.configuration if request.replaces_table else target.configuration
    if before.properties.append_only and request.data_change:
        raise UserError(
            f"the table {request.table_root} is append-only (delta.appendOnly=true), so rows of it cannot be "
            "overwritten. Append, or change the property.",
            code="DELTA_CANNOT_MODIFY_APPEND_ONLY",
            table=request.table_root,
        )
    if request.replace_using:
        return True, True
    if request.replace_where is None:
        return False, False
    data = by_query = False
    try:
        parsed = parse_predicate(request.replace_where, snapshot.schema, time_zone=request.time_zone)
        data = not is_partition_predicate(parsed.expr, snapshot.configuration.partition_columns)
    except DeltaError as e:
        if not spark:
            e.parameters[UNKNOWN_EXPRESSION] = request.replace_where
            raise
        data = by_query = True
    if data and not request.data_change:
        raise OptionError(
            "dataChange=false says that rows stay the same, but replaceWhere by data columns replaces some: "
            "leave one of them out.",
            code="DELTA_REPLACE_WHERE_WITH_FILTER_DATA_CHANGE_UNSET",
            option="dataChange",
        )
    return data, by_query


def commit_write(
    plan: WritePlan,
    outputs: Sequence[TaskOutput],
    batch: MicroBatch | None = None,
    *,
    runner: TaskRunner | None = None,
    replaced: ReplacedRows | None = None,
    compact: bool = True,
) -> Committed | None:
    """Commit the files of the tasks as one version; None if there was nothing to commit.

    If the commit fails, the files are deleted, but only if it is certain that no commit names them.
    ``batch``: the batch of a stream. It is committed once, and not at all if it changes nothing. ``runner``: finds the
    rows that ``replaceWhere`` replaces, by default in this process. ``replaced``: these rows, if a query has found
    them (``WritePlan.replaces_by_query``). ``compact``: see ``compact_written``.

    Raises: ConflictError if this commit conflicts with another one; CommitOutcomeUnknownError if it is unknown whether
    the commit is in the log.
    """
    if plan.state is None or plan.target is None:
        logger.info("Nothing was written: %s.", plan.nothing_to_do)
        return None
    runner = runner or LocalRunner(discard=partial(discard_write, plan))
    try:
        # Spark may repeat the commit of a stream, and of a write with txnAppId
        repeated_after = -1 if plan.base_version is None else plan.base_version
        root, storage_options = plan.state.table_root, plan.state.storage_options
        with commit_or_discard(root, storage_options, outputs, repeated_after=repeated_after) as end:
            committed = _commit(plan, plan.state, plan.target, outputs, batch, runner, end, replaced)
    except ProtocolChangedError:
        created_meanwhile = batch is None and plan.base_version is None
        if not created_meanwhile or plan.request.create_mode not in ("ignore", "errorIfExists"):
            raise
        # another writer has created the table since the plan was made
        if plan_write(plan.request, spark=True).nothing_to_do:
            logger.info("Nothing was written: another writer has created %s.", plan.request.table_root)
            return None
        raise
    if compact:
        compact_written(plan, committed, runner)
    return committed


def compact_written(
    plan: WritePlan,
    committed: Committed | None,
    runner: TaskRunner | None = None,
    *,
    rule: AutoCompaction | None = None,
    separate_process: bool = False,
) -> None:
    """Compact small files if the table or the session enables that; never fails.

    It may take long: report the write first. ``rule``: the session's. ``separate_process``: set by callers whose crash
    would look like a failed commit.
    """
    if committed is None or plan.state is None:
        return
    wanted = parse_properties(committed.metadata.configuration or {}).auto_compact
    if not (wanted if rule is None else rule.wanted(wanted)):
        return
    # imported here: few tables enable it
    root, version, options = committed.table_root, committed.version, plan.state.storage_options
    if separate_process:
        from delta_pyds.commands.layout.auto_compact import compact_in_separate_process

        compact_in_separate_process(root, version, options, rule=rule)
    else:
        from delta_pyds.commands.layout.auto_compact import compact_after

        compact_after(root, version, options, rule=rule, runner=runner)


def discard_write(plan: WritePlan, outputs: Sequence[TaskOutput | None]) -> None:
    """Delete the files of a write that was not committed and never will be; vacuum deletes what remains."""
    if plan.state is not None:
        discard_files(plan.state.table_root, plan.state.storage_options, outputs)


def _commit(
    plan: WritePlan,
    state: WriteState,
    target: Target,
    outputs: Sequence[TaskOutput],
    batch: MicroBatch | None,
    runner: TaskRunner,
    end: CommandEnd,
    replaced: ReplacedRows | None,
) -> Committed | None:
    request = plan.request
    storage = table_storage(state.table_root, state.storage_options)
    written = [file for output in outputs for file in output.files]
    after = target.configuration
    metadata = metadata_with_identities(target.metadata, after.metadata, after.schema, outputs)
    required = bool(written or metadata or target.protocol or target.domains or request.application)
    if not required and request.mode == "append":
        logger.info("Nothing was written to %s: there are no rows.", state.table_root)
        return None
    snapshot = reopen(
        storage, request.table_root, plan.base_version, target.table_id, plan.segment, None if batch else plan.known
    )
    if batch is not None and batch.is_written(snapshot):
        # the table had the batch before this plan was made, so no commit names the files of this attempt
        return None
    transaction = Transaction(snapshot or TableToCreate(storage, state.table_root))
    if request.read_version is not None:
        transaction.record_whole_table()
    elif request.reads_table and snapshot is not None:
        record_reads(transaction, snapshot, request.reads_where, time_zone=state.time_zone)
    removal = _removal(plan, state, snapshot, transaction, written, runner, end, replaced)
    contents = _Contents(plan, target, outputs, metadata, removal)
    changes = contents.changes()
    transaction.record_files(file.path for file in changes.removes)
    if metadata is not None:
        transaction.set_metadata(metadata)
    if target.protocol is not None:
        transaction.set_protocol(target.protocol)
    for domain in target.domains:
        transaction.set_domain(domain)
    if request.application is not None:
        transaction.set_application(*request.application)
    if not (required or changes):
        logger.info(_NOTHING_CHANGES, state.table_root)
        return None
    if batch is not None:
        transaction.set_application(batch.application, batch.batch_id)
    changes.put_into(transaction, data_change=request.data_change)
    allowed = snapshot is not None and snapshot.configuration.properties.row_level_concurrency
    mends = batch is None and request.data_change and request.row_level_concurrency and allowed
    try:
        return end.commit(
            transaction,
            contents.operation(changes) if batch is None else batch.operation(request.mode, changes),
            user_metadata=request.user_metadata,
            isolation_level=request.isolation_level,
            tags={IDENTITY_TAG: "true"} if metadata is not None and target.metadata is None else None,
            policy=CommitPolicy(max_attempts=request.max_attempts, max_backoff_s=request.max_backoff_ms / 1000),
            mend=partial(contents.after, transaction, required=required) if mends else None,
        )
    except NothingToCommitError:
        logger.info(_NOTHING_CHANGES, state.table_root)
        return None


class _Contents:
    """The files that a write adds and removes, mended after each lost race.

    ``removal``: None if the write removes no row. ``metadata``: of the commit, None if it does not change.
    """

    def __init__(
        self,
        plan: WritePlan,
        target: Target,
        outputs: Sequence[TaskOutput],
        metadata: Metadata | None,
        removal: FileRemoval | RowRemoval | None,
    ) -> None:
        self._plan, self._target, self._outputs = plan, target, outputs
        self._metadata, self._removal = metadata, removal
        self._written = [file for output in outputs for file in output.files]
        self._mends = Mends()

    def changes(self) -> FileChanges:
        """Find what must be removed. Raises: as the tasks."""
        now_ms = int(time.time() * 1000)
        changes = FileChanges() if self._removal is None else self._removal.run(self._written, now_ms=now_ms)
        changes.take(self._outputs, (), now_ms=now_ms)
        return changes

    def operation(self, changes: FileChanges) -> Operation:
        """The operation of a batch write."""
        replaces = self._plan.base_version is not None
        return _write_operation(self._plan.request, self._target, changes, self._mends, replaces=replaces)

    def after(self, transaction: Transaction, net: NetChanges, *, required: bool) -> MendedChanges | None:
        """The changes after these commits. ``required``: a commit is made even if no file changes.

        None if the new rows may depend on rows that these commits changed, or if the rows to remove cannot be found
        again. Raises: NothingToCommitError; as the tasks.
        """
        request = self._plan.request
        recorded = request.reads_table or request.read_version is not None
        if net.changes_other_reads if recorded else request.reads_table is None and net.changes_data:
            return None
        num_rows = 0 if self._removal is None else self._removal.after(net)
        if num_rows is None:
            return None
        self._mends = self._mends.and_one(num_rows)
        changes = self.changes()
        if not (required or changes):
            raise NothingToCommitError
        changes.require_visible(transaction)
        before = transaction.snapshot
        unchanged = before is not None and self._metadata == before.metadata
        return MendedChanges(
            self.operation(changes),
            changes.adds(),
            changes.removes,
            changes.change_files,
            {path_key(file.path) for file in changes.removes},
            None if unchanged else self._metadata,
        )


def _removal(
    plan: WritePlan,
    state: WriteState,
    snapshot: Snapshot | None,
    transaction: Transaction,
    written: Sequence[WrittenFile],
    runner: TaskRunner,
    end: CommandEnd,
    replaced: ReplacedRows | None,
) -> FileRemoval | RowRemoval | None:
    """Removes the rows that an overwrite replaces. Records in the transaction which partitions must be read for that.

    The transaction must also record the removed files.
    """
    request = plan.request
    if snapshot is None or request.mode != "overwrite":
        return None
    partitions = snapshot.configuration.partition_columns
    scan = _scan(snapshot, state, None)
    if request.replaces_some:
        if replaced is None:
            scan = _scan(snapshot, state, request.replace_where)
        predicate = scan.filters[0] if replaced is None else replaced.read
        transaction.record_where(partition_part(predicate, partitions), time_zone=state.time_zone)
        if replaced is not None or not is_partition_predicate(predicate, partitions):
            return RowRemoval(scan, predicate, state, runner, end, replaced)
    elif request.dynamic and partitions:
        predicate = in_partitions(snapshot.schema, partitions, (file.partition_values for file in written))
        transaction.record_where(predicate, time_zone=state.time_zone)
        scan = _scan(snapshot, state, None, predicate)
    else:
        predicate = TRUE
        transaction.record_whole_table()
    return FileRemoval(scan, predicate, counts_rows=request.replaces_some, data_change=request.data_change)


def _scan(snapshot: Snapshot, state: WriteState, where: str | None, *filters: Expr) -> Scan:
    return plan_scan(
        snapshot, where=where, pushed=filters, time_zone=state.time_zone, storage_options=state.storage_options
    )


def _write_operation(
    request: WriteRequest, target: Target, changes: FileChanges, mends: Mends, *, replaces: bool
) -> Operation:
    """The operation of a write that is about to be committed. ``replaces``: there was a table before."""
    metrics = {
        "numFiles": len(changes.written),
        "numOutputRows": sum(file.num_records for file in changes.written),
        "numOutputBytes": sum(file.size_bytes for file in changes.written),
    }
    if request.mode == "overwrite" and replaces:
        metrics["numRemovedFiles"] = len(changes.removes)
        metrics["numRemovedBytes"] = sum(file.size or 0 for file in changes.removes)
    metrics |= mends.metrics
    if request.replaces_table:
        metadata = target.configuration.metadata
        definition = {
            "isManaged": "false",
            "description": metadata.description,
            "partitionBy": list(metadata.partition_columns or ()),
            "clusterBy": [".".join(path) for path in request.cluster_by or ()],
            "properties": dict(metadata.configuration or {}),
        }
        return Operation(_REPLACES[request.create_mode], definition, metrics)
    parameters: dict[str, object] = {
        "mode": "Overwrite" if request.mode == "overwrite" else "Append",
        # the columns of the request; the table's own columns are in its metadata
        "partitionBy": [".".join(path) for path in request.partition_by or ()],
    }
    if request.replace_where is not None:
        parameters["predicate"] = condition_for_the_log(request.replace_where)
    if request.replace_using:
        parameters["replaceUsingCols"] = f"({', '.join(request.replace_using)})"
    if request.replaces_some:
        metrics["numAddedChangeFiles"] = len(changes.change_files)
        if not (changes.written or changes.rewritten or changes.marked):
            # the reference counts no rows for a write without files
            del metrics["numOutputRows"]
        elif changes.deleted_rows is not None:
            metrics |= {"numDeletedRows": changes.deleted_rows, "numCopiedRows": changes.copied_rows}
    if request.dynamic:
        parameters["isDynamicPartitionOverwrite"] = True
    if request.overwrite_schema:
        parameters["canOverwriteSchema"] = True
    if request.merge_schema:
        parameters["canMergeSchema"] = True
    return Operation("WRITE", parameters, metrics)
