"""The schema of written files, as a Parquet reader sees it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_pyds.data.write.writer import DataFileWriter
from delta_pyds.errors import DeltaError, SchemaMismatchError, UserError
from delta_pyds.protocol.schema import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)
from tests.support.scans import struct
from tests.support.writes import batch_of, on_disk, read_back, write_files, write_rows, write_state


def _parquet_schema(tmp_path: Path, schema: StructType, row: dict[str, Any], **given: Any) -> Any:
    state = write_state(tmp_path, schema, **given)
    (file,) = write_rows(state, [row])
    return pq.ParquetFile(on_disk(state, file))


@pytest.mark.parametrize(
    ("data_type", "physical", "logical"),
    [
        (BOOLEAN, "BOOLEAN", "None"),
        (BYTE, "INT32", "Int(bitWidth=8, isSigned=true)"),
        (SHORT, "INT32", "Int(bitWidth=16, isSigned=true)"),
        (INTEGER, "INT32", "None"),
        (LONG, "INT64", "None"),
        (FLOAT, "FLOAT", "None"),
        (DOUBLE, "DOUBLE", "None"),
        (DATE, "INT32", "Date"),
        (STRING, "BYTE_ARRAY", "String"),
        (BINARY, "BYTE_ARRAY", "None"),
        (DecimalType(9, 2), "INT32", "Decimal(precision=9, scale=2)"),
        (DecimalType(10, 2), "INT64", "Decimal(precision=10, scale=2)"),
        (DecimalType(18, 0), "INT64", "Decimal(precision=18, scale=0)"),
        (DecimalType(19, 0), "FIXED_LEN_BYTE_ARRAY", "Decimal(precision=19, scale=0)"),
        (TIMESTAMP, "INT64", "Timestamp(isAdjustedToUTC=true, timeUnit=microseconds"),
        (TIMESTAMP_NTZ, "INT64", "Timestamp(isAdjustedToUTC=false, timeUnit=microseconds"),
    ],
)
def test_types_are_those_of_the_protocol(tmp_path: Path, data_type: DataType, physical: str, logical: str) -> None:
    column = _parquet_schema(tmp_path, struct(("c", data_type)), {"c": None}).schema.column(0)
    assert column.physical_type == physical
    assert str(column.logical_type).startswith(logical)


def test_lists_maps_and_variants_have_their_standard_groups(tmp_path: Path) -> None:
    schema = struct(("l", ArrayType(ArrayType(LONG))), ("m", MapType(STRING, LONG)), ("v", VARIANT))
    file = _parquet_schema(tmp_path, schema, {"l": None, "m": None, "v": None})
    assert [file.schema.column(i).path for i in range(5)] == [
        "l.list.element.list.element", "m.key_value.key", "m.key_value.value", "v.metadata", "v.value",
    ]  # fmt: skip
    assert "required binary field_id=-1 key (String)" in str(file.schema)
    assert "required binary field_id=-1 metadata" in str(file.schema)


def test_only_what_the_table_says_is_required_in_files(tmp_path: Path) -> None:
    inner = struct(StructField("x", LONG, False), ("y", LONG))
    schema = struct(
        StructField("a", LONG, False),
        ("b", LONG),
        StructField("s", inner, False),
        ("t", inner),
        ("l", ArrayType(LONG, False)),
    )
    row = {"a": 1, "b": None, "s": {"x": 1, "y": None}, "t": None, "l": None}
    file = _parquet_schema(tmp_path, schema, row)
    levels = {file.schema.column(i).path: file.schema.column(i).max_definition_level for i in range(7)}
    # a field below a struct that may be null is optional: the struct alone would otherwise have to say so
    assert levels == {"a": 0, "b": 1, "s.x": 0, "s.y": 1, "t.x": 2, "t.y": 2, "l.list.element": 3}


def test_a_required_field_below_a_null_struct_is_written(tmp_path: Path) -> None:
    schema = struct(("t", struct(StructField("x", LONG, False))))
    state = write_state(tmp_path, schema)
    rows: list[dict[str, Any]] = [{"t": None}, {"t": {"x": 1}}]
    assert read_back(state, *write_rows(state, rows)).to_pylist() == rows


@pytest.mark.parametrize("path", ["a", "s.x"])
def test_a_null_where_the_table_allows_none_is_refused(tmp_path: Path, path: str) -> None:
    schema = struct(StructField("a", LONG, False), StructField("s", struct(StructField("x", LONG, False)), False))
    loose = pa.schema([pa.field("a", pa.int64()), pa.field("s", pa.struct([pa.field("x", pa.int64())]))])
    row = {"a": None if path == "a" else 1, "s": {"x": None if path == "s.x" else 1}}
    writer = DataFileWriter(write_state(tmp_path, schema), 0)
    with pytest.raises(DeltaError, match=path) as caught:
        writer.write(pa.RecordBatch.from_pylist([row], loose))
    assert caught.value.code == "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"


def _mapped(name: str, data_type: DataType, field_id: int, **metadata: Any) -> StructField:
    ids = {"delta.columnMapping.id": field_id, "delta.columnMapping.physicalName": f"col-{field_id}"}
    return StructField(name, data_type, True, ids | metadata)


def _field_ids(file: Any) -> dict[str, str]:
    """Of every named node of the schema, as Parquet's own listing shows it."""
    words = (line.replace("(", " ").split() for line in str(file.schema).splitlines() if "field_id=" in line)
    found = {}
    for line in words:
        at = next(i for i, w in enumerate(line) if w.startswith("field_id="))
        found[line[at + 1].rstrip(";")] = line[at].removeprefix("field_id=")
    return found


