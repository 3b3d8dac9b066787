"""Evaluates bound expressions over Arrow arrays, with exactly Spark's semantics.

Strings compare by their UTF-8 bytes, NaN equals NaN and is the greatest value, -0.0 equals 0.0, logic is three-valued.
Rows are computed only by Arrow kernels.
"""

from __future__ import annotations

import re
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.columnar.comparison import compare, compare_constant, is_in
from delta_pyds.columnar.kernel import regex_search
from delta_pyds.columnar.rows import Resolver, Rows, batch_resolver
from delta_pyds.columnar.values import cast_total, scalar
from delta_pyds.expr.nodes import (
    ANY_STRING,
    And,
    Cast,
    Column,
    Comparison,
    Expr,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    Remainder,
    Wildcard,
    may_fail,
    type_of,
)


def matches(expr: Expr, columns: Resolver | pa.RecordBatch, num_rows: int) -> pa.BooleanArray:
    """Whether the expression is true, for each row; false for null. The result has no nulls."""
    result = evaluate(expr, columns, num_rows)
    return cast(pa.BooleanArray, result.fill_null(False) if result.null_count else result)


def evaluate(expr: Expr, columns: Resolver | pa.RecordBatch, num_rows: int) -> pa.Array:
    """The values of an expression over ``num_rows`` rows; a predicate gives booleans, null for unknown.

    Args:
        columns: a batch, or a function from a path of logical names to an array of ``num_rows`` values with the Arrow
            type that Spark uses for the column's type.
    """
    resolver = batch_resolver(columns) if isinstance(columns, pa.RecordBatch) else columns
    result = value_of(expr, Rows(resolver, num_rows))
    if isinstance(result, pa.Scalar):
        return pa.repeat(result, num_rows)
    return result.combine_chunks() if isinstance(result, pa.ChunkedArray) else result


def value_of(expr: Expr, rows: Rows) -> Any:
    """The values for the live rows, and any for others: an array, or a scalar if all rows have the same value."""
    if isinstance(expr, Column):
        return rows.column(expr.path)
    if isinstance(expr, Literal):
        return scalar(expr.value, expr.data_type)
    if isinstance(expr, Comparison):
        return _comparison(expr, rows)
    if isinstance(expr, In):
        return is_in(value_of(expr.child, rows), expr.values, type_of(expr.child))
    if isinstance(expr, Like):
        return _like(value_of(expr.child, rows), expr.parts)
    if isinstance(expr, IsNull):
        return pc.is_null(value_of(expr.child, rows))
    if isinstance(expr, Not):
        return pc.invert(value_of(expr.child, rows))
    if isinstance(expr, Cast):
        return cast_total(value_of(expr.child, rows), type_of(expr.child), expr.data_type)
    if isinstance(expr, Remainder):
        return _remainder(value_of(expr.child, rows), expr.divisor)
    if isinstance(expr, (And, Or)):
        return _logic(expr, rows)
    # predicates of scans do not need this module
    from delta_pyds.columnar.functions import compute

    return compute(expr, rows, value_of)


def _logic(expr: And | Or, rows: Rows) -> Any:
    combine = pc.and_kleene if isinstance(expr, And) else pc.or_kleene
    result = value_of(expr.children[0], rows)
    for child in expr.children[1:]:
        # Spark does not evaluate the other side if one side decides the result
        open_ = pc.fill_null(result if isinstance(expr, And) else pc.invert(result), True) if may_fail(child) else None
        result = combine(result, value_of(child, rows if open_ is None else rows.only(open_)))
    return result


def _comparison(expr: Comparison, rows: Rows) -> Any:
    left = value_of(expr.left, rows)
    if isinstance(expr.right, Literal):
        return compare_constant(expr.op, left, expr.right)
    right = value_of(expr.right, rows.only(pc.is_valid(left)) if may_fail(expr.right) else rows)
    return compare(expr.op, left, right)


def _like(values: Any, parts: tuple[str | Wildcard, ...]) -> Any:
    before, after = parts[0] == ANY_STRING, parts[-1] == ANY_STRING
    middle = parts[1 if before else 0 : len(parts) - 1 if after else len(parts)]
    if len(middle) == 1 and isinstance(middle[0], str):
        if before and after:
            return pc.match_substring(values, middle[0])
        return pc.ends_with(values, middle[0]) if before else pc.starts_with(values, middle[0])
    return regex_search(pc.match_substring_regex, _decodable(values), _regex(parts))


def _decodable(values: Any) -> Any:
    """Strings with invalid UTF-8 replaced as in Java, so that a pattern can count characters."""
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        texts = (None if v is None else v.decode("utf-8", "replace") for v in values.cast(pa.binary()).to_pylist())
        return pa.array(texts, pa.string())
    return values


def _regex(parts: tuple[str | Wildcard, ...]) -> str:
    texts = []
    for part in parts:
        if isinstance(part, Wildcard):
            texts.append(".*" if part == ANY_STRING else ".")
        else:
            texts.append(re.escape(part))
    return r"(?s)\A" + "".join(texts) + r"\z"


def _remainder(values: Any, divisor: int) -> Any:
    if abs(divisor) == 1:
        # the smallest number divided by -1 overflows
        return pc.bit_wise_xor(values, values)
    by = pa.scalar(divisor, values.type)
    return pc.subtract(values, pc.multiply(pc.divide(values, by), by))
