"""Statistics of a data file, gathered while it is written, as the JSON of ``add.stats``.

Invariant: every value of the file lies within the bounds. The bounds are the minimum and the maximum, unless the
protocol truncates them (strings, fractions of a millisecond). An unknown bound is left out.

Null counts and most bounds come from the file's own footer. They are exact, because our writer wrote it. Bounds of
floating point columns (see ``bounded_columns``) and of long strings are computed from the rows. So are null counts of
lists and maps, because the footer counts the values inside.

Protocol: "Per-file Statistics".
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import cached_property, lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.data.file_schema import FileColumn
from delta_pyds.data.write.parquet_schema import FileSchema, mapped_schema
from delta_pyds.protocol.floating_text import shortest_float
from delta_pyds.protocol.schema import (
    FLOAT,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)
from delta_pyds.protocol.temporal import show_date, show_timestamp
from delta_pyds.tasks.write_state import WriteState

# The Parquet writer stores no bounds longer than this.
_LONGEST_FOOTER_BYTES = 4096
_MAX_CODE_POINT = "\U0010ffff"
_TIE_BREAKER = "\x7f"
_KINDS = {
    "byte": "whole", "short": "whole", "integer": "whole", "long": "whole", "float": "floating", "double": "floating",
    "string": "text", "date": "date", "timestamp": "timestamp", "timestamp_ntz": "timestamp_ntz",
}  # fmt: skip
_EXACT = Context(prec=60)
_LEAST_MICROS = -(1 << 63)


@dataclass(frozen=True)
class _Leaf:
    """A column with statistics.

    ``path``: physical names. ``indices``: positions of the fields from the file's top level. ``column``: the column in
    the footer; None for a void column, which files do not have.
    """

    path: tuple[str, ...]
    data_type: DataType
    indices: tuple[int, ...] = ()
    column: FileColumn | None = None

    @cached_property
    def kind(self) -> str:
        """``nested``: only a null count, from the rows. ``counted``: no bounds. Other kinds: how to show the bounds."""
        data_type = self.data_type
        if isinstance(data_type, ArrayType | MapType):
            return "nested"
        if isinstance(data_type, DecimalType):
            return "decimal"
        return _KINDS.get(data_type.name, "counted") if isinstance(data_type, PrimitiveType) else "counted"


class StatisticsPlan:
    """The columns of a write with statistics, and how each gets them. One per task."""

    def __init__(self, state: WriteState, schema: FileSchema) -> None:
        wanted = set(state.stats_columns)
        partitions = set(state.partition_columns)
        in_files = {f.field.name: (i, f.column) for i, f in enumerate(schema.fields)}
        self.leaves: list[_Leaf] = []
        for field in mapped_schema(state):
            if field.name in partitions:
                continue
            at, column = in_files.get(field.name, (-1, None))
            self.leaves += [leaf for path, leaf in _leaves(field, (), (), (at,), column) if path in wanted]
        self.prefix_length = state.string_prefix_length
        self.tight_bounds = state.tight_bounds


def _leaves(
    field: StructField,
    logical: tuple[str, ...],
    physical: tuple[str, ...],
    indices: tuple[int, ...],
    column: FileColumn | None,
) -> Iterator[tuple[tuple[str, ...], _Leaf]]:
    logical, physical = (*logical, field.name), (*physical, field.physical_name)
    if not isinstance(field.data_type, StructType):
        yield logical, _Leaf(physical, field.data_type, indices, column)
        return
    at = 0
    for f in field.data_type.fields:
        if f.data_type == VOID:
            yield from _leaves(f, logical, physical, (), None)
        else:
            assert column is not None
            yield from _leaves(f, logical, physical, (*indices, at), column.children[at])
            at += 1


class StatisticsCollector:
    """The statistics of one file being written: ``observe`` the rows of each row group, then get the ``json``."""

    def __init__(self, plan: StatisticsPlan) -> None:
        self._plan = plan
        self._nested_nulls = {leaf.path: 0 for leaf in plan.leaves if leaf.kind == "nested"}
        self._floats = {leaf.path: _FloatBounds(leaf.data_type) for leaf in plan.leaves if leaf.kind == "floating"}
        self._long: dict[tuple[str, ...], tuple[bytes, bytes]] = {}

    def observe(self, rows: pa.Table) -> None:
        """Gather what the footer will not have. Call it before these rows are written as a row group."""
        for leaf in self._plan.leaves:
            if leaf.kind == "nested":
                self._nested_nulls[leaf.path] += _values(rows, leaf.indices).null_count
            elif leaf.kind == "floating":
                self._floats[leaf.path].add(_values(rows, leaf.indices))
            elif leaf.kind == "text":
                self._add_long(leaf, rows)

    def _add_long(self, leaf: _Leaf, rows: pa.Table) -> None:
        # a cheap test first: no string is longer than all bytes of its column
        if rows.column(leaf.indices[0]).nbytes <= _LONGEST_FOOTER_BYTES:
            return
        values = _values(rows, leaf.indices)
        longest = pc.max(pc.binary_length(values)).as_py()
        if longest is not None and longest > _LONGEST_FOOTER_BYTES:
            # compared as bytes: text from Spark may not be UTF-8
            found = pc.min_max(values.cast(pa.binary())).as_py()
            low, high = self._long.get(leaf.path, (found["min"], found["max"]))
            self._long[leaf.path] = min(low, found["min"]), max(high, found["max"])

    def json(self, footer: Any) -> str:
        """The statistics of the file whose ``FileMetaData`` is ``footer``."""
        groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
        columns = [(leaf.path, *self._of(leaf, groups, footer.num_rows)) for leaf in self._plan.leaves]
        return statistics_json(footer.num_rows, columns, tight_bounds=self._plan.tight_bounds)

    def _of(
        self, leaf: _Leaf, groups: Sequence[Any], num_rows: int
    ) -> tuple[int | None, tuple[str | None, str | None] | None]:
        """The null count and the bounds as JSON; None if unknown or absent."""
        if leaf.column is None:
            return num_rows, None
        if leaf.kind == "nested":
            return self._nested_nulls[leaf.path], None
        if leaf.kind == "floating":
            return self._floats[leaf.path].nulls, self._floats[leaf.path].shown()
        found = [group.column(leaf.column.first_leaf).statistics for group in groups]
        known = all(s is not None and s.has_null_count for s in found)
        count = sum(s.null_count for s in found) if known else None
        if leaf.kind == "counted" or count == num_rows:
            return count, None
        with_values = [s for s in found if s is None or s.num_values or not s.has_null_count]
        raw = [(_ordered(s.min_raw, leaf), _ordered(s.max_raw, leaf)) for s in with_values if s and s.has_min_max]
        if len(raw) < len(with_values):
            # strings too long for the footer of a row group were observed when it was written
            if leaf.path not in self._long:
                return count, None
            raw.append(self._long[leaf.path])
        low, high = min(low for low, _ in raw), max(high for _, high in raw)
        return count, self._shown(leaf, low, high)

    def _shown(self, leaf: _Leaf, low: Any, high: Any) -> tuple[str | None, str | None] | None:
        if leaf.kind == "text":
            return _text_bounds(low, high, self._plan.prefix_length)
        show = _SHOWN[leaf.kind]
        return show(low, leaf.data_type), show(high, leaf.data_type)


class _FloatBounds:
    """Bounds by IEEE's total order, with -0.0 below 0.0 and NaN above all values, which also fit Spark's order.

    They are computed on the bits: among positive values, bits order as the values do; among negative values, the
    reverse. That is four times as fast as comparing floats, and it detects NaN and the sign of zero.
    """

    def __init__(self, data_type: DataType) -> None:
        self._is_float = data_type == FLOAT
        self._format = "<f" if self._is_float else "<d"
        self._signed, self._unsigned = (pa.int32(), pa.uint32()) if self._is_float else (pa.int64(), pa.uint64())
        self._infinity, self._negative_infinity = (
            int.from_bytes(struct.pack(self._format, sign * math.inf), "little") for sign in (1, -1)
        )
        self._low: float | None = None
        self._high: float | None = None
        self._nan = False
        self.nulls = 0

    def add(self, values: pa.ChunkedArray) -> None:
        self.nulls += values.null_count
        self._bound(values)

    def _bound(self, values: pa.ChunkedArray) -> None:
        unsigned = pc.min_max(self._viewed(values, self._unsigned)).as_py()
        if unsigned["min"] is None:
            return
        least, most = unsigned["min"], unsigned["max"]
        greatest = pc.max(self._viewed(values, self._signed)).as_py()
        if greatest > self._infinity or most > self._negative_infinity:
            self._nan = True
            self._bound(values.filter(pc.invert(pc.is_nan(values))))
            return
        low = self._value(most if most > self._infinity else least)
        # for engines that compare by total order, a maximum of -0.0 must not skip rows equal to 0
        high = self._value(greatest if greatest >= 0 else least) + 0.0
        self._low = low if self._low is None else min(self._low, low, key=_total_order)
        self._high = high if self._high is None else max(self._high, high, key=_total_order)

    def _viewed(self, values: pa.ChunkedArray, data_type: pa.DataType) -> pa.ChunkedArray:
        return pa.chunked_array([chunk.view(data_type) for chunk in values.chunks], data_type)

    def _value(self, bits: int) -> float:
        return float(struct.unpack(self._format, bits.to_bytes(4 if self._is_float else 8, "little"))[0])

    def shown(self) -> tuple[str, str] | None:
        if self._low is None or self._high is None:
            return ('"NaN"', '"NaN"') if self._nan else None
        return self._json(self._low), '"NaN"' if self._nan else self._json(self._high)

    def _json(self, value: float) -> str:
        if math.isinf(value):
            return '"Infinity"' if value > 0 else '"-Infinity"'
        # a float in its own shortest form, as the reference prints it
        return repr(float(shortest_float(value)) if self._is_float else value)


def _total_order(value: float) -> tuple[float, float]:
    return value, math.copysign(1.0, value)


def _values(rows: pa.Table, indices: Sequence[int]) -> pa.ChunkedArray:
    """A column or nested field; null where a struct around it is null."""
    column = rows.column(indices[0])
    return pc.struct_field(column, list(indices[1:])) if len(indices) > 1 else column


def _ordered(raw: Any, leaf: _Leaf) -> Any:
    """A raw bound of a footer as bytes or a number that orders like the values."""
    return int.from_bytes(raw, "big", signed=True) if leaf.kind == "decimal" and isinstance(raw, bytes) else raw


# --- JSON

# path, null count, and both bounds as JSON; None if unknown
ColumnStatistics = tuple[tuple[str, ...], "int | None", "tuple[str | None, str | None] | None"]


def statistics_json(num_records: int, columns: Iterable[ColumnStatistics], *, tight_bounds: bool = False) -> str:
    """``add.stats``. Protocol: "Per-file Statistics"."""
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    nulls: dict[str, Any] = {}
    for path, count, bounds in columns:
        if count is not None:
            _put(nulls, path, str(count))
        for target, text in zip((low, high), bounds or (), strict=False):
            if text is not None:
                _put(target, path, text)
    parts = [f'"numRecords":{num_records}']
    for name, tree in (("minValues", low), ("maxValues", high), ("nullCount", nulls)):
        if tree:
            parts.append(f'"{name}":{_object(tree)}')
    if tight_bounds:
        parts.append('"tightBounds":true')
    return "{" + ",".join(parts) + "}"


def bounds_as_json(
    data_type: DataType, low: Any, high: Any, prefix_length: int
) -> tuple[str | None, str | None] | None:
    """Bounds of a column as JSON for statistics; None for a type without bounds.

    Args:
        low, high: as in a footer: integers, also for dates (days), timestamps (microseconds) and decimals (unscaled),
            and the bytes of strings.
        prefix_length: the maximum length of strings, in code points.
    """
    kind = _Leaf((), data_type).kind
    if kind == "text":
        return _text_bounds(low, high, prefix_length)
    show = _SHOWN.get(kind)
    return None if show is None else (show(low, data_type), show(high, data_type))


def _put(tree: dict[str, Any], path: Sequence[str], text: str) -> None:
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = text


def _object(tree: dict[str, Any]) -> str:
    """Values are JSON already, so numbers are never converted to floats."""
    return (
        "{"
        + ",".join(
            f"{_name(name)}:{_object(value) if isinstance(value, dict) else value}" for name, value in tree.items()
        )
        + "}"
    )


@lru_cache(maxsize=4096)
def _name(name: str) -> str:
    return _string(name)


def _decimal(unscaled: int, data_type: DataType) -> str:
    assert isinstance(data_type, DecimalType)
    return format(Decimal(unscaled).scaleb(-data_type.scale, _EXACT), "f")


def show_milliseconds(micros: int) -> str:
    """``yyyy-mm-ddThh:mm:ss.SSS``, rounded down to the millisecond, also before 1970."""
    seconds, fraction = divmod(micros, 1_000_000)
    day, time = show_timestamp(seconds * 1_000_000).rsplit(" ", 1)
    return f"{day}T{time}.{fraction // 1000:03d}"


def _moment(micros: int, zone: str) -> str | None:
    # rounded down, the lowest timestamps would not fit their type
    return None if micros - micros % 1000 < _LEAST_MICROS else f'"{show_milliseconds(micros)}{zone}"'


_SHOWN: dict[str, Callable[[Any, DataType], str | None]] = {
    "whole": lambda value, _: str(value),
    "decimal": _decimal,
    "date": lambda value, _: f'"{show_date(value)}"',
    "timestamp": lambda value, _: _moment(value, "Z"),
    "timestamp_ntz": lambda value, _: _moment(value, ""),
}


# --- strings


def _text_bounds(low: bytes, high: bytes, length: int) -> tuple[str | None, str | None] | None:
    try:
        least, greatest = low.decode(), high.decode()
    except UnicodeDecodeError:
        return None
    cut = cut_maximum(greatest, length)
    return _string(least[:length]), None if cut is None else _string(cut)


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def cut_maximum(text: str, length: int) -> str | None:
    """An upper bound, in byte order, of ``text`` and all smaller strings, with about ``length`` code points.

    The text is truncated, and a character greater than the first dropped one is appended. If the first dropped
    character is the greatest of all, the cut comes after it, but not beyond twice the length.

    Returns: The bound; None if no text of this length is an upper bound.
    """
    if len(text) <= length:
        return text
    if length <= 0:
        return None
    at = length
    units = length + sum(c > "\uffff" for c in text[:length])
    while units <= 2 * length:
        if at == len(text):
            return text
        if text[at] != _MAX_CODE_POINT:
            return text[:at] + (_TIE_BREAKER if text[at] < _TIE_BREAKER else _MAX_CODE_POINT)
        at, units = at + 1, units + 2
    return None
