"""Evaluates a ``Skip`` against the statistics of many files, or row groups, at once.

Invariant: a file is dropped only if its statistics prove that no row of it can match. An unknown value (a null in an
array, or a missing array) never drops a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.columnar.comparison import compare_constant
from delta_pyds.columnar.evaluate import matches
from delta_pyds.columnar.values import values_array
from delta_pyds.expr.nodes import Column, Literal
from delta_pyds.expr.stats_rewrite import (
    AllOf,
    AnyOf,
    Bounds,
    Constant,
    HasNull,
    HasValue,
    OnPartition,
    Prefix,
    Skip,
    Within,
)

# a long IN list is compared with the bounds as at most this many ranges
_MAX_RANGES = 64


class SkippingStatistics(Protocol):
    """Statistics of ``num_files`` files: arrays with one entry per file, all in the same order.

    Columns are named by paths of logical names. Values have the Arrow type of the column. None means unknown for all
    files; a null entry means unknown for that file.

    Requirements:

    - Every value lies between ``minimum`` and ``maximum``, which need not be values of the file. Exception: a floating
      point maximum may exclude NaN.
    - Bounds that were rounded inwards, such as timestamps truncated to milliseconds, are widened before. Bounds with a
      minimum greater than the maximum are unknown.
    - Of ``null_count`` only 0 and ``num_records`` have a meaning.
    """

    @property
    def num_files(self) -> int: ...

    def partition(self, name: str) -> pa.Array:
        """The exact partition value of each file; null is the null value."""
        ...

    def minimum(self, path: tuple[str, ...]) -> pa.Array | None: ...

    def maximum(self, path: tuple[str, ...]) -> pa.Array | None: ...

    def null_count(self, path: tuple[str, ...]) -> pa.Array | None: ...

    def num_records(self) -> pa.Array | None: ...


def keep(skip: Skip, statistics: SkippingStatistics) -> pa.BooleanArray:
    """Whether each file may hold a matching row; no nulls."""
    result = _may_match(skip, statistics)
    if isinstance(result, bool):
        return pa.repeat(pa.scalar(result), statistics.num_files)
    return result


def first_ruling_out(parts: Sequence[Skip], statistics: SkippingStatistics) -> pa.Array:
    """The index of the first part that rules out each file, int32; null for kept files."""
    result = pa.nulls(statistics.num_files, pa.int32())
    for index in range(len(parts) - 1, -1, -1):
        result = pc.if_else(keep(parts[index], statistics), result, pa.scalar(index, pa.int32()))
    return result


def _may_match(skip: Skip, statistics: SkippingStatistics) -> Any:
    """An array without nulls, or one bool for all files."""
    if isinstance(skip, Constant):
        return skip.value
    if isinstance(skip, (AllOf, AnyOf)):
        return _combine(skip, statistics)
    if isinstance(skip, OnPartition):
        return matches(skip.expr, lambda path: statistics.partition(path[0]), statistics.num_files)
    if isinstance(skip, HasNull):
        nulls = statistics.null_count(skip.column.path)
        return True if nulls is None else _unless_false(pc.not_equal(nulls, 0))
    if isinstance(skip, HasValue):
        return _has_value(skip.column, statistics)
    if isinstance(skip, Bounds):
        return _bounds(skip.column, skip.op, skip.value, statistics)
    if isinstance(skip, Prefix):
        return _prefix(skip, statistics)
    return _not_within(skip, statistics) if skip.negated else _within(skip, statistics)


def _has_value(column: Column, statistics: SkippingStatistics) -> Any:
    """False if all rows are null by the statistics, and nothing contradicts that.

    A bound contradicts it. So does a number of rows that is 0, because writers that do not know the number write 0, and
    nobody writes an empty file on purpose. Negative numbers are invalid.
    """
    nulls, rows = statistics.null_count(column.path), statistics.num_records()
    if nulls is None or rows is None:
        return True
    result = _unless_false(pc.or_(pc.not_equal(nulls, rows), pc.less_equal(rows, 0)))
    for bound in (statistics.minimum(column.path), statistics.maximum(column.path)):
        if bound is not None:
            result = pc.or_(result, bound.is_valid())
    return result


def _combine(skip: AllOf | AnyOf, statistics: SkippingStatistics) -> Any:
    conjunction = isinstance(skip, AllOf)
    result: Any = conjunction
    for part in skip.parts:
        found = _may_match(part, statistics)
        if isinstance(found, bool):
            if found != conjunction:
                return found
        elif isinstance(result, bool):
            result = found
        else:
            result = pc.and_(result, found) if conjunction else pc.or_(result, found)
    return result


def _unless_false(condition: pa.Array) -> pa.Array:
    return condition.fill_null(True) if condition.null_count else condition


def _usable(values: pa.Array | None) -> pa.Array | None:
    """The usable bounds: NaN as a bound comes from writers that handle NaN incorrectly."""
    if values is None or not pa.types.is_floating(values.type):
        return values
    return pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)


def _bounds(column: Column, op: str, value: Literal, statistics: SkippingStatistics) -> Any:
    low = _usable(statistics.minimum(column.path)) if op in ("=", "<>", "<", "<=") else None
    high = _usable(statistics.maximum(column.path)) if op in ("=", "<>", ">", ">=") else None
    if op == "<>":
        if low is None or high is None:
            return True
        return _unless_false(pc.or_kleene(compare_constant("<>", low, value), compare_constant("<>", high, value)))
    result: Any = True
    if low is not None:
        result = _unless_false(compare_constant("<=" if op == "=" else op, low, value))
    if high is not None:
        # plain comparison for floating point values: here a maximum is never NaN
        above = _unless_false(compare_constant(">=" if op == "=" else op, high, value))
        result = above if result is True else pc.and_(result, above)
    return result


def _within(skip: Within, statistics: SkippingStatistics) -> Any:
    values, data_type = skip.values, skip.column.data_type
    size = -(-len(values) // _MAX_RANGES)
    low, high = _usable(statistics.minimum(skip.column.path)), _usable(statistics.maximum(skip.column.path))
    if low is None and high is None:
        return True
    result: Any = False
    for start in range(0, len(values), size):
        group = values[start : start + size]
        found: Any = True
        if high is not None:
            found = _unless_false(compare_constant(">=", high, Literal(group[0], data_type)))
        if low is not None:
            below = _unless_false(compare_constant("<=", low, Literal(group[-1], data_type)))
            found = below if found is True else pc.and_(found, below)
        result = found if result is False else pc.or_(result, found)
    return result


def _not_within(skip: Within, statistics: SkippingStatistics) -> Any:
    """False if all values are equal, and that value is excluded."""
    low, high = statistics.minimum(skip.column.path), statistics.maximum(skip.column.path)
    if low is None or high is None:
        return True
    excluded = pc.is_in(low, value_set=values_array(skip.values, skip.column.data_type))
    return pc.invert(pc.and_(pc.equal(low, high).fill_null(False), excluded))


def _prefix(skip: Prefix, statistics: SkippingStatistics) -> Any:
    low, high = statistics.minimum(skip.column.path), statistics.maximum(skip.column.path)
    prefix = Literal(skip.text, skip.column.data_type)
    if skip.negated:
        if low is None or high is None:
            return True
        inside = pc.and_(pc.starts_with(low, skip.text), pc.starts_with(high, skip.text))
        return pc.invert(inside.fill_null(False))
    result: Any = True
    if high is not None:
        result = _unless_false(compare_constant(">=", high, prefix))
    if low is not None:
        below = _unless_false(pc.or_(compare_constant("<=", low, prefix), pc.starts_with(low, skip.text)))
        result = below if result is True else pc.and_(result, below)
    return result
