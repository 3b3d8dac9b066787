"""Vacuum, restore, clone, convert and manifests through ``DeltaTable``: what Spark adds to the commands."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException, IllegalArgumentException

import delta_pyds
from delta_pyds import DeltaTable
from delta_pyds.errors import CorruptDataFileError
from tests.support.frames import ids_at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# each takes seconds of Spark: a run takes a part of them, chosen by the commit
pytestmark = pytest.mark.one_test_in(4)

_CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"


@pytest.fixture
def path(spark: SparkSession, tmp_path: Path) -> str:
    """Three versions: five rows, five more, and the first five removed."""
    where = str(tmp_path / "t")
    delta_pyds.write(spark.range(5).coalesce(1), where)
    delta_pyds.write(spark.range(5, 10).coalesce(1), where, mode="append")
    DeltaTable.forPath(spark, where).delete("id < 5")
    return where


def test_vacuum_heeds_the_session_and_tells_what_it_did(spark: SparkSession, path: str) -> None:
    table = DeltaTable.forPath(spark, path)
    orphan = Path(path) / "orphan.parquet"
    orphan.write_bytes(b"x")
    os.utime(orphan, (1_000_000_000, 1_000_000_000))
    with pytest.raises(IllegalArgumentException, match="TOO_SHORT"):
        table.vacuum(0)
    listed = spark.createDataFrame(
        [("orphan.parquet", 1, False, 1_000_000_000_000)],
        "path string, length long, isDir boolean, modificationTime long",
    )
    for shown in (table.vacuum(dry_run=True), table.vacuum(200.5, dry_run=True, inventory=listed)):
        assert [row.path for row in shown.collect()] == [str(orphan)]
    assert orphan.exists()
    spark.conf.set(_CHECK, "false")
    try:
        frame = table.vacuum(0)
    finally:
        spark.conf.unset(_CHECK)
    assert (frame.columns, frame.collect()) == ([], [])
    assert "deleted 2 files" in str(delta_pyds.explain(frame))
    assert ids_at(spark, path) == [5, 6, 7, 8, 9]
    assert [row.operation for row in table.history(2).collect()] == ["VACUUM END", "VACUUM START"]


def test_restore_returns_the_references_numbers(spark: SparkSession, path: str) -> None:
    table = DeltaTable.forPath(spark, path)
    [row] = table.restoreToVersion(1).collect()
    assert ids_at(spark, path) == list(range(10))
    assert row.asDict().keys() == {
        "table_size_after_restore", "num_of_files_after_restore", "num_removed_files", "num_restored_files",
        "removed_files_size", "restored_files_size",
    }  # fmt: skip
    assert (row.num_of_files_after_restore, row.num_removed_files, row.num_restored_files) == (2, 0, 1)
    moment = table.history().where("version = 0").collect()[0].timestamp
    table.restoreToTimestamp(str(moment))
    assert ids_at(spark, path) == list(range(5))
    with pytest.raises(AnalysisException, match="DELTA_CANNOT_RESTORE_TABLE_VERSION"):
        table.restoreToVersion(99)


def test_clones_of_now_and_of_then(spark: SparkSession, path: str, tmp_path: Path) -> None:
    table = DeltaTable.forPath(spark, path)
    with pytest.raises(IllegalArgumentException, match="DELTA_UNSUPPORTED_DEEP_CLONE"):
        table.clone(str(tmp_path / "c"))
    [row] = table.clone(str(tmp_path / "c"), True).collect()
    assert (row.source_num_of_files, row.num_copied_files) == (1, 0)
    assert ids_at(spark, str(tmp_path / "c")) == [5, 6, 7, 8, 9]
    table.cloneAtVersion(0, f"delta.`{tmp_path / 'c'}`", True, True, {"a": "b"})
    assert ids_at(spark, str(tmp_path / "c")) == list(range(5))
    moment = table.history().where("version = 1").collect()[0].timestamp
    table.cloneAtTimestamp(str(moment), str(tmp_path / "d"), isShallow=True)
    DeltaTable.forPath(spark, str(tmp_path / "d")).update("id = 3", {"id": "33"})
    assert ids_at(spark, str(tmp_path / "d")) == [0, 1, 2, 4, 5, 6, 7, 8, 9, 33]
    assert ids_at(spark, path) == [5, 6, 7, 8, 9]


def test_generate_writes_manifests_and_knows_one_mode(spark: SparkSession, path: str) -> None:
    table = DeltaTable.forPath(spark, path)
    table.generate("SYMLINK_FORMAT_manifest")
    listed = (Path(path) / "_symlink_format_manifest" / "manifest").read_text().splitlines()
    assert sorted(row.id for row in spark.read.parquet(*listed).collect()) == [5, 6, 7, 8, 9]
    with pytest.raises(IllegalArgumentException, match="DELTA_MODE_NOT_SUPPORTED"):
        table.generate("manifest")


def test_convert_reads_many_footers_in_tasks(spark: SparkSession, tmp_path: Path) -> None:
    root = tmp_path / "many"
    root.mkdir()
    pq.write_table(pa.table({"id": [1, 2]}), root / "0000.parquet")
    for n in range(1, 1_200):
        os.link(root / "0000.parquet", root / f"{n:04}.parquet")
    context = spark.sparkContext
    context.setJobGroup("footers", "a conversion")
    try:
        table = DeltaTable.convertToDelta(spark, f"parquet.`{root}`")
        assert context.statusTracker().getJobIdsForGroup("footers")
    finally:
        context._jsc.clearJobGroup()  # type: ignore[union-attr]
    assert delta_pyds.read(spark, root).count() == 2_400
    assert table.history(1).collect()[0].operationMetrics["numConvertedFiles"] == "1200"
    # the footers went into the log
    assert not delta_pyds.read(spark, root, where="id = 3").inputFiles()

    (root / "0700.parquet").unlink()
    (root / "0700.parquet").write_bytes(b"no Parquet")
    shutil.rmtree(root / "_delta_log")
    with pytest.raises(CorruptDataFileError, match=r"0700\.parquet"):
        DeltaTable.convertToDelta(spark, f"parquet.`{root}`")
    assert not (root / "_delta_log").exists() or not list((root / "_delta_log").glob("*.json"))


def test_convert_takes_what_spark_wrote(spark: SparkSession, tmp_path: Path) -> None:
    where = str(tmp_path / "q")
    rows = spark.range(6).selectExpr("id", "cast(id % 2 AS int) AS p", "timestamp_seconds(id) AS at")
    rows.coalesce(1).write.partitionBy("p").parquet(where)
    with pytest.raises(AnalysisException, match="DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS"):
        DeltaTable.convertToDelta(spark, f"parquet.`{where}`")
    table = DeltaTable.convertToDelta(spark, f"parquet.`{where}`", "p int")
    assert sorted(table.toDF().collect()) == sorted(rows.select("id", "at", "p").collect())
    table.delete("p = 0")
    assert ids_at(spark, where) == [1, 3, 5]
