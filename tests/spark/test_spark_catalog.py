"""``spark.catalog`` after ``install`` answers as the statements of SQL do, without entries of this package."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException

import delta_pyds
from delta_pyds.errors import UnsupportedOperationError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def installed(spark: SparkSession, tmp_path: Path) -> Iterator[SparkSession]:
    delta_pyds.install(spark, delta=True)
    spark.sql("CREATE SCHEMA shop")
    spark.sql(
        "CREATE TABLE shop.t (id INT COMMENT 'first', day STRING) USING delta PARTITIONED BY (day) "
        "TBLPROPERTIES ('delta.appendOnly' = 'false')"
    )
    spark.sql("INSERT INTO shop.t VALUES (1, 'a/b'), (2, 'c'), (3, NULL)")
    spark.sql(f"CREATE TABLE shop.c (id INT, s STRUCT<x: INT>) USING delta CLUSTER BY (id) LOCATION '{tmp_path}/c'")
    spark.sql("CREATE VIEW shop.v AS SELECT 1 AS one")
    spark.sql("CREATE TABLE shop.files (id INT) USING parquet TBLPROPERTIES ('own' = '1')")
    yield spark
    for name in ("TABLE shop.t", "TABLE shop.c", "VIEW shop.v", "TABLE shop.files"):
        spark.sql(f"DROP {name}")
    spark.sql("DROP SCHEMA shop CASCADE")
    delta_pyds.uninstall()


def test_questions_have_the_answers_of_sql(installed: SparkSession) -> None:
    catalog: Any = installed.catalog
    location = installed.sql("DESCRIBE DETAIL shop.t").first().location.removeprefix("file:")
    for name in ("shop.t", "spark_catalog.shop.t", f"delta.`{location}`"):
        rows = installed.sql(f"SHOW TBLPROPERTIES {name}").collect()
        found = {row.key: row.value for row in rows}
        if hasattr(catalog, "getTableProperties"):
            assert catalog.getTableProperties(name) == found and found["delta.appendOnly"] == "false"
        columns = catalog.listColumns(name)
        assert [(one.name, one.dataType, one.isPartition, one.description) for one in columns] == [
            ("id", "int", False, "first"),
            ("day", "string", True, None),
        ]
        if hasattr(catalog, "listPartitions"):
            partitions = [one.partition for one in catalog.listPartitions(name)]
            assert partitions == ["day=__HIVE_DEFAULT_PARTITION__", "day=a%2Fb", "day=c"]
        catalog.refreshTable(name)
        assert catalog.getTable(name).tableType in ("MANAGED", "EXTERNAL")
    assert [one.isCluster for one in catalog.listColumns("shop.c")] == [True, False]
    if hasattr(catalog, "getTableProperties"):
        assert catalog.getTableProperties("shop.files")["own"] == "1"
        assert "parquet" in catalog.getCreateTableString("shop.files")
        catalog.analyzeTable("shop.files")


def test_the_columns_are_those_of_the_log(installed: SparkSession) -> None:
    """Another writer may have changed them since the catalog entry was made."""
    location = installed.sql("DESCRIBE DETAIL shop.c").first().location
    delta_pyds.DeltaTable.forPath(installed, location).addColumn("late", "INT")
    assert [one.name for one in installed.catalog.listColumns("shop.c")] == ["id", "s", "late"]


def test_statements_that_a_delta_table_does_not_need_are_refused(installed: SparkSession) -> None:
    catalog: Any = installed.catalog
    statements = ("ANALYZE TABLE {} COMPUTE STATISTICS", "MSCK REPAIR TABLE {}", "ALTER TABLE {} RECOVER PARTITIONS")
    calls = [lambda text=text: installed.sql(text.format("shop.t")) for text in statements]
    calls.append(lambda: catalog.recoverPartitions("shop.t"))
    if hasattr(catalog, "analyzeTable"):
        calls += [lambda: catalog.analyzeTable("shop.t"), lambda: catalog.analyzeTable("shop.t", noScan=True)]
    for call in calls:
        with pytest.raises(UnsupportedOperationError, match="does not apply to") as found:
            call()
        assert found.value.code == "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE"
    installed.sql("ANALYZE TABLE shop.files COMPUTE STATISTICS")
    with pytest.raises(AnalysisException, match="nobody"):
        installed.sql("ANALYZE TABLE nobody COMPUTE STATISTICS")
    if hasattr(catalog, "getCreateTableString"):
        with pytest.raises(UnsupportedOperationError, match="as in the reference"):
            catalog.getCreateTableString("shop.t")


def test_lists_have_one_entry_for_a_table(installed: SparkSession) -> None:
    catalog: Any = installed.catalog
    installed.range(1).createOrReplaceTempView("_deltapy_files_0123456789abcdef")
    installed.range(1).createOrReplaceTempView("own")
    try:
        kinds = {one.name: one.tableType for one in catalog.listTables("shop")}
        assert kinds == {"t": "MANAGED", "c": "EXTERNAL", "files": "MANAGED", "v": "VIEW", "own": "TEMPORARY"}
        assert [row.tableName for row in installed.sql("SHOW TABLES IN shop").collect()] == [
            "c",
            "files",
            "t",
            "v",
            "own",
        ]
        assert [row.viewName for row in installed.sql("SHOW VIEWS IN shop").collect()] == ["v", "own"]
        if hasattr(catalog, "listViews"):
            assert [one.name for one in catalog.listViews("shop")] == ["v", "own"]
    finally:
        installed.catalog.dropTempView("_deltapy_files_0123456789abcdef")
        installed.catalog.dropTempView("own")
