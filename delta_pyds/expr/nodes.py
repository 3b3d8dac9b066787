"""The tree of an expression: typed, bound to the table's columns, picklable.

Invariant: a tree means the same in every process. Types are determined,
literals are cast, names are the table's own, and nothing in it depends on a
session: the time zone and the ANSI mode that it was bound for are part of it.
``expr.binder.build`` builds predicates from total parts, ``expr.binder.binding`` builds general
expressions; no other caller needs these constructors.

Logic is three-valued, as in SQL: true, false, null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal

from delta_pyds.errors import ExpressionError
from delta_pyds.protocol.quoting import quote_where_needed
from delta_pyds.protocol.schema import BOOLEAN, DataType, DecimalType, PrimitiveType, display

LiteralValue = bool | int | float | str | bytes | Decimal | None

NEGATED = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
# the number of levels of a tree that its SQL shows
_SHOWN_DEPTH = 60
SWAPPED = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


@dataclass(frozen=True)
class Column:
    """A column or a nested field: logical names from the top, in the table's spelling."""

    path: tuple[str, ...]
    data_type: DataType
    collated: bool = False


@dataclass(frozen=True)
class Literal:
    """A constant.

    ``value``: dates are days and timestamps microseconds since 1970-01-01
    (UTC; wall clock for timestamp_ntz), decimals ``Decimal``, binary
    ``bytes``, null ``None``. A float is the exact value of its type.
    """

    value: LiteralValue
    data_type: DataType


@dataclass(frozen=True)
class Cast:
    """A conversion that is defined for every value and keeps the order of values."""

    child: Expr
    data_type: DataType


@dataclass(frozen=True)
class Remainder:
    """``child % divisor`` over whole numbers; the sign is the dividend's. ``divisor`` is not 0."""

    child: Expr
    divisor: int
    data_type: DataType


@dataclass(frozen=True)
class Comparison:
    """``left op right``; both sides have one type, in Spark's order (NaN is equal to NaN and the greatest)."""

    op: str  # "=", "<>", "<", "<=", ">", ">="
    left: Expr
    right: Expr


@dataclass(frozen=True)
class In:
    """``child IN (values)``: distinct values of the child's type, without null and NaN."""

    child: Expr
    values: tuple[LiteralValue, ...]


@dataclass(frozen=True)
class Like:
    """``child LIKE pattern``. ``parts``: text, ``ANY_STRING`` for ``%``, ``ANY_CHARACTER`` for ``_``."""

    child: Expr
    parts: tuple[str | Wildcard, ...]


@dataclass(frozen=True)
class Wildcard:
    symbol: str


ANY_STRING = Wildcard("%")
ANY_CHARACTER = Wildcard("_")


@dataclass(frozen=True)
class IsNull:
    child: Expr


@dataclass(frozen=True)
class Not:
    child: Expr


@dataclass(frozen=True)
class And:
    children: tuple[Expr, ...]


@dataclass(frozen=True)
class Or:
    children: tuple[Expr, ...]


@dataclass(frozen=True)
class Call:
    """A function or operator on values. It occurs only in general expressions, and unlike the other nodes it may fail.

    ``ansi``: rows without a result are errors; otherwise they are null or wrap around, depending on the function.
    ``zone``: the session's time zone, if the function uses it. ``options``: constants that are not values.
    """

    function: str
    args: tuple[Expr, ...]
    data_type: DataType
    ansi: bool = True
    zone: str = ""
    options: tuple[str | int, ...] = ()


@dataclass(frozen=True)
class Case:
    """The value of the first branch whose condition is true; the others are not evaluated for that row."""

    branches: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr
    data_type: DataType


@dataclass(frozen=True)
class Coalesce:
    """The first value that is not null; later values are not evaluated for that row."""

    children: tuple[Expr, ...]
    data_type: DataType


Expr = Column | Literal | Cast | Remainder | Comparison | In | Like | IsNull | Not | And | Or | Call | Case | Coalesce

TRUE = Literal(True, BOOLEAN)
FALSE = Literal(False, BOOLEAN)
NULL = Literal(None, BOOLEAN)


@dataclass(frozen=True)
class Predicate:
    """A bound predicate. ``uses_time_zone``: its meaning depends on the session's time zone."""

    expr: Expr
    uses_time_zone: bool = False


