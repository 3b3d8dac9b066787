"""The types that operands are compared in, by Spark's ANSI rules, and the casts that never fail."""

from __future__ import annotations

from collections.abc import Sequence

from delta_pyds.errors import ExpressionError
from delta_pyds.protocol.schema import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    VOID,
    DataType,
    DecimalType,
    PrimitiveType,
    display,
)

# Spark SQL's names of types
TYPE_NAMES: dict[str, DataType] = {
    "BOOLEAN": BOOLEAN, "TINYINT": BYTE, "BYTE": BYTE, "SMALLINT": SHORT, "SHORT": SHORT,
    "INT": INTEGER, "INTEGER": INTEGER, "BIGINT": LONG, "LONG": LONG, "FLOAT": FLOAT, "REAL": FLOAT,
    "DOUBLE": DOUBLE, "DATE": DATE, "TIMESTAMP": TIMESTAMP, "TIMESTAMP_LTZ": TIMESTAMP,
    "TIMESTAMP_NTZ": TIMESTAMP_NTZ, "STRING": STRING, "BINARY": BINARY, "VOID": VOID,
    "DECIMAL": DecimalType(10, 0), "DEC": DecimalType(10, 0), "NUMERIC": DecimalType(10, 0),
}  # fmt: skip
INTEGER_BITS = {"byte": 8, "short": 16, "integer": 32, "long": 64}
_INTEGER_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 20}
_FLOATING = (FLOAT, DOUBLE)


def is_integral(data_type: DataType) -> bool:
    return isinstance(data_type, PrimitiveType) and data_type.name in INTEGER_BITS


def is_floating(data_type: DataType) -> bool:
    return data_type in _FLOATING


def is_numeric(data_type: DataType) -> bool:
    return is_integral(data_type) or is_floating(data_type) or isinstance(data_type, DecimalType)


def is_comparable(data_type: DataType) -> bool:
    """Whether values of the type can be compared here: not arrays, maps, structs and variants."""
    return isinstance(data_type, (PrimitiveType, DecimalType)) and data_type != VARIANT


def decimal_for(data_type: DataType) -> DecimalType:
    """The decimal that holds every value of a whole-number type."""
    assert isinstance(data_type, PrimitiveType)
    return DecimalType(_INTEGER_DIGITS[data_type.name], 0)


def wider_decimal(left: DecimalType, right: DecimalType) -> DecimalType:
    """The decimal that Spark compares two decimals in; with more than 38 digits it loses fractional digits."""
    whole = max(left.precision - left.scale, right.precision - right.scale)
    scale = max(left.scale, right.scale)
    if whole + scale <= 38:
        return DecimalType(whole + scale, scale)
    return DecimalType(38, max(0, 38 - whole))


def common_type(left: DataType, right: DataType) -> DataType:
    """The type that ``left op right`` is compared in.

    Raises: ExpressionError (DATATYPE_MISMATCH) for types that Spark does not compare with each other.
    """
    found = _common(left, right) or _common(right, left)
    if found is None:
        raise ExpressionError(
            f"{display(left).upper()} and {display(right).upper()} cannot be compared: cast one of them.",
            code="DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES",
        )
    return found


def common_type_of_list(types: Sequence[DataType]) -> DataType:
    """The type that ``IN`` compares in: Spark combines all types, strings first."""
    ordered = [t for t in types if t == STRING][:1] + [t for t in types if t != STRING]
    found = ordered[0]
    for data_type in ordered[1:]:
        found = common_type(found, data_type)
    return found


def _common(left: DataType, right: DataType) -> DataType | None:
    """``common_type``, for one order of the types; None if this order has no rule."""
    if left == right or right == VOID:
        return left
    if is_integral(left) and is_integral(right):
        assert isinstance(left, PrimitiveType) and isinstance(right, PrimitiveType)
        return max(left, right, key=lambda t: INTEGER_BITS[t.name])
    if isinstance(left, DecimalType):
        if isinstance(right, DecimalType):
            return wider_decimal(left, right)
        if is_integral(right):
            return wider_decimal(left, decimal_for(right))
    if is_floating(left) and is_numeric(right):
        return DOUBLE
    if left == STRING and isinstance(right, (PrimitiveType, DecimalType)):
        if is_integral(right):
            return LONG
        if is_floating(right) or isinstance(right, DecimalType):
            return DOUBLE
        return None if right == PrimitiveType("variant") else right
    if left == PrimitiveType("date") and right in (TIMESTAMP, TIMESTAMP_NTZ):
        return right
    if left == TIMESTAMP and right == TIMESTAMP_NTZ:
        return TIMESTAMP
    return None


def is_total_cast(source: DataType, target: DataType) -> bool:
    """Whether the cast succeeds for every value of the type, with Spark's result, and preserves the order."""
    if source == target:
        return True
    if is_integral(source):
        if is_integral(target):
            assert isinstance(source, PrimitiveType) and isinstance(target, PrimitiveType)
            return INTEGER_BITS[source.name] <= INTEGER_BITS[target.name]
        if isinstance(target, DecimalType):
            assert isinstance(source, PrimitiveType)
            digits = 19 if source.name == "long" else _INTEGER_DIGITS[source.name]
            return target.precision - target.scale >= digits
        return is_floating(target)
    if isinstance(source, DecimalType):
        if isinstance(target, DecimalType):
            return target.scale >= source.scale and (target.precision - target.scale >= source.precision - source.scale)
        return target == DOUBLE
    if source == FLOAT:
        return target == DOUBLE
    return source == PrimitiveType("date") and target in (TIMESTAMP, TIMESTAMP_NTZ)
