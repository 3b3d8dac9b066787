"""Rewriting of a predicate into a condition on the statistics of files.

``skipping`` turns a predicate into a ``Skip``: a condition that every file
with a matching row satisfies. If the statistics of a file contradict it, the file has no matching row. A file without
statistics satisfies every condition, and a predicate that statistics cannot decide becomes ``KEEP``.

Protocol: "Per-file Statistics". Evaluated by ``columnar.skipping``.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, TypeGuard

from delta_pyds.expr.logic import not_
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
    LiteralValue,
    Not,
    Or,
    Remainder,
    children,
    columns,
    references,
)
from delta_pyds.expr.types import is_floating
from delta_pyds.protocol.schema import BOOLEAN, StructType


@dataclass(frozen=True)
class Constant:
    """True for every file, or for no file."""

    value: bool


# Statistics are compared with at most this many conditions of one AND or OR. A longer AND is reduced to some of its
# conditions, a longer OR to the outermost bounds of each column: more files are kept, but planning stays fast.
_MAX_PARTS = 1_000
_MAX_BRANCHES = 1_000

KEEP = Constant(True)
DROP = Constant(False)


@dataclass(frozen=True)
class OnPartition:
    """The predicate itself, which uses only partition columns: exact, not a bound."""

    expr: Expr


@dataclass(frozen=True)
class Bounds:
    """Some value of the column may be ``op`` the constant, which has the column's type and is not NaN.

    For floating point columns only ``=``, ``<`` and ``<=`` are used: writers ignore NaN in the maximum,
    and NaN is greater than any maximum.
    """

    column: Column
    op: str
    value: Literal


@dataclass(frozen=True)
class Within:
    """Some value may be among ``values``, or with ``negated`` not be among them; sorted, of the column's type."""

    column: Column
    values: tuple[LiteralValue, ...]
    negated: bool = False


@dataclass(frozen=True)
class Prefix:
    """Some string may start with ``text``, or with ``negated`` not start with it."""

    column: Column
    text: str
    negated: bool = False


@dataclass(frozen=True)
class HasNull:
    """Some row may have null in the column."""

    column: Column


@dataclass(frozen=True)
class HasValue:
    """Some row may have a value in the column."""

    column: Column


@dataclass(frozen=True)
class AllOf:
    parts: tuple[Skip, ...]


@dataclass(frozen=True)
class AnyOf:
    parts: tuple[Skip, ...]


Skip = Constant | OnPartition | Bounds | Within | Prefix | HasNull | HasValue | AllOf | AnyOf


@dataclass(frozen=True)
class Needs:
    """The statistics that a ``Skip`` needs: logical names of partition columns, and paths of data columns.

    ``bounds``: minimum and maximum; both are needed, to detect whether they contradict each other.
    """

    partition_columns: frozenset[str] = frozenset()
    bounds: frozenset[tuple[str, ...]] = frozenset()
    null_count: frozenset[tuple[str, ...]] = frozenset()
    num_records: bool = False

    def __or__(self, other: Needs) -> Needs:
        return Needs(
            self.partition_columns | other.partition_columns,
            self.bounds | other.bounds,
            self.null_count | other.null_count,
            self.num_records or other.num_records,
        )


def skipping(expr: Expr, partition_columns: Collection[str]) -> Skip:
    """The condition that the statistics of every file with a matching row satisfy.

    ``partition_columns``: logical names, in the table's spelling.
    """
    return _skipping(expr, frozenset(partition_columns))


def _skipping(expr: Expr, partitions: frozenset[str]) -> Skip:
    if isinstance(expr, Literal):
        return KEEP if expr.value else DROP
    if _on_partition(expr, partitions):
        return OnPartition(expr)
    if isinstance(expr, And):
        return _all([_skipping(child, partitions) for child in _grouped(expr, partitions)])
    if isinstance(expr, Or):
        return _any([_skipping(child, partitions) for child in _grouped(expr, partitions)])
    if isinstance(expr, IsNull):
        return HasNull(expr.child) if _has_null_count(expr.child) else KEEP
    if isinstance(expr, Not) and isinstance(expr.child, IsNull):
        child = expr.child.child
        return HasValue(child) if _has_null_count(child) else KEEP
    if isinstance(expr, Not) and isinstance(expr.child, (Literal, Comparison, And, Or, Not)):
        # expressions of commands keep such a negation as it was written
        return _skipping(not_(expr.child), partitions)
    return _all([_has_values(expr, partitions), _values(expr)])


def _has_null_count(expr: Expr) -> TypeGuard[Column]:
    """Whether statistics count the nulls of a column. For a struct, they count those of its fields instead."""
    return isinstance(expr, Column) and not isinstance(expr.data_type, StructType)


def _on_partition(expr: Expr, partitions: frozenset[str]) -> bool:
    paths = references(expr)
    return bool(paths) and all(path[0] in partitions for path in paths)


def _grouped(expr: And | Or, partitions: frozenset[str]) -> list[Expr]:
    """The children. Those that use only partition columns are combined into one, to be evaluated at once."""
    exact: list[Expr] = []
    others: list[Expr] = []
    for child in expr.children:
        (exact if _on_partition(child, partitions) else others).append(child)
    return [type(expr)(tuple(exact)), *others] if len(exact) > 1 else list(expr.children)


