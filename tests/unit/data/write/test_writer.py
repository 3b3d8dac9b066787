"""One task's data files: which rows are in which file, and what is left when something fails."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_pyds.data.spill import Spill
from delta_pyds.data.write import writer as writer_module
from delta_pyds.data.write.writer import DataFileWriter
from delta_pyds.errors import OptionError, StorageError, UserError
from delta_pyds.protocol.schema import (
    DOUBLE,
    LONG,
    STRING,
    VOID,
    ArrayType,
    MapType,
    StructField,
    StructType,
    change_fields,
)
from tests.support.memory_storage import MemoryStorage
from tests.support.scans import every_type, sample, struct
from tests.support.writes import batch_of, on_disk, read_back, statistics, write_files, write_rows, write_state

ID = struct(("id", LONG))
PARTITIONED = struct(("id", LONG), ("p", LONG))


def _ids(start: int, stop: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(range(start, stop), pa.int64())], ["id"])


def _spread(count: int, partitions: int, start: int = 0) -> pa.RecordBatch:
    ids = range(start, start + count)
    return pa.RecordBatch.from_arrays([pa.array(ids), pa.array([i * 7919 % partitions for i in ids])], ["id", "p"])


def _holds_void(data_type: Any) -> bool:
    if isinstance(data_type, StructType):
        return any(f.data_type == VOID or _holds_void(f.data_type) for f in data_type.fields)
    if isinstance(data_type, ArrayType):
        return data_type.element_type == VOID or _holds_void(data_type.element_type)
    return isinstance(data_type, MapType) and data_type.value_type == VOID


@pytest.mark.parametrize("mode", ["none", "id"])
def test_every_type_comes_back_as_it_was(tmp_path: Path, mode: str) -> None:
    random = Random(3)
    types = [t for t in every_type() if not _holds_void(t)]
    schema = _with_ids(struct(*((f"c{i}", t) for i, t in enumerate(types))))
    rows = [{f.name: sample(f.data_type, random) for f in schema} for _ in range(60)]
    state = write_state(tmp_path, schema, column_mapping_mode=mode)
    batch = batch_of(schema, rows)
    (file,) = write_files(state, batch.slice(0, 20), batch.slice(20, 1), batch.slice(21))
    got = read_back(state, file)
    assert got.equals(pa.Table.from_batches([batch]))
    names = [f.physical_name if mode == "id" else f.name for f in schema]
    held = [name for name, f in zip(names, schema, strict=True) if f.data_type != VOID]
    assert pq.read_schema(on_disk(state, file)).names == held
    assert list(statistics(file)["nullCount"]) == names


def _with_ids(schema: StructType) -> StructType:
    """With ids and physical names at every depth."""
    numbers = iter(range(1, 10_000))

    def mapped(f: StructField) -> StructField:
        number = next(numbers)
        metadata = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number}"}
        return StructField(f.name, f.data_type, f.nullable, metadata)

    return change_fields(schema, mapped)


# --- names, sizes, counts


def test_files_are_named_after_the_task(tmp_path: Path) -> None:
    state = write_state(tmp_path, ID, max_records_per_file=1)
    files = write_files(state, _ids(0, 3), partition_id=7)
    names = [re.fullmatch(r"part-00007-([0-9a-f-]{36})\.c(\d{3})\.snappy\.parquet", f.path) for f in files]
    assert [n[2] for n in names if n] == ["000", "001", "002"]
    assert len({n[1] for n in names if n}) == 1
    again = write_files(state, _ids(0, 1), partition_id=7)
    assert again[0].path not in {f.path for f in files}


def test_the_log_gets_the_file_as_it_is(tmp_path: Path) -> None:
    state = write_state(tmp_path, ID)
    (file,) = write_files(state, _ids(0, 10), _ids(10, 11))
    found = on_disk(state, file).stat()
    assert file.size_bytes == found.st_size
    assert file.modification_time_ms == found.st_mtime_ns // 1_000_000
    assert file.num_records == 11 == statistics(file)["numRecords"]
    assert file.partition_values == {}


def test_no_rows_make_no_file(tmp_path: Path) -> None:
    assert write_files(write_state(tmp_path, ID)) == ()
    assert write_files(write_state(tmp_path, ID), _ids(0, 0), _ids(5, 5)) == ()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("limit", [1, 3, 10, 99, 100, 101])
@pytest.mark.parametrize("row_group", [4, 1000])
def test_no_file_has_more_records_than_allowed(
    tmp_path: Path, limit: int, row_group: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "_ROW_GROUP_ROWS", row_group)
    state = write_state(tmp_path, ID, max_records_per_file=limit)
    files = write_files(state, *(_ids(i, min(i + 7, 100)) for i in range(0, 100, 7)))
    assert [f.num_records for f in files] == [limit] * (100 // limit) + ([100 % limit] if 100 % limit else [])
    assert read_back(state, *files).column("id").to_pylist() == list(range(100))


def test_files_roll_at_the_target_size(tmp_path: Path) -> None:
    random = Random(1)
    schema = struct(("id", LONG), ("text", STRING))
    batches = [
        batch_of(schema, [{"id": random.getrandbits(60), "text": random.randbytes(20).hex()} for _ in range(1000)])
        for _ in range(40)
    ]
    target = 300_000
    state = write_state(tmp_path, schema, target_file_bytes=target)
    files = write_files(state, *batches)
    total = sum(f.size_bytes for f in files)
    assert total / target <= len(files) <= total / target * 1.15 + 1
    assert all(0.85 * target <= f.size_bytes <= 1.15 * target for f in files[:-1])
    assert read_back(state, *files).equals(pa.Table.from_batches(batches))


def test_a_row_larger_than_the_target_is_a_file_of_its_own(tmp_path: Path) -> None:
    state = write_state(tmp_path, ID, target_file_bytes=1)
    files = write_files(state, _ids(0, 3))
    assert [f.num_records for f in files] == [1, 1, 1]


def test_batches_become_large_row_groups(tmp_path: Path) -> None:
    state = write_state(tmp_path, ID)
    (file,) = write_files(state, *(_ids(i, i + 100) for i in range(0, 50_000, 100)))
    assert pq.read_metadata(on_disk(state, file)).num_row_groups == 1


def test_a_huge_batch_is_cut_into_row_groups(tmp_path: Path) -> None:
    state = write_state(tmp_path, ID)
    (file,) = write_files(state, pa.RecordBatch.from_arrays([pa.nulls(2_500_000, pa.int64())], ["id"]))
    found = pq.read_metadata(on_disk(state, file))
    assert [found.row_group(i).num_rows for i in range(found.num_row_groups)] == [1 << 20, 1 << 20, 402_848]


@pytest.mark.parametrize(
    ("option", "codec", "suffix"),
    [
        ("snappy", "SNAPPY", ".snappy"),
        ("ZSTD", "ZSTD", ".zstd"),
        ("gzip", "GZIP", ".gz"),
        ("lz4", "LZ4", ".lz4raw"),
        ("lz4_raw", "LZ4", ".lz4raw"),
        ("brotli", "BROTLI", ".br"),
        ("uncompressed", "UNCOMPRESSED", ""),
        ("none", "UNCOMPRESSED", ""),
    ],
)
def test_compression_is_the_one_asked_for(tmp_path: Path, option: str, codec: str, suffix: str) -> None:
    state = write_state(tmp_path, ID, compression=option)
    (file,) = write_files(state, _ids(0, 100))
    assert file.path.endswith(f".c000{suffix}.parquet")
    assert pq.read_metadata(on_disk(state, file)).row_group(0).column(0).compression == codec
    assert read_back(state, file).num_rows == 100


def test_an_unknown_compression_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="'lzo'"):
        DataFileWriter(write_state(tmp_path, ID, compression="lzo"), 0)


def test_only_columns_whose_values_repeat_get_dictionaries(tmp_path: Path) -> None:
    schema = struct(("id", LONG), ("city", STRING), ("l", ArrayType(LONG)), ("n", DOUBLE))
    rows = [{"id": i, "city": "ab"[i % 2], "l": [i], "n": None} for i in range(1000)]
    state = write_state(tmp_path, schema)
    (file,) = write_rows(state, rows)
    group = pq.read_metadata(on_disk(state, file)).row_group(0)
    assert [group.column(i).has_dictionary_page for i in range(4)] == [False, True, True, True]


# --- many partitions


@pytest.fixture
def open_files(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of open files after each opening."""
    counts: list[int] = []
    opened: set[int] = set()
    create, close = writer_module.OutputFile.__init__, writer_module.OutputFile.close

    def creating(self: Any, *args: Any) -> None:
        create(self, *args)
        opened.add(id(self))
        counts.append(len(opened))

    def closing(self: Any) -> Any:
        opened.discard(id(self))
        return close(self)

    monkeypatch.setattr(writer_module.OutputFile, "__init__", creating)
    monkeypatch.setattr(writer_module.OutputFile, "close", closing)
    return counts


