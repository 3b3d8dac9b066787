"""The text of literal intervals: ``INTERVAL 1 DAY``, ``INTERVAL '2' HOURS 30 MINUTES``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from delta_pyds.errors import ExpressionError

_MICROS = {"HOUR": 3_600_000_000, "MINUTE": 60_000_000, "SECOND": 1_000_000, "MILLISECOND": 1_000, "MICROSECOND": 1}
_DAYS = {"DAY": 1, "WEEK": 7}
_MONTHS = {"MONTH": 1, "YEAR": 12}
_WHOLE = re.compile(r"-?\d{1,9}")


def read_interval(parts: Sequence[tuple[str, str]]) -> tuple[int, int, int, bool, bool]:
    """Months, days and microseconds of ``(number, unit)`` pairs; whether it has months, and a time of day.

    Raises: ExpressionError for a unit or a number that is not supported.
    """
    months = days = micros = 0
    has_months = has_time = False
    for number, written in parts:
        unit = written.upper()
        unit = unit[:-1] if unit.endswith("S") else unit
        if not _WHOLE.fullmatch(number):
            raise ExpressionError(f"the interval '{number} {written}' is not supported: write a whole number.")
        count = int(number)
        if unit in _MONTHS:
            months += count * _MONTHS[unit]
            has_months = True
        elif unit in _DAYS:
            days += count * _DAYS[unit]
        elif unit in _MICROS:
            micros += count * _MICROS[unit]
            has_time = True
        else:
            raise ExpressionError(f"the unit {written.upper()} of an interval is not supported.")
    if not parts:
        raise ExpressionError("an interval needs a number and a unit.", code="PARSE_SYNTAX_ERROR")
    return months, days, micros, has_months, has_time
