"""Committing a version to the log, and reading commits of other writers. Protocol: "Delta Log Entries".

``Committer`` is the interface through which a transaction commits. ``FileSystemCommitter`` is for tables without a
catalog, whose log alone decides which versions exist.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol as Interface

from delta_pyds.errors import (
    CommitOutcomeUnknownError,
    DeltaError,
    FileExistsInStorageError,
    FileNotFoundInStorageError,
    MissingLogFilesError,
    NothingWrittenError,
    StorageError,
)
from delta_pyds.log.commit_reader import read_commit_info, read_commits
from delta_pyds.log.listing import LogFile, commit_by_name, commits_by_name, list_log
from delta_pyds.protocol.actions import DomainMetadata, Metadata, Protocol, SingleAction
from delta_pyds.protocol.paths import LogFileKind, LogFileName, commit_path, log_directory
from delta_pyds.storage.base import Storage

# Pauses between attempts to write or find a commit whose outcome is unknown.
_PAUSES_S = (0.1, 0.5, 2.0, 5.0)
_UNKNOWN_SIZE = 1 << 62
# called with a file of the log
Seen = Callable[[LogFile], None]


@dataclass(frozen=True)
class LoggedCommit:
    """A commit in the log, with its actions in the order of the file."""

    version: int
    file: LogFile
    actions: list[SingleAction]


@dataclass(frozen=True)
class ProposedCommit:
    """A commit that a transaction proposes for a version.

    Invariant: ``data`` contains a commitInfo with the ``txnId`` ``txn_id``, which no other transaction ever uses.

    ``protocol``, ``metadata``: the new ones; None if the commit does not change them. ``metadata_before``: the metadata
    that it replaces. ``domains``: the metadata domains that it sets or removes. ``timestamp_ms``: the commit's time in
    the table's history, in milliseconds since the epoch.
    """

    version: int
    data: bytes
    txn_id: str
    timestamp_ms: int
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    metadata_before: Metadata | None = None
    domains: tuple[DomainMetadata, ...] = ()


class Committer(Interface):
    """Commits versions of one table.

    Invariants: at most one of the commits that are proposed for a version becomes that version; a committed version
    never changes; versions have no gap.
    """

    def propose(self, commit: ProposedCommit) -> bool:
        """Commit a version. Returns: True if it was committed, False if the version belongs to another commit.

        Raises: CommitOutcomeUnknownError if the outcome is unknown; NothingWrittenError if it was not committed.
        """
        ...

    def commits_after(
        self, version: int, *, known_version: int | None = None, seen: Seen | None = None
    ) -> list[LoggedCommit]:
        """All commits after ``version``, ascending and without a gap. ``known_version``: a version known to exist.

        ``seen``: called with the file of ``version`` itself, if the same listing has it and is not stale.

        Raises: MissingLogFilesError for a missing commit; CorruptLogError for a damaged one.
        """
        ...

    def publish(self, version: int) -> bool:
        """Publish all versions up to this one as files of the log, as a checkpoint of it requires.

        Returns: False if a version cannot be published for now.
        Raises: the errors of opening the table.
        Protocol: "Maintenance Operations on Catalog-managed Tables".
        """
        ...


class FileSystemCommitter:
    """Commits by put-if-absent of ``_delta_log/<version>.json``.

    >>> Transaction(snapshot, committer=FileSystemCommitter(storage, root))
    """

    def __init__(self, storage: Storage, table_root: str, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._storage = storage
        self._table_root = table_root
        self._sleep = sleep

    def propose(self, commit: ProposedCommit) -> bool:
        return put_commit(
            self._storage, self._table_root, commit.version, commit.data, commit.txn_id, sleep=self._sleep
        )

    def commits_after(
        self, version: int, *, known_version: int | None = None, seen: Seen | None = None
    ) -> list[LoggedCommit]:
        return commits_after(self._storage, self._table_root, version, known_version=known_version, seen=seen)

    def publish(self, version: int) -> bool:
        return version >= 0  # every commit is a file of the log


class _CommitState(Enum):
    OURS = "ours"
    OTHERS = "others"
    ABSENT = "absent"
    UNREADABLE = "unreadable"


def put_commit(
    storage: Storage,
    table_root: str,
    version: int,
    data: bytes,
    txn_id: str,
    *,
    sleep: Callable[[float], None] = time.sleep,
) -> bool:
    """Write the commit of a version.

    An unknown outcome, such as that of a put that timed out, is resolved by the
    ``txnId`` in the file. A missing file is written again, which is safe: only
    one of several puts takes effect.

    Args:
        storage: the table's storage.
        table_root: the table's path.
        version: the version to commit.
        data: the commit, with a commitInfo whose ``txnId`` is ``txn_id``.
        txn_id: an id that no other transaction ever uses.
        sleep: pauses between attempts; tests replace it.

    Returns: True if it was committed, False if the version belongs to another commit.
    Raises: CommitOutcomeUnknownError if the outcome cannot be resolved; NothingWrittenError
        if the store refused and the version does not exist. After any other
        exception (an interrupt, for example) the commit may be in the log.
    """
    path = commit_path(table_root, version)
    failure: BaseException | None = None
    for pause in (*_PAUSES_S, None):
        refusal: NothingWrittenError | None = None
        try:
            if version == 0:
                # another process may have created the directories and not synced them yet
                storage.make_directory(log_directory(table_root))
            storage.put_if_absent(path, data)
            return True
        except FileExistsInStorageError as error:
            # the client may have repeated a put that had succeeded
            failure = failure or error
        except NothingWrittenError as error:
            refusal = error
        except Exception as error:  # after any error of a store's client the file may exist
            failure = error
        state = _owner_of(storage, path, version, txn_id)
        if state is _CommitState.OTHERS:
            return False
        if state is _CommitState.OURS:
            try:
                # perhaps only the sync failed
                storage.make_all_durable([log_directory(table_root)])
                return True
            except StorageError as error:
                failure, refusal = error, None
        if refusal is not None and failure is None and state is _CommitState.ABSENT:
            raise refusal
        failure = failure or refusal
        if pause is not None:
            sleep(pause)
    raise CommitOutcomeUnknownError(
        f"It is unknown whether version {version} of table {table_root!r} was committed: writing {path!r} failed "
        f"({_reason(failure)}), and the file could not be read back. If it exists and contains the txnId {txn_id}, "
        "this transaction is in the table; if not, nothing happened. Do not delete the data files of this "
        "transaction, and check the log before you write the same data again.",
        table=table_root,
        version=version,
        path=path,
        txn_id=txn_id,
    ) from failure


def commits_after(
    storage: Storage,
    table_root: str,
    after_version: int,
    *,
    known_version: int | None = None,
    seen: Seen | None = None,
) -> list[LoggedCommit]:
    """All commits after ``after_version``, ascending and without a gap. ``seen``: as in ``Committer``.

    Only the log after that version is listed. The listing may be stale, although a put has found ``known_version``.
    Then commits up to it, and those directly after it, are looked up by name.

    Raises: MissingLogFilesError for a commit that was cleaned up or lost; CorruptLogError for a damaged one.
    """
    first = after_version + 1
    listed, last = _listed(storage, table_root, first if seen is None else after_version, missing_ok=first == 0)
    known = -1 if known_version is None else known_version
    if seen is not None and known <= last and after_version in listed:
        seen(listed[after_version])
    files = [
        listed.get(version) or _by_name(storage, table_root, version, after_version)
        for version in range(first, max(last, known) + 1)
    ]
    if known > last:  # the listing is stale, perhaps by more versions
        files += commits_by_name(storage, table_root, known + 1)
    return [LoggedCommit(file.version, file, actions) for file, actions in read_commits(storage, files)]


def _listed(storage: Storage, table_root: str, first: int, *, missing_ok: bool) -> tuple[dict[int, LogFile], int]:
    """The commits in a listing, and the newest version that it proves to exist."""
    try:
        listing = list_log(storage, table_root, first)
    except FileNotFoundInStorageError:
        if not missing_ok:
            raise
        return {}, -1  # the table is being created
    commits = {file.version: file for file in listing.commits}
    proven = [*commits, *(file.version for file in listing.checkpoints)]
    return commits, max(proven, default=first - 1)


def _by_name(storage: Storage, table_root: str, version: int, after_version: int) -> LogFile:
    try:
        return commit_by_name(storage, table_root, version)
    except FileNotFoundInStorageError as error:
        raise MissingLogFilesError(
            f"The commit of version {version} of table {table_root!r} is missing, although later versions exist, so "
            f"the changes since version {after_version} are unknown. If the log was cleaned up during this long "
            f"transaction, run it again; else restore {commit_path(table_root, version)!r}.",
            table=table_root,
            version=version,
            missing_version=version,
        ) from error


def _owner_of(storage: Storage, path: str, version: int, txn_id: str) -> _CommitState:
    """Whether the commit file exists, and whether it is ours."""
    file = LogFile(path, version, _UNKNOWN_SIZE, 0, LogFileName(LogFileKind.COMMIT, version))
    try:
        info = read_commit_info(storage, file)
    except MissingLogFilesError:
        return _CommitState.ABSENT
    except Exception:
        # no answer, or an incomplete file in a store whose put is not atomic
        return _CommitState.UNREADABLE
    return _CommitState.OURS if info is not None and info.txn_id == txn_id else _CommitState.OTHERS


def _reason(error: BaseException | None) -> str:
    text = error.message if isinstance(error, DeltaError) else f"{type(error).__name__}: {error}"
    return text.rstrip(".")
