"""The rows of a table as an Arrow stream: the same rows as a read, in order, in bounded memory, for other libraries."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pandas
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import delta_pyds
from delta_pyds.data.read import concurrent
from delta_pyds.errors import DeltaError, ExpressionError, OptionError, TableNotFoundError
from tests.support.table_builder import TableBuilder
from tests.support.table_writes import write_rows

ROWS_PER_FILE = 1_000
FILES = 7


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of rows that count up; of the third one every second row is deleted by a deletion vector."""
    path = tmp_path_factory.mktemp("scan") / "t"
    properties = {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}
    builder = TableBuilder(path, {"id": "long", "city": "string", "day": "date"}, properties=properties)
    builder.create()
    adds = []
    for file in range(FILES):
        ids = range(file * ROWS_PER_FILE, (file + 1) * ROWS_PER_FILE)
        adds += builder.append([{"id": n, "city": f"c{n % 10}", "day": None} for n in ids])
    builder.delete(adds[2], range(0, ROWS_PER_FILE, 2))
    return path


def _live() -> list[int]:
    return [n for n in range(FILES * ROWS_PER_FILE) if n // ROWS_PER_FILE != 2 or n % 2]


def _readers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "deltapy-read"]


@pytest.fixture(autouse=True)
def _nothing_is_left_running() -> Iterator[None]:
    yield
    gc.collect()
    assert not _readers()


@pytest.mark.parametrize("threads", [None, 1, 3, 50])
def test_rows_come_file_by_file_in_order_whatever_the_number_of_threads(table: Path, threads: int | None) -> None:
    scan = delta_pyds.scan(table, threads=threads)
    assert sorted(scan.to_table().column("id").to_pylist()) == _live()
    alone = delta_pyds.scan(table, threads=1).to_table()
    assert scan.to_table().equals(alone)


def test_where_columns_and_version(table: Path) -> None:
    scan = delta_pyds.scan(table, where="id >= 5000 AND city = 'c3'", columns=["id"])
    assert scan.schema == pa.schema([pa.field("id", pa.int64())]).with_metadata(scan.schema.metadata)
    assert sorted(scan.to_table().column("id").to_pylist()) == list(range(5003, 7000, 10))
    assert scan.explain().num_kept == 2
    before = delta_pyds.scan(table, version=1)
    assert before.version == 1 and before.to_table().num_rows == ROWS_PER_FILE
    assert "version 1" in repr(before) and "'c3'" in repr(scan)


def test_a_scan_stays_at_its_version_and_is_read_more_than_once(tmp_path: Path) -> None:
    write_rows(tmp_path, {"id": "long"}, [{"id": 1}])
    scan = delta_pyds.scan(tmp_path)
    write_rows(tmp_path, {"id": "long"}, [{"id": 2}])
    assert [scan.to_table().num_rows, scan.to_table().num_rows] == [1, 1]


def test_a_table_without_rows_has_its_columns(tmp_path: Path) -> None:
    write_rows(tmp_path, {"id": "long", "name": "string"}, [])
    table = delta_pyds.scan(tmp_path).to_table()
    assert table.num_rows == 0 and table.column_names == ["id", "name"]


def test_other_libraries_take_the_stream(table: Path) -> None:
    scan = delta_pyds.scan(table, columns=["id", "city"])
    expected = sum(_live())
    assert polars.DataFrame(scan)["id"].sum() == expected
    assert scan.to_table().to_pandas()["id"].sum() == expected
    assert isinstance(scan.to_table().to_pandas(), pandas.DataFrame)
    (total,) = duckdb.sql("SELECT sum(id) FROM scan").fetchall()
    assert total == (expected,)
    assert pc.sum(pa.table(scan).column("id")).as_py() == expected
    assert pa.RecordBatchReader.from_stream(scan).read_all().num_rows == len(_live())
    assert pa.schema(scan) == scan.schema


def test_long_files_are_read_in_parts_by_several_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    builder = TableBuilder(tmp_path, {"id": "long"})
    builder.create()
    # 20 row groups
    builder.append([{"id": n} for n in range(20_000)], row_group_size=1_000)
    opened: list[tuple[int, int | None]] = []
    original = concurrent.read

    def noted(state: Any, file: concurrent.ScanFile, plans: Any) -> Iterator[pa.RecordBatch]:
        opened.append((file.start, file.length))
        return original(state, file, plans)

    monkeypatch.setattr(concurrent, "read", noted)
    monkeypatch.setattr(concurrent, "_PIECE_BYTES", 20_000)
    monkeypatch.setattr(concurrent, "SHORT_FILE_BYTES", 0)
    assert delta_pyds.scan(tmp_path, threads=2).to_table().column("id").to_pylist() == list(range(20_000))
    assert len(opened) > 3 and sorted(opened)[-1][1] is None


