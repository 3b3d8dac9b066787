"""Nothing writes into the files of a table but the table's own commands.

Spark inserts into a temporary view of what reads files, and with OVERWRITE deletes them first.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException

import delta_pyds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INSERTS = ("INSERT OVERWRITE only_read VALUES (9)", "INSERT INTO only_read VALUES (9)",
           "FROM only_read INSERT OVERWRITE TABLE only_read SELECT id")  # fmt: skip


def contents(root: Path) -> dict[str, bytes]:
    return {str(file.relative_to(root)): file.read_bytes() for file in root.rglob("*") if file.is_file()}


def test_nothing_is_inserted_into_a_frame_that_was_read(spark: SparkSession, tmp_path: Path) -> None:
    """Of a table with one file, which is all that such a view reads."""
    delta_pyds.write(spark.range(3).coalesce(1), tmp_path)
    before = contents(tmp_path)
    frame = delta_pyds.read(spark, tmp_path, engine="native")
    frame.createOrReplaceTempView("only_read")

    for text in INSERTS:
        with pytest.raises(AnalysisException):
            spark.sql(text)
    with pytest.raises(AnalysisException):
        spark.range(1).write.insertInto("only_read", overwrite=True)

    assert contents(tmp_path) == before
    # what Spark prunes and pushes down is as it was
    plan = frame.filter("id > 1").select("id")._jdf.queryExecution().executedPlan().toString()
    assert "GreaterThan(id,1)" in plan and "ReadSchema: struct<id:bigint>" in plan
    assert frame.select("_metadata.file_name").distinct().count() == 1