@pytest.mark.parametrize("mode", ["id", "name"])
def test_mapped_columns_have_physical_names_and_ids_at_every_depth(tmp_path: Path, mode: str) -> None:
    deep = struct(_mapped("x y", LONG, 5))
    schema = struct(
        _mapped("a b", LONG, 1), _mapped("s", struct(_mapped("n", STRING, 3)), 2), _mapped("l", ArrayType(deep), 4)
    )
    row = {"a b": 1, "s": {"n": "q"}, "l": [{"x y": 7}]}
    state = write_state(tmp_path, schema, column_mapping_mode=mode)
    files = write_rows(state, [row])
    ids = _field_ids(pq.ParquetFile(on_disk(state, files[0])))
    assert {n: i for n, i in ids.items() if n.startswith("col-")} == {f"col-{i}": str(i) for i in range(1, 6)}
    assert ids["element"] == "-1"
    assert read_back(state, *files).to_pylist() == [row]


@pytest.mark.parametrize("key", ["delta.columnMapping.nested.ids", "parquet.field.nested.ids"])
@pytest.mark.parametrize("prefix", ["col-1", "m.n"])
def test_elements_keys_and_values_have_ids_where_asked_for(tmp_path: Path, key: str, prefix: str) -> None:
    nested = {f"{prefix}.key": 10, f"{prefix}.value": 11, f"{prefix}.value.element": 12}
    schema = struct(_mapped("m.n", MapType(STRING, ArrayType(LONG)), 1, **{key: nested}))
    row = {"m.n": [("a", [1])]}
    file = _parquet_schema(tmp_path, schema, row, column_mapping_mode="id", nested_field_ids=True)
    ids = _field_ids(file)
    assert [ids[name] for name in ("col-1", "key", "value", "element")] == ["1", "10", "11", "12"]
    without = _field_ids(_parquet_schema(tmp_path, schema, row, column_mapping_mode="id"))
    assert (without["col-1"], without["key"], without["element"]) == ("1", "-1", "-1")


