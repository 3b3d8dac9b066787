"""Literal intervals: ``INTERVAL 1 DAY``, ``INTERVAL '2' HOURS 30 MINUTES``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from delta_pyds.errors import ExpressionError
from delta_pyds.expr.nodes import Expr, Literal, to_sql, type_of
from delta_pyds.protocol.schema import DATE, INTEGER, TIMESTAMP, TIMESTAMP_NTZ, display

if TYPE_CHECKING:
    from delta_pyds.expr.scope import Scope
    from delta_pyds.expr.syntax import Interval

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


def add_interval(scope: Scope, value: Expr, interval: Interval, sign: int) -> Expr:
    """A date or a timestamp plus or minus a literal interval, by the session's calendar and clock.

    Raises: ExpressionError for other types, and for months mixed with days or times, which Spark refuses too.
    """
    data_type = type_of(value)
    months, days, micros = sign * interval.months, sign * interval.days, sign * interval.micros
    if months and (days or micros):
        raise ExpressionError("an interval of months and days cannot be mixed.", code="PARSE_SYNTAX_ERROR")
    if data_type == DATE and not interval.has_time:
        function, count = ("add_months", months) if interval.has_months else ("date_add", days)
        return scope.call(function, (value, Literal(count, INTEGER)), DATE)
    if data_type == DATE:
        value, data_type = scope.cast(value, TIMESTAMP), TIMESTAMP
    if data_type in (TIMESTAMP, TIMESTAMP_NTZ):
        return scope.call("add_interval", (value,), data_type, months, days, micros, zoned=data_type == TIMESTAMP)
    raise ExpressionError(
        f"an interval is added to DATE, TIMESTAMP and TIMESTAMP_NTZ only, and '{to_sql(value)}' is of type "
        f"{display(data_type).upper()}: cast it.",
        construct="INTERVAL",
    )
