"""The table to write to: the existing one, changed as far as the write may, or a new one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from delta_pyds.catalog.managed import is_catalog_managed
from delta_pyds.catalog.opening import features_of_new_table, properties_of_new_table, table_storage
from delta_pyds.commands.write.existing_data import check_comment, check_no_other_format, check_properties
from delta_pyds.commands.write.request import WriteRequest
from delta_pyds.errors import OptionError, TableNotFoundError, UserError
from delta_pyds.protocol.actions import DomainMetadata, Metadata, Protocol
from delta_pyds.protocol.features import Feature
from delta_pyds.storage.base import Storage
from delta_pyds.table.configuration import TableConfiguration, load_configuration
from delta_pyds.table.definition.clustering import clustering_columns
from delta_pyds.table.definition.create import TableDefinition, new_table
from delta_pyds.table.definition.iceberg_rules import check_iceberg_table
from delta_pyds.table.definition.protocol_upgrade import upgrade_protocol
from delta_pyds.table.definition.replacement import kept_properties, replacing_definition
from delta_pyds.table.definition.schema_enforcement import enforce_schema
from delta_pyds.table.definition.schema_evolution import evolve_metadata, replace_schema
from delta_pyds.table.snapshot import Snapshot, open_snapshot


@dataclass(frozen=True)
class Target:
    """The table as the write will leave it.

    ``configuration``: protocol, metadata and schema after the commit.
    ``metadata``, ``protocol``, ``domains``: the actions of the commit;
    None, or empty, if they do not change. ``clustering``: physical paths of the clustering columns.
    ``table_id``: the existing table's id before the commit, or the new table's.
    """

    configuration: TableConfiguration
    metadata: Metadata | None
    protocol: Protocol | None
    domains: tuple[DomainMetadata, ...]
    clustering: tuple[tuple[str, ...], ...]
    table_id: str


def open_target(request: WriteRequest) -> Snapshot | None:
    """Open the table at the path, at ``request.read_version`` or at its latest version; None if it does not exist.

    Raises: UserError if ``create_mode`` forbids that, or if the directory holds data of another format;
        as ``open_snapshot`` for a damaged log.
    """
    storage = table_storage(request.table_root, request.storage_options)
    try:
        snapshot = open_snapshot(storage, request.table_root, request.read_version)
    except TableNotFoundError:
        if request.create_mode == "errorIfNotExists":
            raise
        if request.create_mode == "replace":
            raise TableNotFoundError(
                f"there is no table at {request.table_root} to replace. "
                "createMode=createOrReplace, or CREATE OR REPLACE TABLE, creates it.",
                code="TABLE_OR_VIEW_NOT_FOUND",
                table=request.table_root,
            ) from None
        check_no_other_format(storage, request.table_root)
        return None
    if request.create_mode == "errorIfExists":
        raise UserError(
            f"the table at {request.table_root} already exists (version {snapshot.version}), and this write may only "
            "create one (createMode is errorIfExists). Nothing was written: write to another path, or with "
            'mode="append" or mode="overwrite"; with the format leave the option createMode out.',
            code="DELTA_PATH_EXISTS",
            table=request.table_root,
        )
    return snapshot


def plan_target(request: WriteRequest, snapshot: Snapshot | None) -> Target:
    """Decide the schema, properties and protocol that the write needs.

    Raises: UserError and similar errors for a schema, partitioning or property that the table cannot have.
    """
    if snapshot is None:
        return _created(request)
    configuration = snapshot.configuration
    configuration.check_writable()
    if request.replaces_table:
        return _replaced(request, snapshot)
    check_properties(request.properties, configuration)
    check_comment(request.table_comment, configuration)
    # read only if the table can have them: domains may be in the checkpoint
    clustering = clustering_columns(snapshot.domain_metadata) if configuration.supports(Feature.CLUSTERING) else ()
    if request.overwrite_schema:
        partitions = None if request.partition_by is None else _top_level(request.partition_by, "partitionBy")
        metadata = replace_schema(
            configuration, request.incoming, partition_columns=partitions, clustering_columns=clustering
        )
    else:
        _check_layout(request, configuration, clustering)
        schema = enforce_schema(configuration, request.incoming, merge_schema=request.merge_schema)
        if schema == configuration.schema:
            return Target(configuration, None, None, (), clustering, configuration.metadata.id)
        metadata = evolve_metadata(configuration, schema)
    if not request.data_change:
        raise OptionError(
            f"dataChange=false says that the rows of {request.table_root} stay the same, but the write changes the "
            "table's schema: leave the option out.",
            option="dataChange",
        )
    protocol = upgrade_protocol(snapshot.protocol, metadata, domains=tuple(snapshot.domain_metadata.values()))
    changed = configuration.redefined(snapshot.version, protocol, metadata)
    if request.overwrite_schema:
        _check_clustering(request, changed, clustering)
    changed_protocol = None if protocol == snapshot.protocol else protocol
    return Target(changed, metadata, changed_protocol, (), clustering, configuration.metadata.id)


def _created(request: WriteRequest) -> Target:
    if not request.data_change:
        raise OptionError(
            f"dataChange=false says that the rows of a table stay the same, but there is no table at "
            f"{request.table_root} yet: leave the option out.",
            option="dataChange",
        )
    storage = table_storage(request.table_root, request.storage_options)
    definition = _definition(request, storage, request.properties)
    configuration = load_configuration(
        request.table_root,
        0,
        definition.protocol,
        definition.metadata,
        by_catalog=is_catalog_managed(storage),
    )
    configuration.check_writable()
    domains = tuple(definition.domains)
    return Target(
        configuration,
        definition.metadata,
        definition.protocol,
        domains,
        clustering_columns({d.domain: d for d in domains}),
        definition.metadata.id,
    )


def _replaced(request: WriteRequest, snapshot: Snapshot) -> Target:
    """The definition that replaces an existing table's; the history stays."""
    before = snapshot.configuration
    asked = _definition(request, snapshot.storage, kept_properties(before, request.properties))
    made = replacing_definition(before, snapshot.domain_metadata, asked)
    configuration = before.redefined(snapshot.version, made.protocol, made.metadata)
    configuration.check_writable()
    check_iceberg_table(before, configuration)
    return Target(
        configuration,
        made.metadata,
        None if made.protocol == snapshot.protocol else made.protocol,
        made.domains,
        clustering_columns({d.domain: d for d in made.domains}),
        before.metadata.id,
    )


