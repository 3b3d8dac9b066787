"""Comparisons in the column's own values, by the position of the constant among them."""

from __future__ import annotations

from delta_pyds.expr.logic import always, and_, never, not_, or_
from delta_pyds.expr.nodes import Comparison, Expr, Literal, LiteralValue, type_of
from delta_pyds.expr.ordering import Cut
from delta_pyds.expr.types import is_floating
from delta_pyds.protocol.schema import DataType


def compare_boolean(op: str, expr: Expr, constant: bool) -> Expr:
    """``expr op constant`` over booleans; false is less than true."""
    if op in ("=", "<>"):
        return expr if (op == "=") == constant else not_(expr)
    if op in ("<", ">="):
        below = not_(expr) if constant else never(expr)
        return below if op == "<" else not_(below) if constant else always(expr)
    above = never(expr) if constant else expr
    return above if op == ">" else always(expr) if constant else not_(expr)


def compare_nan(op: str, base: Expr, data_type: DataType) -> Expr:
    """``base op NaN``: NaN is above all numbers, and only floating types have it."""
    if op in ("<=", ">"):
        return always(base) if op == "<=" else never(base)
    if not is_floating(data_type):
        return always(base) if op in ("<", "<>") else never(base)
    return Comparison("<>" if op in ("<", "<>") else "=", base, Literal(float("nan"), data_type))


def place(op: str, base: Expr, where: Cut) -> Expr:
    """``base op constant`` in terms of base's own values."""
    data_type = type_of(base)

    def compared(operator: str, value: LiteralValue) -> Expr:
        return Comparison(operator, base, Literal(value, data_type))

    def below(value: LiteralValue, any_below: bool) -> Expr:
        if value is None:
            # not for floats, whose last value is infinity, so NaN needs no case here
            return always(base)
        return compared("<", value) if any_below else never(base)

    if where.single:
        return compared(op, where.lower)
    if op in ("=", "<>"):
        if not where.any_equal:
            equal = never(base)
            return equal if op == "=" else always(base)
        inside = and_([not_(below(where.lower, where.any_below)), below(where.upper, True)])
        if op == "=":
            return inside
        return or_([below(where.lower, where.any_below), not_(below(where.upper, True))])
    if op in ("<", ">="):
        cut_off = below(where.lower, where.any_below)
    else:
        cut_off = below(where.upper, where.any_below or where.any_equal)
    return cut_off if op in ("<", "<=") else not_(cut_off)
