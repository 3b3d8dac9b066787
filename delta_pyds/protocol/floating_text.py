"""Floating point numbers as text: with the fewest digits that round-trip, and as Java and Spark write them.

Protocol: "Partition Value Serialization".
"""

from __future__ import annotations

import math
import struct
from decimal import ROUND_HALF_EVEN, ROUND_UP, Context, Decimal

# the range in which Java uses plain notation
_LEAST_PLAIN, _END_OF_PLAIN = 1e-3, 1e7
# enough for every 32-bit float
_MOST_DIGITS = 9


def to_float(value: float) -> float:
    """The closest 32-bit float."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def shortest_float(value: float) -> str:
    """The shortest text that reads back as the same 32-bit float; of several, the closest.

    ``value`` must be a 32-bit float.
    """
    if not math.isfinite(value) or value == 0:
        return repr(value)
    exact, wanted = Decimal(value), struct.pack("<f", value)
    for digits in range(1, _MOST_DIGITS):
        # above a power of two floats are farther apart than below it: perhaps only a text rounded up reads back
        for rounding in (ROUND_HALF_EVEN, ROUND_UP):
            text = str(Context(prec=digits, rounding=rounding).create_decimal(exact))
            try:
                if struct.pack("<f", float(text)) == wanted:
                    return text
            except OverflowError:
                continue  # rounded up beyond the largest float
    return f"{value:.{_MOST_DIGITS}g}"


def java_double(value: float) -> str:
    """``Double.toString`` of Java 19 and later, as in Spark's cast to string and in partition values.

    Earlier versions write a few numbers with more digits than needed (``2.0E23`` as ``1.9999999999999998E23``); these
    read back as the same number.
    """
    return _java(value, repr(value))


def java_float(value: float) -> str:
    """``Float.toString`` of Java 19 and later. ``value`` must be a 32-bit float."""
    return _java(value, shortest_float(value))


def _java(value: float, shortest: str) -> str:
    if math.isnan(value):
        return "NaN"
    sign = "-" if math.copysign(1, value) < 0 else ""
    if math.isinf(value):
        return f"{sign}Infinity"
    if value == 0:
        return f"{sign}0.0"
    _, figures, _ = Decimal(shortest).as_tuple()
    if len("".join(map(str, figures)).rstrip("0")) == 1:
        # Java writes at least two digits, and takes the closest number with two
        shortest = f"{value:.1e}"
    _, figures, exponent = Decimal(shortest).as_tuple()
    assert isinstance(exponent, int)
    digits = "".join(map(str, figures))
    point = len(digits) + exponent
    digits = digits.rstrip("0")
    if _LEAST_PLAIN <= abs(value) < _END_OF_PLAIN:
        whole = digits[:point].ljust(point, "0") if point > 0 else "0"
        fraction = digits[max(point, 0) :]
        return f"{sign}{whole}.{('0' * -point + fraction if point < 0 else fraction) or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{point - 1}"
