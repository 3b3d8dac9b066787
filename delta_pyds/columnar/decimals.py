"""Decimal arithmetic with Spark's semantics: exact, then rounded half up to the type of the result."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.columnar.kernel import any_true, as_arrays, null_where
from delta_pyds.columnar.rows import Rows
from delta_pyds.expr.casts import EXACT
from delta_pyds.expr.nodes import Call
from delta_pyds.protocol.schema import DecimalType

_WIDEST = 76
# Spark divides to this scale before it rounds to the scale of the result
_DIVISION_SCALE = Decimal(1).scaleb(-39)
# 117 digits decide whether a quotient of 38 digits by 38 digits is exactly half way at that scale
_QUOTIENT = Context(prec=130)


def fit_decimal(values: Any, call: Call, rows: Rows) -> Any:
    """Decimals as the type of the call's result, rounded half up. A value out of range is an error or null."""
    target = call.data_type
    assert isinstance(target, DecimalType)
    wanted = pa.decimal128(target.precision, target.scale)
    if values.type == wanted:
        return values
    if values.type.scale > target.scale:
        values = round_decimal(values, target.scale)
    whole = target.precision - target.scale
    if values.type.precision - values.type.scale > whole:
        limit = pa.scalar(Decimal(10) ** whole, pa.decimal256(whole + 1, 0))
        over = pc.greater_equal(pc.abs(values), limit)
        if any_true(over):
            if call.ansi:
                rows.fail(
                    over,
                    "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION",
                    f"a number does not fit into DECIMAL({target.precision},{target.scale})",
                    values,
                )
            values = null_where(over, values)
    if values.type.scale < target.scale and not pa.types.is_decimal256(values.type):
        values = values.cast(pa.decimal256(_WIDEST, values.type.scale))
    return values.cast(wanted, safe=False) if values.type.scale > target.scale else values.cast(wanted)


def round_decimal(values: Any, digits: int, *, half_even: bool = False) -> Any:
    """Values rounded to the given number of fractional digits, in a type with room for one more digit."""
    if digits >= values.type.scale:
        return values
    whole = values.type.precision - values.type.scale
    precision = max(values.type.precision + 1, values.type.scale - digits + 1)
    kind = pa.decimal128 if precision <= 38 else pa.decimal256
    wide = kind(min(precision, _WIDEST), values.type.scale)
    if -digits > whole:
        # a rounding position beyond all digits gives zero
        return pc.if_else(pc.is_valid(values), pa.scalar(Decimal(0), wide), pa.scalar(None, wide))
    return pc.round(values.cast(wide), digits, "half_to_even" if half_even else "half_towards_infinity")


def decimal_arithmetic(call: Call, args: list[Any], rows: Rows) -> Any:
    """``+ - * / % pmod`` of decimals.

    Division, remainders and results of more than 76 digits are computed row by row in Python, because no Arrow kernel
    rounds as Spark does.
    """
    left, right = args
    op = call.function
    if op in ("+", "-", "*"):
        p1, s1, p2, s2 = left.type.precision, left.type.scale, right.type.precision, right.type.scale
        digits = p1 + p2 + 1 if op == "*" else max(p1 - s1, p2 - s2) + max(s1, s2) + 1
        kernel = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}[op]
        if digits <= 38:
            return fit_decimal(kernel(left, right), call, rows)
        if digits <= _WIDEST:
            exact = kernel(left.cast(pa.decimal256(p1, s1)), right.cast(pa.decimal256(p2, s2)))
            return fit_decimal(exact, call, rows)
    return _row_by_row(call, left, right, rows)


def _row_by_row(call: Call, left: Any, right: Any, rows: Rows) -> Any:
    left, right = as_arrays([left, right])
    if call.function in ("/", "%", "pmod"):
        zero = pc.equal(right, pa.scalar(Decimal(0), right.type))
        if any_true(zero) and call.ansi:
            code = "DIVIDE_BY_ZERO" if call.function == "/" else "REMAINDER_BY_ZERO"
            rows.fail(pc.and_(zero, pc.is_valid(left)), code, "division by zero")
        right = null_where(zero, right)
    target = call.data_type
    assert isinstance(target, DecimalType)
    compute = _OPERATIONS[call.function]
    step, limit = Decimal(1).scaleb(-target.scale), Decimal(10) ** (target.precision - target.scale)
    results: list[Decimal | None] = []
    over: list[bool] = []
    for a, b in zip(left.to_pylist(), right.to_pylist(), strict=True):
        value = None if a is None or b is None else compute(a, b).quantize(step, ROUND_HALF_UP, EXACT)
        too_big = value is not None and abs(value) >= limit
        over.append(too_big)
        results.append(None if too_big else value)
    if call.ansi:
        rows.fail(
            pa.array(over, pa.bool_()),
            "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION",
            f"a number does not fit into DECIMAL({target.precision},{target.scale})",
        )
    return pa.array(results, pa.decimal128(target.precision, target.scale))


def _divide(left: Decimal, right: Decimal) -> Decimal:
    return _QUOTIENT.divide(left, right).quantize(_DIVISION_SCALE, ROUND_HALF_UP, _QUOTIENT)


def _pmod(left: Decimal, right: Decimal) -> Decimal:
    rest = EXACT.remainder(left, right)
    return EXACT.remainder(EXACT.add(rest, right), right) if rest < 0 else rest


_OPERATIONS: dict[str, Callable[[Decimal, Decimal], Decimal]] = {
    "+": EXACT.add, "-": EXACT.subtract, "*": EXACT.multiply, "/": _divide, "%": EXACT.remainder, "pmod": _pmod,
}  # fmt: skip
