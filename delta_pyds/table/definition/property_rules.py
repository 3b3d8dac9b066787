"""The table properties that users may set, their values, and the properties that set the protocol.

Known keys match without case, and are stored in the reference's spelling.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from delta_pyds.errors import OptionError
from delta_pyds.protocol.features import CATALOG_FEATURES, FEATURES, find_feature
from delta_pyds.protocol.properties import (
    CHECKPOINT_POLICIES,
    COLUMN_MAPPING_MODES,
    CONSTRAINT_PREFIX,
    FEATURE_PREFIX,
    ISOLATION_LEVELS,
    Property,
    parse_interval_ms,
    parse_size_bytes,
)

# takes the user's text and returns the stored value; raises ValueError
Normalise = Callable[[str], str]


@dataclass(frozen=True)
class PropertyRule:
    """One property. ``wanted`` completes "must be ..."."""

    key: str
    normalise: Normalise
    wanted: str


@dataclass(frozen=True)
class PropertyRequest:
    """A user's properties, parsed.

    Attributes:
        configuration: the properties to store in the metadata.
        features: from ``delta.feature.<name>``.
        reader_version, writer_version: from ``delta.minReaderVersion`` and ``delta.minWriterVersion``; None if unset.
        ignore_defaults: a new table gets only the features that its definition needs.

    Only ``configuration`` is stored as properties.
    """

    configuration: Mapping[str, str]
    features: tuple[str, ...] = ()
    reader_version: int | None = None
    writer_version: int | None = None
    ignore_defaults: bool = False

    @property
    def versions(self) -> tuple[int, int]:
        """Versions whose features a new table gets. A protocol with reader features must also have writer features."""
        reader, writer = (1, 1) if self.ignore_defaults else (1, 2)
        reader, writer = self.reader_version or reader, self.writer_version or writer
        return (reader if writer >= 7 else min(reader, 2)), writer


def _at_least(least: int, most: int | None = None) -> Normalise:
    def normalise(text: str) -> str:
        value = int(text)
        if value < least or (most is not None and value > most) or not re.fullmatch(r"[+-]?[0-9]+", text):
            raise ValueError(text)
        return str(value)

    return normalise


def _one_of(allowed: tuple[str, ...]) -> Normalise:
    def normalise(text: str) -> str:
        for known in allowed:
            if known.lower() == text.lower():
                return known
        raise ValueError(text)

    return normalise


def _duration(text: str) -> str:
    if parse_interval_ms(text) < 0:
        raise ValueError(text)
    return text


def _size(text: str) -> str:
    parse_size_bytes(text)
    return text


def _parquet_version(text: str) -> str:
    if not re.fullmatch(r"\d+\.\d+\.\d+", text):
        raise ValueError(text)
    return text


def _only_disabled(text: str) -> str:
    """Accept only a value that disables the property: delta_pyds does not support it."""
    if text.strip().lower() not in ("", "false"):
        raise ValueError(text)
    return text


def _rules() -> Mapping[str, PropertyRule]:
    flag = "true or false"
    duration = "an interval such as 'interval 30 days', without months and years"
    rules = [
        *(PropertyRule(key, _one_of(("true", "false")), flag) for key in _FLAGS),
        *(PropertyRule(key, _duration, duration) for key in _DURATIONS),
        *(PropertyRule(key, _only_disabled, "left out: delta_pyds does not support it") for key in _UNSUPPORTED),
        PropertyRule(Property.CHECKPOINT_INTERVAL, _at_least(1), "a whole number of 1 or more"),
        PropertyRule(Property.CHECKPOINT_POLICY, _one_of(CHECKPOINT_POLICIES), "classic or v2"),
        PropertyRule(Property.COLUMN_MAPPING_MODE, _one_of(COLUMN_MAPPING_MODES), "none, name or id"),
        PropertyRule(Property.ISOLATION_LEVEL, _one_of(ISOLATION_LEVELS), "Serializable or WriteSerializable"),
        PropertyRule(Property.DATA_SKIPPING_NUM_INDEXED_COLS, _at_least(-1), "a whole number of -1 or more"),
        PropertyRule(Property.DATA_SKIPPING_STATS_COLUMNS, str, "a list of columns"),
        PropertyRule(Property.DATA_SKIPPING_STRING_PREFIX_LENGTH, _at_least(0), "a whole number of 0 or more"),
        PropertyRule(Property.RANDOM_PREFIX_LENGTH, _at_least(1), "a whole number of 1 or more"),
        PropertyRule(Property.TARGET_FILE_SIZE, _size, "a size such as 134217728 or 128mb"),
        PropertyRule("delta.parquet.format.version", _parquet_version, "a version such as 1.0.0"),
        PropertyRule(Property.MIN_READER_VERSION, _at_least(1, 3), "1, 2 or 3"),
        PropertyRule(Property.MIN_WRITER_VERSION, _at_least(1, 7), "a whole number from 1 to 7"),
    ]
    return {rule.key.lower(): rule for rule in rules}


_FLAGS = (
    Property.APPEND_ONLY,
    Property.AUTO_OPTIMIZE,
    Property.AUTO_COMPACT,
    Property.OPTIMIZE_WRITE,
    "delta.castIcebergTimeType",
    Property.CHECKPOINT_WRITE_STATS_AS_JSON,
    Property.CHECKPOINT_WRITE_STATS_AS_STRUCT,
    Property.ENABLE_CHANGE_DATA_CAPTURE,
    Property.ENABLE_CHANGE_DATA_FEED,
    Property.ENABLE_DELETION_VECTORS,
    Property.ENABLE_EXPIRED_LOG_CLEANUP,
    "delta.enableFullRetentionRollback",
    Property.ENABLE_ICEBERG_COMPAT_V1,
    Property.ENABLE_ICEBERG_COMPAT_V2,
    Property.ENABLE_ICEBERG_COMPAT_V3,
    Property.ENABLE_IN_COMMIT_TIMESTAMPS,
    Property.ENABLE_MATERIALIZE_PARTITION_COLUMNS_FEATURE,
    Property.ENABLE_ROW_TRACKING,
    Property.ENABLE_TYPE_WIDENING,
    Property.ENABLE_VARIANT_SHREDDING,
    "delta.ignoreIcebergBucketPartition",
    Property.IGNORE_PROTOCOL_DEFAULTS,
    Property.RANDOMIZE_FILE_PREFIXES,
    Property.ROW_TRACKING_SUSPENDED,
    "delta.universalFormat.iceberg.atomicConversion.supported",
    Property.WRITE_PARTITION_COLUMNS_TO_PARQUET,
)
_DURATIONS = (
    "delta.checkpointRetentionDuration",
    Property.DELETED_FILE_RETENTION_DURATION,
    Property.DROP_FEATURE_TRUNCATE_HISTORY_RETENTION_DURATION,
    Property.LOG_RETENTION_DURATION,
    "delta.sampleRetentionDuration",
    Property.SET_TRANSACTION_RETENTION_DURATION,
)
# each requires additional work of every writer, during or after a commit
_UNSUPPORTED = (
    "delta.compatibility.symlinkFormatManifest.enabled",
    "delta.coordinatedCommits.commitCoordinator-preview",
    "delta.coordinatedCommits.commitCoordinatorConf-preview",
    "delta.coordinatedCommits.tableConf-preview",
    "delta.redirectReaderWriter-preview",
    "delta.redirectWriterOnly-preview",
    "delta.universalFormat.enabledFormats",
)
# maintained by writers: a user who sets one breaks the table
_READ_ONLY = {
    key.lower()
    for key in (
        Property.COLUMN_MAPPING_MAX_COLUMN_ID,
        Property.IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION,
        Property.IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP,
        Property.MATERIALIZED_ROW_ID_COLUMN_NAME,
        Property.MATERIALIZED_ROW_COMMIT_VERSION_COLUMN_NAME,
        Property.REQUIRE_CHECKPOINT_PROTECTION_BEFORE_VERSION,
    )
}
_UNIVERSAL_FORMAT_PREFIX = "delta.universalformat.config."
PROPERTY_RULES = _rules()


def read_properties(properties: Mapping[str, str]) -> PropertyRequest:
    """Check a user's properties and normalize them for the metadata.

    Keys without the prefix ``delta.`` are the user's own and stay as they are.

    Raises:
        OptionError: DELTA_UNKNOWN_CONFIGURATION, DELTA_INVALID_TABLE_PROPERTY, DELTA_CANNOT_MODIFY_TABLE_PROPERTY,
            DELTA_UNSUPPORTED_FEATURE_STATUS or DELTA_UNSUPPORTED_FEATURES_IN_CONFIG.
    """
    configuration: dict[str, str] = {}
    features: list[str] = []
    for key, value in properties.items():
        lower = key.lower()
        if lower.startswith(FEATURE_PREFIX):
            features.append(_feature(key, value))
            continue
        stored, text = _property(key, value)
        if configuration.get(stored, text) != text:
            raise _invalid(stored, text, f"given only once: it is also '{configuration[stored]}'")
        configuration[stored] = text
    reader = configuration.pop(Property.MIN_READER_VERSION, None)
    writer = configuration.pop(Property.MIN_WRITER_VERSION, None)
    ignore = configuration.pop(Property.IGNORE_PROTOCOL_DEFAULTS, "false") == "true"
    check_consistent(configuration)
    return PropertyRequest(
        configuration,
        tuple(dict.fromkeys(features)),
        None if reader is None else int(reader),
        None if writer is None else int(writer),
        ignore,
    )


def check_consistent(configuration: Mapping[str, str | None]) -> None:
    """Refuse properties that contradict each other.

    Raises: OptionError (DELTA_ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION, DELTA_INVALID_TABLE_PROPERTY).
    """
    if _is_true(configuration, Property.ENABLE_ROW_TRACKING) and _is_true(
        configuration, Property.ROW_TRACKING_SUSPENDED
    ):
        raise OptionError(
            "the table properties delta.enableRowTracking and delta.rowTrackingSuspended are both true, "
            "but only one of them can be: set one of them to false.",
            code="DELTA_ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION",
        )
    log, files = Property.LOG_RETENTION_DURATION, Property.DELETED_FILE_RETENTION_DURATION
    log_text = configuration.get(log) or "interval 30 days"
    files_text = configuration.get(files) or "interval 1 week"
    if (log in configuration or files in configuration) and parse_interval_ms(log_text) < parse_interval_ms(files_text):
        raise OptionError(
            f"the table property {log} ({log_text}) must not be shorter than {files} ({files_text}): "
            "the log would forget removed files before vacuum is allowed to delete them.",
            code="DELTA_INVALID_TABLE_PROPERTY",
            property=log,
            value=log_text,
        )


def _is_true(configuration: Mapping[str, str | None], key: str) -> bool:
    return (configuration.get(key) or "").lower() == "true"


def _property(key: str, value: str) -> tuple[str, str]:
    lower = key.lower()
    if not lower.startswith("delta."):
        return key, value
    if lower.startswith(CONSTRAINT_PREFIX):
        if not lower.removeprefix(CONSTRAINT_PREFIX) or not value.strip():
            raise _invalid(key, value, "a condition, under the name of a constraint")
        return lower, value
    if lower in _READ_ONLY:
        raise OptionError(
            f"the table property {key} is maintained by writers of the table and cannot be set: leave it out.",
            code="DELTA_CANNOT_MODIFY_TABLE_PROPERTY",
            property=key,
        )
    if lower.startswith(_UNIVERSAL_FORMAT_PREFIX):
        return lower, value
    rule = PROPERTY_RULES.get(lower)
    if rule is None:
        raise OptionError(
            f"{key} is not a table property. Check its spelling; a property of your own must not begin with 'delta.'.",
            code="DELTA_UNKNOWN_CONFIGURATION",
            property=key,
        )
    try:
        return rule.key, rule.normalise(value.strip())
    except ValueError:
        raise _invalid(rule.key, value, rule.wanted) from None


def _feature(key: str, value: str) -> str:
    name = key[len(FEATURE_PREFIX) :]
    if value.strip().lower() not in ("supported", "enabled"):
        raise OptionError(
            f"the table property {key} is '{value}', but can only be 'supported'.",
            code="DELTA_UNSUPPORTED_FEATURE_STATUS",
            feature=name,
            value=value,
        )
    feature = find_feature(name)
    # only a new table can be catalog-managed
    if feature is None or not feature.writable or feature.name in CATALOG_FEATURES:
        writable = ", ".join(sorted(f.name for f in FEATURES.values() if f.writable and f.name not in CATALOG_FEATURES))
        raise OptionError(
            f"the table property {key} asks for a table feature that delta_pyds does not write. It writes: {writable}.",
            code="DELTA_UNSUPPORTED_FEATURES_IN_CONFIG",
            feature=name,
        )
    return feature.name


def _invalid(key: str, value: str, wanted: str) -> OptionError:
    return OptionError(
        f"the table property {key} is '{value}', but must be {wanted}.",
        code="DELTA_INVALID_TABLE_PROPERTY",
        property=key,
        value=value,
    )
