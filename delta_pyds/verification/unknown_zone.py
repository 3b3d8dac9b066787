"""Conditions that depend on the time zone of the session that wrote the rows, which no table records.

A row satisfies such a condition if it is true in some time zone: any region, or any offset from UTC by whole quarters
of an hour. So a value that was valid for its writer is never reported, and a value that is valid in no zone always is.
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

# zones are tried on this many rows; a row that fits no zone is invalid
_SAMPLE = 500
_QUARTERS_WEST, _QUARTERS_EAST = 12 * 4, 14 * 4


@lru_cache(maxsize=1)
def _zones() -> tuple[str, ...]:
    """All time zones of sessions, the likely ones first."""
    quarters = sorted(range(-_QUARTERS_WEST, _QUARTERS_EAST + 1), key=abs)
    offsets = [f"{'-' if q < 0 else '+'}{abs(q) // 4:02d}:{abs(q) % 4 * 15:02d}" for q in quarters if q]
    regions = sorted(name for name in available_timezones() if "/" in name and not name.startswith("Etc/"))
    return (*offsets, *regions)


class ZonedCondition:
    """Checks rows against a condition in any time zone. ``bind``: returns the expression for one zone."""

    def __init__(self, bind: Callable[[str], Expr]) -> None:
        self._bind = lru_cache(maxsize=None)(bind)
        self._known = ["UTC"]

    def holds(self, rows: pa.RecordBatch) -> pa.BooleanArray:
        """For each row, whether the condition is true in some time zone; without nulls.

        Raises: DeltaError if it cannot be evaluated in any zone.
        """
        result = self._in_zones(rows, iter(self._known))
        while result.true_count < len(result):
            failing = rows.filter(pc.invert(result))
            sample = failing.slice(0, _SAMPLE)
            zone = next((zone for zone in _zones() if zone not in self._known and self._fits(zone, sample)), None)
            if zone is None:
                return result
            # one session writes a file, and often all files of a table are written in one zone
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
                # the zone is missing on this machine, or its rules cannot be computed
                if e.code != "INVALID_TIMEZONE":
                    raise
            if result.true_count == len(result):
                break
        return result
