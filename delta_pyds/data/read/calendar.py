"""Dates and timestamps that old versions of Spark wrote in the Julian calendar.

Invariant: an old value is moved to the same wall clock date in the Gregorian calendar, as in Spark, or the file is
refused; it is never returned as it is. Values of files without an old Spark's metadata are returned as they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from delta_pyds.columnar.cast import ColumnLocation, Convert
from delta_pyds.errors import UnsupportedFeatureError
from delta_pyds.protocol.temporal import DAY_MICROS

_VERSION = b"org.apache.spark.version"
_LEGACY_DATES = b"org.apache.spark.legacyDateTime"
_LEGACY_INT96 = b"org.apache.spark.legacyINT96"
_TIME_ZONE = b"org.apache.spark.timeZone"
_UTC = {b"UTC", b"Z", b"GMT", b"Etc/UTC", b"GMT+0", b"UTC+0", b"+00:00"}

# From each of these Julian day counts on, dates move by the second number of days, up to the Gregorian reform.
_MOVES = (
    (-719164, 2), (-682945, 1), (-646420, 0), (-609895, -1), (-536845, -2), (-500320, -3), (-463795, -4),
    (-390745, -5), (-354220, -6), (-317695, -7), (-244645, -8), (-208120, -9), (-171595, -10),
)  # fmt: skip
REFORM_DAY = -141427  # 1582-10-15: the first day on which both calendars agree
_FIRST_DAY = _MOVES[0][0]
# before 1900 the old rules of time zones differ, too
_SAFE_MICROS = -2_208_988_800_000_000


def uses_julian_dates(footer: Mapping[bytes, bytes]) -> bool:
    """Whether dates and timestamps (other than int96) of the file are Julian before the reform."""
    return _older_than(footer, (3, 0)) or (_VERSION in footer and _LEGACY_DATES in footer)


def uses_julian_int96(footer: Mapping[bytes, bytes]) -> bool:
    """Whether int96 timestamps of the file are Julian before the reform."""
    return _older_than(footer, (3, 1)) or (_VERSION in footer and _LEGACY_INT96 in footer)


def _older_than(footer: Mapping[bytes, bytes], version: tuple[int, int]) -> bool:
    match = re.match(rb"(\d+)\.(\d+)", footer.get(_VERSION, b""))
    return match is not None and (int(match[1]), int(match[2])) < version


def rebase(data_type: pa.DataType, footer: Mapping[bytes, bytes], where: ColumnLocation) -> Convert:
    """A function that moves dates or timestamps[us] of an old file to the Gregorian calendar.

    The function raises UnsupportedFeatureError for timestamps before 1900 in a time zone other than UTC, and for values
    before the year 1.
    """
    if pt.is_date32(data_type):
        return lambda array: _dates(array, where)
    in_utc = footer.get(_TIME_ZONE) in _UTC

    def timestamps(array: pa.Array) -> pa.Array:
        micros = array.view(pa.int64())
        lowest = pc.min(micros).as_py()
        if lowest is None or lowest >= _SAFE_MICROS:
            return array
        if not in_utc:
            raise _refused("timestamps before 1900", where)
        if lowest < _FIRST_DAY * DAY_MICROS:
            raise _refused("timestamps before the year 1", where)
        # Arrow divides toward zero, but non-negative values are never moved
        days = pc.divide(pc.subtract(micros, DAY_MICROS - 1), DAY_MICROS).cast(pa.int32())
        moved = pc.add(micros, pc.multiply(_days_to_add(days).cast(pa.int64()), DAY_MICROS))
        return moved.view(array.type)

    return timestamps


def _dates(array: pa.Array, where: ColumnLocation) -> pa.Array:
    days = array.view(pa.int32())
    lowest = pc.min(days).as_py()
    if lowest is None or lowest >= REFORM_DAY:
        return array
    if lowest < _FIRST_DAY:
        raise _refused("dates before the year 1", where)
    return pc.add(days, _days_to_add(days)).view(pa.date32())


def _days_to_add(days: pa.Array) -> pa.Array:
    out = pa.scalar(0, pa.int32())
    below = REFORM_DAY
    for start, move in reversed(_MOVES):
        out = pc.if_else(pc.less(days, below), pa.scalar(move, pa.int32()), out)
        below = start
    return out


def _refused(values: str, where: ColumnLocation) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"the data file '{where.file}' was written by an old version of Spark with the Julian calendar, and its column "
        f"'{where.column}' has {values}, which cannot be converted to today's calendar reliably. Rewrite the file "
        "with a current Spark (spark.sql.parquet.datetimeRebaseModeInRead=LEGACY).",
        code="INCONSISTENT_BEHAVIOR_CROSS_VERSION.READ_ANCIENT_DATETIME",
        file=where.file,
        column=where.column,
    )
