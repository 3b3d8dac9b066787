"""Date and timestamp functions over Arrow arrays, in the call's time zone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.columnar import calendar
from delta_pyds.columnar.kernel import Kernel, any_true, as_arrays, by_value, floor_divide, floor_remainder, null_where
from delta_pyds.columnar.rows import Rows
from delta_pyds.columnar.zones import instant_to_wall, start_of_day, wall_to_instant_near
from delta_pyds.expr.nodes import Call
from delta_pyds.protocol.temporal import DAY_MICROS

_INT_MAX = (1 << 31) - 1
_UNIT_MICROS = {
    "day": DAY_MICROS, "hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000, "millisecond": 1_000,
    "microsecond": 1,
}  # fmt: skip
_FIELDS: dict[str, Callable[[Any], Any]] = {
    "year": calendar.year, "quarter": calendar.quarter, "month": calendar.month, "day": calendar.day,
    "dayofyear": calendar.day_of_year, "weekofyear": calendar.iso_week, "weekday": calendar.weekday,
}  # fmt: skip


def wall_of(values: Any, zone: str) -> Any:
    """Timestamps as wall clock microseconds; a timestamp_ntz already stores these."""
    micros = values.cast(pa.int64())
    return instant_to_wall(micros, zone) if zone else micros


def to_date(days: Any, rows: Rows) -> Any:
    """int64 days as dates. Raises: ExpressionError (ARITHMETIC_OVERFLOW) for a live row out of range."""
    over = pc.or_(pc.greater(days, _INT_MAX), pc.less(days, -_INT_MAX - 1))
    if any_true(over):
        rows.fail(over, "ARITHMETIC_OVERFLOW", "a date is out of range")
        days = null_where(over, days)
    return days.cast(pa.int32()).cast(pa.date32())


def _days(values: Any) -> Any:
    return values.cast(pa.int32())


def _date_field(call: Call, args: list[Any], rows: Rows) -> Any:
    days = _days(args[0])
    if call.function == "dayofweek":
        # Sunday is 1
        return pc.add(floor_remainder(pc.add(days.cast(pa.int64()), 4), 7), 1).cast(pa.int32())
    return _FIELDS[call.function](days).cast(pa.int32())


def _time_field(call: Call, args: list[Any], rows: Rows) -> Any:
    in_day = floor_remainder(wall_of(args[0], call.zone), DAY_MICROS)
    count = pc.divide(in_day, _UNIT_MICROS[call.function])
    return (count if call.function == "hour" else floor_remainder(count, 60)).cast(pa.int32())


def _add_days(call: Call, args: list[Any], rows: Rows) -> Any:
    days, count = as_arrays(args)
    days = _days(days)
    # beyond the range of dates this wraps around, as in Spark
    return (pc.add if call.function == "date_add" else pc.subtract)(days, count).cast(pa.date32())


def _difference(call: Call, args: list[Any], rows: Rows) -> Any:
    end, start = as_arrays(args)
    return pc.subtract(_days(end), _days(start))


def _add_months(call: Call, args: list[Any], rows: Rows) -> Any:
    days, count = as_arrays(args)
    return to_date(calendar.plus_months(_days(days), count.cast(pa.int64())), rows)


def _last_day(call: Call, args: list[Any], rows: Rows) -> Any:
    days = _days(args[0])
    rest = pc.subtract(calendar.days_in_month(calendar.year(days), calendar.month(days)), calendar.day(days))
    return to_date(pc.add(days.cast(pa.int64()), rest), rows)


def _truncated(call: Call, args: list[Any], rows: Rows) -> Any:
    unit = str(call.options[0])
    micros = args[0].cast(pa.int64())
    to = args[0].type
    if unit in ("second", "millisecond", "microsecond"):
        return pc.subtract(micros, floor_remainder(micros, _UNIT_MICROS[unit])).cast(to)
    wall = instant_to_wall(micros, call.zone)
    if unit in _UNIT_MICROS:
        start = pc.subtract(wall, floor_remainder(wall, _UNIT_MICROS[unit]))
        return wall_to_instant_near(start, micros, wall, call.zone).cast(to)
    days = floor_divide(wall, DAY_MICROS).cast(pa.int32())
    return start_of_day(calendar.first_day(days, unit).cast(pa.int32()), call.zone).cast(to)


def _add_interval(call: Call, args: list[Any], rows: Rows) -> Any:
    """Months and days move the wall clock time; smaller units move the instant."""
    months, days, micros = (int(option) for option in call.options)
    instants = args[0].cast(pa.int64())
    wall = instant_to_wall(instants, call.zone) if call.zone else instants
    moved = wall
    if months:
        date = floor_divide(wall, DAY_MICROS)
        later = calendar.plus_months(date.cast(pa.int32()), pc.add(pc.multiply(date, 0), months))
        moved = pc.add(pc.multiply(later, DAY_MICROS), floor_remainder(wall, DAY_MICROS))
    if days:
        moved = pc.add(moved, days * DAY_MICROS)
    if call.zone and (months or days):
        moved = wall_to_instant_near(moved, instants, wall, call.zone)
    elif call.zone:
        moved = instants
    try:
        return pc.add_checked(moved, micros).cast(args[0].type)
    except pa.ArrowInvalid:
        rows.fail(pc.is_valid(moved), "ARITHMETIC_OVERFLOW", "a timestamp is out of range")
        return pc.add(moved, micros).cast(args[0].type)


def _formatted(call: Call, args: list[Any], rows: Rows) -> Any:
    values = args[0]
    if call.function == "from_unixtime":
        # Spark wraps around here, too
        values = pc.multiply(values, 1_000_000)
    wall = wall_of(values, call.zone)
    return format_wall(wall, [str(option) for option in call.options])


def format_wall(wall: Any, parts: list[str]) -> Any:
    """Wall clock microseconds as text: ``%Y %m %d %H %M %S``, and ``=text`` for literal text."""
    days = floor_divide(wall, DAY_MICROS).cast(pa.int32())
    seconds = pc.divide(floor_remainder(wall, DAY_MICROS), 1_000_000)
    pieces: list[Any] = []
    for part in parts:
        if part.startswith("="):
            pieces.append(pa.scalar(part[1:]))
        elif part == "%Y":
            shown = by_value(calendar.year(days), lambda n: f"{n:04d}" if 0 <= n <= 9999 else f"{n:+05d}", pa.string())
            pieces.append(shown)
        elif part in ("%m", "%d"):
            pieces.append(two_digits((calendar.month if part == "%m" else calendar.day)(days)))
        else:
            size = {"%H": 3600, "%M": 60, "%S": 1}[part]
            count = pc.divide(seconds, size)
            pieces.append(two_digits(count if part == "%H" else floor_remainder(count, 60)))
    if not pieces:
        return pc.if_else(pc.is_valid(wall), pa.scalar(""), pa.scalar(None, pa.string()))
    text = pc.binary_join_element_wise(*pieces, pa.scalar(""), null_handling="emit_null")
    if isinstance(text, pa.Scalar):
        return pc.if_else(pc.is_valid(wall), text, pa.scalar(None, pa.string()))
    return null_where(pc.is_null(wall), text)


def two_digits(counts: Any) -> Any:
    return pc.utf8_lpad(counts.cast(pa.string()), 2, "0")


def _unix_time(call: Call, args: list[Any], rows: Rows) -> Any:
    """``unix_timestamp`` rounds toward zero (1970); the other functions round down."""
    divide = pc.divide if call.function == "unix_timestamp" else floor_divide
    return divide(args[0].cast(pa.int64()), int(call.options[0]))


def _timestamp_from(call: Call, args: list[Any], rows: Rows) -> Any:
    unit = int(call.options[0])
    to = pa.timestamp("us", tz="UTC")
    try:
        return pc.multiply_checked(args[0], unit).cast(to)
    except pa.ArrowInvalid:
        limit = ((1 << 63) - 1) // unit
        over = pc.or_(pc.greater(args[0], limit), pc.less(args[0], -limit - (unit == 1)))
        rows.fail(over, "ARITHMETIC_OVERFLOW", "a number is out of the range of timestamps", args[0])
        return pc.multiply(args[0], unit).cast(to)


def _make_date(call: Call, args: list[Any], rows: Rows) -> Any:
    years, months, days = (arg.cast(pa.int64()) for arg in as_arrays(args))
    in_year = pc.and_(pc.greater_equal(months, 1), pc.less_equal(months, 12))
    safe = pc.if_else(in_year, months, 1)
    in_month = pc.and_(pc.greater_equal(days, 1), pc.less_equal(days, calendar.days_in_month(years, safe)))
    in_calendar = pc.less_equal(pc.abs(years), 999_999_999)
    wrong = pc.invert(pc.and_(pc.and_(in_year, in_month), in_calendar))
    if any_true(wrong):
        if call.ansi:
            rows.fail(wrong, "DATETIME_FIELD_OUT_OF_BOUNDS", "year, month and day are not a valid date")
        years = null_where(wrong, years)
    return to_date(calendar.days_from_civil(years, safe, days), rows)


DATES: dict[str, Kernel] = {
    **dict.fromkeys((*_FIELDS, "dayofweek"), _date_field), **dict.fromkeys(("hour", "minute", "second"), _time_field),
    "date_add": _add_days, "date_sub": _add_days, "datediff": _difference, "add_months": _add_months,
    "trunc": lambda call, args, rows: to_date(calendar.first_day(_days(args[0]), str(call.options[0])), rows),
    "last_day": _last_day, "date_trunc": _truncated, "add_interval": _add_interval,
    "date_format": _formatted, "from_unixtime": _formatted, "unix_time": _unix_time, "unix_timestamp": _unix_time,
    "timestamp_from": _timestamp_from, "make_date": _make_date,
    "unix_date": lambda _, args, __: _days(args[0]),
    "date_from_unix_date": lambda _, args, __: args[0].cast(pa.date32()),
}  # fmt: skip
