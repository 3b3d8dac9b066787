"""What a scan of one file returns: rows, positions, partition values, batches."""

from __future__ import annotations

import dataclasses
import datetime as dt
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_pyds.columnar.schema import arrow_type
from delta_pyds.data.read.reader import output_schema, read
from delta_pyds.errors import DeletionVectorError, DeltaError, ProtocolError
from delta_pyds.protocol.deletion_vector import DeletionVectorDescriptor
from delta_pyds.protocol.schema import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    ArrayType,
    DataType,
    DecimalType,
    StructField,
    StructType,
    display,
)
from delta_pyds.tasks.scan_state import RowIdColumns, ScanFile
from tests.support.bitmaps import write_vectors
from tests.support.scans import Decoded, every_type, relaxed, row_groups, sample, scan, state_of, struct, write

NUMBERS = struct(("a", LONG), ("s", STRING))


def _numbers(tmp_path: Path, rows: int = 1000, **options: Any) -> ScanFile:
    table = pa.table({"a": pa.array(range(rows)), "s": [f"v{i}" for i in range(rows)]})
    return write(tmp_path / "part-0.parquet", table, **options)


def _delete(tmp_path: Path, file: ScanFile, positions: list[int]) -> ScanFile:
    descriptor = msgspec.convert(write_vectors(tmp_path, [positions])[0], DeletionVectorDescriptor)
    return dataclasses.replace(file, deletion_vector=descriptor)


@pytest.mark.parametrize("data_type", every_type(), ids=display)
def test_every_type_comes_back_as_it_was_written(tmp_path: Path, data_type: DataType) -> None:
    random = Random(display(data_type))
    values = [sample(data_type, random) for _ in range(40)]
    array = pa.array(values, relaxed(arrow_type(data_type)))
    file = write(tmp_path / "f.parquet", pa.table({"c": array}), row_group_size=15)
    got = scan(state_of(tmp_path, struct(("c", data_type))), file).column("c")
    assert got.to_pylist() == array.to_pylist()


def test_a_file_that_is_right_already_is_not_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from delta_pyds.data.read import data_file

    decoded = []
    original = data_file.DataFile.decode

    def remember(self: Any, *args: Any, **kwargs: Any) -> Any:
        for batch in original(self, *args, **kwargs):
            decoded.append(batch)
            yield batch

    monkeypatch.setattr(data_file.DataFile, "decode", remember)
    schema = struct(("a", LONG), ("s", STRING), ("l", ArrayType(LONG)))
    table = pa.table({"a": [1], "s": ["x"], "l": [[1]]})
    file = write(tmp_path / "f.parquet", table)
    (batch,) = read(state_of(tmp_path, schema), file)
    for got, was in zip(batch.columns, decoded[0].columns, strict=True):
        assert [b and b.address for b in got.buffers()] == [b and b.address for b in was.buffers()]


def test_columns_come_in_the_order_of_the_scan_and_extra_ones_are_ignored(tmp_path: Path) -> None:
    table = pa.table({"_change_type": ["insert"], "b": [1], "a": ["x"], "unused": [None]})
    file = write(tmp_path / "f.parquet", table)
    assert scan(state_of(tmp_path, struct(("a", STRING), ("b", LONG))), file).to_pylist() == [{"a": "x", "b": 1}]


def test_no_columns_still_counts_rows(tmp_path: Path) -> None:
    file = _numbers(tmp_path, 1000, row_group_size=300)
    state = state_of(tmp_path, StructType(()), batch_rows=256)
    assert sum(b.num_rows for b in read(state, file)) == 1000
    assert sum(b.num_rows for b in read(state, _delete(tmp_path, file, [0, 1, 999]))) == 997


def test_empty_files_give_no_batches(tmp_path: Path) -> None:
    for rows in (pa.table({"a": pa.array([], pa.int64()), "s": pa.array([], pa.string())}),):
        file = write(tmp_path / "f.parquet", rows)
        assert scan(state_of(tmp_path, NUMBERS), file).num_rows == 0


def test_batches_have_at_most_the_rows_asked_for(tmp_path: Path) -> None:
    file = _numbers(tmp_path, 1000, row_group_size=130)
    sizes = [b.num_rows for b in read(state_of(tmp_path, NUMBERS, batch_rows=400), file)]
    # small row groups are decoded together
    assert sizes == [400, 400, 200]


