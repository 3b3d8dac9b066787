"""Casts of constants as in Spark 4 with ANSI mode, folded before evaluation."""

from __future__ import annotations

import math
import re
import struct
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal
from fractions import Fraction

from delta_pyds.errors import ExpressionError
from delta_pyds.expr.nodes import Literal, LiteralValue
from delta_pyds.expr.types import INTEGER_BITS, is_floating, is_integral, is_numeric
from delta_pyds.protocol.schema import (
    BINARY,
    BOOLEAN,
    DATE,
    FLOAT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    DataType,
    DecimalType,
    PrimitiveType,
    display,
)
from delta_pyds.protocol.temporal import DAY_MICROS, TimeZone, parse_date, parse_timestamp

EXACT = Context(prec=1000)
# longer than the text of any value that is not a string, with surrounding spaces
_MAX_TEXT = 4_000
_BLANK = " \t\n\r\f\v"
_WHOLE = re.compile(r"[+-]?\d+")
_NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,6})?)([dDfF]?)")
_SPECIAL = {"nan": math.nan, "inf": math.inf, "+inf": math.inf, "-inf": -math.inf}
_SPECIAL |= {"infinity": math.inf, "+infinity": math.inf, "-infinity": -math.inf}
_TRUE = frozenset(("t", "true", "y", "yes", "1"))
_FALSE = frozenset(("f", "false", "n", "no", "0"))


def cast_literal(literal: Literal, target: DataType, zone: TimeZone) -> Literal:
    """The constant in another type.

    Raises: ExpressionError: CAST_INVALID_INPUT and CAST_OVERFLOW as Spark, or
        DELTA_UNSUPPORTED_EXPRESSION for a pair of types that is not supported.
    """
    if literal.value is None or literal.data_type == VOID:
        return Literal(None, target)
    if literal.data_type == target:
        return literal
    return Literal(_cast(literal.value, literal.data_type, target, zone), target)


def _cast(value: LiteralValue, source: DataType, target: DataType, zone: TimeZone) -> LiteralValue:
    if source == STRING and isinstance(value, str):
        try:
            return _from_text(value, target, zone)
        except (ValueError, ArithmeticError):
            shown = value if len(value) <= 200 else f"{value[:200]}... ({len(value)} characters)"
            raise ExpressionError(
                f"the text '{shown}' is not a supported form of {display(target).upper()}: "
                f"correct it, or compare with a value of type {display(target).upper()}.",
                code="CAST_INVALID_INPUT",
            ) from None
    if isinstance(value, bool):
        if target == STRING:
            return "true" if value else "false"
    elif isinstance(value, (int, float, Decimal)) and is_numeric(source) and is_numeric(target):
        return _from_number(value, source, target)
    elif isinstance(value, int):
        if source == DATE and target == TIMESTAMP:
            return zone.start_of_day(value)
        if source == DATE and target == TIMESTAMP_NTZ:
            return value * DAY_MICROS
        if source == TIMESTAMP_NTZ and target == TIMESTAMP:
            return zone.wall_to_instant(value)
        if source == TIMESTAMP and target == TIMESTAMP_NTZ:
            return zone.instant_to_wall(value)
        if source == TIMESTAMP and target == DATE:
            return zone.instant_to_wall(value) // DAY_MICROS
        if source == TIMESTAMP_NTZ and target == DATE:
            return value // DAY_MICROS
        if is_integral(source) and target == STRING:
            return str(value)
    raise _unsupported(source, target)