def test_without_mapping_files_have_no_ids(tmp_path: Path) -> None:
    file = _parquet_schema(tmp_path, struct(_mapped("a", LONG, 1)), {"a": 1})
    assert set(_field_ids(file).values()) == {"-1"}
    # the metadata may have come with rows of another table
    assert file.schema_arrow.names == ["a"]


def test_files_say_nothing_about_arrow(tmp_path: Path) -> None:
    assert _parquet_schema(tmp_path, struct(("a", LONG)), {"a": 1}).metadata.metadata is None


def test_void_columns_are_left_out_and_read_as_null(tmp_path: Path) -> None:
    schema = struct(("a", LONG), ("v", VOID), ("s", struct(("v", VOID), ("x", LONG))))
    state = write_state(tmp_path, schema)
    rows = [{"a": 1, "v": None, "s": {"v": None, "x": 2}}, {"a": None, "v": None, "s": None}]
    files = write_rows(state, rows)
    assert pq.read_schema(on_disk(state, files[0])).names == ["a", "s"]
    assert read_back(state, *files).to_pylist() == rows


@pytest.mark.parametrize(
    "data_type", [ArrayType(VOID), MapType(STRING, VOID), struct(("v", VOID)), ArrayType(struct(("v", VOID)))]
)
def test_void_that_cannot_be_left_out_is_refused(tmp_path: Path, data_type: DataType) -> None:
    with pytest.raises(UserError, match="'c"):
        DataFileWriter(write_state(tmp_path, struct(("a", LONG), ("c", data_type))), 0)


def test_a_table_without_data_columns_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        DataFileWriter(write_state(tmp_path, struct(("p", LONG), ("v", VOID)), partition_columns=("p",)), 0)
    assert caught.value.code == "DELTA_NON_PARTITION_COLUMN_ABSENT"


def test_partition_columns_come_last_where_files_hold_them(tmp_path: Path) -> None:
    schema = struct(("p", LONG), ("a", LONG))
    given = {"partition_columns": ("p",)}
    assert _parquet_schema(tmp_path, schema, {"p": 1, "a": 2}, **given).schema_arrow.names == ["a"]
    both = _parquet_schema(tmp_path, schema, {"p": 1, "a": 2}, partition_columns_in_files=True, **given)
    assert both.schema_arrow.names == ["a", "p"]


def test_rows_of_other_columns_or_types_are_refused(tmp_path: Path) -> None:
    schema = struct(("a", LONG), ("s", struct(("x", LONG))))
    writer = DataFileWriter(write_state(tmp_path, schema), 0)
    good = batch_of(schema, [{"a": 1, "s": {"x": 1}}])
    for bad in (
        good.select(["s", "a"]),
        good.set_column(0, "a", pa.array(["x"])),
        good.set_column(1, "s", pa.array([{"y": 1}])),
        good.set_column(1, "s", pa.array([1])),
    ):
        with pytest.raises(SchemaMismatchError) as caught:
            writer.write(bad)
        assert caught.value.code == "DELTA_METADATA_MISMATCH"
    writer.discard()


def test_sliced_nested_rows_are_written_as_they_are(tmp_path: Path) -> None:
    schema = struct(
        _mapped("s", struct(_mapped("x", LONG, 2), _mapped("l", ArrayType(struct(_mapped("y", STRING, 4))), 3)), 1),
        _mapped("m", MapType(STRING, struct(_mapped("z", LONG, 6))), 5),
    )
    rows = [
        {"s": None if i % 5 == 0 else {"x": i, "l": [{"y": str(k)} for k in range(i % 4)]}, "m": [(str(i), {"z": i})]}
        for i in range(40)
    ]
    state = write_state(tmp_path, schema, column_mapping_mode="name")
    batch = batch_of(schema, rows)
    files = write_files(state, batch.slice(7, 9), batch.slice(0, 3), batch.slice(39))
    assert read_back(state, *files).to_pylist() == rows[7:16] + rows[:3] + rows[39:]
