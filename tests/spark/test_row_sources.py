"""Whether the rows of a DataFrame may depend on a table, and the writes for which that matters."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import delta_pyds
from delta_pyds import DeltaTable
from delta_pyds.spark.incoming import to_frame
from delta_pyds.spark.jvm_plans import analyzed, whole_text
from delta_pyds.spark.partition_conditions import rows_read
from delta_pyds.spark.row_sources import _overlap, depends_on_table
from delta_pyds.verification.verify import verify
from tests.support.commits import actions
from tests.support.table_writes import read_sorted, write_rows

pytestmark = pytest.mark.one_case_in(3)

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
    "chosen version": lambda spark, root: spark.read.format("deltapy").option("versionAsOf", 0).load(root),
}
DEPENDENT: dict[str, Callable[[SparkSession, str], DataFrame]] = {
    "native": lambda spark, root: delta_pyds.read(spark, root, engine="native"),
    "Python source": lambda spark, root: spark.read.format("deltapy").load(root),
    "version": lambda spark, root: spark.read.format("deltapy").load(f"{root}@v0"),
    "scheme": lambda spark, root: spark.read.format("deltapy").load(f"file://{root}"),
    "its Parquet files": lambda spark, root: spark.read.parquet(f"{root}/*.parquet"),
    "cached": lambda spark, root: delta_pyds.read(spark, root).cache(),
    "cached by SQL": lambda spark, root: cached_by_sql(spark, root),
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
    "aggregate of no file": lambda spark, root: delta_pyds.sql(
        spark, f"SELECT count(*) AS id FROM delta.`{root}` WHERE id = 99"
    ),
    "empty table": lambda spark, root: delta_pyds.read(spark, emptied(spark, root)),
    "RDD of an empty table": lambda spark, root: spark.createDataFrame(
        delta_pyds.read(spark, emptied(spark, root)).rdd, "id long"
    ),
    "checkpoint of an empty table": lambda spark, root: delta_pyds.read(spark, emptied(spark, root)).localCheckpoint(),
    "view of an empty table": lambda spark, root: viewed(
        spark, delta_pyds.read(spark, emptied(spark, root)).alias("a"), "SELECT count(*) AS id FROM rows_of_a_view"
    ),
    "no file left": lambda spark, root: delta_pyds.read(spark, root, where="id = 99"),
    "script": lambda spark, root: delta_pyds.sql(
        spark, f"BEGIN SELECT * FROM delta.`{root}`; UPDATE delta.`{root}` SET id = 1 WHERE id = 99; END"
    ),
    "history": lambda spark, root: DeltaTable.forPath(spark, root).history(),
    "detail": lambda spark, root: delta_pyds.sql(spark, f"DESCRIBE DETAIL delta.`{root}`"),
    "description": lambda spark, root: delta_pyds.sql(spark, f"DESCRIBE delta.`{root}`"),
    "history by a function": lambda spark, root: by_function(spark, f"Delta_History('{root}')"),
    "a relation without paths": lambda spark, _: spark.read.schema("id long").parquet(),
    "detail by a function": lambda spark, root: by_function(spark, f"delta_detail('{root}')"),
    "link": lambda spark, root: delta_pyds.read(spark, linked(root)),
}


UNKNOWN = {
    "history", "detail", "description", "history by a function", "detail by a function", "script",
    "local checkpoint", "RDD", "RDD of an empty table", "checkpoint of an empty table", "a relation without paths",
}  # fmt: skip


@pytest.mark.parametrize(
    "where, has_text",
    [
        ("p = 1 AND id > 2", True),
        ("p IN (1, 2) OR p IS NULL", True),
        (f"p IN ({', '.join(map(str, range(1, 15)))})", True),
        (f"p = 1 AND ({' OR '.join(f'id = {n}' for n in range(20))})", True),
        (f"p = 1 AND ({' OR '.join(f'p <> {n + 2}' for n in range(2000))})", True),
        ("p = 1 AND id > day(current_date()) - 40", False),
        ("p > unix_timestamp()", False),
        ("p = day(to_date('to' || 'day')) * 0 + 1", False),
        ("p = some_day", False),
        ("abs(p) = 1", False),
        ("true", False),
    ],
    ids=range(11),
)
def test_the_filters_above_a_scan(spark: SparkSession, tmp_path: Path, where: str, has_text: bool) -> None:
    rows = spark.range(4).selectExpr("id", "id % 2 AS p")
    delta_pyds.write(rows, tmp_path, partition_by="p")
    own = delta_pyds.read(spark, tmp_path)
    if "some_day" in where:
        # Spark shows only the first columns of so many
        own = own.selectExpr("p", *(f"id AS c{n}" for n in range(30)), "1 + 0 * day(current_date()) AS some_day")
    found = rows_read(own.where(where).groupBy("p").count(), str(tmp_path))
    if not has_text:
        # that a value is not null may stand alone
        assert found is None or found.strip("()`") == "p` IS NOT NULL"
        return
    assert found is not None
    expected = {tuple(row) for row in rows.where(where).collect()}
    assert expected <= {tuple(row) for row in rows.where(found).collect()} < {tuple(row) for row in rows.collect()}


def test_columns_of_other_leaves_say_nothing(spark: SparkSession, tmp_path: Path) -> None:
    delta_pyds.write(spark.range(4).selectExpr("id", "id % 2 AS p"), tmp_path, partition_by="p")
    own = delta_pyds.read(spark, tmp_path)
    assert rows_read(own.where("p = 1"), str(tmp_path)) is not None
    cached = own.selectExpr("id AS p", "p AS id").cache()
    of_partition = own.where("p = 1").cache()
    try:
        for rows in (cached.where("p = 1"), own.localCheckpoint().where("p = 1").union(own), spark.range(3)):
            assert rows_read(rows, str(tmp_path)) is None
        assert rows_read(of_partition.where("id > 0"), str(tmp_path)) is not None
    finally:
        cached.unpersist()
        of_partition.unpersist()
    # the log answers an aggregate, and a read without files
    largest = delta_pyds.sql(spark, f"SELECT max(id) AS id FROM delta.`{tmp_path}`")
    for few in (largest, delta_pyds.read(spark, tmp_path, where="id = 99").select("id")):
        assert rows_read(own.where("p = 1").join(few, "id", "left_anti"), str(tmp_path)) is None
    both = own.where("p = 1").select("id").union(own.where("p = 0 AND id > 0").select("id"))
    found = rows_read(both, str(tmp_path))
    assert found is not None and "id" not in found
    # a scan of another table by the Python source
    delta_pyds.write(spark.range(3), f"{tmp_path}-others")
    others = delta_pyds.read(spark, f"{tmp_path}-others", engine="arrow")
    assert rows_read(own.where("p = 1").join(others, "id"), str(tmp_path)) is not None
    # a plan that was made before
    late = own.where("p = 1")
    assert late.count() == 2 and rows_read(late, str(tmp_path)) is not None
    spark.conf.set("spark.sql.optimizer.metadataOnly", "TRUE")
    try:
        assert rows_read(own.where("p = 1"), str(tmp_path)) is None
    finally:
        spark.conf.unset("spark.sql.optimizer.metadataOnly")
    assert rows_read(both.union(spark.read.parquet(str(tmp_path)).where("p = 1").select("id")), str(tmp_path)) is None
    delta_pyds.sql(spark, f"ALTER TABLE delta.`{tmp_path}` SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    delta_pyds.sql(spark, f"ALTER TABLE delta.`{tmp_path}` RENAME COLUMN p TO q")
    delta_pyds.sql(spark, f"ALTER TABLE delta.`{tmp_path}` RENAME COLUMN id TO p")
    assert rows_read(delta_pyds.read(spark, tmp_path).where("q = 1"), str(tmp_path)) is None


def test_a_scan_that_spark_folds_away_reads_its_table(spark: SparkSession, tmp_path: Path) -> None:
    """The partition values of a shallow clone are constants, so a filter may leave no scan."""
    delta_pyds.write(spark.range(4).selectExpr("id", "id % 2 AS p"), tmp_path / "t", partition_by="p")
    clone = tmp_path / "clone"
    delta_pyds.sql(spark, f"CREATE TABLE delta.`{clone}` SHALLOW CLONE delta.`{tmp_path / 't'}`")
    delta_pyds.sql(spark, f"INSERT INTO delta.`{clone}` VALUES (9L, 9L)")
    added = delta_pyds.read(spark, clone, where="p = 9").where("p = 9")
    none = delta_pyds.read(spark, clone, where="p <= 1").where("p = 7")
    assert rows_read(added, str(clone)) is not None
    assert rows_read(added.join(none, "id", "left_anti"), str(clone)) is None


def test_one_of_many_sources_is_the_table(spark: SparkSession, table: str) -> None:
    own, other = delta_pyds.read(spark, table), spark.range(1)
    many = reduce(DataFrame.union, [other] * 250)
    assert depends_on_table(own.union(many), table) is True
    assert depends_on_table(many, table) is None and depends_on_table(many.union(own), table) is None


def emptied(spark: SparkSession, root: str) -> str:
    DeltaTable.forPath(spark, root).delete()
    return root


def cached_by_sql(spark: SparkSession, root: str) -> DataFrame:
    delta_pyds.sql(spark, f"CACHE TABLE delta.`{root}`")
    rows = delta_pyds.sql(spark, f"SELECT id + 1 AS id FROM delta.`{root}`")
    delta_pyds.sql(spark, f"UNCACHE TABLE delta.`{root}`")
    return rows


def by_function(spark: SparkSession, call: str) -> DataFrame:
    delta_pyds.register_functions(spark)
    return spark.sql(f"SELECT * FROM {call}")


def linked(root: str) -> str:
    link = Path(f"{root}-link")
    link.symlink_to(root)
    return str(link)


@pytest.mark.parametrize("source", INDEPENDENT)
def test_rows_that_do_not_come_from_the_table(spark: SparkSession, table: str, source: str) -> None:
    assert depends_on_table(INDEPENDENT[source](spark, table), table) is False


@pytest.mark.parametrize("source", DEPENDENT)
def test_rows_that_may_come_from_the_table(spark: SparkSession, table: str, source: str) -> None:
    assert depends_on_table(DEPENDENT[source](spark, table), table) is (None if source in UNKNOWN else True)


@pytest.mark.parametrize("source", ["aggregate from the log", "empty table"])
def test_a_cut_text_of_a_plan_hides_no_source(spark: SparkSession, table: str, source: str) -> None:
    rows = DEPENDENT[source](spark, table)
    spark.conf.set("spark.sql.maxPlanStringLength", "60")
    try:
        long = rows.selectExpr("id + 1 AS a_long_name_of_a_column_that_is_shown_above")
        assert depends_on_table(long, table) is not False
        shown: Any = spark.range(1).selectExpr("id AS a_long_name_of_a_column_that_is_shown_above")
        assert whole_text(analyzed(shown)) is None
    finally:
        spark.conf.unset("spark.sql.maxPlanStringLength")


def test_rows_of_no_file_look_like_those_of_files(spark: SparkSession, table: str) -> None:
    full, empty = (delta_pyds.read(spark, table, where=where) for where in ("id = 1", "id = 99"))
    assert empty.columns == full.columns == ["id"] and empty.schema == full.schema
    assert empty.select(empty["id"], empty.id, "id").columns == ["id"] * 3
    joined = full.alias("a").join(empty.alias("b"), full["id"] == empty["id"], "left").select("a.id", "b.id")
    assert joined.collect() == [(1, None)]
    assert empty.join(empty, "id").collect() == [] and empty.isEmpty()
    assert delta_pyds.sql(spark, f"SELECT t.id, t.* FROM delta.`{table}` AS t WHERE t.id = 99").collect() == []
    assert delta_pyds.explain(empty).num_files == 0


# two paths, and whether one directory certainly is the other one, or lies in it, or certainly does not
PATHS: dict[str, tuple[str, str, bool | None]] = {
    "same": ("s3a://a/t", "s3://a/t/", True),
    "bucket": ("s3a://a/t", "s3://b/t", None),
    "key": ("s3a://a/t", "s3://a/t2", False),
    "below": ("s3://a/t/p=1", "s3://a/t", True),
    "above": ("s3://a/", "s3://a/t", True),
    "up": ("s3://a/x/../t", "s3://a/t", None),
    "disk and store": ("file:///a", "s3://a/t", None),
    "stores": ("gs://a/x", "s3://a/t", None),
    "account": ("abfss://c@x.dfs.core.windows.net/u", "abfss://c@x.dfs.core.windows.net/t", False),
    "OneLake": ("abfss://1@onelake.dfs.fabric.microsoft.com/2", "abfss://w@onelake.dfs.fabric.microsoft.com/t", None),
    "cluster": ("hdfs://n/x", "hdfs://n/t", False),
    "directory of a cluster": ("hdfs://n/t", "hdfs://n/t", True),
    "clusters": ("hdfs://m/x", "hdfs://n/t", None),
    "mounts of clusters": ("viewfs://n/x", "viewfs://n/t", None),
    "reserved": ("hdfs://n/.reserved/raw/t", "hdfs://n/t", None),
    "unknown": ("other://n/x", "other://n/t", None),
}


@pytest.mark.parametrize("pair", PATHS)
def test_two_paths_of_one_directory(pair: str) -> None:
    path, root, overlap = PATHS[pair]
    assert _overlap(path, root) is overlap


@pytest.mark.parametrize("name, apart", [("t", False), ("t/sub", False), ("", False), ("u", True), ("u/none", True)])
def test_a_directory_with_two_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, apart: bool) -> None:
    """As by a bind mount, or on a disk that ignores case."""
    for directory in ("data/t/sub", "data/u", "mnt/t/sub", "mnt/u"):
        (tmp_path / directory).mkdir(parents=True)
    of_disk = os.stat

    def stat(path: Any, **more: Any) -> os.stat_result:
        return of_disk(str(path).replace(f"{tmp_path}/mnt", f"{tmp_path}/data"), **more)

    monkeypatch.setattr(os, "stat", stat)
    assert _overlap(f"file:{tmp_path}/mnt/{name}", f"{tmp_path}/data/t") is not apart


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
