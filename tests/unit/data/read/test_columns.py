"""Which column of a file is which column of the table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_pyds.data.read import data_file
from delta_pyds.errors import ProtocolError, SchemaMismatchError
from delta_pyds.protocol.schema import (
    INTEGER,
    LONG,
    STRING,
    VOID,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)
from tests.support.calls import count_calls
from tests.support.scans import Decoded, scan, state_of, struct, write
from tests.support.table_builder import TableBuilder
from tests.support.table_writes import read_rows


def _mapped(
    name: str, data_type: DataType, field_id: int | None, physical: str | None = None, nullable: bool = True
) -> StructField:
    metadata: dict[str, Any] = {"delta.columnMapping.physicalName": physical or f"col-{field_id}"}
    if field_id is not None:
        metadata["delta.columnMapping.id"] = field_id
    return StructField(name, data_type, nullable, metadata)


def _with_id(name: str, data_type: pa.DataType, field_id: int) -> pa.Field:
    return pa.field(name, data_type, metadata={"PARQUET:field_id": str(field_id)})


def test_without_mapping_the_exact_name_wins_over_another_case(tmp_path: Path) -> None:
    file = write(tmp_path / "f", pa.table({"A": [1], "a": [2]}))
    assert scan(state_of(tmp_path, struct(("a", LONG), ("A", LONG))), file).to_pylist() == [{"a": 2, "A": 1}]


def test_without_mapping_the_only_other_case_is_taken_at_every_depth(tmp_path: Path) -> None:
    file = write(tmp_path / "f", pa.table({"COL": [{"Inner": 1}]}))
    got = scan(state_of(tmp_path, struct(("col", struct(("iNNER", LONG))))), file)
    assert got.to_pylist() == [{"col": {"iNNER": 1}}]


def test_two_columns_that_differ_from_the_name_in_case_are_ambiguous(tmp_path: Path) -> None:
    file = write(tmp_path / "f", pa.table({"AB": [1], "aB": [2], "c": [3]}))
    with pytest.raises(SchemaMismatchError, match="'ab'"):
        scan(state_of(tmp_path, struct(("ab", LONG))), file)
    assert scan(state_of(tmp_path, struct(("c", LONG))), file).to_pylist() == [{"c": 3}]


def test_a_name_twice_in_the_file_is_ambiguous_only_when_asked_for(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array(["x"]), pa.array([3])], names=["a", "a", "b"])
    file = write(tmp_path / "f", table)
    assert scan(state_of(tmp_path, struct(("b", LONG))), file).to_pylist() == [{"b": 3}]
    with pytest.raises(SchemaMismatchError, match="'a'") as caught:
        scan(state_of(tmp_path, struct(("a", LONG))), file)
    assert caught.value.code == "FAILED_READ_FILE.PARQUET_COLUMN_AMBIGUOUS"


def test_names_with_dots_are_columns_and_not_paths(tmp_path: Path) -> None:
    table = pa.table({"a": [{"b": 1, "b.c": 2}], "a.b": [3], "a.b.c": [4]})
    file = write(tmp_path / "f", table)
    schema = struct(("a.b", LONG), ("a", struct(("b.c", LONG))), ("a.b.c", LONG))
    assert scan(state_of(tmp_path, schema), file).to_pylist() == [{"a.b": 3, "a": {"b.c": 2}, "a.b.c": 4}]


Z_AND_W = pa.struct([("z", "int64"), ("w", "string")])


def test_only_the_leaves_that_are_asked_for_are_decoded(tmp_path: Path, decoded: Decoded) -> None:
    rows = {
        "skip": [0],
        # pyarrow 18 would infer a struct with its fields in the order of their names
        "s": pa.array([{"x": 1, "y": {"z": 2, "w": "a"}}], pa.struct([("x", "int64"), ("y", Z_AND_W)])),
        "l": [[{"p": 1, "q": "b"}]],
        "m": pa.array([[("k", {"p": 1, "q": "c"})]], pa.map_("string", pa.struct([("p", "int64"), ("q", "string")]))),
    }
    file = write(tmp_path / "f", pa.table(rows))
    schema = struct(
        ("m", MapType(STRING, struct(("q", STRING)))),
        ("s", struct(("y", struct(("w", STRING))))),
        ("l", ArrayType(struct(("p", LONG)))),
    )
    got = scan(state_of(tmp_path, schema), file).to_pylist()
    assert got == [{"m": [("k", {"q": "c"})], "s": {"y": {"w": "a"}}, "l": [{"p": 1}]}]
    assert [leaves for _, leaves in decoded] == [(3, 4, 6, 8)]


def test_missing_columns_are_null_at_every_depth(tmp_path: Path) -> None:
    table = pa.table({"s": [{"x": 1}, None], "l": [[{"x": 1}, None], None]})
    file = write(tmp_path / "f", table)
    inner = struct(("new", ArrayType(STRING)), ("x", LONG))
    got = scan(state_of(tmp_path, struct(("gone", STRING), ("s", inner), ("l", ArrayType(inner)))), file)
    assert got.to_pylist() == [
        {"gone": None, "s": {"new": None, "x": 1}, "l": [{"new": None, "x": 1}, None]},
        {"gone": None, "s": None, "l": None},
    ]


def test_struct_of_which_the_file_has_no_requested_field_keeps_its_nulls(tmp_path: Path, decoded: Decoded) -> None:
    big = ["x" * 1000 + str(i) for i in range(3)]
    table = pa.table(
        {
            "s": pa.array([{"big": big[0], "small": 1}, None, {"big": None, "small": None}]),
            "l": pa.array([[{"big": big[1]}, None], None, []]),
            "m": pa.array(
                [[("k", {"big": big[2]}), ("n", None)], None, []], pa.map_("string", pa.struct([("big", "string")]))
            ),
        }
    )
    file = write(tmp_path / "f", table)
    new = struct(("new", INTEGER))
    got = scan(state_of(tmp_path, struct(("s", new), ("l", ArrayType(new)), ("m", MapType(STRING, new)))), file)
    assert got.to_pylist() == [
        {"s": {"new": None}, "l": [{"new": None}, None], "m": [("k", {"new": None}), ("n", None)]},
        {"s": None, "l": None, "m": None},
        {"s": {"new": None}, "l": [], "m": []},
    ]
    # the cheapest leaf tells the struct's nulls
    assert [leaves for _, leaves in decoded] == [(1, 2, 3, 4)]


def test_missing_not_null_column_is_refused_naming_it(tmp_path: Path) -> None:
    file = write(tmp_path / "part-7", pa.table({"a": [1], "s": [{"x": 1}]}))
    for schema, name in (
        (struct(StructField("b", LONG, False)), "'b'"),
        (struct(("s", struct(StructField("y", LONG, False)))), r"'s\.y'"),
    ):
        with pytest.raises(SchemaMismatchError, match=name) as caught:
            scan(state_of(tmp_path, schema), file)
        assert "part-7" in str(caught.value)


def test_void_columns_are_null_whatever_the_file_has(tmp_path: Path) -> None:
    file = write(tmp_path / "f", pa.table({"v": [1, 2], "s": [{"v": 1, "x": 2}, None]}))
    got = scan(state_of(tmp_path, struct(("v", VOID), ("s", struct(("v", VOID), ("x", LONG))))), file)
    assert got.to_pylist() == [{"v": None, "s": {"v": None, "x": 2}}, {"v": None, "s": None}]


def test_name_mode_goes_by_physical_names_at_every_depth(tmp_path: Path) -> None:
    table = pa.table({"col-1": [{"col-2": 5, "x": 6}], "a": [{"x": 7}]})
    file = write(tmp_path / "f", table)
    schema = struct(_mapped("a", struct(_mapped("x", LONG, 2)), 1), _mapped("new", LONG, 9))
    got = scan(state_of(tmp_path, schema, column_mapping_mode="name"), file)
    assert got.to_pylist() == [{"a": {"x": 5}, "new": None}]


def test_id_mode_goes_by_field_ids_at_every_depth_and_not_by_names(tmp_path: Path) -> None:
    inner = pa.struct([_with_id("p", pa.int64(), 3), _with_id("q", pa.int64(), 2)])
    fields = [
        _with_id("y", inner, 1),
        _with_id("l", pa.list_(pa.field("element", pa.struct([_with_id("e", pa.string(), 5)]))), 4),
        _with_id("m", pa.map_(pa.string(), pa.struct([_with_id("v", pa.string(), 7)])), 6),
        _with_id("col-8", pa.int64(), 99),
    ]
    rows = [{"y": {"p": 10, "q": 20}, "l": [{"e": "x"}], "m": [("k", {"v": "z"})], "col-8": 1}]
    file = write(tmp_path / "f", pa.Table.from_pylist(rows, schema=pa.schema(fields)))
    schema = struct(
        _mapped("s", struct(_mapped("p", LONG, 2), _mapped("q", LONG, 3)), 1),
        _mapped("list", ArrayType(struct(_mapped("f", STRING, 5))), 4),
        _mapped("map", MapType(STRING, struct(_mapped("w", STRING, 7))), 6),
        _mapped("new", LONG, 8),
    )
    got = scan(state_of(tmp_path, schema, column_mapping_mode="id"), file)
    assert got.to_pylist() == [{"s": {"p": 20, "q": 10}, "list": [{"f": "x"}], "map": [("k", {"w": "z"})], "new": None}]


def test_id_mode_refuses_a_file_without_ids(tmp_path: Path) -> None:
    file = write(tmp_path / "part-3", pa.table({"col-1": [1]}))
    state = state_of(tmp_path, struct(_mapped("a", LONG, 1)), column_mapping_mode="id")
    with pytest.raises(SchemaMismatchError, match="part-3") as caught:
        scan(state, file)
    assert caught.value.code == "DELTA_COLUMN_MAPPING_FIELD_ID_MISSING"


def test_id_mode_refuses_a_schema_without_ids_and_ids_that_the_file_repeats(tmp_path: Path) -> None:
    schema = pa.schema([_with_id("x", pa.int64(), 1), _with_id("y", pa.int64(), 1)])
    file = write(tmp_path / "f", pa.Table.from_pylist([{"x": 1, "y": 2}], schema=schema))
    with pytest.raises(ProtocolError, match="'a'") as caught:
        scan(state_of(tmp_path, struct(_mapped("a", LONG, None)), column_mapping_mode="id"), file)
    assert caught.value.code == "DELTA_MISSING_COLUMN_ID"
    with pytest.raises(SchemaMismatchError, match="'a'"):
        scan(state_of(tmp_path, struct(_mapped("a", LONG, 1)), column_mapping_mode="id"), file)


def test_a_value_where_the_table_has_parts_and_the_other_way_round_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "part-5", pa.table({"v": [1], "s": [{"x": 1}], "l": [[1]]}))
    cases: list[StructType] = [
        struct(("v", struct(("x", LONG)))),
        struct(("v", ArrayType(LONG))),
        struct(("v", MapType(STRING, LONG))),
        struct(("s", LONG)),
        struct(("s", ArrayType(LONG))),
        struct(("l", LONG)),
        struct(("l", ArrayType(INTEGER))),
    ]
    for schema in cases:
        with pytest.raises(SchemaMismatchError, match="part-5"):
            scan(state_of(tmp_path, schema), file)


def test_many_columns_are_bound_in_linear_time(tmp_path: Path) -> None:
    def calls(columns: int) -> int:
        table = pa.table({f"c{i}": [i] for i in range(columns)})
        file = write(tmp_path / f"f{columns}", table)
        schema = struct(*((f"c{i}", LONG) for i in range(columns)))
        return count_calls(lambda: scan(state_of(tmp_path, schema), file))

    calls(2)  # what is made once for a process
    # quadratic work would be 16 times as much
    assert calls(2000) < 6 * calls(500)


def test_leaf_count_that_does_not_fit_is_noticed(tmp_path: Path) -> None:
    file = write(tmp_path / "f", pa.table({"a": [{"x": 1, "y": 2}], "b": [[1]], "c": [1]}))
    with pq.ParquetFile(file.path) as parquet:
        columns = data_file.DataFile(parquet, file.path, str(tmp_path)).columns
    assert [(c.first_leaf, c.last_leaf) for c in columns] == [(0, 2), (2, 3), (3, 4)]


def test_a_file_without_ids_is_no_file_of_a_table_that_is_mapped_by_id(tmp_path: Path) -> None:
    """Its columns would all be null, or found by a name that may be another column's."""
    table = TableBuilder(tmp_path, {"id": "long", "v": "string"}, properties={"delta.columnMapping.mode": "id"})
    table.create()
    table.append([{"id": 1, "v": "a"}])
    assert read_rows(tmp_path) == [{"id": 1, "v": "a"}]
    table.append([{"id": 2, "v": "b"}], field_ids=False)
    for scan_of in ({}, {"columns": ["v"]}, {"where": "id = 2"}):
        with pytest.raises(SchemaMismatchError, match="has no Parquet field ids") as caught:
            read_rows(tmp_path, **scan_of)
        assert caught.value.code == "DELTA_COLUMN_MAPPING_FIELD_ID_MISSING"
    # a column that the file lacks is null there; that one has ids tells
    table.append([{"id": 3, "v": "c"}], field_ids={"id": 1})
    assert read_rows(tmp_path, where="id = 1") == [{"id": 1, "v": "a"}]
