"""Operators and functions of numbers: their types by Spark's rules."""

from __future__ import annotations

from delta_pyds.errors import ExpressionError
from delta_pyds.expr.coercion import arithmetic_types, branch_type, decimal_result
from delta_pyds.expr.functions.session_context import (
    Registry,
    SessionContext,
    constant_argument,
    decimal_of,
    double_argument,
    expect_count,
    refuse_argument,
)
from delta_pyds.expr.nodes import Expr, Literal, to_sql, type_of
from delta_pyds.expr.types import is_floating, is_integral, is_numeric
from delta_pyds.protocol.schema import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    DataType,
    DecimalType,
)

OPERATORS = Registry()
NUMERIC_FUNCTIONS = Registry()
_DATETIME = (DATE, TIMESTAMP, TIMESTAMP_NTZ)


@OPERATORS.function("+", "-", "*", "/", "%", "div", counts=(2,))
@NUMERIC_FUNCTIONS.function("mod", "pmod", counts=(2,))
def arithmetic(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    left, right = args
    op = {"mod": "%", "pmod": "%"}.get(name, name)
    if name in ("+", "-") and any(type_of(arg) in _DATETIME for arg in args):
        return _dated(context, name, left, right)
    left, right = _texts_as_numbers(context, left, right), _texts_as_numbers(context, right, left)
    types = arithmetic_types(op, left, right, ansi=context.ansi)
    left, right = context.cast(left, types[0]), context.cast(right, types[1])
    target: DataType
    if isinstance(types[0], DecimalType):
        target = decimal_result(op, decimal_of(types[0]), decimal_of(types[1]))
    else:
        target = types[0]
    return context.call("pmod" if name == "pmod" else op, (left, right), target)


def _texts_as_numbers(context: SessionContext, side: Expr, other: Expr) -> Expr:
    """Cast a string that is combined with a number to BIGINT or DOUBLE, before both are cast to one type."""
    if type_of(side) != STRING:
        return side
    return context.cast(side, LONG if context.ansi and is_integral(type_of(other)) else DOUBLE)


# as an operator, the word is in capitals
OPERATORS["DIV"] = lambda context, _, args: arithmetic(context, "div", args)


def _dated(context: SessionContext, op: str, left: Expr, right: Expr) -> Expr:
    if type_of(left) == DATE and _is_days(right):
        return context.call("date_add" if op == "+" else "date_sub", (left, context.cast(right, INTEGER)), DATE)
    if type_of(right) == DATE and op == "+" and _is_days(left):
        return context.call("date_add", (right, context.cast(left, INTEGER)), DATE)
    raise ExpressionError(
        f"'{to_sql(left)} {op} {to_sql(right)}' is not supported: to dates, add whole days and literal intervals, "
        "to timestamps, literal intervals; use datediff for the days between dates.",
        construct=op,
    )


def _is_days(expr: Expr) -> bool:
    return is_integral(type_of(expr)) and type_of(expr) != LONG


@OPERATORS.function("negative", "positive", counts=(1,))
@NUMERIC_FUNCTIONS.function("abs", counts=(1,))
def unary(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    value = _number(context, name, args[0])
    if name == "positive":
        return value
    data_type = type_of(value)
    if isinstance(data_type, DecimalType) and data_type.precision > 34:
        raise ExpressionError(
            f"{name} of a DECIMAL of more than 34 digits is not supported, because Spark rounds it: cast it.",
            construct=name,
        )
    return context.call(name, (value,), data_type)


# negative(x) and positive(x) are functions too
NUMERIC_FUNCTIONS.update({name: OPERATORS[name] for name in ("negative", "positive")})


def _number(context: SessionContext, name: str, expr: Expr) -> Expr:
    data_type = type_of(expr)
    if data_type in (STRING, VOID):
        return context.cast(expr, DOUBLE)
    if not is_numeric(data_type):
        raise refuse_argument(name, expr, "a number")
    return expr


@NUMERIC_FUNCTIONS.function("round", "bround", counts=(1, 2))
def rounded(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    """Round whole numbers and decimals. The rounding of a double depends on how the JVM prints it."""
    digits = constant_argument(name, args[1], "number of digits") if len(args) == 2 else 0
    value, data_type = args[0], type_of(args[0])
    if not isinstance(digits, int) or isinstance(digits, bool) or not -40 <= digits <= 40:
        raise ExpressionError(f"the function {name} needs a whole number of digits up to 40.", construct=name)
    if is_floating(data_type) or data_type == STRING:
        raise ExpressionError(
            f"{name} of the floating point value '{to_sql(value)}' is not supported, because its result depends on "
            "the version of Java: use a DECIMAL.",
            construct=name,
        )
    if not is_numeric(data_type):
        raise refuse_argument(name, value, "a number")
    target = _rounded_type(data_type, digits)
    if isinstance(value, Literal) and value.value is None:
        return Literal(None, target)
    return context.call(name, (value,), target, digits)


def _rounded_type(data_type: DataType, digits: int) -> DataType:
    if not isinstance(data_type, DecimalType):
        return data_type
    whole = data_type.precision - data_type.scale + 1
    if digits < 0:
        return DecimalType(min(max(whole, -digits + 1), 38), 0)
    scale = min(data_type.scale, digits)
    return DecimalType(min(whole + scale, 38), scale)


@NUMERIC_FUNCTIONS.function("ceil", "ceiling", "floor", counts=(1,))
def whole(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    name = "ceil" if name == "ceiling" else name
    value = _number(context, name, args[0])
    data_type = type_of(value)
    if isinstance(data_type, DecimalType):
        target: DataType = DecimalType(min(data_type.precision - data_type.scale + 1, 38), 0)
        if data_type.scale == 0:
            # Spark types it one digit wider anyway
            return context.cast(value, target)
        return context.call(name, (value,), target)
    if is_integral(data_type):
        return context.cast(value, LONG)
    return context.call(name, (context.cast(value, DOUBLE),), LONG)


@NUMERIC_FUNCTIONS.function("sign", "signum", "sqrt", counts=(1,))
def of_double(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    is_text = type_of(args[0]) == STRING
    value = context.cast(args[0], DOUBLE) if is_text else double_argument(context, name, args[0])
    return context.call("sign" if name == "signum" else name, (value,), DOUBLE)


@NUMERIC_FUNCTIONS.function("isnan", counts=(1,))
def is_nan(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    value = args[0] if is_floating(type_of(args[0])) else double_argument(context, name, args[0])
    return context.call(name, (value,), BOOLEAN)


@NUMERIC_FUNCTIONS.function("nanvl", counts=(2,))
def instead_of_nan(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    values = tuple(double_argument(context, name, arg) for arg in args)
    return context.call(name, values, DOUBLE)


@NUMERIC_FUNCTIONS.function("greatest", "least")
def extreme(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    if len(args) < 2:
        expect_count(name, args, 2)
    target = branch_type(args, ansi=context.ansi, what=name.upper())
    if not (is_numeric(target) or target in (STRING, BOOLEAN, *_DATETIME)):
        raise refuse_argument(name, args[0], "numbers, strings, dates or timestamps")
    return context.call(name, [context.cast(arg, target) for arg in args], target)
