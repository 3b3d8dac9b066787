"""Columns as the files have them, to columns as the table has them.

Invariant: a filter or a selection of nested fields on the result reaches the
Parquet reader, but for values whose Parquet statistics do not mean what Spark's
comparisons mean: those of floating point columns. Writers leave NaN out of a
maximum although Spark's NaN is the greatest value, and dictionaries and bloom filters tell 0.0 from -0.0.

Protocol: "Column Mapping".
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as spark_types

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
from delta_pyds.spark.native.expressions import quoted

_ROOT = "c"


def spark_type(data_type: DataType) -> spark_types.DataType:
    """The type as Spark's, nulls allowed throughout, without metadata."""
    plain = change_fields(_as_schema(nullable_throughout(data_type)), lambda f: StructField(f.name, f.data_type, True))
    return spark_types.StructType.fromJson(type_to_json(plain)).fields[0].dataType


def physical_type(data_type: DataType) -> DataType:
    """The type with the names that the files have at every depth."""
    renamed = change_fields(_as_schema(data_type), lambda f: StructField(f.physical_name, f.data_type, f.nullable))
    return renamed.fields[0].data_type


def _as_schema(data_type: DataType) -> StructType:
    return StructType((StructField(_ROOT, data_type),))


def from_file(column: Column, data_type: DataType) -> Column:
    """A column with physical names and the statistics of a file, as a column of the table's type ``data_type``."""
    if is_plain(data_type):
        return column
    if data_type in (FLOAT, DOUBLE):
        # the same value, but no longer a plain column that a filter could be handed down for
        return F.nanvl(column, F.lit(float("nan")).cast(display(data_type)))
    if isinstance(data_type, StructType):
        return _struct(column, data_type)
    # filters do not go into arrays and maps; a cast goes by position
    return column.cast(spark_type(data_type))


def is_plain(data_type: DataType) -> bool:
    """Whether nothing has to be done for a column of a file to be one of the table."""
    if isinstance(data_type, StructType):
        return all(f.physical_name == f.name and is_plain(f.data_type) for f in data_type)
    if isinstance(data_type, (ArrayType, MapType)):
        return spark_type(physical_type(data_type)) == spark_type(data_type)
    return data_type not in (FLOAT, DOUBLE)


def _struct(column: Column, data_type: StructType) -> Column:
    """The struct with its fields replaced one by one, which leaves nulls null and lets Spark prune the others."""
    old = {f.physical_name.lower() for f in data_type}
    renamed = [f for f in data_type if f.physical_name != f.name]
    fields = {f.name: from_file(column.getField(f.physical_name), f.data_type) for f in data_type}
    if renamed and (len(renamed) < len(data_type.fields) or any(f.name.lower() in old for f in data_type)):
        return F.when(column.isNotNull(), F.struct(*[value.alias(name) for name, value in fields.items()]))
    for name, value in fields.items():
        column = column.withField(quoted(name), value)
    return column.dropFields(*[quoted(f.physical_name) for f in renamed]) if renamed else column


def nested(column: Column, path: Sequence[str]) -> Column:
    """A field of a column of the table."""
    for name in path:
        column = column.getField(name)
    return column


def output(column: Column, have: DataType, want: DataType) -> Column:
    """A column of the table with just the nested fields that are wanted."""
    if spark_type(have) == spark_type(want):
        return column
    assert isinstance(have, StructType)
    assert isinstance(want, StructType)
    types = {f.name: f.data_type for f in have}
    fields = [output(column.getField(f.name), types[f.name], f.data_type).alias(f.name) for f in want]
    return F.when(column.isNotNull(), F.struct(*fields))
