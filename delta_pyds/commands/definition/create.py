"""A new table, or another one in its place: what the builders of ``DeltaTable`` ask for.

Invariant: after success the path has a table of the columns asked for, after an error it is as before. A table that is
replaced keeps its history and its features; all its rows leave in the very version that brings the new columns.

Protocol: "Change Metadata", "Protocol Evolution".
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import msgspec

from delta_pyds.catalog.opening import features_of_new_table, properties_of_new_table, table_storage
from delta_pyds.commands.definition.change import clustered_by
from delta_pyds.commands.definition.unmapping import logical_path
from delta_pyds.commands.write.existing_data import check_no_other_format
from delta_pyds.errors import ProtocolChangedError, TableNotFoundError, UserError
from delta_pyds.protocol.actions import CLUSTERING_DOMAIN, DomainMetadata, Metadata
from delta_pyds.protocol.features import Feature, supported_features, weakest_protocol
from delta_pyds.protocol.properties import CATALOG_PREFIXES, WANTED_BY_CATALOGS, Property, parse_properties
from delta_pyds.protocol.schema import StructField, StructType, change_fields, parse_schema, schema_to_string
from delta_pyds.redaction import Concealing
from delta_pyds.storage.base import Storage
from delta_pyds.table.configuration import TableConfiguration
from delta_pyds.table.definition.column_mapping import MAPPING_KEYS, assign_columns, keep_mapping, recorded_max_id
from delta_pyds.table.definition.create import TableDefinition, new_table
from delta_pyds.table.definition.statistics_columns import physical_path
from delta_pyds.table.scan.live_files import REMOVAL_COLUMNS, live_files, removal
from delta_pyds.table.scan.scan import plan_scan
from delta_pyds.table.snapshot import Snapshot, open_snapshot
from delta_pyds.table.transaction.commit_info import Operation
from delta_pyds.table.transaction.transaction import Committed, Transaction

_ROW_TRACKING_COLUMNS = (
    Property.MATERIALIZED_ROW_ID_COLUMN_NAME,
    Property.MATERIALIZED_ROW_COMMIT_VERSION_COLUMN_NAME,
)

CreateMode = Literal["create", "create_if_not_exists", "replace", "create_or_replace"]


@dataclass(frozen=True, repr=False)
class CreateRequest(Concealing):
    """The table that shall be. ``partition_columns``, ``clustering_columns``: names, the latter with dots."""

    table_root: str
    mode: CreateMode
    columns: StructType
    partition_columns: tuple[str, ...] = ()
    clustering_columns: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    description: str | None = None
    user_metadata: str | None = None
    storage_options: Mapping[str, Any] = field(default_factory=dict)


def existing_table(request: CreateRequest) -> Snapshot | None:
    """The table that is at the path.

    Raises: UserError where the mode forbids it (TABLE_OR_VIEW_ALREADY_EXISTS, TABLE_OR_VIEW_NOT_FOUND), and
        where the directory holds data of another format; what a damaged log raises.
    """
    storage = table_storage(request.table_root, request.storage_options)
    try:
        snapshot = open_snapshot(storage, request.table_root)
    except TableNotFoundError:
        if request.mode == "replace":
            raise TableNotFoundError(
                f"there is no table at {request.table_root} to replace. DeltaTable.createOrReplace makes one.",
                code="TABLE_OR_VIEW_NOT_FOUND",
                table=request.table_root,
            ) from None
        check_no_other_format(storage, request.table_root)
        return None
    if request.mode == "create":
        raise UserError(
            f"there is a table at {request.table_root} already (version {snapshot.version}). Nothing was changed: "
            "DeltaTable.createIfNotExists leaves it, DeltaTable.createOrReplace puts another in its place.",
            code="TABLE_OR_VIEW_ALREADY_EXISTS",
            table=request.table_root,
        )
    return snapshot


def create_table(request: CreateRequest) -> Committed | None:
    """Make the table; None where it was there and is left as it is (``create_if_not_exists``).

    Raises: what ``existing_table`` raises; what ``new_table`` raises for columns and properties that no table has;
        a ConflictError where another commit was first.
    """
    for _ in range(2):
        snapshot = existing_table(request)
        if snapshot is not None and request.mode == "create_if_not_exists":
            return None
        try:
            return _create(request) if snapshot is None else _replace(request, snapshot)
        except ProtocolChangedError:
            # another writer has made the table since it was looked for: the mode says what of that
            if snapshot is not None or request.mode == "create_or_replace":
                raise
    raise AssertionError("unreachable")


def _create(request: CreateRequest) -> Committed:
    storage = table_storage(request.table_root, request.storage_options)
    storage.require_put_if_absent(request.table_root)
    made = _definition(request, storage)
    transaction = Transaction(storage, request.table_root, None)
    transaction.set_metadata(made.metadata)
    transaction.set_protocol(made.protocol)
    for domain in made.domains:
        transaction.set_domain(domain)
    name = "CREATE OR REPLACE TABLE" if request.mode == "create_or_replace" else "CREATE TABLE"
    return transaction.commit(_operation(name, request, made.metadata), user_metadata=request.user_metadata)


def _definition(request: CreateRequest, storage: Storage) -> TableDefinition:
    return new_table(
        request.table_root,
        request.columns,
        partition_columns=request.partition_columns,
        clustering_columns=request.clustering_columns,
        properties=properties_of_new_table(storage, request.properties),
        features=features_of_new_table(storage),
        description=request.description,
        keep_nullability=True,
    )


def _replace(request: CreateRequest, snapshot: Snapshot) -> Committed:
    storage, before = snapshot.storage, snapshot.configuration
    before.check_writable()
    storage.require_put_if_absent(request.table_root)
    if request.partition_columns and before.supports(Feature.CLUSTERING):
        raise UserError(
            f"the table {request.table_root} is clustered, so it cannot be replaced by one that is partitioned. "
            "Cluster the new one too, or make it at another path.",
            code="DELTA_CLUSTERING_REPLACE_TABLE_WITH_PARTITIONED_TABLE",
            table=request.table_root,
        )
    made = _in_place_of(before, _definition(_with_kept_properties(request, before), storage))
    metadata = made.metadata
    features = before.features | supported_features(made.protocol)
    protocol = snapshot.protocol if features == before.features else weakest_protocol(features, least=snapshot.protocol)
    transaction = Transaction(storage, request.table_root, snapshot)
    transaction.record_whole_table()
    transaction.set_metadata(metadata)
    transaction.set_protocol(protocol)
    for domain in _domains(made, snapshot):
        transaction.set_domain(domain)
    now_ms = int(time.time() * 1000)
    scan = plan_scan(snapshot, where=None, time_zone="UTC", storage_options=request.storage_options)
    transaction.remove(
        removal(file, deletion_timestamp_ms=now_ms, data_change=True) for file in live_files(scan, REMOVAL_COLUMNS)
    )
    name = "REPLACE TABLE" if request.mode == "replace" else "CREATE OR REPLACE TABLE"
    return transaction.commit(_operation(name, request, metadata), user_metadata=request.user_metadata)


def _with_kept_properties(request: CreateRequest, before: TableConfiguration) -> CreateRequest:
    """The request with what the reference leaves on in a table that is replaced, unless the request says otherwise."""
    said = {key.lower() for key in request.properties}
    if before.by_catalog:
        # the request cannot name a catalog's own keys; what it names of the others, it means
        carried = {
            key: value
            for key, value in before.configuration.items()
            if key in WANTED_BY_CATALOGS and value is not None and key.lower() not in said
        }
        request = replace(request, properties={**carried, **request.properties})
    kept = {
        key: "true"
        for key, on in (
            (Property.ENABLE_DELETION_VECTORS, before.properties.deletion_vectors),
            (Property.ENABLE_ROW_TRACKING, before.has_row_tracking),
        )
        if on and key.lower() not in said
    }
    return replace(request, properties={**kept, **request.properties})


def _in_place_of(before: TableConfiguration, made: TableDefinition) -> TableDefinition:
    """The new definition with what goes on: ids of columns are never given twice, hidden columns keep names."""
    metadata = made.metadata
    properties = dict(metadata.configuration or {})
    schema = parse_schema(metadata.schema_string or "")
    typed = parse_properties(properties)
    domains = made.domains
    if typed.column_mapping_mode != "none" and before.column_mapping_mode != "none":
        bare = change_fields(schema, _without_mapping)
        nested = (typed.iceberg_compat or 0) >= 2
        kept = keep_mapping(bare, before.schema)
        renewed, last = assign_columns(kept, recorded_max_id(before.configuration), nested_ids=nested)
        domains = tuple(_renamed(domain, schema, renewed) for domain in domains)
        schema = renewed
        properties[Property.COLUMN_MAPPING_MAX_COLUMN_ID] = str(last)
    if before.supports(Feature.ROW_TRACKING):
        properties |= {k: str(v) for k, v in before.configuration.items() if k in _ROW_TRACKING_COLUMNS}
    protected = before.configuration.get(Property.REQUIRE_CHECKPOINT_PROTECTION_BEFORE_VERSION)
    if protected is not None and before.supports(Feature.CHECKPOINT_PROTECTION):
        # the history of the table before is that of the new one
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
    """The clustering domain, which names physical columns, for other physical names."""
    if domain.domain != CLUSTERING_DOMAIN:
        return domain
    known = json.loads(domain.configuration)
    known["clusteringColumns"] = [
        list(physical_path(renewed, logical_path(schema, tuple(path)))) for path in known["clusteringColumns"]
    ]
    return DomainMetadata(CLUSTERING_DOMAIN, json.dumps(known, separators=(",", ":")))


def _domains(made: TableDefinition, snapshot: Snapshot) -> tuple[DomainMetadata, ...]:
    """The clustering of the new columns, or none where the table was clustered before."""
    if made.domains or not clustered_by(snapshot):
        return made.domains
    return (DomainMetadata(CLUSTERING_DOMAIN, json.dumps({"clusteringColumns": [], "domainName": CLUSTERING_DOMAIN})),)


def _without_mapping(f: StructField) -> StructField:
    return replace(f, metadata={k: v for k, v in f.metadata.items() if k not in MAPPING_KEYS})


def _operation(name: str, request: CreateRequest, metadata: Metadata) -> Operation:
    return Operation(
        name,
        {
            "isManaged": "false",
            "description": request.description,
            "partitionBy": list(metadata.partition_columns or ()),
            "clusterBy": list(request.clustering_columns),
            "properties": dict(metadata.configuration or {}),
        },
    )
