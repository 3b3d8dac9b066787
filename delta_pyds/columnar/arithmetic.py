"""Arithmetic on Arrow arrays with Java's semantics: exact, or else an error, null or wrap-around."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.columnar.comparison import compare
from delta_pyds.columnar.decimals import decimal_arithmetic, fit_decimal, round_decimal
from delta_pyds.columnar.kernel import Kernel, any_true, as_arrays, by_row, by_value
from delta_pyds.columnar.rows import Rows
from delta_pyds.columnar.values import value_type
from delta_pyds.expr.nodes import Call
from delta_pyds.protocol.schema import DecimalType

_PLAIN = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}
_CHECKED = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}


def _basic(call: Call, args: list[Any], rows: Rows) -> Any:
    if isinstance(call.data_type, DecimalType):
        return decimal_arithmetic(call, args, rows)
    left, right = args
    if pa.types.is_floating(left.type) or not call.ansi:
        return _PLAIN[call.function](left, right)
    try:
        return _CHECKED[call.function](left, right)
    except pa.ArrowInvalid:
        pass
    result = _PLAIN[call.function](left, right)
    exact = _PLAIN[call.function](_whole(left).cast(pa.decimal256(20, 0)), _whole(right).cast(pa.decimal256(19, 0)))
    overflowed = pc.not_equal(exact.cast(pa.decimal256(40, 0)), _whole(result).cast(pa.decimal256(40, 0)))
    _overflow(overflowed, rows)
    return result


def _whole(values: Any) -> Any:
    """Integers as int64, from which Arrow can make decimals."""
    return values.cast(pa.int64())


def _overflow(mask: Any, rows: Rows) -> None:
    rows.fail(mask, "ARITHMETIC_OVERFLOW", "a number is out of the range of its type")


def _lowest(data_type: pa.DataType) -> pa.Scalar:
    return pa.scalar(-(1 << (data_type.bit_width - 1)), data_type)


def _division(call: Call, args: list[Any], rows: Rows) -> Any:
    if isinstance(call.data_type, DecimalType):
        return decimal_arithmetic(call, args, rows)
    left, right = _nonzero(call, args[0], args[1], rows)
    return pc.divide(left, right)


def _nonzero(call: Call, left: Any, right: Any, rows: Rows) -> tuple[Any, Any]:
    """Both sides, with a divisor of 0 replaced by null; an error in ANSI mode."""
    zero = pc.equal(right, pa.scalar(0, right.type))
    if not any_true(zero):
        return left, right
    if call.ansi:
        code = "REMAINDER_BY_ZERO" if call.function in ("%", "pmod") else "DIVIDE_BY_ZERO"
        rows.fail(pc.and_(zero, pc.is_valid(left)), code, "division by zero")
    return left, pc.if_else(pc.fill_null(zero, False), pa.scalar(None, right.type), right)


def _whole_division(call: Call, args: list[Any], rows: Rows) -> Any:
    left, right = _nonzero(call, args[0], args[1], rows)
    extreme = pc.and_(pc.equal(left, _lowest(left.type)), pc.equal(right, pa.scalar(-1, right.type)))
    if any_true(extreme):
        if call.ansi:
            _overflow(extreme, rows)
        left, right = as_arrays([left, right]) if isinstance(left, pa.Scalar) else (left, right)
        # the smallest number divided by -1 wraps around and stays the same
        right = pc.if_else(pc.fill_null(extreme, False), pa.scalar(1, right.type), right)
    return pc.divide(left, right)


def _remainder(call: Call, args: list[Any], rows: Rows) -> Any:
    """Floating point remainders are rare, and computed row by row: Arrow has no kernel for them."""
    if isinstance(call.data_type, DecimalType):
        return decimal_arithmetic(call, args, rows)
    left, right = _nonzero(call, args[0], args[1], rows)
    data_type = value_type(call.data_type)
    if pa.types.is_floating(data_type):
        return by_row([left, right], _float_pmod if call.function == "pmod" else _float_remainder, data_type)
    minus_one = pc.equal(right, pa.scalar(-1, right.type))
    # a remainder by -1 is 0, but dividing the smallest number by -1 would overflow
    right = pc.if_else(minus_one, pa.scalar(1, right.type), right)
    rest = pc.subtract(left, pc.multiply(pc.divide(left, right), right))
    if call.function != "pmod":
        return rest
    negative = pc.less(rest, pa.scalar(0, rest.type))
    # Java adds with at least 32 bits
    wide = data_type if data_type.bit_width >= 32 else pa.int32()
    right = right.cast(wide)
    shifted = pc.add(rest.cast(wide), right)
    again = pc.subtract(shifted, pc.multiply(pc.divide(shifted, right), right)).cast(data_type)
    return pc.if_else(negative, again, rest)


def _float_remainder(left: float, right: float) -> float:
    if math.isinf(left) or math.isnan(left) or math.isnan(right):
        return math.nan
    return math.fmod(left, right)


def _float_pmod(left: float, right: float) -> float:
    rest = _float_remainder(left, right)
    return _float_remainder(rest + right, right) if rest < 0 else rest


def _other_sign(call: Call, args: list[Any], rows: Rows) -> Any:
    """``negative`` and ``abs``. The lowest integer of a type overflows."""
    values = args[0]
    if call.ansi and pa.types.is_integer(values.type):
        _overflow(pc.equal(values, _lowest(values.type)), rows)
    return (pc.negate if call.function == "negative" else pc.abs)(values)


def _rounded(call: Call, args: list[Any], rows: Rows) -> Any:
    values, digits = args[0], int(call.options[0])
    half_even = call.function == "bround"
    if isinstance(call.data_type, DecimalType):
        # a result beyond the type is an error with and without ANSI mode
        return fit_decimal(round_decimal(values, digits, half_even=half_even), replace(call, ansi=True), rows)
    if digits >= 0:
        return values
    data_type = value_type(call.data_type)
    mode = "half_to_even" if half_even else "half_towards_infinity"
    # the rounding position may be beyond the digits of the type
    exact = pc.round(_whole(values).cast(pa.decimal128(38, 0)), max(digits, -37), mode)
    limit: int = 1 << (int(data_type.bit_width) - 1)
    over = pc.or_(
        pc.less(exact, pa.scalar(Decimal(-limit), pa.decimal128(38, 0))),
        pc.greater(exact, pa.scalar(Decimal(limit - 1), pa.decimal128(38, 0))),
    )
    if not any_true(over):
        return exact.cast(data_type)
    if call.ansi:
        _overflow(over, rows)
    return by_value(exact, lambda value: wrapped(int(value), data_type.bit_width), data_type)


def wrapped(value: int, bits: int) -> int:
    """The value modulo ``2**bits``, as Java narrows an integer."""
    half = 1 << (bits - 1)
    return (value + half) % (2 * half) - half


def _whole_number(call: Call, args: list[Any], rows: Rows) -> Any:
    values = args[0]
    if isinstance(call.data_type, DecimalType):
        mode = "up" if call.function == "ceil" else "down"
        wide = values.cast(pa.decimal256(values.type.precision + 2, values.type.scale))
        return fit_decimal(pc.round(wide, 0, mode), call, rows)
    rounded = (pc.ceil if call.function == "ceil" else pc.floor)(values)
    if call.ansi:
        limit = float(1 << 63)
        # NaN is not an overflow: it becomes 0
        _overflow(pc.or_(pc.greater_equal(rounded, limit), pc.less(rounded, -limit)), rows)
    return saturating_cast(rounded, pa.int64())


def saturating_cast(values: Any, data_type: pa.DataType) -> Any:
    """A double to an integer as in Java: out of range, the nearest bound; NaN becomes 0."""
    limit = 1 << (data_type.bit_width - 1)
    over, under = pc.greater_equal(values, float(limit)), pc.less(values, float(-limit))
    inside = pc.if_else(pc.or_(pc.or_(over, under), pc.is_nan(values)), pa.scalar(0.0, values.type), values)
    whole = pc.trunc(inside).cast(data_type)
    whole = pc.if_else(over, pa.scalar(limit - 1, data_type), whole)
    return pc.if_else(under, pa.scalar(-limit, data_type), whole)


def _sign(call: Call, args: list[Any], rows: Rows) -> Any:
    """The sign of a double; zeros and NaN stay unchanged."""
    values = args[0]
    unchanged = pc.or_(pc.equal(values, 0.0), pc.is_nan(values))
    return pc.if_else(unchanged, values, pc.sign(values).cast(pa.float64()))


def _extreme(call: Call, args: list[Any], rows: Rows) -> Any:
    """The greatest or least argument; nulls are ignored, NaN is the greatest value."""
    op = ">" if call.function == "greatest" else "<"
    result, *others = as_arrays(args)
    for other in others:
        better = pc.fill_null(compare(op, other, result), pc.is_null(result))
        result = pc.if_else(better, other, result)
    return result


ARITHMETIC: dict[str, Kernel] = {
    "+": _basic, "-": _basic, "*": _basic, "/": _division, "div": _whole_division, "%": _remainder,
    "pmod": _remainder, "negative": _other_sign, "abs": _other_sign, "round": _rounded, "bround": _rounded,
    "ceil": _whole_number, "floor": _whole_number, "sign": _sign, "greatest": _extreme, "least": _extreme,
    "sqrt": lambda _, args, __: pc.sqrt(args[0]),
    "isnan": lambda _, args, __: pc.fill_null(pc.is_nan(args[0]), False),
}  # fmt: skip
