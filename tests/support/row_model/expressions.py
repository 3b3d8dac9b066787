"""Small expressions of SQL that a plain model in Python evaluates too: text for an engine, a value for the model.

Invariants: null is None, and comparisons, arithmetic and logic treat it as SQL does; values are so small that nothing
overflows. ``None`` as the relation of a column is the table that a DELETE or UPDATE is about. Strategies are made once:
making them costs more than drawing from them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

Row = Mapping[str, Any]
Env = Mapping[str | None, Row]


class Expression:
    """Has a text and a value."""

    def sql(self) -> str:
        raise NotImplementedError

    def value(self, env: Env) -> Any:
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.sql()


@dataclass(frozen=True, repr=False)
class Column(Expression):
    name: str
    relation: str | None = None

    def sql(self) -> str:
        return self.name if self.relation is None else f"{self.relation}.{self.name}"

    def value(self, env: Env) -> Any:
        return env[self.relation][self.name]


@dataclass(frozen=True, repr=False)
class Literal(Expression):
    constant: str | int | bool | None

    def sql(self) -> str:
        if isinstance(self.constant, str):
            return "'" + self.constant.replace("'", "\\'") + "'"
        if isinstance(self.constant, bool):
            return str(self.constant).lower()
        return "NULL" if self.constant is None else str(self.constant)

    def value(self, _: Env) -> Any:
        return self.constant


@dataclass(frozen=True, repr=False)
class Call(Expression):
    """``form``: the text, with the arguments' texts for ``{0}``, ``{1}``; what it computes is in ``_MEANINGS``."""

    form: str
    args: tuple[Expression, ...]

    def sql(self) -> str:
        return self.form.format(*(a.sql() for a in self.args))

    def value(self, env: Env) -> Any:
        return _MEANINGS[self.form](*(a.value(env) for a in self.args))


def call(form: str, *args: Expression) -> Call:
    return Call(form, args)


def holds(condition: Expression | None, env: Env) -> bool:
    """Whether a condition is true; one that was not given always is."""
    return condition is None or condition.value(env) is True


def _strict(of: Any) -> Any:
    """Null where an argument is."""
    return lambda *args: None if None in args else of(*args)


def _and(a: bool | None, b: bool | None) -> bool | None:
    if a is False or b is False:
        return False
    return None if None in (a, b) else True


def _or(a: bool | None, b: bool | None) -> bool | None:
    if a is True or b is True:
        return True
    return None if None in (a, b) else False


_MEANINGS: dict[str, Any] = {
    "({0} AND {1})": _and,
    "({0} OR {1})": _or,
    "(NOT {0})": _strict(lambda a: not a),
    "({0} = {1})": _strict(lambda a, b: a == b),
    "({0} <=> {1})": lambda a, b: a == b,
    "({0} < {1})": _strict(lambda a, b: a < b),
    "({0} > {1})": _strict(lambda a, b: a > b),
    "({0} >= {1})": _strict(lambda a, b: a >= b),
    "({0} IS NULL)": lambda a: a is None,
    "({0} IS NOT NULL)": lambda a: a is not None,
    "({0} IN ({1}, {2}))": lambda a, b, c: _or(*(_MEANINGS["({0} = {1})"](a, x) for x in (b, c))),
    "({0} BETWEEN {1} AND {2})": _strict(lambda a, b, c: b <= a <= c),
    "({0} LIKE 'a%')": _strict(lambda a: a.startswith("a")),
    "({0} + {1})": _strict(lambda a, b: a + b),
    "({0} - {1})": _strict(lambda a, b: a - b),
    "({0} % {1})": _strict(lambda a, b: int(math.fmod(a, b))),
    "concat({0}, {1})": _strict(lambda a, b: a + b),
    "upper({0})": _strict(lambda a: a.upper()),
    "coalesce({0}, {1})": lambda a, b: b if a is None else a,
}

_SMALL = st.integers(-3, 25).map(Literal)
TEXTS = ("a", "ab", "B", "it's", "\U0001f600")
PARTITIONS = ("x", "y", "z z/=%")


@functools.cache
def numbers(*relations: str | None) -> st.SearchStrategy[Expression]:
    """Of any integral type."""
    columns = st.sampled_from([Column(name, r) for r in relations for name in ("k", "n")])
    return st.one_of(
        columns,
        st.builds(lambda a, b: call("({0} + {1})", a, b), columns, _SMALL),
        st.builds(lambda a, b: call("({0} - {1})", a, b), columns, columns),
        st.builds(lambda a, m: call("({0} % {1})", a, Literal(m)), columns, st.integers(2, 5)),
        st.builds(lambda a, b: call("coalesce({0}, {1})", a, b), columns, _SMALL),
    )


@functools.cache
def texts(*relations: str | None) -> st.SearchStrategy[Expression]:
    """Of the type string. The column ``s`` of a source is left out: it may not be there."""
    columns = [Column("p", r) for r in relations] + [Column("s", r) for r in relations if r != "s"]
    column: st.SearchStrategy[Expression] = st.sampled_from(columns)
    literal = st.sampled_from(TEXTS).map(Literal)
    return st.one_of(
        column,
        literal,
        st.builds(lambda a, b: call("concat({0}, {1})", a, b), column, literal),
        st.builds(lambda a: call("upper({0})", a), column),
        st.builds(lambda a, b: call("coalesce({0}, {1})", a, b), column, literal),
    )


@functools.cache
def _leaves(*relations: str | None, plain: bool = False) -> st.SearchStrategy[Expression]:
    small = _SMALL
    number = st.sampled_from([Column(c, r) for r in relations for c in ("k", "n")]) if plain else numbers(*relations)
    partition = st.sampled_from([Column("p", r) for r in relations])
    some_partition = st.sampled_from(PARTITIONS).map(Literal)
    column = st.sampled_from(
        [Column(name, r) for r in relations for name in ("k", "n", "p", "s") if (r, name) != ("s", "s")]
    )
    comparison = st.sampled_from(["({0} = {1})", "({0} < {1})", "({0} > {1})", "({0} >= {1})", "({0} <=> {1})"])
    return st.one_of(
        st.builds(call, comparison, number, small),
        st.builds(lambda a, b: call("({0} BETWEEN {1} AND {2})", a, b, Literal(b.constant + 6)), number, small),
        st.builds(lambda a, b, c: call("({0} IN ({1}, {2}))", a, b, c), number, small, small),
        st.builds(lambda a: call("({0} IS NULL)", a), column),
        st.builds(lambda a: call("({0} IS NOT NULL)", a), column),
        st.builds(lambda a, b: call("({0} = {1})", a, b), partition, some_partition),
        st.builds(lambda a, b: call("({0} IN ({1}, {2}))", a, b, Literal("y")), partition, some_partition),
        st.builds(lambda a: call("({0} LIKE 'a%')", a), partition if plain else texts(*relations)),
    )


@functools.cache
def conditions(*relations: str | None, plain: bool = False) -> st.SearchStrategy[Expression]:
    """Of the type boolean; ``plain``: columns are compared as they are; our predicates allow no more."""
    return st.recursive(
        _leaves(*relations, plain=plain),
        lambda inner: st.one_of(
            st.builds(lambda a, b: call("({0} AND {1})", a, b), inner, inner),
            st.builds(lambda a, b: call("({0} OR {1})", a, b), inner, inner),
            st.builds(lambda a: call("(NOT {0})", a), inner),
        ),
        max_leaves=3,
    )
