"""The metadata of a table whose schema changes: by evolution, or by an overwrite that replaces it.

Protocol: "Change Metadata", "Column Mapping".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from delta_pyds.errors import ProtocolError, UnsupportedOperationError, UserError
from delta_pyds.protocol.actions import Metadata
from delta_pyds.protocol.char_types import (
    CHAR_VARCHAR_TYPE,
    Limits,
    TextLimits,
    combine_limits,
    declared_type,
    text_limits,
)
from delta_pyds.protocol.features import Feature
from delta_pyds.protocol.foreign_json import decode_json
from delta_pyds.protocol.properties import Property
from delta_pyds.protocol.schema import (
    DataType,
    StructField,
    StructType,
    change_fields,
    common_parts,
    parse_schema,
    schema_to_string,
)
from delta_pyds.table.configuration import TableConfiguration
from delta_pyds.table.definition.clustering import fields_along
from delta_pyds.table.definition.column_mapping import assign_columns, keep_mapping, recorded_max_id
from delta_pyds.table.definition.iceberg_rules import check_iceberg, check_iceberg_partitioning
from delta_pyds.table.definition.identity import keep_high_water_marks
from delta_pyds.table.definition.schema_rules import (
    check_added,
    check_columns,
    check_defaults,
    check_duplicates,
    check_partitioning,
    columns_of_new_table,
)

_Key = Callable[[StructField], str]


def evolve_metadata(configuration: TableConfiguration, schema: StructType) -> Metadata:
    """The table's metadata with another schema, such as one that ``enforce_schema`` returned.

    Invariants: id, properties and partitioning stay. With column mapping every field has an id and a physical name,
    and ``maxColumnId`` covers all ids and never decreases. Declared types keep the text lengths of the current fields.
    An unchanged schema returns the table's own metadata object.

    Raises:
        UnsupportedOperationError: delta_pyds could not write the stored schema back without loss.
    """
    if schema == configuration.schema:
        return configuration.metadata
    check_rewritable(configuration)
    return _with_schema(configuration, schema, configuration.partition_columns, evolved=True)


def replace_schema(
    configuration: TableConfiguration,
    incoming: StructType,
    partition_columns: Sequence[str] | None = None,
    *,
    clustering_columns: Sequence[tuple[str, ...]] = (),
) -> Metadata:
    """The metadata of a table that is overwritten with rows of another schema and partitioning.

    Invariants: id, name and properties stay. Columns of the same name and type keep their ids and physical names.
    Identity columns keep their high-water marks. Incoming columns become nullable.

    Args:
        partition_columns: None means no partitioning, as in the reference.
        clustering_columns: physical paths, which must stay columns of the table.
    Raises:
        UserError: errors of ``schema_rules`` and ``iceberg_rules``;
            DELTA_CLUSTERING_REPLACE_TABLE_WITH_PARTITIONED_TABLE and DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN.
    """
    check_duplicates(incoming)
    schema = keep_high_water_marks(columns_of_new_table(incoming), configuration.schema)
    partitions = check_partitioning(schema, partition_columns or ())
    if partitions and configuration.supports(Feature.CLUSTERING):
        raise UserError(
            f"the table {configuration.table_root} is clustered, so it cannot also be partitioned: leave out the "
            "option partitionBy.",
            code="DELTA_CLUSTERING_REPLACE_TABLE_WITH_PARTITIONED_TABLE",
            table=configuration.table_root,
        )
    mapped = configuration.column_mapping_mode != "none"
    check_columns(schema, partitions, mapped=mapped, change_data_feed=configuration.properties.change_data_feed)
    check_added({(f.name,): f for f in schema}, mapped=mapped, reserved=configuration.hidden_columns)
    check_defaults(schema, configuration.features)
    iceberg = configuration.properties.iceberg_compat
    check_iceberg(schema, iceberg, partitions)
    check_iceberg_partitioning(iceberg, configuration.partition_columns, partitions)
    if mapped:
        schema = keep_mapping(schema, configuration.schema)
    metadata = _with_schema(configuration, schema, partitions)
    _check_clustering(configuration, parse_schema(metadata.schema_string or ""), clustering_columns)
    return metadata


def _with_schema(
    configuration: TableConfiguration, schema: StructType, partitions: Sequence[str], *, evolved: bool = False
) -> Metadata:
    properties = dict(configuration.configuration)
    mapped = configuration.column_mapping_mode != "none"
    if mapped:
        known = recorded_max_id(properties)
        iceberg = configuration.properties.iceberg_compat or 0
        schema, max_id = assign_columns(schema, known, nested_ids=iceberg >= 2)
        properties[Property.COLUMN_MAPPING_MAX_COLUMN_ID] = str(max_id)
    else:
        # the stored schema keeps its ids and physical names, although column mapping is off
        stored = parse_schema(configuration.metadata.schema_string or "")
        schema = keep_mapping(schema, stored, any_type=True)
    if evolved:
        # fields have physical names now: they distinguish a new field from an old one of the same name
        schema = _with_declared_types(schema, configuration.schema, mapped=mapped)
    return msgspec.structs.replace(
        configuration.metadata,
        schema_string=schema_to_string(schema),
        partition_columns=list(partitions),
        configuration=properties,
    )


def _check_clustering(
    configuration: TableConfiguration, schema: StructType, clustering_columns: Sequence[tuple[str, ...]]
) -> None:
    for path in clustering_columns:
        if len(fields_along(schema, path)) < len(path):
            raise UserError(
                f"the table {configuration.table_root} is clustered by the column {'.'.join(path)}, which the new "
                "schema lacks or has with another type. Keep the column, or change the clustering with another "
                "engine first.",
                code="DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN",
                table=configuration.table_root,
            )


def check_rewritable(configuration: TableConfiguration) -> None:
    """Raises: UnsupportedOperationError if delta_pyds could not write the stored schema back without loss."""
    lost = _unwritable_part(decode_json(configuration.metadata.schema_string or "{}"))
    if lost is not None:
        raise UnsupportedOperationError(
            f"the schema of table {configuration.table_root} has {lost}, which delta_pyds can read but not write "
            "back, so it cannot change the schema. Change it with the engine that created the table, then write.",
            code="DELTA_UNSUPPORTED_DATA_TYPES",
            table=configuration.table_root,
        )


def _unwritable_part(value: Any) -> str | None:
    """A part of a stored schema that would be lost by parsing and writing it."""
    if isinstance(value, str):
        name = value.strip().lower()
        return f"the type {value}" if name.startswith(("char", "varchar", "string ")) else None
    if not isinstance(value, dict):
        return None
    if value.get("type") == "udt":
        return "a user-defined type"
    parts = [value.get(key) for key in ("type", "elementType", "keyType", "valueType")]
    parts += [f.get("type") for f in value.get("fields") or ()]
    return next((found for part in parts if (found := _unwritable_part(part)) is not None), None)


def _with_declared_types(schema: StructType, before: StructType, *, mapped: bool) -> StructType:
    """The schema with its declared types (``char(n)``, ``varchar(n)``) updated.

    Invariant: a column with a length limit anywhere in it declares its whole current type in its own metadata. No
    nested field declares a type. The reference looks only at the column, and matches nested types by position. This is
    a convention of Spark, not of the protocol.

    ``before`` is the schema that this one evolved from. Fields match by their physical names if the table is
    ``mapped``, otherwise by their names. A limit stays with its field; a new field, or one with a changed declared
    type, brings its own. A declared type that could not be parsed before stays as it is, because its meaning is
    unknown.
    """
    key: _Key = (lambda f: f.physical_name) if mapped else (lambda f: f.name)
    was = {key(f): f for f in before}
    return StructType(tuple(_with_declared_type(f, was.get(key(f)), key) for f in schema))


def _with_declared_type(f: StructField, old: StructField | None, key: _Key) -> StructField:
    if old is None or f.metadata.get(CHAR_VARCHAR_TYPE) != old.metadata.get(CHAR_VARCHAR_TYPE):
        return f if CHAR_VARCHAR_TYPE in f.metadata else _with_limits(f, text_limits(f))
    if f.data_type == old.data_type:
        return f
    try:
        before = text_limits(old)
    except ProtocolError:
        return f
    return _with_limits(f, _carried_limits(f.data_type, old.data_type, before, key))


def _with_limits(f: StructField, limits: Limits) -> StructField:
    metadata = _without_declared_type(f)
    if limits is None:
        return replace(f, metadata=metadata)
    [inside] = change_fields(StructType((f,)), lambda one: replace(one, metadata=_without_declared_type(one))).fields
    text = declared_type(f.data_type, limits)
    return replace(f, data_type=inside.data_type, metadata={**metadata, CHAR_VARCHAR_TYPE: text})


def _without_declared_type(f: StructField) -> dict[str, Any]:
    return {k: v for k, v in f.metadata.items() if k != CHAR_VARCHAR_TYPE}


def _carried_limits(data_type: DataType, old: DataType, limits: Limits, key: _Key) -> Limits:
    """The ``limits`` of the type ``old``, for the fields that are still in ``data_type``."""

    def part(number: int) -> Limits:
        return limits.parts[number] if isinstance(limits, TextLimits) else None

    if isinstance(data_type, StructType) and isinstance(old, StructType):
        was = {key(f): (f, part(i)) for i, f in enumerate(old)}
        return combine_limits(tuple(_field_limits(f, was.get(key(f)), key) for f in data_type))
    if pairs := common_parts(data_type, old):
        return combine_limits(tuple(_carried_limits(now, was, part(i), key) for i, (_, now, was) in enumerate(pairs)))
    return limits if data_type == old else None


def _field_limits(f: StructField, was: tuple[StructField, Limits] | None, key: _Key) -> Limits:
    if was is None or f.metadata.get(CHAR_VARCHAR_TYPE) != was[0].metadata.get(CHAR_VARCHAR_TYPE):
        return text_limits(f)
    return _carried_limits(f.data_type, was[0].data_type, was[1], key)
