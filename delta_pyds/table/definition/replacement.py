"""A table that replaces another one at the same path: the parts of the old table that stay.

Invariant: the new definition is used as it is, except for what the history needs: features stay, column ids are never
reused, materialized row tracking columns keep their names.
Protocol: "Change Metadata", "Protocol Evolution", "Column Mapping".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import msgspec

from delta_pyds.errors import UserError
from delta_pyds.protocol.actions import CLUSTERING_DOMAIN, DomainMetadata, Protocol
from delta_pyds.protocol.features import Feature, supported_features, with_features
from delta_pyds.protocol.properties import CATALOG_PREFIXES, WANTED_BY_CATALOGS, Property, parse_properties
from delta_pyds.protocol.schema import StructType, change_fields, parse_schema, schema_to_string
from delta_pyds.table.configuration import TableConfiguration
from delta_pyds.table.definition.clustering import clustering_columns, logical_clustering_columns
from delta_pyds.table.definition.column_mapping import assign_columns, keep_mapping, recorded_max_id, unmapped_field
from delta_pyds.table.definition.create import TableDefinition
from delta_pyds.table.definition.schema_rules import check_added
from delta_pyds.table.definition.statistics_columns import physical_path

_ROW_TRACKING_COLUMNS = (
    Property.MATERIALIZED_ROW_ID_COLUMN_NAME,
    Property.MATERIALIZED_ROW_COMMIT_VERSION_COLUMN_NAME,
)


def kept_properties(before: TableConfiguration, properties: Mapping[str, str]) -> dict[str, str]:
    """The requested properties, and those that the reference keeps enabled in a replaced table."""
    requested = {key.lower() for key in properties}
    carried: dict[str, str] = {}
    if before.by_catalog:
        # a request cannot set the catalog's own keys; it overrides the other keys
        carried = {
            key: value
            for key, value in before.configuration.items()
            if key in WANTED_BY_CATALOGS and value is not None and key.lower() not in requested
        }
        requested |= {key.lower() for key in carried}
    kept = {
        key: "true"
        for key, on in (
            (Property.ENABLE_DELETION_VECTORS, before.properties.deletion_vectors),
            (Property.ENABLE_ROW_TRACKING, before.has_row_tracking),
        )
        if on and key.lower() not in requested
    }
    return {**kept, **carried, **properties}


def replacing_definition(
    before: TableConfiguration, domains: Mapping[str, DomainMetadata], made: TableDefinition
) -> TableDefinition:
    """The new definition, adjusted so that it can replace a table.

    Args:
        domains: of the replaced table.
    Raises:
        UserError: the replaced table is clustered and the new one is partitioned
            (DELTA_CLUSTERING_REPLACE_TABLE_WITH_PARTITIONED_TABLE).
    """
    if made.metadata.partition_columns and before.supports(Feature.CLUSTERING):
        raise UserError(
            f"the table {before.table_root} is clustered, so a partitioned table cannot replace it. "
            "Cluster the new table too, or create it at another path.",
            code="DELTA_CLUSTERING_REPLACE_TABLE_WITH_PARTITIONED_TABLE",
            table=before.table_root,
        )
    made = _with_kept_columns(before, made)
    return replace(made, protocol=_protocol(before, made), domains=_domains(domains, made))


def _protocol(before: TableConfiguration, made: TableDefinition) -> Protocol:
    return with_features(before.protocol, supported_features(made.protocol))


def _with_kept_columns(before: TableConfiguration, made: TableDefinition) -> TableDefinition:
    metadata = made.metadata
    properties = dict(metadata.configuration or {})
    schema = parse_schema(metadata.schema_string or "")
    typed = parse_properties(properties)
    domains = made.domains
    if typed.column_mapping_mode != "none" and before.column_mapping_mode != "none":
        bare = change_fields(schema, unmapped_field)
        nested = (typed.iceberg_compat or 0) >= 2
        kept = keep_mapping(bare, before.schema)
        renewed, last = assign_columns(kept, recorded_max_id(before.configuration), nested_ids=nested)
        domains = tuple(_renamed(domain, schema, renewed) for domain in domains)
        schema = renewed
        properties[Property.COLUMN_MAPPING_MAX_COLUMN_ID] = str(last)
    if before.supports(Feature.ROW_TRACKING):
        mapped = typed.column_mapping_mode != "none"
        # files from before the replacement may have columns with these names
        check_added({(f.name,): f for f in schema}, mapped=mapped, reserved=before.hidden_columns)
        properties |= {k: str(v) for k, v in before.configuration.items() if k in _ROW_TRACKING_COLUMNS}
    protected = before.configuration.get(Property.REQUIRE_CHECKPOINT_PROTECTION_BEFORE_VERSION)
    if protected is not None and before.supports(Feature.CHECKPOINT_PROTECTION):
        # the new table continues the history of the replaced one
        properties[Property.REQUIRE_CHECKPOINT_PROTECTION_BEFORE_VERSION] = protected
    if before.by_catalog:
        kept_as_is = (
            *CATALOG_PREFIXES,
            Property.IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION,
            Property.IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP,
        )
        properties |= {k: str(v) for k, v in before.configuration.items() if k.startswith(kept_as_is)}
    metadata = msgspec.structs.replace(metadata, schema_string=schema_to_string(schema), configuration={**properties})
    return replace(made, metadata=metadata, domains=domains)


def _renamed(domain: DomainMetadata, schema: StructType, renewed: StructType) -> DomainMetadata:
    """The clustering domain with the physical names of the new schema."""
    if domain.domain != CLUSTERING_DOMAIN:
        return domain
    known = json.loads(domain.configuration)
    paths = logical_clustering_columns(schema, {CLUSTERING_DOMAIN: domain})
    known["clusteringColumns"] = [list(physical_path(renewed, path)) for path in paths]
    return DomainMetadata(CLUSTERING_DOMAIN, json.dumps(known, separators=(",", ":")))


def _domains(domains: Mapping[str, DomainMetadata], made: TableDefinition) -> tuple[DomainMetadata, ...]:
    """The clustering of the new table; an empty clustering domain if only the replaced table was clustered."""
    if made.domains or not clustering_columns(domains):
        return made.domains
    return (DomainMetadata(CLUSTERING_DOMAIN, json.dumps({"clusteringColumns": [], "domainName": CLUSTERING_DOMAIN})),)
