"""Functions of dates and timestamps: their types by Spark's rules, in the session's time zone."""

from __future__ import annotations

import re

from delta_pyds.errors import ExpressionError
from delta_pyds.expr.functions.session_context import (
    Registry,
    SessionContext,
    constant_argument,
    date_argument,
    expect_count,
    moment_argument,
    refuse_argument,
    whole_argument,
)
from delta_pyds.expr.nodes import Expr, Literal, to_sql, type_of
from delta_pyds.expr.parser.syntax import Interval
from delta_pyds.expr.types import TYPE_NAMES, is_integral
from delta_pyds.protocol.schema import DATE, INTEGER, LONG, STRING, TIMESTAMP, TIMESTAMP_NTZ, VOID, display
from delta_pyds.protocol.temporal import DAY_MICROS

DATE_FUNCTIONS = Registry()
_function = DATE_FUNCTIONS.function

_DATE_UNITS = {"YEAR": "year", "YYYY": "year", "YY": "year", "QUARTER": "quarter", "MONTH": "month", "MM": "month",
               "MON": "month", "WEEK": "week"}  # fmt: skip
_TIME_UNITS = {"DAY": "day", "DD": "day", "HOUR": "hour", "MINUTE": "minute", "SECOND": "second",
               "MILLISECOND": "millisecond", "MICROSECOND": "microsecond"}  # fmt: skip
_FIELDS = {
    "year": "year", "y": "year", "years": "year", "yr": "year", "yrs": "year", "quarter": "quarter", "qtr": "quarter",
    "month": "month", "mon": "month", "mons": "month", "months": "month", "week": "weekofyear", "w": "weekofyear",
    "weeks": "weekofyear", "day": "day", "d": "day", "days": "day", "dayofweek": "dayofweek", "dow": "dayofweek",
    "doy": "dayofyear", "hour": "hour", "h": "hour", "hours": "hour", "hr": "hour", "hrs": "hour",
    "minute": "minute", "m": "minute", "min": "minute", "mins": "minute", "minutes": "minute",
}  # fmt: skip
# the supported letters of a pattern, and their meaning
_FORMATS = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}
_FORMAT_PART = re.compile(r"([A-Za-z])\1*|'((?:''|[^'])*)'|([^A-Za-z'\[\]{}#])")


