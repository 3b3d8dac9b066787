"""A user's timestamp as milliseconds since the epoch, the unit of commit times."""

from __future__ import annotations

import datetime as dt

from delta_pyds.errors import ExpressionError, OptionError
from delta_pyds.protocol.temporal import TimeZone, parse_timestamp

_EPOCH = dt.datetime(1970, 1, 1)


def time_text(time: str | dt.date) -> str:
    """The time as Spark SQL writes it. A string stays as it is; a date is its midnight; a datetime keeps its offset."""
    if isinstance(time, dt.datetime):
        return time.isoformat(" ")
    return time.isoformat() if isinstance(time, dt.date) else time


def instant_text(micros: int) -> str:
    """Microseconds since the epoch as a text that means the same in every time zone.

    Raises: OptionError for a year that has no such text (DELTA_TIMESTAMP_INVALID).
    """
    try:
        return f"{_EPOCH + dt.timedelta(microseconds=micros)}Z"
    except OverflowError:
        raise _invalid_time(f"{micros} microseconds after 1970") from None


def time_to_ms(time: str | dt.date, zone: TimeZone, *, up: bool = False) -> int:
    """Milliseconds since the epoch.

    Args:
        zone: the time zone of a time without an offset.
        up: round a fraction of a millisecond up, so that a start within a millisecond is after its commit.
    Raises:
        OptionError: the time is invalid (DELTA_TIMESTAMP_INVALID).
    """
    if not isinstance(time, str | dt.date):
        raise _invalid_time(time)
    try:
        micros = parse_timestamp(time_text(time), zone)
    except (ValueError, ExpressionError):
        raise _invalid_time(time) from None
    return -(-micros // 1000) if up else micros // 1000


def _invalid_time(value: object) -> OptionError:
    return OptionError(
        f"The provided timestamp ('{value}') cannot be converted to a valid timestamp. Write it like "
        "'2026-01-31 18:00:00' or '2026-01-31T18:00:00Z'.",
        code="DELTA_TIMESTAMP_INVALID",
        value=value,
    )
