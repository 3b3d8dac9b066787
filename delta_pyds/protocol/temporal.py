"""Dates, timestamps and time zones, as Spark 4 reads and converts them.

Dates are days, timestamps microseconds since 1970-01-01, in any year. Python's
own dates end at 9999, so they are used only inside one 400-year cycle.
"""

from __future__ import annotations

import datetime as dt
import re
from bisect import bisect_left
from collections.abc import Callable
from zoneinfo import ZoneInfo

from delta_pyds.errors import ExpressionError

DAY_SECONDS = 86_400
DAY_MICROS = DAY_SECONDS * 1_000_000
_CYCLE_DAYS = 146_097  # 400 Gregorian years
_EPOCH = dt.datetime(1970, 1, 1)
_LONG_MAX = (1 << 63) - 1
_INT_MAX = (1 << 31) - 1

# java.time.ZoneId.SHORT_IDS, which Spark accepts too
_SHORT_IDS = {
    "ACT": "Australia/Darwin", "AET": "Australia/Sydney", "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo", "AST": "America/Anchorage", "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare", "CNT": "America/St_Johns", "CST": "America/Chicago", "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa", "ECT": "Europe/Paris", "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata", "JST": "Asia/Tokyo", "MIT": "Pacific/Apia", "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland", "PLT": "Asia/Karachi", "PNT": "America/Phoenix", "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles", "SST": "Pacific/Guadalcanal", "VST": "Asia/Ho_Chi_Minh",
    "EST": "-05:00", "MST": "-07:00", "HST": "-10:00",
}  # fmt: skip

_OFFSET = re.compile(r"([+-])(\d{1,2})(?::(\d{1,2})(?::(\d{2}))?|(\d{2}))?")
_DATE = re.compile(r"([+-]?\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?", re.DOTALL)
_TIMESTAMP = re.compile(
    r"([+-]?\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})"
    r"(?:[ T](\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?(?: *([A-Za-z+-][\w/+:-]*))?)?)?)?)?)?"
)
# characters that Spark strips from a date or a time
_SPACE = " \t\n\r\f\v"


class TimeZone:
    """A time zone by its name in Spark: a region, an offset, UTC, or one of Java's short ids.

    ``used`` becomes true when a conversion asks for an offset, so that callers
    know whether a result depends on the session's zone.

    Raises: ExpressionError for an unknown name.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.used = False
        self._fixed: int | None = None
        self._zone: ZoneInfo | None = None
        known = _SHORT_IDS.get(name, name)
        if known in ("Z", "UTC", "GMT", "UT", "Etc/UTC"):
            self._fixed = 0
            return
        offset = re.sub(r"^(?:UTC|GMT|UT)(?=[+-])", "", known)
        if _OFFSET.fullmatch(offset):
            self._fixed = _offset_seconds(offset)
            return
        try:
            self._zone = ZoneInfo(known)
        except (KeyError, ValueError, OSError):
            raise ExpressionError(
                f"this machine has no time zone named '{name}'. Use a region such as 'Europe/Paris', an offset such "
                "as '+05:30', or 'UTC'. If the system has no time zone database, install the package tzdata.",
                code="INVALID_TIMEZONE",
                time_zone=name,
            ) from None

    def same_as(self, other: TimeZone) -> bool:
        """Whether the two names mean one zone: the same region, or the same fixed offset."""
        if self._zone is None or other._zone is None:
            return self._zone is other._zone and self._fixed == other._fixed
        return self._zone.key == other._zone.key

    def _wall_offset(self, wall_seconds: int, fold: int) -> int:
        if self._zone is None:
            return self._fixed or 0
        moment = _within_python(wall_seconds).replace(tzinfo=self._zone, fold=fold)
        return _whole_seconds(moment.utcoffset())

    def offset_at_instant(self, utc_seconds: int) -> int:
        """Seconds east of UTC at an instant."""
        self.used = True
        if self._zone is None:
            return self._fixed or 0
        moment = _within_python(utc_seconds).replace(tzinfo=dt.timezone.utc)
        return _whole_seconds(moment.astimezone(self._zone).utcoffset())

    def offset_at_wall(self, wall_seconds: int) -> int:
        """Seconds east of UTC that Java uses for a wall clock time.

        When clocks are set back or forward, this is the offset before the change.
        """
        self.used = True
        return self._wall_offset(wall_seconds, 0)

    def wall_to_instant(self, wall_micros: int) -> int:
        """The instant of a wall clock time (timestamp_ntz) in this zone, in microseconds."""
        return wall_micros - self.offset_at_wall(wall_micros // 1_000_000) * 1_000_000

    def instant_to_wall(self, micros: int) -> int:
        """The wall clock time of an instant in this zone, in microseconds."""
        return micros + self.offset_at_instant(micros // 1_000_000) * 1_000_000

    def start_of_day(self, days: int) -> int:
        """The first instant of a date, in microseconds."""
        self.used = True
        wall = days * DAY_SECONDS
        before = self._wall_offset(wall, 0)
        after = self._wall_offset(wall, 1)
        if after <= before:
            return (wall - before) * 1_000_000
        # this day has no midnight: it starts when the clocks are set forward
        return change_between(wall - after, wall - before, self.offset_at_instant) * 1_000_000

    def offsets_around(self, micros: int) -> list[tuple[int | None, int]]:
        """The offsets of wall clock times near ``micros``.

        Returns: pairs of the wall time in microseconds from which an offset holds, and its seconds east of UTC. The
            first pair has None for the time. They cover two days before and after ``micros``, which is enough: no
            offset is larger than 18 hours.
        """
        self.used = True
        start = micros // 1_000_000 - 2 * DAY_SECONDS
        pieces: list[tuple[int | None, int]] = [(None, self._wall_offset(start, 0))]
        if self._zone is None:
            return pieces
        for hour in range(1, 97):
            low, high = start + (hour - 1) * 3600, start + hour * 3600
            if self._wall_offset(high, 0) == pieces[-1][1]:
                continue
            moment = change_between(low, high, lambda second: self._wall_offset(second, 0))
            pieces.append((moment * 1_000_000, self._wall_offset(moment, 0)))
        return pieces


def change_between(low: int, high: int, offset_at: Callable[[int], int]) -> int:
    """The first second after ``low`` with another offset than at ``low``, or ``high``."""
    before = offset_at(low)
    return low + bisect_left(range(low, high), True, key=lambda second: offset_at(second) != before)


def _whole_seconds(offset: dt.timedelta | None) -> int:
    return 0 if offset is None else int(offset.total_seconds())


def _within_python(seconds: int) -> dt.datetime:
    """The same moment in a year that Python supports and that has the same zone rules.

    Rules repeat every 400 years after the last recorded change, and no rule
    changed before the year 2.
    """
    days, rest = divmod(seconds, DAY_SECONDS)
    last = dt.date(9990, 1, 1).toordinal() - dt.date(1970, 1, 1).toordinal()
    if days > last:
        days -= -(-(days - last) // _CYCLE_DAYS) * _CYCLE_DAYS
    first = dt.date(2, 1, 1).toordinal() - dt.date(1970, 1, 1).toordinal()
    return _EPOCH + dt.timedelta(days=max(days, first), seconds=rest)


def _offset_seconds(text: str) -> int:
    match = _OFFSET.fullmatch(text)
    if not match:
        raise ValueError(text)
    hours, minutes, seconds = int(match[2]), int(match[3] or match[5] or 0), int(match[4] or 0)
    total = hours * 3600 + minutes * 60 + seconds
    if minutes > 59 or seconds > 59 or total > 18 * 3600:
        raise ExpressionError(
            f"'{text}' is not an offset from UTC: write it as '+05:30', at most 18:00.", code="INVALID_TIMEZONE"
        )
    return -total if match[1] == "-" else total


def days_from_civil(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 of a date in the proleptic Gregorian calendar. Raises: ValueError if it does not exist."""
    cycles, small = divmod(year - 1, 400)
    return dt.date(small + 1, month, day).toordinal() + cycles * _CYCLE_DAYS - 719_163


