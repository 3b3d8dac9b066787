"""Work after a commit: its checksum, checkpoints at the table's interval, and log cleanup.

Invariant: none of it can fail, undo or repeat a commit. An error is logged as a warning; readers do not need these
files.

Protocol: "Version Checksum File", "Checkpoints", "Metadata Cleanup".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from delta_pyds.catalog.managed import CHECKPOINT, CHECKSUM, allows, is_catalog_managed
from delta_pyds.log.checksum import VersionChecksum, read_checksum, same_definition
from delta_pyds.log.checksum_writer import (
    advance_checksum,
    checksum_path,
    compute_checksum,
    encode_checksum,
    first_checksum,
    is_consistent,
    write_checksum,
)
from delta_pyds.log.commit_reader import decode_commit, read_commit_info, read_commits
from delta_pyds.log.listing import LogFile, commit_by_name, list_log
from delta_pyds.log.replay import LogReplay
from delta_pyds.log.segment import load_segment
from delta_pyds.protocol.actions import CommitInfo, Metadata, Protocol, SingleAction
from delta_pyds.protocol.paths import LogFileKind, LogFileName, commit_path
from delta_pyds.protocol.properties import TableProperties, parse_properties
from delta_pyds.redaction import safe_logger
from delta_pyds.storage.base import Storage
from delta_pyds.table.transaction.maintenance import checkpoint_and_clean

_logger = safe_logger(__name__)

# This many lines are decoded at once: a commit may have a million.
_BYTES_AT_ONCE = 4 * 1024 * 1024
# Among competing writers, one writes its checksum only after the next one has committed.
_VERSIONS_TO_LOOK_BACK = 64


@dataclass(frozen=True)
class CommittedVersion:
    """A commit that is in the log. ``data``: its bytes. ``protocol``, ``metadata``: the table's after the commit."""

    table_root: str
    version: int
    protocol: Protocol
    metadata: Metadata
    info: CommitInfo
    data: bytes

    @cached_property
    def properties(self) -> TableProperties:
        return parse_properties(self.metadata.configuration or {})

    def actions(self) -> Iterator[SingleAction]:
        """The actions, decoded in bounded pieces."""
        path = commit_path(self.table_root, self.version)
        start = 0
        while start < len(self.data):
            end = self.data.find(b"\n", min(start + _BYTES_AT_ONCE, len(self.data) - 1)) + 1 or len(self.data)
            yield from decode_commit(self.data[start:end], path)
            start = end


def after_commit(
    storage: Storage, commit: CommittedVersion, *, now_ms: int, publish: Callable[[int], bool] | None = None
) -> None:
    """Write checksum and checkpoint and clean up the log as due. Never raises.

    ``publish``: the committer's method. Only published versions may have a checkpoint.
    """
    checksum: VersionChecksum | None = None
    try:
        checksum = next_checksum(storage, commit) if allows(storage, CHECKSUM) else None
        if checksum is not None:
            _write(storage, commit, checksum)
    except Exception as error:
        _warn("the version checksum was not written", commit, error)
    try:
        if commit.version == 0 or commit.version % commit.properties.checkpoint_interval:
            return
        if not allows(storage, CHECKPOINT) or (publish is not None and not publish(commit.version)):
            return
        replay = LogReplay(storage, load_segment(storage, commit.table_root, commit.version))
        if checksum is None and allows(storage, CHECKSUM):
            _restart_checksums(storage, commit, replay)
    except Exception as error:
        _warn("no checkpoint was written", commit, error)
        return
    last = replay.segment.last_commit
    if storage.scheme != "file" and last is not None:
        # the commit's time is the store's time now; if our clock is ahead of it, commits would expire too early
        now_ms = min(now_ms, last.modification_time_ms or now_ms)
    try:
        checkpoint_and_clean(storage, replay, now_ms=now_ms)
    except Exception as error:
        _warn("the checkpoint or the clean-up after it is incomplete", commit, error)