@pytest.mark.parametrize("threads", [1, 3])
def test_a_batch_says_of_which_file_it_is(table: Path, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = delta_pyds.scan(table)._scan
    files = list(planned.files())
    expected = [sum(batch.num_rows for batch in concurrent.read(planned.state, file)) for file in files]
    monkeypatch.setattr(concurrent, "_PIECE_BYTES", 1_000)
    monkeypatch.setattr(concurrent, "SHORT_FILE_BYTES", 0)
    counts = [0] * len(files)
    for number, batch in concurrent.read_numbered(planned.state, files, threads=threads):
        counts[number] += batch.num_rows
    assert counts == expected and sum(counts) == len(_live())


@pytest.mark.parametrize("together", [1, 2, 64])
@pytest.mark.parametrize("short", [0, "between", 1 << 20])
def test_short_files_are_read_together_and_in_order(
    table: Path, together: int, short: int | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = delta_pyds.scan(table)._scan
    files = list(planned.files())
    between = sorted(file.size_bytes for file in files)[FILES // 2]
    monkeypatch.setattr(concurrent, "_SHORT_FILES", together)
    monkeypatch.setattr(concurrent, "SHORT_FILE_BYTES", between if isinstance(short, str) else short)
    expected = [(n, batch) for n, file in enumerate(files) for batch in concurrent.read(planned.state, file)]
    assert list(concurrent.read_numbered(planned.state, files, threads=3)) == expected


def test_rows_before_a_short_file_that_is_gone_are_told_first(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path / "t", {"id": "long"})
    builder.create()
    adds = [builder.append([{"id": n}])[0] for n in range(5)]
    builder.data_file(adds[3]).unlink()
    found = []
    with pytest.raises(DeltaError, match=builder.data_file(adds[3]).name):
        for batch in delta_pyds.scan(tmp_path / "t", threads=2).to_batches():
            found += batch.column("id").to_pylist()
    assert found == [0, 1, 2]


def test_one_thread_opens_a_file_once(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    original = concurrent.read

    def noted(state: Any, file: concurrent.ScanFile, plans: Any) -> Iterator[pa.RecordBatch]:
        opened.append(file.path)
        return original(state, file, plans)

    monkeypatch.setattr(concurrent, "read", noted)
    monkeypatch.setattr(concurrent, "_PIECE_BYTES", 1_000)
    monkeypatch.setattr(concurrent, "SHORT_FILE_BYTES", 0)
    delta_pyds.scan(table, threads=1).to_table()
    assert len(opened) == len(set(opened)) == FILES


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    copy = TableBuilder(tmp_path / "t", {"id": "long"})
    copy.create()
    adds = [copy.append([{"id": n}])[0] for n in range(5)]
    copy.data_file(adds[0]).unlink()
    with pytest.raises(DeltaError, match=copy.data_file(adds[0]).name):
        delta_pyds.scan(tmp_path / "t", threads=2).to_table()


def test_a_stream_that_is_not_read_to_its_end_stops_its_threads(table: Path) -> None:
    batches = delta_pyds.scan(table, threads=3).to_batches()
    next(batches)
    batches.close()
    assert not _readers()
    reader = delta_pyds.scan(table, threads=3).to_reader()
    reader.read_next_batch()
    del reader


def test_what_is_decoded_ahead_is_bounded(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path, {"text": "string"})
    builder.create()
    for _ in range(40):
        builder.append([{"text": os.urandom(500).hex()} for _ in range(1_000)])  # 1 MB
    scan = delta_pyds.scan(tmp_path)
    planned = scan._scan
    before = pa.total_allocated_bytes()
    most = 0
    for batch in concurrent.read_concurrently(planned.state, planned.files(), threads=3, ahead_bytes=30_000):
        del batch
        most = max(most, pa.total_allocated_bytes() - before)
    # three files of 1 MB are decoded, each in buffers of twice its size at most, and nothing like forty
    assert 0 < most < 16_000_000


def test_mistakes_are_named(table: Path, tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError):
        delta_pyds.scan(tmp_path / "nothing")
    with pytest.raises(ExpressionError):
        delta_pyds.scan(table, where="id ===")
    for threads in (0, -1, True, 1.5):
        with pytest.raises(OptionError, match="threads"):
            delta_pyds.scan(table, threads=threads)  # type: ignore[arg-type]
