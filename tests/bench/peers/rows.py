"""Are the rows of two engines the same? In order where a query orders them; floating point numbers nearly."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from decimal import Decimal

Row = Sequence[object]
_RELATIVE = 1e-9
# values that are rounded to a scale, or summed from such
_ABSOLUTE = 1e-6


def first_difference(left: Sequence[Row], right: Sequence[Row], *, ordered: bool, relative: float = _RELATIVE) -> str:
    """The first two rows that differ, or nothing. ``ordered``: rows must also come in one order."""
    if len(left) != len(right):
        return f"{len(left)} rows and {len(right)}"
    if not ordered:
        left, right = sorted(left, key=_sort_key), sorted(right, key=_sort_key)
    for number, (one, other) in enumerate(zip(left, right, strict=True)):
        if len(one) != len(other) or not all(_alike(a, b, relative) for a, b in zip(one, other, strict=True)):
            return f"row {number}: {list(one)!r} and {list(other)!r}"
    return ""


def _alike(left: object, right: object, relative: float) -> bool:
    a, b = _plain(left), _plain(right)
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=relative, abs_tol=_ABSOLUTE) or (math.isnan(a) and math.isnan(b))
    return a == b


def _plain(value: object) -> object:
    """Engines return one number as different types, and JSON has neither decimals nor dates."""
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        return float(value)
    return value.isoformat() if isinstance(value, (dt.date, dt.datetime)) else value


def _sort_key(row: Row) -> list[tuple[bool, str]]:
    """Numbers sort by few digits, so that those which are nearly equal take the same place."""
    plain = map(_plain, row)
    return [(v is None, f"{v:.6e}" if isinstance(v, float) else str(v)) for v in plain]
