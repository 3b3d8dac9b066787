"""Spark SQL expressions before names and types are resolved.

``expr.parser.grammar`` parses text into these nodes; ``expr.binder.binding`` binds them as
expressions, ``expr.binder.predicate_binding`` as predicates. ``position``: the position in
the text of the name, word or symbol that an error would name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from delta_pyds.expr.nodes import Literal
from delta_pyds.protocol.schema import DataType


@dataclass(frozen=True)
class Name:
    """A column, optionally with nested fields. All parts are resolved together, as in Spark."""

    path: tuple[str, ...]
    position: int


@dataclass(frozen=True)
class Constant:
    literal: Literal


@dataclass(frozen=True)
class ConstantList:
    """Constants of one type, without null: an argument of ``IN``, which may have a million."""

    values: tuple[int, ...] | tuple[float, ...] | tuple[Decimal, ...] | tuple[str, ...]
    data_type: DataType

    @property
    def literals(self) -> list[Literal]:
        """Each different constant."""
        values: Iterable[int | float | Decimal | str] = self.values
        return [Literal(value, self.data_type) for value in dict.fromkeys(values)]


@dataclass(frozen=True)
class TypedText:
    """``DATE '2020-01-01'`` and similar literals, read by the session's rules."""

    data_type: DataType
    text: str


@dataclass(frozen=True)
class Interval:
    """A literal interval: months, days and microseconds are separate."""

    months: int
    days: int
    micros: int
    has_months: bool
    has_time: bool
    text: str
    position: int


@dataclass(frozen=True)
class Apply:
    """A function (name in lower case) or an operator (symbol, or word in upper case), applied to arguments.

    A chain of AND or of OR is one node. ``LIKE`` and ``ILIKE`` have the escape character as their third argument.
    """

    function: str
    args: tuple[Syntax, ...]
    position: int


@dataclass(frozen=True)
class CastTo:
    child: Syntax
    data_type: DataType
    position: int
    trying: bool = False


@dataclass(frozen=True)
class CaseOf:
    branches: tuple[tuple[Syntax, Syntax], ...]
    otherwise: Syntax | None
    position: int


Syntax = Name | Constant | ConstantList | TypedText | Interval | Apply | CastTo | CaseOf
