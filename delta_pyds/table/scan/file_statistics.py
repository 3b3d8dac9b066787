"""Partition values and statistics of files as Arrow columns.

Invariant: a value may be unknown for a file (null) or for all files (None), but a known value is never wrong. A value
that cannot be parsed is unknown.

Protocol: "Per-file Statistics", "Partition Value Serialization".
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from decimal import Context, Decimal, localcontext
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.columnar.schema import arrow_type
from delta_pyds.columnar.statistics_json import StatisticsReader, struct_of
from delta_pyds.errors import ProtocolError
from delta_pyds.expr.stats_rewrite import Needs
from delta_pyds.log.statistics_cache import Columns
from delta_pyds.protocol.partition_values import invalid_in_file, parse_partition_value
from delta_pyds.protocol.schema import DataType, DecimalType, PrimitiveType, StructType
from delta_pyds.protocol.type_changes import recorded_changes

Path = tuple[str, ...]

_NUM_RECORDS = ("numRecords", None)
_INTEGERS = ("byte", "short", "integer", "long")
_TEXTUAL = ("string", "date", "timestamp", "timestamp_ntz")
# Statistics in JSON are cut to milliseconds: a maximum may be up to 1 ms too low.
_CUT_MICROS = 1_000
_MAX_INT64 = (1 << 63) - 1
# Some writers print decimal bounds as doubles, with only 15 exact digits.
_EXACT_DOUBLE_DIGITS = 15


class SkippingColumns:
    """The fields of ``add`` that a skipping predicate needs, and how to read them.

    Built once per scan from the predicate's needs; ``of`` reads them from a batch.
    """

    def __init__(self, needs: Needs, schema: StructType, time_zone: str, table: str = "") -> None:
        """``table``: the root of the table, for messages."""
        self.time_zone = time_zone
        self.table = table
        self.partition_types = {
            f.name: (f.physical_name, f.data_type) for f in schema if f.name in needs.partition_columns
        }
        self.physical: dict[Path, tuple[Path, DataType]] = {}
        self.without_bounds: set[Path] = set()
        for path in needs.bounds | needs.null_count:
            physical, data_type, widened = _physical(schema, path)
            self.physical[path] = physical, data_type
            if widened:
                self.without_bounds.add(path)
        self._leaves = tuple(
            [(kind, p) for kind in ("minValues", "maxValues") for p in sorted(needs.bounds)]
            + [("nullCount", p) for p in sorted(needs.null_count)]
        )
        self._num_records = needs.num_records

    @cached_property
    def json_type(self) -> pa.StructType:
        """The part of the statistics to read out of their JSON."""
        tree: dict[str, Any] = {"numRecords": pa.int64()} if self._num_records else {}
        for kind, path in self._leaves:
            physical, data_type = self.physical[path]
            leaf = pa.int64() if kind == "nullCount" else _json_leaf(data_type)
            if leaf is None:
                continue
            node = tree.setdefault(kind, {})
            for name in physical[:-1]:
                node = node.setdefault(name, {})
                if not isinstance(node, dict):
                    break
            if isinstance(node, dict):
                node.setdefault(physical[-1], leaf)
        return struct_of(tree)

    @cached_property
    def statistics(self) -> StatisticsReader:
        return StatisticsReader(self.json_type)

    @property
    def json_fields(self) -> tuple[str, ...]:
        """Fields of ``add`` to read if statistics are JSON."""
        return (*self._partition_field, *(("stats",) if self.json_type.num_fields else ()))

    @property
    def parsed_fields(self) -> tuple[str, ...]:
        """Fields of ``add`` to read if the checkpoint has ``stats_parsed``."""
        leaves = [".".join(("stats_parsed", kind, *self.physical[path][0])) for kind, path in self._leaves]
        records = ("stats_parsed.numRecords",) if self._num_records else ()
        return (*self._partition_field, *records, *leaves)

    @property
    def _partition_field(self) -> tuple[str, ...]:
        return ("partitionValues",) if self.partition_types else ()

    @cached_property
    def _wanted(self) -> tuple[tuple[str, Any], ...]:
        """The kind and the name of each column."""
        partitions = [("partition", name) for name in sorted(self.partition_types)]
        return (*partitions, *self._leaves, *([_NUM_RECORDS] if self._num_records else ()))

    @cached_property
    def keys(self) -> tuple[Hashable, ...]:
        """A key for each of ``columns``: equal keys mean equal values, for any table or predicate."""
        return tuple(self._key(kind, name) for kind, name in self._wanted)

    def _key(self, kind: str, name: Any) -> Hashable:
        if kind == "partition":
            physical, data_type = self.partition_types[name]
            return kind, physical, repr(data_type), self.time_zone
        if kind == "numRecords":
            return kind
        path, data_type = self.physical[name]
        return (kind, path) if kind == "nullCount" else (kind, path, repr(data_type), name in self.without_bounds)

    def columns(self, add: pa.StructArray) -> Columns:
        """The needed values of add actions, typed, in the order of ``keys``.

        ``add`` must have the fields that the predicate needs; where it is null, values are unknown.
        Raises: ProtocolError for an invalid partition value; it names the file if ``add`` has paths.
        """
        statistics = self._statistics_of(add)
        bounds: dict[tuple[str, Path], pa.Array | None] = {}
        for path in {name for kind, name in self._leaves if kind != "nullCount"} - self.without_bounds:
            physical, data_type = self.physical[path]
            bounds["minValues", path], bounds["maxValues", path] = _bounds(statistics, physical, data_type)
        return tuple(self._column(kind, name, add, statistics, bounds) for kind, name in self._wanted)

    def _column(
        self,
        kind: str,
        name: Any,
        add: pa.StructArray,
        statistics: pa.StructArray | None,
        bounds: Mapping[tuple[str, Path], pa.Array | None],
    ) -> pa.Array | None:
        if kind == "partition":
            physical, data_type = self.partition_types[name]
            texts = partition_strings(add, physical)
            paths = _child(add, "path") if add.type.get_field_index("path") >= 0 else None
            return typed_partition_values(
                texts, data_type, self.time_zone, paths=paths, table=self.table, column=str(name)
            )
        if kind == "numRecords":
            return _integers(_nested_field(statistics, ("numRecords",)))
        if kind == "nullCount":
            return _integers(_nested_field(statistics, (kind, *self.physical[name][0])))
        return bounds.get((kind, name))

    def _statistics_of(self, add: pa.StructArray) -> pa.StructArray | None:
        names = {field.name for field in add.type}
        if "stats_parsed" in names:
            return _child(add, "stats_parsed")
        if "stats" in names and self.json_type.num_fields:
            return self.statistics.read(_child(add, "stats"))
        return None

    def bind(self, columns: Columns, num_files: int) -> FileStatistics:
        return FileStatistics(num_files, dict(zip(self._wanted, columns, strict=True)))

    def of(self, add: pa.StructArray) -> FileStatistics:
        return self.bind(self.columns(add), len(add))


class FileStatistics:
    """Partition values and statistics of some files, by kind and name, as read by ``SkippingColumns``."""

    def __init__(self, num_files: int, known: Mapping[tuple[str, Any], pa.Array | None]) -> None:
        self.num_files = num_files
        self._known = known

    def partition(self, name: str) -> pa.Array:
        found = self._known["partition", name]
        assert found is not None
        return found

    def minimum(self, path: Path) -> pa.Array | None:
        return self._known.get(("minValues", path))

    def maximum(self, path: Path) -> pa.Array | None:
        return self._known.get(("maxValues", path))

    def null_count(self, path: Path) -> pa.Array | None:
        return self._known.get(("nullCount", path))

    def num_records(self) -> pa.Array | None:
        return self._known.get(_NUM_RECORDS)


def _bounds(
    statistics: pa.StructArray | None, path: Path, data_type: DataType
) -> tuple[pa.Array | None, pa.Array | None]:
    """Minimum and maximum of a column, by its physical path, widened so that every value lies between them.

    If the minimum exceeds the maximum, both are unknown. The bounds are compared before they are widened, because
    widening could hide the contradiction.
    """
    found = (_nested_field(statistics, (kind, *path)) for kind in ("minValues", "maxValues"))
    low, high = (None if bound is None else _typed(bound, data_type) for bound in found)
    if low is not None and high is not None:
        contradict = pc.greater(low, high)
        if pc.any(contradict).as_py():
            low, high = (pc.if_else(contradict, pa.scalar(None, bound.type), bound) for bound in (low, high))
    return _widened(low, data_type, -1), _widened(high, data_type, 1)


def _widened(bound: pa.Array | None, data_type: DataType, direction: int) -> pa.Array | None:
    """A bound moved outwards by the maximum rounding error of its type."""
    if bound is None:
        return None
    if direction > 0 and pa.types.is_timestamp(bound.type):
        return _raise_by_a_millisecond(bound)
    if isinstance(data_type, DecimalType) and data_type.precision > _EXACT_DOUBLE_DIGITS:
        return _widen_decimal(bound, data_type, direction)
    return bound


def partition_strings(add: pa.StructArray, physical_name: str) -> pa.Array:
    """The strings of one partition column in ``add.partitionValues``; null where absent."""
    values = _child(add, "partitionValues")
    if pa.types.is_map(values.type):
        return pc.map_lookup(values, query_key=pa.scalar(physical_name, values.type.key_type), occurrence="last").cast(
            pa.string()
        )
    return pa.nulls(len(add), pa.string())


def typed_partition_values(
    values: pa.Array,
    data_type: DataType,
    time_zone: str,
    *,
    paths: pa.Array | None = None,
    table: str = "",
    column: str = "",
) -> pa.Array:
    """Parse a column of partition value strings; each distinct string is parsed once.

    Args:
        paths: of the files, in the same order; with ``table`` and ``column``, for the message.
    Raises:
        ProtocolError: a string is invalid. With ``paths``, the error names the first file that has it.
    """
    encoded = values.dictionary_encode()
    parsed = []
    for text in encoded.dictionary.to_pylist():
        try:
            parsed.append(parse_partition_value(text, data_type, time_zone))
        except ProtocolError as e:
            path = None if paths is None else paths[pc.index(values, pa.scalar(text, values.type)).as_py()].as_py()
            if path is None:
                raise
            raise invalid_in_file(e, table, path, column) from None
    return pa.array(parsed, arrow_type(data_type)).take(encoded.indices)


def _json_leaf(data_type: DataType) -> pa.DataType | None:
    """The Arrow type of a bound of this type in JSON; None for types whose bounds are not used."""
    if isinstance(data_type, DecimalType):
        return pa.decimal128(data_type.precision, data_type.scale)
    if isinstance(data_type, PrimitiveType):
        if data_type.name in _INTEGERS:
            return pa.int64()
        if data_type.name in ("float", "double"):
            return pa.float64()
        if data_type.name in _TEXTUAL:
            return pa.string()
        if data_type.name == "boolean":
            return pa.bool_()
    return None


def _physical(schema: StructType, path: Path) -> tuple[Path, DataType, bool]:
    """The physical path, the type, and whether the column was widened from float.

    A float is printed in its shortest form, such as 0.7. As a double, the same float is 0.699999988. So bounds of a
    widened column may lie on the wrong side of its values.
    """
    names = []
    current: DataType = schema
    widened = False
    for name in path:
        assert isinstance(current, StructType)
        field = current.find(name)
        assert field is not None
        names.append(field.physical_name)
        current = field.data_type
        widened = any(change.get("fromType") == "float" for change in recorded_changes(field))
    return tuple(names), current, widened


def _child(array: pa.StructArray, name: str) -> pa.Array:
    """A field of a struct column; null where the struct is null."""
    child = array.field(name)
    if array.null_count:
        return pc.if_else(array.is_valid(), child, pa.scalar(None, child.type))
    return child


def _nested_field(array: pa.StructArray | None, path: Iterable[str]) -> pa.Array | None:
    for name in path:
        if array is None or not pa.types.is_struct(array.type) or array.type.get_field_index(name) < 0:
            return None
        array = _child(array, name)
    return array


def _integers(array: pa.Array | None) -> pa.Array | None:
    if array is None or not pa.types.is_integer(array.type):
        return None
    return array.cast(pa.int64())


def _typed(array: pa.Array, data_type: DataType) -> pa.Array | None:
    """A bound in the column's own Arrow type; null where it is invalid."""
    target = arrow_type(data_type)
    if array.type.equals(target):
        return array
    if pa.types.is_string(array.type):
        return _typed_text(array, data_type, target)
    if pa.types.is_struct(array.type) or pa.types.is_struct(target):
        return None
    try:
        # statistics of a float are printed from the float: rounding back is exact
        return array.cast(target, safe=not pa.types.is_floating(target))
    except pa.ArrowException:
        return None


