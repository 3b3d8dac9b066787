"""Committing a version to the log, and reading the commits of others. Protocol: "Delta Log Entries".

``Committer`` is the interface that a transaction commits through. ``FileSystemCommitter`` is the one of tables whose
log alone says which versions there are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
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
from delta_pyds.log.listing import LogFile, commit_by_name, list_log
from delta_pyds.protocol.actions import DomainMetadata, Metadata, Protocol, SingleAction
from delta_pyds.protocol.paths import LogFileKind, LogFileName, commit_path, log_directory
from delta_pyds.storage.base import Storage

# Between the attempts to put a commit whose outcome is unknown, or to see it.
_PAUSES_S = (0.1, 0.5, 2.0, 5.0)
_UNKNOWN_SIZE = 1 << 62


@dataclass(frozen=True)
class LoggedCommit:
    """A commit that is in the log, with its actions in the order of the file."""

    version: int
    file: LogFile
    actions: list[SingleAction]


@dataclass(frozen=True)
class ProposedCommit:
    """A commit that one transaction proposes as one version.

    Invariants: ``data`` holds a commitInfo with the ``txnId`` ``txn_id``, which no other transaction ever used.
    ``protocol`` and ``metadata``: what the commit changes of them, None where it leaves them as they are;
    ``metadata_before``: what a metadata that it changes was. ``domains``: the metadata domains that it sets or removes.
    ``timestamp_ms``: the time of the commit in the table's history, milliseconds since the epoch.
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

    Invariants: of any number of commits that are proposed as one version one at most is made it; a version that was
    made never changes; versions have no gap.
    """

    def propose(self, commit: ProposedCommit) -> bool:
        """Make ``commit`` its version: True if it is, False if the version is another commit's.

        Raises: CommitOutcomeUnknownError if nobody can tell; NothingWrittenError if the version was not made.
        """
        ...

    def commits_after(self, version: int, *, known_version: int | None = None) -> list[LoggedCommit]:
        """Every commit after ``version``, ascending and without a gap. ``known_version``: one that must exist.

        Raises: MissingLogFilesError for a missing commit; CorruptLogError for one that cannot be understood.
        """
        ...

    def publish(self, version: int) -> bool:
        """See that each version up to this one is a file of the log, which a checkpoint may then stand for.

        Returns: False where one of them cannot be, for now. Raises: as opening the table.
        Protocol: "Maintenance Operations on Catalog-managed Tables".
        """
        ...


class FileSystemCommitter:
    """The log itself decides, by put-if-absent of ``_delta_log/<version>.json``.

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

    def commits_after(self, version: int, *, known_version: int | None = None) -> list[LoggedCommit]:
        return commits_after(self._storage, self._table_root, version, known_version=known_version)

    def publish(self, version: int) -> bool:
        return version >= 0  # it is committed by being one


class _Seen(Enum):
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
    """Make ``data`` the commit of ``version``: True if it is, False if another writer made that version.

    ``data`` holds a commitInfo with the ``txnId`` ``txn_id``, which no other
    transaction ever used: by it an unknown outcome is settled, such as that
    of a put that timed out. What is absent is put again, which is safe: of any
    number of puts one has an effect.

    Raises: CommitOutcomeUnknownError if it cannot be settled; NothingWrittenError
        if the store refused and the version is not there. After any other
        exception too (an interrupt, say) the commit may be in the log.
    """
    path = commit_path(table_root, version)
    failure: BaseException | None = None
    for pause in (*_PAUSES_S, None):
        refusal: NothingWrittenError | None = None
        try:
            if version == 0:
                # whoever makes the directories just now may not have synced them yet
                storage.make_directory(log_directory(table_root))
            storage.put_if_absent(path, data)
            return True
        except FileExistsInStorageError as error:
            # also the answer to a put that the client repeated after it had succeeded
            failure = failure or error
        except NothingWrittenError as error:
            refusal = error
        except Exception as error:  # whatever a store's client raises: the file may be there
            failure = error
        seen = _owner_of(storage, path, version, txn_id)
        if seen is _Seen.OTHERS:
            return False
        if seen is _Seen.OURS:
            try:
                # what failed may have been to see that it lasts
                storage.make_all_durable([log_directory(table_root)])
                return True
            except StorageError as error:
                failure, refusal = error, None
        if refusal is not None and failure is None and seen is _Seen.ABSENT:
            raise refusal
        failure = failure or refusal
        if pause is not None:
            sleep(pause)
    raise CommitOutcomeUnknownError(
        f"It is not known whether version {version} of table {table_root!r} was committed: writing {path!r} failed "
        f"({_say(failure)}), and it could not be found out whether the file exists. If it does and holds the txnId "
        f"{txn_id}, this transaction is in the table; if not, nothing happened. Do not delete the data files of this "
        "transaction, and look at the log before you write the same data again.",
        table=table_root,
        version=version,
        path=path,
        txn_id=txn_id,
    ) from failure


