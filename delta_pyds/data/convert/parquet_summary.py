"""The columns and statistics of a Parquet file by its footer, for CONVERT TO DELTA.

Invariants: a column has the type that Spark's own reader gives it, or the file is refused. A bound covers every value
of the file, or is left out. Floating point columns have no bounds, because footers say nothing about NaN.

Protocol: "Schema Serialization Format", "Per-file Statistics".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
import pyarrow.types as pt

from delta_pyds.columnar.cast import is_list_like
from delta_pyds.columnar.parquet_footer import ColumnChunk, ParquetFooter, open_parquet
from delta_pyds.columnar.schema import arrow_type
from delta_pyds.data.file_schema import FileColumn, file_columns
from delta_pyds.data.read.calendar import uses_julian_dates, uses_julian_int96
from delta_pyds.data.read.data_file import NamedErrors
from delta_pyds.data.read.footer_statistics import EXACT_WRITERS, UNCUT_BYTES
from delta_pyds.data.write.statistics import ColumnStatistics, bounds_as_json
from delta_pyds.errors import ProtocolError, UnsupportedOperationError
from delta_pyds.protocol.foreign_json import InvalidJSONError, decode_json
from delta_pyds.protocol.schema import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    parse_schema,
)
from delta_pyds.storage.base import Storage
from delta_pyds.storage.parquet_ends import ParquetEnds

_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
# the metadata of a column in Spark's own schema that a table keeps
_KEPT_METADATA = ("comment", "__CHAR_VARCHAR_TYPE_STRING")
# types that Spark stores as other Parquet types: only Spark's own schema in the file shows them
_HIDDEN_TYPES = ("variant", "interval", "calendar_interval", "calendarinterval", "udt")
# the keys of types in Spark's JSON; other strings are names or comments
_TYPE_KEYS = ("type", "elementType", "keyType", "valueType", "sqlType")
_NAMES = {
    pa.string(): "string", pa.large_string(): "string", pa.string_view(): "string", pa.binary(): "binary",
    pa.large_binary(): "binary", pa.binary_view(): "binary", pa.int8(): "byte", pa.int16(): "short",
    pa.int32(): "integer", pa.int64(): "long", pa.float32(): "float", pa.float64(): "double", pa.bool_(): "boolean",
    pa.date32(): "date",
}  # fmt: skip


@dataclass(frozen=True)
class ParquetSummary:
    """``columns``: all nullable. ``statistics``: those of the requested leaves outside lists and maps."""

    columns: tuple[StructField, ...]
    num_rows: int
    statistics: tuple[ColumnStatistics, ...]


class ParquetSummaries:
    """Summaries of the files of a directory. Threads may share it.

    The work that depends only on the columns is done once for consecutive files with equal columns.

    Args:
        prefix_length: the maximum length of strings in bounds.
        statistics_of: returns which leaves of the given columns get statistics; None for all.
    """

    def __init__(
        self,
        storage: Storage,
        root: str,
        *,
        prefix_length: int,
        statistics_of: Callable[[tuple[StructField, ...]], Set[tuple[str, ...]] | None],
    ) -> None:
        self._storage = storage
        self._ends = ParquetEnds("footers")
        self._root = root
        self._prefix_length = prefix_length
        self._statistics_of = statistics_of
        self._last: _Columns | None = None

    def of(self, path: str) -> ParquetSummary:
        """Read the footer of a file. ``path``: absolute.

        Raises:
            CorruptDataFileError: it is not a Parquet file.
            UnsupportedOperationError: a column has a type that Delta does not support.
        """
        with NamedErrors(self._root, path):
            source = self._ends.open(self._storage, path)
            parquet = open_parquet(source)
            try:
                metadata = parquet.metadata
                # one read of the attribute: threads share it
                columns = self._last
                if columns is None or not columns.are_of(metadata):
                    columns = self._last = _Columns.of(path, parquet)
                chosen = self._statistics_of(columns.fields)
                leaves = [leaf for leaf in columns.leaves if chosen is None or leaf.path in chosen]
                footer = ParquetFooter(metadata, source)
                statistics = tuple(_statistics(columns, leaves, metadata, footer, self._prefix_length))
                return ParquetSummary(columns.fields, int(metadata.num_rows), statistics)
            finally:
                parquet.close(force=True)


@dataclass(frozen=True)
class _Columns:
    """Everything that depends only on a file's columns and its writer."""

    schema: Any  # pyarrow.parquet.ParquetSchema
    key_values: Mapping[bytes, bytes] | None
    writer: str | None
    fields: tuple[StructField, ...]
    leaves: tuple[_Leaf, ...]

    @classmethod
    def of(cls, path: str, parquet: Any) -> _Columns:
        """Raises: UnsupportedOperationError."""
        metadata = parquet.metadata
        columns = file_columns(parquet.schema_arrow)
        fields = _fields(path, columns, metadata)
        marks = metadata.metadata
        julian = uses_julian_dates(marks or {}) or uses_julian_int96(marks or {})
        leaves = tuple(_leaves(columns, fields, (), metadata.schema, julian))
        writer = metadata.created_by
        return cls(metadata.schema, marks, writer, fields, leaves)

    def are_of(self, metadata: Any) -> bool:
        """Whether another file has the same columns and the same writer."""
        return bool(
            metadata.schema.equals(self.schema)
            and metadata.metadata == self.key_values
            and metadata.created_by == self.writer
        )


