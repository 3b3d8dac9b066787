"""A bound predicate as a column of Spark: the same tree, node by node.

Invariant: every part has the type that it was bound to, so no rule or setting of the session changes its meaning.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import and_, or_

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from delta_pyds.expr.nodes import (
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
    children,
    like_pattern,
    type_of,
)
from delta_pyds.protocol.schema import PrimitiveType, display
from delta_pyds.protocol.temporal import show_timestamp

# more parts would take seconds of calls to Spark's driver
MAX_PARTS = 5_000

_COMPARE: dict[str, Callable[[SparkColumn, SparkColumn], SparkColumn]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def to_column(expr: Expr, resolve: Callable[[tuple[str, ...]], SparkColumn]) -> SparkColumn | None:
    """The predicate over the columns that ``resolve`` returns.

    None if a part has no counterpart in Spark, or if it has so many parts that building it takes longer than reading.
    """
    if _size(expr) > MAX_PARTS:
        return None
    try:
        return _column(expr, resolve)
    except _NoCounterpartError:
        return None


class _NoCounterpartError(Exception):
    """A part of an expression has no counterpart in Spark's predicates."""


def _column(expr: Expr, resolve: Callable[[tuple[str, ...]], SparkColumn]) -> SparkColumn:
    if isinstance(expr, Column):
        return resolve(expr.path)
    if isinstance(expr, Literal):
        return literal(expr)
    if isinstance(expr, (And, Or)):
        parts = [_column(child, resolve) for child in expr.children]
        return _joined(and_ if isinstance(expr, And) else or_, parts)
    if isinstance(expr, Comparison):
        return _COMPARE[expr.op](_column(expr.left, resolve), _column(expr.right, resolve))
    if isinstance(expr, (Cast, Remainder, In, Like, IsNull, Not)):
        child = _column(expr.child, resolve)
        if isinstance(expr, Cast):
            return child.cast(display(expr.data_type))
        if isinstance(expr, Remainder):
            return child % literal(Literal(expr.divisor, expr.data_type))
        if isinstance(expr, In):
            return child.isin(*[literal(Literal(value, type_of(expr.child))) for value in expr.values])
        if isinstance(expr, Like):
            return child.like(like_pattern(expr.parts))
        return child.isNull() if isinstance(expr, IsNull) else ~child
    raise _NoCounterpartError


def _joined(join: Callable[[SparkColumn, SparkColumn], SparkColumn], parts: list[SparkColumn]) -> SparkColumn:
    """Join the parts as a balanced tree, because Spark walks it by recursion."""
    while len(parts) > 1:
        pairs = zip(parts[0::2], parts[1::2], strict=False)
        parts = [*(join(one, other) for one, other in pairs), *parts[len(parts) // 2 * 2 :]]
    return parts[0]


def _size(expr: Expr) -> int:
    """The number of Spark columns and constants in the predicate; each costs calls to Spark's driver."""
    total, pending = 0, [expr]
    while pending:
        node = pending.pop()
        total += 1 + (len(node.values) if isinstance(node, In) else 0)
        pending.extend(children(node))
    return total


def literal(constant: Literal) -> SparkColumn:
    """A constant of exactly its type. Spark folds the conversion before it plans."""
    value, data_type = constant.value, constant.data_type
    if value is None or not isinstance(data_type, PrimitiveType):
        return F.lit(value).cast(display(data_type))
    # integers since 1970, because Spark has dates that Python does not have
    if data_type.name == "date":
        return F.date_from_unix_date(F.lit(value).cast("int"))
    if data_type.name == "timestamp":
        return F.timestamp_micros(F.lit(value).cast("bigint"))
    if data_type.name == "timestamp_ntz":
        assert isinstance(value, int)
        return F.lit(show_timestamp(value)).cast("timestamp_ntz")
    return F.lit(value).cast(display(data_type))