def test_wide_rows_come_in_smaller_batches(tmp_path: Path) -> None:
    table = pa.table({"a": list(range(200)), "s": [str(i % 10) * 1_000_000 for i in range(200)]})
    for options in ({"use_dictionary": False, "compression": "zstd"}, {"compression": "zstd", "row_group_size": 100}):
        file = write(tmp_path / "f.parquet", table, **options)
        batches = list(read(state_of(tmp_path, NUMBERS), file))
        assert max(b.nbytes for b in batches) <= 130 << 20
        assert pa.Table.from_batches(batches).equals(table)


# --- deletion vectors and positions


@pytest.mark.parametrize(
    "positions", [[], [0], [999], list(range(0, 1000, 3)), list(range(300, 600)), list(range(1000))]
)
@pytest.mark.parametrize("options", [{}, {"row_group_size": 100}, {"row_group_size": 77}], ids=str)
def test_deleted_rows_are_gone_and_the_others_keep_their_positions(
    tmp_path: Path, positions: list[int], options: dict[str, Any]
) -> None:
    file = _delete(tmp_path, _numbers(tmp_path, 1000, **options), positions)
    got = scan(state_of(tmp_path, NUMBERS, row_position=True, batch_rows=150), file)
    live = [i for i in range(1000) if i not in set(positions)]
    assert got.column("a").to_pylist() == live
    assert got.column("s").to_pylist() == [f"v{i}" for i in live]
    assert got.column("_row_position").to_pylist() == live
    assert set(got.column("_file_path").to_pylist()) <= {file.path}


def test_row_groups_without_live_rows_are_not_decoded(tmp_path: Path, decoded: Decoded) -> None:
    file = _delete(tmp_path, _numbers(tmp_path, 400, row_group_size=100), list(range(100, 300)))
    assert scan(state_of(tmp_path, NUMBERS), file).num_rows == 200
    assert row_groups(decoded) == [0, 3]


def test_deletion_vector_of_another_file_is_refused(tmp_path: Path) -> None:
    file = _delete(tmp_path, _numbers(tmp_path, 10), [10])
    with pytest.raises(DeletionVectorError, match=r"part-0\.parquet"):
        scan(state_of(tmp_path, NUMBERS), file)


# --- partition values


PARTITIONS: list[tuple[DataType, str, Any]] = [
    (STRING, "a b%20", "a b%20"),
    (LONG, "-9223372036854775808", -(2**63)),
    (INTEGER, "7", 7),
    (BOOLEAN, "true", True),
    (DOUBLE, "NaN", float("nan")),
    (DATE, "1970-01-02", dt.date(1970, 1, 2)),
    (TIMESTAMP, "1970-01-01 00:00:00.000001", dt.datetime(1970, 1, 1, 0, 0, 0, 1, dt.timezone.utc)),
    (TIMESTAMP, "1970-01-01T00:00:00.000001Z", dt.datetime(1970, 1, 1, 0, 0, 0, 1, dt.timezone.utc)),
    (TIMESTAMP_NTZ, "1970-01-01 00:00:01", dt.datetime(1970, 1, 1, 0, 0, 1)),
    (
        DecimalType(38, 10),
        "1234567890123456789012345678.0000000001",
        Decimal("1234567890123456789012345678.0000000001"),
    ),
    (BINARY, "\x01\x02", b"\x01\x02"),
]


@pytest.mark.parametrize(
    ("data_type", "text", "value"), PARTITIONS, ids=[f"{display(t)}-{v!r}" for t, v, _ in PARTITIONS]
)
def test_partition_values_of_every_type(tmp_path: Path, data_type: DataType, text: str, value: Any) -> None:
    file = dataclasses.replace(_numbers(tmp_path, 3), partition_values=(text, None))
    schema = struct(("p", data_type), ("a", LONG), ("q", data_type))
    got = scan(state_of(tmp_path, schema, partition_columns=("p", "q")), file)
    assert [str(v) for v in got.column("p").to_pylist()] == [str(value)] * 3
    assert got.column("q").to_pylist() == [None] * 3
    assert got.column("a").to_pylist() == [0, 1, 2]


