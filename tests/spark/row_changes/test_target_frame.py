"""Every row of a target frame is a live row of the table and says where it is, whichever engine reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import delta_pyds
from delta_pyds.commands.row_changes.plan import file_names
from delta_pyds.errors import CorruptLogError
from delta_pyds.protocol.paths import resolve_data_path
from delta_pyds.spark.native.uris import spark_uri
from delta_pyds.spark.row_changes.target_frame import TargetFrame, file_name, target_frame
from delta_pyds.storage.resolve import normalize_table_root
from delta_pyds.table.scan import live_files
from delta_pyds.table.snapshot import load_snapshot
from delta_pyds.tasks.changed_rows import FILE_COLUMN, POSITION_COLUMN, ROW_ID_COLUMN
from tests.support.table_builder import TableBuilder

# each takes seconds of Spark: a run takes a part of them, chosen by the commit
pytestmark = pytest.mark.one_test_in(6)

Engine = Literal["native", "arrow"]
ENGINES = pytest.mark.parametrize("engine", ["native", "arrow"])


def opened(spark: SparkSession, table: TableBuilder, engine: Engine, **options: Any) -> TargetFrame:
    delta_pyds.register(spark)
    target = target_frame(spark, load_snapshot(table.path), engine=engine, **options)
    assert target.engine == engine, target.reasons
    return target


def places(target: TargetFrame) -> dict[int, tuple[int, int]]:
    """By id, the number of the row's file and the row's position."""
    rows = target.frame.select("id", FILE_COLUMN, POSITION_COLUMN).collect()
    assert len({row[0] for row in rows}) == len(rows)
    return {row[0]: (target.number_of(row[1]), row[2]) for row in rows}


def in_files(target: TargetFrame, column: str = "id") -> dict[int, tuple[int, int]]:
    """The same by reading each file, deleted rows among them."""
    found = {}
    for number, file in enumerate(target.files):
        path = resolve_data_path(target.scan.snapshot.table_root, file.path)
        for position, value in enumerate(pq.ParquetFile(path).read().column(column).to_pylist()):
            found[value] = (number, position)
    return found


@pytest.mark.one_case_in(3)
@ENGINES
@pytest.mark.parametrize("deleted", [False, True])
@pytest.mark.parametrize("partitioned", [False, True])
def test_rows_say_their_file_and_position(
    spark: SparkSession, tmp_path: Path, engine: Engine, deleted: bool, partitioned: bool
) -> None:
    table = TableBuilder(
        tmp_path / "a table with % and +",
        {"id": "long", "d": "double", "p": "string"},
        partition_columns=["p"] if partitioned else [],
        properties={"delta.enableDeletionVectors": "true"},
    )
    table.create()
    adds = []
    for start in (0, 10, 20):
        adds += table.append([{"id": start + i, "d": float("nan"), "p": "a b%3A"} for i in range(10)])
    if deleted:
        table.delete(adds[0], [0, 3])
        table.delete(adds[1], [9])
    target = opened(spark, table, engine)
    assert target.frame.columns == ["id", "d", "p", FILE_COLUMN, POSITION_COLUMN]
    gone = {0, 3, 19} if deleted else set()
    assert places(target) == {row: place for row, place in in_files(target).items() if row not in gone}


@ENGINES
def test_files_that_cannot_have_wanted_rows_are_left_out(spark: SparkSession, tmp_path: Path, engine: Engine) -> None:
    table = TableBuilder(tmp_path / "t", {"id": "long", "b.c": "string"})
    table.create()
    for start in (0, 10, 20):
        table.append([{"id": start + i, "b.c": "x"} for i in range(10)])
    target = opened(spark, table, engine, prune="id = 15", columns=["id", "b.c"])
    assert len(target.files) == 1
    assert places(target)[15] == (0, 5)
    none = opened(spark, table, engine, prune="id = 15000", columns=["id"])
    assert (list(none.files), places(none)) == ([], {})


@ENGINES
def test_a_predicate_too_large_for_spark_still_leaves_files_out(
    spark: SparkSession, tmp_path: Path, engine: Engine
) -> None:
    table = TableBuilder(tmp_path / "t", {"id": "long"})
    table.create()
    for start in (0, 10_000):
        table.append([{"id": start + i} for i in range(10)])
    target = opened(spark, table, engine, prune=f"id IN ({','.join(map(str, range(6_000)))})")
    assert len(target.files) == 1
    assert set(places(target)) == set(range(10))


@ENGINES
def test_row_ids_are_those_that_files_keep(spark: SparkSession, tmp_path: Path, engine: Engine) -> None:
    table = TableBuilder(
        tmp_path / "t",
        {"id": "long"},
        properties={
            "delta.enableRowTracking": "true",
            "delta.rowTracking.materializedRowIdColumnName": "_row-id-col-x",
            "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-commit-version-col-x",
        },
    )
    table.create()
    table.append([{"id": i} for i in range(5)], baseRowId=0, defaultRowCommitVersion=1)
    table.append(
        [{"id": 5 + i} for i in range(3)],
        baseRowId=5,
        defaultRowCommitVersion=2,
        extra_columns={"_row-id-col-x": [77, None, 99]},
    )
    target = opened(spark, table, engine, row_ids=True)
    assert target.frame.columns == ["id", FILE_COLUMN, POSITION_COLUMN, ROW_ID_COLUMN]
    ids = {row["id"]: row for row in target.frame.collect()}
    bases = target.base_row_ids
    names = {number: name for name, number in target.names.items()}

    def row_id(row: Any) -> int:
        kept = row[ROW_ID_COLUMN]
        return kept if kept is not None else bases[names[target.number_of(row[FILE_COLUMN])]] + row[POSITION_COLUMN]

    assert [row_id(ids[i]) for i in range(8)] == [0, 1, 2, 3, 4, 77, 6, 99]


def test_a_file_of_another_table_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", {"id": "long"})
    table.create()
    table.append([{"id": 1}])
    with pytest.raises(CorruptLogError, match="Nothing was changed"):
        opened(spark, table, "native").number_of(f"file:{tmp_path}/other.parquet")


def test_a_file_that_is_in_the_table_twice_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """By a relative and an absolute path, which are two keys: rows of both would be taken for those of one."""
    table = TableBuilder(tmp_path / "t", {"id": "long"})
    table.create()
    [add] = table.append([{"id": 1}])
    table.commit([{"add": {**add["add"], "path": f"file:{table.path}/{add['add']['path']}"}}])
    with pytest.raises(CorruptLogError, match=r"lists one file twice"):
        target_frame(spark, load_snapshot(table.path))


def test_planning_builds_no_action_for_a_file(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = TableBuilder(tmp_path / "t", {"id": "long"}, properties={"delta.enableDeletionVectors": "true"})
    table.create()
    adds = [add for i in range(3) for add in table.append([{"id": i}, {"id": i + 10}])]
    table.delete(adds[1], [0])

    def refused(files: pa.RecordBatch) -> Any:
        raise AssertionError(files)

    monkeypatch.setattr(live_files, "adds_of", refused)
    assert sorted(places(opened(spark, table, "native"))) == [0, 2, 10, 11, 12]


@pytest.mark.parametrize("root", ["/data/a table %41 +", "s3://bucket/t", "/", "file:///data/t", "s3a://bucket/t/"])
def test_names_of_files_are_those_of_their_paths(root: str) -> None:
    paths = [
        "a.parquet", "p=a%20b/c d.parquet", "p=%2541/x%2Bx.parquet", "./b.parquet", "p//c.parquet", "ä/ü 𝄞.parquet",
        "/elsewhere/f.parquet", "file:/elsewhere/g.parquet", "file:///elsewhere/h%20h.parquet", "s3a://other/i.parquet",
    ]  # fmt: skip
    found = file_names(root, pa.chunked_array([paths[:4], paths[4:]], pa.string()))
    assert found == [normalize_table_root(resolve_data_path(root, path)) for path in paths]
    assert file_name(spark_uri(found[1])) == found[1]
