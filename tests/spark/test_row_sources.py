"""Whether the rows of a DataFrame may depend on a table, and the writes for which that matters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import delta_pyds
from delta_pyds.spark.incoming import to_frame
from delta_pyds.spark.row_sources import may_depend_on
from delta_pyds.verification.verify import verify
from tests.support.commits import actions
from tests.support.table_writes import read_sorted, write_rows

IDS = {"id": "long"}
ROWS = pa.table({"id": [1]})


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> str:
    root = str(tmp_path / "t")
    delta_pyds.write(ROWS, root, spark=spark)
    delta_pyds.write(ROWS, str(tmp_path / "t2"), spark=spark)
    spark.range(2).write.parquet(str(tmp_path / "p"))
    return root


def viewed(spark: SparkSession, frame: DataFrame, query: str) -> DataFrame:
    frame.createOrReplaceTempView("rows_of_a_view")
    try:
        return spark.sql(query)
    finally:
        spark.catalog.dropTempView("rows_of_a_view")


INDEPENDENT: dict[str, Callable[[SparkSession, str], DataFrame]] = {
    "range": lambda spark, _: spark.range(3),
    "rows": lambda spark, _: spark.createDataFrame([(1,)], "id long"),
    "rows of an RDD": lambda spark, _: spark.createDataFrame(spark.sparkContext.parallelize([(1,)]), "id long"),
    "Arrow": lambda spark, _: to_frame(ROWS, spark),
    "function": lambda spark, _: spark.range(3).mapInArrow(lambda batches: batches, "id long"),
    "values": lambda spark, _: spark.sql("WITH x AS (SELECT * FROM VALUES (1L) v(id)) SELECT a.id FROM x a, x b"),
    "other table": lambda spark, root: delta_pyds.read(spark, f"{root}2"),
    "other table by the Python source": lambda spark, root: spark.read.format("deltapy").load(f"{root}2"),
    "Parquet": lambda spark, root: spark.read.parquet(root[:-1] + "p"),
    "union": lambda spark, root: spark.range(3).union(delta_pyds.read(spark, f"{root}2")),
}
DEPENDENT: dict[str, Callable[[SparkSession, str], DataFrame]] = {
    "native": lambda spark, root: delta_pyds.read(spark, root, engine="native"),
    "Python source": lambda spark, root: spark.read.format("deltapy").load(root),
    "version": lambda spark, root: spark.read.format("deltapy").load(f"{root}@v0"),
    "scheme": lambda spark, root: spark.read.format("deltapy").load(f"file://{root}"),
    "its Parquet files": lambda spark, root: spark.read.parquet(f"{root}/*.parquet"),
    "cached": lambda spark, root: delta_pyds.read(spark, root).cache(),
    "local checkpoint": lambda spark, root: delta_pyds.read(spark, root).localCheckpoint(),
    "RDD": lambda spark, root: spark.createDataFrame(delta_pyds.read(spark, root).rdd, "id long"),
    "union": lambda spark, root: spark.range(3).union(delta_pyds.read(spark, root)),
    "view": lambda spark, root: viewed(spark, delta_pyds.read(spark, root), "SELECT * FROM rows_of_a_view"),
    "subquery": lambda spark, root: viewed(
        spark,
        delta_pyds.read(spark, root),
        "SELECT id FROM range(3) WHERE id IN (SELECT max(id) FROM rows_of_a_view)",
    ),
    "aggregate from the log": lambda spark, root: delta_pyds.sql(spark, f"SELECT max(id) AS id FROM delta.`{root}`"),
    "link": lambda spark, root: delta_pyds.read(spark, linked(root)),
}


def linked(root: str) -> str:
    link = Path(f"{root}-link")
    link.symlink_to(root)
    return str(link)


@pytest.mark.parametrize("source", INDEPENDENT)
def test_rows_that_do_not_come_from_the_table(spark: SparkSession, table: str, source: str) -> None:
    assert not may_depend_on(INDEPENDENT[source](spark, table), table)


@pytest.mark.parametrize("source", DEPENDENT)
def test_rows_that_may_come_from_the_table(spark: SparkSession, table: str, source: str) -> None:
    assert may_depend_on(DEPENDENT[source](spark, table), table)


def appending(table: str) -> Callable[[Any], Any]:
    """A function of tasks that lets another writer append a row to the table."""

    def append(batches: Any) -> Any:
        write_rows(table, IDS, [{"id": 77}])
        yield from batches

    return append


WRITES: dict[str, dict[str, Any]] = {
    "overwrite": {},
    "replaceWhere": {"replace_where": "id > 0"},
    "without": {"options": {"rowLevelConcurrency": "false"}},
}


@pytest.mark.parametrize("write", WRITES)
def test_an_overwrite_removes_rows_that_others_brought(spark: SparkSession, table: str, write: str) -> None:
    rows = spark.range(5, 7).coalesce(1).mapInArrow(appending(table), "id long")
    if write == "without":
        with pytest.raises(delta_pyds.ConcurrentAppendError):
            delta_pyds.write(rows, table, mode="overwrite", **WRITES[write])
        return
    version = delta_pyds.write(rows, table, mode="overwrite", **WRITES[write]).version
    assert version == 2 and read_sorted(table, "id") == [5, 6]
    [info] = [a["commitInfo"] for a in actions(Path(table), version) if "commitInfo" in a]
    assert info["operationMetrics"]["numMends"] == "1" and info["readVersion"] == 1
    assert verify(table).findings == ()


QUERIES: dict[str, dict[str, Any]] = {
    "replaceUsing": {"options": {"replaceUsing": "id"}},
    "condition of Spark": {"replace_where": "hex(id) IN ('5', '4D')"},
    "random": {"replace_where": "id > 2 AND rand() < 2"},
}


@pytest.mark.parametrize("vectors", ["true", "false"])
@pytest.mark.parametrize("write", QUERIES)
def test_an_overwrite_by_a_query_runs_it_again(spark: SparkSession, tmp_path: Path, write: str, vectors: str) -> None:
    root = str(tmp_path)
    write_rows(root, IDS, [{"id": 1}, {"id": 5}, {"id": 6}], properties={"delta.enableDeletionVectors": vectors})
    rows = spark.createDataFrame([(5,), (77,)], "id long").coalesce(1).mapInArrow(appending(root), "id long")
    if write == "random":
        with pytest.raises(delta_pyds.ConcurrentAppendError):
            delta_pyds.write(rows, root, mode="overwrite", **QUERIES[write])
        return
    version = delta_pyds.write(rows, root, mode="overwrite", **QUERIES[write]).version
    # the first 77 is the other writer's, and is replaced
    assert version == 2 and read_sorted(root, "id") == [1, 5, 6, 77]
    [info] = [a["commitInfo"] for a in actions(tmp_path, version) if "commitInfo" in a]
    assert info["operationMetrics"]["numMends"] == "1" and info["operationMetrics"]["numDeletedRows"] == "2"
    assert verify(root).findings == ()


def test_an_overwrite_that_reads_its_table_is_a_conflict(spark: SparkSession, table: str) -> None:
    rows = delta_pyds.read(spark, table).coalesce(1).mapInArrow(appending(table), "id long")
    with pytest.raises(delta_pyds.ConcurrentAppendError):
        delta_pyds.write(rows, table, mode="overwrite")
    assert read_sorted(table, "id") == [1, 77]


def test_the_bare_format_does_not_know_where_rows_come_from(spark: SparkSession, table: str) -> None:
    rows = spark.range(5, 7).coalesce(1).mapInArrow(appending(table), "id long")
    writer = rows.write.format("deltapy").mode("overwrite")
    with pytest.raises(Exception, match="DELTA_CONCURRENT_APPEND"):
        writer.save(table)
    writer.option("readsTable", "false").save(table)
    assert read_sorted(table, "id") == [5, 6]
