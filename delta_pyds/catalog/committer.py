"""Commits through a catalog: staged or inline, proposed, and published at once after they were ratified.

Invariants: a commit is in the table from the moment that the catalog ratifies it, and whatever happens afterwards
(publishing, reporting) neither fails nor undoes it; an answer that was lost is settled by asking the catalog for the
staged file's name, or the published entry for its ``txnId``, before anybody hears of a conflict. Once the outcome of
one call was unknown, no refusal of a later one says anything about it: only whose the version is ends the question.
What a catalog may still ratify is never deleted.

Protocol: "Commit Protocol", "Writer Requirements for Catalog-managed tables".
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from delta_pyds.catalog.interface import (
    BacklogFull,
    CommitOutcome,
    CommitProposal,
    Conflict,
    ManagedTable,
    NewTable,
    OutcomeUnknown,
    Ratified,
    Refused,
)
from delta_pyds.catalog.managed_storage import CatalogStorage
from delta_pyds.catalog.publishing import publish
from delta_pyds.catalog.staging import discard_staged, prepare_staging, stage_commit
from delta_pyds.catalog.table_state import ask, require_sound
from delta_pyds.errors import (
    CommitOutcomeUnknownError,
    DeltaError,
    NothingWrittenError,
    TableNotFoundError,
    UnsupportedOperationError,
    UserError,
)
from delta_pyds.log.commit_reader import decode_commit
from delta_pyds.log.committer import (
    LoggedCommit,
    ProposedCommit,
    commits_after,
    put_commit,
)
from delta_pyds.protocol.paths import commit_path
from delta_pyds.redaction import safe_logger

_logger = safe_logger(__name__)

# Between the attempts to propose a commit whose outcome is unknown, or that found the backlog full.
_PAUSES_S = (0.1, 0.5, 2.0, 5.0)
# How often room is made in a backlog that others fill again, and the pause after it, which grows.
_MOST_ROOMS = 50
_ROOM_PAUSE_S = 0.005


class _Owner(Enum):
    OURS = "ours"
    OTHERS = "others"
    NOBODY = "nobody"
    UNKNOWN = "unknown"


class CatalogCommitter:
    """See ``Committer``. Version 0 is written to the log that the table was given, and the table registered then.

    >>> Transaction(storage, root, snapshot, committer=CatalogCommitter(storage))
    """

    def __init__(self, storage: CatalogStorage, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._storage = storage
        self._sleep = sleep
        self._published: int | None = None

    def propose(self, commit: ProposedCommit) -> bool:
        if commit.version == 0:
            return self._create(commit)
        proposal = self._prepared(commit)
        try:
            won = self._settle(proposal, commit)
        except _SurelyNotError as sure:
            self._discard(proposal)
            raise sure.error from None
        if not won:
            self._discard(proposal)
        return won

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

        Raises: _SurelyNotError for a refusal, and where the catalog took nothing; CommitOutcomeUnknownError.
        """
        lost = told = ""  # why it may be ratified; why it is not
        rooms = 0
        pauses = iter((*_PAUSES_S, None))
        while True:
            outcome = self._proposed(proposal)
            if isinstance(outcome, Ratified):
                self._publish(outcome.table, commit)
                return True
            if lost or not isinstance(outcome, BacklogFull | _NotReached):
                owner = self._owner(proposal)
                if owner is _Owner.OURS:
                    self._publish(None, commit)
                    return True
                if owner is _Owner.OTHERS:
                    return False
                if isinstance(outcome, Refused) and not lost:
                    raise _SurelyNotError(_refused(proposal, outcome.reason))
                lost = _both(lost, _reason(outcome))
            if isinstance(outcome, BacklogFull):
                told = self._make_room()
                if not told:
                    told = "the catalog's backlog was full each time, although it was published"
                    rooms += 1
                    if rooms < _MOST_ROOMS:
                        self._sleep(rooms * _ROOM_PAUSE_S)
                        continue
            elif isinstance(outcome, _NotReached):
                told = outcome.reason
            pause = next(pauses)
            if pause is None:
                break
            self._sleep(pause)
        if lost:
            raise _unknown(self._storage, proposal, lost)
        raise _SurelyNotError(_nothing(proposal, told))

    def _proposed(self, proposal: CommitProposal) -> CommitOutcome | _NotReached:
        try:
            return self._storage.catalog.propose_commit(proposal)
        except NothingWrittenError as error:
            return _NotReached(error.message)
        except Exception as error:  # whatever the client of a catalog raises
            return OutcomeUnknown(_say(error))

    def _owner(self, proposal: CommitProposal) -> _Owner:
        """Whose the version is, by what the catalog stores and, if it has forgotten, by what is published."""
        storage = self._storage
        try:
            table = storage.latest()
            if table is None:
                return _Owner.UNKNOWN
            if table.latest_version < proposal.version:
                return _Owner.NOBODY
            stored = next((one for one in table.unpublished if one.version == proposal.version), None)
            if stored is not None and stored.file_name is not None:
                return _Owner.OURS if stored.file_name == proposal.file_name else _Owner.OTHERS
            path = commit_path(storage.table_root, proposal.version)
            data = stored.content if stored is not None else None
            actions = decode_commit(storage.store.read(path) if data is None else data, path)
        except Exception as error:
            _logger.warning("It is not known yet whose version %d is: %s", proposal.version, _say(error))
            return _Owner.UNKNOWN
        info = next((action.commit_info for action in actions if action.commit_info is not None), None)
        return _Owner.OURS if info is not None and info.txn_id == proposal.txn_id else _Owner.OTHERS

    def _make_room(self) -> str:
        """Publish what waits. Why some of it still does; empty if none."""
        try:
            table = self._storage.latest()
            if table is None:
                return "the table has no name yet"
            published = publish(self._storage, table)
        except Exception as error:
            return f"the catalog's backlog is full, and {_say(error)}"
        self._published = published.version
        return published.obstacle

    def _publish(self, after: ManagedTable | None, commit: ProposedCommit) -> None:
        """At once: other writers wait where many commits are not published. Never raises."""
        try:
            table = self._storage.latest() if after is None else self._storage.saw(require_sound(after))
            if table is not None:
                self._published = publish(self._storage, table, {commit.version: commit.data}).version
        except Exception as error:
            _logger.warning(
                "Version %d of table %s is committed, and not published yet: %s",
                commit.version,
                self._storage.table_name,
                _say(error),
            )

    # --- version 0

    def _registered(self, table: NewTable) -> CommitOutcome | _NotReached:
        try:
            return self._storage.catalog.register_table(table)
        except NothingWrittenError as error:
            return _NotReached(error.message)
        except Exception as error:  # whatever the client of a catalog raises
            return OutcomeUnknown(_say(error))

    def _create(self, commit: ProposedCommit) -> bool:
        storage, reservation = self._storage, self._storage.reservation
        if reservation is None or commit.protocol is None or commit.metadata is None:
            raise _exists(storage.table_name)
        if not put_commit(storage.store, storage.table_root, 0, commit.data, commit.txn_id, sleep=self._sleep):
            raise _exists(storage.table_name)
        prepare_staging(storage.store, storage.table_root)
        table = NewTable(
            reservation.name,
            reservation.table_id,
            storage.table_root,
            commit.timestamp_ms,
            commit.protocol,
            commit.metadata,
            commit.domains,
        )
        try:
            self._register(table, commit)
        except _SurelyNotError as sure:
            # the place is this table's alone, and no catalog knows it
            storage.store.delete(commit_path(storage.table_root, 0), below=storage.table_root)
            raise sure.error from None
        storage.table_id = table.table_id
        self._published = 0
        return True

    def _register(self, table: NewTable, commit: ProposedCommit) -> None:
        """Register until it is known whose the name is.

        Raises: _SurelyNotError where the name is another table's, for a refusal, and where the catalog took nothing;
            CommitOutcomeUnknownError.
        """
        lost = told = ""  # why it may be registered; why it is not
        for pause in (*_PAUSES_S, None):
            outcome = self._registered(table)
            if isinstance(outcome, Ratified):
                return
            found: ManagedTable | None = None
            failed = ""
            try:
                found = ask(self._storage.catalog, table.name)
            except TableNotFoundError:
                pass
            except Exception as error:
                failed = _say(error)
            if found is not None and found.table_id == table.table_id:
                return
            # another table may be an older one, in the answer of a replica that lags behind
            sure = isinstance(outcome, Conflict) or not (lost or isinstance(outcome, OutcomeUnknown))
            if found is not None and sure:
                raise _SurelyNotError(_exists(table.name))
            if isinstance(outcome, Refused) and not lost:
                raise _SurelyNotError(_not_registered(table.name, outcome.reason))
            if isinstance(outcome, _NotReached) and not lost:
                told = outcome.reason
            else:
                lost = _both(lost, _reason(outcome), failed)
            if pause is not None:
                self._sleep(pause)
        if not lost:
            raise _SurelyNotError(_not_created(table.name, told))
        raise CommitOutcomeUnknownError(
            f"It is not known whether table {table.name!r} was created: its catalog did not say ({lost}). If it has "
            f"the id {table.table_id} there, it was. Look there before you create it again.",
            table=table.name,
            version=0,
            txn_id=commit.txn_id,
        )


