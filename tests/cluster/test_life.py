"""A life of a table on a cluster: written, streamed, changed, laid out and read by several executors."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import delta_pyds
from delta_pyds import DeltaTable, verify
from tests.support.clusters import in_both_executors, vacuum_all
from tests.support.streams import copy_as_stream

_PROPERTIES = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}


def test_rows_are_written_and_read_by_several_executors(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    with in_both_executors(spark):
        done = delta_pyds.write(_rows(spark, 0, 1000), path, partition_by="p", properties=_PROPERTIES)
    assert (done.version, done.rows, done.files) == (0, 1000, 4)
    with in_both_executors(spark):
        _rows(spark, 1000, 2000).write.format("deltapy").mode("append").save(path)
    with in_both_executors(spark):
        delta_pyds.write(
            _rows(spark, 0, 500).filter("p = 0"), path, mode="overwrite", replace_where="p = 0 AND id < 500"
        )
    for frame, engine in _frames(spark, path):
        assert delta_pyds.explain(frame).engine == engine
        with in_both_executors(spark):
            assert _ids(frame) == list(range(2000))
        assert _ids(frame.filter("id BETWEEN 990 AND 1010 AND p = 1")) == list(range(991, 1011, 2))
    assert _ids(delta_pyds.read(spark, path, where="id >= 1998", version=1)) == [1998, 1999]
    verify(path).raise_for_errors()


def test_rows_are_changed_by_several_executors(spark: SparkSession, tmp_path: Path) -> None:
    for engine in ("spark", "tasks"):
        path = str(tmp_path / engine)
        delta_pyds.write(_rows(spark, 0, 1000), path, partition_by="p", properties=_PROPERTIES)
        table = DeltaTable.forPath(spark, path, engine=engine)  # type: ignore[arg-type]
        with in_both_executors(spark):
            table.delete("id % 10 = 0")
        with in_both_executors(spark):
            table.update("id % 10 IN (1, 2)", {"v": "'u'"})
        source = spark.range(995, 1005).selectExpr("id", "'m' AS v", "id % 2 AS p").alias("s")
        merge = table.alias("t").merge(source, "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll()
        with in_both_executors(spark):
            counts = merge.execute().collect()[0]
        assert tuple(counts) == (10, 5, 0, 5)
        wanted = {i: "m" if i >= 995 else "u" if i % 10 in (1, 2) else "a" for i in range(1005)}
        wanted = {i: v for i, v in wanted.items() if i % 10 or i >= 995}
        for frame, _ in _frames(spark, path):
            assert {row.id: row.v for row in frame.collect()} == wanted
        changes = spark.read.format("deltapy").option("readChangeFeed", "true").option("startingVersion", 1).load(path)
        kinds = dict(map(tuple, changes.groupBy("_change_type").count().collect()))
        assert kinds == {"delete": 100, "update_preimage": 205, "update_postimage": 205, "insert": 5}
        verify(path).raise_for_errors()


def test_a_layout_is_made_by_several_executors(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    for start in range(0, 2000, 500):
        delta_pyds.write(_rows(spark, start, start + 500), path, mode="append", partition_by="p" if not start else None)
    table = DeltaTable.forPath(spark, path, engine="tasks")
    with in_both_executors(spark):
        table.optimize().executeCompaction()
    assert table.detail().collect()[0].numFiles == 2
    with in_both_executors(spark):
        table.optimize().executeZOrderBy("id", "v")
    vacuum_all(spark, path)
    assert len(list(tmp_path.glob("t/*/*.parquet"))) == table.detail().collect()[0].numFiles
    for frame, _ in _frames(spark, path):
        assert _ids(frame) == list(range(2000))
    verify(path).raise_for_errors()


def test_a_stream_passes_through_several_executors(spark: SparkSession, tmp_path: Path) -> None:
    path, copy = str(tmp_path / "t"), str(tmp_path / "copy")
    for start in (0, 1000):
        by = "p" if not start else None
        delta_pyds.write(_rows(spark, start, start + 1000), path, mode="append", partition_by=by)
        with in_both_executors(spark):
            copy_as_stream(spark, path, copy, tmp_path / "checkpoint", maxFilesPerTrigger=2)
    versions = DeltaTable.forPath(spark, copy).history().collect()
    assert len(versions) == 4 and all(row.operation == "STREAMING UPDATE" for row in versions)
    for frame, _ in _frames(spark, copy):
        assert _ids(frame) == list(range(2000))
    verify(copy).raise_for_errors()


def test_files_are_converted_by_several_executors(spark: SparkSession, tmp_path: Path) -> None:
    place = tmp_path / "plain"
    place.mkdir()
    for number in range(1100):  # of a thousand and more the footers are read in tasks
        pq.write_table(pa.table({"id": [number]}), place / f"{number}.parquet")
    with in_both_executors(spark):
        DeltaTable.convertToDelta(spark, f"parquet.`{place}`")
    for frame, _ in _frames(spark, str(place)):
        assert _ids(frame) == list(range(1100))
    verify(place).raise_for_errors()


def _rows(spark: SparkSession, start: int, end: int) -> DataFrame:
    return spark.range(start, end, numPartitions=2).selectExpr("id", "'a' AS v", "id % 2 AS p")


def _frames(spark: SparkSession, path: str) -> list[tuple[DataFrame, str]]:
    """The table by both engines."""
    native = delta_pyds.read(spark, path, engine="native")
    return [(native, "native"), (delta_pyds.read(spark, path, engine="arrow", min_partitions=4), "arrow")]


def _ids(frame: DataFrame) -> list[int]:
    return sorted(row.id for row in frame.select("id").collect())
