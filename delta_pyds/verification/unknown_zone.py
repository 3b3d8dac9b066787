"""Conditions whose meaning depends on the time zone of the session that wrote the rows, which no table records.

A row keeps such a condition if there is a time zone in which it is true: any
region, or any offset from UTC of whole quarters of an hour. So a value that is
right for whoever wrote it is never reported, and one that is right nowhere is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from zoneinfo import available_timezones

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.columnar.evaluate import matches
from delta_pyds.errors import ExpressionError
from delta_pyds.expr.nodes import Expr

# zones are looked for that fit some of so many rows; what fits none of them is broken
_SAMPLE = 500
_QUARTERS_WEST, _QUARTERS_EAST = 12 * 4, 14 * 4


@lru_cache(maxsize=1)
def _zones() -> tuple[str, ...]:
    """All that a session may have been in, the likely ones first."""
    quarters = sorted(range(-_QUARTERS_WEST, _QUARTERS_EAST + 1), key=abs)
    offsets = [f"{'-' if q < 0 else '+'}{abs(q) // 4:02d}:{abs(q) % 4 * 15:02d}" for q in quarters if q]
    regions = sorted(name for name in available_timezones() if "/" in name and not name.startswith("Etc/"))
    return (*offsets, *regions)


class ZonedCondition:
    """Holds rows against a condition in any time zone. ``bind`` gives its meaning in one."""

    def __init__(self, bind: Callable[[str], Expr]) -> None:
        self._bind = lru_cache(maxsize=None)(bind)
        self._known = ["UTC"]

    def holds(self, rows: pa.RecordBatch) -> pa.BooleanArray:
        """For each row whether there is a time zone in which the condition is true of it; no nulls.

        Raises: DeltaError where it cannot be evaluated in any of them.
        """
        result = self._in_zones(rows, iter(self._known))
        while result.true_count < len(result):
            failing = rows.filter(pc.invert(result))
            sample = failing.slice(0, _SAMPLE)
            zone = next((zone for zone in _zones() if zone not in self._known and self._fits(zone, sample)), None)
            if zone is None:
                return result
            # one file is of one session, and one table often of one zone
            self._known.insert(0, zone)
            result = pc.or_(result, self._in_zones(rows, iter([zone])))
        return result

    def _fits(self, zone: str, rows: pa.RecordBatch) -> bool:
        return bool(self._in_zones(rows, iter([zone])).true_count)

    def _in_zones(self, rows: pa.RecordBatch, zones: Iterator[str]) -> pa.BooleanArray:
        result = pa.repeat(pa.scalar(False), rows.num_rows)
        for zone in zones:
            try:
                result = pc.or_(result, matches(self._bind(zone), rows, rows.num_rows))
            except ExpressionError as e:
                # no such zone on this machine, or clocks that no one can compute with
                if e.code != "INVALID_TIMEZONE":
                    raise
            if result.true_count == len(result):
                break
        return result