def test_many_partitions_make_one_file_each_however_often_memory_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_files: list[int]
) -> None:
    monkeypatch.setattr(writer_module, "_MEMORY_BYTES", 64_000)
    monkeypatch.setattr(writer_module, "_GROUPED_ROWS", 1_000)
    spills: list[Spill] = []
    create = Spill.__init__
    monkeypatch.setattr(Spill, "__init__", lambda self, *args: (create(self, *args), spills.append(self))[0])
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path / "spark"))
    (tmp_path / "spark").mkdir()
    state = write_state(tmp_path / "table", PARTITIONED, partition_columns=("p",))
    files = write_files(state, *(_spread(500, 300, start) for start in range(0, 60_000, 500)))
    assert len(spills) > 3
    assert list((tmp_path / "spark").iterdir()) == []
    assert len(files) == 300
    assert max(open_files) == 1
    for file in files:
        ids = read_back(state, file).column("id").to_pylist()
        # the order in which they came, across memory and disk
        assert ids == [i for i in range(60_000) if str(i * 7919 % 300) == file.partition_values["p"]]


def test_partitions_that_fill_row_groups_share_few_open_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_files: list[int]
) -> None:
    for name, value in {"_ROW_GROUP_ROWS": 50, "_OPEN_FILES": 3, "_GROUPED_ROWS": 100}.items():
        monkeypatch.setattr(writer_module, name, value)
    state = write_state(tmp_path, PARTITIONED, partition_columns=("p",))
    files = write_files(state, *(_spread(400, 10, start) for start in range(0, 8_000, 400)))
    assert max(open_files) == 3
    rows = read_back(state, *files)
    assert sorted(rows.column("id").to_pylist()) == list(range(8_000))
    assert all(p == i * 7919 % 10 for i, p in zip(*rows.to_pydict().values(), strict=True))
    # a file that had to make room for another one is not tiny
    assert all(f.num_records >= 50 for f in files)


