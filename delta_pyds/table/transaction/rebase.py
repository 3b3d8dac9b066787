"""The table state that a commit is based on, and how other commits that come first advance it.

After a lost race a commit is encoded again, from the transaction's changes and the state of the version right before
it.

Protocol: "In-Commit Timestamps", "Row Tracking", "Type Widening".
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from delta_pyds.errors import CorruptLogError
from delta_pyds.log.checksum import read_checksum
from delta_pyds.log.commit_reader import read_commit_info
from delta_pyds.protocol.actions import ROW_TRACKING_DOMAIN, AddFile, Metadata, Protocol
from delta_pyds.protocol.features import Feature, active_properties
from delta_pyds.protocol.foreign_json import decode_json
from delta_pyds.protocol.paths import path_key
from delta_pyds.protocol.properties import Property
from delta_pyds.protocol.schema import TYPE_CHANGES
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.table.transaction.conflict import BACKFILL, RENUMBERING, Adopted, WinningCommit
from delta_pyds.table.transaction.row_tracking import high_water_mark


@dataclass(frozen=True)
class LatestState:
    """The state of the version right before a commit, as far as the commit depends on it.

    ``version``: -1 before the table exists. ``commit_time_ms``: the time of the commit file; 0 if unknown.
    ``in_commit_timestamp``: the commit's, or None. ``row_ids``: base row ids and row commit versions that a backfill
    assigned to files meanwhile, by ``path_key``. ``settled``: the ``path_key`` of files that a winning commit removed
    or committed again.
    """

    version: int
    protocol: Protocol | None
    metadata: Metadata | None
    row_id_mark: int = -1
    commit_time_ms: int = 0
    in_commit_timestamp: int | None = None
    row_tracking_enabled_meanwhile: bool = False
    row_ids: dict[str, AddFile] = field(default_factory=dict)
    settled: frozenset[str] = frozenset()


NO_TABLE = LatestState(-1, None, None)


def state_of(snapshot: Snapshot) -> LatestState:
    """The state of a snapshot. Reads the last commit's provenance if the table has in-commit timestamps."""
    last = snapshot.segment.last_commit
    timestamp = None
    if has_in_commit_timestamps(snapshot.protocol, snapshot.metadata):
        timestamp = _in_commit_timestamp(snapshot)
    # without these features there are no domains, so the log need not be read for them
    has_domains = any(map(snapshot.configuration.supports, (Feature.ROW_TRACKING, Feature.DOMAIN_METADATA)))
    return LatestState(
        snapshot.version,
        snapshot.protocol,
        snapshot.metadata,
        high_water_mark(snapshot.domain_metadata.get(ROW_TRACKING_DOMAIN) if has_domains else None),
        last.modification_time_ms if last is not None else 0,
        timestamp,
    )


def advance(
    latest: LatestState, winner: WinningCommit, adopted: Adopted, *, operation: str, commit_time_ms: int
) -> LatestState:
    """The state after a winning commit that does not conflict."""
    domain = (winner.domains or {}).get(ROW_TRACKING_DOMAIN)
    numbered = {path_key(a.path): a for a in winner.adds} if winner.operation == BACKFILL else {}
    settled: set[str] = set()
    if operation in RENUMBERING:
        settled = {path_key(a.path) for a in winner.adds} | {path_key(r.path) for r in winner.removes}
    return replace(
        latest,
        version=winner.version,
        protocol=adopted.protocol,
        metadata=adopted.metadata,
        row_id_mark=latest.row_id_mark if domain is None else max(latest.row_id_mark, high_water_mark(domain)),
        commit_time_ms=commit_time_ms,
        in_commit_timestamp=winner.info.in_commit_timestamp if winner.info is not None else None,
        row_tracking_enabled_meanwhile=latest.row_tracking_enabled_meanwhile or adopted.row_tracking_enabled,
        row_ids={**latest.row_ids, **numbered},
        settled=latest.settled | settled,
    )


def has_in_commit_timestamps(protocol: Protocol | None, metadata: Metadata | None) -> bool:
    """Whether in-commit timestamps are supported and enabled."""
    return (
        protocol is not None
        and metadata is not None
        and active_properties(protocol, metadata.configuration or {}).in_commit_timestamps
    )


def next_in_commit_timestamp(latest: LatestState, now_ms: int, table_root: str) -> int:
    """The in-commit timestamp of the commit right after ``latest``: later than all commits before it, even if clocks
    differ.

    Raises: CorruptLogError if the commit before lacks its timestamp.
    """
    before = latest.in_commit_timestamp
    if has_in_commit_timestamps(latest.protocol, latest.metadata):
        if before is None:
            raise CorruptLogError(
                f"Version {latest.version} of table {table_root!r} has no inCommitTimestamp, although the table has "
                "in-commit timestamps, so the time of the next commit is unknown. Turn the feature off and on again "
                "with the engine that wrote that version.",
                code="DELTA_MISSING_COMMIT_TIMESTAMP",
                table=table_root,
                version=latest.version,
            )
        return max(now_ms, before + 1)
    # the first in-commit timestamp must also be later than the file time of the commit before it
    return max(now_ms, latest.commit_time_ms + 1, (before or 0) + 1)


def enable_in_commit_timestamps(
    metadata: Metadata, latest: LatestState, *, version: int, timestamp_ms: int, enabled_before: bool
) -> Metadata:
    """The metadata with the first version that has an in-commit timestamp.

    Tables that are created with the feature do not record it. If the feature was enabled before, the record stays.
    Protocol: "In-Commit Timestamps".
    """
    configuration = dict(metadata.configuration or {})
    if enabled_before:
        kept = (latest.metadata.configuration if latest.metadata else None) or {}
        for key in (Property.IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION, Property.IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP):
            configuration.pop(key, None)
            if key in kept:
                configuration[key] = kept[key]
    elif version > 0:
        configuration[Property.IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION] = str(version)
        configuration[Property.IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP] = str(timestamp_ms)
    else:
        configuration.pop(Property.IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION, None)
        configuration.pop(Property.IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP, None)
    return msgspec.structs.replace(metadata, configuration=configuration)


def move_type_changes(metadata: Metadata, *, planned: int, version: int) -> Metadata:
    """The metadata with ``version`` instead of ``planned`` in the records of its type changes.

    Only older tables record the version. Protocol: "Type Widening".
    """
    text = metadata.schema_string
    if planned == version or text is None or TYPE_CHANGES not in text:
        return metadata
    schema = decode_json(text)
    _move(schema, planned, version)
    return msgspec.structs.replace(metadata, schema_string=json.dumps(schema, separators=(",", ":")))


def _move(value: Any, planned: int, version: int) -> None:
    if isinstance(value, list):
        for item in value:
            _move(item, planned, version)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key == TYPE_CHANGES and isinstance(item, list):
                for change in item:
                    if isinstance(change, dict) and change.get("tableVersion") == planned:
                        change["tableVersion"] = version
            else:
                _move(item, planned, version)


def _in_commit_timestamp(snapshot: Snapshot) -> int | None:
    last, checksum_file = snapshot.segment.last_commit, snapshot.segment.checksum
    if last is not None:
        info = read_commit_info(snapshot.storage, last)
        if info is not None and info.in_commit_timestamp is not None:
            return info.in_commit_timestamp
    # the checksum may have the time of a version whose commit was cleaned up
    checksum = read_checksum(snapshot.storage, checksum_file) if checksum_file is not None else None
    return checksum.in_commit_timestamp_opt if checksum is not None else None
