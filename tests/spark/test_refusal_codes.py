"""Refusals by their codes, where only a session gets that far: programs and runbooks look for them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

import delta_pyds
from delta_pyds import DeltaTable
from delta_pyds.errors import DeltaError
from delta_pyds.spark.install.merges import MergeIntoWriter
from tests.support.streams import stream
from tests.support.table_builder import TableBuilder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "deltapy_codes"


@pytest.fixture(scope="module")
def places(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Two tables by path, one of them partitioned, and the current schema of Spark's catalog."""
    folder = tmp_path_factory.mktemp("codes")
    spark.sql(f"CREATE SCHEMA {SCHEMA}")
    spark.sql(f"USE {SCHEMA}")
    spark.sql(f"CREATE TABLE as_csv (id INT) USING csv LOCATION '{folder}/csv'")
    delta_pyds.sql(spark, f"CREATE TABLE delta.`{folder}/p` (id BIGINT, p INT) USING delta PARTITIONED BY (p)")
    delta_pyds.sql(spark, f"CREATE TABLE delta.`{folder}/t` (id BIGINT, name STRING) USING delta CLUSTER BY (id)")
    delta_pyds.sql(spark, f"INSERT INTO delta.`{folder}/t` VALUES (1, 'a')")
    yield {"P": f"delta.`{folder}/p`", "T": f"delta.`{folder}/t`", "FOLDER": str(folder)}
    spark.sql("USE default")
    spark.sql(f"DROP SCHEMA {SCHEMA} CASCADE")


def refused(spark: SparkSession, places: dict[str, str], text: str) -> DeltaError:
    for name, place in places.items():
        text = text.replace(f"<{name}>", place)
    with pytest.raises(DeltaError) as caught:
        delta_pyds.sql(spark, text)
    return caught.value


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("CREATE TEMP VIEW v (a, b, c) AS SELECT * FROM <T>", "CREATE_VIEW_COLUMN_ARITY_MISMATCH"),
        ("CREATE TEMP VIEW x.y AS SELECT * FROM <T>", "TEMP_VIEW_NAME_TOO_MANY_NAME_PARTS"),
        ("CACHE TABLE x.y AS SELECT * FROM <T>", "TEMP_VIEW_NAME_TOO_MANY_NAME_PARTS"),
        ("CONVERT TO DELTA as_csv", "DELTA_CONVERT_NON_PARQUET_TABLE"),
        ("CONVERT TO DELTA iceberg.`/data/t`", "DELTA_MISSING_ICEBERG_CLASS"),
        ("CREATE TABLE n (id INT) USING delta LOCATION '<FOLDER>/t'", "DELTA_CREATE_TABLE_SCHEME_MISMATCH"),
        (
            "CREATE TABLE n (id BIGINT, p INT) USING delta LOCATION '<FOLDER>/p'",
            "DELTA_CREATE_TABLE_WITH_DIFFERENT_PARTITIONING",
        ),
        (
            "CREATE TABLE n (id BIGINT, name STRING) USING delta CLUSTER BY (name) LOCATION '<FOLDER>/t'",
            "DELTA_CREATE_TABLE_WITH_DIFFERENT_CLUSTERING",
        ),
        (
            ("MERGE INTO <T> t USING (SELECT 1L AS id) s ON t.id = s.id "
            "WHEN NOT MATCHED THEN INSERT (id, id) VALUES (1, 2)"),
            "DELTA_DUPLICATE_COLUMNS_ON_INSERT",
        ),
        ("INSERT INTO <P> PARTITION (id = 1) SELECT 1", "NON_PARTITION_COLUMN"),
        ("INSERT INTO <T> REPLACE USING (name) SELECT 'a' AS name, 1L AS id",
         "INSERT_REPLACE_USING_DISALLOW_MISALIGNED_COLUMNS"),
        ("INSERT INTO <T> BY NAME REPLACE USING (name) SELECT 1L AS id", "UNRESOLVED_INSERT_REPLACE_USING_COLUMN"),
        ("ALTER TABLE <T> ADD CONSTRAINT c CHECK (id > 1)", "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION"),
        ("ALTER TABLE <T> ADD CONSTRAINT c CHECK (id > rand())",
         "DELTA_NON_DETERMINISTIC_EXPRESSION_IN_CHECK_CONSTRAINT"),
        ("ALTER TABLE <T> ADD COLUMNS (g BIGINT GENERATED ALWAYS AS (id + 1))",
         "DELTA_UNSUPPORTED_ADD_GENERATED_COLUMN"),
        ("ALTER TABLE <T> ALTER COLUMN name SET DEFAULT id", "INVALID_DEFAULT_VALUE.NOT_CONSTANT"),
        ("ALTER TABLE <T> ALTER COLUMN id SET DEFAULT 'x'", "INVALID_DEFAULT_VALUE.DATA_TYPE"),
        ("SHOW PARTITIONS <T>", "DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_TABLE"),
        ("SHOW PARTITIONS <P> PARTITION (id = 1)", "DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_COLUMN"),
    ],
)  # fmt: skip
def test_a_statement(spark: SparkSession, places: dict[str, str], text: str, code: str) -> None:
    if code.startswith("INVALID_DEFAULT"):
        delta_pyds.sql(
            spark,
            f"ALTER TABLE {places['T']} SET TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')",
        )
    assert refused(spark, places, text).code == code


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("CREATE TABLE delta.`<FOLDER>/c` DEEP CLONE <T>", "DELTA_OPERATION_NOT_ALLOWED"),
        ("CREATE TABLE delta.`<FOLDER>/c` SHALLOW CLONE parquet.`<FOLDER>/q`", "DELTA_CLONE_UNSUPPORTED_SOURCE"),
        ("CREATE TABLE delta.`<FOLDER>/c` SHALLOW CLONE iceberg.`<FOLDER>/q`", "DELTA_CLONE_UNSUPPORTED_SOURCE"),
        ("INSERT INTO <T> AS t REPLACE ON t.id <=> s.id (SELECT 1L AS id) AS s", "DELTA_OPERATION_NOT_ALLOWED"),
        ("FROM <P> INSERT INTO <T> SELECT id, 'a'", "DELTA_OPERATION_NOT_ALLOWED"),
        ("WITH q AS (SELECT 1) UPDATE <T> SET id = 1 WHERE id IN (SELECT * FROM q)", "DELTA_OPERATION_NOT_ALLOWED"),
        ("WITH q AS (SELECT 1) DELETE FROM <T> WHERE id IN (SELECT * FROM q)", "DELTA_OPERATION_NOT_ALLOWED"),
        ("SHOW CREATE TABLE <T>", "DELTA_OPERATION_NOT_ALLOWED"),
        ("ANALYZE TABLE <T> COMPUTE STATISTICS", "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE"),
        ("MSCK REPAIR TABLE <T>", "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE"),
    ],
)
def test_a_statement_that_is_not_supported(spark: SparkSession, places: dict[str, str], text: str, code: str) -> None:
    assert refused(spark, places, text).code == code


