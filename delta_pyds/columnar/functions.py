"""Evaluate functions, CASE and COALESCE over Arrow arrays, only where Spark evaluates them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.columnar.arithmetic import ARITHMETIC
from delta_pyds.columnar.comparison import compare, is_in
from delta_pyds.columnar.containers import CONTAINERS
from delta_pyds.columnar.conversions import CONVERSIONS
from delta_pyds.columnar.dates import DATES
from delta_pyds.columnar.kernel import Kernel
from delta_pyds.columnar.rows import Rows
from delta_pyds.columnar.text import TEXTS
from delta_pyds.expr.nodes import Call, Case, Coalesce, Expr, Literal, LiteralValue, may_fail, type_of

# evaluates a part of an expression: a call's argument, a branch of a CASE
ValueOf = Callable[[Expr, Rows], Any]

_KERNELS: dict[str, Kernel] = {**ARITHMETIC, **CONVERSIONS, **TEXTS, **DATES, **CONTAINERS}
# Functions that evaluate all arguments. Others evaluate an argument only where the previous ones are not null.
_EAGER = frozenset(("concat", "concat_ws", "greatest", "least", "<=>", "array", "map", "named_struct", "make_date"))
# Spark evaluates the divisor first
_RIGHT_FIRST = frozenset(("/", "%", "div", "pmod"))


def compute(expr: Expr, rows: Rows, value_of: ValueOf) -> Any:
    """The values of a ``Call``, ``Case`` or ``Coalesce``. ``value_of`` evaluates their parts (``evaluate.value_of``).

    Raises: ExpressionError with Spark's code if a live row fails in ANSI mode.
    """
    if isinstance(expr, Case):
        return _case(expr, rows, value_of)
    if isinstance(expr, Coalesce):
        return _coalesce(expr, rows, value_of)
    assert isinstance(expr, Call), expr
    if expr.function == "in":
        return _in(expr.args, rows, value_of)
    if expr.function == "nanvl":
        return _nanvl(expr.args, rows, value_of)
    args = _arguments(expr, rows, value_of)
    if expr.function == "<=>":
        both_null = pc.and_(*map(pc.is_null, args))
        return pc.or_(pc.fill_null(compare("=", *args), False), both_null)
    kernel = _KERNELS[expr.function]
    if all(isinstance(arg, pa.Scalar) for arg in args):
        # kernels need at least one array
        return kernel(expr, [pa.repeat(arg, 1) for arg in args], rows)[0]
    return kernel(expr, args, rows)


def _arguments(call: Call, rows: Rows, value_of: ValueOf) -> list[Any]:
    order = list(range(len(call.args)))
    if call.function in _RIGHT_FIRST:
        order.reverse()
    values: dict[int, Any] = {}
    for number, index in enumerate(order):
        arg = call.args[index]
        where = rows
        if number and call.function not in _EAGER and may_fail(arg):
            for before in order[:number]:
                where = where.only(pc.is_valid(values[before]))
        values[index] = value_of(arg, where)
    return [values[index] for index in range(len(call.args))]


def _case(expr: Case, rows: Rows, value_of: ValueOf) -> Any:
    pieces: list[tuple[Any, Any]] = []
    rest = rows
    narrow = any(may_fail(part) for branch in expr.branches for part in branch) or may_fail(expr.otherwise)
    for test, value in expr.branches:
        taken = pc.fill_null(value_of(test, rest), False)
        pieces.append((taken, value_of(value, rest.only(taken) if narrow else rest)))
        rest = rest.only(pc.invert(taken)) if narrow else rest
    result = value_of(expr.otherwise, rest)
    for taken, values in reversed(pieces):
        if isinstance(taken, pa.Scalar):
            result = values if taken.as_py() else result
        else:
            result = pc.if_else(taken, values, result)
    return result


def _coalesce(expr: Coalesce, rows: Rows, value_of: ValueOf) -> Any:
    result = value_of(expr.children[0], rows)
    for child in expr.children[1:]:
        if isinstance(result, pa.Scalar):
            if result.is_valid:
                return result
            result = value_of(child, rows)
        else:
            rest = rows.only(pc.is_null(result)) if may_fail(child) else rows
            result = pc.coalesce(result, value_of(child, rest))
    return result


def _in(args: tuple[Expr, ...], rows: Rows, value_of: ValueOf) -> Any:
    value = value_of(args[0], rows)
    constants: list[LiteralValue] = [
        arg.value for arg in args[1:] if isinstance(arg, Literal) and arg.value == arg.value
    ]
    others = list(args[1:])
    result: Any = pc.and_(pc.is_null(value), False)
    result = pc.if_else(pc.is_valid(value), result, pa.scalar(None, pa.bool_()))
    if not isinstance(value, pa.Scalar) and not any(may_fail(arg) for arg in others):
        known = tuple(dict.fromkeys(c for c in constants if c is not None))
        others = [arg for arg in others if not (isinstance(arg, Literal) and arg.value in known)]
        if known:
            result = is_in(value, known, type_of(args[0]))
    for arg in others:
        where = rows.only(pc.fill_null(pc.invert(result), pc.is_valid(value))) if may_fail(arg) else rows
        result = pc.or_kleene(result, compare("=", value, value_of(arg, where)))
    return result


def _nanvl(args: tuple[Expr, ...], rows: Rows, value_of: ValueOf) -> Any:
    left = value_of(args[0], rows)
    is_nan = pc.fill_null(pc.is_nan(left), False)
    return pc.if_else(is_nan, value_of(args[1], rows.only(is_nan)), left)
