"""``DeltaTable.optimize`` and ``clusterBy`` on Spark: where they run, what they return, what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException, IllegalArgumentException

import delta_pyds
from delta_pyds import DeltaTable
from tests.support.table_writes import read_rows, write_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# each takes seconds of Spark: a run takes a part of them, chosen by the commit
pytestmark = pytest.mark.one_test_in(4)

SCHEMA = {"id": "long", "v": "string", "p": "long"}


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Six files in each of two partitions."""
    rows = [[{"id": n * 7 % 60, "v": f"v{n}", "p": n % 2} for n in range(f * 10, f * 10 + 10)] for f in range(6)]
    properties = {"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true"}
    write_rows(tmp_path, SCHEMA, rows, partition_by=(("p",),), properties=properties)
    return str(tmp_path)


@pytest.mark.parametrize("engine", ["process", "tasks"])
def test_rows_are_laid_out_anew_where_it_was_asked_for(spark: SparkSession, path: str, engine: Any) -> None:
    table = DeltaTable.forPath(spark, path, engine=engine)
    table.delete("id = 5")
    before = sorted(read_rows(path, row_ids=True), key=lambda row: row["id"])

    purged = table.optimize().executePurge()
    some = table.optimize().where("p = 1").where("p < 5").executeCompaction()
    ordered = table.optimize().executeZOrderBy("id", "v")
    nothing = table.optimize().executePurge()

    found = [frame.collect()[0].metrics for frame in (purged, some, ordered, nothing)]
    assert [m.numFilesRemoved for m in found] == [1, 6, 7, 0]
    assert found[0].deletionVectorStats.numDeletionVectorRowsRemoved == 1
    assert found[2].zOrderStats.numOutputCubes == 2
    assert [delta_pyds.explain(frame).version for frame in (purged, some, ordered, nothing)] == [2, 3, 4, None]
    assert delta_pyds.explain(ordered).place.where_run == engine
    assert sorted(read_rows(path, row_ids=True), key=lambda row: row["id"]) == before
    history = table.history(2).select("operation", "operationParameters.zOrderBy").collect()
    assert [tuple(row) for row in history] == [("OPTIMIZE", '["id","v"]'), ("OPTIMIZE", "[]")]


def test_sizes_are_those_of_the_session(spark: SparkSession, path: str) -> None:
    table = DeltaTable.forPath(spark, path)
    setting = "spark.databricks.delta.optimize.minFileSize"
    try:
        spark.conf.set(setting, "1b")
        assert delta_pyds.explain(table.optimize().executeCompaction()).version is None
        spark.conf.set(setting, "1 parsec")
        with pytest.raises(IllegalArgumentException, match="parsec"):
            table.optimize().executeCompaction()
    finally:
        spark.conf.unset(setting)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda t: t.optimize().where("id = 1").executeCompaction(), AnalysisException),
        (lambda t: t.optimize().executeZOrderBy("p"), IllegalArgumentException),
        (lambda t: t.optimize().executeZOrderBy(["nope"]), IllegalArgumentException),
        (lambda t: t.optimize().executeZOrderBy("id", 7), TypeError),
        (lambda t: t.optimize().where(7), ValueError),
        (lambda t: t.optimize(full="yes"), ValueError),
        (lambda t: t.clusterBy("id"), AnalysisException),
    ],
)
def test_mistakes_are_the_references(
    spark: SparkSession, path: str, call: Callable[[Any], Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        call(DeltaTable.forPath(spark, path))


def test_a_stream_sees_nothing_of_it(spark: SparkSession, path: str, tmp_path: Path) -> None:
    target, state = str(tmp_path / "target"), str(tmp_path / "state")

    def read_on() -> int:
        source = spark.readStream.format("deltapy").load(path)
        query = source.writeStream.format("parquet").option("checkpointLocation", state).trigger(availableNow=True)
        query.start(target).awaitTermination()
        return spark.read.parquet(target).count()

    assert read_on() == 60
    DeltaTable.forPath(spark, path).optimize().executeCompaction()
    assert read_on() == 60


def test_small_files_are_compacted_after_each_kind_of_write_by_the_sessions_rule(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The format and streams commit in processes of their own, to which tasks tell what the session says."""
    rows = [[{"id": n, "v": "x", "p": 0} for n in range(f * 5, f * 5 + 5)] for f in range(2)]
    write_rows(tmp_path, SCHEMA, rows)
    path = str(tmp_path)
    table = DeltaTable.forPath(spark, path)
    source = spark.range(10, 20, 1, 2).selectExpr("id", "'x' AS v", "0L AS p")
    parquet = str(tmp_path.with_name("source"))
    source.write.parquet(parquet)
    spark.conf.set("spark.databricks.delta.autoCompact.enabled", "true")
    spark.conf.set("spark.databricks.delta.autoCompact.minNumFiles", "3")
    try:
        done = table.alias("t").merge(source.alias("s"), "t.id = s.id").whenNotMatchedInsertAll().execute()
        assert done.collect()[0].num_inserted_rows == 10
        assert delta_pyds.write(source, path, mode="append").version == 3
        source.write.format("deltapy").mode("append").save(path)
        stream = spark.readStream.schema(source.schema).option("maxFilesPerTrigger", 9).parquet(parquet)
        query = stream.writeStream.format("deltapy").option("checkpointLocation", str(tmp_path.with_name("state")))
        query.trigger(availableNow=True).start(path).awaitTermination()
        spark.conf.set("spark.databricks.delta.autoCompact.enabled", "false")
        table.setProperties({"delta.autoOptimize.autoCompact": "true"})
        source.write.format("deltapy").mode("append").save(path)
    finally:
        spark.conf.unset("spark.databricks.delta.autoCompact.enabled")
        spark.conf.unset("spark.databricks.delta.autoCompact.minNumFiles")

    operations = [row.operation for row in table.history().collect()][::-1]
    assert operations[1:] == [
        "MERGE", "OPTIMIZE", "WRITE", "OPTIMIZE", "WRITE", "OPTIMIZE", "STREAMING UPDATE", "OPTIMIZE",
        "SET TBLPROPERTIES", "WRITE",
    ]  # fmt: skip
    assert len(read_rows(tmp_path)) == 60
