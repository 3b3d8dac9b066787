"""Log segments: the files of the log that make up one version.

Protocol: "Checkpoints", "Last Checkpoint File", "Log Compaction Files".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from typing import Literal

from delta_pyds.errors import (
    FileNotFoundInStorageError,
    MissingLogFilesError,
    TableNotFoundError,
    TimeTravelError,
)
from delta_pyds.log.last_checkpoint import read_last_checkpoint
from delta_pyds.log.listing import LogFile, LogListing, by_version, commits_by_name, list_log, sort_log
from delta_pyds.protocol.paths import log_directory
from delta_pyds.storage.base import Storage

CheckpointKind = Literal["classic", "multipart", "v2-json", "v2-parquet"]

# The preference among checkpoints of one version: a file with a UUID is never
# replaced; a classic file may be replaced atomically; parts of a multi-part
# checkpoint may come from two writers.
_PREFERENCE: tuple[CheckpointKind, ...] = ("v2-parquet", "v2-json", "classic", "multipart")

# The backward search for a checkpoint: few versions first, then more and more.
_FIRST_WINDOW = 1_000
_WINDOW_GROWTH = 10


@dataclass(frozen=True)
class CheckpointFiles:
    """A complete checkpoint: one file, or all parts in order.

    ``kind``: according to the name. A ``classic`` file may contain a V2
    checkpoint: only its content shows that.
    """

    version: int
    kind: CheckpointKind
    files: tuple[LogFile, ...]


@dataclass(frozen=True)
class LogSegment:
    """The files that the table at ``version`` is reconstructed from.

    ``commits`` are ascending and cover every version after the checkpoint (or
    from 0) up to ``version`` once; a log compaction covers several.
    ``checksum`` and ``last_commit``: those of ``version``, if they exist.
    """

    table_root: str
    version: int
    checkpoint: CheckpointFiles | None
    commits: tuple[LogFile, ...]
    checksum: LogFile | None
    last_commit: LogFile | None


def load_segment(
    storage: Storage, table_root: str, version: int | None = None, *, ignoring: Set[str] = frozenset()
) -> LogSegment:
    """Find the files of one version.

    The segment starts at the newest complete checkpoint up to the version.

    Args:
        storage: the table's storage.
        table_root: the table's path.
        version: by default the latest.
        ignoring: paths of damaged checkpoints and compactions, which are not used.

    Raises: TableNotFoundError; TimeTravelError for a version that cannot be
        reconstructed; MissingLogFilesError for a gap.
    """
    if version is not None and version < 0:
        raise TimeTravelError(
            f"Version {version} of table {table_root!r} does not exist: versions start at 0.",
            table=table_root,
            version=version,
        )
    listing = _list_near(storage, table_root, version, ignoring)
    segment = _assemble(listing, version, ignoring)
    if segment is None:
        # the hint was stale, or files changed during the listing: list everything
        listing = _list_all(storage, table_root, None)
        segment = _assemble(listing, version, ignoring)
    if segment is None and version is not None:
        segment = _assemble(_with_unlisted(storage, listing, version), version, ignoring)
    if segment is None:
        raise _unavailable(listing, version, ignoring)
    return segment


def _with_unlisted(storage: Storage, listing: LogListing, version: int) -> LogListing:
    """The listing with later commits up to the version, looked up by name: a listing may be stale."""
    latest = _latest(listing, frozenset())
    if latest is None:
        return listing
    found = commits_by_name(storage, listing.table_root, latest + 1, version)
    return listing + sort_log(listing.table_root, latest + 1, found)


def latest_version(storage: Storage, table_root: str) -> int:
    """The newest version in the log, according to file names only.

    Raises: TableNotFoundError.
    """
    hint = read_last_checkpoint(storage, table_root)
    latest = None
    if hint is not None:
        latest = _latest(_list_all(storage, table_root, None, start_version=hint.version), frozenset())
    if latest is None:
        listing = _list_all(storage, table_root, None)
        latest = _latest(listing, frozenset())
        if latest is None:
            raise _unavailable(listing, None, frozenset())
    return latest


def earliest_version(listing: LogListing, ignoring: Set[str] = frozenset()) -> int | None:
    """The oldest version that can be reconstructed, from a listing of the whole log; None if no version can."""
    if listing.commits and listing.commits[0].version == 0:
        return 0
    return min((checkpoint.version for checkpoint in complete_checkpoints(listing, ignoring)), default=None)


def complete_checkpoints(listing: LogListing, ignoring: Set[str] = frozenset()) -> list[CheckpointFiles]:
    """All complete checkpoints; the preferred one is last.

    An empty file is an unfinished write, and a multi-part checkpoint needs all its parts.
    """
    checkpoints: list[CheckpointFiles] = []
    parts: dict[tuple[int, int], dict[int, LogFile]] = {}
    for file in listing.checkpoints:
        if file.path in ignoring or file.size_bytes == 0:
            continue
        name = file.name
        if name.part is not None and name.parts is not None:
            parts.setdefault((file.version, name.parts), {})[name.part] = file
        elif name.uuid is None:
            checkpoints.append(CheckpointFiles(file.version, "classic", (file,)))
        else:
            kind: CheckpointKind = "v2-json" if name.suffix == "json" else "v2-parquet"
            checkpoints.append(CheckpointFiles(file.version, kind, (file,)))
    for (version, count), found in parts.items():
        # compares numbers instead of building a range: a name may claim any count
        if len(found) == count and min(found) == 1 and max(found) == count:
            files = tuple(found[part] for part in range(1, count + 1))
            checkpoints.append(CheckpointFiles(version, "multipart", files))
    checkpoints.sort(key=lambda one: (one.version, -_PREFERENCE.index(one.kind), one.files[0].path))
    return checkpoints


def _list_near(storage: Storage, table_root: str, version: int | None, ignoring: Set[str]) -> LogListing:
    """List a small part of the log: from the hint on, or backwards from the version to a checkpoint."""
    hint = read_last_checkpoint(storage, table_root)
    if hint is not None and (version is None or hint.version <= version):
        return _list_all(storage, table_root, version, start_version=hint.version)
    if version is None:
        return _list_all(storage, table_root, None)
    window = _FIRST_WINDOW
    start = max(0, version + 1 - window)
    listing = _list_all(storage, table_root, version, start_version=start)
    while start > 0 and not complete_checkpoints(listing, ignoring):
        window *= _WINDOW_GROWTH
        before, start = start, max(0, start - window)
        listing = _list_all(storage, table_root, before - 1, start_version=start) + listing
    return listing


def _list_all(storage: Storage, table_root: str, end_version: int | None, start_version: int = 0) -> LogListing:
    try:
        return list_log(storage, table_root, start_version, end_version)
    except FileNotFoundInStorageError as error:
        raise no_log(storage, table_root) from error


def _assemble(listing: LogListing, version: int | None, ignoring: Set[str]) -> LogSegment | None:
    """Build the segment from a listing; None if files are missing."""
    checkpoints = complete_checkpoints(listing, ignoring)
    if version is not None:
        checkpoints = [checkpoint for checkpoint in checkpoints if checkpoint.version <= version]
    checkpoint = checkpoints[-1] if checkpoints else None
    target = _latest(listing, ignoring) if version is None else version
    if target is None:
        return None
    first = 0 if checkpoint is None else checkpoint.version + 1
    commits = by_version(listing.commits)
    chosen = _cover(first, target, commits, _nonempty_compactions(listing, ignoring))
    if chosen is None:
        return None
    return LogSegment(
        listing.table_root,
        target,
        checkpoint,
        chosen,
        by_version(listing.checksums).get(target),
        commits.get(target),
    )


def _nonempty_compactions(listing: LogListing, ignoring: Set[str]) -> Iterator[LogFile]:
    """The compactions that can be used. An empty file is an unfinished write, and would hide the commits it covers."""
    return (file for file in listing.compactions if file.path not in ignoring and file.size_bytes > 0)


def _cover(
    first: int, last: int, commits: dict[int, LogFile], compactions: Iterable[LogFile]
) -> tuple[LogFile, ...] | None:
    """The fewest files that cover each version from ``first`` to ``last`` once; None if a version is missing.

    If a compaction saves no file, the single commit is chosen.
    """
    starting: dict[int, list[LogFile]] = {}
    for file in compactions:
        end = file.name.end_version
        if end is not None and first <= file.version <= end <= last:
            starting.setdefault(file.version, []).append(file)
    if not starting:
        if last + 1 - first > len(commits):
            return None
        files = [commits[version] for version in range(first, last + 1) if version in commits]
        return tuple(files) if len(files) == last + 1 - first else None
    # For each version: the number of files that cover it and all later ones, the first of these files, and the last
    # version of that file. Only for versions at which a file starts: a name may claim a range of a billion versions.
    fewest: dict[int, tuple[int, LogFile, int]] = {}
    beginnings = {version for version in commits if first <= version <= last} | starting.keys()
    for version in sorted(beginnings, reverse=True):
        options = [(commits[version], version)] if version in commits else []
        options += [(file, file.name.end_version or version) for file in starting.get(version, ())]
        counted = [
            (1 if end == last else fewest[end + 1][0] + 1, file, end)
            for file, end in options
            if end == last or end + 1 in fewest
        ]
        if counted:
            fewest[version] = min(counted, key=lambda option: option[0])
    chosen: list[LogFile] = []
    version = first
    while version <= last:
        if version not in fewest:
            return None
        _, file, end = fewest[version]
        chosen.append(file)
        version = end + 1
    return tuple(chosen)


def _latest(listing: LogListing, ignoring: Set[str]) -> int | None:
    versions = [listing.commits[-1].version] if listing.commits else []
    checkpoints = complete_checkpoints(listing, ignoring)
    if checkpoints:
        versions.append(checkpoints[-1].version)
    return max(versions, default=None)


# --- errors for a missing segment


def no_log(storage: Storage, table_root: str) -> TableNotFoundError:
    """The error for a missing log directory."""
    try:
        storage.list_from(table_root, "\U0010ffff")
    except FileNotFoundInStorageError:
        if is_local_file(storage, table_root):
            return not_a_table(table_root, "is a file, but a table is a directory")
        return TableNotFoundError(
            f"Path does not exist: there is no directory {table_root!r}, so it is not a Delta table. Check the path.",
            code="DELTA_PATH_DOES_NOT_EXIST",
            table=table_root,
        )
    return not_a_table(table_root, "has no _delta_log directory")


def is_local_file(storage: Storage, table_root: str) -> bool:
    """Whether the path is a file of the local disk. In an object store a file and a table can have the same path."""
    return storage.scheme == "file" and storage.exists(table_root)


def not_a_table(table_root: str, reason: str) -> TableNotFoundError:
    """The error for an existing path that is not a table. ``reason``: continues "it ...", as "has no log"."""
    return TableNotFoundError(
        f"{table_root!r} is not a Delta table: it {reason}. Give the root directory of a Delta table.",
        table=table_root,
    )


def _unavailable(listing: LogListing, version: int | None, ignoring: Set[str]) -> Exception:
    """The error for a version that the log, according to a full listing, cannot reconstruct."""
    root = listing.table_root
    latest = _latest(listing, ignoring)
    if latest is None:
        if not (listing.checkpoints or listing.compactions):
            return not_a_table(root, "has no commit and no checkpoint in its _delta_log directory")
        return MissingLogFilesError(
            f"The log of table {root!r} has no commit and no complete checkpoint, so the table cannot be read. "
            f"Restore the files of {log_directory(root)!r}.",
            code="DELTA_TRUNCATED_TRANSACTION_LOG",
            table=root,
        )
    earliest = earliest_version(listing, ignoring)
    if version is not None and (version > latest or (earliest is not None and version < earliest)):
        available = f"{earliest} to {latest}" if earliest is not None else f"none up to {latest}"
        return TimeTravelError(
            f"Version {version} of table {root!r} cannot be read. Available versions: {available}.",
            table=root,
            version=version,
            earliest=earliest,
            latest=latest,
        )
    target = latest if version is None else version
    before = [one.version for one in complete_checkpoints(listing, ignoring) if one.version <= target]
    if not before and earliest != 0:
        oldest = listing.commits[0].version if listing.commits else target
        return MissingLogFilesError(
            f"The log of table {root!r} starts at version {oldest}, and there is no complete checkpoint at or below "
            f"version {target}, so version {target} cannot be read. Restore the missing files of "
            f"{log_directory(root)!r}.",
            code="DELTA_TRUNCATED_TRANSACTION_LOG",
            table=root,
            version=target,
        )
    first = max(before) + 1 if before else 0
    missing = _first_missing(first, target, listing, ignoring)
    return MissingLogFilesError(
        f"The log of table {root!r} has a gap: the commit of version {missing} is missing, so version {target} "
        f"cannot be read. Restore {missing:020d}.json in {log_directory(root)!r}, or read an earlier version.",
        table=root,
        version=target,
        missing_version=missing,
    )


def _first_missing(first: int, target: int, listing: LogListing, ignoring: Set[str]) -> int:
    commits = by_version(listing.commits)
    ranges = sorted(
        (file.version, file.name.end_version or 0)
        for file in _nonempty_compactions(listing, ignoring)
        if file.version >= first and (file.name.end_version or 0) <= target
    )
    version, reached = first, 0
    covered = first - 1  # the last version in a compaction that starts at ``version`` or earlier
    while version <= target:
        while reached < len(ranges) and ranges[reached][0] <= version:
            covered = max(covered, ranges[reached][1])
            reached += 1
        if version <= covered:
            version = covered + 1
        elif version in commits:
            version += 1
        else:
            return version
    # every version is in some file, but the compactions overlap: no choice of files has each version once
    return next(version for version in range(first, target + 1) if version not in commits)
