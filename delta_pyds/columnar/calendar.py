"""The proleptic Gregorian calendar on Arrow arrays: days since 1970-01-01 to years, months and days, and back."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.columnar.kernel import floor_divide, floor_remainder

_CYCLE_DAYS = 146_097
# beyond these days Arrow's years, which have 16 bits, would overflow
_SAFE_DAYS = 10_000_000


def weekday(days: Any) -> Any:
    """The weekday, with 0 for Monday."""
    return floor_remainder(pc.add(days.cast(pa.int64()), 3), 7)


def _field(days: Any, kernel: Callable[[Any], Any], per_cycle: int = 0) -> Any:
    bounds = pc.min_max(days).as_py()
    if bounds["min"] is None or (bounds["min"] > -_SAFE_DAYS and bounds["max"] < _SAFE_DAYS):
        return kernel(days.cast(pa.date32())).cast(pa.int64())
    wide = days.cast(pa.int64())
    # the calendar, including weekdays, repeats every 400 years
    within = kernel(floor_remainder(wide, _CYCLE_DAYS).cast(pa.int32()).cast(pa.date32())).cast(pa.int64())
    return pc.add(within, pc.multiply(floor_divide(wide, _CYCLE_DAYS), per_cycle)) if per_cycle else within


# int64 numbers of int32 days
year = partial(_field, kernel=pc.year, per_cycle=400)
month = partial(_field, kernel=pc.month)
day = partial(_field, kernel=pc.day)
quarter = partial(_field, kernel=pc.quarter)
day_of_year = partial(_field, kernel=pc.day_of_year)
iso_week = partial(_field, kernel=pc.iso_week)


def days_from_civil(years: Any, months: Any, days_: Any) -> Any:
    """int64 days of int64 years, months from 1 to 12, and days; days may exceed the month."""
    early = pc.less_equal(months, 2)
    years = pc.subtract(years, early.cast(pa.int64()))
    shifted = pc.add(months, pc.if_else(early, 9, -3))
    era = floor_divide(years, 400)
    of_era = pc.subtract(years, pc.multiply(era, 400))
    of_year = pc.add(pc.divide(pc.add(pc.multiply(shifted, 153), 2), 5), pc.subtract(days_, 1))
    leap = pc.subtract(pc.divide(of_era, 4), pc.divide(of_era, 100))
    inside = pc.add(pc.add(pc.multiply(of_era, 365), leap), of_year)
    return pc.subtract(pc.add(pc.multiply(era, _CYCLE_DAYS), inside), 719_468)


def days_in_month(years: Any, months: Any) -> Any:
    december = pc.equal(months, 12)
    next_month = pc.if_else(december, 1, pc.add(months, 1))
    next_year = pc.add(years, december.cast(pa.int64()))
    one = pc.add(pc.multiply(months, 0), 1)
    return pc.subtract(days_from_civil(next_year, next_month, one), days_from_civil(years, months, one))


def plus_months(days: Any, months: Any) -> Any:
    """int64 days: int32 days moved by int64 months; the last day of a shorter month."""
    total = pc.add(pc.add(pc.multiply(year(days), 12), pc.subtract(month(days), 1)), months)
    years, months = floor_divide(total, 12), pc.add(floor_remainder(total, 12), 1)
    return days_from_civil(
        years, months, pc.min_element_wise(day(days), days_in_month(years, months), skip_nulls=False)
    )


def first_day(days: Any, unit: str) -> Any:
    """The first day of the week (a Monday), month, quarter or year, as int64 days of int32 days."""
    wide = days.cast(pa.int64())
    if unit == "week":
        return pc.subtract(wide, weekday(days))
    if unit == "month":
        return pc.subtract(wide, pc.subtract(day(days), 1))
    if unit == "year":
        return pc.subtract(wide, pc.subtract(day_of_year(days), 1))
    first_month = pc.subtract(pc.multiply(quarter(days), 3), 2)
    return days_from_civil(year(days), first_month, pc.add(pc.multiply(first_month, 0), 1))
