"""Comparisons with Spark's semantics: strings by bytes, NaN equal to NaN and the greatest value, -0.0 equal to 0.0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.columnar.values import scalar, values_array
from delta_pyds.expr.nodes import Literal, LiteralValue
from delta_pyds.protocol.schema import DataType

_KERNELS: dict[str, Callable[..., Any]] = {
    "=": pc.equal, "<>": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal,
}  # fmt: skip


def compare(op: str, left: Any, right: Any) -> Any:
    """``left op right`` for values of one type."""
    plain = _KERNELS[op](left, right)
    if not pa.types.is_floating(left.type):
        return plain
    left_nan, right_nan = pc.is_nan(left), pc.is_nan(right)
    if op in ("=", ">=", "<="):
        # IEEE comparisons with NaN are false
        greater = {"=": pc.and_(left_nan, right_nan), ">=": left_nan, "<=": right_nan}[op]
        return pc.or_(plain, greater)
    if op == "<>":
        return pc.and_not(plain, pc.and_(left_nan, right_nan))
    above, below = (left_nan, right_nan) if op == ">" else (right_nan, left_nan)
    return pc.or_(plain, pc.and_not(above, below))


def compare_constant(op: str, values: Any, constant: Literal) -> Any:
    """``values op constant`` for a constant of the values' own type."""
    floating = pa.types.is_floating(values.type)
    if floating and constant.value != constant.value:
        # the constant is NaN, the greatest value
        is_nan = pc.is_nan(values)
        if op in ("<=", ">"):
            is_below = pc.or_(is_nan, pc.invert(is_nan))  # null for null
            return is_below if op == "<=" else pc.invert(is_below)
        return is_nan if op in ("=", ">=") else pc.invert(is_nan)
    result = _KERNELS[op](values, scalar(constant.value, constant.data_type))
    if floating and op in (">", ">="):
        return pc.or_(result, pc.is_nan(values))
    return result


def is_in(values: Any, wanted: tuple[LiteralValue, ...], data_type: DataType) -> Any:
    """``values IN (wanted)``: null for null."""
    if isinstance(values, pa.Scalar):
        return is_in(pa.repeat(values, 1), wanted, data_type)[0]
    if pa.types.is_floating(values.type) and 0.0 in wanted:
        # the kernel compares values by their bits
        wanted = (*(v for v in wanted if v != 0.0), 0.0, -0.0)
    found = pc.is_in(values, value_set=values_array(wanted, data_type))
    return found if values.null_count == 0 else pc.if_else(pc.is_valid(values), found, pa.scalar(None, pa.bool_()))
