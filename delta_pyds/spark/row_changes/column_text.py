"""A Column of Spark as SQL text, if that text certainly has the same meaning for our own parser.

Invariant: a text is never a guess. Constants keep value and type, and names keep their parts. Unsupported nodes (a
Python function, a column that belongs to a DataFrame, a window) have no text.

A classic Column is a tree in the JVM; a Column of Spark Connect is a tree of Python objects. Both have the same nodes.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from pyspark.sql import Column

from delta_pyds.errors import OptionError
from delta_pyds.expr.nodes import Literal, literal_to_sql
from delta_pyds.protocol.quoting import quote_name
from delta_pyds.protocol.schema import BINARY, BOOLEAN, DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ, VOID
from delta_pyds.spark.jvm_plans import items
from delta_pyds.table.scan.column_selection import parse_column_list

_INFIX = {
    "and": "AND", "or": "OR", "=": "=", "==": "=", "<=>": "<=>", "<": "<", "<=": "<=", ">": ">", ">=": ">=",
    "+": "+", "-": "-", "*": "*", "/": "/", "%": "%", "like": "LIKE", "rlike": "RLIKE", "ilike": "ILIKE",
}  # fmt: skip
_PREFIX = {"!": "NOT", "not": "NOT", "negative": "-"}
_SUFFIX = {"isnull": "IS NULL", "isnotnull": "IS NOT NULL"}
_EPOCH_DAY = dt.date(1970, 1, 1).toordinal()
# Deeper trees go to Spark: each level costs us a frame of Python's stack and some calls to the JVM
_MOST_LEVELS = 100


class _NoTextError(Exception):
    """A part of the tree has no text that certainly means the same."""


def conjuncts_of_column(column: Column) -> list[str | None]:
    """The texts of the conjuncts of the Column; None for one without a text."""
    return [_text(part) for part in _split(_root(column))]


def text_of_column(column: Column) -> str | None:
    """The text of the whole Column; None if a part has no text."""
    return _text(_root(column))


def name_of(expression: Column | str) -> str | None:
    """The column that an expression consists of; None for any other expression, and for a nested column."""
    text = expression if isinstance(expression, str) else text_of_column(expression)
    if text is None or not _is_one_name(text):
        return None
    ((name,),) = parse_column_list(text)
    return name


def _is_one_name(text: str) -> bool:
    bare = text.strip()
    if bare.startswith("`"):
        return len(bare) > 2 and bare.endswith("`") and "`" not in bare[1:-1].replace("``", "")
    return bare.isidentifier()


def _text(node: _Node) -> str | None:
    try:
        return _sql(node, _MOST_LEVELS)
    except _NoTextError:
        return None


def _split(node: _Node, levels: int = _MOST_LEVELS) -> list[_Node]:
    if levels and node.kind == "call" and node.name.lower() == "and" and len(node.children) == 2:
        return [part for child in node.children for part in _split(child, levels - 1)]
    return [node]


class _Node:
    """``kind``: call, name, constant, sql, cast, case, alias, field, or other. ``value``: depends on the kind."""

    def __init__(self, kind: str, children: Sequence[_Node] = (), *, name: str = "", value: Any = None) -> None:
        self.kind = kind
        self.children = children
        self.name = name
        self.value = value


_OTHER = _Node("other")


def _sql(node: _Node, levels: int) -> str:
    if not levels:
        raise _NoTextError
    if node.kind == "name":
        return quote_name(*node.value)
    if node.kind == "constant":
        return _constant(node.value)
    if node.kind == "sql":
        return f"({node.value}\n\n)"  # a comment in the text ends with its line, or after a backslash with the next one
    parts = [_sql(child, levels - 1) for child in node.children]
    if node.kind == "alias":
        return parts[0]
    if node.kind == "cast":
        return f"CAST({parts[0]} AS {node.value})"
    if node.kind == "case":
        return _case(parts)
    if node.kind == "call":
        return _call(node.name, parts)
    raise _NoTextError


def _case(parts: Sequence[str]) -> str:
    """CASE of alternating conditions and values; if the number of parts is odd, the last is the value of ELSE."""
    pairs = zip(parts[0::2], parts[1::2], strict=False)
    branches = " ".join(f"WHEN {test} THEN {value}" for test, value in pairs)
    otherwise = f" ELSE {parts[-1]}" if len(parts) % 2 else ""
    return f"CASE {branches}{otherwise} END"


def _call(name: str, parts: Sequence[str]) -> str:
    known = name.lower()
    if known in _INFIX and len(parts) == 2:
        return f"({parts[0]} {_INFIX[known]} {parts[1]})"
    if known in _PREFIX and len(parts) == 1:
        return f"({_PREFIX[known]} {parts[0]})"
    if known in _SUFFIX and len(parts) == 1:
        return f"({parts[0]} {_SUFFIX[known]})"
    if known == "in" and len(parts) > 1:
        return f"({parts[0]} IN ({', '.join(parts[1:])}))"
    if known.isidentifier() and known.isascii():
        return f"{known}({', '.join(parts)})"
    raise _NoTextError


def _constant(value: Any) -> str:
    """A Python value as a constant of the type that ``lit`` gives it."""
    if value is None:
        return literal_to_sql(Literal(None, VOID))
    if isinstance(value, bool):
        return literal_to_sql(Literal(value, BOOLEAN))
    if isinstance(value, int):
        return str(value)  # an int up to 31 bits, else a long: as in Spark's SQL
    if isinstance(value, float):
        return f"{value!r}D" if math.isfinite(value) else f"CAST('{value!r}' AS DOUBLE)"
    if isinstance(value, Decimal) and value.is_finite():
        return f"{value:f}BD"
    if isinstance(value, str):
        return literal_to_sql(Literal(value, STRING))
    if isinstance(value, (bytes, bytearray)):
        return literal_to_sql(Literal(bytes(value), BINARY))
    if isinstance(value, Literal):
        return literal_to_sql(value)
    raise _NoTextError


def _path(text: str) -> _Node:
    """The node of a name as ``col`` takes it: parts separated by dots, in backticks if they need quoting."""
    try:
        paths = parse_column_list(text)
    except OptionError:
        return _OTHER
    return _Node("name", value=paths[0]) if len(paths) == 1 and "*" not in text else _OTHER


def _root(column: Column) -> _Node:
    tree: Any = column
    if hasattr(tree, "_jc"):
        return _of_classic(tree._jc.node(), _MOST_LEVELS)
    return _of_connect(tree._expr, _MOST_LEVELS)


# --- classic


def _of_classic(node: Any, levels: int) -> _Node:
    make = _CLASSIC.get(node.getClass().getSimpleName())
    return make(node, levels - 1) if make is not None and levels else _OTHER


def _classic_name(node: Any, _: int) -> _Node:
    if node.planId().isDefined() or node.isMetadataColumn():
        return _OTHER
    return _Node("name", value=tuple(items(node.nameParts())))


def _classic_constant(node: Any, _: int) -> _Node:
    value = node.value()
    if node.dataType().isDefined():
        return _OTHER
    if value is not None and hasattr(value, "getClass"):
        kind = value.getClass().getName()
        if kind in ("java.sql.Date", "java.time.LocalDate"):
            day = dt.date.fromisoformat(value.toString()).toordinal() - _EPOCH_DAY
            return _Node("constant", value=Literal(day, DATE))
        if kind == "java.sql.Timestamp":
            micros = value.getTime() // 1000 * 1_000_000 + value.getNanos() // 1000
            return _Node("constant", value=Literal(micros, TIMESTAMP))
        if kind == "java.math.BigDecimal":
            return _Node("constant", value=Decimal(value.toPlainString()))
        return _OTHER
    # py4j does not distinguish an int from a long, but Spark's text does
    if isinstance(value, int) and not isinstance(value, bool) and node.sql().endswith("L") != _is_long(value):
        return _OTHER
    return _Node("constant", value=value)


def _is_long(value: int) -> bool:
    return not -(1 << 31) <= value < 1 << 31


def _classic_call(node: Any, levels: int) -> _Node:
    if node.isDistinct() or node.isInternal():
        return _OTHER
    return _Node("call", [_of_classic(part, levels) for part in items(node.arguments())], name=node.functionName())


def _classic_cast(node: Any, levels: int) -> _Node:
    if node.evalMode().isDefined():
        return _OTHER
    return _Node("cast", [_of_classic(node.child(), levels)], value=node.dataType().sql())


def _classic_case(node: Any, levels: int) -> _Node:
    parts = [part for branch in items(node.branches()) for part in (branch._1(), branch._2())]
    otherwise = node.otherwise()
    if otherwise.isDefined():
        parts.append(otherwise.get())
    return _Node("case", [_of_classic(part, levels) for part in parts])


_CLASSIC: dict[str, Callable[[Any, int], _Node]] = {
    "UnresolvedAttribute": _classic_name,
    "Literal": _classic_constant,
    "UnresolvedFunction": _classic_call,
    "SqlExpression": lambda node, _: _Node("sql", value=node.expression()),
    "Cast": _classic_cast,
    "CaseWhenOtherwise": _classic_case,
    "Alias": lambda node, levels: _Node("alias", [_of_classic(node.child(), levels)]),
}


# --- Spark Connect


def _of_connect(node: Any, levels: int) -> _Node:
    make = _CONNECT.get(type(node).__name__)
    return make(node, levels - 1) if make is not None and levels else _OTHER


def _connect_name(node: Any, _: int) -> _Node:
    if node._plan_id is not None or node._is_metadata_column:
        return _OTHER
    return _path(node._unparsed_identifier)


def _connect_constant(node: Any, _: int) -> _Node:
    value, kind = node._value, type(node._dataType).__name__
    if value is None:
        return _Node("constant")
    known = {"DateType": DATE, "TimestampType": TIMESTAMP, "TimestampNTZType": TIMESTAMP_NTZ}
    if kind in known and isinstance(value, int):
        return _Node("constant", value=Literal(value, known[kind]))
    if kind == "LongType" and not _is_long(value):
        return _OTHER
    plain = ("BooleanType", "IntegerType", "LongType", "DoubleType", "StringType", "BinaryType", "DecimalType")
    return _Node("constant", value=value) if kind in plain else _OTHER


def _connect_call(node: Any, levels: int) -> _Node:
    if getattr(node, "_is_distinct", False):
        return _OTHER
    return _Node("call", [_of_connect(child, levels) for child in node._args], name=node._name)


def _connect_cast(node: Any, levels: int) -> _Node:
    if getattr(node, "_eval_mode", None) is not None:
        return _OTHER
    wanted = node._data_type
    text = wanted if isinstance(wanted, str) else wanted.simpleString()
    return _Node("cast", [_of_connect(node._expr, levels)], value=text)


def _connect_case(node: Any, levels: int) -> _Node:
    parts = [part for branch in node._branches for part in branch]
    if node._else_value is not None:
        parts.append(node._else_value)
    return _Node("case", [_of_connect(part, levels) for part in parts])


_CONNECT: dict[str, Callable[[Any, int], _Node]] = {
    "ColumnReference": _connect_name,
    "LiteralExpression": _connect_constant,
    "UnresolvedFunction": _connect_call,
    "CallFunction": _connect_call,
    "SQLExpression": lambda node, _: _Node("sql", value=node._expr),
    "CastExpression": _connect_cast,
    "CaseWhen": _connect_case,
    "ColumnAlias": lambda node, levels: _Node("alias", [_of_connect(node._child, levels)]),
}
