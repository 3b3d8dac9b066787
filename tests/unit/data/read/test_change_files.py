"""Change data files: the type of change comes from the file, all else as in a data file.

Protocol: "Change Data Files".
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from delta_pyds.data.read import data_file
from delta_pyds.errors import CorruptDataFileError, DeltaError, SchemaMismatchError
from delta_pyds.expr.nodes import And, Column, Comparison, Expr, In, IsNull, Literal, Not, Or
from delta_pyds.expr.stats_rewrite import skipping
from delta_pyds.protocol.deletion_vector import DeletionVectorDescriptor
from delta_pyds.protocol.schema import (
    COLUMN_MAPPING_ID,
    COLUMN_MAPPING_PHYSICAL_NAME,
    LONG,
    STRING,
    TIMESTAMP,
    StructField,
    StructType,
)
from delta_pyds.tasks.scan_state import CHANGE_COLUMNS, CHANGE_TYPE_COLUMN, ScanFile, ScanState
from tests.support.bitmaps import write_vectors
from tests.support.scans import VIEW, scan, state_of, struct, write

CHANGES = (StructField(CHANGE_COLUMNS[0], STRING), StructField(CHANGE_COLUMNS[1], LONG))
FEED = struct(("id", LONG), ("p", STRING), *CHANGES, (CHANGE_COLUMNS[2], TIMESTAMP))
PARTITIONS = ("p", *CHANGE_COLUMNS)
# what the log has at the place of the type of change does not count
VALUES = ("east", "insert", "7", "2024-05-06T07:08:09.123Z")
TYPES = ["insert", "delete", "update_preimage", "update_postimage"]
EVERYTHING = {"_commit_version": 7, "_commit_timestamp": dt.datetime(2024, 5, 6, 7, 8, 9, 123000, dt.timezone.utc)}


def _cdc(tmp_path: Path, rows: int = 100, **options: Any) -> ScanFile:
    table = pa.table({"id": pa.array(range(rows), pa.int64()), "_change_type": [TYPES[i % 4] for i in range(rows)]})
    return _change_data(write(tmp_path / "cdc-0.parquet", table, **options))


def _change_data(file: ScanFile, values: tuple[str | None, ...] = VALUES) -> ScanFile:
    return dataclasses.replace(file, partition_values=values, change_data=True)


def _state(tmp_path: Path, output: StructType = FEED, predicate: Expr | None = None, **given: Any) -> ScanState:
    skip = None if predicate is None else skipping(predicate, PARTITIONS)
    settings = {"partition_columns": PARTITIONS, "inputs": FEED, "predicate": predicate, "skip": skip} | given
    return state_of(tmp_path, output, **settings)


def _equals(name: str, value: Any, op: str = "=") -> Expr:
    data_type = FEED.fields[FEED.names.index(name)].data_type
    return Comparison(op, Column((name,), data_type), Literal(value, data_type))


def _is(*types: str) -> Expr:
    return In(Column((CHANGE_TYPE_COLUMN,), STRING), types)


def test_type_of_change_comes_from_the_file_and_the_rest_from_the_log(tmp_path: Path) -> None:
    got = scan(_state(tmp_path), _cdc(tmp_path, 4))
    assert got.to_pylist() == [{"id": i, "p": "east", "_change_type": TYPES[i]} | EVERYTHING for i in range(4)]


@pytest.mark.parametrize("ignored", [None, "", "delete", "nonsense"])
def test_partition_value_in_its_place_is_ignored(tmp_path: Path, ignored: str | None) -> None:
    file = _change_data(_cdc(tmp_path, 4), ("east", ignored, "7", None))
    assert scan(_state(tmp_path), file).column("_change_type").to_pylist() == TYPES


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 1, 0, 2), (1, 3, 2, 0)])
def test_partition_values_are_found_by_their_place(tmp_path: Path, order: tuple[int, ...]) -> None:
    file = _change_data(_cdc(tmp_path, 1), tuple(VALUES[i] for i in order))
    state = _state(tmp_path, partition_columns=tuple(PARTITIONS[i] for i in order))
    assert scan(state, file).to_pylist() == [{"id": 0, "p": "east", "_change_type": "insert"} | EVERYTHING]


def test_ordinary_file_with_a_column_of_that_name_has_the_type_that_the_log_gives_it(tmp_path: Path) -> None:
    table = pa.table({"id": [1, 2], "_change_type": pa.array([None, "nonsense"])})
    file = dataclasses.replace(write(tmp_path / "f.parquet", table), partition_values=("w", "delete", "3", None))
    rows = scan(_state(tmp_path, predicate=_is("delete")), file)
    assert rows.column("_change_type").to_pylist() == ["delete", "delete"]
    assert scan(_state(tmp_path, predicate=_is("insert")), file).num_rows == 0


# --- predicates, row groups, splits


@pytest.mark.parametrize("row_group_size", [100, 30, 7])
@pytest.mark.parametrize(
    "output", [FEED, struct(("id", LONG)), struct(("id", LONG), CHANGES[0])], ids=lambda o: o.names
)
@pytest.mark.parametrize("wanted", [("delete",), ("update_preimage", "update_postimage"), ("insert",), ("x",)])
def test_predicate_sees_the_types_of_the_file(
    tmp_path: Path, wanted: tuple[str, ...], output: StructType, row_group_size: int
) -> None:
    file = _cdc(tmp_path, row_group_size=row_group_size)
    got = scan(_state(tmp_path, output, _is(*wanted), batch_rows=16), file)
    assert got.column("id").to_pylist() == [i for i in range(100) if TYPES[i % 4] in wanted]
    if CHANGE_TYPE_COLUMN in output.names:
        assert set(got.column("_change_type").to_pylist()) <= set(wanted)


TYPE = Column((CHANGE_TYPE_COLUMN,), STRING)
# with the log's "insert" each of them would rule the file out
PREDICATES: list[tuple[Expr, list[int], list[int]]] = [
    (And((_is("delete"), _equals("id", 41))), [41], [1]),
    (And((_is("delete"), _equals("p", "east"), _equals("id", 60, ">"))), [61, 65, 69, 73, 77], [2]),
    (And((_is("delete"), _equals("p", "west"))), [], []),
    (Or((_is("delete"), _equals("p", "west"))), list(range(1, 80, 4)), [0, 1, 2]),
    (Or((And((_is("delete"), _equals("id", 5))), And((_is("update_preimage"), _equals("id", 6))))), [5, 6], [0]),
    (Or((_is("delete"), _equals("id", 8))), sorted({8, *range(1, 80, 4)}), [0, 1, 2]),
    (And((Not(IsNull(TYPE)), _equals("id", 79))), [79], [2]),
    (And((IsNull(TYPE), _equals("id", 79))), [], [2]),
    (Not(_is("insert", "delete", "update_preimage")), list(range(3, 80, 4)), [0, 1, 2]),
    (And((Comparison("<>", TYPE, Column(("p",), STRING)), _equals("id", 1))), [1], [0]),
    (_equals("_commit_version", 8), [], []),
]


@pytest.mark.parametrize(("predicate", "ids", "groups"), PREDICATES, ids=range(len(PREDICATES)))
def test_row_groups_are_skipped_by_what_is_certain_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, predicate: Expr, ids: list[int], groups: list[int]
) -> None:
    decoded: set[int] = set()
    original = data_file.DataFile.decode

    def remember(self: Any, row_groups: list[int], *args: Any, **kwargs: Any) -> Any:
        decoded.update(row_groups)
        return original(self, row_groups, *args, **kwargs)

    monkeypatch.setattr(data_file.DataFile, "decode", remember)
    file = _cdc(tmp_path, 80, row_group_size=30)
    got = scan(_state(tmp_path, predicate=predicate), file)
    assert got.column("id").to_pylist() == ids
    assert got.column("_change_type").to_pylist() == [TYPES[i % 4] for i in ids]
    assert sorted(decoded) == groups


def test_filters_that_only_skip_do_not_use_the_ignored_value(tmp_path: Path) -> None:
    state = _state(tmp_path, skip=skipping(_is("delete"), PARTITIONS))
    assert scan(state, _cdc(tmp_path, 8)).num_rows == 8


def test_splits_selections_and_deletion_vectors_work_as_in_data_files(tmp_path: Path) -> None:
    whole = _cdc(tmp_path, 100, row_group_size=10)
    vectors = write_vectors(tmp_path, [list(range(0, 100, 3)), [0, 33]])
    selected, deleted = (msgspec.convert(v, DeletionVectorDescriptor) for v in vectors)
    middle = whole.size_bytes // 2
    halves = [
        dataclasses.replace(whole, start=start, length=length, selected=selected, deletion_vector=deleted)
        for start, length in ((0, middle), (middle, None))
    ]
    got = scan(_state(tmp_path, predicate=_is("delete", "insert"), row_position=True), *halves)
    wanted = [i for i in range(0, 100, 3) if i not in (0, 33) and i % 4 < 2]
    assert got.column("_row_position").to_pylist() == got.column("id").to_pylist() == wanted


def test_no_columns_still_counts_rows(tmp_path: Path) -> None:
    state = _state(tmp_path, StructType(()), partition_columns=(), row_position=True)
    assert scan(state, _change_data(_cdc(tmp_path, 10), ())).num_rows == 10


# --- column mapping


def _mapped(tmp_path: Path, mode: str, with_ids: bool) -> tuple[ScanState, ScanFile]:
    metadata = {COLUMN_MAPPING_ID: 1, COLUMN_MAPPING_PHYSICAL_NAME: "col-1"}
    output = struct(StructField("id", LONG, metadata=metadata), CHANGES[0])
    field = pa.field("col-1", pa.int64(), metadata={"PARQUET:field_id": "1"} if with_ids else None)
    schema = pa.schema([field, pa.field("_change_type", pa.string())])
    file = write(tmp_path / "cdc.parquet", pa.table([[1, 2], ["delete", "insert"]], schema=schema))
    state = state_of(
        tmp_path,
        output,
        inputs=output,
        partition_columns=(CHANGE_TYPE_COLUMN,),
        column_mapping_mode=mode,
        predicate=_is("delete", "insert"),
        skip=skipping(_is("delete"), (CHANGE_TYPE_COLUMN,)),
    )
    return state, _change_data(file, (None,))


@pytest.mark.parametrize(("mode", "with_ids"), [("name", False), ("name", True), ("id", True)])
def test_under_column_mapping_the_column_has_its_own_name_and_no_id(tmp_path: Path, mode: str, with_ids: bool) -> None:
    state, file = _mapped(tmp_path, mode, with_ids)
    rows = [{"id": 1, "_change_type": "delete"}, {"id": 2, "_change_type": "insert"}]
    assert scan(state, file).to_pylist() == rows


def test_under_mode_id_a_file_that_only_has_the_column_is_read(tmp_path: Path) -> None:
    state, _ = _mapped(tmp_path, "id", True)
    file = _change_data(write(tmp_path / "f", pa.table({"_change_type": ["delete"]})), (None,))
    only = dataclasses.replace(state, output=struct(CHANGES[0]), inputs=struct(CHANGES[0]))
    assert scan(only, file).to_pylist() == [{"_change_type": "delete"}]


# --- files that do not say what happened


SCANS: list[dict[str, Any]] = [
    {},
    {"output": struct(("id", LONG)), "partition_columns": ()},
    {"output": struct(("id", LONG)), "predicate": _equals("id", 0, ">=")},
    {"predicate": _is(*TYPES)},
    {"predicate": Not(_is("insert"))},
    {"output": struct(("id", LONG)), "predicate": _is("insert")},
    {"output": StructType(()), "partition_columns": ()},
]


def _refused(tmp_path: Path, table: pa.Table, scan_of: dict[str, Any]) -> DeltaError:
    file = _change_data(write(tmp_path / "cdc-bad.parquet", table, row_group_size=2))
    if "partition_columns" in scan_of:
        file = _change_data(file, ())
    with pytest.raises(DeltaError, match=r"cdc-bad\.parquet.*_change_type") as caught:
        scan(_state(tmp_path, **scan_of), file)
    return caught.value


@pytest.mark.parametrize("scan_of", SCANS, ids=range(len(SCANS)))
def test_file_without_types_of_change_is_refused_whatever_is_read_of_it(
    tmp_path: Path, scan_of: dict[str, Any]
) -> None:
    for table in (
        pa.table({"id": [1, 2, 3]}),
        pa.table({"id": pa.array([], pa.int64())}),
        # nothing but the exact name will do
        pa.table({"id": [1], "_CHANGE_TYPE": ["insert"]}),
        pa.table({"id": [1, 2, 3], "_change_type": ["insert", "delete", None]}),
        pa.table({"id": [1, 2, 3], "_change_type": pa.nulls(3)}),
    ):
        error = _refused(tmp_path, table, scan_of)
        assert isinstance(error, CorruptDataFileError)
        assert error.code == "DELTA_CDC_READ_NULL_CHANGE_TYPE"


@pytest.mark.parametrize("value", ["", "INSERT", "insert ", "update", "upsert"])
def test_unknown_type_of_change_is_passed_on(tmp_path: Path, value: str) -> None:
    types = ["insert", "delete", value]
    file = _change_data(write(tmp_path / "f", pa.table({"id": [1, 2, 3], "_change_type": types}), row_group_size=2))
    assert scan(_state(tmp_path), file).column("_change_type").to_pylist() == types
    assert scan(_state(tmp_path, struct(("id", LONG))), file).column("id").to_pylist() == [1, 2, 3]
    assert scan(_state(tmp_path, predicate=_is(value)), file).column("id").to_pylist() == [3]
    assert scan(_state(tmp_path, predicate=_is("insert")), file).column("id").to_pylist() == [1]


def test_types_of_change_that_are_no_text_are_refused(tmp_path: Path) -> None:
    for column in (pa.array([1]), pa.array([["insert"]])):
        assert isinstance(_refused(tmp_path, pa.table({"id": [1], "_change_type": column}), {}), SchemaMismatchError)


def test_two_columns_of_that_name_are_refused(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array(["insert"])] * 2, names=["_change_type"] * 2)
    assert isinstance(_refused(tmp_path, table, {"output": struct(CHANGES[0])}), SchemaMismatchError)


def test_types_of_change_in_every_encoding_of_text(tmp_path: Path) -> None:
    for column in (
        pa.array(TYPES).dictionary_encode(),
        pa.array(TYPES, pa.large_string()),
        pa.array(TYPES, VIEW),
    ):
        file = _change_data(write(tmp_path / "f", pa.table({"id": [0, 1, 2, 3], "_change_type": column})))
        for predicate in (None, _is(*TYPES)):
            assert scan(_state(tmp_path, predicate=predicate), file).column("_change_type").to_pylist() == TYPES
