"""Table properties that change how a table is read, typed.

Protocol: the properties are entries of ``metaData.configuration``; each
section of the specification names its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from delta_pyds.errors import ProtocolError

COLUMN_MAPPING_MODE = "delta.columnMapping.mode"
COLUMN_MAPPING_MODES = ("none", "name", "id")


@dataclass(frozen=True)
class TableProperties:
    """A typed view of ``delta.*`` keys. Timestamps are milliseconds since the epoch."""

    column_mapping_mode: str = "none"
    in_commit_timestamps: bool = False
    in_commit_timestamp_enablement_version: int | None = None
    in_commit_timestamp_enablement_timestamp_ms: int | None = None
    row_tracking: bool = False
    materialized_row_id_column: str | None = None
    materialized_row_commit_version_column: str | None = None
    change_data_feed: bool = False


def parse_properties(configuration: Mapping[str, str | None]) -> TableProperties:
    """Read the properties.

    Raises: ProtocolError (DELTA_INVALID_TABLE_PROPERTY) for a value that is not of the property's type.
    """
    mode = (configuration.get(COLUMN_MAPPING_MODE) or "none").lower()
    if mode not in COLUMN_MAPPING_MODES:
        raise _invalid(COLUMN_MAPPING_MODE, mode, "one of none, name and id")
    return TableProperties(
        column_mapping_mode=mode,
        in_commit_timestamps=_boolean(configuration, "delta.enableInCommitTimestamps"),
        in_commit_timestamp_enablement_version=_integer(configuration, "delta.inCommitTimestampEnablementVersion"),
        in_commit_timestamp_enablement_timestamp_ms=_integer(
            configuration, "delta.inCommitTimestampEnablementTimestamp"
        ),
        row_tracking=_boolean(configuration, "delta.enableRowTracking"),
        materialized_row_id_column=configuration.get("delta.rowTracking.materializedRowIdColumnName"),
        materialized_row_commit_version_column=configuration.get(
            "delta.rowTracking.materializedRowCommitVersionColumnName"
        ),
        change_data_feed=_boolean(configuration, "delta.enableChangeDataFeed"),
    )


def _boolean(configuration: Mapping[str, str | None], key: str) -> bool:
    value = (configuration.get(key) or "false").strip().lower()
    if value not in ("true", "false"):
        raise _invalid(key, value, "true or false")
    return value == "true"


def _integer(configuration: Mapping[str, str | None], key: str) -> int | None:
    value = configuration.get(key)
    if value is None:
        return None
    try:
        return int(value)
    except ValueError:
        raise _invalid(key, value, "a whole number") from None


def _invalid(key: str, value: str, wanted: str) -> ProtocolError:
    return ProtocolError(
        f"the table property {key} is '{value}', but must be {wanted}.",
        code="DELTA_INVALID_TABLE_PROPERTY",
        property=key,
        value=value,
    )
