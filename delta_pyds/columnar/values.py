"""Arrow arrays of constants, and casts that cannot fail, in the types of evaluated expressions."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from delta_pyds.columnar.schema import arrow_type
from delta_pyds.expr.nodes import LiteralValue
from delta_pyds.protocol.schema import TIMESTAMP, DataType, DecimalType, PrimitiveType

_ARROW_TYPES: dict[str, pa.DataType] = {
    "string": pa.string(), "long": pa.int64(), "integer": pa.int32(), "short": pa.int16(), "byte": pa.int8(),
    "float": pa.float32(), "double": pa.float64(), "boolean": pa.bool_(), "binary": pa.binary(), "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"), "timestamp_ntz": pa.timestamp("us"), "void": pa.null(),
}  # fmt: skip


def value_type(data_type: DataType) -> pa.DataType:
    """The Arrow type for values of a comparable type. Dates and timestamps do not become integers."""
    if isinstance(data_type, DecimalType):
        return pa.decimal128(data_type.precision, data_type.scale)
    assert isinstance(data_type, PrimitiveType)
    return _ARROW_TYPES[data_type.name]


def scalar(value: LiteralValue, data_type: DataType) -> pa.Scalar:
    """A constant as an Arrow scalar."""
    if value is None:
        return pa.scalar(None, arrow_type(data_type))
    return values_array((value,), data_type)[0]


def values_array(values: tuple[LiteralValue, ...], data_type: DataType) -> pa.Array:
    """Constants as an Arrow array; dates and timestamps are given as integers."""
    target = value_type(data_type)
    if pa.types.is_date32(target):
        return pa.array(values, pa.int32()).cast(target)
    if pa.types.is_timestamp(target):
        return pa.array(values, pa.int64()).cast(target)
    return pa.array(values, target)


def cast_total(values: Any, source: DataType, target: DataType) -> Any:
    """A cast that cannot fail for any value (``expr.types.is_total_cast``), rounded as in Java."""
    to = value_type(target)
    # the time zone is unknown here, so expr.binder.build replaces casts of dates by comparisons of dates
    assert target != TIMESTAMP or source == TIMESTAMP
    if isinstance(source, DecimalType) and pa.types.is_floating(to):
        # the direct cast does not round to the nearest double; parsing text does
        return values.cast(pa.string()).cast(to)
    # integers beyond 2^53 round to the nearest float, as in Java
    return values.cast(to, safe=not pa.types.is_floating(to))
