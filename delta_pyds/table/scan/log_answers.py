"""Counts of rows and minimum and maximum values of columns, from the log alone.

Invariant: an answer is exact, or None. The number of rows is ``numRecords`` minus deleted rows. Bounds are used only
for integers and dates: statistics truncate strings, round timestamps, and ignore NaN in floating point bounds.

Protocol: "Per-file Statistics", "Deletion Vectors".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from delta_pyds.columnar.older_arrow import rows_with_dicts
from delta_pyds.errors import ProtocolError
from delta_pyds.log.adds import AddRequest
from delta_pyds.protocol.foreign_json import InvalidJSONError, decode_json
from delta_pyds.protocol.partition_values import parse_partition_value
from delta_pyds.protocol.schema import DATE, PrimitiveType, StructField
from delta_pyds.protocol.temporal import parse_date
from delta_pyds.protocol.type_changes import recorded_changes
from delta_pyds.table.snapshot import Snapshot

_BITS = {"byte": 7, "short": 15, "integer": 31, "long": 63, "date": 31}


@dataclass
class _Bounds:
    """The bounds of one column over the files so far. ``partition``: whether it is a partition column."""

    field: StructField
    partition: bool
    least: int | None = None
    most: int | None = None

    def add(self, value: int) -> None:
        assert isinstance(self.field.data_type, PrimitiveType)
        limit = 1 << _BITS[self.field.data_type.name]
        if not -limit <= value < limit:
            raise _UnknownError
        self.least = value if self.least is None else min(self.least, value)
        self.most = value if self.most is None else max(self.most, value)


class _UnknownError(Exception):
    """The log has no exact answer."""


def log_answers(snapshot: Snapshot, asked: Sequence[tuple[str, str | None]]) -> list[int | None] | None:
    """Answer aggregates from the log.

    Args:
        asked: pairs of ``count``, ``min`` or ``max`` and a column (None for ``count``).
    Returns:
        One answer for each pair; None if any of them is not exact. Dates are days since 1970-01-01. A bound of a
        column without values is None.
    Raises: errors of reading the log.
    """
    try:
        bounds = {name.lower(): _bounds(snapshot, name) for _, name in asked if name is not None}
        rows = 0
        for stats, deleted, values in _files(snapshot, partitioned=any(b.partition for b in bounds.values())):
            # writers that do not know the number write 0
            live = _integer(stats.get("numRecords"), at_least=1) - deleted
            if live < 0:
                return None
            rows += live
            for one in bounds.values() if live else ():
                _add_bounds(one, stats, deleted, values)
    except _UnknownError:
        return None
    found: list[int | None] = []
    for kind, name in asked:
        of_column = None if name is None else bounds[name.lower()]
        found.append(rows if of_column is None else of_column.least if kind == "min" else of_column.most)
    return found


def _bounds(snapshot: Snapshot, name: str) -> _Bounds:
    column = snapshot.schema.find(name)
    if column is None or recorded_changes(column):
        raise _UnknownError
    if not (isinstance(column.data_type, PrimitiveType) and column.data_type.name in _BITS):
        raise _UnknownError
    return _Bounds(column, column.name in snapshot.configuration.partition_columns)


def _files(snapshot: Snapshot, *, partitioned: bool) -> Iterator[tuple[dict[str, Any], int, dict[str, Any]]]:
    """For each file its statistics, the number of deleted rows, and its partition values."""
    columns = ("stats", "deletionVector", *(("partitionValues",) if partitioned else ()))
    for batch in snapshot.adds(AddRequest(columns=columns)):
        for row in rows_with_dicts(batch.files):
            vector = row.get("deletionVector") or {}
            deleted = 0 if vector.get("storageType") is None else _integer(vector.get("cardinality"), at_least=0)
            try:
                stats = decode_json(row.get("stats") or "")
            except InvalidJSONError:
                raise _UnknownError from None
            if not isinstance(stats, dict):
                raise _UnknownError
            yield stats, deleted, row.get("partitionValues") or {}


def _add_bounds(bounds: _Bounds, stats: dict[str, Any], deleted: int, partition: dict[str, Any]) -> None:
    name, data_type = bounds.field.physical_name, bounds.field.data_type
    if bounds.partition:
        try:
            value = parse_partition_value(partition.get(name), data_type)
        except ProtocolError:
            raise _UnknownError from None
        if value is not None:
            bounds.add(_integer(value))
        return
    if deleted or stats.get("tightBounds") is False:
        raise _UnknownError  # a deleted row may have had the smallest value
    least, most, nulls = (
        part.get(name) if isinstance(part := stats.get(kind), dict) else None
        for kind in ("minValues", "maxValues", "nullCount")
    )
    if least is None and most is None and nulls == stats["numRecords"]:
        return
    low, high = (_days(value) if data_type == DATE else _integer(value) for value in (least, most))
    if low > high or nulls == stats["numRecords"]:
        raise _UnknownError  # the statistics contradict each other
    for value in (low, high):
        bounds.add(value)


def _integer(value: Any, at_least: int | None = None) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or (at_least is not None and value < at_least):
        raise _UnknownError
    return value


def _days(value: Any) -> int:
    try:
        return parse_date(value)
    except (ValueError, TypeError, AttributeError):
        raise _UnknownError from None