def test_a_partition_on_disk_is_written_when_it_fills_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "_MEMORY_BYTES", 40_000)
    monkeypatch.setattr(writer_module, "_GROUPED_ROWS", 500)
    state = write_state(tmp_path, PARTITIONED, partition_columns=("p",), target_file_bytes=50_000)
    writer = DataFileWriter(state, 0)
    for start in range(0, 100_000, 500):
        writer.write(_spread(500, 5, start))
    assert list(tmp_path.rglob("*.parquet"))
    files = writer.close()
    assert sorted(read_back(state, *files).column("id").to_pylist()) == list(range(100_000))
    assert all(f.size_bytes < 60_000 for f in files)
    assert len(files) < 40


def test_one_large_partition_among_small_ones_is_streamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"_ROW_GROUP_ROWS": 1_000, "_GROUPED_ROWS": 100, "_MEMORY_BYTES": 100_000}.items():
        monkeypatch.setattr(writer_module, name, value)
    state = write_state(tmp_path, PARTITIONED, partition_columns=("p",))
    count = 40_000
    ids = pa.array(range(count))
    parts = pa.array([0 if i % 100 else i // 100 for i in range(count)])
    batch = pa.RecordBatch.from_arrays([ids, parts], ["id", "p"])
    files = write_files(state, *(batch.slice(i, 100) for i in range(0, count, 100)))
    rows = read_back(state, *files)
    assert sorted(zip(*rows.to_pydict().values(), strict=True)) == list(
        zip(ids.to_pylist(), parts.to_pylist(), strict=True)
    )
    assert len(files) <= 402


# --- when something fails


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> MemoryStorage:
    """A store that all writers of the test get."""
    storage = MemoryStorage()
    monkeypatch.setattr(writer_module, "resolve_storage", lambda *_: storage)
    return storage


def _paths(storage: MemoryStorage) -> list[str]:
    return sorted(storage._files)


def test_discard_deletes_finished_and_unfinished_files(memory: MemoryStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "_ROW_GROUP_ROWS", 10)
    memory.put("memory:/t/other.parquet", b"x")
    writer = DataFileWriter(write_state("memory:/t", ID, max_records_per_file=25), 0)
    for start in range(0, 60, 10):
        writer.write(_ids(start, start + 10))
    assert len(_paths(memory)) > 1
    writer.discard()
    writer.discard()
    assert _paths(memory) == ["memory:/t/other.parquet"]


def test_discard_after_close_takes_the_files_back(tmp_path: Path) -> None:
    writer = DataFileWriter(write_state(tmp_path, PARTITIONED, partition_columns=("p",)), 0)
    writer.write(_spread(100, 5))
    assert len(writer.close()) == 5
    writer.discard()
    assert list(tmp_path.rglob("*.parquet")) == []
    assert writer.close() == ()


def test_discard_goes_on_when_the_storage_refuses(memory: MemoryStorage) -> None:
    writer = DataFileWriter(write_state("memory:/t", ID, max_records_per_file=1), 0)
    writer.write(_ids(0, 4))
    files = writer.close()

    def refuse(operation: str, path: str) -> None:
        if operation == "delete" and path.endswith(files[1].path):
            raise StorageError("no", path=path)

    memory.on_call = refuse
    writer.discard()
    assert [p.rsplit("/")[-1] for p in _paths(memory)] == [files[1].path]


def test_two_attempts_of_a_task_do_not_touch_each_others_files(tmp_path: Path) -> None:
    state = write_state(tmp_path, ID)
    first, second = DataFileWriter(state, 3), DataFileWriter(state, 3)
    first.write(_ids(0, 10))
    second.write(_ids(0, 10))
    kept = second.close()
    first.close()
    first.discard()
    assert read_back(state, *kept).num_rows == 10
    assert len(list(tmp_path.iterdir())) == 1


def test_closing_twice_gives_the_same_files_and_writing_after_it_is_refused(tmp_path: Path) -> None:
    writer = DataFileWriter(write_state(tmp_path, ID), 0)
    writer.write(_ids(0, 10))
    assert writer.close() == writer.close() != ()
    with pytest.raises(ValueError, match="closed"):
        writer.write(_ids(0, 1))


class _FullDisk(io.BytesIO):
    def write(self, _: Any) -> int:
        raise OSError(28, "No space left on device")


def test_a_full_disk_is_an_error_that_names_the_file(memory: MemoryStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "open_output", lambda _: _FullDisk())
    writer = DataFileWriter(write_state("memory:/t", ID), 0)
    with pytest.raises(StorageError, match=r"memory:/t/part-00000-.*No space left"):
        writer.write(_ids(0, 10))
        writer.close()
    writer.discard()


def test_a_file_that_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "p=0").write_text("in the way")
    writer = DataFileWriter(write_state(tmp_path, PARTITIONED, partition_columns=("p",)), 0)
    writer.write(_spread(10, 1))
    with pytest.raises(StorageError, match="p=0/part-00000"):
        writer.close()
    writer.discard()
    assert os.listdir(tmp_path) == ["p=0"]


class _Losing(io.BytesIO):
    """A store that loses the end of what it is given."""

    def __init__(self, storage: MemoryStorage, path: str) -> None:
        super().__init__()
        self._storage, self._path = storage, path

    def close(self) -> None:
        if not self.closed:
            self._storage.put(self._path, self.getvalue()[:-1])
        super().close()


def test_a_file_shorter_than_written_is_refused(memory: MemoryStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    def losing(path: str) -> BinaryIO:
        return _Losing(memory, path)

    monkeypatch.setattr(memory, "open_output", losing)
    writer = DataFileWriter(write_state("memory:/t", ID), 0)
    writer.write(_ids(0, 10))
    with pytest.raises(StorageError, match="bytes in the storage"):
        writer.close()
    writer.discard()
    assert _paths(memory) == []


def test_refused_rows_leave_nothing_behind(tmp_path: Path) -> None:
    schema = struct(("p", STRING), ("a", ArrayType(VOID)))
    with pytest.raises(UserError):
        DataFileWriter(write_state(tmp_path / "t", schema, partition_columns=("p",)), 0)
    assert list(tmp_path.iterdir()) == []


def test_a_spill_that_fails_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"/nowhere,{tmp_path}")

    def batches() -> Iterator[pa.RecordBatch]:
        yield _ids(0, 10)
        raise OSError("broken")

    schema = pa.schema([("id", pa.int64())])
    with pytest.raises(StorageError, match=r"temporary rows could not be written .*: broken\. Free space there"):
        Spill(schema, batches())
    assert list(tmp_path.iterdir()) == []
    kept = Spill(schema, [_ids(0, 10), _ids(10, 12)])
    assert list(tmp_path.iterdir()) == []
    assert kept.batch(1).equals(_ids(10, 12))
