"""Filters that Spark pushes, as our expressions. They only prune: Spark applies them to the rows itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pyspark.sql import datasource as spark

from delta_pyds.errors import DeltaError
from delta_pyds.expr.binder.build import Builder, bind_column
from delta_pyds.expr.logic import is_null, not_
from delta_pyds.expr.nodes import ANY_STRING, Expr, Like, Wildcard
from delta_pyds.protocol.schema import STRING, StructType

_COMPARISONS: dict[type[spark.Filter], str] = {
    spark.EqualTo: "=",
    spark.GreaterThan: ">",
    spark.GreaterThanOrEqual: ">=",
    spark.LessThan: "<",
    spark.LessThanOrEqual: "<=",
}

_PATTERNS: dict[type[spark.Filter], Callable[[Any], tuple[str | Wildcard, ...]]] = {
    spark.StringStartsWith: lambda text: (text, ANY_STRING),
    spark.StringEndsWith: lambda text: (ANY_STRING, text),
    spark.StringContains: lambda text: (ANY_STRING, text, ANY_STRING),
}


def to_expressions(filters: Iterable[spark.Filter], schema: StructType, time_zone: str) -> tuple[Expr, ...]:
    """The filters that our expressions can represent; the others are left out and prune nothing."""
    builder = Builder(time_zone)
    found = []
    for item in filters:
        try:
            expression = _convert(item, schema, builder)
        except DeltaError:
            continue
        if expression is not None:
            found.append(expression)
    return tuple(found)


def _convert(item: spark.Filter, schema: StructType, builder: Builder) -> Expr | None:
    if isinstance(item, spark.Not):
        child = _convert(item.child, schema, builder)
        return None if child is None else not_(child)
    attribute = getattr(item, "attribute", None)
    if attribute is None:
        return None
    column = bind_column(attribute, schema)
    value = getattr(item, "value", None)
    kind = type(item)
    if kind in _COMPARISONS:
        return builder.compare(_COMPARISONS[kind], column, value)
    if isinstance(item, spark.EqualNullSafe):
        return builder.null_safe_equal(column, value)
    if isinstance(item, spark.In):
        return builder.is_in(column, list(item.value))
    if isinstance(item, spark.IsNull):
        return is_null(column)
    if isinstance(item, spark.IsNotNull):
        return not_(is_null(column))
    if kind in _PATTERNS and column.data_type == STRING and not column.collated:
        return Like(column, _PATTERNS[kind](value))
    return None