def _definition(request: WriteRequest, storage: Storage, properties: Mapping[str, str]) -> TableDefinition:
    return new_table(
        request.table_root,
        request.incoming,
        partition_columns=_top_level(request.partition_by or (), "partitionBy"),
        clustering_columns=request.cluster_by or (),
        properties=properties_of_new_table(storage, properties),
        features=features_of_new_table(storage),
        description=request.table_comment,
    )


def _top_level(paths: tuple[tuple[str, ...], ...], option: str) -> tuple[str, ...]:
    for path in paths:
        if len(path) > 1:
            raise OptionError(
                f"the option {option} names the nested field '{'.'.join(path)}': a table is partitioned by whole "
                "columns. A name with dots goes in backticks.",
                option=option,
            )
    return tuple(path[0] for path in paths)


def _check_layout(
    request: WriteRequest, configuration: TableConfiguration, clustering: tuple[tuple[str, ...], ...]
) -> None:
    """Refuse a partitioning or clustering that differs from the table's. An append may repeat it or leave it out."""
    if request.partition_by:
        asked = _top_level(request.partition_by, "partitionBy")
        have = configuration.partition_columns
        if [a.lower() for a in asked] != [h.lower() for h in have]:
            raise UserError(
                f"the table {configuration.table_root} is partitioned by ({', '.join(have)}), but the option "
                f"partitionBy is ({', '.join(asked)}). Leave the option out, or change the partitioning with "
                '.mode("overwrite") and overwriteSchema=true.',
                code="DELTA_METADATA_MISMATCH",
                table=configuration.table_root,
            )
    _check_clustering(request, configuration, clustering)


def _check_clustering(
    request: WriteRequest, configuration: TableConfiguration, clustering: tuple[tuple[str, ...], ...]
) -> None:
    if request.cluster_by:
        asked_paths = tuple(_physical(configuration, path) for path in request.cluster_by)
        if asked_paths != clustering:
            shown = ", ".join(".".join(path) for path in clustering) or "nothing"
            raise UserError(
                f"the table {configuration.table_root} is clustered by {shown}, but the option clusterBy is "
                f"{', '.join('.'.join(p) for p in request.cluster_by)}. Leave the option out.",
                code="DELTA_CLUSTERING_COLUMNS_MISMATCH",
                table=configuration.table_root,
            )


def _physical(configuration: TableConfiguration, path: tuple[str, ...]) -> tuple[str, ...]:
    from delta_pyds.table.scan.column_selection import select_columns

    names: list[str] = []
    fields = select_columns(configuration.schema, [path], configuration.table_root).fields
    for _ in path:
        names.append(fields[0].physical_name)
        inner = fields[0].data_type
        fields = getattr(inner, "fields", ())
    return tuple(names)
