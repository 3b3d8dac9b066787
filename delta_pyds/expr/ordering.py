"""Comparisons of a column with a constant, expressed in the column's own type.

Spark compares in a common type: a float column and ``0.1`` as doubles, a
bigint column and ``1e3`` as doubles, a decimal(10,2) column and ``1.555`` as
decimals of scale 3, a date column and a timestamp as timestamps. Every such
conversion of the column keeps the order of its values, so the constant cuts
the column's values in two. The position of the cut is found once, by
bisection, instead of converting every row. The result is exactly Spark's,
needs no conversion in Arrow, and can be compared with statistics directly.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from delta_pyds.expr.casts import EXACT, nearest_float
from delta_pyds.expr.nodes import Cast, Expr, LiteralValue, type_of
from delta_pyds.expr.types import INTEGER_BITS, is_floating, is_integral
from delta_pyds.protocol.schema import (
    DATE,
    DOUBLE,
    FLOAT,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
    PrimitiveType,
)
from delta_pyds.protocol.temporal import DAY_MICROS, TimeZone

Number = int | float | Decimal


@dataclass(frozen=True)
class Domain:
    """The values of a type in their order, numbered. NaN is excluded, because callers handle it first."""

    first: int
    last: int
    value: Callable[[int], Number]


def domain(data_type: DataType) -> Domain | None:
    """The numbered values of a type; None for types that are compared only with themselves."""
    if isinstance(data_type, DecimalType):
        scale, limit = data_type.scale, 10**data_type.precision - 1
        return Domain(-limit, limit, lambda n: EXACT.scaleb(Decimal(n), -scale))
    if is_integral(data_type):
        assert isinstance(data_type, PrimitiveType)
        limit = 1 << (INTEGER_BITS[data_type.name] - 1)
        return Domain(-limit, limit - 1, int)
    if data_type == FLOAT:
        return Domain(-0x7F800000, 0x7F800000, lambda n: _float_of(n, "<i", "<f"))
    if data_type == DOUBLE:
        return Domain(-0x7FF0000000000000, 0x7FF0000000000000, lambda n: _float_of(n, "<q", "<d"))
    if data_type == DATE:
        return Domain(-(1 << 31), (1 << 31) - 1, int)
    if data_type in (TIMESTAMP, TIMESTAMP_NTZ):
        return Domain(-(1 << 63), (1 << 63) - 1, int)
    return None


def _float_of(number: int, integer: str, floating: str) -> float:
    """Floats count up with their bits, away from zero; both zeros are number 0."""
    size = float(struct.unpack(floating, struct.pack(integer, abs(number)))[0])
    return -size if number < 0 else size


def unwrap(expr: Expr) -> Expr:
    """The expression without the casts around it."""
    while isinstance(expr, Cast):
        expr = expr.child
    return expr


def image(expr: Expr, zone: TimeZone) -> Callable[[Number], Number]:
    """The function that the casts around ``unwrap(expr)`` apply to one of its values."""
    if not isinstance(expr, Cast):
        return lambda value: value
    inner = image(expr.child, zone)
    step = _conversion(type_of(expr.child), expr.data_type, zone)
    return lambda value: step(inner(value))


def _conversion(source: DataType, target: DataType, zone: TimeZone) -> Callable[[Number], Number]:
    if target == FLOAT and source != FLOAT:
        return nearest_float
    if is_floating(target):
        return float
    if source == DATE and target == TIMESTAMP:
        return lambda days: zone.start_of_day(int(days))
    if source == DATE and target == TIMESTAMP_NTZ:
        return lambda days: int(days) * DAY_MICROS
    return lambda value: value


@dataclass(frozen=True)
class Cut:
    """The position of a constant among a type's values.

    ``lower``: the first value that is not below the constant; None if all values are below it. ``upper``: the first
    value above it; None if no value is above it. ``any_below``: some value is below. ``any_equal``: some value compares
    as equal.
    """

    lower: LiteralValue
    upper: LiteralValue
    any_below: bool
    any_equal: bool
    single: bool


def cut(values: Domain, convert: Callable[[Number], Number], constant: Number) -> Cut:
    """Find the position of a constant that is not NaN by bisection; ``convert`` must never decrease."""
    lower = _first(values, lambda v: convert(v) >= constant)
    upper = _first(values, lambda v: convert(v) > constant)
    return Cut(
        lower=values.value(lower) if lower <= values.last else None,
        upper=values.value(upper) if upper <= values.last else None,
        any_below=lower > values.first,
        any_equal=lower < upper,
        single=lower + 1 == upper,
    )


def _first(values: Domain, holds: Callable[[Number], bool]) -> int:
    low, high = values.first, values.last + 1
    while low < high:
        middle = (low + high) // 2
        if holds(values.value(middle)):
            high = middle
        else:
            low = middle + 1
    return low


def is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)
