"""Statistics of one file, compared with its rows, for every column in the statistics.

Strings may be truncated, timestamps are truncated to milliseconds, and a maximum may ignore NaN. Every other
difference is a finding.

Protocol: "Per-file Statistics".
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from delta_pyds.columnar.rows import column_at
from delta_pyds.protocol.actions import AddFile
from delta_pyds.protocol.schema import FLOAT, TIMESTAMP, TYPE_CHANGES, DataType, DecimalType, PrimitiveType, StructType
from delta_pyds.verification.report import Findings
from delta_pyds.verification.values import Leaf, leaves, nearest_single, parse_statistics, typed
from delta_pyds.verification.view import FieldAt, fields_of

_MILLISECOND = 1_000
# the protocol does not define how bounds of these types are written
_NO_BOUNDS = ("binary", "variant", "void")
_CUT = ("string", "timestamp", "timestamp_ntz")


class ColumnPaths:
    """The columns of a schema and the fields of its structs, by physical path."""

    def __init__(self, schema: StructType) -> None:
        self.by_physical: dict[Leaf, FieldAt] = {at.physical: at for at in fields_of(schema) if at.in_struct}


@dataclass
class _Column:
    """The recorded statistics of a column, and those of its rows so far."""

    at: FieldAt
    recorded: dict[str, Any] = field(default_factory=dict)
    nulls: int = 0
    physical_nulls: int = 0
    values: int = 0
    lowest: Any = None
    highest: Any = None
    has_nan: bool = False

    def update(self, physical: pa.Array, live: pa.BooleanArray | None) -> None:
        self.physical_nulls += physical.null_count
        array = physical if live is None else physical.filter(live)
        self.nulls += array.null_count
        self.values += len(array) - array.null_count
        if len(self.recorded) == 1 and "nullCount" in self.recorded:
            return
        bounds = _bounds(array)
        if bounds is None:
            return
        low, high, nan = bounds
        self.has_nan |= nan
        if low is not None:
            self.lowest = low if self.lowest is None else min(self.lowest, low)
            self.highest = high if self.highest is None else max(self.highest, high)


def _bounds(array: pa.Array) -> tuple[Any, Any, bool] | None:
    """Minimum and maximum in a comparable form: text as bytes, dates and timestamps as integers."""
    kind = array.type
    nan = False
    if pt.is_date32(kind):
        array = array.cast(pa.int32())
    elif pt.is_timestamp(kind):
        array = array.cast(pa.int64())
    elif pt.is_string(kind):
        array = array.cast(pa.binary())
    elif pt.is_floating(kind):
        is_nan = pc.is_nan(array)
        nan = bool(pc.any(is_nan).as_py())
        array = array.filter(pc.invert(is_nan)) if nan else array
    elif not (pt.is_integer(kind) or pt.is_decimal(kind) or pt.is_boolean(kind)):
        return None
    found = pc.min_max(array).as_py()
    return found["min"], found["max"], nan


class StatisticsCheck:
    """Reads the rows of one file, then reports wrong statistics."""

    def __init__(self, add: AddFile, paths: ColumnPaths, num_rows: int, path: str, findings: Findings) -> None:
        self._path = path
        self._findings = findings
        self._num_rows = num_rows
        self._has_vector = add.deletion_vector is not None
        self._columns: dict[Leaf, _Column] = {}
        self._tight = True
        tree = parse_statistics(add.stats) if add.stats is not None else None
        if tree is None:
            return
        self._tight = tree.get("tightBounds") is not False
        recorded = tree.get("numRecords")
        if recorded is not None and recorded != num_rows:
            findings.error(
                "statistics.num-records", path, f"numRecords is {recorded}, but the file has {num_rows} rows."
            )
        for kind in ("minValues", "maxValues", "nullCount"):
            for leaf, value in leaves(tree.get(kind)):
                # a dropped column
                if (at := paths.by_physical.get(leaf)) is not None:
                    self._columns.setdefault(leaf, _Column(at)).recorded[kind] = value

    def update(self, batch: pa.RecordBatch, live: pa.BooleanArray | None) -> None:
        for column in self._columns.values():
            array = column_at(batch, column.at.path)
            if array is not None:
                column.update(array, live)

    def finish(self) -> None:
        for column in self._columns.values():
            if "nullCount" in column.recorded:
                self._check_nulls(column, column.recorded["nullCount"])
            if not column.values:
                continue  # the bounds have no information
            for kind in ("minValues", "maxValues"):
                if kind in column.recorded:
                    self._check_bound(column, kind, column.recorded[kind])

    def _error(self, rule: str, message: str) -> None:
        self._findings.error(f"statistics.{rule}", self._path, message)

    def _check_nulls(self, column: _Column, recorded: Any) -> None:
        name = column.at.name
        if not isinstance(recorded, int) or isinstance(recorded, bool) or recorded < 0:
            self._error("null-count", f"nullCount of {name} is {recorded!r}.")
        elif self._tight:
            allowed = {column.nulls, column.physical_nulls} if self._has_vector else {column.nulls}
            if recorded not in allowed:
                self._error("null-count", f"nullCount of {name} is {recorded}, but {column.nulls} rows are null.")
        elif recorded == 0 and column.nulls:
            self._error("null-count", f"nullCount of {name} is 0, but {column.nulls} rows are null.")
        elif recorded == self._num_rows and column.values:
            self._error(
                "null-count",
                f"nullCount of {name} states that all rows are null, but {column.values} rows are not null.",
            )

    def _check_bound(self, column: _Column, kind: str, recorded: Any) -> None:
        data_type, name = column.at.field.data_type, column.at.name
        if isinstance(data_type, PrimitiveType) and data_type.name in _NO_BOUNDS:
            return
        if data_type == TIMESTAMP and isinstance(recorded, str) and not _has_zone(recorded):
            return  # a truncated bound, or one of an unknown form
        if not isinstance(data_type, (PrimitiveType, DecimalType)):
            self._error("value", f"{kind} has a value for {name}, which is not a primitive column.")
            return
        try:
            stat = typed(recorded, data_type)
        except ValueError:
            self._error("value", f"{kind} of {name} is {recorded!r}, which is not a value of its type.")
            return
        is_minimum = kind == "minValues"
        if isinstance(stat, float):
            self._check_float(column, kind, stat, data_type)
            return
        actual = column.lowest if is_minimum else column.highest
        sound, tight, shown = _compare(stat, actual, data_type, is_minimum)
        if not sound:
            if isinstance(stat, Decimal) and float(stat) == float(actual):
                self._findings.warning(
                    "statistics.rounded", self._path, f"{kind} of {name} is {recorded}, rounded from {shown}."
                )
                return
            self._error("bound", f"{kind} of {name} is {recorded!r}, but a row has {shown}.")
        elif self._tight and not tight:
            self._loose(column, kind, recorded, shown)

    def _check_float(self, column: _Column, kind: str, stat: float, data_type: DataType) -> None:
        name, is_minimum = column.at.name, kind == "minValues"
        actual = column.lowest if is_minimum else column.highest
        if actual is None:
            # all values are NaN
            if not math.isnan(stat) and is_minimum and self._tight:
                self._loose(column, kind, stat, "NaN")
            elif not math.isnan(stat) and not is_minimum:
                self._nan_left_out(kind, name)
            return
        if math.isnan(stat):
            if is_minimum:
                self._error("bound", f"{kind} of {name} is NaN, but a row has {actual}.")
            elif not column.has_nan and self._tight:
                self._loose(column, kind, "NaN", actual)
            return
        if not is_minimum and column.has_nan:
            self._nan_left_out(kind, name)
        if data_type == FLOAT or TYPE_CHANGES in column.at.field.metadata:
            # the bound was printed from a float, which may be greater or less as a double
            stat, actual = nearest_single(stat), nearest_single(actual)
        if stat == actual:
            return
        if (stat > actual) if is_minimum else (stat < actual):
            self._error("bound", f"{kind} of {name} is {stat}, but a row has {actual}.")
        elif self._tight:
            self._loose(column, kind, stat, actual)

    def _loose(self, column: _Column, kind: str, recorded: Any, actual: Any) -> None:
        """Report a bound that no row has, although the statistics have tight bounds.

        Programs answer MIN and MAX by bounds of files without deletion vectors, except for types that may be truncated.
        """
        data_type = column.at.field.data_type
        cut = isinstance(data_type, PrimitiveType) and data_type.name in _CUT
        report = self._findings.warning if cut or self._has_vector else self._findings.error
        message = f"{kind} of {column.at.name} is {recorded!r}, but the value in the rows is {actual}."
        report("statistics.not-tight", self._path, message)

    def _nan_left_out(self, kind: str, name: str) -> None:
        self._findings.warning(
            "statistics.nan", self._path, f"{kind} of {name} is a number, but a row has NaN, which is greater."
        )


def _compare(stat: Any, actual: Any, data_type: DataType, is_minimum: bool) -> tuple[bool, bool, Any]:
    """Compare a bound. Returns: whether it is sound, whether it is tight, and the actual bound for messages."""
    if isinstance(stat, str):
        text = stat.encode("utf-8", "surrogatepass")
        shown = actual.decode("utf-8", "replace")
        if is_minimum:
            return text <= actual, actual.startswith(text), repr(shown)
        kept = stat[:-1].encode("utf-8", "surrogatepass")
        return text >= actual, text == actual or actual.startswith(kept), repr(shown)
    if isinstance(data_type, PrimitiveType) and data_type.name in ("timestamp", "timestamp_ntz"):
        same = stat // _MILLISECOND == actual // _MILLISECOND
        return (stat <= actual if is_minimum else same or stat >= actual), same, f"{actual} microseconds"
    return (stat <= actual if is_minimum else stat >= actual), stat == actual, actual


def _has_zone(text: str) -> bool:
    tail = text.strip()[10:]
    return tail.endswith(("Z", "UTC")) or "+" in tail or "-" in tail
