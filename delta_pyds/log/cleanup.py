"""Log cleanup: deletes log files that are older than the retention. Protocol: "Metadata Cleanup"."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice

from delta_pyds.errors import DeltaError, FileNotFoundInStorageError, ProtocolError
from delta_pyds.log.checkpoint_part import CheckpointPart
from delta_pyds.log.checkpoint_reader import Checkpoint
from delta_pyds.log.checkpoint_writer import write_compatibility_checkpoint
from delta_pyds.log.commit_reader import read_commit, read_commit_info
from delta_pyds.log.commit_times import in_commit_timestamp, monotonic_file_times
from delta_pyds.log.listing import LogFile, LogListing, list_log, log_files, sort_log
from delta_pyds.log.segment import CheckpointFiles, complete_checkpoints, earliest_version
from delta_pyds.protocol.actions import Protocol, Sidecar
from delta_pyds.protocol.features import Feature, active_properties, supports, supports_for_readers
from delta_pyds.protocol.paths import (
    SIDECAR_DIRECTORY,
    LogFileKind,
    join,
    log_directory,
    resolve_sidecar_path,
)
from delta_pyds.protocol.properties import Property, TableProperties
from delta_pyds.redaction import safe_logger
from delta_pyds.storage.base import FileStatus, Storage

_logger = safe_logger(__name__)

_DAY_MS = 24 * 3_600_000
# After this many files, the listing checks whether it has reached the cutoff.
_LISTED_AT_ONCE = 2_000
# Deletions at a time in a remote store.
_THREADS = 16

# the storages' temporary names of incomplete files
_LEFTOVER = re.compile(r"\.[0-9a-f]{32}\.tmp")


def clean_log(
    storage: Storage,
    table_root: str,
    *,
    retention_ms: int,
    now_ms: int,
    configuration: Mapping[str, str | None],
    protocol: Protocol,
    granularity_ms: int = _DAY_MS,
    truncate: bool = False,
    cleaned_before: Callable[[int], None] | None = None,
) -> int:
    """Delete the files of the log that no version within the retention needs.

    The history then starts at the newest checkpoint at or before the cutoff:
    now minus the retention, rounded down (by default to midnight UTC). All
    versions from this checkpoint on stay readable, and their times do not
    change. The checkpoint is read before anything is deleted. Files are deleted
    from the oldest version on, so that a process that dies leaves a log without a gap.

    Args:
        storage: the table's storage.
        table_root: the table's path.
        retention_ms: the retention.
        now_ms: the current time in milliseconds since the epoch.
        configuration: the properties of the latest version.
        protocol: the protocol of the latest version.
        granularity_ms: the cutoff is a multiple of it.
        truncate: the history may also start at the first version after the cutoff, if that has a checkpoint. Then the
            version that was current at the cutoff is deleted too.
        cleaned_before: called with the version at which the history then starts, if versions before it may be deleted.

    Returns: the number of deleted files.
    Raises: StorageError; CorruptLogError for a commit without its required timestamp.
    """
    properties = active_properties(protocol, configuration)
    cutoff_ms = now_ms - retention_ms - (now_ms - retention_ms) % granularity_ms
    # files of a process that is still working are younger
    abandoned_ms = min(cutoff_ms, now_ms - now_ms % _DAY_MS - _DAY_MS)
    leftovers: list[str] = []
    listing = _list_old(storage, table_root, cutoff_ms, properties, leftovers, abandoned_ms)
    _delete(storage, table_root, leftovers)
    keep_from = _first_to_keep(storage, listing, cutoff_ms, properties, truncate=truncate)
    expired = [] if keep_from is None else _expired(listing, keep_from.version)
    protected = protected_before(configuration, protocol)
    if expired and keep_from is not None and keep_from.version < protected:
        _logger.info(
            "The log of table %s is not cleaned up below version %d: the table protects its checkpoints before version "
            "%d, and this cleanup would delete only some of them.",
            table_root,
            keep_from.version,
            protected,
        )
        return len(leftovers)
    has_v2 = supports_for_readers(protocol, Feature.V2_CHECKPOINT)
    if expired and keep_from is not None and has_v2:
        # before deleting, so that readers without V2 checkpoints always find a checkpoint
        write_compatibility_checkpoint(storage, table_root, keep_from)
    if expired:
        # another engine may not have synced the files that stay
        storage.make_all_durable([log_directory(table_root)])
    _delete(storage, table_root, [file.path for file in expired])
    sidecars: list[str] = []
    if has_v2 or any(file.name.kind is LogFileKind.CHECKPOINT for file in expired):
        sidecars = _unreferenced_sidecars(storage, table_root, keep_from, abandoned_ms)
        _delete(storage, table_root, sidecars)
    if cleaned_before is not None and keep_from is not None and keep_from.version >= protected:
        cleaned_before(keep_from.version)
    return len(leftovers) + len(expired) + len(sidecars)


def _expired(listing: LogListing, version: int) -> list[LogFile]:
    """The files that this version and later ones do not need, oldest first."""
    expired = [
        *(file for file in listing.commits if file.version < version),
        *(file for file in listing.checksums if file.version < version),
        *(file for file in listing.checkpoints if file.version < version),
        # a compaction that starts at or before this version is useless for the versions that stay
        *(file for file in listing.compactions if file.version <= version),
    ]
    return sorted(expired, key=lambda file: (file.version, file.path))


# --- expired versions


def _list_old(
    storage: Storage,
    table_root: str,
    cutoff_ms: int,
    properties: TableProperties,
    leftovers: list[str],
    abandoned_ms: int,
) -> LogListing:
    """The log from its first file to a commit after the cutoff, which is usually a small part of it.

    Adds to ``leftovers`` the temporary files of writers that died during a put.
    """

    def collect_leftovers(statuses: Iterator[FileStatus]) -> Iterator[FileStatus]:
        for status in statuses:
            if status.regular and _LEFTOVER.fullmatch(status.name) and status.modification_time_ms < abandoned_ms:
                leftovers.append(status.path)
            if status.regular:
                yield status

    try:
        # "." sorts before every version
        files = log_files(collect_leftovers(storage.list_from(log_directory(table_root), ".")))
    except FileNotFoundInStorageError:
        return LogListing(table_root, 0)
    listed: list[LogFile] = []
    while chunk := list(islice(files, _LISTED_AT_ONCE)):
        listed += chunk
        commits = [file for file in chunk if file.name.kind is LogFileKind.COMMIT]
        if commits and _is_after(storage, commits[-1], cutoff_ms, properties):
            break
    return sort_log(table_root, 0, listed)


def _is_after(storage: Storage, file: LogFile, cutoff_ms: int, properties: TableProperties) -> bool:
    if not _by_in_commit_timestamps(cutoff_ms, properties):
        return file.modification_time_ms > cutoff_ms
    return file.version >= _enabled_at(properties) and _in_commit_time(storage, file) > cutoff_ms


def _by_in_commit_timestamps(cutoff_ms: int, properties: TableProperties) -> bool:
    """Whether in-commit timestamps, not file times, decide what has expired. The two are never compared."""
    enabled_ms = properties.in_commit_timestamp_enablement_timestamp_ms
    return properties.in_commit_timestamps and (enabled_ms is None or enabled_ms <= cutoff_ms)


def _enabled_at(properties: TableProperties) -> int:
    return properties.in_commit_timestamp_enablement_version or 0


def _in_commit_time(storage: Storage, file: LogFile) -> int:
    return in_commit_timestamp(read_commit_info(storage, file), file)


def _first_to_keep(
    storage: Storage, listing: LogListing, cutoff_ms: int, properties: TableProperties, *, truncate: bool
) -> CheckpointFiles | None:
    """The newest checkpoint at which the history can start.

    Its version is at most that of the newest commit up to the cutoff; with ``truncate`` it may be one higher.
    """
    if not listing.checkpoints:
        return None
    times = monotonic_file_times(listing.commits, earliest_version(listing))
    last_old = _newest_old_commit(storage, listing.commits, times, cutoff_ms, properties)
    if last_old is None:
        return None
    for checkpoint in reversed(complete_checkpoints(listing)):
        if (
            checkpoint.version <= last_old + truncate
            and _keeps_times(checkpoint.version, listing.commits, times, properties)
            and _is_complete(storage, listing.table_root, checkpoint)
        ):
            return checkpoint
    return None


def _newest_old_commit(
    storage: Storage,
    commits: Sequence[LogFile],
    times: Mapping[int, int],
    cutoff_ms: int,
    properties: TableProperties,
) -> int | None:
    first = _enabled_at(properties) if properties.in_commit_timestamps else None
    before = [file.version for file in commits if first is None or file.version < first]
    if not _by_in_commit_timestamps(cutoff_ms, properties):
        return max((version for version in before if times[version] <= cutoff_ms), default=None)
    with_own = [file for file in commits if first is not None and file.version >= first]
    kept_from = bisect_right(with_own, cutoff_ms, key=lambda file: _in_commit_time(storage, file))
    return with_own[kept_from - 1].version if kept_from else None


def _keeps_times(
    version: int, commits: Sequence[LogFile], times: Mapping[int, int], properties: TableProperties
) -> bool:
    """Whether the first commit that stays keeps its time; False if this time depends on the commit before."""
    first = next((file for file in commits if file.version >= version), None)
    if first is None or (properties.in_commit_timestamps and first.version >= _enabled_at(properties)):
        return True
    return times[first.version] == first.modification_time_ms


def _is_complete(storage: Storage, table_root: str, files: CheckpointFiles) -> bool:
    """Whether the checkpoint is complete: it replaces all earlier commits when they are deleted."""
    checkpoint = Checkpoint(storage, table_root, files)
    try:
        checkpoint.require_sidecars()
        return checkpoint.protocol is not None and checkpoint.metadata is not None
    except DeltaError as error:
        _logger.warning("The checkpoint %s is not used for log cleanup: %s", files.files[0].path, error)
        return False


def protected_before(configuration: Mapping[str, str | None], protocol: Protocol) -> int:
    """The version below which commits and checkpoints may be deleted only all at once; 0 without protection.

    Raises: ProtocolError (DELTA_INVALID_TABLE_PROPERTY).
    """
    if not supports(protocol, Feature.CHECKPOINT_PROTECTION):
        return 0
    value = configuration.get(Property.REQUIRE_CHECKPOINT_PROTECTION_BEFORE_VERSION) or "0"
    try:
        return int(value)
    except ValueError:
        raise ProtocolError(
            f"the table property {Property.REQUIRE_CHECKPOINT_PROTECTION_BEFORE_VERSION} is '{value}', but must "
            "be a whole number.",
            code="DELTA_INVALID_TABLE_PROPERTY",
            property=Property.REQUIRE_CHECKPOINT_PROTECTION_BEFORE_VERSION,
            value=value,
        ) from None


# --- sidecars


def _unreferenced_sidecars(
    storage: Storage, table_root: str, first: CheckpointFiles | None, before_ms: int
) -> list[str]:
    """The old sidecars that no checkpoint of the log names; none if a checkpoint cannot be read.

    ``first``: the first checkpoint of the log; None if it is unknown. If all old sidecars belong to it, no later
    checkpoint is read.
    """
    old = [one for one in _list_sidecars(storage, table_root) if one.modification_time_ms < before_ms]
    try:
        if old and first is not None:
            known = _named_sidecars(storage, table_root, first.files)
            old = [one for one in old if one.name not in known]
        if not old:
            return []
        # listed after the sidecars, so that a checkpoint written meanwhile is included
        checkpoints = [
            file
            for file in list_log(storage, table_root, 0 if first is None else first.version).checkpoints
            if file.name.part is None and file.size_bytes
        ]
        in_use = _named_sidecars(storage, table_root, checkpoints)
    except DeltaError as error:
        _logger.warning("The sidecars of table %s are not cleaned up: %s", table_root, error)
        return []
    return [one.path for one in old if one.name not in in_use]


def _named_sidecars(storage: Storage, table_root: str, checkpoints: Sequence[LogFile]) -> set[str]:
    """The file names of the checkpoints' sidecars: all are in one directory, regardless of their paths."""
    with ThreadPoolExecutor(_THREADS) as pool:
        found = pool.map(lambda file: _sidecars_of(storage, file), checkpoints)
        return {resolve_sidecar_path(table_root, one.path).rsplit("/", 1)[-1] for named in found for one in named}


def _list_sidecars(storage: Storage, table_root: str) -> Iterator[FileStatus]:
    try:
        listed = storage.list_from(join(log_directory(table_root), SIDECAR_DIRECTORY), "")
        yield from (status for status in listed if status.regular)
    except FileNotFoundInStorageError:
        return


def _sidecars_of(storage: Storage, file: LogFile) -> list[Sidecar]:
    if file.name.suffix == "json":
        return [action.sidecar for action in read_commit(storage, file) if action.sidecar is not None]
    return CheckpointPart(storage, file.path).actions("sidecar", Sidecar)


def _delete(storage: Storage, table_root: str, listed: Sequence[str]) -> None:
    """Delete files from listings of the log, in order. If a deletion fails, at most a few later files are deleted."""
    if storage.scheme == "file":
        for path in listed:
            storage.delete(path, below=table_root)
        return
    delete = partial(storage.delete, below=table_root)
    with ThreadPoolExecutor(_THREADS) as pool:
        for start in range(0, len(listed), _THREADS):
            list(pool.map(delete, listed[start : start + _THREADS]))
