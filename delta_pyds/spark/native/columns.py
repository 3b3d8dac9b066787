"""Columns of files, converted to columns of the table.

Invariant: filters and selections of nested fields reach the Parquet reader, except for floating point columns. Their
Parquet statistics do not fit Spark's comparisons: writers leave NaN out of a maximum, although it is Spark's greatest
value, and dictionaries and bloom filters distinguish 0.0 from -0.0.

Protocol: "Column Mapping".
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as spark_types

from delta_pyds.protocol.quoting import quote_name
from delta_pyds.protocol.schema import (
    DOUBLE,
    FLOAT,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    change_fields,
    display,
    nullable_throughout,
    type_to_json,
)

_ROOT = "c"


def spark_type(data_type: DataType) -> spark_types.DataType:
    """The type as Spark's, nullable at all depths, without metadata."""
    plain = change_fields(_as_schema(nullable_throughout(data_type)), lambda f: StructField(f.name, f.data_type, True))
    return spark_types.StructType.fromJson(type_to_json(plain)).fields[0].dataType


def physical_type(data_type: DataType) -> DataType:
    """The type with physical names at all depths."""
    renamed = change_fields(_as_schema(data_type), lambda f: StructField(f.physical_name, f.data_type, f.nullable))
    return renamed.fields[0].data_type


def _as_schema(data_type: DataType) -> StructType:
    return StructType((StructField(_ROOT, data_type),))


def from_file(column: Column, data_type: DataType) -> Column:
    """A column of a file, with physical names, converted to the table's type ``data_type``."""
    if is_plain(data_type):
        return column
    if data_type in (FLOAT, DOUBLE):
        # the same value, but not a plain column: so Spark does not push down filters on it
        nan = F.lit(float("nan"))
        return F.nanvl(column, nan if data_type == DOUBLE else nan.cast(display(data_type)))
    if isinstance(data_type, StructType):
        return _struct(column, data_type)
    # filters do not reach into arrays and maps; a cast matches by position
    return column.cast(spark_type(data_type))


def is_plain(data_type: DataType) -> bool:
    """Whether a column of a file needs no conversion."""
    if isinstance(data_type, StructType):
        return all(f.physical_name == f.name and is_plain(f.data_type) for f in data_type)
    if isinstance(data_type, (ArrayType, MapType)):
        return spark_type(physical_type(data_type)) == spark_type(data_type)
    return data_type not in (FLOAT, DOUBLE)


def _struct(column: Column, data_type: StructType) -> Column:
    """The struct with each field replaced: nulls stay null, and Spark can prune fields."""
    old = {f.physical_name.lower() for f in data_type}
    renamed = [f for f in data_type if f.physical_name != f.name]
    fields = {f.name: from_file(column.getField(f.physical_name), f.data_type) for f in data_type}
    if renamed and (len(renamed) < len(data_type.fields) or any(f.name.lower() in old for f in data_type)):
        return F.when(column.isNotNull(), F.struct(*[value.alias(name) for name, value in fields.items()]))
    for name, value in fields.items():
        column = column.withField(quote_name(name), value)
    return column.dropFields(*[quote_name(f.physical_name) for f in renamed]) if renamed else column


def nested(column: Column, path: Sequence[str]) -> Column:
    """A nested field of a column of the table."""
    for name in path:
        column = column.getField(name)
    return column


def output(column: Column, have: DataType, want: DataType) -> Column:
    """A column of the table with the wanted nested fields only."""
    if spark_type(have) == spark_type(want):
        return column
    assert isinstance(have, StructType)
    assert isinstance(want, StructType)
    types = {f.name: f.data_type for f in have}
    fields = [output(column.getField(f.name), types[f.name], f.data_type).alias(f.name) for f in want]
    return F.when(column.isNotNull(), F.struct(*fields))
