"""Staged commits: complete commits beside the log, which become versions only if the catalog ratifies them.

Protocol: "Delta Log Entries", "Metadata Cleanup" of catalog-managed tables.
"""

from __future__ import annotations

import contextlib
import re
import uuid

from delta_pyds.errors import FileNotFoundInStorageError, NothingWrittenError, StorageError
from delta_pyds.protocol.paths import join, log_directory, version_prefix
from delta_pyds.storage.base import FileStatus, Storage

STAGING_DIRECTORY = "_staged_commits"
# temporary names that storages give to incomplete files
_LEFTOVER = re.compile(r"\.[0-9a-f]{32}\.tmp")
_NAME = re.compile(r"(\d{20})\.[0-9a-fA-F-]{36}\.json")
# a reader that asked the catalog this long ago has read the staged files by now
_KEPT_MS = 24 * 3_600_000


def staging_directory(table_root: str) -> str:
    return join(log_directory(table_root), STAGING_DIRECTORY)


def staged_path(table_root: str, file_name: str) -> str:
    """The path of a staged commit.

    Raises: ValueError for any other name: it may come from a catalog, and must not lead elsewhere.
    """
    if staged_version(file_name) is None:
        raise ValueError(f"{file_name!r} is not a name of a staged commit.")
    return join(staging_directory(table_root), file_name)


def staged_version(file_name: str) -> int | None:
    """The version of a staged commit's name; None for any other name."""
    match = _NAME.fullmatch(file_name)
    return None if match is None else int(match[1])


def prepare_staging(store: Storage, table_root: str) -> None:
    """Create the directory of a new table's staged commits, if the store has directories.

    Other engines, such as delta-spark 4.4, do not create it, and their writes would fail.
    """
    store.make_directory(staging_directory(table_root))


def stage_commit(store: Storage, table_root: str, version: int, data: bytes) -> FileStatus:
    """Write a commit under a unique name.

    Raises: NothingWrittenError if the file may be missing or incomplete; it is then never proposed to a catalog.
    """
    path = join(staging_directory(table_root), f"{version_prefix(version)}.{uuid.uuid4()}.json")
    try:
        store.put_if_absent(path, data)
        return store.status(path)
    except NothingWrittenError:
        raise
    except Exception as error:
        # the file may be complete although the answer was lost
        with contextlib.suppress(Exception):
            if store.read(path) == data:
                return store.status(path)
        raise NothingWrittenError(
            f"Version {version} of table {table_root!r} was not committed: {path!r} could not be written "
            f"({type(error).__name__}: {error}). Run the operation again.",
            table=table_root,
            version=version,
            path=path,
        ) from error


def discard_staged(store: Storage, table_root: str, file_name: str) -> None:
    """Delete a staged commit of this process that never becomes a version. If it fails, a later clean-up deletes it."""
    with contextlib.suppress(StorageError):
        store.delete(staged_path(table_root, file_name), below=table_root)


def clean_staged(store: Storage, table_root: str, cutoff_version: int, *, needed: frozenset[str], now_ms: int) -> None:
    """Delete staged commits that no version needs any longer.

    Invariants: a deleted commit is a day old, and its version is at most ``cutoff_version``. So the catalog
    can no longer ratify it, and no reader still reads it. What a killed writer left half written has no version.

    ``needed``: the names that the catalog still returns.

    Protocol: "Metadata Cleanup".
    """
    try:
        listed = list(store.list_from(staging_directory(table_root), ""))
    except FileNotFoundInStorageError:
        return
    expired = []
    for status in listed:
        version = -1 if _LEFTOVER.fullmatch(status.name) else staged_version(status.name)
        if version is None or version > cutoff_version or not status.regular or status.name in needed:
            continue
        if status.modification_time_ms < now_ms - _KEPT_MS:
            expired.append(status.path)
    if expired:
        # another engine may have published the versions a moment ago
        store.make_all_durable([log_directory(table_root)])
    for path in expired:
        store.delete(path, below=table_root)
