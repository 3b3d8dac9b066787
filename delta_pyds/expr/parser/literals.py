"""Number literals: their types by digits and suffix."""

from __future__ import annotations

import re
from decimal import Decimal

from delta_pyds.errors import ExpressionError
from delta_pyds.expr.casts import nearest_float
from delta_pyds.expr.nodes import Literal
from delta_pyds.expr.parser.lexer import Token
from delta_pyds.expr.parser.syntax import ConstantList
from delta_pyds.expr.types import INTEGER_BITS
from delta_pyds.protocol.schema import (
    BYTE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    DecimalType,
    PrimitiveType,
    display,
)

# more digits than a number of any type can use, and few enough to convert at once
MAX_DIGITS = 2_000
_EXPONENT = re.compile(r"[^eE]*(?:[eE][+-]?0*[0-9]{1,4})?")


def number_literal(token: Token, *, negative: bool) -> Literal:
    """A number token as a constant: whole numbers as int, bigint or decimal, by their size.

    Raises: ExpressionError (INVALID_NUMERIC_LITERAL_RANGE).
    """
    digits, suffix = str(token.value), token.suffix
    if len(digits) > MAX_DIGITS or not _EXPONENT.fullmatch(digits):
        raise _out_of_range(
            token, {"L": "bigint", "S": "smallint", "Y": "tinyint", "F": "float", "D": "double"}.get(suffix, "decimal")
        )
    if negative:
        digits = "-" + digits
    if suffix in ("L", "S", "Y") or (not suffix and digits.lstrip("-").isdigit()):
        return _whole_number(int(digits), {"L": LONG, "S": SHORT, "Y": BYTE}.get(suffix), token)
    if suffix == "F":
        return _floating(nearest_float(Decimal(digits)), FLOAT, token)
    if suffix == "D" or (not suffix and "e" in digits.lower()):
        return _floating(float(digits), DOUBLE, token)
    return _decimal(Decimal(digits), token)


def list_literals(token: Token) -> list[ConstantList]:
    """The values of a list of plain numbers or plain strings, by their types."""
    if isinstance(token.values[0], str):
        return [ConstantList(token.values, STRING)]
    if isinstance(token.values[0], float):
        return [ConstantList(tuple([v for v in token.values if isinstance(v, float)]), DOUBLE)]
    limit = 1 << (INTEGER_BITS[INTEGER.name] - 1)
    whole = [v for v in token.values if isinstance(v, int)]
    small = tuple([v for v in whole if -limit <= v < limit])
    large = tuple([v for v in whole if not -limit <= v < limit]) if len(small) < len(whole) else ()
    lists = [ConstantList(values, kind) for values, kind in ((small, INTEGER), (large, LONG)) if values]
    return lists if len(whole) == len(token.values) else [*lists, *_decimal_lists(token)]


def _decimal_lists(token: Token) -> list[ConstantList]:
    """Decimals, grouped by the type that each has as a literal."""
    groups: dict[tuple[int, int], list[Decimal]] = {}
    for value in token.values:
        if isinstance(value, Decimal):
            _, digits, exponent = value.as_tuple()
            assert isinstance(exponent, int)
            key = max(len(digits), -exponent), -exponent
            # no negative zero
            groups.setdefault(key, []).append(value or abs(value))
    return [ConstantList(tuple(values), DecimalType(*key)) for key, values in groups.items()]


def _whole_number(value: int, data_type: PrimitiveType | None, token: Token) -> Literal:
    for candidate in (INTEGER, LONG) if data_type is None else (data_type,):
        limit = 1 << (INTEGER_BITS[candidate.name] - 1)
        if -limit <= value < limit:
            return Literal(value, candidate)
    if data_type is None:
        return _decimal(Decimal(value), token)
    raise _out_of_range(token, display(data_type))


def _floating(value: float, data_type: PrimitiveType, token: Token) -> Literal:
    if value in (float("inf"), float("-inf")):
        raise _out_of_range(token, data_type.name)
    return Literal(value, data_type)


def _decimal(value: Decimal, token: Token) -> Literal:
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    if exponent > 38:
        raise _out_of_range(token, "decimal")
    if exponent > 0:
        digits, exponent = digits + (0,) * exponent, 0
    significant = len("".join(map(str, digits)).lstrip("0")) or 1
    if max(significant, -exponent) > 38:
        raise _out_of_range(token, "decimal")
    plain = Decimal((value.as_tuple().sign, digits, exponent))
    return Literal(plain if plain else abs(plain), DecimalType(max(significant, -exponent), -exponent))


def _out_of_range(token: Token, name: str) -> ExpressionError:
    shown = token.text if len(token.text) <= 60 else f"{token.text[:50]}... ({len(token.text)} characters)"
    return ExpressionError(
        f"the number {shown} at position {token.start} is out of range for {name.upper()}.",
        code="INVALID_NUMERIC_LITERAL_RANGE",
        position=token.start,
    )
