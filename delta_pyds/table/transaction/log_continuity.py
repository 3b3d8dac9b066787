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


def check_log_continues(storage: Storage, table_root: str, snapshot: Snapshot | None) -> None:
    """Check that the next version can be committed: the log was neither cleaned up beyond it nor deleted.

    A store would accept a commit under the name of one that was cleaned up, and
    in the log of a deleted table. It is enough to check the commit that was
    read, because the log is cleaned from its start.

    Raises: ProtocolChangedError for a table to be created that has a log; else as ``check_commit_remains``.
    """
    if snapshot is None:
        _check_no_log(storage, table_root)
    else:
        _check_commit(storage, snapshot, snapshot.version, snapshot.segment.last_commit)


def check_commit_remains(
    storage: Storage, snapshot: Snapshot, version: int, commit: LogFile | None, *, may_be_cleaned: bool = False
) -> None:
    """Check that a commit that this transaction has read is still in the log of its table.

    A transaction that lost a race may wait and work for minutes before it tries the next version. The put alone cannot
    distinguish the log of another table, which was created in place of this one.

    ``commit``: the file of the version when it was read; None if it was missing. ``snapshot``: the first version that
    was read. ``may_be_cleaned``: later commits were read without a gap, so the file may be missing.

    Raises: ConcurrentWriteError, UserError for a table that was deleted or replaced; MissingLogFilesError if later
        commits were cleaned up.
    """
    if not is_catalog_managed(storage):  # a catalog knows the table by its id
        _check_commit(storage, snapshot, version, commit, may_be_cleaned=may_be_cleaned)


def _check_commit(
    storage: Storage, snapshot: Snapshot, version: int, commit: LogFile | None, *, may_be_cleaned: bool = False
) -> None:
    """See ``check_commit_remains``. If the file is not certainly the same one, the table's id decides.

    The commits of a table that was created again may have the same sizes. A table that was copied or restored from a
    backup has other files, but remains the same.
    """
    table_root = snapshot.table_root
    try:
        status = storage.status(commit_path(table_root, version))
    except FileNotFoundInStorageError:
        if not may_be_cleaned:
            _check_by_listing(storage, table_root, version)
        _open_same_table(storage, snapshot)
        return
    if commit is not None and status.size_bytes != commit.size_bytes:
        raise _another(table_root, version)
    if is_same_file(storage, commit, status):
        return
    if is_catalog_managed(storage) and not snapshot.is_assumed:
        return  # the file changes when the commit is published
    now = _open_same_table(storage, snapshot, version)
    is_assumed = snapshot.is_assumed and version == snapshot.version
    if is_assumed and (now.protocol, now.metadata) != (snapshot.protocol, snapshot.metadata):
        raise _another(table_root, version)


def is_same_file(storage: Storage, read: LogFile | None, now: LogFile | FileStatus) -> bool:
    """Whether a commit is certainly the file that was read."""
    if read is None or read.size_bytes != now.size_bytes:
        return False
    if read.generation or now.generation:
        if read.generation == now.generation:
            return True
        # a local file gets another one when its temporary name is deleted; a time in whole seconds may be rounded
        if storage.scheme != "file" or now.modification_time_ms % 1000 == 0:
            return False
    return 0 < read.modification_time_ms == now.modification_time_ms


def _open_same_table(storage: Storage, snapshot: Snapshot, version: int | None = None) -> Snapshot:
    """Open a version, by default the latest. Raises: UserError if it is another table's."""
    now = open_snapshot(storage, snapshot.table_root, version)
    if now.metadata.id != snapshot.metadata.id:
        raise replaced_meanwhile(snapshot.table_root)
    return now


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


def _check_by_listing(storage: Storage, root: str, version: int) -> None:
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
