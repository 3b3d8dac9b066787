"""Parquet files rewritten: sound files that say something else, or keep it in another way."""

from __future__ import annotations

import io
from collections.abc import Sequence
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


def rewritten(content: bytes, random: Random) -> tuple[bytes, str] | None:
    """The file with one change to its columns, values or form; None where the change cannot be made."""
    table = pq.read_table(io.BytesIO(content), use_threads=False)
    kind = random.choice([_values, _values, _values, _nulls, _types, _types, _columns, _rows, _form, _metadata])
    try:
        changed, options, what = kind(table, random)
        out = io.BytesIO()
        pq.write_table(changed, out, **{"store_schema": False, "write_page_checksum": True, **options})
    except (pa.ArrowException, ValueError, TypeError, OverflowError, KeyError):
        return None
    return out.getvalue(), what


_Change = tuple[pa.Table, dict[str, Any], str]


def _values(table: pa.Table, random: Random) -> _Change:
    """One value becomes another one of its type."""
    rows = table.to_pylist()
    rows = rows or [{}]
    row = random.randrange(len(rows))
    spots = _leaves(rows[row], table.schema)
    path, data_type = random.choice(spots)
    new = _value(data_type, random)
    _set(rows[row], path, new)
    changed = pa.Table.from_pylist(rows, schema=table.schema)
    return changed, {}, f"row {row} {'.'.join(map(str, path))} is {str(new)[:60]!a}"


def _leaves(value: Any, fields: Any, path: tuple[Any, ...] = ()) -> list[tuple[tuple[Any, ...], pa.DataType]]:
    found = []
    for f in fields:
        child = value.get(f.name)
        if pa.types.is_struct(f.type) and child is not None:
            found += _leaves(child, f.type, (*path, f.name))
        found.append(((*path, f.name), f.type))
    return found


def _set(row: dict[str, Any], path: tuple[Any, ...], new: Any) -> None:
    for step in path[:-1]:
        row = row[step]
    row[path[-1]] = new


def _value(data_type: pa.DataType, random: Random) -> Any:
    if random.random() < 0.15:
        return None
    if pa.types.is_integer(data_type):
        most = 2 ** (data_type.bit_width - 1)
        return random.choice([0, -1, 1, most - 1, -most, 7, 1_000_000 % most])
    if pa.types.is_floating(data_type):
        return random.choice([0.0, -0.0, float("nan"), float("inf"), -1e300, 0.5])
    if pa.types.is_string(data_type) or pa.types.is_large_string(data_type):
        return random.choice(_TEXTS)
    if pa.types.is_binary(data_type):
        return random.choice([b"", b"\xff", b"\0" * 100])
    if pa.types.is_boolean(data_type):
        return random.random() < 0.5
    if pa.types.is_list(data_type):
        return random.choice([[], [None], [_value(data_type.value_type, random)] * 3])
    if pa.types.is_map(data_type):
        return random.choice([[], [("", "")], [("p", "1"), ("p", "2")], [(random.choice(_TEXTS), None)]])
    if pa.types.is_struct(data_type):
        return {f.name: _value(f.type, random) for f in data_type}
    return None


_TEXTS = (
    "", "a", "\0", "../x", "/dev/zero", "%", "%zz", "file:///dev/zero", "s3://b/x?endpoint_override=127.0.0.1:9", "{}",
    "{", "[" * 5_000, '{"numRecords":1e999999999}', '{"numRecords":-1}', '{"numRecords":9,"minValues":[]}', "null", "i",
    '{"numRecords":1,"minValues":{"id":1e999999999},"maxValues":{"id":"x"},"nullCount":{"id":-1}}', "x" * 100_000,
    '{"type":"struct","fields":[]}', "1970-01-01", "u", "p", "é", "2024-02-30", "\x1b[31m",
)  # fmt: skip


def _nulls(table: pa.Table, random: Random) -> _Change:
    at = random.randrange(table.num_columns)
    f = table.schema.field(at)
    return table.set_column(at, f, pa.nulls(table.num_rows, f.type)), {}, f"{f.name} is null everywhere"


def _types(table: pa.Table, random: Random) -> _Change:
    """A column, or a field of a struct, of another type."""
    at = random.randrange(table.num_columns)
    f = table.schema.field(at)
    array = table.column(at).combine_chunks()
    array = array if isinstance(array, pa.Array) else pa.concat_arrays(array.chunks)
    new, what = _other_type(array, random)
    return table.set_column(at, f.name, new), {}, f"{f.name}{what}"


