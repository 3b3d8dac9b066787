"""The properties of a table that the tasks of a write need: how rows are computed, checked and laid out in files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from delta_pyds.protocol.features import Feature
from delta_pyds.table.configuration import TableConfiguration
from delta_pyds.table.definition.statistics_columns import statistics_columns
from delta_pyds.tasks.write_state import Check, ColumnSource, WriteState

DEFAULT_TARGET_FILE_BYTES = 256 * 1024 * 1024


def write_state(
    configuration: TableConfiguration,
    columns: Sequence[ColumnSource],
    checks: Sequence[Check] = (),
    *,
    clustering: tuple[tuple[str, ...], ...] = (),
    storage_options: Mapping[str, Any],
    time_zone: str,
    target_file_bytes: int | None = None,
    max_records_per_file: int = 0,
    compression: str = "snappy",
) -> WriteState:
    """The write state for a table with the given configuration, which may not be committed yet.

    Args:
        columns: from ``plan_ingest``.
        clustering: physical paths of the clustering columns.
        target_file_bytes: None uses the table's own setting.
    """
    properties = configuration.properties
    mapped = configuration.column_mapping_mode != "none"
    return WriteState(
        table_root=configuration.table_root,
        storage_options=dict(storage_options),
        schema=configuration.schema,
        columns=tuple(columns),
        partition_columns=configuration.partition_columns,
        column_mapping_mode=configuration.column_mapping_mode,
        checks=tuple(checks),
        stats_columns=statistics_columns(configuration.schema, properties, configuration.partition_columns, clustering),
        string_prefix_length=properties.string_prefix_length,
        tight_bounds=configuration.supports(Feature.DELETION_VECTORS),
        random_prefix_length=properties.random_prefix_length if mapped or properties.random_file_prefixes else None,
        partition_columns_in_files=properties.partition_columns_in_files
        or properties.iceberg_compat is not None
        or configuration.supports(Feature.MATERIALIZE_PARTITION_COLUMNS),
        nested_field_ids=properties.iceberg_compat == 2,
        target_file_bytes=target_file_bytes or properties.target_file_bytes or DEFAULT_TARGET_FILE_BYTES,
        max_records_per_file=max_records_per_file,
        compression=compression,
        time_zone=time_zone,
    )
