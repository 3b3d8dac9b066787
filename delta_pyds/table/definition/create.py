"""The definition of a new table (metadata, protocol and domains), from a schema and the user's request.

Protocol: "Change Metadata", "Protocol Evolution", "Column Mapping", "Clustered Table", "Row Tracking".
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from delta_pyds.errors import OptionError, UserError
from delta_pyds.protocol.actions import DomainMetadata, Format, Metadata, Protocol
from delta_pyds.protocol.features import Feature, supported_features
from delta_pyds.protocol.properties import Property, TableProperties, parse_properties
from delta_pyds.protocol.schema import StructType, schema_to_string
from delta_pyds.table.definition.clustering import clustering_domain
from delta_pyds.table.definition.column_mapping import assign_columns
from delta_pyds.table.definition.iceberg_rules import check_iceberg, check_iceberg_features, complete_properties
from delta_pyds.table.definition.property_rules import read_properties
from delta_pyds.table.definition.protocol_upgrade import upgrade_protocol
from delta_pyds.table.definition.schema_rules import (
    check_columns,
    check_defaults,
    check_duplicates,
    check_partitioning,
    columns_of_new_table,
)
from delta_pyds.table.definition.statistics_columns import check_statistics_columns, show_path


@dataclass(frozen=True)
class TableDefinition:
    """The metadata, protocol and domains of a table's first commit."""

    metadata: Metadata
    protocol: Protocol
    domains: tuple[DomainMetadata, ...] = ()


def new_table(
    table_root: str,
    schema: StructType,
    *,
    partition_columns: Sequence[str],
    clustering_columns: Sequence[str | Sequence[str]] = (),
    properties: Mapping[str, str],
    features: Sequence[str] = (),
    description: str | None = None,
    name: str | None = None,
    keep_nullability: bool = False,
) -> TableDefinition:
    """Define a table that does not exist yet.

    Invariants: the protocol is the weakest one that supports exactly what the schema, the properties and the defaults
    need; partition columns are spelled as in the schema; with column mapping every field has an id and a physical
    name; properties that set the protocol are not stored.

    Args:
        features: features in addition to those that properties ask for.
        clustering_columns: strings such as ``a.b``, or paths.
        keep_nullability: columns that are not nullable become NOT NULL. Without it all columns become nullable, because
            rows without nulls do not restrict later rows.
    Raises:
        OptionError: invalid properties (see ``property_rules.read_properties``).
        UserError: an invalid schema, partitioning or clustering, with the reference's codes.
        UnsupportedFeatureError: a feature that delta_pyds does not write.
    """
    check_duplicates(schema)
    columns = columns_of_new_table(schema, keep_nullability=keep_nullability)
    request = read_properties(properties)
    configuration: dict[str, str] = complete_properties(request.configuration)
    typed = parse_properties(configuration)
    partitions = _check_schema(columns, partition_columns, configuration, typed)
    if typed.column_mapping_mode != "none":
        nested_ids = (typed.iceberg_compat or 0) >= 2
        columns, max_id = assign_columns(columns, 0, nested_ids=nested_ids)
        configuration[Property.COLUMN_MAPPING_MAX_COLUMN_ID] = str(max_id)
    domains = _clustering_domains(table_root, columns, clustering_columns, partitions, typed, request.features)
    metadata = Metadata(
        id=str(uuid.uuid4()),
        name=name,
        description=description,
        format=Format(options={}),
        schema_string=schema_to_string(columns),
        partition_columns=list(partitions),
        created_time=time.time_ns() // 1_000_000,
        configuration=dict(configuration),
    )
    protocol = upgrade_protocol(
        None, metadata, domains=domains, features=(*request.features, *features), versions=request.versions
    )
    supported = supported_features(protocol)
    check_defaults(columns, supported)
    check_iceberg_features(typed.iceberg_compat, supported, typed.deletion_vectors)
    if Feature.ROW_TRACKING in supported and metadata.configuration is not None:
        metadata.configuration[Property.MATERIALIZED_ROW_ID_COLUMN_NAME] = f"_row-id-col-{uuid.uuid4()}"
        metadata.configuration[Property.MATERIALIZED_ROW_COMMIT_VERSION_COLUMN_NAME] = (
            f"_row-commit-version-col-{uuid.uuid4()}"
        )
    return TableDefinition(metadata, protocol, domains)


def _check_schema(
    schema: StructType, partition_columns: Sequence[str], configuration: Mapping[str, str], typed: TableProperties
) -> tuple[str, ...]:
    """Check the schema. Returns the partition columns in the schema's spelling."""
    mapped = typed.column_mapping_mode != "none"
    partitions = check_partitioning(schema, partition_columns)
    check_columns(schema, partitions, mapped=mapped, change_data_feed=typed.change_data_feed)
    check_statistics_columns(schema, configuration.get(Property.DATA_SKIPPING_STATS_COLUMNS), partitions)
    check_iceberg(schema, typed.iceberg_compat, partitions)
    return partitions


def _clustering_domains(
    table_root: str,
    schema: StructType,
    clustering_columns: Sequence[str | Sequence[str]],
    partitions: tuple[str, ...],
    properties: TableProperties,
    features: Sequence[str],
) -> tuple[DomainMetadata, ...]:
    """The domain with the physical names of the clustering columns. Protocol: "Clustered Table"."""
    if Feature.CLUSTERING in features:
        raise OptionError(
            "the table feature clustering cannot be set by name: name the columns to cluster by instead.",
            code="DELTA_CREATE_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED",
            table=table_root,
        )
    if not clustering_columns:
        return ()
    if partitions:
        shown = ", ".join(c if isinstance(c, str) else show_path(tuple(c)) for c in clustering_columns)
        raise UserError(
            f"the table {table_root} cannot be both partitioned by ({', '.join(partitions)}) and clustered by "
            f"({shown}): leave one of them out.",
            code="DELTA_CLUSTER_BY_WITH_PARTITIONED_BY",
            table=table_root,
        )
    return (clustering_domain(table_root, schema, clustering_columns, properties),)