def _from_text(text: str, target: DataType, zone: TimeZone) -> LiteralValue:
    if target == BINARY:
        return text.encode("utf-8")
    if len(text) > _MAX_TEXT:
        raise ValueError(text)
    if target == DATE:
        return parse_date(text)
    if target == TIMESTAMP:
        return parse_timestamp(text, zone)
    if target == TIMESTAMP_NTZ:
        return parse_timestamp(text, None)
    trimmed = text.strip(_BLANK)
    if target == BOOLEAN:
        lowered = trimmed.lower()
        if lowered not in _TRUE and lowered not in _FALSE:
            raise ValueError(text)
        return lowered in _TRUE
    if is_integral(target):
        if not trimmed.isascii() or not _WHOLE.fullmatch(trimmed):
            raise ValueError(text)
        return _fit_integer(int(trimmed), target)
    if is_floating(target) and trimmed.lower() in _SPECIAL:
        return _SPECIAL[trimmed.lower()]
    match = _NUMBER.fullmatch(trimmed)
    if not match or not trimmed.isascii() or (match[2] and isinstance(target, DecimalType)):
        raise ValueError(text)
    if target == FLOAT:
        return nearest_float(EXACT.create_decimal(match[1]))
    if is_floating(target):
        return float(match[1])
    if isinstance(target, DecimalType):
        return fit_decimal(EXACT.create_decimal(match[1]), target)
    raise ValueError(text)


def _from_number(value: int | float | Decimal, source: DataType, target: DataType) -> LiteralValue:
    if is_floating(target):
        if isinstance(value, float) and not math.isfinite(value):
            return value
        return nearest_float(value) if target == FLOAT else float(value)
    if isinstance(value, float):
        if not is_integral(target):
            raise _unsupported(source, target)
        if not math.isfinite(value):
            raise _overflow(value, target)
        return _fit_integer(int(value), target)
    if isinstance(target, DecimalType):
        return fit_decimal(EXACT.create_decimal(value), target)
    if isinstance(value, Decimal):
        value = int(value.to_integral_value(ROUND_DOWN, EXACT))
    return _fit_integer(value, target)


def _unsupported(source: DataType, target: DataType) -> ExpressionError:
    return ExpressionError(
        f"CAST of a {display(source).upper()} to {display(target).upper()} is not supported: write the value as a "
        f"{display(target).upper()} literal."
    )


def _overflow(value: object, target: DataType) -> ExpressionError:
    return ExpressionError(f"the value {value} is out of range for {display(target).upper()}.", code="CAST_OVERFLOW")


def _fit_integer(value: int, target: DataType) -> int:
    assert isinstance(target, PrimitiveType)
    limit = 1 << (INTEGER_BITS[target.name] - 1)
    if not -limit <= value < limit:
        raise _overflow(value, target)
    return value


def fit_decimal(value: Decimal, target: DecimalType) -> Decimal:
    """Round half up to the scale. Raises: ExpressionError (CAST_OVERFLOW) beyond the precision."""
    if value and value.adjusted() >= target.precision:
        raise _overflow(f"{value:.10E}", target)
    rounded = value.quantize(Decimal(1).scaleb(-target.scale), ROUND_HALF_UP, EXACT)
    if rounded and rounded.adjusted() >= target.precision - target.scale:
        raise _overflow(value, target)
    return rounded if rounded else abs(rounded)  # no negative zero


def nearest_float(value: int | float | Decimal) -> float:
    """The 32-bit float nearest to a number, ties to even; infinity beyond the largest float."""
    if isinstance(value, Decimal) and value and not -100 < value.adjusted() < 100:
        # such numbers are far out of range, and fractions of them would have as many digits
        return math.copysign(0.0 if value.adjusted() < 0 else math.inf, value)
    try:
        guess = float(struct.unpack("<f", struct.pack("<f", float(value)))[0])
    except OverflowError:
        # a number rounds up to infinity from half a step beyond the largest float
        largest = float.fromhex("0x1.fffffep127")
        beyond = abs(Fraction(value)) >= Fraction(largest) + Fraction(2) ** 103
        return math.copysign(math.inf if beyond else largest, float(value))
    if math.isinf(guess) or isinstance(value, float):
        return guess
    # float(value) has already rounded once, so the neighbours are compared too
    bits = struct.unpack("<i", struct.pack("<f", guess))[0]
    best, exact = guess, Fraction(value)
    for near in (bits - 1, bits + 1):
        if not 0 <= near & 0x7FFFFFFF < 0x7F800000:
            continue
        other = float(struct.unpack("<f", struct.pack("<I", near & 0xFFFFFFFF))[0])
        distance, best_distance = abs(Fraction(other) - exact), abs(Fraction(best) - exact)
        if distance < best_distance or (distance == best_distance and near % 2 == 0):
            best = other
    return best