# --- the schema


def _fields(path: str, columns: tuple[FileColumn, ...], metadata: Any) -> tuple[StructField, ...]:
    known = _fields_by_spark(path, (metadata.metadata or {}).get(_SPARK_SCHEMA))
    fields = []
    for column in columns:
        declared = known.get(column.name)
        kept = {} if declared is None else {k: declared.metadata[k] for k in _KEPT_METADATA if k in declared.metadata}
        fields.append(StructField(column.name, _type(path, column, metadata, column.name), True, kept))
    return tuple(fields)


def _fields_by_spark(path: str, text: bytes | None) -> dict[str, StructField]:
    """The fields in Spark's own schema of the file, by name."""
    if text is None:
        return {}
    shown = text.decode(errors="replace")
    try:
        for name, data_type in _spark_types(decode_json(shown), "a column"):
            # "interval day to second" is one type
            if data_type.partition(" ")[0] in _HIDDEN_TYPES:
                raise _unsupported(path, name, data_type)
        return {field.name: field for field in parse_schema(shown)}
    except (ProtocolError, InvalidJSONError):
        return {}


def _spark_types(value: Any, name: str) -> Iterator[tuple[str, str]]:
    """All type names in Spark's JSON of a type or a field, each with the name of the nearest field."""
    if not isinstance(value, dict):
        return
    own = value.get("name")
    name = own if isinstance(own, str) else name
    for key in _TYPE_KEYS:
        inner = value.get(key)
        if isinstance(inner, str):
            yield name, inner
        else:
            yield from _spark_types(inner, name)
    fields = value.get("fields")
    for field in fields if isinstance(fields, list) else ():
        yield from _spark_types(field, name)


def _type(path: str, column: FileColumn, metadata: Any, name: str) -> DataType:
    data_type = column.data_type
    if pt.is_struct(data_type):
        return StructType(
            tuple(StructField(c.name, _type(path, c, metadata, f"{name}.{c.name}"), True) for c in column.children)
        )
    if pt.is_map(data_type):
        key, value = (_type(path, c, metadata, f"{name}.{c.name}") for c in column.children)
        return MapType(key, value, True)
    if is_list_like(data_type):
        return ArrayType(_type(path, column.children[0], metadata, f"{name}.element"), True)
    if column.is_extension:
        raise _unsupported(path, name, str(data_type))
    if pt.is_timestamp(data_type):
        physical = metadata.schema.column(column.first_leaf).physical_type
        if physical == "INT96":
            return PrimitiveType("timestamp")
        if data_type.unit in ("us", "ms"):
            return PrimitiveType("timestamp_ntz" if data_type.tz is None else "timestamp")
    if pt.is_decimal128(data_type) and data_type.scale >= 0:
        return DecimalType(data_type.precision, data_type.scale)
    if pt.is_fixed_size_binary(data_type) and not pt.is_decimal(data_type):
        return PrimitiveType("binary")
    known = _NAMES.get(data_type)
    if known is None:
        raise _unsupported(path, name, str(data_type))
    return PrimitiveType(known)


