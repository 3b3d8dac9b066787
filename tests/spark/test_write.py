"""``df.write.format("deltapy")``, end to end: modes, options, tasks, failures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from chispa import assert_df_equality
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
from pyspark.sql.functions import col, lit, to_json

import delta_pyds
from delta_pyds.commands.task_runner import LocalRunner
from delta_pyds.errors import UserError
from delta_pyds.table.snapshot import load_snapshot
from tests.support.commits import info

# each takes seconds of Spark: a run takes a part of them, chosen by the commit
pytestmark = pytest.mark.one_test_in(4)

TYPES = """
    SELECT CAST(id AS TINYINT) AS b, CAST(id AS SMALLINT) AS s, CAST(id AS INT) AS i, id AS l,
      CAST(id AS FLOAT) / 3 AS f, CAST(id AS DOUBLE) / 7 AS d, CAST(id AS DECIMAL(20, 3)) / 9 AS n9,
      CAST(id AS DECIMAL(38, 10)) AS n38, CAST(id AS STRING) AS t, CAST(CAST(id AS STRING) AS BINARY) AS bin,
      id % 2 = 0 AS bool, date_add(DATE '2020-02-27', CAST(id AS INT)) AS day,
      timestamp_micros(1600000000123456 + id) AS ts, CAST(timestamp_micros(-id * 1000003) AS TIMESTAMP_NTZ) AS ntz,
      array(id, NULL, id + 1) AS xs, map(CAST(id AS STRING), id, 'k', NULL) AS m,
      named_struct('a', id, 'b', named_struct('c', CAST(id AS STRING), 'd', array(named_struct('e', id)))) AS st,
      IF(id % 3 = 0, NULL, id) AS maybe, parse_json(concat('{"v":', id, '}')) AS v
    FROM range(0, 25, 1, 3)
