"""One look at ``_delta_log``, sorted by what the names say. Protocol: "File Types"."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from delta_pyds.protocol.paths import LogFileKind, LogFileName, log_directory, parse_log_name, version_prefix
from delta_pyds.storage.base import Storage


# a Struct, for a log may have a hundred thousand files: a frozen dataclass takes ten times as long to make
class LogFile(msgspec.Struct, frozen=True):
    """A file of the log. ``version`` is its first one; a compaction's last is ``name.end_version``."""

    path: str
    version: int
    size_bytes: int
    modification_time_ms: int
    name: LogFileName
    generation: str = ""


@dataclass(frozen=True)
class LogListing:
    """The files of the log from ``start_version`` on, each kind ascending by version.

    A compaction may reach beyond ``end_version``; nothing else does.
    """

    table_root: str
    start_version: int
    commits: tuple[LogFile, ...] = ()
    compactions: tuple[LogFile, ...] = ()
    checkpoints: tuple[LogFile, ...] = ()
    checksums: tuple[LogFile, ...] = ()

    def __add__(self, later: LogListing) -> LogListing:
        """Join the listing of the versions that follow."""
        return LogListing(
            self.table_root,
            self.start_version,
            self.commits + later.commits,
            self.compactions + later.compactions,
            self.checkpoints + later.checkpoints,
            self.checksums + later.checksums,
        )


def list_log(storage: Storage, table_root: str, start_version: int = 0, end_version: int | None = None) -> LogListing:
    """List the log once, from ``start_version`` to ``end_version`` inclusive.

    Names that the protocol does not know are passed over. The listing stops at
    the first file beyond ``end_version``.

    Raises: FileNotFoundInStorageError where there is no log directory.
    """
    found: dict[LogFileKind, list[LogFile]] = {kind: [] for kind in LogFileKind}
    for status in storage.list_from(log_directory(table_root), version_prefix(start_version)):
        file_name = status.name
        if file_name > _AFTER_ALL_VERSIONS:
            break
        name = parse_log_name(file_name)
        if name is None:
            continue
        if end_version is not None and name.version > end_version:
            break
        found[name.kind].append(
            LogFile(status.path, name.version, status.size_bytes, status.modification_time_ms, name, status.generation)
        )
    return LogListing(
        table_root,
        start_version,
        tuple(found[LogFileKind.COMMIT]),
        tuple(found[LogFileKind.COMPACTION]),
        tuple(found[LogFileKind.CHECKPOINT]),
        tuple(found[LogFileKind.CHECKSUM]),
    )


# ":" follows "9": no name of a version sorts after it
_AFTER_ALL_VERSIONS = ":"


def by_version(files: Iterable[LogFile]) -> dict[int, LogFile]:
    """Index commits or checksums, of which a version has one."""
    return {file.version: file for file in files}