def _unsupported(path: str, name: str, data_type: str) -> UnsupportedOperationError:
    return UnsupportedOperationError(
        f"the file {path!r} has the column {name} of the Parquet type {data_type}, which Delta does not support. "
        "Rewrite the files with another type.",
        code="DELTA_UNSUPPORTED_DATA_TYPES",
        path=path,
        column=name,
    )


# --- statistics


@dataclass(frozen=True)
class _Leaf:
    """A leaf column outside of lists and maps. ``number``: its index in the file. ``kind``: None without bounds."""

    path: tuple[str, ...]
    column: FileColumn
    data_type: DataType
    kind: Literal["number", "text", "bytes"] | None

    @property
    def number(self) -> int:
        return self.column.first_leaf


_WITHOUT_BOUNDS = tuple(map(PrimitiveType, ("float", "double", "boolean")))
_RANGES = {PrimitiveType("byte"): range(-(1 << 7), 1 << 7), PrimitiveType("short"): range(-(1 << 15), 1 << 15)}


def _leaves(
    columns: tuple[FileColumn, ...], fields: tuple[StructField, ...], above: tuple[str, ...], schema: Any, julian: bool
) -> Iterator[_Leaf]:
    for column, field in zip(columns, fields, strict=True):
        path = (*above, field.name)
        if isinstance(field.data_type, StructType):
            yield from _leaves(column.children, field.data_type.fields, path, schema, julian)
        elif not isinstance(field.data_type, ArrayType | MapType):
            physical = str(schema.column(column.first_leaf).physical_type)
            yield _Leaf(path, column, field.data_type, _kind(column, field.data_type, physical, julian))


def _kind(
    column: FileColumn, data_type: DataType, physical: str, julian: bool
) -> Literal["number", "text", "bytes"] | None:
    target = arrow_type(data_type)
    if data_type in _WITHOUT_BOUNDS or column.data_type != target:
        return None
    if julian and (pt.is_date(target) or pt.is_timestamp(target)):
        return None
    if physical == "BYTE_ARRAY" and pt.is_string(target):
        return "text"
    if physical == "BYTE_ARRAY" and pt.is_binary(target):
        return "bytes"
    return "number" if physical in ("INT32", "INT64") else None


def _statistics(
    columns: _Columns, leaves: Sequence[_Leaf], metadata: Any, footer: ParquetFooter, prefix_length: int
) -> Iterator[ColumnStatistics]:
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    cut = not str(columns.writer or "").startswith(EXACT_WRITERS)
    for leaf in leaves:
        found = [_parsed(footer.chunk(i, leaf.number), cut) for i in range(len(groups))]
        nulls = [chunk[0] for chunk in found]
        count = None if None in nulls else sum(n for n in nulls if n is not None)
        yield leaf.path, count, _bounds(leaf, groups, found, prefix_length)


# nulls, minimum, maximum of a column in a row group; None if unknown
_Chunk = tuple["int | None", Any, Any]


def _parsed(chunk: ColumnChunk, cut: bool) -> _Chunk:
    """The statistics in the footer. ``cut``: the writer may truncate a long maximum."""
    high = chunk.maximum
    if cut and isinstance(high, bytes) and len(high) >= UNCUT_BYTES:
        high = None
    return chunk.null_count, chunk.minimum, high


def _bounds(
    leaf: _Leaf, groups: Sequence[Any], found: Sequence[_Chunk], prefix_length: int
) -> tuple[str | None, str | None] | None:
    if leaf.kind is None:
        return None
    # a row group with only nulls has no bounds, and needs none
    with_values = [chunk for group, chunk in zip(groups, found, strict=True) if chunk[0] != group.num_rows]
    if not with_values or any(low is None or high is None for _, low, high in with_values):
        return None
    low, high = min(low for _, low, _ in with_values), max(high for _, _, high in with_values)
    if low > high or (leaf.kind == "text" and not (_is_text(low) and _is_text(high))):
        return None
    values = _RANGES.get(leaf.data_type) if isinstance(leaf.data_type, PrimitiveType) else None
    if values is not None and not (low in values and high in values):
        raise pa.ArrowInvalid(f"the bounds {low} and {high} of the column {'.'.join(leaf.path)} do not fit its type")
    return bounds_as_json(leaf.data_type, low, high, prefix_length)


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