"""


def save(df: DataFrame, path: Any, mode: str = "append", **options: Any) -> None:
    df.write.format("deltapy").mode(mode).options(**options).save(str(path))


def load(spark: SparkSession, path: Any, **options: Any) -> DataFrame:
    return spark.read.format("deltapy").options(**options).load(str(path))


def ids(spark: SparkSession, path: Any, **options: Any) -> list[int]:
    return sorted(r.id for r in load(spark, path, **options).select("id").collect())


def refusal(writer: DataFrameWriter | DataFrame, path: Any, mode: str = "append", **options: Any) -> str:
    with pytest.raises(PySparkException) as error:
        save(writer, path, mode, **options)
    return str(error.value)


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_rows_are_replaced_by_tasks_of_the_session(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vectors: str
) -> None:
    def no_task(*_: object) -> None:
        raise AssertionError("a task ran in this process")

    monkeypatch.setattr(LocalRunner, "run", no_task)
    properties = {"delta.enableDeletionVectors": vectors, "delta.enableChangeDataFeed": "true"}
    delta_pyds.write(spark.sql(TYPES), tmp_path, properties=properties)
    # the session's zone decides which day a moment is in; the tasks must know it
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        new = spark.sql(TYPES).where("l IN (3, 9)").withColumn("t", lit("new"))
        done = delta_pyds.write(new, tmp_path, mode="overwrite", replace_where="l % 3 = 0 AND l < 20")
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert (done.version, done.rows) == (1, 2)
    old = spark.sql(TYPES).where("NOT (l % 3 = 0 AND l < 20)").unionByName(new)
    plain = [c for c in old.columns if c not in ("v", "m")]
    assert_df_equality(
        load(spark, tmp_path).select(plain), old.select(plain), ignore_row_order=True, ignore_nullable=True
    )
    assert info(tmp_path, 1)["operationMetrics"]["numDeletedRows"] == "7"
    assert delta_pyds.verify(tmp_path).findings == ()
    with pytest.raises(UserError, match="replaceWhere"):
        delta_pyds.write(new, tmp_path, mode="overwrite", replace_where="l = 3")
    assert load_snapshot(tmp_path).version == 1


def test_every_type_comes_back_as_it_was(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.sql(TYPES)
    save(df, tmp_path)
    back = load(spark, tmp_path)
    assert back.dtypes == df.dtypes
    text = [to_json("v").alias("v"), *[c for c in df.columns if c != "v"]]
    in_order = [lambda frame: frame.orderBy("l")]  # Spark sorts rows with maps by other columns only
    assert_df_equality(back.select(text), df.select(text), ignore_nullable=True, transforms=in_order)
    # what Spark's own Parquet reader makes of the files
    plain = spark.read.schema(df.drop("v").schema).parquet(str(tmp_path))
    assert_df_equality(plain, df.drop("v"), ignore_nullable=True, transforms=in_order)
    report = delta_pyds.verify(str(tmp_path))
    assert report.ok, str(report)


@pytest.mark.parametrize("data_type", ["FLOAT", "DOUBLE"])
def test_other_readers_on_spark_find_nan_in_our_files(spark: SparkSession, tmp_path: Path, data_type: str) -> None:
    """NaN is Spark's greatest value, and Spark's reader rules row groups out by the bounds of their footers."""
    value = f"IF(id % 3 = 0, CAST('NaN' AS {data_type}), CAST(id AS {data_type}))"
    save(spark.range(0, 12, 1, 1).selectExpr("id", f"{value} AS x", f"named_struct('x', {value}) AS s"), tmp_path)
    plain = spark.read.parquet(str(tmp_path))
    for where in ("x > 50", "x >= 11.5", "NOT (x BETWEEN 0 AND 20)", "s.x > 50", f"x = CAST('NaN' AS {data_type})"):
        assert sorted(r.id for r in plain.where(where).collect()) == [0, 3, 6, 9], where


def test_append_and_overwrite(spark: SparkSession, tmp_path: Path) -> None:
    save(spark.range(3), tmp_path)
    save(spark.range(10, 12), tmp_path)
    assert ids(spark, tmp_path) == [0, 1, 2, 10, 11]
    save(spark.range(1), tmp_path, "overwrite")
    assert ids(spark, tmp_path) == [0]
    assert ids(spark, tmp_path, versionAsOf=1) == [0, 1, 2, 10, 11]
    assert info(tmp_path, 2)["operationParameters"]["mode"] == "Overwrite"
    assert "Apache-Spark/" in info(tmp_path, 2)["engineInfo"]


def test_the_save_modes_that_spark_keeps_from_us_have_an_option_and_a_function(
    spark: SparkSession, tmp_path: Path
) -> None:
    save(spark.range(1), tmp_path, createMode="errorIfExists")
    assert "DELTA_PATH_EXISTS" in refusal(spark.range(2), tmp_path, createMode="errorIfExists")
    save(spark.range(2), tmp_path, createMode="ignore")
    delta_pyds.write(spark.range(2), str(tmp_path), mode="ignore")
    with pytest.raises(UserError, match="DELTA_PATH_EXISTS"):
        delta_pyds.write(spark.range(2), str(tmp_path))
    assert ids(spark, tmp_path) == [0]


def test_partitioning_on_create(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.range(20).withColumn("p", col("id") % 3).withColumn("a b", lit("x/y=z%"))
    save(df.drop("a b"), tmp_path / "option", partitionBy="p")
    assert load_snapshot(str(tmp_path / "option")).configuration.partition_columns == ("p",)
    assert ids(spark, tmp_path / "option", where="p = 2") == [2, 5, 8, 11, 14, 17]
    odd = {"delta.columnMapping.mode": "name"}
    delta_pyds.write(df, str(tmp_path / "function"), partition_by=["a b", "p"], properties=odd)
    assert load_snapshot(str(tmp_path / "function")).configuration.partition_columns == ("a b", "p")
    assert load(spark, tmp_path / "function").select("a b").distinct().collect() == [("x/y=z%",)]
    assert ids(spark, tmp_path / "function") == list(range(20))


def test_replace_where_and_dynamic_overwrite(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.range(10).withColumn("p", col("id") % 2)
    save(df, tmp_path, partitionBy="p")
    save(df.filter("id = 3"), tmp_path, "overwrite", partitionOverwriteMode="dynamic")
    assert ids(spark, tmp_path) == [0, 2, 3, 4, 6, 8]
    save(df.filter("id IN (4, 5)"), tmp_path, "overwrite", replaceWhere="id BETWEEN 3 AND 6")
    assert ids(spark, tmp_path) == [0, 2, 4, 5, 8]
    message = refusal(df, tmp_path, "overwrite", replaceWhere="id < 3")
    assert "DELTA_REPLACE_WHERE_MISMATCH" in message and "id < 3" in message
    assert ids(spark, tmp_path) == [0, 2, 4, 5, 8]


def test_schema_options(spark: SparkSession, tmp_path: Path) -> None:
    save(spark.range(2), tmp_path)
    wider = spark.range(2, 3).withColumn("note", lit("x"))
    message = refusal(wider, tmp_path)
    assert "DELTA_METADATA_MISMATCH" in message and "note" in message and "mergeSchema" in message
    assert "DELTA_FAILED_TO_MERGE_FIELDS" in refusal(spark.range(1).selectExpr("CAST(id AS STRING) AS id"), tmp_path)
    save(wider, tmp_path, mergeSchema=True)
    assert load(spark, tmp_path).columns == ["id", "note"]
    save(spark.range(1).selectExpr("id AS other"), tmp_path, "overwrite", overwriteSchema=True)
    assert load(spark, tmp_path).columns == ["other"]


def test_an_idempotent_write_is_made_once(spark: SparkSession, tmp_path: Path) -> None:
    for _ in range(3):
        save(spark.range(2), tmp_path, txnAppId="job", txnVersion=1)
    assert ids(spark, tmp_path) == [0, 1]
    assert "DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS" in refusal(spark.range(1), tmp_path, txnAppId="job")


def test_file_sizes(spark: SparkSession, tmp_path: Path) -> None:
    save(spark.range(1000).coalesce(1), tmp_path, maxRecordsPerFile=300, compression="zstd")
    files = list(tmp_path.glob("*.parquet"))
    assert len(files) == 4 and all(".zstd." in f.name for f in files)
    assert ids(spark, tmp_path) == list(range(1000))


def test_properties_count_when_the_write_creates_the_table(spark: SparkSession, tmp_path: Path) -> None:
    options = {
        "delta.appendOnly": "true",
        "delta.enableDeletionVectors": "true",
        "delta.Feature.RowTracking": "supported",
    }
    save(spark.range(1), tmp_path, **options)
    snapshot = load_snapshot(str(tmp_path))
    assert {k: v for k, v in snapshot.configuration.configuration.items() if "rowTracking" not in k} == {
        "delta.appendOnly": "true",
        "delta.enableDeletionVectors": "true",
    }
    assert {"deletionVectors", "rowTracking", "domainMetadata"} <= set(snapshot.protocol.writer_features or ())
    save(spark.range(1), tmp_path, **options)  # which it has already
    message = refusal(spark.range(1), tmp_path, **{"delta.appendOnly": "false"})
    assert "DELTA_CREATE_TABLE_WITH_DIFFERENT_PROPERTY" in message and "delta.appendOnly=false" in message
    assert "DELTA_UNKNOWN_CONFIGURATION" in refusal(spark.range(1), tmp_path / "new", **{"delta.nonsense": "1"})


def test_a_failing_task_leaves_the_table_as_it_was(spark: SparkSession, tmp_path: Path) -> None:
    save(spark.range(2), tmp_path)
    bad = spark.range(0, 200_000, 1, 2).selectExpr("IF(id = 150000, raise_error('bad row'), id) AS id")
    assert "bad row" in refusal(bad, tmp_path)
    assert load_snapshot(str(tmp_path)).version == 0
    assert ids(spark, tmp_path) == [0, 1]
    # Spark ends the worker of a task whose input fails: what it wrote is not in the log, and vacuum's
    assert delta_pyds.verify(str(tmp_path)).ok


def test_rows_that_a_task_refuses_leave_no_file(spark: SparkSession, tmp_path: Path) -> None:
    save(spark.range(2), tmp_path, **{"delta.constraints.small": "id < 150000"})
    before = sorted(f.name for f in tmp_path.glob("*.parquet"))
    assert "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES" in refusal(spark.range(200_000).coalesce(1), tmp_path)
    assert sorted(f.name for f in tmp_path.glob("*.parquet")) == before


def test_a_conflict_shows_as_the_reference_names_it(spark: SparkSession, tmp_path: Path) -> None:
    save(spark.range(2), tmp_path)

    # a second writer commits while the first one's task runs
    from tests.support.table_writes import write_rows

    target = str(tmp_path)

    def and_another_writer(batches: Any) -> Any:
        write_rows(target, {"id": "long"}, [{"id": 77}])
        yield from batches

    rows = spark.range(1).coalesce(1).mapInArrow(and_another_writer, "id long")
    message = refusal(rows, tmp_path, "overwrite")
    assert "DELTA_CONCURRENT_APPEND" in message
    assert ids(spark, tmp_path) == [0, 1, 77]
    save(rows, tmp_path)
    assert ids(spark, tmp_path) == [0, 0, 1, 77, 77]


def test_insert_through_a_view(spark: SparkSession, tmp_path: Path) -> None:
    save(spark.range(2).withColumn("p", lit("a")), tmp_path)
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW written USING deltapy OPTIONS (path '{tmp_path}')")
    spark.sql("INSERT INTO written VALUES (5, 'b')")
    assert ids(spark, tmp_path) == [0, 1, 5]
    spark.sql("INSERT OVERWRITE written VALUES (6, 'c')")
    assert ids(spark, tmp_path) == [6]


def test_a_table_written_from_itself(spark: SparkSession, tmp_path: Path) -> None:
    save(spark.range(3), tmp_path)
    save(load(spark, tmp_path).selectExpr("id + 10 AS id"), tmp_path, "overwrite")
    assert ids(spark, tmp_path) == [10, 11, 12]


@pytest.mark.parametrize(
    ("options", "code", "named"),
    [
        ({"createMode": "sometimes"}, "DELTA_ILLEGAL_OPTION", "createMode"),
        ({"mergeSchema": "perhaps"}, "DELTA_ILLEGAL_OPTION", "mergeSchema"),
        ({"maxRecordsPerFile": "-1"}, "DELTA_ILLEGAL_OPTION", "maxRecordsPerFile"),
        ({"compression": "zip"}, "DELTA_ILLEGAL_OPTION", "compression"),
        ({"partitionBy": "nope"}, "", "nope"),
        ({"replaceWhere": "id = 1"}, "DELTA_ILLEGAL_OPTION", "replaceWhere"),
        ({"versionAsOf": "1"}, "DELTA_ILLEGAL_OPTION", "versionasof"),
        ({"replaceUsing": "id"}, "DELTA_OPERATION_NOT_ALLOWED", "replaceUsing"),
        ({"isolationLevel": "None"}, "DELTA_ILLEGAL_OPTION", "isolationLevel"),
        ({"txnVersion": "1"}, "DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS", "txnAppId"),
    ],
)
def test_an_impossible_option_is_named(
    spark: SparkSession, tmp_path: Path, options: dict[str, Any], code: str, named: str
) -> None:
    message = refusal(spark.range(1), tmp_path / "t", **options)
    assert code in message and named in message
    assert not list(tmp_path.rglob("*.parquet"))


def test_constraints_see_the_session(spark: SparkSession, tmp_path: Path) -> None:
    fits = {"delta.constraints.fits": "big + id > 0"}
    largest = spark.sql("SELECT 1 AS id, 2147483647 AS big")
    assert "ARITHMETIC_OVERFLOW" in refusal(largest, tmp_path, **fits)
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        # the sum wraps around, and is not positive
        assert "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES" in refusal(largest, tmp_path, **fits)
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
    save(spark.sql("SELECT 1 AS id, 5 AS big"), tmp_path, **fits)
    rows = spark.sql("SELECT 1 AS id, 5 AS big")
    save(rows, tmp_path)
    assert "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES" in refusal(spark.sql("SELECT 1 AS id, -5 AS big"), tmp_path)
    assert ids(spark, tmp_path) == [1, 1]


def test_timestamps_are_instants_whatever_the_zone(spark: SparkSession, tmp_path: Path) -> None:
    zone = spark.conf.get("spark.sql.session.timeZone")
    try:
        spark.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
        df = spark.sql("SELECT 1 AS id, TIMESTAMP '2024-07-01 00:00:00' AS t, TIMESTAMP '2024-07-01 00:00:00' AS p")
        delta_pyds.write(df, str(tmp_path), partition_by="p")
        [row] = load(spark, tmp_path).selectExpr("CAST(t AS STRING) AS t", "CAST(p AS STRING) AS p").collect()
        assert tuple(row) == ("2024-07-01 00:00:00", "2024-07-01 00:00:00")
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    [add] = [json.loads(x)["add"] for x in (tmp_path / "_delta_log" / f"{0:020d}.json").read_text().splitlines()
             if "add" in json.loads(x)]  # fmt: skip
    assert add["partitionValues"] == {"p": "2024-06-30T18:30:00.000000Z"}