def _typed_text(array: pa.Array, data_type: DataType, target: pa.DataType) -> pa.Array | None:
    if not isinstance(data_type, PrimitiveType) or data_type.name not in _TEXTUAL:
        return None
    try:
        return array.cast(target)
    except pa.ArrowException:
        return pa.array([_parsed_bound(v, data_type) for v in array.to_pylist()], target)


def _parsed_bound(text: str | None, data_type: DataType) -> Any:
    # a timestamp without a zone is ambiguous if the column needs a zone
    if text is None or (data_type == PrimitiveType("timestamp") and not text.rstrip().endswith(("Z", "UTC"))):
        return None
    try:
        return parse_partition_value(text, data_type, "UTC")
    except ProtocolError:
        return None


def _widen_decimal(array: pa.Array, data_type: DecimalType, direction: int) -> pa.Array:
    """Move bounds of more than 15 digits outwards by the rounding error of a double."""
    limit = Decimal(1).scaleb(_EXACT_DOUBLE_DIGITS - data_type.scale)
    long = pc.or_(pc.greater_equal(array, pa.scalar(limit)), pc.less_equal(array, pa.scalar(-limit)))
    if not pc.any(long).as_py():
        return array
    with localcontext(Context(prec=80)):
        largest = Decimal(10**data_type.precision - 1).scaleb(-data_type.scale)
        step = Decimal(1).scaleb(-data_type.scale)

        def widen(value: Decimal | None) -> Decimal | None:
            if value is None or abs(value) < limit:
                return value
            moved = (value + direction * abs(value).scaleb(-_EXACT_DOUBLE_DIGITS)).quantize(step)
            return max(-largest, min(largest, moved))

        return pa.array([widen(v) for v in array.to_pylist()], array.type)


def _raise_by_a_millisecond(array: pa.Array) -> pa.Array:
    micros = array.cast(pa.int64())
    headroom = pc.less_equal(micros, pa.scalar(_MAX_INT64 - _CUT_MICROS))
    raised = pc.if_else(headroom, pc.add(micros, pa.scalar(_CUT_MICROS)), pa.scalar(_MAX_INT64))
    return raised.cast(array.type)
