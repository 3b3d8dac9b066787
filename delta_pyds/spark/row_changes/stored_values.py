"""Values of a frame as the table will hold them, so that its expressions see what is stored.

The writing tasks convert values again, and refuse values that do not fit: here such a value is null, so their error
comes first.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as spark_types

from delta_pyds.protocol.schema import StructField, StructType, nullable_throughout
from delta_pyds.spark.planning.types import to_spark


def spark_field(field: StructField) -> spark_types.StructField:
    """A column of the table as a nullable field of Spark, nullable at every depth."""
    nullable = replace(field, data_type=nullable_throughout(field.data_type), nullable=True)
    return to_spark(StructType((nullable,))).fields[0]


def stored(value: Column, source: spark_types.DataType, field: StructField) -> Column:
    """The value in the type of the table's column. Texts of a ``char(n)`` do not change."""
    return _as_type(value, source, spark_field(field).dataType)


def _as_type(value: Column, source: spark_types.DataType, target: spark_types.DataType) -> Column:
    if source.simpleString() == target.simpleString():
        return value
    if isinstance(source, spark_types.StructType) and isinstance(target, spark_types.StructType):
        return F.when(value.isNotNull(), F.struct(*(_field(value, source, field) for field in target.fields)))
    if isinstance(source, spark_types.ArrayType) and isinstance(target, spark_types.ArrayType):
        inside, wanted = source.elementType, target.elementType
        return F.transform(value, lambda element: _as_type(element, inside, wanted))
    if isinstance(source, spark_types.MapType) and isinstance(target, spark_types.MapType):
        return _map_as_type(value, source, target)
    if _fits(source, target):
        return value.try_cast(target)
    return F.lit(None).cast(target)


def _field(value: Column, source: spark_types.StructType, field: spark_types.StructField) -> Column:
    """By name, the exact spelling first; a field that the rows lack is null."""
    close = [other for other in source.fields if other.name.lower() == field.name.lower()]
    exact = [other for other in close if other.name == field.name]
    found = next(iter(exact or close), None)
    if found is None:
        return F.lit(None).cast(field.dataType).alias(field.name)
    return _as_type(value.getField(found.name), found.dataType, field.dataType).alias(field.name)


def _map_as_type(value: Column, source: spark_types.MapType, target: spark_types.MapType) -> Column:
    def entry(pair: Column) -> Column:
        key = _as_type(pair.getField("key"), source.keyType, target.keyType)
        item = _as_type(pair.getField("value"), source.valueType, target.valueType)
        return F.struct(key.alias("key"), item.alias("value"))

    # a key that does not fit would be null, which maps do not allow
    entries = F.filter(F.transform(F.map_entries(value), entry), lambda pair: pair.getField("key").isNotNull())
    return F.map_from_entries(entries)


def _fits(source: spark_types.DataType, target: spark_types.DataType) -> bool:
    if isinstance(source, spark_types.NumericType) and isinstance(target, spark_types.NumericType):
        return True
    if isinstance(source, spark_types.StringType) and isinstance(target, spark_types.StringType):
        return True
    return isinstance(source, spark_types.DateType) and isinstance(target, spark_types.TimestampNTZType)
