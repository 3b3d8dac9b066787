"""The columns of our checkpoints.

As in the reference, every field is nullable except the keys of maps. Protocol: "Checkpoint Schema".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Set

import pyarrow as pa

from delta_pyds.columnar.schema import arrow_type
from delta_pyds.log.file_table import FILE_COLUMNS, STRING_MAP, TOMBSTONE_COLUMNS
from delta_pyds.protocol.schema import PrimitiveType, StructField, StructType, has_minimum

_STRINGS = pa.list_(pa.field("element", pa.string()))
# Longer schemas are left out of hints and tags, as in the reference.
_MAX_SCHEMA_CHARACTERS = 20_000

SMALL_ACTIONS: dict[str, pa.DataType] = {
    "txn": pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())]),
    "metaData": pa.struct(
        [
            ("id", pa.string()),
            ("name", pa.string()),
            ("description", pa.string()),
            ("format", pa.struct([("provider", pa.string()), ("options", STRING_MAP)])),
            ("schemaString", pa.string()),
            ("partitionColumns", _STRINGS),
            ("configuration", STRING_MAP),
            ("createdTime", pa.int64()),
        ]
    ),
    "protocol": pa.struct(
        [
            ("minReaderVersion", pa.int32()),
            ("minWriterVersion", pa.int32()),
            ("readerFeatures", _STRINGS),
            ("writerFeatures", _STRINGS),
        ]
    ),
    "domainMetadata": pa.struct([("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())]),
}

# the additional columns of V2 checkpoints
CHECKPOINT_METADATA = pa.struct([("version", pa.int64()), ("tags", STRING_MAP)])
SIDECAR = pa.struct(
    [("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64()), ("tags", STRING_MAP)]
)

REMOVE = pa.struct(list(TOMBSTONE_COLUMNS.items()))


def add_type(
    *, stats_as_json: bool, statistics: pa.StructType | None, partition_values: pa.StructType | None
) -> pa.StructType:
    """The type of ``add``, with ``stats_parsed`` and ``partitionValues_parsed`` of the given types."""
    fields = [(name, data_type) for name, data_type in FILE_COLUMNS.items() if name != "stats"]
    if stats_as_json:
        fields.append(("stats", pa.string()))
    if partition_values is not None:
        fields.append(("partitionValues_parsed", partition_values))
    if statistics is not None:
        fields.append(("stats_parsed", statistics))
    return pa.struct(fields)


def classic_schema(add: pa.StructType) -> pa.Schema:
    """The schema of a classic checkpoint: one column for each kind of action. Protocol: "Checkpoint Schema"."""
    transaction, *others = SMALL_ACTIONS.items()
    return pa.schema([transaction, ("add", add), ("remove", REMOVE), *others])


def v2_schema(add: pa.StructType) -> pa.Schema:
    """The schema of a V2 checkpoint in Parquet. Protocol: "V2 Spec"."""
    more = [pa.field("checkpointMetadata", CHECKPOINT_METADATA), pa.field("sidecar", SIDECAR)]
    return pa.schema([*classic_schema(add), *more])


def sidecar_schema(add: pa.StructType) -> pa.Schema:
    """The schema of a sidecar of a V2 checkpoint: only file actions. Protocol: "Sidecar Files"."""
    return pa.schema([("add", add), ("remove", REMOVE)])


def partition_values_type(schema: StructType, partition_columns: Iterable[str]) -> pa.StructType | None:
    """The type of ``partitionValues_parsed``, with physical names; None for a table without partitions."""
    columns = [f for name in partition_columns for f in schema if f.name == name]
    return pa.struct([(f.physical_name, arrow_type(f.data_type)) for f in columns]) if columns else None


def statistics_type(
    schema: StructType, partition_columns: Iterable[str], statistics_columns: Iterable[tuple[str, ...]]
) -> pa.StructType:
    """The type of ``stats_parsed``, with physical names.

    Bounds exist for the types that data skipping supports (not for a variant,
    whose bounds readers interpret differently), null counts for all columns.
    ``tightBounds`` is always present: without it, wide bounds would count as tight.

    Args:
        schema: the table's logical schema.
        partition_columns: logical names; these columns have no statistics.
        statistics_columns: paths of logical names. A path of a struct includes everything below it.

    Protocol: "Per-file Statistics".
    """
    without = frozenset(partition_columns)
    columns = [f for f in schema if f.name not in without]
    wanted = frozenset(statistics_columns)
    bounds = _leaves(columns, (), wanted, only_bounds=True)
    nulls = _leaves(columns, (), wanted, only_bounds=False)
    fields: list[tuple[str, pa.DataType]] = [("numRecords", pa.int64())]
    if bounds.num_fields:
        fields += [("minValues", bounds), ("maxValues", bounds)]
    if nulls.num_fields:
        fields.append(("nullCount", nulls))
    return pa.struct([*fields, ("tightBounds", pa.bool_())])


def _leaves(
    fields: Iterable[StructField], above: tuple[str, ...], wanted: Set[tuple[str, ...]], *, only_bounds: bool
) -> pa.StructType:
    found: list[tuple[str, pa.DataType]] = []
    for field in fields:
        path = (*above, field.name)
        if isinstance(field.data_type, StructType):
            below = wanted
            if path in wanted:
                below = wanted | {(*path, f.name) for f in field.data_type}
            inner = _leaves(field.data_type, path, below, only_bounds=only_bounds)
            if inner.num_fields:
                found.append((field.physical_name, inner))
        elif path in wanted and field.data_type != PrimitiveType("void"):
            if not only_bounds:
                found.append((field.physical_name, pa.int64()))
            elif has_minimum(field.data_type):
                found.append((field.physical_name, arrow_type(field.data_type)))
    return pa.struct(found)


def short_schema_json(schema: pa.Schema) -> str | None:
    """The schema as Spark's JSON; None if it is too long for hints and tags."""
    text = json.dumps(_spark_struct(schema), separators=(",", ":"), ensure_ascii=False)
    return text if len(text) <= _MAX_SCHEMA_CHARACTERS else None


def _spark_struct(fields: Iterable[pa.Field]) -> dict[str, object]:
    return {
        "type": "struct",
        "fields": [{"name": f.name, "type": _spark_type(f.type), "nullable": True, "metadata": {}} for f in fields],
    }


_SPARK_NAMES = {
    pa.string(): "string",
    pa.int64(): "long",
    pa.int32(): "integer",
    pa.int16(): "short",
    pa.int8(): "byte",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.bool_(): "boolean",
    pa.binary(): "binary",
    pa.date32(): "date",
    pa.timestamp("us", tz="UTC"): "timestamp",
    pa.timestamp("us"): "timestamp_ntz",
}


def _spark_type(data_type: pa.DataType) -> object:
    if pa.types.is_struct(data_type):
        return _spark_struct(data_type)
    if pa.types.is_map(data_type):
        return {
            "type": "map",
            "keyType": _spark_type(data_type.key_type),
            "valueType": _spark_type(data_type.item_type),
            "valueContainsNull": True,
        }
    if pa.types.is_list(data_type):
        return {"type": "array", "elementType": _spark_type(data_type.value_type), "containsNull": True}
    if pa.types.is_decimal(data_type):
        return f"decimal({data_type.precision},{data_type.scale})"
    return _SPARK_NAMES[data_type]
