"""Type coercion in general expressions, by Spark's ANSI rules or its legacy rules."""

from __future__ import annotations

from collections.abc import Sequence

from delta_pyds.errors import ExpressionError
from delta_pyds.expr.nodes import Expr, Literal, to_sql, type_of
from delta_pyds.expr.types import (
    common_type,
    decimal_for,
    is_comparable,
    is_floating,
    is_integral,
    is_numeric,
    wider_decimal,
)
from delta_pyds.protocol.schema import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    VOID,
    DataType,
    DecimalType,
    PrimitiveType,
    display,
)

_DATETIME = (DATE, TIMESTAMP, TIMESTAMP_NTZ)


def require_operands(what: str, *sides: Expr) -> None:
    """Reject operand types that cannot be evaluated here, such as collated strings."""
    for side in sides:
        if not is_comparable(type_of(side)):
            raise ExpressionError(
                f"{what} on '{to_sql(side)}' of type {display(type_of(side)).upper()} is not supported.", construct=what
            )


def comparison_type(left: Expr, right: Expr, *, ansi: bool) -> DataType:
    """The type that ``left op right`` compares in. Raises: ExpressionError (DATATYPE_MISMATCH)."""
    require_operands("comparing", left, right)
    mine, other = operand_type(left, right), operand_type(right, left)
    if ansi or STRING not in (mine, other) or mine == other:
        return common_type(mine, other)
    value = other if mine == STRING else mine
    if isinstance(value, DecimalType):
        return DOUBLE
    if value == VOID:
        return STRING
    if value == BINARY:
        raise _mismatch(left, right)
    return value


def branch_type(values: Sequence[Expr], *, ansi: bool, what: str) -> DataType:
    """The type of CASE, COALESCE, IN and others that return or compare one of several values."""
    types = [type_of(value) for value in values]
    first = next((t for t in types if t != VOID), VOID)
    if all(t in (first, VOID) for t in types):
        return first
    ordered = [t for t in types if t == STRING] + [t for t in types if t != STRING]
    found = ordered[0]
    for value in ordered[1:]:
        both = _branch_pair(found, value, ansi)
        if both is None:
            shown = ", ".join(sorted({display(t).upper() for t in types}))
            raise ExpressionError(
                f"{what} of values of the types {shown} is not supported: cast them to one type.",
                code="DATATYPE_MISMATCH.DATA_DIFF_TYPES",
            )
        found = both
    return found


def _branch_pair(left: DataType, right: DataType, ansi: bool) -> DataType | None:
    if left == right or right == VOID:
        return left
    if left == VOID:
        return right
    if not (is_comparable(left) and is_comparable(right)):
        return None
    if STRING in (left, right) and not ansi:
        other = right if left == STRING else left
        return None if other in (BINARY, BOOLEAN) or is_floating(other) else STRING
    if FLOAT in (left, right) and not ansi and (is_integral(left) or is_integral(right)):
        return FLOAT
    try:
        return common_type(left, right)
    except ExpressionError:
        return None


def arithmetic_types(op: str, left: Expr, right: Expr, *, ansi: bool) -> tuple[DataType, DataType]:
    """The types that the two sides of ``+ - * / % div`` are cast to; neither is a string.

    Decimals stay as they are; whole numbers combined with them become decimals.
    """
    mine, other = type_of(left), type_of(right)
    if VOID in (mine, other):
        value = other if mine == VOID else mine
        if value == VOID:
            value = DOUBLE
        mine = other = value
    if not (is_numeric(mine) and is_numeric(other)):
        raise _mismatch(left, right, op)
    if op == "div":
        if isinstance(mine, DecimalType) or isinstance(other, DecimalType) or is_floating(mine) or is_floating(other):
            raise ExpressionError("'div' is supported on whole numbers only.", construct="div")
        return LONG, LONG
    decimals = isinstance(mine, DecimalType) or isinstance(other, DecimalType)
    if decimals and not (is_floating(mine) or is_floating(other)):
        return _as_decimal(left, mine), _as_decimal(right, other)
    if decimals or op == "/":
        return DOUBLE, DOUBLE
    if mine == other:
        return mine, other
    if is_integral(mine) and is_integral(other):
        both = common_type(mine, other)
        return both, both
    if FLOAT in (mine, other) and DOUBLE not in (mine, other) and not ansi:
        return FLOAT, FLOAT
    return DOUBLE, DOUBLE


def _as_decimal(side: Expr, data_type: DataType) -> DataType:
    if isinstance(data_type, DecimalType):
        return data_type
    if isinstance(side, Literal) and isinstance(side.value, int) and is_integral(side.data_type):
        return DecimalType(len(str(abs(side.value))), 0)
    return decimal_for(data_type)


def decimal_result(op: str, left: DecimalType, right: DecimalType) -> DecimalType:
    """The type of decimal arithmetic; with more than 38 digits it loses fractional digits."""
    p1, s1, p2, s2 = left.precision, left.scale, right.precision, right.scale
    whole = max(p1 - s1, p2 - s2)
    if op in ("+", "-"):
        scale = max(s1, s2)
        return _adjusted(whole + scale + 1, scale)
    if op == "*":
        return _adjusted(p1 + p2 + 1, s1 + s2)
    if op == "/":
        scale = max(6, s1 + p2 + 1)
        return _adjusted(p1 - s1 + s2 + scale, scale)
    scale = max(s1, s2)
    return _adjusted(min(p1 - s1, p2 - s2) + scale if op == "%" else wider_decimal(left, right).precision, scale)


def _adjusted(precision: int, scale: int) -> DecimalType:
    if precision <= 38:
        return DecimalType(precision, scale)
    whole = precision - scale
    return DecimalType(38, max(38 - whole, min(scale, 6)))


def operand_type(side: Expr, other: Expr) -> DataType:
    """The type of an operand. As in Spark, a literal whole number beside a decimal is a decimal of its digits."""
    if isinstance(type_of(other), DecimalType) and isinstance(side, Literal) and is_integral(side.data_type):
        return _as_decimal(side, side.data_type)
    return type_of(side)


def _mismatch(left: Expr, right: Expr, op: str = "") -> ExpressionError:
    shown = f"'{to_sql(left)}' of type {display(type_of(left)).upper()} and '{to_sql(right)}' of type "
    what = f"{op} of " if op else "comparing "
    return ExpressionError(
        f"{what}{shown}{display(type_of(right)).upper()} is not supported: cast one of them.",
        code="DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES",
    )


def castable(source: DataType, target: DataType) -> bool:
    """Whether CAST between the types is supported; values may still fail."""
    if source in (target, VOID):
        return True
    if not (isinstance(source, (PrimitiveType, DecimalType)) and isinstance(target, (PrimitiveType, DecimalType))):
        return False
    if VARIANT in (source, target) or target == VOID:
        return False
    if source == STRING:
        return True
    if target == STRING:
        # the JVM's text of a floating point number depends on its version
        return not is_floating(source)
    if is_numeric(source) and is_numeric(target):
        return not (is_floating(source) and isinstance(target, DecimalType))
    if BOOLEAN in (source, target):
        return is_numeric(source) or is_numeric(target)
    if source in _DATETIME and target in _DATETIME:
        return True
    # Spark also casts whole numbers to BINARY, but only without ANSI rules
    return (source == TIMESTAMP and is_integral(target)) or (is_integral(source) and target == TIMESTAMP)