def _has_values(expr: Expr, partitions: frozenset[str]) -> Skip:
    """The condition that all columns have values: a comparison with a null is never true."""
    if _takes_null(expr):
        return KEEP
    parts: list[Skip] = []
    for column in sorted(set(columns(expr)), key=lambda column: column.path):
        if column.path[0] in partitions:
            parts.append(OnPartition(Not(IsNull(column))))
        else:
            parts.append(HasValue(column))
    return _all(parts)


def _takes_null(expr: Expr) -> bool:
    """Whether the expression may have a value although one of its columns is null."""
    # these are null if a column is null; functions, CASE and coalesce may have a value
    strict = isinstance(expr, (Column, Literal, Cast, Remainder, Comparison, In, Like, Not))
    return not strict or any(_takes_null(child) for child in children(expr))


def _values(expr: Expr) -> Skip:
    negated = isinstance(expr, Not)
    test = expr.child if isinstance(expr, Not) else expr
    if isinstance(test, Column) and test.data_type == BOOLEAN:
        return Bounds(test, "=", Literal(not negated, BOOLEAN))
    if isinstance(test, Comparison) and isinstance(test.left, Column) and isinstance(test.right, Literal):
        value = test.right.value
        floating = is_floating(test.left.data_type)
        if value is None or (floating and (value != value or test.op not in ("=", "<", "<="))):
            return KEEP
        return Bounds(test.left, test.op, test.right)
    if isinstance(test, In) and isinstance(test.child, Column):
        if negated and is_floating(test.child.data_type):
            return KEEP
        return Within(test.child, tuple(sorted(test.values, key=_order)), negated)
    if isinstance(test, Like) and isinstance(test.child, Column) and isinstance(test.parts[0], str):
        if not negated:
            return Prefix(test.child, test.parts[0])
        if test.parts[1:] == (ANY_STRING,):
            return Prefix(test.child, test.parts[0], negated=True)
    return KEEP


def _order(value: LiteralValue) -> Any:
    return value.encode("utf-8") if isinstance(value, str) else value


def _all(parts: list[Skip]) -> Skip:
    flat: dict[Skip, None] = {}
    for part in parts:
        for inner in part.parts if isinstance(part, AllOf) else (part,):
            if inner == DROP:
                return DROP
            if inner != KEEP:
                flat[inner] = None
    if len(flat) > _MAX_PARTS:
        # exact and cheap conditions first; fewer conditions only keep more files
        flat = dict.fromkeys(sorted(flat, key=lambda part: not isinstance(part, OnPartition))[:_MAX_PARTS])
    return AllOf(tuple(flat)) if len(flat) > 1 else next(iter(flat), KEEP)


def _any(parts: list[Skip]) -> Skip:
    flat: dict[Skip, None] = {}
    for part in parts:
        for inner in part.parts if isinstance(part, AnyOf) else (part,):
            if inner == KEEP:
                return KEEP
            if inner != DROP:
                flat[inner] = None
    if len(flat) > _MAX_BRANCHES:
        return _envelope(list(flat))
    return AnyOf(tuple(flat)) if len(flat) > 1 else next(iter(flat), DROP)


def _envelope(parts: list[Skip]) -> Skip:
    """The condition that holds if any part does: the outermost bounds of each column that all parts bound."""
    lows, highs = _ends(parts[0])
    for part in parts[1:]:
        low, high = _ends(part)
        lows = {c: min(v, low[c], key=_literal_order) for c, v in lows.items() if c in low}
        highs = {c: max(v, high[c], key=_literal_order) for c, v in highs.items() if c in high}
        if not lows and not highs:
            return KEEP
    return _all([*(Bounds(c, ">=", v) for c, v in lows.items()), *(Bounds(c, "<=", v) for c, v in highs.items())])


def _ends(part: Skip) -> tuple[dict[Column, Literal], dict[Column, Literal]]:
    """Lower and upper bounds by column: if the part is true, the file has a value of the column within them."""
    lows: dict[Column, Literal] = {}
    highs: dict[Column, Literal] = {}
    for one in part.parts if isinstance(part, AllOf) else (part,):
        if isinstance(one, Bounds) and one.column.data_type != BOOLEAN:
            low, high = (one.value if one.op in ops else None for ops in (("=", ">", ">="), ("=", "<", "<=")))
        elif isinstance(one, Within) and one.values and not one.negated:
            low, high = (Literal(one.values[i], one.column.data_type) for i in (0, -1))
        else:
            continue
        # NaN is greater than any maximum
        if low is not None and not is_floating(one.column.data_type):
            lows[one.column] = low
        if high is not None:
            highs[one.column] = high
    return lows, highs


def _literal_order(literal: Literal) -> Any:
    return _order(literal.value)


def needs(skip: Skip) -> Needs:
    """The statistics that the condition needs."""
    if isinstance(skip, (AllOf, AnyOf)):
        total = Needs()
        for part in skip.parts:
            total |= needs(part)
        return total
    if isinstance(skip, Constant):
        return Needs()
    if isinstance(skip, OnPartition):
        return Needs(partition_columns=frozenset(path[0] for path in references(skip.expr)))
    path = frozenset((skip.column.path,))
    if isinstance(skip, HasNull):
        return Needs(null_count=path)
    if isinstance(skip, HasValue):
        return Needs(bounds=path, null_count=path, num_records=True)
    return Needs(bounds=path)