def type_of(expr: Expr) -> DataType:
    """The type of the expression's values."""
    if isinstance(expr, (Column, Literal, Cast, Remainder, Call, Case, Coalesce)):
        return expr.data_type
    return BOOLEAN


def children(expr: Expr) -> tuple[Expr, ...]:
    """The direct parts of the expression."""
    if isinstance(expr, (And, Or, Coalesce)):
        return expr.children
    if isinstance(expr, Call):
        return expr.args
    if isinstance(expr, Case):
        return (*(part for branch in expr.branches for part in branch), expr.otherwise)
    if isinstance(expr, Comparison):
        return expr.left, expr.right
    if isinstance(expr, (Column, Literal)):
        return ()
    return (expr.child,)


def may_fail(expr: Expr) -> bool:
    """Whether the expression may fail for some row. Then it matters for which rows it is evaluated."""
    pending = [expr]
    while pending:
        node = pending.pop()
        if isinstance(node, Call):
            return True
        pending.extend(children(node))
    return False


# The most of Python's thousand stack frames that a tree may take when it is pickled, hashed, compared or evaluated. A
# level of CASE takes 4, a call or a chain of AND or OR 3, others 2.
MAX_FRAMES = 620


def require_moderate_depth(expr: Expr) -> None:
    """Refuse a tree that is too deep for a task. Shared parts are checked once.

    Raises: ExpressionError, which shows the beginning of the deepest part.
    """
    frames: dict[int, int] = {}
    pending: list[tuple[Expr, bool]] = [(expr, False)]
    while pending:
        node, seen = pending.pop()
        if id(node) in frames:
            continue
        inner = children(node)
        if not inner:
            frames[id(node)] = 2
        elif not seen:
            pending.append((node, True))
            pending.extend((child, False) for child in inner)
        else:
            own = 4 if isinstance(node, Case) else 3 if isinstance(node, (And, Or, Call, Coalesce)) else 2
            frames[id(node)] = deepest = own + max(frames[id(child)] for child in inner)
            if deepest > MAX_FRAMES:
                raise ExpressionError(
                    f"nesting deeper than about {MAX_FRAMES // 3} levels is not supported, and this expression goes "
                    f"deeper: {to_sql(node)[:200]}... Chains of AND, OR and || may be of any length; split a chain of "
                    "other operators with parentheses, or compute a part of it in a separate column.",
                    construct="nesting",
                )


def columns(expr: Expr) -> Iterator[Column]:
    """All columns in the expression, as often as they occur."""
    pending = [expr]
    while pending:
        node = pending.pop()
        if isinstance(node, Column):
            yield node
        pending.extend(children(node))


def references(expr: Expr) -> frozenset[tuple[str, ...]]:
    """Paths of all columns in the expression."""
    return frozenset(column.path for column in columns(expr))


def with_columns(expr: Expr, made: Callable[[Column], Expr]) -> Expr:
    """The same expression with each column replaced by ``made(column)``, which has the column's type."""
    if isinstance(expr, Column):
        return made(expr)
    if isinstance(expr, Literal):
        return expr
    if isinstance(expr, (And, Or, Coalesce)):
        return replace(expr, children=tuple([with_columns(child, made) for child in expr.children]))
    if isinstance(expr, Call):
        return replace(expr, args=tuple([with_columns(arg, made) for arg in expr.args]))
    if isinstance(expr, Case):
        branches = [(with_columns(test, made), with_columns(value, made)) for test, value in expr.branches]
        return replace(expr, branches=tuple(branches), otherwise=with_columns(expr.otherwise, made))
    if isinstance(expr, Comparison):
        return replace(expr, left=with_columns(expr.left, made), right=with_columns(expr.right, made))
    return replace(expr, child=with_columns(expr.child, made))


def conjuncts(expr: Expr) -> tuple[Expr, ...]:
    """The parts that must all be true for the expression to be true."""
    if isinstance(expr, And):
        return tuple(part for child in expr.children for part in conjuncts(child))
    return (expr,)


def to_sql(expr: Expr) -> str:
    """The expression as SQL, for ``explain``. Very deep parts are omitted.

    Comparisons show the column's own type, so ``i < 1.5`` over whole numbers reads ``i < 2``.
    """
    return _sql(expr, _SHOWN_DEPTH)


