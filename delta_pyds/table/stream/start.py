"""The start of a stream without a checkpoint. Protocol: "Delta Log Entries"."""

from __future__ import annotations

from delta_pyds.errors import FileNotFoundInStorageError, TimeTravelError
from delta_pyds.log.listing import LogListing, list_log
from delta_pyds.log.segment import latest_version
from delta_pyds.storage.base import Storage
from delta_pyds.table.configuration import TableConfiguration
from delta_pyds.table.history import CommitTimes


def check_starting_version(storage: Storage, table_root: str, version: int) -> None:
    """Make sure that a stream can begin with a version: its commit is in the log, or it is the next one.

    Raises: TimeTravelError naming the first and the last version that would do; TableNotFoundError.
    """
    if any(file.version == version for file in _list(storage, table_root, version).commits[:1]):
        return
    latest = latest_version(storage, table_root)
    if version == latest + 1:
        return
    commits = [file.version for file in _list(storage, table_root, 0).commits]
    # a gap in what is left is met, and reported, when the stream comes to it
    if version in commits:
        return
    earliest = commits[0] if commits else latest + 1
    raise TimeTravelError(
        f"A stream of table {table_root!r} cannot begin with version {version}, as startingVersion says: its log has "
        f"the commits of versions {earliest} to {latest}. Give one of these, or {latest + 1} or 'latest' to begin "
        "with the next commit; or leave startingVersion out, to read the table as it is first.",
        table=table_root,
        version=version,
        earliest=earliest,
        latest=latest,
    )


def version_from(storage: Storage, read: TableConfiguration, timestamp_ms: int) -> int:
    """The first version committed at the time or later, of those whose commits are there.

    Raises: TimeTravelError (DELTA_TIMESTAMP_GREATER_THAN_COMMIT) for a time after the last commit; TableNotFoundError.
    """
    root = read.table_root
    latest = latest_version(storage, root)
    times = CommitTimes(storage, root, properties=read.properties, latest_version=latest)
    try:
        before = times.version_at(timestamp_ms)
    except TimeTravelError as error:
        if error.code != "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION":
            raise
        # commits that were left from before the first version that can be recreated are not whole
        first = times.earliest or 0
        return min((version for version in times.commits if version >= first), default=latest + 1)
    return before if times.commit_timestamp(before) == timestamp_ms else before + 1


def _list(storage: Storage, table_root: str, first: int) -> LogListing:
    try:
        return list_log(storage, table_root, first)
    except FileNotFoundInStorageError:
        return LogListing(table_root, first)
