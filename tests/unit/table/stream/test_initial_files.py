from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_pyds.table.change_feed.changes import change_relation
from delta_pyds.table.scan.row_selection import Relation, RowSelection, select_rows
from delta_pyds.table.snapshot import Snapshot, load_snapshot
from delta_pyds.table.stream.initial_files import initial_files
from tests.support.table_builder import BASE_TIME_MS, TableBuilder


def opened(table: TableBuilder, where: str | None = None, *, changes: bool = False) -> tuple[Snapshot, RowSelection]:
    snapshot = load_snapshot(str(table.path))
    configuration = snapshot.configuration
    relation = change_relation(configuration) if changes else Relation.of(configuration)
    return snapshot, select_rows(relation, where=where)


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    table = TableBuilder(tmp_path / "t", {"id": "long", "p": "string"}, ["p"])
    table.create()
    files = [("b", 2, "x"), ("a", 2, "y"), ("c", 1, "x"), ("ä", 1, "y"), ("Z", 1, None)]
    table.commit([table.add(n, modificationTime=t, partitionValues={"p": p}, size=10 * t) for n, t, p in files])
    return table


def paths(files: Any) -> list[str]:
    return [str(path) for path in files.rows.column("path").to_pylist()] if len(files) else []


IN_ORDER = ["Z", "c", "ä", "a", "b"]


@pytest.mark.parametrize("kind", [None, "classic", "multipart", "v2-json", "v2-parquet"])
def test_files_come_by_time_and_by_the_bytes_of_their_path_wherever_they_are_kept(
    table: TableBuilder, kind: str | None
) -> None:
    if kind is not None:
        table.checkpoint(kind=kind)
    table.commit([table.add("d", modificationTime=1, partitionValues={"p": "x"})])
    files = initial_files(*opened(table))
    assert paths(files) == ["Z", "c", "d", "ä", "a", "b"]
    assert files.numbers.to_pylist() == list(range(6))
    assert files.sizes.to_pylist() == [10, 10, 1000, 10, 20, 20]


def test_what_is_left_out_keeps_its_number(table: TableBuilder) -> None:
    files = initial_files(*opened(table, "p = 'x'"))
    assert (paths(files), files.numbers.to_pylist()) == (["c", "b"], [1, 4])
    files = initial_files(*opened(table), re.compile("[ac]"))
    assert (paths(files), files.numbers.to_pylist()) == (["Z", "ä", "b"], [0, 2, 4])
    files = initial_files(*opened(table, "p = 'x'"), re.compile("c"))
    assert (paths(files), files.numbers.to_pylist()) == (["b"], [4])
    assert len(initial_files(*opened(table, "p = 'none'"))) == 0


def test_a_slice_is_named_by_numbers(table: TableBuilder) -> None:
    files = initial_files(*opened(table, "p = 'x'"))
    assert files.between(-1, 1).column("path").to_pylist() == ["c"]
    assert files.between(-1, 0).num_rows == 0
    assert files.between(1, None).column("path").to_pylist() == ["b"]
    assert files.between(4, 2).num_rows == 0


def test_an_empty_table_has_no_files(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", {"id": "long"})
    table.create()
    assert len(initial_files(*opened(table))) == 0


@pytest.mark.parametrize("checkpoint", [False, True])
def test_of_a_change_feed_every_file_is_an_insert_of_the_version(table: TableBuilder, checkpoint: bool) -> None:
    if checkpoint:
        table.checkpoint()
    files = initial_files(*opened(table, changes=True), change_feed_ms=BASE_TIME_MS)
    assert paths(files) == IN_ORDER
    rows = files.rows.to_pylist()
    assert [row["partition:0"] for row in rows] == [None, "x", "y", "y", "x"]
    assert {(row["partition:1"], row["partition:2"], row["partition:3"]) for row in rows} == {
        ("insert", "1", "2023-11-14T22:13:20.000000Z")
    }
    assert {(row["selected"], row["changeData"]) for row in rows} == {(None, False)}


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("_change_type = 'insert'", IN_ORDER),
        ("_change_type = 'delete'", []),
        ("_commit_version = 1 AND p = 'y'", ["ä", "a"]),
        ("_commit_version = 2 OR p IS NULL", ["Z"]),
        ("_commit_timestamp > TIMESTAMP'2023-11-14 22:13:20Z'", []),
    ],
)
def test_predicates_on_change_columns_and_partitions_leave_files_out(
    table: TableBuilder, where: str, expected: list[str], checkpoint: bool
) -> None:
    if checkpoint:
        table.checkpoint()
    files = initial_files(*opened(table, where, changes=True), change_feed_ms=BASE_TIME_MS)
    assert paths(files) == expected


def test_deletion_vectors_stay_with_their_files(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", {"id": "long"}, properties={"delta.enableDeletionVectors": "true"})
    table.create()
    [first] = table.append([{"id": 1}, {"id": 2}])
    table.append([{"id": 3}])
    table.delete(first, [0])
    table.checkpoint()
    files = initial_files(*opened(table))
    vectors = {r["path"]: r["deletionVector"] for r in files.rows.to_pylist()}
    assert len(vectors) == 2
    assert [path for path, vector in vectors.items() if vector is not None] == [first["add"]["path"]]
    assert isinstance(files.rows, pa.RecordBatch)
