"""Partitions: which rows go where, and how the place is named."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pytest

from delta_pyds.data.write.layout import Layout, escape_path_name, partition_directory
from delta_pyds.errors import ProtocolError
from delta_pyds.protocol.paths import encode_path
from delta_pyds.protocol.schema import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
    StructField,
)
from tests.support.data_files import hive_escape
from tests.support.scans import struct
from tests.support.writes import batch_of, on_disk, read_back, write_files, write_rows, write_state

NASTY = [
    "plain", "a b", "a/b", "../..", "..", "%", "%2F", "a=b", "a:b", "ü", "日本", "\U0001f600", "#?&+", "'\"", "{x}[y]^",
    "\\", "*", "\x01\x1f\x7f", "line\nfeed", " ", "a ", "__HIVE_DEFAULT_PARTITION__", "null", "x" * 300, "é" * 200,
]  # fmt: skip


def test_every_text_comes_back_and_its_file_is_where_the_log_says(tmp_path: Path) -> None:
    schema = struct(("id", LONG), ("p q=", STRING))
    state = write_state(tmp_path, schema, partition_columns=("p q=",))
    rows = [{"id": i, "p q=": text} for i, text in enumerate([*NASTY, None, ""])]
    files = write_rows(state, rows)
    assert len(files) == len(NASTY) + 1
    for file in files:
        path = on_disk(state, file)
        assert path.is_file()
        assert len(path.relative_to(tmp_path).parts) == 2
        value = file.partition_values["p q="]
        assert value is None or value in NASTY
        if len(hive_escape(value or "").encode()) < 200:
            escaped = "__HIVE_DEFAULT_PARTITION__" if value is None else hive_escape(value)
            assert unquote(file.path).startswith(f"p q%3D={escaped}/part-00000-")
    want = sorted((r["id"], r["p q="] or None) for r in rows)
    assert sorted((r["id"], r["p q="]) for r in read_back(state, *files).to_pylist()) == want


def test_names_are_escaped_as_spark_does() -> None:
    text = "".join(map(chr, range(1, 200))) + "ü日"
    assert escape_path_name(text) == hive_escape(text)
    assert escape_path_name("a/b:c%") == "a%2Fb%3Ac%25"
    assert encode_path("a=1%2F2/ü x.parquet") == "a=1%252F2/%C3%BC%20x.parquet"


def test_names_too_long_for_a_file_system_are_cut_and_stay_apart() -> None:
    one, other = (partition_directory(("p",), ("é" * 300 + end,)) for end in "ab")
    assert one != other
    assert all(len(d.encode()) <= 255 for d in (one, other))
    assert partition_directory(("p",), ("x" * 253,)) == "p=" + "x" * 253


@pytest.mark.parametrize(
    ("data_type", "value", "text"),
    [
        (STRING, "", None),
        (STRING, None, None),
        (BOOLEAN, True, "true"),
        (INTEGER, -5, "-5"),
        (DATE, dt.date(1, 2, 3), "0001-02-03"),
        (TIMESTAMP, dt.datetime(2024, 1, 2, 3, 4, 5, 6, dt.timezone.utc), "2024-01-02T03:04:05.000006Z"),
        (TIMESTAMP_NTZ, dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), "1969-12-31 23:59:59.999999"),
        (DecimalType(10, 2), Decimal("1.50"), "1.50"),
        (DOUBLE, 0.1, "0.1"),
        (FLOAT, 0.1, "0.1"),
        (DOUBLE, math.nan, "NaN"),
        (DOUBLE, -math.inf, "-Infinity"),
        (BINARY, b"ab", "ab"),
        (BINARY, b"", None),
    ],
)
def test_values_are_texts_of_the_log_by_physical_name(
    tmp_path: Path, data_type: DataType, value: Any, text: str | None
) -> None:
    mapping = {"delta.columnMapping.physicalName": "col-p", "delta.columnMapping.id": 2}
    schema = struct(("id", LONG), StructField("p", data_type, True, mapping))
    state = write_state(tmp_path, schema, partition_columns=("p",), column_mapping_mode="name")
    (file,) = write_rows(state, [{"id": 1, "p": value}])
    assert file.partition_values == {"col-p": text}
    (got,) = read_back(state, file).column("p").to_pylist()
    want = None if text is None else pa.scalar(value, pa.float32()).as_py() if data_type == FLOAT else value
    assert got == want or (got != got and want != want)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    state = write_state(tmp_path, struct(("id", LONG), ("p", BINARY)), partition_columns=("p",))
    with pytest.raises(ProtocolError) as caught:
        write_rows(state, [{"id": 1, "p": b"\xff"}])
    assert caught.value.code == "DELTA_INVALID_PARTITION_VALUE"


def test_texts_of_spark_that_are_no_utf8_are_refused(tmp_path: Path) -> None:
    state = write_state(tmp_path, struct(("id", LONG), ("p", STRING)), partition_columns=("p",))
    broken = pa.array([b"\xff"]).view(pa.string())
    with pytest.raises(ProtocolError, match="Partition by another column"):
        write_files(state, pa.RecordBatch.from_arrays([pa.array([1]), broken], ["id", "p"]))


def test_random_prefixes_take_the_place_of_directories(tmp_path: Path) -> None:
    schema = struct(("id", LONG), ("p", LONG))
    state = write_state(tmp_path, schema, partition_columns=("p",), random_prefix_length=3)
    files = write_rows(state, [{"id": i, "p": i} for i in range(20)])
    prefixes = [file.path.split("/")[0] for file in files]
    assert all(len(p) == 3 and p.isalnum() and p.isascii() for p in prefixes)
    assert len(set(prefixes)) > 1
    assert sorted(int(f.partition_values["p"] or -1) for f in files) == list(range(20))
    assert all(on_disk(state, f).is_file() for f in files)


def test_columns_keep_their_order_in_directories_and_rows_in_partitions(tmp_path: Path) -> None:
    schema = struct(("b", STRING), ("id", LONG), ("a", LONG))
    state = write_state(tmp_path, schema, partition_columns=("a", "b"))
    rows = [{"b": "xyz"[i % 3], "id": i, "a": i % 2} for i in range(600)]
    batch = batch_of(schema, rows)
    files = write_files(state, batch.slice(0, 100), batch.slice(100, 1), batch.slice(101))
    assert sorted(f.path.rsplit("/", 1)[0] for f in files) == sorted(f"a={a}/b={b}" for a in (0, 1) for b in "xyz")
    for file in files:
        ids = read_back(state, file).column("id").to_pylist()
        assert ids == sorted(ids)
        assert len(ids) == 100


def test_more_combinations_than_a_long_holds_stay_apart() -> None:
    # 70,000^4 > 2^63: the codes of the columns are combined one by one
    count = 70_000
    names = [f"p{i}" for i in range(4)]
    schema = struct(("id", LONG), *((n, LONG) for n in names))
    layout = Layout(write_state("/t", schema, partition_columns=tuple(names)))
    columns = [pa.array([(i * step) % count for i in range(count)]) for step in (1, 3, 9, 27)]
    rows = pa.RecordBatch.from_arrays([pa.array(range(count))], ["id"])
    found = {key: part.column(0).to_pylist() for key, part in layout.split(columns, rows)}
    assert len(found) == count
    for place in (0, 1, 69_999):
        key = tuple(str(column[place].as_py()) for column in columns)
        assert found[key] == [place]


def test_rows_in_order_of_partition_are_only_sliced() -> None:
    layout = Layout(write_state("/t", struct(("id", LONG), ("p", STRING)), partition_columns=("p",)))
    ids = pa.array(range(6))
    parts = list(layout.split([pa.array(["b", "b", None, "", "a", "a"])], pa.RecordBatch.from_arrays([ids], ["id"])))
    assert [(key, part.column(0).to_pylist()) for key, part in parts] == [
        (("b",), [0, 1]), ((None,), [2, 3]), (("a",), [4, 5]),
    ]  # fmt: skip
    assert all(part.column(0).buffers()[1].address == ids.buffers()[1].address for _, part in parts)


def test_change_data_files_have_their_own_directory_and_name(tmp_path: Path) -> None:
    schema = struct(("id", LONG), ("p", STRING))
    state = write_state(tmp_path, schema, partition_columns=("p",), change_data=True)
    (file,) = write_rows(state, [{"id": 1, "p": "a/b"}])
    assert file.path.startswith("_change_data/p=a%252Fb/cdc-00000-")
    assert read_back(state, file).to_pylist() == [{"id": 1, "p": "a/b"}]
    (flat,) = write_rows(write_state(tmp_path, struct(("id", LONG)), change_data=True), [{"id": 1}])
    assert flat.path.startswith("_change_data/cdc-00000-")