def _other_type(array: pa.Array, random: Random) -> tuple[pa.Array, str]:
    if pa.types.is_struct(array.type) and array.type.num_fields and random.random() < 0.9:
        at = random.randrange(array.type.num_fields)
        names = [f.name for f in array.type]
        children = [array.field(i) for i in range(array.type.num_fields)]
        children[at], what = _other_type(children[at], random)
        if random.random() < 0.2 and len(children) > 1:
            name = names.pop(at)
            children.pop(at)
            what = " removed"
            return pa.StructArray.from_arrays(children, names, mask=array.is_null()), f".{name}{what}"
        return pa.StructArray.from_arrays(children, names, mask=array.is_null()), f".{names[at]}{what}"
    target = random.choice(_ARROW_TYPES)
    try:
        new = array.cast(target, safe=False)
    except (pa.ArrowException, ValueError):
        new = pa.nulls(len(array), target)
    return new, f" is of type {target}"


_ARROW_TYPES: Sequence[pa.DataType] = (
    pa.int8(), pa.int32(), pa.int64(), pa.uint64(), pa.float64(), pa.string(), pa.binary(), pa.large_string(),
    pa.binary(16), pa.bool_(), pa.decimal128(38, 10), pa.decimal256(70, 2), pa.timestamp("ns"),
    pa.timestamp("ms", "UTC"), pa.date32(), pa.time64("us"), pa.list_(pa.int64()), pa.map_(pa.string(), pa.string()),
    pa.float16(), pa.null(), pa.struct([("x", pa.int64())]), pa.list_(pa.list_(pa.string())),
    pa.map_(pa.int64(), pa.binary()), pa.duration("us"),
)  # fmt: skip


def _columns(table: pa.Table, random: Random) -> _Change:
    """A column goes, comes twice, or has another name."""
    at = random.randrange(table.num_columns)
    f = table.schema.field(at)
    kind = random.choice(["remove", "twice", "rename", "first", "none"])
    if kind == "remove":
        return table.remove_column(at), {}, f"{f.name} removed"
    if kind == "twice":
        return table.append_column(f, table.column(at)), {}, f"{f.name} twice"
    if kind == "rename":
        names = table.column_names
        names[at] = random.choice([f.name.upper(), "", f"{f.name}.x", "add", "\0", "é", f"{f.name} "])
        return table.rename_columns(names), {}, f"{f.name} renamed to {names[at]!a}"
    if kind == "first":
        return table.select([f.name, *(n for n in table.column_names if n != f.name)]), {}, f"{f.name} comes first"
    return table.select([]), {}, "no columns"


def _rows(table: pa.Table, random: Random) -> _Change:
    kind = random.choice(["none", "twice", "one", "reversed"])
    if kind == "none":
        return table.slice(0, 0), {}, "no rows"
    if kind == "twice":
        return pa.concat_tables([table, table]), {}, "each row twice"
    if kind == "one":
        at = random.randrange(max(1, table.num_rows))
        return table.slice(at, 1), {}, f"row {at} alone"
    return table.take(pa.array(range(table.num_rows - 1, -1, -1), pa.int64())), {}, "rows reversed"


def _form(table: pa.Table, random: Random) -> _Change:
    """The same rows in another form."""
    options: dict[str, Any] = random.choice([
        {"row_group_size": 1}, {"compression": "none"}, {"compression": "zstd"}, {"compression": "brotli"},
        {"compression": "gzip"}, {"compression": "lz4"}, {"data_page_version": "2.0"}, {"use_dictionary": False},
        {"write_statistics": False}, {"version": "1.0"}, {"data_page_size": 1}, {"write_page_checksum": False},
        {"store_schema": True}, {"write_page_index": True}, {"use_compliant_nested_type": False},
        {"use_deprecated_int96_timestamps": True}, {"coerce_timestamps": "ms", "allow_truncated_timestamps": True},
    ])  # fmt: skip
    return table, options, f"written with {options}"


def _metadata(table: pa.Table, random: Random) -> _Change:
    """Metadata of the file that other writers leave there."""
    key, value = random.choice([
        ("ARROW:schema", "!!!"), ("ARROW:schema", ""), ("ARROW:schema", "/////w=="), ("pandas", "{"),
        ("org.apache.spark.version", "2.4.0"), ("org.apache.spark.version", "x"),
        ("org.apache.spark.legacyDateTime", ""), ("org.apache.spark.legacyINT96", ""),
        ("org.apache.spark.timeZone", "Nowhere/Nowhere"), ("org.apache.spark.sql.parquet.row.metadata", "[" * 9_999),
        ("", ""), ("x" * 1_000_000, "y"),
    ])  # fmt: skip
    return table.replace_schema_metadata({key: value}), {}, f"metadata {key[:40]!r}: {value[:40]!r}"
