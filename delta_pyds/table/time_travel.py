"""A time that a user asks for, as milliseconds since the epoch, which commits are dated in."""

from __future__ import annotations

import datetime as dt

from delta_pyds.errors import ExpressionError, OptionError
from delta_pyds.protocol.temporal import TimeZone, parse_timestamp


def time_text(time: str | dt.date) -> str:
    """The time as Spark SQL writes it. A text stays as it is; a date is its midnight; a datetime keeps its offset."""
    if isinstance(time, dt.datetime):
        return time.isoformat(" ")
    return time.isoformat() if isinstance(time, dt.date) else time


def time_to_ms(time: str | dt.date, zone: TimeZone, *, up: bool = False) -> int:
    """Milliseconds since the epoch. Without an offset of its own the time is one of ``zone``.

    ``up``: a fraction of a millisecond counts as a whole one, so that a start inside of one is after its commit.

    Raises: OptionError (DELTA_TIMESTAMP_INVALID) for what is no time.
    """
    if not isinstance(time, str | dt.date):
        raise _no_time(time)
    try:
        micros = parse_timestamp(time_text(time), zone)
    except (ValueError, ExpressionError):
        raise _no_time(time) from None
    return -(-micros // 1000) if up else micros // 1000


def _no_time(value: object) -> OptionError:
    return OptionError(
        f"The provided timestamp ('{value}') cannot be converted to a valid timestamp. Write it like "
        "'2026-01-31 18:00:00' or '2026-01-31T18:00:00Z'.",
        code="DELTA_TIMESTAMP_INVALID",
        value=value,
    )
