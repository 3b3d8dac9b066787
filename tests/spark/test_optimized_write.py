"""Optimised writes: fewer files, the same rows, and a session as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import delta_pyds
from delta_pyds import DeltaTable
from delta_pyds.table.snapshot import load_snapshot
from tests.support.table_writes import read_rows

SETTINGS = (
    "spark.sql.adaptive.advisoryPartitionSizeInBytes",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst",
)
SESSION = "spark.databricks.delta.optimizeWrite.enabled"


def test_rows_are_put_together_where_option_session_or_table_say_so(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = str(tmp_path / "t")
    before = {name: spark.conf.get(name, None) for name in (*SETTINGS, "spark.sql.adaptive.enabled")}
    rows = spark.range(0, 60, 1, 6).selectExpr("id", "id % 2 AS `p.q`")

    def files(**options: str) -> int:
        done = delta_pyds.write(rows, path, mode="append", options=options)
        return done.files

    spark.conf.set("spark.sql.adaptive.enabled", "true")
    try:
        first = delta_pyds.write(rows, path, partition_by=["p.q"], options={"optimizeWrite": "true"})
        assert first.files == 2
        assert files() == 12
        DeltaTable.forPath(spark, path).setProperties({"delta.autoOptimize.optimizeWrite": "true"})
        assert files() == 2
        assert files(OPTIMIZEWRITE="false") == 12
        spark.conf.set(SESSION, "false")
        assert files() == 12
        assert {name: spark.conf.get(name, None) for name in SETTINGS} == {name: before[name] for name in SETTINGS}
        spark.conf.set("spark.sql.adaptive.enabled", "false")
        assert files(optimizeWrite="true") == 12
    finally:
        spark.conf.unset(SESSION)
        spark.conf.set("spark.sql.adaptive.enabled", before["spark.sql.adaptive.enabled"] or "true")
    assert load_snapshot(path).totals.num_files == 2 + 12 + 2 + 12 + 12 + 12
    assert sorted(row["id"] for row in read_rows(path)) == sorted(list(range(60)) * 6)
    assert "is off in this session" in caplog.text
