"""Optimised writes: fewer files, the same rows."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

import delta_pyds
from delta_pyds import DeltaTable
from delta_pyds.table.snapshot import load_snapshot
from tests.support.table_writes import read_rows

SESSION = "spark.databricks.delta.optimizeWrite.enabled"


def test_rows_are_put_together_where_option_session_or_table_say_so(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    rows = spark.range(0, 60, 1, 6).selectExpr("id", "id % 2 AS `p.q`")

    def files(**options: str) -> int:
        done = delta_pyds.write(rows, path, mode="append", options=options)
        return done.files

    try:
        first = delta_pyds.write(rows, path, partition_by=["p.q"], options={"optimizeWrite": "true"})
        assert first.files == 2
        assert files() == 12
        DeltaTable.forPath(spark, path).setProperties({"delta.autoOptimize.optimizeWrite": "true"})
        assert files() == 2
        assert files(OPTIMIZEWRITE="false") == 12
        spark.conf.set(SESSION, "false")
        assert files() == 12
        lacking = rows.drop("p.q").withColumn("p.q", rows["id"] % 2)
        assert delta_pyds.write(lacking, path, mode="append", options={"optimizeWrite": "true"}).files == 2
    finally:
        spark.conf.unset(SESSION)
    assert load_snapshot(path).totals.num_files == 2 + 12 + 2 + 12 + 12 + 2
    assert sorted(row["id"] for row in read_rows(path)) == sorted(list(range(60)) * 6)
