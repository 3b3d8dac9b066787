"""Reads on Sail: by our Python source, because Sail's own Parquet reader is not Spark's."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import delta_pyds
from delta_pyds.errors import OptionError, UnsupportedOperationError
from tests.support.table_builder import TableBuilder


def rows_of(rows: Any) -> list[tuple[str, ...]]:
    return sorted(tuple(map(repr, (r["id"], r["x"], r["p"]))) for r in rows)


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_every_row_is_read(spark: SparkSession, table: TableBuilder, scheme: str) -> None:
    path = f"{scheme}{table.path}"
    expected = rows_of(table.expected_rows())
    frame = delta_pyds.read(spark, path)
    assert rows_of(row.asDict() for row in frame.collect()) == expected
    assert frame.count() == len(expected)
    assert frame.filter("id > 4").select("p").count() == 2
    assert frame.join(frame.select("id"), "id").count() == len(expected)
    assert delta_pyds.sql(spark, f"SELECT id FROM delta.`{path}` WHERE x > 1").count() == len(
        expected
    )  # NaN is largest
    assert spark.read.format("deltapy").load(path).count() == len(expected)
    assert delta_pyds.read(spark, path, where="at >= '2024-01-05'", columns="id").count() == 2
    assert [f.name for f in delta_pyds.read(spark, path, row_position=True).schema][-1] == "_row_position"
    with pytest.raises(Exception, match="Leave out the schema"):
        spark.read.format("deltapy").schema("id int").load(path).collect()


def test_versions_changes_and_views_are_read(spark: SparkSession, table: TableBuilder) -> None:
    path = f"file://{table.path}"
    assert delta_pyds.read(spark, path, version=1).count() == 2
    assert delta_pyds.sql(spark, f"SELECT * FROM delta.`{path}` VERSION AS OF 2").count() == 4
    delta_pyds.sql(spark, f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    version = delta_pyds.DeltaTable.forPath(spark, path).delete("id = 1") or 0
    assert version is not None
    latest = delta_pyds.load_snapshot(str(table.path)).version
    (change,) = delta_pyds.sql(spark, f"SELECT * FROM table_changes_by_path('{table.path}', {latest})").collect()
    assert (change["_change_type"], change["id"]) == ("delete", 1)
    delta_pyds.sql(spark, f"CREATE OR REPLACE TEMP VIEW of_sail AS SELECT id FROM delta.`{path}`")
    assert delta_pyds.sql(spark, "SELECT * FROM of_sail").count() == delta_pyds.read(spark, path).count()


def test_why_its_own_parquet_reader_is_not_taken_is_said(spark: SparkSession, table: TableBuilder) -> None:
    report = delta_pyds.explain(delta_pyds.read(spark, f"file://{table.path}"))
    assert report.engine == "arrow"
    assert report.reasons[0].startswith("Sail 0.7") and "does not read Parquet files as Spark does" in report.reasons[0]
    with pytest.raises(UnsupportedOperationError, match=r"Sail 0\.7.* does not read Parquet files as Spark does"):
        delta_pyds.read(spark, f"file://{table.path}", engine="native")


def test_its_own_parquet_reader_loses_a_missing_file(spark: SparkSession, tmp_path: Path) -> None:
    """The reason for the Python source. If this fails, native reads can be decided again."""
    assert spark.read.schema("id long").parquet(str(tmp_path / "missing.parquet")).count() == 0


def test_a_time_zone_that_a_task_does_not_know_is_asked_for(spark: SparkSession, tmp_path: Path) -> None:
    made = TableBuilder(tmp_path / "t", {"id": "long", "at": "timestamp"}, partition_columns=["at"])
    made.create()
    add, *_ = made.append([{"id": 1, "at": dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc)}])
    add["add"]["partitionValues"]["at"] = "2024-01-01 00:00:00"
    made.commit([add])
    with pytest.raises(Exception, match='option\\("timeZone"'):
        spark.read.format("deltapy").load(str(made.path)).collect()
    assert delta_pyds.read(spark, str(made.path)).count() == 1


@pytest.mark.parametrize("option", ["startingVersion", "maxFilesPerTrigger"])
def test_a_stream_is_refused_where_it_shows(spark: SparkSession, table: TableBuilder, option: str) -> None:
    """Sail runs a stream over a Python source as one batch."""
    stream = spark.readStream.format("deltapy").option(option, "1").load(f"file://{table.path}")
    with pytest.raises(Exception, match=rf"the option {option} is for streams, and Sail") as raised:
        stream.writeStream.format("noop").start().awaitTermination(10)
        stream.collect()
    assert isinstance(delta_pyds.error_of(raised.value), OptionError)
    with pytest.raises(UnsupportedOperationError, match=r"Sail 0\.7.* runs no stream"):
        delta_pyds.sql(spark, f"SELECT * FROM STREAM delta.`file://{table.path}`")
