"""Partition values: the log's strings as typed values.

Protocol: "Partition Value Serialization".
"""

from __future__ import annotations

import datetime as dt
import re
from decimal import Context, Decimal, InvalidOperation
from typing import Union
from zoneinfo import ZoneInfo

from delta_pyds.errors import ProtocolError
from delta_pyds.protocol.schema import DataType, DecimalType, PrimitiveType, display

PartitionValue = Union[None, bool, int, float, str, bytes, Decimal]

_DATE = re.compile(r"\s*([+-]?\d{4,})-(\d{1,2})-(\d{1,2})\s*")
_TIMESTAMP = re.compile(
    r"\s*([+-]?\d{4,})-(\d{1,2})-(\d{1,2})(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:[.](\d{1,9}))?)?)?"
    r"\s*(Z|UTC|GMT|[+-]\d{1,2}:?\d{2})?\s*"
)
_INTEGER_RANGES = {"byte": 8, "short": 16, "integer": 32, "long": 64}
_SPECIAL_FLOATS = {"nan": "nan", "infinity": "inf", "+infinity": "inf", "-infinity": "-inf", "inf": "inf", "-inf": "-inf"}
DAY_MICROS = 86_400_000_000
# the default context rounds to 28 digits, and decimals here have up to 38
_EXACT = Context(prec=100)


def parse_partition_value(text: str | None, data_type: DataType, time_zone: str = "UTC") -> PartitionValue:
    """Turn one partition string into a typed value.

    Null and the empty string are null, for every type. Dates are days since
    1970-01-01, timestamps microseconds since then (UTC), so that no value of
    the protocol is out of Python's range. A timestamp without a zone is read
    in ``time_zone``, the session's, as the reference does.

    Raises: ProtocolError when the text is not a value of the type.
    Protocol: "Partition Value Serialization".
    """
    if text is None or text == "":
        return None
    try:
        if isinstance(data_type, DecimalType):
            return _decimal(text, data_type)
        if isinstance(data_type, PrimitiveType):
            return _primitive(text, data_type.name, time_zone)
    except (ValueError, OverflowError, InvalidOperation):
        pass
    raise ProtocolError(
        f"the partition value {text!r} is not a {display(data_type)}: the log is damaged or was written by a "
        "program that does not follow the protocol.",
        code="DELTA_PARTITION_COLUMN_CAST_FAILED",
        value=text,
        type=display(data_type),
    )


def _primitive(text: str, name: str, time_zone: str) -> PartitionValue:
    if name == "string":
        return text
    if name in _INTEGER_RANGES:
        value = int(text)
        limit = 1 << (_INTEGER_RANGES[name] - 1)
        if not -limit <= value < limit:
            raise ValueError(text)
        return value
    if name in ("float", "double"):
        return float(_SPECIAL_FLOATS.get(text.strip().lower(), text))
    if name == "boolean":
        known = {"true": True, "false": False}
        return known[text.strip().lower()] if text.strip().lower() in known else _no()
    if name == "date":
        return _days(text)
    if name == "timestamp":
        return parse_timestamp(text, time_zone)
    if name == "timestamp_ntz":
        return parse_timestamp(text, None)
    if name == "binary":
        # one character per byte: the protocol's escapes are JSON's, already undone
        return text.encode("utf-8")
    return _no()


def _no() -> PartitionValue:
    raise ValueError("no such value")


def _decimal(text: str, data_type: DecimalType) -> Decimal:
    value = Decimal(text.strip())
    if not value.is_finite():
        raise ValueError(text)
    scaled = _EXACT.scaleb(value, data_type.scale)
    if scaled != scaled.to_integral_value() or scaled.adjusted() >= data_type.precision:
        raise ValueError(text)
    return value


def days_from_civil(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 of a proleptic Gregorian date, any year; ValueError when there is no such date."""
    # a year of the same shape within Python's range, moved by whole 400-year cycles
    cycles, small = divmod(year - 1, 400)
    return dt.date(small + 1, month, day).toordinal() + cycles * 146_097 - 719_163


def _days(text: str) -> int:
    match = _DATE.fullmatch(text)
    if match:
        return days_from_civil(int(match[1]), int(match[2]), int(match[3]))
    # Spark's cast also accepts a timestamp and drops the time
    return parse_timestamp(text, None) // DAY_MICROS


def has_zone(text: str) -> bool:
    """True when a timestamp's text says in which zone it is."""
    match = _TIMESTAMP.fullmatch(text)
    return match is not None and match[8] is not None


def parse_timestamp(text: str, time_zone: str | None) -> int:
    """Microseconds since the epoch; ``time_zone`` None means wall clock time (timestamp_ntz).

    Raises: ValueError when the text is no timestamp.
    """
    match = _TIMESTAMP.fullmatch(text)
    if not match:
        raise ValueError(text)
    year, month, day = int(match[1]), int(match[2]), int(match[3])
    hour, minute, second = int(match[4] or 0), int(match[5] or 0), int(match[6] or 0)
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(text)
    micros = int((match[7] or "").ljust(6, "0")[:6] or 0)
    wall = ((days_from_civil(year, month, day) * 24 + hour) * 60 + minute) * 60 + second
    zone = match[8]
    if time_zone is None:
        offset = 0
    elif zone is None:
        offset = _offset_seconds(wall, time_zone)
    elif zone in ("Z", "UTC", "GMT"):
        offset = 0
    else:
        offset = _fixed_offset_seconds(zone)
    return (wall - offset) * 1_000_000 + micros


def _fixed_offset_seconds(text: str) -> int:
    digits = text[1:].replace(":", "").rjust(4, "0")
    return (int(digits[:2]) * 60 + int(digits[2:])) * 60 * (-1 if text[0] == "-" else 1)


def _offset_seconds(wall_seconds: int, time_zone: str) -> int:
    """Seconds east of UTC that the zone keeps at this wall clock time."""
    if time_zone in ("UTC", "Z", "GMT", "Etc/UTC"):
        return 0
    if time_zone[0] in "+-":
        return _fixed_offset_seconds(time_zone)
    seconds = min(max(wall_seconds, -62_135_596_800), 253_402_300_799)  # the years 1 to 9999
    moment = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=seconds)
    zone = ZoneInfo(time_zone)
    offset = moment.replace(tzinfo=zone).utcoffset()
    return int(offset.total_seconds()) if offset is not None else 0
