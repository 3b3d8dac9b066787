"""Table properties, typed.

The properties are entries of ``metaData.configuration``; each section of the
protocol names its own. Keys have the reference's spelling.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from delta_pyds.errors import ProtocolError


class Property:
    """The keys of the table properties that this package uses."""

    APPEND_ONLY = "delta.appendOnly"
    AUTO_COMPACT = "delta.autoOptimize.autoCompact"
    AUTO_OPTIMIZE = "delta.autoOptimize"
    CHECKPOINT_INTERVAL = "delta.checkpointInterval"
    CHECKPOINT_POLICY = "delta.checkpointPolicy"
    CHECKPOINT_WRITE_STATS_AS_JSON = "delta.checkpoint.writeStatsAsJson"
    CHECKPOINT_WRITE_STATS_AS_STRUCT = "delta.checkpoint.writeStatsAsStruct"
    COLUMN_MAPPING_MAX_COLUMN_ID = "delta.columnMapping.maxColumnId"
    COLUMN_MAPPING_MODE = "delta.columnMapping.mode"
    DATA_SKIPPING_NUM_INDEXED_COLS = "delta.dataSkippingNumIndexedCols"
    DATA_SKIPPING_STATS_COLUMNS = "delta.dataSkippingStatsColumns"
    DATA_SKIPPING_STRING_PREFIX_LENGTH = "delta.dataSkippingStringPrefixLength"
    DELETED_FILE_RETENTION_DURATION = "delta.deletedFileRetentionDuration"
    DROP_FEATURE_TRUNCATE_HISTORY_RETENTION_DURATION = "delta.dropFeatureTruncateHistory.retentionDuration"
    ENABLE_CHANGE_DATA_CAPTURE = "delta.enableChangeDataCapture"
    ENABLE_CHANGE_DATA_FEED = "delta.enableChangeDataFeed"
    ENABLE_DELETION_VECTORS = "delta.enableDeletionVectors"
    ENABLE_EXPIRED_LOG_CLEANUP = "delta.enableExpiredLogCleanup"
    ENABLE_ICEBERG_COMPAT_V1 = "delta.enableIcebergCompatV1"
    ENABLE_ICEBERG_COMPAT_V2 = "delta.enableIcebergCompatV2"
    ENABLE_ICEBERG_COMPAT_V3 = "delta.enableIcebergCompatV3"
    ENABLE_IN_COMMIT_TIMESTAMPS = "delta.enableInCommitTimestamps"
    ENABLE_MATERIALIZE_PARTITION_COLUMNS_FEATURE = "delta.enableMaterializePartitionColumnsFeature"
    ENABLE_ROW_TRACKING = "delta.enableRowTracking"
    ENABLE_TYPE_WIDENING = "delta.enableTypeWidening"
    ENABLE_VARIANT_SHREDDING = "delta.enableVariantShredding"
    IGNORE_PROTOCOL_DEFAULTS = "delta.ignoreProtocolDefaults"
    IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP = "delta.inCommitTimestampEnablementTimestamp"
    IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION = "delta.inCommitTimestampEnablementVersion"
    ISOLATION_LEVEL = "delta.isolationLevel"
    LOG_RETENTION_DURATION = "delta.logRetentionDuration"
    MATERIALIZED_ROW_COMMIT_VERSION_COLUMN_NAME = "delta.rowTracking.materializedRowCommitVersionColumnName"
    MATERIALIZED_ROW_ID_COLUMN_NAME = "delta.rowTracking.materializedRowIdColumnName"
    MIN_READER_VERSION = "delta.minReaderVersion"
    MIN_WRITER_VERSION = "delta.minWriterVersion"
    OPTIMIZE_WRITE = "delta.autoOptimize.optimizeWrite"
    RANDOMIZE_FILE_PREFIXES = "delta.randomizeFilePrefixes"
    RANDOM_PREFIX_LENGTH = "delta.randomPrefixLength"
    REQUIRE_CHECKPOINT_PROTECTION_BEFORE_VERSION = "delta.requireCheckpointProtectionBeforeVersion"
    # our own: other engines ignore it
    ROW_LEVEL_CONCURRENCY = "deltapy.rowLevelConcurrency"
    ROW_TRACKING_SUSPENDED = "delta.rowTrackingSuspended"
    SET_TRANSACTION_RETENTION_DURATION = "delta.setTransactionRetentionDuration"
    TARGET_FILE_SIZE = "delta.targetFileSize"
    WRITE_PARTITION_COLUMNS_TO_PARQUET = "delta.writePartitionColumnsToParquet"


COLUMN_MAPPING_MODES = ("none", "name", "id")
CONSTRAINT_PREFIX = "delta.constraints."
FEATURE_PREFIX = "delta.feature."
# prefixes of the properties that identify a table to its catalog: only the catalog sets, changes or removes them
CATALOG_PREFIXES = ("io.unitycatalog.", "io.deltapyds.")
# properties that catalogs require of their tables; they stay unless the user sets others
WANTED_BY_CATALOGS = (
    Property.CHECKPOINT_POLICY,
    Property.CHECKPOINT_WRITE_STATS_AS_JSON,
    Property.CHECKPOINT_WRITE_STATS_AS_STRUCT,
    Property.ENABLE_IN_COMMIT_TIMESTAMPS,
)
UNITY_TABLE_ID = "io.unitycatalog.tableId"
# a table's name, and the value of the option ``catalog``, for users who have only the path
CATALOG_TABLE = "io.deltapyds.table"
CATALOG_ADDRESS = "io.deltapyds.catalog"
ICEBERG_COMPAT_PROPERTIES = {
    1: Property.ENABLE_ICEBERG_COMPAT_V1,
    2: Property.ENABLE_ICEBERG_COMPAT_V2,
    3: Property.ENABLE_ICEBERG_COMPAT_V3,
}
ISOLATION_LEVELS: tuple[Literal["Serializable", "WriteSerializable"], ...] = ("Serializable", "WriteSerializable")
CHECKPOINT_POLICIES = ("classic", "v2")

_T = TypeVar("_T")

_HOUR_MS = 3_600_000
_DAY_MS = 24 * _HOUR_MS
_UNITS_MS = {
    "microsecond": 0.001, "millisecond": 1, "second": 1000, "minute": 60_000, "hour": _HOUR_MS,
    "day": _DAY_MS, "week": 7 * _DAY_MS,
}  # fmt: skip
# a BIGINT has at most 19 digits
_INTERVAL_PART = re.compile(r"\s*([+-]?\d{1,19})\s+([a-z]+?)s?(?=\s|$)", re.IGNORECASE)
_SIZE = re.compile(r"(\d{1,19})\s*([kmgt]?)(i?)b?")
_MOST = 1 << 63


@dataclass(frozen=True)
class TableProperties:
    """A typed view of the properties that this package uses.

    Timestamps are milliseconds since the epoch, durations milliseconds.

    ``unusable``: messages about invalid values that only writers need; a writer must stop if there is one.
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
    auto_compact: bool = False
    deletion_vectors: bool = False
    type_widening: bool = False
    isolation_level: str = "Serializable"
    row_level_concurrency: bool = True
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
    """Parse the properties of ``metaData.configuration``.

    An invalid value that only writers need does not stop a reader: the
    property has its default, and ``unusable`` says what is wrong.

    Raises: ProtocolError (DELTA_INVALID_TABLE_PROPERTY) for an invalid value that affects reading.
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
        column_mapping_mode=_one_of(c, Property.COLUMN_MAPPING_MODE, COLUMN_MAPPING_MODES, "none"),
        in_commit_timestamps=_boolean(c, Property.ENABLE_IN_COMMIT_TIMESTAMPS),
        in_commit_timestamp_enablement_version=_integer(c, Property.IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION),
        in_commit_timestamp_enablement_timestamp_ms=_integer(c, Property.IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP),
        row_tracking=_boolean(c, Property.ENABLE_ROW_TRACKING),
        row_tracking_suspended=flag(Property.ROW_TRACKING_SUSPENDED),
        materialized_row_id_column=c.get(Property.MATERIALIZED_ROW_ID_COLUMN_NAME),
        materialized_row_commit_version_column=c.get(Property.MATERIALIZED_ROW_COMMIT_VERSION_COLUMN_NAME),
        change_data_feed=_boolean(c, Property.ENABLE_CHANGE_DATA_FEED)
        or _boolean(c, Property.ENABLE_CHANGE_DATA_CAPTURE),
        append_only=flag(Property.APPEND_ONLY),
        auto_compact=flag(Property.AUTO_OPTIMIZE) or flag(Property.AUTO_COMPACT),
        deletion_vectors=flag(Property.ENABLE_DELETION_VECTORS),
        type_widening=flag(Property.ENABLE_TYPE_WIDENING),
        isolation_level=for_writers(
            _one_of, Property.ISOLATION_LEVEL, ISOLATION_LEVELS, "Serializable", default="Serializable"
        ),
        row_level_concurrency=flag(Property.ROW_LEVEL_CONCURRENCY, True),
        checkpoint_interval=at_least(Property.CHECKPOINT_INTERVAL, 1, 10),
        checkpoint_policy=for_writers(
            _one_of, Property.CHECKPOINT_POLICY, CHECKPOINT_POLICIES, "classic", default="classic"
        ),
        checkpoint_stats_as_json=flag(Property.CHECKPOINT_WRITE_STATS_AS_JSON, True),
        checkpoint_stats_as_struct=flag(Property.CHECKPOINT_WRITE_STATS_AS_STRUCT, True),
        log_retention_ms=interval(Property.LOG_RETENTION_DURATION, 30 * _DAY_MS),
        deleted_file_retention_ms=interval(Property.DELETED_FILE_RETENTION_DURATION, 7 * _DAY_MS),
        expired_log_cleanup=flag(Property.ENABLE_EXPIRED_LOG_CLEANUP, True),
        transaction_retention_ms=for_writers(
            _interval_or_none, Property.SET_TRANSACTION_RETENTION_DURATION, default=None
        ),
        num_indexed_columns=at_least(Property.DATA_SKIPPING_NUM_INDEXED_COLS, -1, 32),
        stats_columns=c.get(Property.DATA_SKIPPING_STATS_COLUMNS),
        string_prefix_length=at_least(Property.DATA_SKIPPING_STRING_PREFIX_LENGTH, 0, 32),
        random_file_prefixes=flag(Property.RANDOMIZE_FILE_PREFIXES),
        random_prefix_length=at_least(Property.RANDOM_PREFIX_LENGTH, 1, 2),
        partition_columns_in_files=flag(Property.WRITE_PARTITION_COLUMNS_TO_PARQUET)
        or flag(Property.ENABLE_MATERIALIZE_PARTITION_COLUMNS_FEATURE),
        target_file_bytes=for_writers(_bytes, Property.TARGET_FILE_SIZE, default=None),
        iceberg_compat=next((v for v in (3, 2, 1) if flag(ICEBERG_COMPAT_PROPERTIES[v])), None),
        unusable=tuple(unusable),
    )


def parse_interval_ms(text: str) -> int:
    """Parse a duration such as ``interval 30 days`` or ``1 week 2 hours`` to milliseconds.

    Raises: ValueError for any other text, and for months and years, which have no fixed length.
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


def parse_size_bytes(text: str, *, least: int = 1, iec: bool = False) -> int:
    """A number of bytes such as ``134217728``, ``128m`` or ``128 MB``; each unit is a power of 1024.

    ``iec``: ``128 MiB`` is a size too. The reference does not read it, so no table property may have it.

    Raises: ValueError for anything else, for less than ``least`` and for more than 64 bits hold.
    """
    match = _SIZE.fullmatch(text.strip().lower())
    if match is None or (match[3] and not iec):
        raise ValueError(text)
    size = int(match[1]) << (10 * " kmgt".index(match[2] or " "))
    if not least <= size < _MOST:
        raise ValueError(text)
    return size


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
    try:
        return parse_size_bytes(value)
    except ValueError:
        raise _invalid(key, value, "a size such as 134217728 or 128mb") from None


def _invalid(key: str, value: str, wanted: str) -> ProtocolError:
    return ProtocolError(
        f"the table property {key} is '{value}', but must be {wanted}.",
        code="DELTA_INVALID_TABLE_PROPERTY",
        property=key,
        value=value,
    )
