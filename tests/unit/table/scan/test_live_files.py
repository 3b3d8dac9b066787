from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_pyds.errors import CorruptLogError
from delta_pyds.protocol.actions import AddFile, RemoveFile
from delta_pyds.protocol.deletion_vector import DeletionVectorDescriptor
from delta_pyds.table.scan import live_files as module
from delta_pyds.table.scan.live_files import LiveFiles, adds_of, live_files, removal
from delta_pyds.table.scan.scan import plan_scan
from delta_pyds.table.snapshot import load_snapshot
from tests.support.table_builder import TableBuilder

ROW: dict[str, Any] = {"path": "a.parquet", "size": 1, "modificationTime": 1, "dataChange": True}
VECTOR: dict[str, Any] = {"storageType": "u", "pathOrInlineDv": "x", "offset": 1, "sizeInBytes": 8, "cardinality": 1}


def test_a_remove_says_all_that_readers_of_changes_and_vacuum_need() -> None:
    vector = DeletionVectorDescriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", 40, 2, 1)
    add = AddFile(
        "a b",
        {"p": None},
        10,
        7,
        tags={"k": "v"},
        deletion_vector=vector,
        base_row_id=3,
        default_row_commit_version=4,
        stats="{}",
    )
    for data_change in (True, False):
        assert removal(add, deletion_timestamp_ms=99, data_change=data_change) == RemoveFile(
            "a b",
            deletion_timestamp=99,
            data_change=data_change,
            extended_file_metadata=True,
            partition_values={"p": None},
            size=10,
            tags={"k": "v"},
            deletion_vector=vector,
            base_row_id=3,
            default_row_commit_version=4,
        )


def test_a_remove_of_an_unpartitioned_file_has_no_partition_values_and_not_none() -> None:
    assert removal(AddFile("a", None, 10, 7), deletion_timestamp_ms=1, data_change=True).partition_values == {}


def test_a_row_is_an_action() -> None:
    (found,) = adds_of(pa.RecordBatch.from_pylist([{**ROW, "deletionVector": VECTOR}]))
    assert found.path == "a.parquet" and found.deletion_vector is not None
    (found,) = adds_of(pa.RecordBatch.from_pylist([{**ROW, "deletionVector": dict.fromkeys(VECTOR)}]))
    assert found.deletion_vector is None


@pytest.mark.parametrize("missing", ["sizeInBytes", "cardinality", "pathOrInlineDv"])
def test_a_row_with_an_incomplete_vector_is_a_damaged_log(missing: str) -> None:
    kinds = pa.RecordBatch.from_pylist([{"deletionVector": VECTOR}]).schema.field(0).type
    damaged = pa.array([{**VECTOR, missing: None}], kinds)
    rows = pa.RecordBatch.from_pylist([ROW]).append_column("deletionVector", damaged)
    with pytest.raises(CorruptLogError, match=r"the file 'a.parquet' is damaged .*" + missing):
        list(adds_of(rows))


def test_a_row_with_a_key_twice_is_a_damaged_log() -> None:
    values = pa.array([[("p", "1"), ("p", "2")]], pa.map_(pa.string(), pa.string()))
    rows = pa.RecordBatch.from_pylist([ROW]).append_column("partitionValues", values)
    with pytest.raises(CorruptLogError, match="two values of one key"):
        list(adds_of(rows))


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    """Files of a checkpoint and of commits, some of them with a deletion vector."""
    built = TableBuilder(tmp_path / "t", {"id": "long"}, properties={"delta.enableDeletionVectors": "true"})
    built.create()
    adds = [built.write_file([{"id": i}, {"id": -i}]) for i in range(70)]
    built.commit(adds)
    built.delete(adds[3], [0])
    built.checkpoint()
    built.append([{"id": 70}])
    return built


def test_actions_of_live_files_are_built_on_request(table: TableBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    scan = plan_scan(load_snapshot(str(table.path)))
    built: list[int] = []

    def counting(files: pa.RecordBatch) -> Any:
        built.append(len(files))
        return adds_of(files)

    expected = list(live_files(scan))
    monkeypatch.setattr(module, "adds_of", counting)
    files = LiveFiles(scan)
    assert len(files) == 71 and files.num_bytes == sum(file.size for file in expected)
    assert built == []
    assert [files[n] for n in range(len(files))] == expected == list(files)
    assert files[-1] == expected[-1] and files[60:65] == expected[60:65]
    # each was built once by its number, and once in the list
    assert sum(built) == 2 * 71
    with pytest.raises(IndexError):
        files[71]


def test_no_live_file(tmp_path: Path) -> None:
    empty = TableBuilder(tmp_path / "t", {"id": "long"})
    empty.create()
    files = LiveFiles(plan_scan(load_snapshot(str(empty.path))))
    assert (len(files), list(files), files.num_bytes) == (0, [], 0)