def parse_date(text: str) -> int:
    """Parse a date as Spark does: ``yyyy[-m[m][-d[d][ |T anything]]]``. Raises: ValueError."""
    match = _DATE.fullmatch(text.strip(_SPACE))
    if not match:
        raise ValueError(text)
    days = days_from_civil(int(match[1]), int(match[2] or 1), int(match[3] or 1))
    if not -_INT_MAX - 1 <= days <= _INT_MAX:
        raise ValueError(text)
    return days


def parse_timestamp(text: str, zone: TimeZone | None) -> int:
    """Parse a timestamp as Spark does, to microseconds.

    Args:
        text: the timestamp. A time without a date is refused: its date would be today.
        zone: the zone of a text that names none. With None the text is a timestamp_ntz and may not name a zone.

    Raises: ValueError.
    """
    match = _TIMESTAMP.fullmatch(text.strip(_SPACE))
    if not match:
        raise ValueError(text)
    hour, minute, second = int(match[4] or 0), int(match[5] or 0), int(match[6] or 0)
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(text)
    days = days_from_civil(int(match[1]), int(match[2] or 1), int(match[3] or 1))
    wall = days * DAY_SECONDS + hour * 3600 + minute * 60 + second
    named = match[8]
    if zone is None:
        if named is not None:
            raise ValueError(text)
        offset = 0
    elif named is None:
        offset = zone.offset_at_wall(wall)
    else:
        offset = _named_zone(named, text).offset_at_wall(wall)
    micros = (wall - offset) * 1_000_000 + int((match[7] or "").ljust(6, "0")[:6])
    if not -_LONG_MAX - 1 <= micros <= _LONG_MAX:
        raise ValueError(text)
    return micros


def lacks_zone(text: str) -> bool:
    """Whether the text names no time zone, so that its instant depends on the writer's. True for invalid timestamps."""
    match = _TIMESTAMP.fullmatch(text.strip(_SPACE))
    return match is None or match[8] is None


def _named_zone(name: str, text: str) -> TimeZone:
    if name in ("Z", "UTC", "GMT", "UT") or _OFFSET.fullmatch(name) or "/" in name:
        return TimeZone(name)
    raise ValueError(text)


def show_date(days: int) -> str:
    """Days since 1970-01-01 as ``yyyy-mm-dd``, with a sign if the year does not have four digits."""
    cycles, rest = divmod(days + 719_162, _CYCLE_DAYS)
    date = dt.date.fromordinal(rest + 1)
    year = date.year + 400 * cycles
    shown = f"{year:04d}" if 0 <= year <= 9999 else f"{year:+05d}"
    return f"{shown}-{date.month:02d}-{date.day:02d}"


def show_timestamp(micros: int) -> str:
    """Microseconds since 1970-01-01 as ``yyyy-mm-dd hh:mm:ss[.ffffff]``."""
    days, rest = divmod(micros, DAY_MICROS)
    seconds, fraction = divmod(rest, 1_000_000)
    tail = f".{fraction:06d}".rstrip("0") if fraction else ""
    return f"{show_date(days)} {seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{tail}"


def utc_text(timestamp_ms: int, precision: str = "milliseconds") -> str:
    """ISO 8601 in UTC; plain milliseconds if ``datetime`` does not support the year."""
    try:
        moment = _EPOCH + dt.timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return f"{timestamp_ms} ms"
    return f"{moment.isoformat(sep=' ', timespec=precision)} UTC"
