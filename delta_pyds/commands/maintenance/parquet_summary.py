"""What the footer of a Parquet file says, for a table that takes the file over: its columns, and their statistics.

Invariants: a column has the type that Spark's own reader gives it, or the file is refused; a bound is one of every
value of the file, or there is none. Of floating point columns there are no bounds: footers say nothing of NaN.

Protocol: "Schema Serialization Format", "Per-file Statistics".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from delta_pyds.columnar.cast import ColumnLocation, is_list_like
from delta_pyds.columnar.parquet_footer import ParquetFooter, open_parquet
from delta_pyds.columnar.schema import arrow_type
from delta_pyds.data.file_schema import FileColumn, file_columns
from delta_pyds.data.read.calendar import uses_julian_dates, uses_julian_int96
from delta_pyds.data.read.data_file import Naming
from delta_pyds.data.read.footer_statistics import RowGroupStatistics
from delta_pyds.data.read.row_groups import RowGroup
from delta_pyds.data.read.transform import Binding
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

_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
# what Spark's own schema says of a column that a table keeps
_KEPT_METADATA = ("comment", "__CHAR_VARCHAR_TYPE_STRING")
# types that Spark stores as other ones, and that no footer shows to a reader that does not know them
_HIDDEN_TYPES = ("variant", "interval", "calendar_interval", "calendarinterval", "udt")
# where a type stands in Spark's JSON of one; what else has a text is a name or a comment
_TYPE_KEYS = ("type", "elementType", "keyType", "valueType", "sqlType")
_NAMES = {
    pa.string(): "string", pa.large_string(): "string", pa.string_view(): "string", pa.binary(): "binary",
    pa.large_binary(): "binary", pa.binary_view(): "binary", pa.int8(): "byte", pa.int16(): "short",
    pa.int32(): "integer", pa.int64(): "long", pa.float32(): "float", pa.float64(): "double", pa.bool_(): "boolean",
    pa.date32(): "date",
}  # fmt: skip


@dataclass(frozen=True)
class ParquetSummary:
    """``columns``: all nullable. ``statistics``: of the leaves outside of lists and maps that were asked for."""

    columns: tuple[StructField, ...]
    num_rows: int
    statistics: tuple[ColumnStatistics, ...]


def summarize(
    storage: Storage,
    root: str,
    path: str,
    *,
    prefix_length: int,
    statistics_of: Callable[[tuple[StructField, ...]], Set[tuple[str, ...]] | None],
) -> ParquetSummary:
    """Read the footer of a file. ``prefix_length``: of strings in bounds. ``statistics_of``: which leaves of these
    columns have statistics; None for all.

    Raises: CorruptDataFileError for what is no Parquet file; UnsupportedOperationError for a column of a type that no
        table has.
    """
    with Naming(root, path):
        parquet = open_parquet(storage.parquet_source(path))
        try:
            metadata = parquet.metadata
            columns = file_columns(parquet.schema_arrow)
            fields = _fields(path, columns, metadata)
            bindings = dict(_bindings(path, columns, fields, ()))
            chosen = statistics_of(fields)
            if chosen is not None:
                bindings = {leaf: binding for leaf, binding in bindings.items() if leaf in chosen}
            statistics = tuple(_statistics(bindings, metadata, prefix_length))
            return ParquetSummary(fields, int(metadata.num_rows), statistics)
        finally:
            parquet.close(force=True)


# --- the schema


def _fields(path: str, columns: tuple[FileColumn, ...], metadata: Any) -> tuple[StructField, ...]:
    known = _known_to_spark(path, (metadata.metadata or {}).get(_SPARK_SCHEMA))
    fields = []
    for column in columns:
        said = known.get(column.name)
        kept = {} if said is None else {key: said.metadata[key] for key in _KEPT_METADATA if key in said.metadata}
        fields.append(StructField(column.name, _type(path, column, metadata, column.name), True, kept))
    return tuple(fields)


def _known_to_spark(path: str, text: bytes | None) -> dict[str, StructField]:
    """What Spark noted of the columns, beside what the file itself says."""
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
    """All names of types in Spark's JSON of a type or a field, each with the name of the field nearest to it."""
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
        f"the file {path!r} has the column {name} of the Parquet type {data_type}, which no Delta table has. Rewrite "
        "the files with another type.",
        code="DELTA_UNSUPPORTED_DATA_TYPES",
        path=path,
        column=name,
    )


# --- statistics


def _statistics(
    bindings: Mapping[tuple[str, ...], Binding], metadata: Any, prefix_length: int
) -> Iterator[ColumnStatistics]:
    marks = metadata.metadata or {}
    groups = [RowGroup(i, 0, metadata.row_group(i).num_rows) for i in range(metadata.num_row_groups)]
    statistics = RowGroupStatistics(
        metadata,
        ParquetFooter(metadata),
        groups,
        bindings.get,
        _no_partition,
        julian=uses_julian_dates(marks) or uses_julian_int96(marks),
    )
    for leaf, binding in bindings.items():
        nulls = statistics.null_count(leaf)
        count = None if nulls is None or nulls.null_count else sum(nulls.to_pylist())
        yield leaf, count, _bounds(statistics, leaf, binding.data_type, nulls, prefix_length)


def _bindings(
    path: str, columns: tuple[FileColumn, ...], fields: tuple[StructField, ...], above: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Binding]]:
    for column, field in zip(columns, fields, strict=True):
        leaf = (*above, field.name)
        if isinstance(field.data_type, StructType):
            yield from _bindings(path, column.children, field.data_type.fields, leaf)
        elif not isinstance(field.data_type, ArrayType | MapType):
            where = ColumnLocation(path, ".".join(leaf))
            yield leaf, Binding(where, field.data_type, arrow_type(field.data_type), column)


def _no_partition(name: str) -> pa.Scalar:
    raise AssertionError(name)


def _bounds(
    statistics: RowGroupStatistics, leaf: tuple[str, ...], data_type: DataType, nulls: Any, prefix_length: int
) -> tuple[str | None, str | None] | None:
    if data_type in (PrimitiveType("float"), PrimitiveType("double"), PrimitiveType("boolean")):
        return None
    low, high = statistics.minimum(leaf), statistics.maximum(leaf)
    if low is None or high is None:
        return None
    if nulls is not None and nulls.equals(statistics.num_records()):
        return None
    if nulls is not None and len(nulls) > 1:
        # a row group of nulls alone has no bounds, and needs none
        with_values = pc.fill_null(pc.not_equal(nulls, statistics.num_records()), True)
        low, high = low.filter(with_values), high.filter(with_values)
    if not len(low) or low.null_count or high.null_count:
        return None
    if len(low) == 1:
        # of most files, and of very many of them: a kernel takes longer than a look
        least, greatest = _raw(low[0], data_type), _raw(high[0], data_type)
    else:
        least, greatest = _raw(pc.min(low), data_type), _raw(pc.max(high), data_type)
    if least > greatest:
        return None
    return bounds_as_json(data_type, least, greatest, prefix_length)


def _raw(bound: pa.Scalar, data_type: DataType) -> Any:
    """As ``bounds_as_json`` takes it."""
    if pt.is_date32(bound.type) or pt.is_timestamp(bound.type):
        return bound.value
    value = bound.as_py()
    if isinstance(data_type, DecimalType):
        return int(value.scaleb(data_type.scale))
    return value.encode() if isinstance(value, str) else value