def next_checksum(storage: Storage, commit: CommittedVersion) -> VersionChecksum | None:
    """The checksum of a commit, from the version before; None if that one is unknown or belongs to another table.

    The version before may have no checksum file: its writer died, or has not written it yet. Then an older checksum is
    updated with the commits in between.
    """
    root, version = commit.table_root, commit.version
    if version == 0:
        return first_checksum(
            commit.actions(),
            in_commit_timestamp=commit.info.in_commit_timestamp,
            txn_id=commit.info.txn_id,
            transactions_kept=_transactions_kept(commit.metadata),
        )
    name = LogFileName(LogFileKind.CHECKSUM, version - 1)
    found = read_checksum(storage, LogFile(checksum_path(root, version - 1), version - 1, 0, 0, name))
    previous = None if found is None else _unless_foreign(storage, root, found, version - 1)
    previous = previous or _advanced_from_older(storage, root, version - 1)
    if previous is None:
        return None
    checksum = advance_checksum(
        previous,
        commit.actions(),
        in_commit_timestamp=commit.info.in_commit_timestamp,
        txn_id=commit.info.txn_id,
        transactions_kept=_transactions_kept(commit.metadata),
    )
    if checksum is None or (
        _is_before(previous, commit) and same_definition(checksum, commit.protocol, commit.metadata)
    ):
        return checksum
    _logger.warning(
        "No version checksum was written for version %d of table %s: the previous one has another protocol, other "
        "metadata or a later time than the table.",
        version,
        root,
    )
    return None


def _is_before(checksum: VersionChecksum, commit: CommittedVersion) -> bool:
    before, at = checksum.in_commit_timestamp_opt, commit.info.in_commit_timestamp
    return before is None or at is None or before < at


def _advanced_from_older(storage: Storage, table_root: str, version: int) -> VersionChecksum | None:
    """The checksum of a version without a checksum file, computed from the newest one shortly before it."""
    listing = list_log(storage, table_root, max(0, version - _VERSIONS_TO_LOOK_BACK), version)
    for file in reversed(listing.checksums):
        checksum = _unless_foreign(storage, table_root, read_checksum(storage, file), file.version)
        if checksum is not None:
            commits = [c for c in listing.commits if c.version > file.version]
            if [c.version for c in commits] != list(range(file.version + 1, version + 1)):
                return None
            return _advanced(checksum, read_commits(storage, commits))
    return None


def _unless_foreign(
    storage: Storage, table_root: str, checksum: VersionChecksum | None, version: int
) -> VersionChecksum | None:
    """The checksum; None if it is inconsistent, or belongs to a commit that is not in the table.

    In the log of a catalog-managed table, another process may have written a version that was never ratified.
    """
    if checksum is None or not is_consistent(checksum):
        return None
    if not is_catalog_managed(storage):
        return checksum
    info = read_commit_info(storage, commit_by_name(storage, table_root, version))
    return checksum if info is not None and info.txn_id and info.txn_id == checksum.txn_id else None


def _write(storage: Storage, commit: CommittedVersion, checksum: VersionChecksum) -> None:
    root, version = commit.table_root, commit.version
    if write_checksum(storage, root, version, checksum) or not is_catalog_managed(storage):
        return
    path = checksum_path(root, version)
    there = read_checksum(storage, LogFile(path, version, 0, 0, LogFileName(LogFileKind.CHECKSUM, version)))
    if there is None or there.txn_id != commit.info.txn_id:
        storage.put(path, encode_checksum(checksum))


def _advanced(
    checksum: VersionChecksum | None, commits: Iterable[tuple[LogFile, list[SingleAction]]]
) -> VersionChecksum | None:
    for _, actions in commits:
        if checksum is None or checksum.metadata is None:
            return None
        info = next((a.commit_info for a in actions if a.commit_info is not None), CommitInfo())
        metadata = next((a.meta_data for a in actions if a.meta_data is not None), checksum.metadata)
        checksum = advance_checksum(
            checksum,
            actions,
            in_commit_timestamp=info.in_commit_timestamp,
            txn_id=info.txn_id if isinstance(info.txn_id, str) else None,
            transactions_kept=_transactions_kept(metadata),
        )
    return checksum


def _restart_checksums(storage: Storage, commit: CommittedVersion, replay: LogReplay) -> None:
    """Compute the checksum from the whole state, which the checkpoint reads anyway."""
    try:
        checksum = compute_checksum(
            replay, in_commit_timestamp=commit.info.in_commit_timestamp, txn_id=commit.info.txn_id
        )
        _write(storage, commit, checksum)
    except Exception as error:
        _warn("the version checksum was not written", commit, error)


def _transactions_kept(metadata: Metadata) -> bool:
    return parse_properties(metadata.configuration or {}).transaction_retention_ms is None


def _warn(what: str, commit: CommittedVersion, error: Exception) -> None:
    _logger.warning(
        "Version %d of table %s is committed, but %s: %s", commit.version, commit.table_root, what, error, exc_info=True
    )