def _sql(expr: Expr, depth: int) -> str:
    if depth == 0:
        return "..."
    depth -= 1
    if isinstance(expr, Column):
        return ".".join(quote_where_needed(part) for part in expr.path)
    if isinstance(expr, Literal):
        return literal_to_sql(expr)
    if isinstance(expr, Cast):
        return f"CAST({_sql(expr.child, depth)} AS {display(expr.data_type).upper()})"
    if isinstance(expr, Remainder):
        return f"{_sql(expr.child, depth)} % {expr.divisor}"
    if isinstance(expr, Comparison):
        return f"{_operand(expr.left, depth)} {expr.op} {_operand(expr.right, depth)}"
    if isinstance(expr, In):
        data_type = type_of(expr.child)
        shown = ", ".join(literal_to_sql(Literal(v, data_type)) for v in expr.values[:20])
        more = f", ... {len(expr.values) - 20} more" if len(expr.values) > 20 else ""
        return f"{_operand(expr.child, depth)} IN ({shown}{more})"
    if isinstance(expr, Like):
        return f"{_operand(expr.child, depth)} LIKE {_quote(like_pattern(expr.parts))}"
    if isinstance(expr, IsNull):
        return f"{_operand(expr.child, depth)} IS NULL"
    if isinstance(expr, Not):
        if isinstance(expr.child, IsNull):
            return f"{_operand(expr.child.child, depth)} IS NOT NULL"
        return f"NOT {_operand(expr.child, depth)}"
    if isinstance(expr, Call):
        return _call_sql(expr, depth)
    if isinstance(expr, Case):
        branches = " ".join(f"WHEN {_sql(test, depth)} THEN {_sql(value, depth)}" for test, value in expr.branches)
        return f"CASE {branches} ELSE {_sql(expr.otherwise, depth)} END"
    if isinstance(expr, Coalesce):
        return f"COALESCE({', '.join(_sql(child, depth) for child in expr.children)})"
    word = " AND " if isinstance(expr, And) else " OR "
    return word.join(_operand(child, depth) for child in expr.children)


def _call_sql(call: Call, depth: int) -> str:
    if call.function in ("cast", "try_cast"):
        return f"{call.function.upper()}({_sql(call.args[0], depth)} AS {display(call.data_type).upper()})"
    if len(call.args) == 2 and not call.function[0].isalpha():
        return f" {call.function} ".join(_operand(arg, depth) for arg in call.args)
    return f"{call.function}({', '.join([*map(str, call.options), *(_sql(arg, depth) for arg in call.args)])})"


def _operand(expr: Expr, depth: int) -> str:
    text = _sql(expr, depth)
    named = isinstance(expr, Call) and expr.function[0].isalpha()
    plain = named or isinstance(expr, (Column, Literal, Cast, IsNull, Case, Coalesce))
    return text if plain or (isinstance(expr, Not) and isinstance(expr.child, IsNull)) else f"({text})"


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r")
    return f"'{escaped}'"


def like_pattern(parts: tuple[str | Wildcard, ...]) -> str:
    """The parts of a LIKE as the text of a pattern, escaped by a backslash."""
    texts = []
    for part in parts:
        if isinstance(part, Wildcard):
            texts.append(part.symbol)
        else:
            texts.append(part.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_"))
    return "".join(texts)


def literal_to_sql(literal: Literal) -> str:
    """One constant as SQL; dates and timestamps readable, timestamps in UTC."""
    from delta_pyds.protocol.temporal import show_date, show_timestamp

    value, data_type = literal.value, literal.data_type
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, bytes):
        return f"X'{value.hex().upper()}'"
    if isinstance(value, str):
        return _quote(value)
    if isinstance(data_type, DecimalType):
        return f"{value:f}"
    if isinstance(data_type, PrimitiveType) and isinstance(value, int):
        if data_type.name == "date":
            return f"DATE '{show_date(value)}'"
        if data_type.name == "timestamp":
            return f"TIMESTAMP '{show_timestamp(value)}Z'"
        if data_type.name == "timestamp_ntz":
            return f"TIMESTAMP_NTZ '{show_timestamp(value)}'"
    return str(value)
