"""An executor goes down in the middle, with its Python: Spark runs its tasks again, and rows come exactly once.

What the dead attempt had begun is in no commit, and vacuum removes it.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

import delta_pyds
from delta_pyds import DeltaTable
from tests.support.clusters import Trap, each_row_once, kills_a_writer, unnamed_files, vacuum_until_clean, whole
from tests.support.limits import ONLY_A_HANG_S

# a task that has so many rows has begun to write its file: that is more than a row group
_BEGUN = 1_100_000
_ROWS = 2 * 1_200_000


@pytest.fixture(autouse=True)
def all_executors(spark: SparkSession) -> None:
    whole(spark)


@pytest.mark.parametrize("way", ["format", "function"])
def test_in_a_write(spark: SparkSession, tmp_path: Path, way: str) -> None:
    path, trap = tmp_path / "t", Trap(tmp_path / "trap")
    delta_pyds.write(spark.range(10, numPartitions=1), path)
    rows = trap.before(spark.range(10, _ROWS, numPartitions=2), rows=_BEGUN)
    with trap.kills(once=lambda: trap.has_begun_a_file(path)):
        if way == "format":
            rows.write.format("deltapy").mode("append").save(str(path))
        else:
            assert delta_pyds.write(rows, path, mode="append").rows == _ROWS - 10
    assert unnamed_files(path), "the dead attempt left nothing, so nothing was killed in the middle"
    each_row_once(spark, path, _ROWS)
    vacuum_until_clean(spark, path)
    each_row_once(spark, path, _ROWS)


def test_after_a_task_of_a_write_was_done(spark: SparkSession, tmp_path: Path) -> None:
    """Its files are there, and its message is with the driver: they are in the commit, though the executor is gone."""
    path, trap = tmp_path / "t", Trap(tmp_path / "trap")
    delta_pyds.write(spark.range(10, numPartitions=1), path)
    rows = trap.before(spark.range(10, 1000, numPartitions=2), rows=100)
    with trap.kills(others=True, once=lambda: bool(unnamed_files(path))):
        delta_pyds.write(rows, path, mode="append")
    each_row_once(spark, path, 1000)


@pytest.mark.parametrize("source", ["small", "large"])
def test_in_a_merge(spark: SparkSession, tmp_path: Path, source: str) -> None:
    """A large source lies on the disks of the executors, and is lost with one of them: then it is computed again."""
    path, trap = tmp_path / "t", Trap(tmp_path / "trap")
    rows = spark.range(0, 1000, numPartitions=2).selectExpr("id", "CAST(id AS STRING) AS v")
    delta_pyds.write(rows, path, properties={"delta.enableDeletionVectors": "true"})
    table = DeltaTable.forPath(spark, path)
    last = 1_500 if source == "small" else 1_200_000
    # of a source of eight parts each executor keeps some
    given = spark.range(500, last, numPartitions=8).selectExpr("id", "'m' AS v").alias("s")
    merge = (
        table.alias("t")
        .merge(given, "t.id = s.id")
        .whenMatchedUpdate(set={"v": trap.at(F.col("s.v"))})
        .whenNotMatchedInsertAll()
    )
    with trap.kills():
        counts = merge.execute().collect()[0]
    assert tuple(counts) == (last - 500, 500, 0, last - 1000)
    each_row_once(spark, path, last)
    assert delta_pyds.read(spark, path, where="v = 'm'").count() == last - 500
    assert table.history().count() == 2
    vacuum_until_clean(spark, path)
    each_row_once(spark, path, last)


@pytest.mark.parametrize("layout", ["compaction", "curve"])
def test_in_an_optimize(spark: SparkSession, tmp_path: Path, layout: str) -> None:
    """Of two tasks, each of which makes one file of many."""
    path, rows = tmp_path / "t", 2 * _ROWS
    given = spark.range(rows, numPartitions=4).selectExpr("id", "id % 2 AS p", "hash(id) AS v")
    delta_pyds.write(given, path, partition_by="p")
    before = set(path.rglob("*.parquet"))
    optimize = DeltaTable.forPath(spark, path, engine="tasks").optimize()
    with kills_a_writer(path):
        if layout == "compaction":
            optimize.executeCompaction()
        else:
            optimize.executeZOrderBy("v", "id")
    detail = DeltaTable.forPath(spark, path).detail().collect()[0]
    assert detail.numFiles == 2
    # besides the two that it made there is what the dead attempt had begun
    assert len(set(path.rglob("*.parquet")) - before) > 2
    each_row_once(spark, path, rows)
    vacuum_until_clean(spark, path)
    assert len(list(path.rglob("*.parquet"))) == 2
    each_row_once(spark, path, rows)


@pytest.mark.parametrize("engine", ["native", "arrow"])
def test_in_a_scan(spark: SparkSession, tmp_path: Path, engine: str) -> None:
    path, trap = tmp_path / "t", Trap(tmp_path / "trap")
    delta_pyds.write(spark.range(0, 100_000, numPartitions=2), path)
    frame = delta_pyds.read(spark, path, engine=engine)  # type: ignore[arg-type]
    with trap.kills():
        found = trap.before(frame).selectExpr("count(*)", "count(DISTINCT id)", "sum(id)").collect()[0]
    assert tuple(found) == (100_000, 100_000, sum(range(100_000)))


def test_in_a_micro_batch(spark: SparkSession, tmp_path: Path) -> None:
    path, copy, trap = tmp_path / "t", tmp_path / "copy", Trap(tmp_path / "trap")
    delta_pyds.write(spark.range(0, _ROWS, numPartitions=2), path)
    rows = spark.readStream.format("deltapy").load(str(path))
    writer = (
        trap.before(rows, rows=_BEGUN)
        .writeStream.format("deltapy")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
    )
    with trap.kills(once=lambda: trap.has_begun_a_file(copy)):
        query = writer.start(str(copy))
        try:
            assert query.awaitTermination(ONLY_A_HANG_S)
        finally:
            query.stop()
    assert unnamed_files(copy)
    assert [row.operation for row in DeltaTable.forPath(spark, copy).history().collect()] == ["STREAMING UPDATE"]
    each_row_once(spark, copy, _ROWS)
    vacuum_until_clean(spark, copy)
    each_row_once(spark, copy, _ROWS)
