"""Instants and wall clock times of a time zone, for whole arrays: with Java's semantics, in any year.

Rules come from ``protocol.temporal.TimeZone``. They are computed and cached once for each distinct day, so rows need
only Arrow kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.columnar.kernel import floor_divide
from delta_pyds.errors import ExpressionError
from delta_pyds.protocol.temporal import DAY_MICROS, DAY_SECONDS, TimeZone, change_between

_STEP = DAY_SECONDS // 8


@lru_cache(maxsize=16)
def zone_of(name: str) -> TimeZone:
    return TimeZone(name)


def instant_to_wall(micros: Any, zone: str) -> Any:
    """Wall clock times of instants, both as int64 microseconds."""
    return _shift(micros, micros, lambda day: _day_of_instants(zone, day), pc.add_checked)


def wall_to_instant(wall: Any, zone: str) -> Any:
    """Instants of wall clock times. If a time occurs twice, the earlier one; if it is in a gap, moved by the gap."""
    return _shift(wall, wall, lambda day: _day_of_wall(zone, day), pc.subtract_checked)


def wall_to_instant_near(wall: Any, instant: Any, old_wall: Any, zone: str) -> Any:
    """As ``wall_to_instant``, but with the offset of ``instant`` if that is valid for the wall clock time."""
    kept = pc.subtract(wall, pc.subtract(old_wall, instant))
    return pc.if_else(pc.equal(instant_to_wall(kept, zone), wall), kept, wall_to_instant(wall, zone))


def start_of_day(days: Any, zone: str) -> Any:
    """The first instants of dates (int32 days), as int64 microseconds."""
    encoded = days.dictionary_encode()
    starts = [None if day is None else _start_of_day(zone, day) for day in encoded.dictionary.to_pylist()]
    try:
        return pa.array(starts, pa.int64()).take(encoded.indices)
    except (OverflowError, pa.ArrowInvalid):
        raise _out_of_range() from None


@lru_cache(maxsize=100_000)
def _start_of_day(zone: str, day: int) -> int:
    return zone_of(zone).start_of_day(day)


# the first offset of a day, the moment of a change (None without one), and the offset after it; all in microseconds
_Day = tuple[int, int | None, int]


def _shift(values: Any, micros: Any, rule: Callable[[int], _Day], move: Callable[[Any, Any], Any]) -> Any:
    days = floor_divide(micros, DAY_MICROS)
    encoded = days.dictionary_encode()
    rules = [None if day is None else rule(day) for day in encoded.dictionary.to_pylist()]
    known = [r for r in rules if r is not None]
    try:
        if len({(r[0], r[2]) for r in known}) == 1 and known[0][0] == known[0][2]:
            return move(values, known[0][0])
        before = pa.array([None if r is None else r[0] for r in rules], pa.int64()).take(encoded.indices)
        if all(r[1] is None for r in known):
            return move(values, before)
        after = pa.array([None if r is None else r[2] for r in rules], pa.int64()).take(encoded.indices)
        never = (1 << 63) - 1
        changes = [None if r is None else never if r[1] is None else r[1] for r in rules]
        change = pa.array(changes, pa.int64()).take(encoded.indices)
        return move(values, pc.if_else(pc.less(micros, change), before, after))
    except pa.ArrowInvalid:
        raise _out_of_range() from None


def _out_of_range() -> ExpressionError:
    return ExpressionError("a timestamp is out of range.", code="ARITHMETIC_OVERFLOW")


@lru_cache(maxsize=200_000)
def _day_of_instants(zone: str, day: int) -> _Day:
    return _day(day, zone_of(zone).offset_at_instant, zone)


@lru_cache(maxsize=200_000)
def _day_of_wall(zone: str, day: int) -> _Day:
    return _day(day, zone_of(zone).offset_at_wall, zone)


def _day(day: int, offset_at: Callable[[int], int], zone: str) -> _Day:
    start = day * DAY_SECONDS
    moments = [*range(start, start + DAY_SECONDS, _STEP), start + DAY_SECONDS - 1]
    offsets = [offset_at(moment) for moment in moments]
    changes = [n for n in range(1, len(offsets)) if offsets[n] != offsets[n - 1]]
    if not changes:
        return offsets[0] * 1_000_000, None, offsets[0] * 1_000_000
    if len(changes) > 1:
        raise ExpressionError(
            f"the clocks in {zone} changed twice on one day, which is not supported.", code="INVALID_TIMEZONE"
        )
    moment = change_between(moments[changes[0] - 1], moments[changes[0]], offset_at)
    return offsets[0] * 1_000_000, moment * 1_000_000, offsets[-1] * 1_000_000
