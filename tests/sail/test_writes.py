"""Writes on Sail: by its tasks, committed once; modes and time zones that Sail does not pass are asked for."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import delta_pyds
from delta_pyds.errors import ConstraintViolationError, UnsupportedOperationError, UserError
from delta_pyds.spark.registration import register
from tests.support.frames import ids_at
from tests.support.table_builder import TableBuilder

ALL_TYPES = (
    "SELECT true a, CAST(1 AS TINYINT) b, CAST(2 AS SMALLINT) c, 3 d, 4L e, CAST(1.5 AS FLOAT) f, 2.5D g, 1.25 h, "
    "'x' i, CAST('y' AS BINARY) j, DATE'2024-01-01' k, TIMESTAMP'2024-01-01 12:00:00' l, "
    "TIMESTAMP_NTZ'2024-01-01 12:00:00' m, array(1, 2) n, map('k', 1) o, named_struct('q', 1, 'r', 's') p, "
    "CAST(NULL AS INT) q"
)


def verified(path: str) -> None:
    delta_pyds.verify(path.removeprefix("file://")).raise_for_errors()


def test_all_modes(spark: SparkSession, tmp_path: Path) -> None:
    path = f"file://{tmp_path}/t"
    three = spark.range(9).repartition(3)
    result = delta_pyds.write(three, path)
    assert (result.version, result.rows, result.files) == (0, 9, 3)
    assert delta_pyds.write(spark.range(9, 10), path, mode="append").version == 1
    assert delta_pyds.write(spark.range(9, 10), path, mode="ignore").version is None
    with pytest.raises(UserError, match="already exists"):
        delta_pyds.write(spark.range(9, 10), path)
    assert ids_at(spark, path) == [*range(10)]
    delta_pyds.write(spark.range(2), path, mode="overwrite", replace_where="id < 8")
    assert ids_at(spark, path) == [0, 1, 8, 9]
    delta_pyds.write(spark.range(1, 3), path, mode="overwrite", options={"replaceUsing": "id"})
    assert ids_at(spark, path) == [0, 1, 2, 8, 9]
    delta_pyds.write(pa.table({"id": [5]}), path, mode="overwrite", spark=spark)
    assert ids_at(spark, path) == [5]
    verified(path)


def test_all_types_and_partitions(spark: SparkSession, tmp_path: Path) -> None:
    path = f"file://{tmp_path}/t"
    given = spark.sql(ALL_TYPES)
    delta_pyds.write(given, path, partition_by="i,k", options={"optimizeWrite": "true"})
    assert delta_pyds.read(spark, path).collect() == given.collect()
    assert delta_pyds.load_snapshot(str(tmp_path / "t")).metadata.partition_columns == ["i", "k"]
    verified(path)


def test_sql_writes(spark: SparkSession, table: TableBuilder) -> None:
    path = f"file://{table.path}"
    before = ids_at(spark, path)
    delta_pyds.sql(spark, f"INSERT INTO delta.`{path}` (id, p) VALUES (7, 'c')")
    delta_pyds.sql(spark, f"INSERT INTO delta.`{path}` (id) SELECT id + 10 FROM delta.`{path}` WHERE id = 7")
    assert ids_at(spark, path) == sorted([*before, 7, 17])
    delta_pyds.sql(spark, f"CREATE TABLE delta.`{path}2` USING delta AS SELECT id FROM delta.`{path}`")
    assert ids_at(spark, f"{path}2") == sorted([*before, 7, 17])
    verified(path)


def test_a_broken_constraint_commits_nothing(spark: SparkSession, table: TableBuilder) -> None:
    path = f"file://{table.path}"
    delta_pyds.sql(spark, f"ALTER TABLE delta.`{path}` ADD CONSTRAINT positive CHECK (id > 0)")
    log = sorted(os.listdir(table.log_path))
    with pytest.raises(ConstraintViolationError, match="positive"):
        delta_pyds.write(spark.range(-1, 2).selectExpr("id", "'a b' AS p"), path, mode="append")
    assert sorted(os.listdir(table.log_path)) == log


def test_the_format_creates_and_overwrites_but_appends_only_by_an_option(spark: SparkSession, tmp_path: Path) -> None:
    path = f"file://{tmp_path}/t"
    register(spark)
    spark.range(3).write.format("deltapy").save(path)
    for mode in ("append", "ignore", "error"):
        with pytest.raises(Exception, match=r"Sail 0\.7.* does not tell a Python source whether the mode"):
            spark.range(3).write.format("deltapy").mode(mode).save(path)
    assert ids_at(spark, path) == [0, 1, 2]
    spark.range(3, 4).write.format("deltapy").option("createMode", "createIfNotExists").mode("append").save(path)
    assert ids_at(spark, path) == [0, 1, 2, 3]
    spark.range(1).write.format("deltapy").mode("overwrite").save(path)
    assert ids_at(spark, path) == [0]


def test_a_time_zone_that_the_format_does_not_know_is_asked_for(spark: SparkSession, tmp_path: Path) -> None:
    path = f"file://{tmp_path}/t"
    columns = "at TIMESTAMP, day DATE GENERATED ALWAYS AS (CAST(at AS DATE))"
    delta_pyds.sql(spark, f"CREATE TABLE delta.`{path}` ({columns}) USING delta")
    rows = spark.sql("SELECT TIMESTAMP'2024-01-01 12:00:00' AS at")
    assert delta_pyds.write(rows, path, mode="append").rows == 1
    append = rows.write.format("deltapy").option("createMode", "createIfNotExists").mode("append")
    with pytest.raises(Exception, match=r"does not tell a Python source the session's time zone, and the column 'day'"):
        append.save(path)
    append.option("timeZone", "UTC").save(path)
    assert delta_pyds.read(spark, path, where="day = '2024-01-01'").count() == 2


def test_identity_values_need_one_task(spark: SparkSession, tmp_path: Path) -> None:
    path = f"file://{tmp_path}/t"
    columns = "n BIGINT GENERATED ALWAYS AS IDENTITY, id BIGINT"
    delta_pyds.sql(spark, f"CREATE TABLE delta.`{path}` ({columns}) USING delta")
    with pytest.raises(UnsupportedOperationError, match=r"Sail 0\.7.* does not number its tasks"):
        delta_pyds.write(spark.range(6).repartition(3), path, mode="append")
    delta_pyds.write(spark.range(6).repartition(3).coalesce(1), path, mode="append")
    assert sorted(row["n"] for row in delta_pyds.read(spark, path).collect()) == [1, 2, 3, 4, 5, 6]
    verified(path)


def test_a_failed_task_commits_nothing(spark: SparkSession, table: TableBuilder) -> None:
    path, log = f"file://{table.path}", sorted(os.listdir(table.log_path))
    with pytest.raises(Exception, match="broken"):
        value = "CASE WHEN id = 4 THEN raise_error('broken') ELSE id END AS id"
        delta_pyds.write(spark.range(9).repartition(3).selectExpr(value, "'a b' AS p"), path, mode="append")
    assert sorted(os.listdir(table.log_path)) == log
