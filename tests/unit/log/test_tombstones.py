"""Tombstones from checkpoints of every kind and from the commits after them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_pyds.errors import CorruptLogError
from delta_pyds.log.adds import AddRequest
from delta_pyds.table.snapshot import load_snapshot
from tests.support.table_builder import TableBuilder


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    features = ["deletionVectors", "v2Checkpoint"]
    built = TableBuilder(tmp_path / "t", {"id": "long"}, features=(features, features))
    built.create()
    built.commit([built.add(f"{i}.parquet") for i in range(6)])
    for i in range(4):
        built.commit([built.remove(built.add(f"{i}.parquet"), deletion_timestamp=10 * i)])
    return built


def found(table: TableBuilder, since: int = 0) -> list[tuple[str, int | None]]:
    batches = list(load_snapshot(str(table.path)).replay.tombstones(since))
    assert all(len(b) for b in batches)
    return sorted((r["path"], r["deletionTimestamp"]) for b in batches for r in b.to_pylist())


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("none", {}),
        ("classic", {"row_group_size": 2}),
        ("multipart", {}),
        ("v2-json", {}),
        ("v2-json", {"sidecars": 0}),
        ("v2-parquet", {"sidecars": 2}),
        ("v2-classic", {}),
    ],
)
def test_tombstones_come_from_checkpoint_and_commits_alike(table: TableBuilder, kind: str, options: dict) -> None:
    if kind != "none":
        table.checkpoint(kind=kind, **options)
        table.cleanup_log(table.version)
    assert found(table) == [("0.parquet", 0), ("1.parquet", 10), ("2.parquet", 20), ("3.parquet", 30)]
    assert found(table, 20) == [("2.parquet", 20), ("3.parquet", 30)]
    assert found(table, 31) == []
    # back, gone again later, and newly gone
    table.commit([table.add("1.parquet")])
    table.commit([table.add("2.parquet")])
    table.commit([table.remove(table.add(f"{i}.parquet"), deletion_timestamp=50 + i) for i in (2, 5)])
    assert found(table, 1) == [("2.parquet", 52), ("3.parquet", 30), ("5.parquet", 55)]


def test_a_tombstone_without_a_time_counts_as_removed_at_the_epoch(table: TableBuilder) -> None:
    table.commit([{"remove": {"path": "5.parquet", "dataChange": True}}])
    for _ in range(2):
        assert ("5.parquet", None) in found(table, 0)
        assert ("5.parquet", None) not in found(table, 1)
        table.checkpoint()


def test_the_same_file_with_another_deletion_vector_is_another_tombstone(table: TableBuilder) -> None:
    def vector(offset: int | None) -> dict[str, object]:
        body: dict[str, object] = {"storageType": "u", "pathOrInlineDv": "a" * 20, "sizeInBytes": 1, "cardinality": 1}
        return body | ({} if offset is None else {"offset": offset})

    table.commit(
        [table.add("x.parquet", deletionVector=vector(1)), table.add("x.parquet", deletionVector=vector(None))]
    )
    gone = table.add("x.parquet", deletionVector=vector(1))
    table.commit([table.remove(gone, deletion_timestamp=90)])
    for _ in range(2):
        assert found(table, 80) == [("x.parquet", 90)]
        adds = load_snapshot(str(table.path)).adds(AddRequest(("path", "deletionVector")))
        offsets = [r["deletionVector"]["offset"] for b in adds for r in b.files.to_pylist() if r["path"] == "x.parquet"]
        assert offsets == [None]
        table.checkpoint()
        table.cleanup_log(table.version)
    table.commit([table.remove(table.add("x.parquet", deletionVector=vector(None)), deletion_timestamp=91)])
    assert found(table, 80) == [("x.parquet", 90), ("x.parquet", 91)]
    table.commit([gone])
    assert found(table, 80) == [("x.parquet", 91)]


def test_many_tombstones_among_many_files_stay_in_bounded_batches(table: TableBuilder) -> None:
    (file,) = table.checkpoint()
    content = pq.read_table(file)
    remove = content.column("remove").drop_null().combine_chunks()
    count = 40_000
    paths = pa.array([f"many-{i}.parquet" for i in range(count)])
    many = remove.take(pa.array([0] * count))
    fields = [paths if f.name == "path" else c for f, c in zip(many.type, many.flatten(), strict=True)]
    column = pa.StructArray.from_arrays(fields, fields=list(many.type))
    extra = pa.Table.from_arrays(
        [column if f.name == "remove" else pa.nulls(count, f.type) for f in content.schema], schema=content.schema
    )
    pq.write_table(pa.concat_tables([content, extra]), file)
    table.cleanup_log(table.version)
    table.commit([table.add("many-17.parquet"), table.add("many-39999.parquet")])
    batches = list(load_snapshot(str(table.path)).replay.tombstones(0))
    assert sum(map(len, batches)) == count + 4 - 2
    assert max(map(len, batches)) <= 16_384


def test_a_remove_column_of_another_shape_is_refused_by_name(table: TableBuilder) -> None:
    (file,) = table.checkpoint()
    content = pq.read_table(file)
    place = content.column_names.index("remove")
    pq.write_table(content.set_column(place, "remove", pa.array(["x"] * len(content))), file)
    table.cleanup_log(table.version)
    with pytest.raises(CorruptLogError, match=r"checkpoint\.parquet"):
        found(table)