@_function(
    "year", "quarter", "month", "day", "dayofmonth", "dayofweek", "weekday", "dayofyear", "weekofyear", counts=(1,)
)
def date_field(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    name = "day" if name == "dayofmonth" else name
    return context.call(name, (date_argument(context, name, args[0]),), INTEGER)


@_function("hour", "minute", "second", counts=(1,))
def time_field(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    value = moment_argument(context, name, args[0])
    return context.call(name, (value,), INTEGER, zoned=type_of(value) == TIMESTAMP)


@_function("extract", "date_part", "datepart", counts=(2,))
def extract(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    field = str(constant_argument(name, args[0], "field"))
    function = _FIELDS.get(field.lower())
    if function is None or type_of(args[1]) not in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        raise ExpressionError(
            f"{name} of {field.upper()} from this value is not supported.", construct=f"{name}({field})"
        )
    return DATE_FUNCTIONS[function](context, function, args[1:])


@_function("date_add", "dateadd", "date_sub", counts=(2,))
def add_days(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    date = date_argument(context, name, args[0])
    function = "date_sub" if name == "date_sub" else "date_add"
    return context.call(function, (date, whole_argument(context, name, args[1])), DATE)


@_function("datediff", "date_diff", counts=(2,))
def date_difference(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    return context.call("datediff", [date_argument(context, name, arg) for arg in args], INTEGER)


@_function("add_months", counts=(2,))
def add_months(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    return context.call(name, (date_argument(context, name, args[0]), whole_argument(context, name, args[1])), DATE)


@_function("last_day", counts=(1,))
def last_day(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    return context.call(name, (date_argument(context, name, args[0]),), DATE)


@_function("trunc", counts=(2,))
def truncated_date(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    date = date_argument(context, name, args[0])
    unit = constant_argument(name, args[1], "unit")
    if unit is None or str(unit).upper() not in _DATE_UNITS:
        return Literal(None, DATE)
    return context.call(name, (date,), DATE, _DATE_UNITS[str(unit).upper()])


@_function("date_trunc", counts=(2,))
def truncated_moment(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    moment = moment_argument(context, name, args[1])
    moment = context.cast(moment, TIMESTAMP)
    unit = constant_argument(name, args[0], "unit")
    function = (_DATE_UNITS | _TIME_UNITS).get(str(unit).upper())
    if function is None:
        return Literal(None, TIMESTAMP)
    return context.call(name, (moment,), TIMESTAMP, function, zoned=True)


@_function("to_date", "date", "to_timestamp", "timestamp", "to_timestamp_ntz", "to_timestamp_ltz")
def to_moment(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    """Casts with a function's name; a format is refused."""
    if len(args) == 2 and name.startswith("to_"):
        raise ExpressionError(f"{name} with a format is not supported.", construct=f"{name} with a format")
    expect_count(name, args, 1)
    targets = {"to_date": DATE, "date": DATE, "to_timestamp_ntz": TIMESTAMP_NTZ}
    if type_of(args[0]) not in (DATE, TIMESTAMP, TIMESTAMP_NTZ, STRING, VOID):
        raise refuse_argument(name, args[0], "a STRING, a date or a timestamp")
    return context.cast(args[0], targets.get(name, TIMESTAMP))


@_function("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary", counts=(1,))
def cast_by_name(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    return context.cast(args[0], TYPE_NAMES[name.upper()])


@_function("date_format", counts=(2,))
def date_format(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    """Format with a year of four digits, month, day, hour, minute and second of two digits, and plain text."""
    moment = moment_argument(context, name, args[0])
    moment = context.cast(moment, TIMESTAMP)
    pattern = constant_argument(name, args[1], "pattern")
    if pattern is None:
        return Literal(None, STRING)
    return context.call(name, (moment,), STRING, *_format_parts(name, str(pattern)), zoned=True)


def _format_parts(name: str, pattern: str) -> list[str]:
    """The parts of a pattern: fields as ``%Y``, plain text as ``=text``."""
    parts: list[str] = []
    position = 0
    while position < len(pattern):
        match = _FORMAT_PART.match(pattern, position)
        letters = match[0] if match and match[1] else ""
        if match is None or (letters and letters not in _FORMATS):
            raise ExpressionError(
                f"{name} with the pattern '{pattern}' is not supported. A pattern may have yyyy, MM, dd, HH, mm, ss "
                "and text in quotes.",
                construct=f"{name} with the pattern '{pattern}'",
            )
        text = match[3] if match[3] else "'" if match[0] == "''" else (match[2] or "").replace("''", "'")
        parts.append(_FORMATS[letters] if letters else f"={text}")
        position = match.end()
    return parts


@_function("from_unixtime", counts=(1, 2))
def from_unixtime(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    if not is_integral(type_of(args[0])):
        raise refuse_argument(name, args[0], "BIGINT")
    pattern = constant_argument(name, args[1], "pattern") if len(args) == 2 else "yyyy-MM-dd HH:mm:ss"
    if pattern is None:
        return Literal(None, STRING)
    parts = _format_parts(name, str(pattern))
    return context.call(name, (context.cast(args[0], LONG),), STRING, *parts, zoned=True)


@_function(
    "unix_timestamp", "to_unix_timestamp", "unix_seconds", "unix_millis", "unix_micros", "unix_date", counts=(1,)
)
def unix_time(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    data_type = type_of(args[0])
    if name == "unix_date":
        if data_type != DATE:
            raise refuse_argument(name, args[0], "DATE")
        return context.call(name, args, INTEGER)
    any_moment = name in ("unix_timestamp", "to_unix_timestamp")
    if data_type != TIMESTAMP and not (any_moment and data_type in (DATE, TIMESTAMP_NTZ)):
        raise refuse_argument(name, args[0], "TIMESTAMP")
    unit = {"unix_millis": 1_000, "unix_micros": 1}.get(name, 1_000_000)
    # a timestamp_ntz is counted by its wall clock time, in any zone
    value = args[0] if data_type == TIMESTAMP_NTZ else context.cast(args[0], TIMESTAMP)
    return context.call("unix_timestamp" if any_moment else "unix_time", (value,), LONG, unit)


@_function("timestamp_seconds", "timestamp_millis", "timestamp_micros", "date_from_unix_date", counts=(1,))
def from_count(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    if not is_integral(type_of(args[0])):
        raise refuse_argument(name, args[0], "BIGINT")
    if name == "date_from_unix_date":
        return context.call(name, (whole_argument(context, name, args[0]),), DATE)
    unit = {"timestamp_millis": 1_000, "timestamp_micros": 1}.get(name, 1_000_000)
    return context.call("timestamp_from", (context.cast(args[0], LONG),), TIMESTAMP, unit)


@_function("make_date", counts=(3,))
def make_date(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    return context.call(name, [whole_argument(context, name, arg) for arg in args], DATE)


@_function("current_date", "curdate", counts=(0,))
def current_date(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    context.clock_read = True
    return Literal(context.zone.instant_to_wall(context.now_micros) // DAY_MICROS, DATE)


@_function("current_timestamp", "now", "localtimestamp", counts=(0,))
def current_timestamp(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    context.clock_read = True
    if name == "localtimestamp":
        return Literal(context.zone.instant_to_wall(context.now_micros), TIMESTAMP_NTZ)
    return Literal(context.now_micros, TIMESTAMP)


def add_interval(context: SessionContext, value: Expr, interval: Interval, sign: int) -> Expr:
    """A date or a timestamp plus or minus a literal interval, by the session's calendar and clock.

    Raises: ExpressionError for other types, and for months mixed with days or times, which Spark refuses too.
    """
    data_type = type_of(value)
    months, days, micros = sign * interval.months, sign * interval.days, sign * interval.micros
    if months and (days or micros):
        raise ExpressionError("an interval cannot mix months with days or times.", code="PARSE_SYNTAX_ERROR")
    if data_type == DATE and not interval.has_time:
        function, count = ("add_months", months) if interval.has_months else ("date_add", days)
        return context.call(function, (value, Literal(count, INTEGER)), DATE)
    if data_type == DATE:
        value, data_type = context.cast(value, TIMESTAMP), TIMESTAMP
    if data_type in (TIMESTAMP, TIMESTAMP_NTZ):
        return context.call("add_interval", (value,), data_type, months, days, micros, zoned=data_type == TIMESTAMP)
    raise ExpressionError(
        f"an interval is added to DATE, TIMESTAMP and TIMESTAMP_NTZ only, and '{to_sql(value)}' is of type "
        f"{display(data_type).upper()}: cast it.",
        construct="INTERVAL",
    )
