"""Logic over bound expressions: constants folded, negation moved inwards to single tests.

Invariant: ``Not`` only contains ``IsNull``, ``In``, ``Like`` or a boolean
column, so code that reads a tree does not need De Morgan's laws.
"""

from __future__ import annotations

from collections.abc import Sequence

from delta_pyds.errors import ExpressionError
from delta_pyds.expr.nodes import (
    FALSE,
    NEGATED,
    NULL,
    TRUE,
    And,
    Call,
    Case,
    Coalesce,
    Column,
    Comparison,
    Expr,
    In,
    IsNull,
    Literal,
    LiteralValue,
    Not,
    Or,
    children,
    to_sql,
    type_of,
)
from delta_pyds.expr.ordering import unwrap
from delta_pyds.expr.types import is_comparable
from delta_pyds.protocol.schema import BOOLEAN, display

# shorter chains stay as written, because they are as fast
_FOLDED_FROM = 16


def and_(parts: Sequence[Expr]) -> Expr:
    """Conjunction, flat, constants folded."""
    flat = _flat(parts, And, TRUE)
    if FALSE in flat:
        return FALSE
    return And(tuple(flat)) if len(flat) > 1 else flat[0] if flat else TRUE


def or_(parts: Sequence[Expr]) -> Expr:
    """Disjunction, flat, constants folded."""
    flat = _flat(parts, Or, FALSE)
    if TRUE in flat:
        return TRUE
    return Or(tuple(flat)) if len(flat) > 1 else flat[0] if flat else FALSE


def _flat(parts: Sequence[Expr], kind: type[And] | type[Or], neutral: Literal) -> list[Expr]:
    flat: dict[Expr, None] = {}
    for part in parts:
        require_boolean(part)
        if isinstance(part, Literal) and part.value is None:
            part = NULL
        for inner in part.children if isinstance(part, kind) else (part,):
            if inner != neutral:
                flat[inner] = None
    return fold_equalities(list(flat), kind) if len(flat) >= _FOLDED_FROM else list(flat)


def fold_equalities(parts: list[Expr], kind: type[And] | type[Or]) -> list[Expr]:
    """``a = 1 OR a = 2 ...`` as one ``IN``, and ``a <> 1 AND a <> 2 ...`` as its negation, if the chain is long.

    The result is the same for every row, including null, and as fast for a hundred thousand constants as for one.
    """
    op = "=" if kind is Or else "<>"
    groups: dict[Expr, dict[LiteralValue, None]] = {}
    for part in parts:
        if isinstance(part, Comparison) and part.op == op and _is_plain(part.right):
            assert isinstance(part.right, Literal)
            groups.setdefault(part.left, {})[part.right.value] = None
    result: list[Expr] = []
    done: set[Expr] = set()
    for part in parts:
        left = part.left if isinstance(part, Comparison) and part.op == op and _is_plain(part.right) else None
        if left is None or len(groups[left]) < _FOLDED_FROM:
            result.append(part)
        elif left not in done:
            done.add(left)
            among = In(left, tuple(groups[left]))
            result.append(among if kind is Or else Not(among))
    return result


def _is_plain(expr: Expr) -> bool:
    """Whether it is a constant other than null and NaN."""
    return isinstance(expr, Literal) and expr.value is not None and expr.value == expr.value


def not_(expr: Expr) -> Expr:
    """Negation, moved inwards as far as possible; null stays null."""
    require_boolean(expr)
    if isinstance(expr, Literal):
        return NULL if expr.value is None else FALSE if expr.value else TRUE
    if isinstance(expr, Not):
        return expr.child
    if isinstance(expr, Comparison):
        return Comparison(NEGATED[expr.op], expr.left, expr.right)
    if isinstance(expr, And):
        return or_([not_(child) for child in expr.children])
    if isinstance(expr, Or):
        return and_([not_(child) for child in expr.children])
    return Not(expr)


def require_boolean(expr: Expr) -> None:
    if type_of(expr) != BOOLEAN and not (isinstance(expr, Literal) and expr.value is None):
        raise ExpressionError(
            f"'{to_sql(expr)}' is of type {display(type_of(expr)).upper()}, but a BOOLEAN is needed.",
            code="DATATYPE_MISMATCH",
        )


def is_null(expr: Expr) -> Expr:
    """``expr IS NULL``, expressed by the columns if that is equivalent."""
    if isinstance(expr, Literal):
        return TRUE if expr.value is None else FALSE
    if isinstance(expr, IsNull):
        return FALSE
    if isinstance(expr, (Column, And, Or, Call, Case, Coalesce)):
        return IsNull(expr)
    # all others are null if and only if one of their parts is null
    return or_([is_null(child) for child in children(expr)])


def always(expr: Expr) -> Expr:
    """True for every value, null for null."""
    return or_([not_(is_null(expr)), NULL])


def never(expr: Expr) -> Expr:
    """False for every value, null for null."""
    return and_([is_null(expr), NULL])


def as_filter(expr: Expr) -> Expr:
    """The same filter, shorter: a filter treats null like false."""
    if isinstance(expr, Literal) and expr.value is None:
        return FALSE
    if isinstance(expr, And):
        return and_([as_filter(child) for child in expr.children])
    if isinstance(expr, Or):
        return or_([as_filter(child) for child in expr.children])
    return expr


def require_comparable(*sides: Expr) -> None:
    """Refuse types without an exact order here, and collations."""
    for side in sides:
        data_type = type_of(side)
        if not is_comparable(data_type):
            raise ExpressionError(
                f"'{to_sql(side)}' is of type {display(data_type).upper()}, which cannot be compared in a predicate; "
                "only IS NULL and IS NOT NULL work on it."
            )
        refuse_collation(unwrap(side))


def refuse_collation(expr: Expr) -> None:
    """Refuse to compare a column with a collation."""
    if isinstance(expr, Column) and expr.collated:
        raise ExpressionError(
            f"column '{to_sql(expr)}' has a collation, and comparing by a collation is not supported.",
            column=to_sql(expr),
        )
