"""Conditions that let a merge skip files, made from the keys of its source.

Invariant: a row of the table that matches a row of the source satisfies all of them. So a file or row group whose
statistics contradict one holds no such row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.columnar.values import value_type
from delta_pyds.expr.nodes import (
    FALSE,
    And,
    Cast,
    Column,
    Comparison,
    Expr,
    In,
    IsNull,
    Literal,
    LiteralValue,
    Or,
    children,
    type_of,
    with_columns,
)
from delta_pyds.expr.types import is_floating, is_integral
from delta_pyds.protocol.schema import BOOLEAN
from delta_pyds.tasks.merge import JoinCondition, JoinKey

# at most this many keys are listed one by one
_MOST_LISTED = 1_000
# more keys become this many ranges
_MOST_LISTED = 1_000
_RANGES = 64


def key_conditions(on: JoinCondition, keys: Sequence[pa.Array]) -> tuple[Expr, ...]:
    """Conditions on the table's columns that the keys imply. ``keys``: the source's values of each key."""
    conditions = (_of_key(key, values) for key, values in zip(on.keys, keys, strict=True))
    return tuple(c for c in conditions if c is not None)


def own_conditions(on: JoinCondition) -> tuple[Expr, ...]:
    """The parts of the search condition that use only columns of the table."""
    return tuple(with_columns(part, _without_side) for part in on.target if _is_plain(part))


def _of_key(key: JoinKey, values: pa.Array) -> Expr | None:
    found = _column_values(key.target, values)
    if found is None:
        return None
    column, values = found
    distinct = pc.unique(values.drop_null())
    parts: list[Expr] = []
    if len(distinct) > _MOST_LISTED:
        parts += _ranges(column, distinct.take(pc.array_sort_indices(distinct)))
    elif len(distinct):
        parts.append(In(column, _literals(distinct)))
    if key.null_safe and values.null_count:
        parts.append(IsNull(column))
    return Or(tuple(parts)) if len(parts) > 1 else parts[0] if parts else FALSE


def _column_values(target: Expr, values: pa.Array) -> tuple[Column, pa.Array] | None:
    """The table's column that the key is computed from, and its values that may equal keys of the source."""
    own = target.child if isinstance(target, Cast) else target
    if not isinstance(own, Column) or own.collated:
        return None
    compared, data_type = type_of(target), own.data_type
    # the bounds of floating point columns ignore NaN
    if any(is_floating(t) or t == BOOLEAN for t in (compared, data_type)):
        return None
    column = _without_side(own)
    if compared == data_type:
        return column, values
    if not (is_integral(compared) and is_integral(data_type)):
        return None
    # keys outside the range of the column's type match nothing
    narrow = values.cast(value_type(data_type), safe=False)
    fits = pc.equal(narrow.cast(values.type), values)
    return column, narrow.filter(pc.fill_null(fits, True))


def _ranges(column: Column, ascending: pa.Array) -> Iterator[Expr]:
    """Ranges with equally many keys each."""
    length = -(-len(ascending) // _RANGES)
    for start in range(0, len(ascending), length):
        ends = ascending.take(pa.array([start, min(start + length, len(ascending)) - 1]))
        low, high = (Literal(value, column.data_type) for value in _literals(ends))
        yield And((Comparison(">=", column, low), Comparison("<=", column, high)))


def _literals(values: pa.Array) -> tuple[LiteralValue, ...]:
    """Dates as days, timestamps as microseconds."""
    if pa.types.is_date32(values.type):
        values = values.cast(pa.int32())
    elif pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    return tuple(values.to_pylist())


def _without_side(column: Column) -> Column:
    return Column(column.path[1:], column.data_type, column.collated)


def _is_plain(expr: Expr) -> bool:
    """Whether skipping supports all parts of the expression, and evaluating it cannot fail."""
    if isinstance(expr, Column):
        return not expr.collated
    if isinstance(expr, Literal):
        return not isinstance(expr.value, float) or expr.value == expr.value
    plain = isinstance(expr, (Comparison, In, And, Or, IsNull))
    return plain and all(_is_plain(child) for child in children(expr))