class _SurelyNotError(Exception):
    """Nothing was committed, and nothing of it can become a version: what was staged for it serves nobody."""

    def __init__(self, error: DeltaError) -> None:
        super().__init__(error)
        self.error = error


@dataclass(frozen=True)
class _NotReached:
    """The catalog surely took nothing; it may, if it is asked again."""

    reason: str


def _reason(outcome: CommitOutcome | _NotReached) -> str:
    if isinstance(outcome, OutcomeUnknown | _NotReached | Refused):
        return outcome.reason.rstrip(".") or "without a reason"
    if isinstance(outcome, Conflict):
        return "the catalog says that the version is taken, and that it does not exist"
    return "the catalog's backlog is full"


def _both(known: str, *more: str) -> str:
    """Each of the reasons once: what came later says why the question stayed open."""
    for reason in more:
        text = reason.rstrip(".")
        if text not in known:
            known = f"{known}; {text}" if known else text
    return known


def _say(error: BaseException) -> str:
    return error.message.rstrip(".") if isinstance(error, DeltaError) else f"{type(error).__name__}: {error}"


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


def _not_created(name: str, reason: str) -> NothingWrittenError:
    return NothingWrittenError(
        f"The table {name!r} was not created: {reason.rstrip('.')}. Run the operation again.", table=name
    )


def _unknown(storage: CatalogStorage, proposal: CommitProposal, reason: str) -> CommitOutcomeUnknownError:
    return CommitOutcomeUnknownError(
        f"It is not known whether version {proposal.version} of table {proposal.table_name!r} was committed: its "
        f"catalog did not say ({reason.rstrip('.')}). If that version holds the txnId {proposal.txn_id}, this "
        "transaction is in the table; if not, nothing happened. Do not delete the data files of this transaction, and "
        "look at the table before you write the same data again.",
        table=storage.table_root,
        version=proposal.version,
        txn_id=proposal.txn_id,
    )


def _exists(name: str) -> UserError:
    return UserError(
        f"the table {name} has been created by another writer. Nothing was written to it: run the operation again, "
        "and it finds that table.",
        code="TABLE_OR_VIEW_ALREADY_EXISTS",
        table=name,
    )


def _not_registered(name: str, reason: str) -> UnsupportedOperationError:
    return UnsupportedOperationError(
        f"the catalog refuses the table {name}: {reason.rstrip('.')}. Nothing was changed.",
        code="DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION",
        table=name,
    )