def test_partition_values_come_from_the_log_even_when_the_file_has_the_column(tmp_path: Path) -> None:
    file = dataclasses.replace(_numbers(tmp_path, 2), partition_values=("from the log",))
    got = scan(state_of(tmp_path, NUMBERS, partition_columns=("s",)), file)
    assert got.column("s").to_pylist() == ["from the log"] * 2


def test_partition_dates_outside_pythons_range(tmp_path: Path) -> None:
    file = dataclasses.replace(_numbers(tmp_path, 1), partition_values=("+12000-01-01",))
    got = scan(state_of(tmp_path, struct(("p", DATE)), partition_columns=("p",)), file)
    # 10,030 years of 365.2425 days
    assert got.column("p").cast(pa.int32()).to_pylist() == [3663382]


def test_null_in_a_not_null_partition_column_is_refused(tmp_path: Path) -> None:
    file = dataclasses.replace(_numbers(tmp_path, 1), partition_values=(None,))
    schema = struct(StructField("p", STRING, nullable=False))
    with pytest.raises(DeltaError, match="'p'"):
        scan(state_of(tmp_path, schema, partition_columns=("p",)), file)


# --- row ids


def _row_ids(tmp_path: Path, file: ScanFile, **names: str | None) -> pa.Table:
    columns = RowIdColumns(names.get("row_id"), names.get("version"))
    return scan(state_of(tmp_path, struct(("a", LONG)), row_ids=columns), file)


def test_row_ids_default_to_base_plus_position(tmp_path: Path) -> None:
    file = dataclasses.replace(_numbers(tmp_path, 5), base_row_id=100, default_row_commit_version=3)
    got = _row_ids(tmp_path, _delete(tmp_path, file, [1, 2]), row_id="_id", version="_v")
    assert got.column("_row_id").to_pylist() == [100, 103, 104]
    assert got.column("_row_commit_version").to_pylist() == [3, 3, 3]
    assert not got.schema.field("_row_id").nullable


def test_materialised_row_ids_win_where_they_are_not_null(tmp_path: Path) -> None:
    table = pa.table({"a": [1, 2, 3], "_id": [7, None, 9], "_v": pa.array([None, 1, None], pa.int64())})
    file = write(tmp_path / "f.parquet", table)
    based = dataclasses.replace(file, base_row_id=100, default_row_commit_version=5)
    got = _row_ids(tmp_path, based, row_id="_id", version="_v")
    assert got.column("_row_id").to_pylist() == [7, 101, 9]
    assert got.column("_row_commit_version").to_pylist() == [5, 1, 5]
    with pytest.raises(ProtocolError, match=r"f\.parquet"):
        _row_ids(tmp_path, file, row_id="_id", version="_v")


def test_file_without_any_row_ids_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProtocolError, match="row id"):
        _row_ids(tmp_path, _numbers(tmp_path, 5))


def test_fully_materialised_row_ids_need_no_base(tmp_path: Path) -> None:
    file = write(tmp_path / "f.parquet", pa.table({"a": [1], "_id": [7], "_v": [2]}))
    got = _row_ids(tmp_path, file, row_id="_id", version="_v")
    assert got.select(["_row_id", "_row_commit_version"]).to_pylist() == [{"_row_id": 7, "_row_commit_version": 2}]


def test_schema_lists_the_extra_columns_in_order(tmp_path: Path) -> None:
    state = state_of(tmp_path, NUMBERS, row_position=True, row_ids=RowIdColumns(None, None))
    names = ["a", "s", "_file_path", "_row_position", "_row_id", "_row_commit_version"]
    assert output_schema(state).names == names
    assert [f.nullable for f in output_schema(state)] == [True, True, False, False, False, False]


def test_stopping_early_closes_the_file(tmp_path: Path) -> None:
    batches = read(state_of(tmp_path, NUMBERS, batch_rows=10), _numbers(tmp_path))
    assert next(batches).num_rows == 10
    batches.close()
    assert list(batches) == []


def test_dictionary_encoded_by_the_arrow_schema_of_the_file(tmp_path: Path) -> None:
    table = pa.table({"a": pa.array([1, 2]), "s": pa.array(["x", None]).dictionary_encode()})
    pq.write_table(table, tmp_path / "f.parquet")
    file = ScanFile(str(tmp_path / "f.parquet"), (tmp_path / "f.parquet").stat().st_size)
    assert scan(state_of(tmp_path, NUMBERS), file).column("s").to_pylist() == ["x", None]
