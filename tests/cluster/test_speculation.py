"""Two attempts of one task at the same time: the rows of one of them count, whichever it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

import delta_pyds
from delta_pyds import DeltaTable
from tests.support.clusters import Trap, each_row_once, vacuum_until_clean, whole
from tests.support.limits import ONLY_A_HANG_S

# the slow attempt is slow for ever, or until the other one is as far
both_ways = pytest.mark.parametrize("until_copy", [False, True], ids=["slow", "even"])
pytestmark = pytest.mark.parametrize("spark", ["standalone"], indirect=True)


@both_ways
def test_a_write(spark: SparkSession, tmp_path: Path, until_copy: bool) -> None:
    path, trap = tmp_path / "t", _trap(spark, tmp_path, until_copy)
    for start in (0, 1000):
        rows = trap.before(spark.range(start, start + 1000, numPartitions=4))
        assert delta_pyds.write(rows, path, mode="append").rows == 1000
    assert trap.sign.exists()
    _each_row_once(spark, path, 2000)


@both_ways
def test_a_merge(spark: SparkSession, tmp_path: Path, until_copy: bool) -> None:
    path, trap = tmp_path / "t", _trap(spark, tmp_path, until_copy)
    rows = spark.range(0, 1000, numPartitions=4).selectExpr("id", "CAST(id AS STRING) AS v")
    delta_pyds.write(rows, path, properties={"delta.enableDeletionVectors": "true"})
    given = spark.range(0, 1500, numPartitions=4).selectExpr("id", "'m' AS v").alias("s")
    merge = DeltaTable.forPath(spark, path).alias("t").merge(given, "t.id = s.id")
    merge = merge.whenMatchedUpdate(set={"v": trap.at(F.col("s.v"))}).whenNotMatchedInsertAll()
    assert tuple(merge.execute().collect()[0]) == (1500, 1000, 0, 500)
    assert trap.sign.exists()
    assert delta_pyds.read(spark, path, where="v = 'm'").count() == 1500
    _each_row_once(spark, path, 1500)


@both_ways
def test_a_micro_batch(spark: SparkSession, tmp_path: Path, until_copy: bool) -> None:
    path, copy, trap = tmp_path / "t", tmp_path / "copy", _trap(spark, tmp_path, until_copy)
    delta_pyds.write(spark.range(0, 1000, numPartitions=4), path)
    rows = spark.readStream.format("deltapy").load(str(path))
    writer = (
        trap.before(rows)
        .writeStream.format("deltapy")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
    )
    query = writer.start(str(copy))
    try:
        assert query.awaitTermination(ONLY_A_HANG_S)
    finally:
        query.stop()
    assert trap.sign.exists()
    assert DeltaTable.forPath(spark, copy).history().count() == 1
    _each_row_once(spark, copy, 1000)


def _trap(spark: SparkSession, tmp_path: Path, until_copy: bool) -> Trap:
    whole(spark)
    return Trap(tmp_path / "trap", until_copy)


def _each_row_once(spark: SparkSession, path: Path, rows: int) -> None:
    """The table has the ids below ``rows``, also when the files of the other attempts are gone."""
    for _ in range(2):
        each_row_once(spark, path, rows)
        vacuum_until_clean(spark, path)
