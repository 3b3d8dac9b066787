"""Commits through a catalog: staged or inline, proposed, and published at once after they were ratified.

Invariants: a commit is in the table from the moment that the catalog ratifies it, and whatever happens afterwards
(publishing, reporting) neither fails nor undoes it; that it is ratified the catalog's list of commits says, or the
published entry by its ``txnId``, and never the answer alone, which two writers may be given; in the same way a lost
answer is settled before anybody hears of a conflict. Once the outcome of one call was unknown, no refusal of a later
one says anything about it: only whose the version is ends the question. What a catalog may still ratify is never
deleted.

Protocol: "Commit Protocol", "Writer Requirements for Catalog-managed tables".
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

from delta_pyds.catalog.answers import said_by
from delta_pyds.catalog.evidence import Owner, owner_in, owner_now
from delta_pyds.catalog.interface import BacklogFull, CommitProposal, ManagedTable, OutcomeUnknown, Ratified, Refused
from delta_pyds.catalog.managed_storage import CatalogStorage
from delta_pyds.catalog.outcomes import Answer, NotReached, SurelyNotError, answer_of, cause_in, joined, reason_of
from delta_pyds.catalog.publishing import Published, publish
from delta_pyds.catalog.registration import create_table
from delta_pyds.catalog.staging import discard_staged, stage_commit
from delta_pyds.catalog.table_state import check_same, require_sound
from delta_pyds.errors import (
    CommitOutcomeUnknownError,
    DeltaError,
    NothingWrittenError,
    UnsupportedOperationError,
)
from delta_pyds.log.committer import LoggedCommit, ProposedCommit, commits_after
from delta_pyds.redaction import safe_logger

_logger = safe_logger(__name__)

# Between the attempts to propose a commit whose outcome is unknown, or that found the backlog full.
_PAUSES_S = (0.1, 0.5, 2.0, 5.0)
# How often room is made in a backlog that others fill again, and the pause after it, which grows.
_MOST_ROOMS = 50
_ROOM_PAUSE_S = 0.005


class CatalogCommitter:
    """See ``Committer``. Version 0 is written to the log that the table was given, and the table registered then.

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
            return self._settle(proposal, commit)
        except SurelyNotError as sure:
            self._discard(proposal)
            raise sure.error from None

    def _discard(self, proposal: CommitProposal) -> None:
        """Of a proposal that never becomes a version."""
        if proposal.file_name is not None:
            discard_staged(self._storage.store, self._storage.table_root, proposal.file_name)

    def commits_after(self, version: int, *, known_version: int | None = None) -> list[LoggedCommit]:
        return commits_after(self._storage, self._storage.table_root, version, known_version=known_version)

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
        """Stage the commit, unless it is small and the catalog takes it as it is."""
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

    def _settle(self, proposal: CommitProposal, commit: ProposedCommit) -> bool:
        """Propose until it is known whose the version is. The same proposal again is safe: it is ratified once.

        Raises: SurelyNotError for a refusal, and where the catalog took nothing; CommitOutcomeUnknownError;
            CatalogAnswerError.
        """
        lost = told = ""  # why it may be ratified; why it is not
        cause: Exception | None = None
        catalog = self._storage.catalog
        # once it says that it is ratified it is only asked: another proposal might take the place of another writer's
        outcome: Answer = OutcomeUnknown("")
        said: ManagedTable | None = None
        rooms = 0
        pauses = iter((*_PAUSES_S, None))
        while True:
            if not isinstance(outcome, Ratified):
                outcome = answer_of(catalog, "propose_commit", lambda: catalog.propose_commit(proposal))
                said = outcome.table if isinstance(outcome, Ratified) else None
                cause = cause_in(outcome) or cause
            if lost or not isinstance(outcome, BacklogFull | NotReached):
                owner, why = self._settled(proposal, commit, said)
                said = None
                if owner is Owner.OURS:
                    return True
                if owner is Owner.OTHERS:
                    if not isinstance(outcome, Ratified):
                        self._discard(proposal)
                    return False
                if isinstance(outcome, Refused) and not lost:
                    raise SurelyNotError(_refused(proposal, outcome.reason))
                lost = joined(lost, why or reason_of(outcome))
            if isinstance(outcome, BacklogFull):
                told = self._make_room()
                if not told:
                    told = "the catalog's backlog was full at each attempt, although its commits were published"
                    rooms += 1
                    if rooms < _MOST_ROOMS:
                        self._sleep(rooms * _ROOM_PAUSE_S)
                        continue
            elif isinstance(outcome, NotReached):
                told = outcome.reason
            pause = next(pauses)
            if pause is None:
                break
            self._sleep(pause)
        if lost:
            raise _unknown(self._storage, proposal, lost) from cause
        raise SurelyNotError(_nothing(proposal, told))

    def _settled(
        self, proposal: CommitProposal, commit: ProposedCommit, said: ManagedTable | None
    ) -> tuple[Owner, str]:
        """Whose the version is, and published if it is ours; where nobody can tell, also why.

        A catalog that says ``Ratified`` may say so to two writers: it is ours where the catalog's list has our commit,
        and the log no other one. ``said``: the table as the catalog told it along, so that it is not asked again.
        """
        table = self._believed(said)
        owner = Owner.UNKNOWN
        if table is not None:
            with contextlib.suppress(Exception):
                owner = owner_in(self._storage, table, proposal)
        if owner is not Owner.OURS:
            owner, table = owner_now(self._storage, proposal)
        if owner is not Owner.OURS or table is None:
            return owner, ""
        published = self._publish(table, commit)
        if published is None or published.version >= proposal.version:
            return Owner.OURS, ""
        # put-if-absent has not decided: what the catalog gives out after all others have proposed does
        again, _ = owner_now(self._storage, proposal)
        if again is Owner.OTHERS:
            return again, ""
        if published.contested == proposal.version:
            return Owner.UNKNOWN, "the catalog returns it, but the log has the commit of another transaction"
        return Owner.OURS, ""

    def _believed(self, said: ManagedTable | None) -> ManagedTable | None:
        """The state of the table that the catalog returned with an outcome, if it is consistent."""
        if said is None:
            return None
        try:
            check_same(require_sound(said), self._storage.table_root, self._storage.table_id)
        except DeltaError as error:
            _logger.warning("Of table %s: %s", self._storage.table_name, error.message)
            return None
        return self._storage.saw(said)

    def _make_room(self) -> str:
        """Publish what waits. Why some of it still does; empty if none."""
        try:
            table = self._storage.latest()
            if table is None:
                return "the table has no name yet"
            published = publish(self._storage, table)
        except Exception as error:
            return f"the catalog's backlog is full, and {said_by(error)}"
        self._published = published.version
        return published.obstacle

    def _publish(self, table: ManagedTable, commit: ProposedCommit) -> Published | None:
        """At once: other writers wait where many commits are not published. Never raises; None where it failed."""
        try:
            published = publish(self._storage, table, {commit.version: commit.data})
        except Exception as error:
            _logger.warning(
                "Version %d of table %s is committed but not published yet: %s",
                commit.version,
                self._storage.table_name,
                said_by(error),
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
        f"catalog did not say ({reason.rstrip('.')}). If that version has the txnId {proposal.txn_id}, this "
        "transaction is in the table; if not, nothing happened. Do not delete the data files of this transaction, and "
        "check the table before you write the same data again.",
        table=storage.table_root,
        version=proposal.version,
        txn_id=proposal.txn_id,
    )
