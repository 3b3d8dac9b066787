"""Table properties, typed.

Protocol: the properties are entries of ``metaData.configuration``; each
section of the specification names its own. Keys are kept in the reference's spelling.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from delta_pyds.errors import ProtocolError

COLUMN_MAPPING_MODE = "delta.columnMapping.mode"
COLUMN_MAPPING_MAX_ID = "delta.columnMapping.maxColumnId"
COLUMN_MAPPING_MODES = ("none", "name", "id")
CONSTRAINT_PREFIX = "delta.constraints."
FEATURE_PREFIX = "delta.feature."
ISOLATION_LEVELS = ("Serializable", "WriteSerializable")
CHECKPOINT_POLICIES = ("classic", "v2")

_T = TypeVar("_T")

_HOUR_MS = 3_600_000
_DAY_MS = 24 * _HOUR_MS
_UNITS_MS = {
    "microsecond": 0.001, "millisecond": 1, "second": 1000, "minute": 60_000, "hour": _HOUR_MS,
    "day": _DAY_MS, "week": 7 * _DAY_MS,
}  # fmt: skip
# more digits than a BIGINT has are no number of anything
_INTERVAL_PART = re.compile(r"\s*([+-]?\d{1,19})\s+([a-z]+?)s?(?=\s|$)", re.IGNORECASE)
_SIZE = re.compile(r"(\d{1,19})\s*([kmgt]?)b?")
_MOST = 1 << 63


@dataclass(frozen=True)
class TableProperties:
    """A typed view of ``delta.*`` keys. Timestamps are milliseconds since the epoch, durations milliseconds.

    ``unusable``: what is wrong with values that only writers need; a writer must not go on.
    """

    column_mapping_mode: str = "none"
    in_commit_timestamps: bool = False
    in_commit_timestamp_enablement_version: int | None = None
    in_commit_timestamp_enablement_timestamp_ms: int | None = None
    row_tracking: bool = False
    row_tracking_suspended: bool = False
    materialized_row_id_column: str | None = None
    materialized_row_commit_version_column: str | None = None
    change_data_feed: bool = False
    append_only: bool = False
    deletion_vectors: bool = False
    type_widening: bool = False
    isolation_level: str = "Serializable"
    checkpoint_interval: int = 10
    checkpoint_policy: str = "classic"
    checkpoint_stats_as_json: bool = True
    checkpoint_stats_as_struct: bool = True
    log_retention_ms: int = 30 * _DAY_MS
    deleted_file_retention_ms: int = 7 * _DAY_MS
    expired_log_cleanup: bool = True
    transaction_retention_ms: int | None = None
    num_indexed_columns: int = 32
    stats_columns: str | None = None
    string_prefix_length: int = 32
    random_file_prefixes: bool = False
    random_prefix_length: int = 2
    partition_columns_in_files: bool = False
    target_file_bytes: int | None = None
    iceberg_compat: int | None = None
    unusable: tuple[str, ...] = ()


def parse_properties(configuration: Mapping[str, str | None]) -> TableProperties:
    """Read the properties.

    A value that only writers need and that cannot be understood does not stop
    a reader: the default stands in, and ``unusable`` says what is wrong.

    Raises: ProtocolError (DELTA_INVALID_TABLE_PROPERTY) for a value that decides how the table is read.
    """
    c = configuration
    unusable: list[str] = []

    def for_writers(parse: Callable[..., _T], key: str, *arguments: Any, default: _T) -> _T:
        try:
            return parse(c, key, *arguments)
        except ProtocolError as error:
            unusable.append(error.message)
            return default

    def flag(key: str, default: bool = False) -> bool:
        return for_writers(_boolean, key, default, default=default)

    def at_least(key: str, least: int, default: int) -> int:
        return for_writers(_at_least, key, least, default, default=default)

    def interval(key: str, default: int) -> int:
        return for_writers(_interval, key, default, default=default)

    return TableProperties(
        column_mapping_mode=_one_of(c, COLUMN_MAPPING_MODE, COLUMN_MAPPING_MODES, "none"),
        in_commit_timestamps=_boolean(c, "delta.enableInCommitTimestamps"),
        in_commit_timestamp_enablement_version=_integer(c, "delta.inCommitTimestampEnablementVersion"),
        in_commit_timestamp_enablement_timestamp_ms=_integer(c, "delta.inCommitTimestampEnablementTimestamp"),
        row_tracking=_boolean(c, "delta.enableRowTracking"),
        row_tracking_suspended=flag("delta.rowTrackingSuspended"),
        materialized_row_id_column=c.get("delta.rowTracking.materializedRowIdColumnName"),
        materialized_row_commit_version_column=c.get("delta.rowTracking.materializedRowCommitVersionColumnName"),
        change_data_feed=_boolean(c, "delta.enableChangeDataFeed") or _boolean(c, "delta.enableChangeDataCapture"),
        append_only=flag("delta.appendOnly"),
        deletion_vectors=flag("delta.enableDeletionVectors"),
        type_widening=flag("delta.enableTypeWidening"),
        isolation_level=for_writers(
            _one_of, "delta.isolationLevel", ISOLATION_LEVELS, "Serializable", default="Serializable"
        ),
        checkpoint_interval=at_least("delta.checkpointInterval", 1, 10),
        checkpoint_policy=for_writers(
            _one_of, "delta.checkpointPolicy", CHECKPOINT_POLICIES, "classic", default="classic"
        ),
        checkpoint_stats_as_json=flag("delta.checkpoint.writeStatsAsJson", True),
        checkpoint_stats_as_struct=flag("delta.checkpoint.writeStatsAsStruct", True),
        log_retention_ms=interval("delta.logRetentionDuration", 30 * _DAY_MS),
        deleted_file_retention_ms=interval("delta.deletedFileRetentionDuration", 7 * _DAY_MS),
        expired_log_cleanup=flag("delta.enableExpiredLogCleanup", True),
        transaction_retention_ms=for_writers(_interval_or_none, "delta.setTransactionRetentionDuration", default=None),
        num_indexed_columns=at_least("delta.dataSkippingNumIndexedCols", -1, 32),
        stats_columns=c.get("delta.dataSkippingStatsColumns"),
        string_prefix_length=at_least("delta.dataSkippingStringPrefixLength", 0, 32),
        random_file_prefixes=flag("delta.randomizeFilePrefixes"),
        random_prefix_length=at_least("delta.randomPrefixLength", 1, 2),
        partition_columns_in_files=flag("delta.writePartitionColumnsToParquet")
        or flag("delta.enableMaterializePartitionColumnsFeature"),
        target_file_bytes=for_writers(_bytes, "delta.targetFileSize", default=None),
        iceberg_compat=next((v for v in (3, 2, 1) if flag(f"delta.enableIcebergCompatV{v}")), None),
        unusable=tuple(unusable),
    )


def parse_interval_ms(text: str) -> int:
    """A duration such as ``interval 30 days`` or ``1 week 2 hours`` in milliseconds.

    Raises: ValueError for anything else; months and years have no fixed length and are refused too.
    """
    rest = text.strip().lower()
    rest = rest[len("interval") :] if rest.startswith("interval") else rest
    total, position = 0.0, 0
    while position < len(rest.rstrip()):
        match = _INTERVAL_PART.match(rest, position)
        if match is None or match[2] not in _UNITS_MS:
            raise ValueError(text)
        total += int(match[1]) * _UNITS_MS[match[2]]
        position = match.end()
    if position == 0 or abs(total) >= _MOST:
        raise ValueError(text)
    return int(total)


def _boolean(configuration: Mapping[str, str | None], key: str, default: bool = False) -> bool:
    value = (configuration.get(key) or str(default)).strip().lower()
    if value not in ("true", "false"):
        raise _invalid(key, value, "true or false")
    return value == "true"


def _one_of(configuration: Mapping[str, str | None], key: str, allowed: tuple[str, ...], default: str) -> str:
    value = (configuration.get(key) or default).strip()
    for known in allowed:
        if known.lower() == value.lower():
            return known
    raise _invalid(key, value, "one of " + ", ".join(allowed))


def _integer(configuration: Mapping[str, str | None], key: str) -> int | None:
    value = configuration.get(key)
    if value is None:
        return None
    try:
        number = int(value)
    except ValueError:
        raise _invalid(key, value, "a whole number") from None
    if not -_MOST <= number < _MOST:
        raise _invalid(key, value, "a whole number of 64 bits")
    return number


def _at_least(configuration: Mapping[str, str | None], key: str, least: int, default: int) -> int:
    value = _integer(configuration, key)
    if value is None:
        return default
    if value < least:
        raise _invalid(key, str(value), f"a whole number of {least} or more")
    return value


def _interval(configuration: Mapping[str, str | None], key: str, default: int) -> int:
    return default if (duration := _interval_or_none(configuration, key)) is None else duration


def _interval_or_none(configuration: Mapping[str, str | None], key: str) -> int | None:
    value = configuration.get(key)
    if value is None:
        return None
    try:
        duration = parse_interval_ms(value)
    except ValueError:
        duration = -1
    if duration < 0:
        raise _invalid(key, value, "an interval such as 'interval 30 days', without months and years")
    return duration


def _bytes(configuration: Mapping[str, str | None], key: str) -> int | None:
    value = configuration.get(key)
    if value is None:
        return None
    match = _SIZE.fullmatch(value.strip().lower())
    size = 0 if match is None else int(match[1]) << (10 * " kmgt".index(match[2] or " "))
    if not 0 < size < _MOST:
        raise _invalid(key, value, "a size such as 134217728 or 128mb")
    return size


def _invalid(key: str, value: str, wanted: str) -> ProtocolError:
    return ProtocolError(
        f"the table property {key} is '{value}', but must be {wanted}.",
        code="DELTA_INVALID_TABLE_PROPERTY",
        property=key,
        value=value,
    )