def test_a_table_that_is_built_without_a_place(spark: SparkSession) -> None:
    with pytest.raises(DeltaError) as caught:
        DeltaTable.create(spark).addColumn("id", "INT").execute()
    assert caught.value.code == "DELTA_CREATE_TABLE_MISSING_TABLE_NAME_OR_LOCATION"


def test_what_can_be_converted_is_named(spark: SparkSession) -> None:
    with pytest.raises(DeltaError, match="directories of Parquet files") as caught:
        DeltaTable.convertToDelta(spark, "orc.`/data/t`")
    assert caught.value.code == "DELTA_MISSING_PROVIDER_FOR_CONVERT"


def test_a_merge_by_a_frame_without_an_action(spark: SparkSession, tmp_path: Path) -> None:
    delta_pyds.write(spark.range(1), str(tmp_path))
    with pytest.raises(DeltaError) as caught:
        MergeIntoWriter(spark.range(1), str(tmp_path), spark.range(1).id == 1).merge()
    assert caught.value.code == "NO_MERGE_ACTION_SPECIFIED"


def test_a_directory_without_a_table_after_install(spark: SparkSession, tmp_path: Path) -> None:
    delta_pyds.install(spark)
    try:
        with pytest.raises(DeltaError, match="is not a Delta table") as caught:
            spark.read.format("deltapy").load(str(tmp_path))
        assert caught.value.code == "DELTA_TABLE_NOT_FOUND"
    finally:
        delta_pyds.uninstall()


def test_a_column_that_the_row_position_would_hide(spark: SparkSession, tmp_path: Path) -> None:
    delta_pyds.write(spark.range(1).withColumnRenamed("id", "_row_position"), str(tmp_path))
    with pytest.raises(PySparkException, match="DELTA_COLUMN_NAME_CONFLICT"):
        delta_pyds.read(spark, str(tmp_path), row_position=True).collect()


def test_the_table_is_no_place_for_its_streams_schemas(spark: SparkSession, tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", {"id": "long"})
    table.create()
    with pytest.raises(PySparkException, match="DELTA_SCHEMA_LOCATION_INVALID"):
        stream(spark, table.path, schemaTrackingLocation=str(table.path)).schema.simpleString()
