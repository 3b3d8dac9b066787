"""Helpers of the kernels: their type, and small steps for which Arrow has no kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.columnar.rows import Rows
from delta_pyds.errors import ExpressionError
from delta_pyds.expr.nodes import Call

# arguments are arrays or scalars, at least one is an array; the result is an array
Kernel = Callable[[Call, list[Any], Rows], Any]


def as_arrays(args: list[Any]) -> list[Any]:
    """All arguments as arrays of one length."""
    count = next(len(arg) for arg in args if not isinstance(arg, pa.Scalar))
    return [pa.repeat(arg, count) if isinstance(arg, pa.Scalar) else arg for arg in args]


def any_true(mask: Any) -> bool:
    """Whether the mask is true for any row."""
    return bool(pc.any(mask, min_count=0).as_py())


def null_where(mask: Any, values: Any) -> Any:
    """The values with null where the mask is true."""
    return pc.if_else(pc.fill_null(mask, False), pa.scalar(None, values.type), values)


def floor_divide(values: Any, divisor: int) -> Any:
    """Divide int64 values by a positive number, rounding down."""
    quotient = pc.divide(values, divisor)
    return pc.subtract(quotient, pc.less(pc.subtract(values, pc.multiply(quotient, divisor)), 0).cast(pa.int64()))


def floor_remainder(values: Any, divisor: int) -> Any:
    """The remainder of ``floor_divide``, from 0 up to the divisor."""
    return pc.subtract(values, pc.multiply(floor_divide(values, divisor), divisor))


def by_value(values: Any, function: Callable[[Any], Any], data_type: pa.DataType) -> pa.Array:
    """Apply a Python function to each distinct value; null for null. Only if no Arrow kernel gives exact results."""
    encoded = values.dictionary_encode()
    results = pa.array([None if v is None else function(v) for v in encoded.dictionary.to_pylist()], data_type)
    return results.take(encoded.indices)


def by_row(args: list[Any], function: Callable[..., Any], data_type: pa.DataType) -> pa.Array:
    """Apply a Python function to each row; null if an argument is null. Only for rare functions."""
    columns = [arg.to_pylist() for arg in as_arrays(args)]
    return pa.array(
        [None if None in row else function(*row) for row in zip(*columns, strict=True)],
        data_type,
    )


def regex_search(kernel: Callable[..., Any], values: Any, pattern: str, *others: str) -> Any:
    """Run a kernel with a regular expression. Raises: ExpressionError if the pattern needs too much memory."""
    try:
        return kernel(values, pattern, *others)
    except pa.ArrowInvalid as e:
        if "regular expression" not in str(e):
            raise
        raise ExpressionError(
            f"a pattern of LIKE or RLIKE needs too much memory ({str(e)[:200]}): shorten it, or use fewer repetitions. "
            f"It begins with: {pattern[:200]}",
            construct="LIKE",
        ) from None
