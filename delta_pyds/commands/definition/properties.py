"""Table properties set and unset, with their consequences.

Invariant: a property is on only if every reader and writer can apply it, also to existing files. Work beyond the
metadata (row ids for existing files, rewriting files without column mapping) is done before.

Protocol: "Change Metadata", "Column Mapping", "In-Commit Timestamps", "Row Tracking".
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec

from delta_pyds.commands.definition.change import DefinitionChange
from delta_pyds.commands.definition.compatible_files import require_compatible_files
from delta_pyds.errors import OptionError, UserError
from delta_pyds.protocol.actions import Metadata
from delta_pyds.protocol.features import (
    READER_VERSION_WITH_FEATURES,
    WRITER_VERSION_WITH_FEATURES,
    Feature,
    implied_features,
)
from delta_pyds.protocol.properties import (
    CONSTRAINT_PREFIX,
    FEATURE_PREFIX,
    Property,
    parse_properties,
)
from delta_pyds.protocol.schema import (
    COLUMN_MAPPING_PHYSICAL_NAME,
    change_fields,
    parse_schema,
    schema_to_string,
)
from delta_pyds.table.configuration import TableConfiguration
from delta_pyds.table.definition.clustering import require_clustering_statistics
from delta_pyds.table.definition.column_mapping import assign_columns, recorded_max_id
from delta_pyds.table.definition.property_rules import (
    PROPERTY_RULES,
    PropertyRequest,
    check_consistent,
    read_properties,
)
from delta_pyds.table.definition.schema_evolution import check_rewritable
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.table.transaction.commit_info import Operation

# the table's description, as SQL sets it
_COMMENT = "comment"
# the reference's writers do not treat a commit with this tag as a conflict
_ONLY_ROW_TRACKING = {"rowTrackingEnablementOnly": "true"}


def set_properties(snapshot: Snapshot, properties: Mapping[str, str]) -> DefinitionChange:
    """Set properties.

    Row tracking must be ready (``row_tracking.backfill``) and column mapping may not be removed here
    (``unmapping.remove_mapping``).

    Raises: OptionError for invalid properties (see ``property_rules``); UserError
        (DELTA_COLUMN_MAPPING_..., DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE); UnsupportedOperationError
        (DELTA_ICEBERG_COMPAT_VIOLATION.CHANGE_VERSION_NEED_REWRITE) for files that Iceberg compatibility would rewrite.
    """
    before = snapshot.configuration
    given = {key: value for key, value in properties.items() if key.lower() != _COMMENT}
    _refuse_constraints(given)
    request = read_properties(given)
    configuration = {**before.configuration, **request.configuration}
    check_consistent(configuration)
    description = next((value for key, value in properties.items() if key.lower() == _COMMENT), None)
    metadata = msgspec.structs.replace(
        snapshot.metadata,
        configuration=configuration,
        description=snapshot.metadata.description if description is None else description,
    )
    features = _features_of(before.table_root, request)
    metadata = _with_consequences(snapshot, metadata)
    compatible = _becomes_compatible(before, metadata)
    if compatible is not None:
        metadata = _with_nested_ids(before, metadata)
        require_compatible_files(snapshot, metadata, compatible)
    if Feature.ROW_TRACKING in features:
        metadata = msgspec.structs.replace(metadata, configuration=row_tracking_columns(metadata.configuration or {}))
    return DefinitionChange(
        Operation("SET TBLPROPERTIES", {"properties": dict(properties)}),
        metadata,
        features=features,
        # files that other writers add meanwhile are not checked
        depends_on_rows=compatible is not None,
        tags=_ONLY_ROW_TRACKING if list(request.configuration) == [Property.ENABLE_ROW_TRACKING] else {},
    )


def unset_properties(snapshot: Snapshot, keys: Sequence[str], *, if_exists: bool = False) -> DefinitionChange:
    """Remove properties from the table.

    Raises: OptionError (DELTA_UNSET_NON_EXISTENT_PROPERTY) unless ``if_exists``; UserError for a required property.
    """
    before = snapshot.configuration
    configuration = dict(before.configuration)
    description = snapshot.metadata.description
    for key in keys:
        if key.lower() == _COMMENT:
            description = None
            continue
        _refuse_constraints({key: ""})
        rule = PROPERTY_RULES.get(key.lower())
        stored = rule.key if rule is not None else key
        if stored not in configuration and not if_exists:
            raise OptionError(
                f"table {before.table_root} has no property '{key}' to unset. It has: "
                f"{', '.join(sorted(configuration)) or 'none'}.",
                code="DELTA_UNSET_NON_EXISTENT_PROPERTY",
                table=before.table_root,
                property=key,
            )
        if stored.lower().startswith("delta.") and rule is None and stored in configuration:
            read_properties({stored: str(configuration[stored])})  # refuses properties that only writers change
        configuration.pop(stored, None)
    check_consistent(configuration)
    metadata = msgspec.structs.replace(snapshot.metadata, configuration=configuration, description=description)
    return DefinitionChange(
        Operation("UNSET TBLPROPERTIES", {"properties": list(keys), "ifExists": True}),
        _with_consequences(snapshot, metadata),
    )


def enables_row_tracking(snapshot: Snapshot, properties: Mapping[str, str]) -> bool:
    """Whether these properties would enable row tracking, so that files without row ids must get them first."""
    key = Property.ENABLE_ROW_TRACKING.lower()
    asked = any(name.lower() == key and str(value).strip().lower() == "true" for name, value in properties.items())
    return asked and not snapshot.configuration.has_row_tracking


def removes_mapping(snapshot: Snapshot, properties: Mapping[str, str]) -> bool:
    """Whether these properties would remove column mapping, so that all files must be rewritten first."""
    key = Property.COLUMN_MAPPING_MODE.lower()
    asked = any(name.lower() == key and str(value).strip().lower() == "none" for name, value in properties.items())
    return asked and snapshot.configuration.column_mapping_mode != "none"


def check_alone(properties: Mapping[str, str]) -> None:
    """Raises: OptionError if other properties are set together with the removal of column mapping."""
    others = [key for key in properties if key.lower() != Property.COLUMN_MAPPING_MODE.lower()]
    if others:
        raise OptionError(
            f"{Property.COLUMN_MAPPING_MODE}=none rewrites all files, in a separate change: set "
            f"{', '.join(others)} in another call.",
            option=Property.COLUMN_MAPPING_MODE,
        )


def row_tracking_columns(configuration: Mapping[str, str | None]) -> dict[str, str | None]:
    """The properties with names for the columns of row ids, if these are missing."""
    names = {
        Property.MATERIALIZED_ROW_ID_COLUMN_NAME: f"_row-id-col-{uuid.uuid4()}",
        Property.MATERIALIZED_ROW_COMMIT_VERSION_COLUMN_NAME: f"_row-commit-version-col-{uuid.uuid4()}",
    }
    return {**configuration, **{key: name for key, name in names.items() if not configuration.get(key)}}


def _with_consequences(snapshot: Snapshot, metadata: Metadata) -> Metadata:
    before = snapshot.configuration
    configuration = dict(metadata.configuration or {})
    then, now = before.properties, parse_properties(configuration)
    if now.row_tracking and not then.row_tracking:
        configuration = dict(row_tracking_columns(configuration))
    metadata = msgspec.structs.replace(metadata, configuration=configuration)
    metadata = _with_mapping(before, metadata, now.column_mapping_mode)
    require_clustering_statistics(before, now, snapshot.domain_metadata, f"table {before.table_root}")
    return metadata


def _becomes_compatible(before: TableConfiguration, metadata: Metadata) -> int | None:
    """The version of Iceberg compatibility that the properties newly enable, or None.

    Also None if the definition forbids it: then the commit raises the error (``iceberg_rules``).
    """
    after = parse_properties(metadata.configuration or {})
    version = after.iceberg_compat
    allowed = version in (1, 2) and after.column_mapping_mode != "none"
    return version if allowed and version != before.properties.iceberg_compat else None


def _with_nested_ids(before: TableConfiguration, metadata: Metadata) -> Metadata:
    """The metadata with ids for elements, keys and values. Protocol: "Writer Requirements for IcebergCompatV2"."""
    configuration = dict(metadata.configuration or {})
    if parse_properties(configuration).iceberg_compat != 2:
        return metadata
    check_rewritable(before)
    schema = parse_schema(metadata.schema_string or "")
    schema, last = assign_columns(schema, recorded_max_id(configuration), nested_ids=True)
    configuration[Property.COLUMN_MAPPING_MAX_COLUMN_ID] = str(last)
    return msgspec.structs.replace(metadata, schema_string=schema_to_string(schema), configuration=configuration)


def _with_mapping(before: TableConfiguration, metadata: Metadata, mode: str) -> Metadata:
    """The metadata with column mapping by name; physical names are the current names. Protocol: "Column Mapping"."""
    old = before.column_mapping_mode
    if mode == old:
        return metadata
    if (old, mode) != ("none", "name"):
        raise UserError(
            f"the column mapping of table {before.table_root} cannot change from {old} to {mode}: only from none to "
            "name, and from name or id back to none. Mode id can only be set when a table is created.",
            code="DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE",
            table=before.table_root,
        )
    check_rewritable(before)

    schema = change_fields(
        before.schema, lambda f: replace(f, metadata={**f.metadata, COLUMN_MAPPING_PHYSICAL_NAME: f.name})
    )
    schema, last = assign_columns(schema, recorded_max_id(before.configuration))
    configuration = {**(metadata.configuration or {}), Property.COLUMN_MAPPING_MAX_COLUMN_ID: str(last)}
    return msgspec.structs.replace(metadata, schema_string=schema_to_string(schema), configuration=configuration)


def _features_of(table: str, request: PropertyRequest) -> tuple[str, ...]:
    """The features that are requested by name, or implied by versions; versions with feature lists imply none.

    Raises: OptionError (DELTA_READ_FEATURE_PROTOCOL_REQUIRES_WRITE).
    """
    reader, writer = request.reader_version or 1, request.writer_version or 1
    if request.reader_version == READER_VERSION_WITH_FEATURES and writer < WRITER_VERSION_WITH_FEATURES:
        raise OptionError(
            f"the protocol of table {table} cannot have reader features only: reader version "
            f"{READER_VERSION_WITH_FEATURES} requires writer version {WRITER_VERSION_WITH_FEATURES}.",
            code="DELTA_READ_FEATURE_PROTOCOL_REQUIRES_WRITE",
            table=table,
        )
    if Feature.CLUSTERING in request.features:
        raise OptionError(
            f"the table feature clustering cannot be added to table {table} by its name: use DeltaTable.clusterBy, "
            "with the clustering columns.",
            code="DELTA_ALTER_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED",
            table=table,
        )
    return tuple(dict.fromkeys((*request.features, *sorted(implied_features(reader, writer)))))


def _refuse_constraints(properties: Mapping[str, str]) -> None:
    for key in properties:
        if key.lower().startswith(CONSTRAINT_PREFIX):
            raise OptionError(
                f"the property {key} is a CHECK constraint. Add it with DeltaTable.addConstraint, which checks the "
                "existing rows, and drop it with DeltaTable.dropConstraint.",
                code="DELTA_ADD_CONSTRAINTS",
                property=key,
            )
        if key.lower().startswith(FEATURE_PREFIX) and not properties[key]:
            raise OptionError(
                f"the property {key} is a table feature. Drop it with DeltaTable.dropFeatureSupport.",
                code="DELTA_CANNOT_MODIFY_TABLE_PROPERTY",
                property=key,
            )
