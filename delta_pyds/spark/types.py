"""Schemas between Spark and the protocol: both speak the same JSON."""

from __future__ import annotations

import json

from pyspark.sql import types as spark_types

from delta_pyds.protocol.schema import (
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    parse_type,
    type_to_json,
)

# Written by Delta writers for Delta writers: a DataFrame that carried them into
# another table would drag column ids, generation expressions and defaults along.
_INTERNAL = ("delta.",)
_INTERNAL_KEYS = frozenset({"CURRENT_DEFAULT", "EXISTS_DEFAULT"})


def to_spark(schema: StructType) -> spark_types.StructType:
    """The Spark schema of a table, without the writers' field metadata."""
    return spark_types.StructType.fromJson(type_to_json(_public(schema)))


def from_spark(schema: spark_types.StructType) -> StructType:
    """A Spark schema as the protocol's."""
    parsed = parse_type(json.loads(schema.json()))
    assert isinstance(parsed, StructType)
    return parsed


def _public(data_type: DataType) -> DataType:
    if isinstance(data_type, StructType):
        return StructType(tuple(_public_field(f) for f in data_type))
    if isinstance(data_type, ArrayType):
        return ArrayType(_public(data_type.element_type), data_type.contains_null)
    if isinstance(data_type, MapType):
        return MapType(_public(data_type.key_type), _public(data_type.value_type), data_type.value_contains_null)
    return data_type


def _public_field(field: StructField) -> StructField:
    metadata = {
        k: v for k, v in field.metadata.items() if not k.startswith(_INTERNAL) and k not in _INTERNAL_KEYS
    }
    return StructField(field.name, _public(field.data_type), field.nullable, metadata)
