"""Checks that the log is still the one that a snapshot was read from. Protocol: "Creation of New Log Entries"."""

from __future__ import annotations

from delta_pyds.catalog.managed import is_catalog_managed
from delta_pyds.errors import (
    ConcurrentWriteError,
    FileNotFoundInStorageError,
    MissingLogFilesError,
    ProtocolChangedError,
    UserError,
)
from delta_pyds.log.listing import LogFile, list_log
from delta_pyds.log.segment import complete_checkpoints
from delta_pyds.protocol.paths import commit_path
from delta_pyds.storage.base import FileStatus, Storage
from delta_pyds.table.snapshot import Snapshot, open_snapshot
from delta_pyds.table.transaction.conflict import TransactionInfo, WinningCommit

_ROUNDED_MS = 1000


def check_log_continues(storage: Storage, table_root: str, snapshot: Snapshot | None) -> None:
    """Check that the next version can be committed: the log was neither cleaned up beyond it nor deleted.

    A store would accept a commit under the name of one that was cleaned up, and
    in the log of a deleted table. It is enough to check the commit that was
    read, because the log is cleaned from its start.

    Raises: ProtocolChangedError for a table to be created that has a log; ConcurrentWriteError, UserError for a
        table that was deleted or replaced; MissingLogFilesError if later commits were cleaned up.
    """
    if snapshot is None:
        _check_no_log(storage, table_root)
        return
    last = snapshot.segment.last_commit
    try:
        status = storage.status(commit_path(table_root, snapshot.version))
    except FileNotFoundInStorageError:
        _check_by_listing(storage, snapshot)
        return
    if last is not None and status.size_bytes != last.size_bytes:
        raise _another(snapshot.table_root, snapshot.version)
    if snapshot.is_assumed and last is not None and status.generation != last.generation:
        # a copy of the same commit, or another table's
        now = open_snapshot(storage, table_root, snapshot.version)
        if now.metadata.id != snapshot.metadata.id:
            raise replaced_meanwhile(table_root)
        if (now.protocol, now.metadata) != (snapshot.protocol, snapshot.metadata):
            raise _another(snapshot.table_root, snapshot.version)


def check_commit_remains(storage: Storage, table_root: str, commit: LogFile, *, may_be_cleaned: bool = False) -> None:
    """Check that a commit that this transaction has read is still the same file.

    A transaction that lost a race may wait and work for minutes before it tries the next version. The put alone cannot
    distinguish the log of another table, which was created in place of this one.

    ``may_be_cleaned``: later commits were read without a gap, so the file may be missing.

    Raises: ConcurrentWriteError if it is missing or another one.
    """
    if is_catalog_managed(storage):
        return  # the catalog knows the table by its id, and a commit's time changes when it is published
    try:
        status = storage.status(commit.path)
    except FileNotFoundInStorageError:
        if may_be_cleaned:
            return
        raise _another(table_root, commit.version) from None
    check_same_commit(table_root, commit, status)


def check_same_commit(table_root: str, commit: LogFile, now: LogFile | FileStatus) -> None:
    """Check that a commit that this transaction has read is the file that the store shows now.

    Raises: ConcurrentWriteError.
    """
    # the generation of a local file changes when its temporary name is deleted; listings and stores round times
    times = now.modification_time_ms, commit.modification_time_ms
    if now.size_bytes != commit.size_bytes or (all(times) and abs(times[0] - times[1]) > _ROUNDED_MS):
        raise _another(table_root, commit.version)


def _check_no_log(storage: Storage, table_root: str) -> None:
    listing = list_log(storage, table_root, missing_ok=True)
    files = (*listing.commits, *listing.checkpoints)
    # version 0 is checked by the put, which can distinguish its own commit from another
    later = [file for file in files if file.version > 0]
    if later:
        raise ProtocolChangedError(
            f"table {table_root!r} cannot be created: its log already has {later[0].path!r}. Run the operation again; "
            "it will write to the existing table.",
            table=table_root,
            version=later[0].version,
        )


def _check_by_listing(storage: Storage, snapshot: Snapshot) -> None:
    root, version = snapshot.table_root, snapshot.version
    listing = list_log(storage, root, version, missing_ok=True)
    later = [file.version for file in listing.commits if file.version > version]
    if later and later[0] > version + 1:
        raise MissingLogFilesError(
            f"The log of table {root!r} was cleaned up while this transaction ran: it read version {version}, but the "
            f"first remaining commit after it is {later[0]}. Run the operation again.",
            table=root,
            version=version,
            missing_version=version + 1,
        )
    checkpoints = complete_checkpoints(listing)
    if any(one.version > version + len(later) for one in checkpoints):
        raise MissingLogFilesError(
            f"The log of table {root!r} was cleaned up while this transaction ran: it read version {version}, but the "
            f"log has a checkpoint of version {checkpoints[-1].version} without the commits before it. Run the "
            "operation again.",
            table=root,
            version=version,
            missing_version=version + len(later) + 1,
        )
    if not later and not any(one.version == version for one in checkpoints):
        raise _another(root, version)


def _another(table_root: str, version: int) -> ConcurrentWriteError:
    return ConcurrentWriteError(
        f"Nothing was written to table {table_root!r}: version {version}, which this transaction read, is no longer in "
        "its log. The table was deleted, or replaced by another one. Run the operation again on the current table.",
        table=table_root,
        version=version,
    )


def replaced_meanwhile(table_root: str) -> UserError:
    """The error of a command whose table was replaced by another one after the command was planned."""
    return UserError(
        f"the table at {table_root} was replaced by another one while this command ran, so nothing was committed. Run "
        "it again.",
        code="DELTA_TABLE_ID_MISMATCH",
        table=table_root,
    )


def created_meanwhile(current: TransactionInfo, winner: WinningCommit) -> ProtocolChangedError:
    """The error of a transaction that creates a table, if another transaction has created it first."""
    return ProtocolChangedError(
        f"{current.operation} could not create table {current.table_root!r}: another writer created it first (version "
        f"{winner.version}, {winner.operation}). Run the operation again; it will write to the existing table. To let "
        "many writers start at once, create the table before them.",
        operation=current.operation,
        table=current.table_root,
        version=winner.version,
    )
