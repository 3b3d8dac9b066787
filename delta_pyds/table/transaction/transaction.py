"""One change of a table: the reads and changes of an operation, committed as one version.

Invariants: a transaction is in the log completely or not at all. It was checked against every version that came first.
It commits at most once.

Protocol: "Delta Log Entries", "Creation of New Log Entries".
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, replace

from delta_pyds.backoff import pause_s
from delta_pyds.catalog.managed import check_allowed, is_catalog_managed
from delta_pyds.catalog.opening import committer_of
from delta_pyds.errors import (
    CommitOutcomeUnknownError,
    CommitRetriesExceededError,
    ConflictError,
    DeltaError,
    OptionError,
    StorageError,
)
from delta_pyds.expr.nodes import Expr
from delta_pyds.log.committer import Committer, LoggedCommit
from delta_pyds.log.listing import LogFile
from delta_pyds.protocol.actions import (
    ROW_TRACKING_DOMAIN,
    AddCDCFile,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)
from delta_pyds.protocol.paths import log_directory, path_key
from delta_pyds.redaction import safe_logger
from delta_pyds.storage.base import Storage
from delta_pyds.storage.local_turns import Turn
from delta_pyds.table.configuration import TableConfiguration, load_configuration, require_managed
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.table.transaction.commit_draft import Draft, check_draft
from delta_pyds.table.transaction.commit_encoding import CommitEncoder, Encoded
from delta_pyds.table.transaction.commit_info import Operation
from delta_pyds.table.transaction.conflict import (
    IsolationLevel,
    ReadPredicate,
    TransactionInfo,
    WinningCommit,
    check_definition,
    check_files,
)
from delta_pyds.table.transaction.isolation import isolation_of
from delta_pyds.table.transaction.log_continuity import (
    check_commit_remains,
    check_log_continues,
    created_meanwhile,
    is_same_file,
)
from delta_pyds.table.transaction.mend import Mend, NetChanges
from delta_pyds.table.transaction.post_commit import CommittedVersion, after_commit
from delta_pyds.table.transaction.rebase import NO_TABLE, LatestState, advance, state_of
from delta_pyds.table.transaction.row_tracking_enablement import check_row_tracking_enabled

_logger = safe_logger(__name__)

# losing one race is normal; several in a row show that many writers compete
_LOSSES_WITHOUT_PAUSE = 3
_MAX_READS = 5
# each attempt mends the changes, which takes time: during a longer pause other writers only begin and win
_LONGEST_PAUSE_OF_MEND_S = 0.2


@dataclass(frozen=True)
class CommitPolicy:
    """The number of attempts, and the pauses between them, which double with each lost race and have random lengths.

    On the local disk, writers that lost a race take turns instead. One waits ``max_backoff_s`` for its turn at most.
    The pauses of changes that are mended are short: long ones would only let others win that began later.
    ``post_commit``: write checksums and checkpoints, and clean the log, after the commit.
    """

    max_attempts: int = 1_000
    first_backoff_s: float = 0.02
    max_backoff_s: float = 2.0
    post_commit: bool = True

    def __post_init__(self) -> None:
        if self.max_attempts < 1:
            message = f"the maximum number of attempts of a commit is {self.max_attempts}, but must be at least 1."
            raise OptionError(message, max_attempts=self.max_attempts)


@dataclass(frozen=True)
class Committed:
    """A transaction that is in the log. ``timestamp_ms``: its time in the table's history.

    ``winners``: the versions of other writers in between. ``attempts``: how often a commit was tried.
    """

    table_root: str
    version: int
    timestamp_ms: int
    attempts: int
    winners: tuple[int, ...]
    info: CommitInfo
    protocol: Protocol
    metadata: Metadata


@dataclass(frozen=True)
class TableToCreate:
    """A table that a transaction creates, with version 0."""

    storage: Storage
    table_root: str


class Transaction:
    """The reads and changes of one operation on a table; consumed by ``commit``.

    For one thread. ``read``: the version that the operation reads, or the table that it creates. ``committer``: by
    default the one for the storage: the log or the table's catalog. ``clock`` returns milliseconds since the epoch.

    >>> transaction = Transaction(snapshot)
    >>> transaction.add(files)
    >>> transaction.commit(Operation("WRITE", {"mode": "Append"}))
    """

    def __init__(
        self,
        read: Snapshot | TableToCreate,
        *,
        committer: Committer | None = None,
        clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.storage = read.storage
        self.table_root = read.table_root
        self.snapshot = read if isinstance(read, Snapshot) else None
        self.txn_id = str(uuid.uuid4())
        self._committer = committer or committer_of(read.storage, read.table_root, sleep=sleep)
        self._clock, self._sleep = clock, sleep
        self._draft = Draft()
        self._whole_table = False
        self._predicates: list[ReadPredicate] = []
        self._read_files: Set[str] = set()
        self._read_applications: set[str] = set()
        self._consumed = False

    # --- reads

    def record_whole_table(self) -> None:
        """Record that the result depends on every row: any change of the table's files by others is a conflict."""
        self._check_not_committed()
        self._whole_table = True

    def record_where(self, partition_predicate: Expr, *, time_zone: str | None = None, all_files: bool = False) -> None:
        """Record that the result depends on all rows of these partitions: others may not change or add rows there.

        Conjuncts over other columns are ignored. ``time_zone``: the zone of partition timestamps without one; if it is
        None, such values match. ``all_files``: others may remove no file of these partitions. If it is False, the files
        that were read must also be recorded with ``record_files``.
        """
        self._check_not_committed()
        self._predicates.append(ReadPredicate(partition_predicate, time_zone, all_files))

    def record_files(self, paths: Iterable[str]) -> None:
        """Record that the result depends on these files: others may not remove them. ``paths``: as in the log."""
        self._check_not_committed()
        self._read_files |= set(map(path_key, paths))

    def record_application(self, app_id: str) -> int | None:
        """Return the application's last version, and record that the result depends on it.

        Protocol: "Transaction Identifiers".
        """
        self._check_not_committed()
        self._read_applications.add(app_id)
        found = self.snapshot.transactions.get(app_id) if self.snapshot is not None else None
        return None if found is None else found.version

    # --- changes

    def set_metadata(self, metadata: Metadata) -> None:
        """Set the table's metadata; equal metadata is not a change."""
        self._check_not_committed()
        same = self.snapshot is not None and metadata == self.snapshot.metadata
        self._draft.metadata = None if same else metadata

    def set_protocol(self, protocol: Protocol, *, without: str | None = None) -> None:
        """Set the table's protocol; an equal one is not a change. ``without``: a feature that is dropped."""
        self._check_not_committed()
        self._draft.dropped_feature = without
        self._draft.protocol = None if self.snapshot and protocol == self.snapshot.protocol else protocol

    def set_domain(self, domain: DomainMetadata) -> None:
        """Set a metadata domain's configuration, or remove the domain."""
        self._check_not_committed()
        if domain.domain == ROW_TRACKING_DOMAIN and not domain.removed:
            raise DeltaError(
                f"the metadata domain {ROW_TRACKING_DOMAIN} can only be set by the transaction itself.",
                table=self.table_root,
            )
        self._draft.domains[domain.domain] = domain

    def set_row_id_mark(self, mark: int) -> None:
        """Record that added files have row ids of another table, which has assigned ids up to ``mark``."""
        self._check_not_committed()
        self._draft.row_id_mark = mark

    def set_application(self, app_id: str, version: int) -> None:
        """Set the application's version of this commit, which then depends on the application's last version."""
        self.record_application(app_id)
        self._draft.applications[app_id] = SetTransaction(app_id, version, self._clock())

    def add(self, files: AddFile | Iterable[AddFile]) -> None:
        """Add files to the table."""
        self._check_not_committed()
        self._draft.adds.extend([files] if isinstance(files, AddFile) else files)

    def remove(self, files: RemoveFile | Iterable[RemoveFile]) -> None:
        """Remove files from the table; an iterator is read in bounded pieces. Raises: DeltaError for a file twice."""
        self._check_not_committed()
        some = [files] if isinstance(files, RemoveFile) else files
        self._draft.removes.extend(some, table=self.table_root, now_ms=self._clock())

    def add_change_file(self, files: AddCDCFile | Iterable[AddCDCFile]) -> None:
        """Add change data files. Protocol: "Add CDC File"."""
        self._check_not_committed()
        self._draft.change_files.extend([files] if isinstance(files, AddCDCFile) else files)

    # --- the commit

    def commit(
        self,
        operation: Operation,
        *,
        user_metadata: str | None = None,
        isolation_level: str | None = None,
        tags: Mapping[str, str] | None = None,
        policy: CommitPolicy | None = None,
        mend: Mend | None = None,
    ) -> Committed:
        """Commit the transaction after all existing versions.

        ``isolation_level``: ``Serializable`` or ``WriteSerializable``, by default the table's; it may not be weaker.
        ``mend``: computes the changes again if winning commits changed files that were read.

        Raises: a ConflictError if another commit conflicts with it; as ``mend``;
            CommitOutcomeUnknownError if it is unknown whether the commit is in the log (its data files must not be
            deleted then); another DeltaError for an invalid change. Unless the outcome is unknown, the table is
            unchanged after an error.
        """
        self._check_not_committed()
        self._consumed = True
        check_allowed(self.storage, operation.name)
        policy = policy or CommitPolicy()
        before = self.snapshot.configuration if self.snapshot is not None else None
        after = self._configuration_after(before)
        require_managed(after)
        check_draft(self._draft, before, after)
        if self._draft.metadata is not None or self._draft.protocol is not None:
            again = self._draft.removes.paths | {path_key(a.path) for a in self._draft.adds}
            check_row_tracking_enabled(self.snapshot, after, replaced=again, read_whole_table=self._whole_table)
        level = isolation_of(self._draft, before or after, isolation_level, depends_on_files=self._depends_on_files)
        current = self._info(operation, level, before or after)
        encoder = CommitEncoder(
            self._draft, operation, current, self.txn_id, user_metadata=user_metadata, tags=dict(tags or {})
        )
        check_log_continues(self.storage, self.table_root, self.snapshot)
        local = self.storage.scheme == "file"
        with Turn(log_directory(self.table_root) if local else None) as turn:
            return self._commit_after_others(encoder, current, policy, mend, turn)

    def _commit_after_others(
        self, encoder: CommitEncoder, current: TransactionInfo, policy: CommitPolicy, mend: Mend | None, turn: Turn
    ) -> Committed:
        latest = state_of(self.snapshot) if self.snapshot is not None else NO_TABLE
        winners: list[int] = []
        net = NetChanges()
        last = self.snapshot.segment.last_commit if self.snapshot is not None else None
        pauses = policy
        if mend is not None:
            pauses = replace(policy, max_backoff_s=min(policy.max_backoff_s, _LONGEST_PAUSE_OF_MEND_S))
        for attempt in range(1, policy.max_attempts + 1):
            encoded = encoder.encode(latest, self._clock(), rebased=bool(winners))
            version = latest.version + 1
            if self._committer.propose(encoded.proposal):
                turn.end()
                return self._committed(version, encoded, attempt, winners, policy)
            # before reading the commits, so that they are recent when the next version is tried
            if (
                attempt < policy.max_attempts
                and not turn.wait(policy.max_backoff_s, self._sleep)
                and attempt > _LOSSES_WITHOUT_PAUSE
            ):
                self._pause(attempt - _LOSSES_WITHOUT_PAUSE, pauses)
            conflict: ConflictError | None = None
            before = latest.version, last
            commits, listed = self._commits_of_others(version, policy)
            # a local listing looks at its files one after another, and the table may be replaced meanwhile
            is_same = listed is not None and is_same_file(self.storage, last, listed) and self.storage.scheme != "file"
            if self.snapshot is not None and not is_same:
                # otherwise these commits are another table's
                check_commit_remains(self.storage, self.snapshot, *before, may_be_cleaned=True)
            for commit in commits:
                winner = self._winner(commit)
                latest = self._rebase_after(winner, commit, latest, current)
                winners.append(commit.version)
                last = commit.file
                net.take(winner, current)
                try:
                    check_files(current, winner)
                except ConflictError as error:
                    if mend is None:
                        raise
                    conflict = conflict or error
            if self.snapshot is not None and is_same and conflict is None:
                # the listing was made before the commits were read
                check_commit_remains(self.storage, self.snapshot, *before, may_be_cleaned=True)
            if conflict is not None:
                if attempt == policy.max_attempts:
                    raise conflict  # a mend would be in vain
                assert mend is not None and self.snapshot is not None
                current = self._mended(mend, net, conflict, latest, encoder, current)
                check_commit_remains(self.storage, self.snapshot, latest.version, last)
                net = NetChanges()
        raise CommitRetriesExceededError(
            f"{current.operation} on table {self.table_root!r} was not committed: in {policy.max_attempts} attempts "
            f"another writer came first each time, most recently with version {latest.version}. There is no conflict: "
            "run the operation again, allow more attempts, or let fewer writers commit at once.",
            operation=current.operation,
            table=self.table_root,
            version=latest.version,
            attempts=policy.max_attempts,
        )

    def _commits_of_others(self, lost: int, policy: CommitPolicy) -> tuple[list[LoggedCommit], LogFile | None]:
        """The commits that came first, and the commit before them if the same listing has it.

        Reading may be repeated: nothing has been written.
        """
        for trial in range(1, _MAX_READS + 1):
            listed: list[LogFile] = []
            seen = listed.append if lost > 0 and not is_catalog_managed(self.storage) else None
            try:
                commits = self._committer.commits_after(lost - 1, known_version=lost, seen=seen)
                return commits, listed[-1] if listed else None
            except StorageError as error:
                if trial == _MAX_READS:
                    raise
                _logger.warning("The log of table %s could not be read, and is read again: %s", self.table_root, error)
                self._pause(trial, policy)
        raise AssertionError("unreachable")

    def _mended(
        self,
        mend: Mend,
        net: NetChanges,
        conflict: ConflictError,
        latest: LatestState,
        encoder: CommitEncoder,
        current: TransactionInfo,
    ) -> TransactionInfo:
        """Replace the changes by those after the winning commits. Raises: ``conflict`` if that is not possible."""
        net.row_tracking_enabled = latest.row_tracking_enabled_meanwhile
        mended = mend(net)
        # earlier winners were not checked against new metadata
        if mended is None or (mended.metadata is not None and self._draft.metadata is None):
            raise conflict
        _logger.info("The transaction on table %s is mended after versions %s.", self.table_root, net.versions)
        draft = self._draft.without_files()
        draft.adds.extend(mended.adds)
        draft.removes.extend(mended.removes, table=self.table_root, now_ms=self._clock())
        draft.change_files.extend(mended.change_files)
        draft.metadata = mended.metadata
        self._draft = draft
        self._read_files = mended.read_files
        before = self.snapshot.configuration if self.snapshot is not None else None
        after = self._configuration_after(before)
        check_draft(draft, before, after)
        mended_info = self._info(mended.operation, current.isolation, before or after)
        encoder.replace_changes(draft, mended.operation, mended_info, read_version=latest.version)
        return mended_info

    def _winner(self, commit: LoggedCommit) -> WinningCommit:
        """The actions of a commit that came first. Raises: CommitOutcomeUnknownError if it is this transaction."""
        winner = WinningCommit.of(commit.version, commit.actions)
        if winner.info is not None and winner.info.txn_id == self.txn_id:
            # the committer found that another transaction owns this version, so the log was changed since
            raise CommitOutcomeUnknownError(
                f"version {winner.version} of table {self.table_root!r} is this transaction, although it belonged to "
                "another one before. The store is not consistent; check the log before you write again.",
                table=self.table_root,
                version=winner.version,
                txn_id=self.txn_id,
            )
        return winner

    def _rebase_after(
        self, winner: WinningCommit, commit: LoggedCommit, latest: LatestState, current: TransactionInfo
    ) -> LatestState:
        if latest.protocol is None or latest.metadata is None:
            raise created_meanwhile(current, winner)
        adopted = check_definition(current, winner, latest.protocol, latest.metadata)
        commit_time_ms = commit.file.modification_time_ms
        return advance(latest, winner, adopted, operation=current.operation, commit_time_ms=commit_time_ms)

    def _committed(
        self, version: int, encoded: Encoded, attempts: int, winners: list[int], policy: CommitPolicy
    ) -> Committed:
        if policy.post_commit:
            after_commit(
                self.storage,
                CommittedVersion(
                    self.table_root, version, encoded.protocol, encoded.metadata, encoded.info, encoded.proposal.data
                ),
                now_ms=self._clock(),
                publish=self._committer.publish,
            )
        return Committed(
            self.table_root,
            version,
            encoded.proposal.timestamp_ms,
            attempts,
            tuple(winners),
            encoded.info,
            encoded.protocol,
            encoded.metadata,
        )

    def _configuration_after(self, before: TableConfiguration | None) -> TableConfiguration:
        """The table after the changes, checked to be writable."""
        if before is not None:
            before.check_writable()
            if self._draft.metadata is None and self._draft.protocol is None:
                return before
        protocol = self._draft.protocol or (before.protocol if before else None)
        metadata = self._draft.metadata or (before.metadata if before else None)
        if protocol is None or metadata is None:
            missing = "protocol" if protocol is None else "metaData"
            raise DeltaError(
                f"table {self.table_root!r} cannot be created without a {missing} action.", table=self.table_root
            )
        version = before.version + 1 if before else 0
        after = load_configuration(
            self.table_root, version, protocol, metadata, by_catalog=is_catalog_managed(self.storage)
        )
        after.check_writable()
        return after

    @property
    def _depends_on_files(self) -> bool:
        return self._whole_table or bool(self._predicates) or bool(self._read_files)

    def _info(self, operation: Operation, isolation: IsolationLevel, read: TableConfiguration) -> TransactionInfo:
        draft = self._draft
        only_adds = not len(draft.removes) and not draft.change_files
        return TransactionInfo(
            operation.name,
            self.table_root,
            isolation,
            read.schema,
            read.partition_columns,
            blind_append=only_adds and not self._depends_on_files,
            read_whole_table=self._whole_table,
            predicates=tuple(self._predicates),
            read_files=self._read_files,
            removed_files=draft.removes.paths,
            read_applications=self._read_applications,
            domains=draft.domains.keys(),
            adds_files=bool(draft.adds),
            changes_metadata=draft.metadata is not None,
            loses_columns=draft.loses_columns(read.metadata),
            changes_protocol=draft.protocol is not None,
            by_catalog=read.by_catalog,
        )

    def _pause(self, losses: int, policy: CommitPolicy) -> None:
        self._sleep(pause_s(losses, first_s=policy.first_backoff_s, longest_s=policy.max_backoff_s))

    def _check_not_committed(self) -> None:
        if self._consumed:
            raise DeltaError(
                f"commit was already called for a transaction on table {self.table_root!r}. Start a new one.",
                code="DELTA_TRANSACTION_ALREADY_USED",
                table=self.table_root,
            )
