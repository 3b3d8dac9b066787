"""Listings of ``_delta_log``: file names parsed and sorted by kind. Protocol: "File Types"."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec

from delta_pyds.errors import FileNotFoundInStorageError
from delta_pyds.protocol.paths import (
    LogFileKind,
    LogFileName,
    commit_path,
    log_directory,
    parse_log_name,
    version_prefix,
)
from delta_pyds.storage.base import FileStatus, Storage

_SETTLED_MS = 2_000


# a Struct, because a log may have a hundred thousand files, and creating a frozen dataclass takes ten times as long
class LogFile(msgspec.Struct, frozen=True):
    """A file of the log. ``version``: its first version; a compaction's last one is ``name.end_version``."""

    path: str
    version: int
    size_bytes: int
    modification_time_ms: int
    name: LogFileName
    generation: str = ""
    regular: bool = True


def is_settled(file: LogFile | FileStatus) -> bool:
    """Whether every file with this name, size, time and generation certainly has the same content.

    Without a generation, a file that is replaced within the clock's resolution looks the same.
    """
    return bool(file.generation) or 0 < file.modification_time_ms < time.time() * 1000 - _SETTLED_MS


@dataclass(frozen=True)
class LogListing:
    """The files of the log from ``start_version`` on, each kind ascending by version.

    Only a compaction may extend beyond the end version of the listing. ``commits`` include those that are not regular
    files: reading one is an error, but skipping it would show an older table. ``unusable``: all other names that are
    not regular files; readers ignore them.
    """

    table_root: str
    start_version: int
    commits: tuple[LogFile, ...] = ()
    compactions: tuple[LogFile, ...] = ()
    checkpoints: tuple[LogFile, ...] = ()
    checksums: tuple[LogFile, ...] = ()
    unusable: tuple[LogFile, ...] = ()

    def __add__(self, later: LogListing) -> LogListing:
        """The listing joined with that of later versions."""
        return LogListing(
            self.table_root,
            self.start_version,
            self.commits + later.commits,
            self.compactions + later.compactions,
            self.checkpoints + later.checkpoints,
            self.checksums + later.checksums,
            self.unusable + later.unusable,
        )


def list_log(
    storage: Storage,
    table_root: str,
    start_version: int = 0,
    end_version: int | None = None,
    *,
    missing_ok: bool = False,
) -> LogListing:
    """List the log once, from ``start_version`` to ``end_version``, both included.

    Names that the protocol does not define are skipped. The listing stops at
    the first file after ``end_version``.

    Raises: FileNotFoundInStorageError if the log directory does not exist. With ``missing_ok`` the listing is empty.
    """
    upto = None if end_version is None else version_prefix(end_version + 1)
    try:
        files = log_files(storage.list_from(log_directory(table_root), version_prefix(start_version)), upto)
        return sort_log(table_root, start_version, files)
    except FileNotFoundInStorageError:
        if not missing_ok:
            raise
        return LogListing(table_root, start_version)


def log_files(statuses: Iterable[FileStatus], before: str | None = None) -> Iterator[LogFile]:
    """The files of the log in a listing, up to the name ``before``; the rest of the listing is not read."""
    for status in statuses:
        file_name = status.name
        if file_name > _AFTER_ALL_VERSIONS or (before is not None and file_name >= before):
            return
        name = parse_log_name(file_name)
        if name is not None:
            yield _log_file(status, name)


def commit_by_name(storage: Storage, table_root: str, version: int) -> LogFile:
    """The commit of a version, without a listing.

    Raises: FileNotFoundInStorageError if it does not exist.
    """
    path = commit_path(table_root, version)
    status = storage.status(path)
    return _log_file(status, LogFileName(LogFileKind.COMMIT, version))


def commits_by_name(storage: Storage, table_root: str, first: int, last: int | None = None) -> Iterator[LogFile]:
    """Yield the commits from ``first`` on, up to ``last`` or the first missing one. For stale listings."""
    version = first
    while last is None or version <= last:
        try:
            yield commit_by_name(storage, table_root, version)
        except FileNotFoundInStorageError:
            return
        version += 1


def _log_file(status: FileStatus, name: LogFileName) -> LogFile:
    return LogFile(
        status.path,
        name.version,
        status.size_bytes,
        status.modification_time_ms,
        name,
        status.generation,
        status.regular,
    )


def sort_log(table_root: str, start_version: int, files: Iterable[LogFile]) -> LogListing:
    """The files of a listing, by kind."""
    found: dict[LogFileKind, list[LogFile]] = {kind: [] for kind in LogFileKind}
    unusable = []
    for file in files:
        if file.regular or file.name.kind is LogFileKind.COMMIT:
            found[file.name.kind].append(file)
        else:
            unusable.append(file)
    return LogListing(
        table_root,
        start_version,
        tuple(found[LogFileKind.COMMIT]),
        tuple(found[LogFileKind.COMPACTION]),
        tuple(found[LogFileKind.CHECKPOINT]),
        tuple(found[LogFileKind.CHECKSUM]),
        tuple(unusable),
    )


# ":" follows "9", so names of all versions sort before it
_AFTER_ALL_VERSIONS = ":"


def by_version(files: Iterable[LogFile]) -> dict[int, LogFile]:
    """The files by version, for commits and checksums: a version has at most one of each."""
    return {file.version: file for file in files}
