"""Commits through a catalog: staged or inline, proposed, and published right after they were ratified.

Invariants:

- A commit is in the table as soon as the catalog ratifies it. Later steps (publishing, reporting) cannot undo it, nor
  make it fail.
- Only the catalog's list of commits, or the ``txnId`` of the published entry, proves that it is ratified. The answer
  alone proves nothing: two writers may get it. A lost answer is resolved in the same way before a conflict is reported.
- After one call with an unknown outcome, a refusal of a later call proves nothing: only the owner of the version does.
- A staged file that the catalog may still ratify is never deleted.

Protocol: "Commit Protocol", "Writer Requirements for Catalog-managed tables".
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from enum import Enum

from delta_pyds.catalog.answers import message_of
from delta_pyds.catalog.commit_comparison import transaction_of
from delta_pyds.catalog.interface import BacklogFull, CommitProposal, ManagedTable, OutcomeUnknown, Ratified, Refused
from delta_pyds.catalog.managed_storage import CatalogStorage
from delta_pyds.catalog.outcomes import Answer, NeverCommittedError, NotReached, answer_of, cause_in, joined, reason_of
from delta_pyds.catalog.publishing import Published, publish
from delta_pyds.catalog.registration import create_table
from delta_pyds.catalog.staging import discard_staged, stage_commit
from delta_pyds.catalog.table_state import check_same, require_consistent
from delta_pyds.errors import (
    CommitOutcomeUnknownError,
    DeltaError,
    NothingWrittenError,
    UnsupportedOperationError,
)
from delta_pyds.log.commit_reader import decode_commit
from delta_pyds.log.committer import LoggedCommit, ProposedCommit, Seen, commits_after
from delta_pyds.protocol.paths import commit_path
from delta_pyds.redaction import safe_logger

_logger = safe_logger(__name__)

# Pauses between attempts to propose a commit after an unknown outcome or a full backlog.
_PAUSES_S = (0.1, 0.5, 2.0, 5.0)
# How often a full backlog is published while other writers fill it again. The pause after it grows.
_MOST_PUBLISHINGS = 50
_PUBLISHING_PAUSE_S = 0.005


class CatalogCommitter:
    """See ``Committer``. Version 0 is written to the log at the reserved location, and then the table is registered.

    >>> Transaction(snapshot, committer=CatalogCommitter(storage))
    """

    def __init__(self, storage: CatalogStorage, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._storage = storage
        self._sleep = sleep
        self._published: int | None = None

    def propose(self, commit: ProposedCommit) -> bool:
        if commit.version == 0:
            create_table(self._storage, commit, sleep=self._sleep)
            self._published = 0
            return True
        proposal = self._prepared(commit)
        try:
            return self._propose_until_resolved(proposal, commit)
        except NeverCommittedError as sure:
            self._discard(proposal)
            raise sure.error from None

    def _discard(self, proposal: CommitProposal) -> None:
        """Delete the staged file of a proposal that never becomes a version."""
        if proposal.file_name is not None:
            discard_staged(self._storage.store, self._storage.table_root, proposal.file_name)

    def commits_after(
        self, version: int, *, known_version: int | None = None, seen: Seen | None = None
    ) -> list[LoggedCommit]:
        return commits_after(self._storage, self._storage.table_root, version, known_version=known_version, seen=seen)

    def publish(self, version: int) -> bool:
        if self._published is not None and version <= self._published:
            return True
        table = self._storage.latest()
        if table is None:
            return False
        self._published = publish(self._storage, table).version
        return version <= self._published

    # --- one proposal

    def _prepared(self, commit: ProposedCommit) -> CommitProposal:
        """Stage the commit, unless it is small enough for the catalog to accept it inline."""
        storage, catalog = self._storage, self._storage.catalog
        if storage.table_id is None:
            storage.latest()
        inline = len(commit.data) <= catalog.max_inline_bytes
        staged = None
        if not inline:
            staged = stage_commit(storage.store, storage.table_root, commit.version, commit.data)
        return CommitProposal(
            storage.table_name,
            storage.table_id or "",
            commit.version,
            commit.timestamp_ms,
            commit.txn_id,
            file_name=None if staged is None else staged.name,
            size_bytes=len(commit.data),
            modification_time_ms=commit.timestamp_ms if staged is None else staged.modification_time_ms,
            content=commit.data if inline else None,
            protocol=commit.protocol,
            metadata=commit.metadata,
            metadata_before=commit.metadata_before,
            domains=commit.domains,
            published_version=self._published,
        )

    def _propose_until_resolved(self, proposal: CommitProposal, commit: ProposedCommit) -> bool:
        """Propose until the owner of the version is known. Returns: whether it is this commit.

        Repeating a proposal is safe: it is ratified once.

        Raises: NeverCommittedError for a refusal, or if the catalog accepted nothing; CommitOutcomeUnknownError;
            CatalogAnswerError.
        """
        unknown = failed = ""  # why it may be ratified; why it is not
        cause: Exception | None = None
        catalog = self._storage.catalog
        # after Ratified, the catalog is only queried: another proposal might replace another writer's commit
        outcome: Answer = OutcomeUnknown("")
        returned: ManagedTable | None = None
        publishings = 0
        pauses = iter((*_PAUSES_S, None))
        while True:
            if not isinstance(outcome, Ratified):
                outcome = answer_of(catalog, "propose_commit", lambda: catalog.propose_commit(proposal))
                returned = outcome.table if isinstance(outcome, Ratified) else None
                cause = cause_in(outcome) or cause
            if unknown or not isinstance(outcome, BacklogFull | NotReached):
                owner, why = self._owner_and_reason(proposal, commit, returned)
                returned = None
                if owner is _Owner.OURS:
                    return True
                if owner is _Owner.OTHERS:
                    if not isinstance(outcome, Ratified):
                        self._discard(proposal)
                    return False
                if isinstance(outcome, Refused) and not unknown:
                    raise NeverCommittedError(_refused(proposal, outcome.reason))
                unknown = joined(unknown, why or reason_of(outcome))
            if isinstance(outcome, BacklogFull):
                failed = self._publish_backlog()
                if not failed:
                    failed = "the catalog's backlog was full at each attempt, although its commits were published"
                    publishings += 1
                    if publishings < _MOST_PUBLISHINGS:
                        self._sleep(publishings * _PUBLISHING_PAUSE_S)
                        continue
            elif isinstance(outcome, NotReached):
                failed = outcome.reason
            pause = next(pauses)
            if pause is None:
                break
            self._sleep(pause)
        if unknown:
            raise _unknown(self._storage, proposal, unknown) from cause
        raise NeverCommittedError(_nothing(proposal, failed))

    def _owner_and_reason(
        self, proposal: CommitProposal, commit: ProposedCommit, returned: ManagedTable | None
    ) -> tuple[_Owner, str]:
        """The owner of the version, and the reason if it is unknown. Our version is published.

        A catalog may return ``Ratified`` to two writers. The version is ours if the catalog's list has our commit, and
        the log has no other one. ``returned``: the table that the catalog returned with ``Ratified``, to save a
        request.
        """
        table = self._checked(returned)
        owner = _Owner.UNKNOWN
        if table is not None:
            with contextlib.suppress(Exception):
                owner = _owner_in(self._storage, table, proposal)
        if owner is not _Owner.OURS:
            owner, table = _current_owner(self._storage, proposal)
        if owner is not _Owner.OURS or table is None:
            return owner, ""
        published = self._publish(table, commit)
        if published is None or published.version >= proposal.version:
            return _Owner.OURS, ""
        # put-if-absent has not decided, so the catalog does: by the commit that it returns after all other proposals
        again, _ = _current_owner(self._storage, proposal)
        if again is _Owner.OTHERS:
            return again, ""
        if published.contested == proposal.version:
            return _Owner.UNKNOWN, "the catalog returns it, but the log has the commit of another transaction"
        return _Owner.OURS, ""

    def _checked(self, returned: ManagedTable | None) -> ManagedTable | None:
        """The state of the table that the catalog returned with an outcome, if it is consistent."""
        if returned is None:
            return None
        try:
            check_same(require_consistent(returned), self._storage.table_root, self._storage.table_id)
        except DeltaError as error:
            _logger.warning("Of table %s: %s", self._storage.table_name, error.message)
            return None
        return self._storage.remember(returned)

    def _publish_backlog(self) -> str:
        """Publish the backlog. Returns: the obstacle, if some commits are still unpublished; else an empty text."""
        try:
            table = self._storage.latest()
            if table is None:
                return "the table has no name yet"
            published = publish(self._storage, table)
        except Exception as error:
            return f"the catalog's backlog is full, and {message_of(error)}"
        self._published = published.version
        return published.obstacle

    def _publish(self, table: ManagedTable, commit: ProposedCommit) -> Published | None:
        """Publish now: other writers wait while too many commits are unpublished. Never raises; None on failure."""
        try:
            published = publish(self._storage, table, {commit.version: commit.data})
        except Exception as error:
            _logger.warning(
                "Version %d of table %s is committed but not published yet: %s",
                commit.version,
                self._storage.table_name,
                message_of(error),
            )
            return None
        self._published = published.version
        return published


def _refused(proposal: CommitProposal, reason: str) -> UnsupportedOperationError:
    return UnsupportedOperationError(
        f"the catalog refuses version {proposal.version} of table {proposal.table_name}: {reason.rstrip('.')}. Nothing "
        "was changed.",
        code="DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION",
        table=proposal.table_name,
        version=proposal.version,
    )


def _nothing(proposal: CommitProposal, reason: str) -> NothingWrittenError:
    return NothingWrittenError(
        f"Version {proposal.version} of table {proposal.table_name!r} was not committed: {reason.rstrip('.')}. Run "
        "the operation again.",
        table=proposal.table_name,
        version=proposal.version,
    )


def _unknown(storage: CatalogStorage, proposal: CommitProposal, reason: str) -> CommitOutcomeUnknownError:
    return CommitOutcomeUnknownError(
        f"It is unknown whether version {proposal.version} of table {proposal.table_name!r} was committed: its "
        f"catalog did not confirm it ({reason.rstrip('.')}). If that version has the txnId {proposal.txn_id}, this "
        "transaction is in the table; if not, nothing happened. Do not delete the data files of this transaction, and "
        "check the table before you write the same data again.",
        table=storage.table_root,
        version=proposal.version,
        txn_id=proposal.txn_id,
    )


class _Owner(Enum):
    """The owner of a proposed version, derived from stored commits and the log, never from an answer alone.

    ``NOBODY``: the table does not have the version.
    """

    OURS = "ours"
    OTHERS = "others"
    NOBODY = "nobody"
    UNKNOWN = "unknown"


def _owner_in(storage: CatalogStorage, table: ManagedTable, proposal: CommitProposal) -> _Owner:
    """The owner of the version according to ``table``, or the log for commits that the catalog no longer stores.

    Raises: as ``read_commit``.
    """
    if table.latest_version < proposal.version:
        return _Owner.NOBODY
    stored = next((one for one in table.unpublished if one.version == proposal.version), None)
    if stored is not None and stored.file_name is not None and proposal.file_name is not None:
        return _Owner.OURS if stored.file_name == proposal.file_name else _Owner.OTHERS
    path = commit_path(storage.table_root, proposal.version)
    if stored is None:
        data = storage.store.read(path)
    elif stored.content is not None and stored.content == proposal.content:
        return _Owner.OURS
    else:
        data = storage.read_unpublished(stored)
    return _Owner.OURS if transaction_of(decode_commit(data, path)) == proposal.txn_id else _Owner.OTHERS


def _current_owner(storage: CatalogStorage, proposal: CommitProposal) -> tuple[_Owner, ManagedTable | None]:
    """Ask the catalog, and return the owner with its answer. Never raises."""
    try:
        table = storage.latest()
        return (_Owner.UNKNOWN if table is None else _owner_in(storage, table, proposal)), table
    except Exception as error:
        _logger.warning("The owner of version %d is not known yet: %s", proposal.version, error)
        return _Owner.UNKNOWN, None