def commits_after(
    storage: Storage, table_root: str, after_version: int, *, known_version: int | None = None
) -> list[LoggedCommit]:
    """Every commit after ``after_version``, ascending and without a gap.

    Lists the log from there on only. A listing may be stale: ``known_version``
    is one that must exist (a put met it), and what the listing does not show
    up to it and right after it is read by name.

    Raises: MissingLogFilesError for a missing commit, because the log was cleaned up or damaged; CorruptLogError for
    one that cannot be understood.
    """
    first = after_version + 1
    listed, last = _listed(storage, table_root, first)
    known = -1 if known_version is None else known_version
    files = [
        listed.get(version) or _by_name(storage, table_root, version, after_version)
        for version in range(first, max(last, known) + 1)
    ]
    if known > last:  # the listing is stale, and may be so by more than that one
        files += _further(storage, table_root, known + 1)
    return [LoggedCommit(file.version, file, actions) for file, actions in read_commits(storage, files)]


def _listed(storage: Storage, table_root: str, first: int) -> tuple[dict[int, LogFile], int]:
    """The commits that a listing shows, and the newest version that it proves."""
    try:
        listing = list_log(storage, table_root, first)
    except FileNotFoundInStorageError:
        if first > 0:
            raise
        return {}, -1  # a table that is being created
    commits = {file.version: file for file in listing.commits}
    proven = [*commits, *(file.version for file in listing.checkpoints)]
    return commits, max(proven, default=first - 1)


def _by_name(storage: Storage, table_root: str, version: int, after_version: int) -> LogFile:
    try:
        return commit_by_name(storage, table_root, version)
    except FileNotFoundInStorageError as error:
        raise MissingLogFilesError(
            f"The commit of version {version} of table {table_root!r} is gone, although later versions exist, so what "
            f"happened since version {after_version} is not known. If the log was cleaned up because this "
            f"transaction took so long, run it again; else restore {commit_path(table_root, version)!r}.",
            table=table_root,
            version=version,
            missing_version=version,
        ) from error


def _further(storage: Storage, table_root: str, version: int) -> Iterator[LogFile]:
    while True:
        try:
            yield commit_by_name(storage, table_root, version)
        except FileNotFoundInStorageError:
            return
        version += 1


def _owner_of(storage: Storage, path: str, version: int, txn_id: str) -> _Seen:
    """The transaction that the commit file belongs to."""
    file = LogFile(path, version, _UNKNOWN_SIZE, 0, LogFileName(LogFileKind.COMMIT, version))
    try:
        info = read_commit_info(storage, file)
    except MissingLogFilesError:
        return _Seen.ABSENT
    except Exception:
        # no answer, or a file that is not whole yet in a store that breaks its promise
        return _Seen.UNREADABLE
    return _Seen.OURS if info is not None and info.txn_id == txn_id else _Seen.OTHERS


def _say(error: BaseException | None) -> str:
    text = error.message if isinstance(error, DeltaError) else f"{type(error).__name__}: {error}"
    return text.rstrip(".")
