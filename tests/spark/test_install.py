"""``delta_pyds.install`` on a classic session: programs for delta-spark run, and all else is Spark's own."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql.readwriter import DataFrameReader, DataFrameWriter

import delta_pyds
from delta_pyds.errors import OptionError, TableNotFoundError, UnsupportedOperationError, UserError
from tests.support.delta_programs import PROGRAMS, Program
from tests.support.table_builder import TableBuilder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


pytestmark = pytest.mark.one_test_in(4)


@pytest.fixture(autouse=True)
def taken_back() -> Iterator[None]:
    yield
    delta_pyds.uninstall()


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_program_for_delta_spark_needs_one_line(spark: SparkSession, tmp_path: Path, program: Program) -> None:
    delta_pyds.install(spark, delta=True)
    program(spark, str(tmp_path))


def test_a_builder_may_name_the_references_catalog_at_any_time(spark: SparkSession, tmp_path: Path) -> None:
    """It sets that in the session that is there, where without the JAR no query would be understood any more."""
    from pyspark.sql import SparkSession as Sessions

    delta_pyds.install(spark, delta=True)
    setting = "spark.sql.catalog.spark_catalog"
    try:
        for _ in range(2):
            builder = Sessions.builder.config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
            named = builder.config(setting, "org.apache.spark.sql.delta.catalog.DeltaCatalog").getOrCreate()
            assert named.createDataFrame([(1,)], "a INT").join(named.range(3)).count() == 3
        named.range(2).write.format("delta").save(str(tmp_path / "t"))
        assert spark.newSession().read.format("delta").load(str(tmp_path / "t")).count() == 2
        delta_pyds.uninstall()
        assert spark.conf.get(setting).endswith("DeltaCatalog")
        # of a program that has its session already, and names none
        assert delta_pyds.install(delta=True).modules
        assert spark.conf.get(setting) == "builtin"
        # and of one that makes its session without a builder
        spark.conf.set(setting, "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        assert Sessions(spark.sparkContext).createDataFrame([(1,)], "a INT").count() == 1
    finally:
        delta_pyds.uninstall()  # which sets it as it was
        spark.conf.unset(setting)


def test_what_is_not_ours_is_untouched_and_all_is_taken_back(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    delta_pyds.register(spark)
    before = DataFrameReader.load, DataFrameWriter.save, type(spark).table
    table, parquet = str(tmp_path / "t"), str(tmp_path / "p")
    with caplog.at_level(logging.INFO, logger="delta_pyds"):
        installed = delta_pyds.install(spark)
        again = delta_pyds.install(spark)

    assert installed == again and installed.formats == ("deltapy",) and not installed.modules
    assert "uninstall() undoes it" in repr(installed)
    assert [record.getMessage() for record in caplog.records].count(repr(installed)) == 1

    frame = spark.range(3).coalesce(1)
    frame.write.partitionBy().mode("overwrite").parquet(parquet)
    frame.write.format("parquet").mode("append").option("compression", "none").save(parquet)
    assert spark.read.load(parquet).count() == spark.read.format("parquet").load(parquet).count() == 6
    with pytest.raises(Exception, match="DATA_SOURCE_NOT_FOUND"):
        frame.write.format("delta").save(str(tmp_path / "d"))
    with pytest.raises(Exception, match="DATA_SOURCE_NOT_FOUND"):
        spark.read.format("delta").load(table)
    with pytest.raises(PySparkException, match="PARSE_SYNTAX_ERROR"):
        spark.sql("SELEC 1")

    frame.write.format("DeltaPy").save(table)
    found = spark.read.format("deltapy").option("where", "id > 0").load(table)
    assert delta_pyds.explain(found).engine == "native" and found.count() == 2
    assert delta_pyds.explain(spark.table(f"deltapy.`{table}`")).engine == "native"
    with pytest.raises(UnsupportedOperationError, match="insertInto"):
        frame.write.option("mergeSchema", True).insertInto(f"deltapy.`{table}`")
    again = spark.range(2).withColumnRenamed("id", "n").writeTo(f"deltapy.`{table}`")
    again.tableProperty("own", "1").tableProperty("delta.appendOnly", "false").createOrReplace()
    assert spark.table(f"deltapy.`{table}`").columns == ["n"]
    frame.writeTo(f"deltapy.`{table}`").replace()
    with pytest.raises(TableNotFoundError):
        frame.writeTo(f"deltapy.`{table}-not`").replace()
    with pytest.raises(UnsupportedOperationError, match="no buckets"):
        frame.write.format("deltapy").bucketBy(2, "id").mode("append").save(table)
    with pytest.raises(OptionError, match="given twice"):
        frame.write.format("deltapy").option("path", table).save(table)
    with pytest.raises(OptionError, match="path of the table is missing"):
        frame.write.format("deltapy").save()

    delta_pyds.uninstall()
    delta_pyds.uninstall()

    assert (DataFrameReader.load, DataFrameWriter.save, type(spark).table) == before
    with pytest.raises(AnalysisException, match="UNSUPPORTED_DATA_SOURCE_SAVE_MODE"):
        frame.write.format("deltapy").save(table)


def test_sql_by_path_is_ours_and_all_other_is_sparks(spark: SparkSession, tmp_path: Path) -> None:
    own, table = type(spark).sql, f"delta.`{tmp_path / 't'}`"
    delta_pyds.install(spark)
    with pytest.raises(PySparkException):
        spark.sql(f"SELECT * FROM {table}")
    delta_pyds.install(spark, delta=True)
    spark.sql(f"CREATE TABLE {table} USING delta AS SELECT * FROM VALUES (1, 'a'), (2, 'b') AS t(id, s)")
    spark.sql(f"UPDATE {table} SET s = 'c' WHERE id = :id", {"id": 2})
    more = spark.createDataFrame([(3, "d")], "id INT, s STRING")
    spark.sql(f"INSERT INTO {table} SELECT * FROM {{more}}", more=more)

    rows = spark.sql(f"SELECT * FROM {table} ORDER BY id").collect()
    assert [tuple(row) for row in rows] == [(1, "a"), (2, "c"), (3, "d")]
    assert spark.sql(f"SELECT max(s) FROM {table} VERSION AS OF 0").first()[0] == "b"
    assert spark.sql("SELECT 'delta.`/x`' AS s").first()[0] == "delta.`/x`"
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW seen USING delta OPTIONS (path '{tmp_path / 't'}')")
    assert spark.table("seen").count() == 3 and spark.catalog.dropTempView("seen")
    assert spark.sql(f"/* of a path */ DESCRIBE HISTORY '{tmp_path / 't'}'").count() == 3
    spark.range(2).write.parquet(str(tmp_path / "files"))
    spark.sql(f"CONVERT TO DELTA parquet.`{tmp_path / 'files'}`")
    assert spark.sql(f"DESCRIBE DETAIL '{tmp_path / 'files'}'").first().format == "delta"
    assert spark.sql("SELECT ? + 1", [1]).first()[0] == 2
    with pytest.raises(PySparkException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql("SELECT * FROM nobody")
    spark.sql("CREATE TABLE named USING delta AS SELECT 1 AS id")
    made = spark.catalog.createTable("made", source="delta", schema=spark.table("named").schema, description="words")
    assert made.columns == spark.table("named").columns == ["id"]
    assert spark.sql("DESCRIBE DETAIL made").first().description == "words"
    placed = spark.catalog.createTable("placed", str(tmp_path / "t"), "delta")
    assert placed.columns == ["id", "s"] and placed.count() == 3
    with pytest.raises(AnalysisException, match="already"):
        spark.catalog.createTable("made", source="delta", schema=made.schema)
    with pytest.raises(UserError, match="no option 'compression'"):
        spark.catalog.createTable("other", source="delta", schema=made.schema, compression="none")
    for name in ("named", "made", "placed"):
        spark.sql(f"DROP TABLE {name}")
    assert (tmp_path / "t" / "_delta_log").exists()

    delta_pyds.uninstall()
    assert type(spark).sql is own


def test_options_of_a_read_are_kept_and_threads_and_sessions_have_it(spark: SparkSession, tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", {"id": "long", "name": "string"})
    table.create()
    table.append([{"id": 1, "name": "a"}])
    table.append([{"id": 2, "name": "b"}])
    path = str(table.path)
    delta_pyds.install(spark)

    assert spark.read.format("deltapy").options(versionAsOf=1, columns="id").load(path).collect() == [(1,)]
    by_schema = spark.read.format("deltapy").schema("name STRING").load(path)
    assert sorted(by_schema.collect()) == [("a",), ("b",)]
    with pytest.raises(PySparkException, match="several paths"):
        spark.read.format("deltapy").load([path, path])
    with pytest.raises(AnalysisException, match="'path'"):
        spark.read.format("deltapy").option("path", path).load(path)
    assert spark.read.format("deltapy").option("path", path).load().count() == 2
    spark.conf.set("spark.sql.sources.default", "deltapy")
    try:
        assert delta_pyds.explain(spark.read.load(path)).engine == "native"
    finally:
        spark.conf.unset("spark.sql.sources.default")

    other = spark.newSession()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(other.read.format("deltapy").load(path).write.format("deltapy").mode("append").save, path).result()
    assert delta_pyds.explain(other.read.format("deltapy").load(path)).engine == "native"
    assert other.table(f"deltapy.`{path}`").count() == 4


def test_what_holds_an_object_of_the_jar_says_that_there_is_none(spark: SparkSession, tmp_path: Path) -> None:
    delta_pyds.install(spark, delta=True)
    spark.range(2).write.format("delta").save(f"{tmp_path}/t")
    with pytest.raises(AttributeError, match="JAR"):
        _ = delta_pyds.DeltaTable.forPath(spark, f"{tmp_path}/t")._jdt


def test_a_path_that_is_not_whole_is_told_from_a_schema(spark: SparkSession) -> None:
    delta_pyds.install(spark)
    for sql in (spark.sql, lambda text: delta_pyds.sql(spark, text)):
        for text in ("SELECT * FROM deltapy.`some events`", "UPDATE deltapy.`some events` SET a = 1"):
            with pytest.raises(AnalysisException, match=r"Write deltapy\.`/.*/some events`") as found:
                sql(text)
            assert found.value.getCondition() == "TABLE_OR_VIEW_NOT_FOUND"
        with pytest.raises(AnalysisException, match="`nobody`") as found:
            sql("SELECT * FROM nobody")
        assert not isinstance(found.value, delta_pyds.DeltaError)


def test_a_temporary_view_of_a_table_cannot_be_written_past_its_log(spark: SparkSession, tmp_path: Path) -> None:
    """Spark would replace the one file of the table."""
    delta_pyds.install(spark)
    path = str(tmp_path / "t")
    spark.range(3).coalesce(1).write.format("deltapy").save(path)
    frame = spark.read.format("deltapy").load(path)
    assert delta_pyds.explain(frame).engine == "native"
    frame.createOrReplaceTempView("seen")
    spark.read.format("deltapy").option("where", "id > 1").load(path).createOrReplaceTempView("some_seen")

    with pytest.raises(PySparkException):
        spark.sql("INSERT OVERWRITE TABLE some_seen SELECT 7L")
    assert spark.read.format("deltapy").load(path).count() == 3
    spark.sql("INSERT OVERWRITE TABLE seen SELECT 7L")
    assert [row.id for row in spark.read.format("deltapy").load(path).collect()] == [7]
    assert delta_pyds.DeltaTable.forPath(spark, path).history(1).collect()[0].version == 1
    assert spark.catalog.dropTempView("seen") and spark.catalog.dropTempView("some_seen")


def test_a_path_object_is_a_path(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    delta_pyds.install(spark)
    try:
        spark.range(3).write.format("deltapy").save(path)  # type: ignore[arg-type]
        assert spark.read.format("deltapy").load(path).count() == 3  # type: ignore[arg-type]
        assert spark.read.load(path, format="deltapy").count() == 3  # type: ignore[arg-type]
        spark.readStream.format("deltapy").load(path).writeStream.format("deltapy").option(  # type: ignore[arg-type]
            "checkpointLocation", str(tmp_path / "c")
        ).trigger(availableNow=True).start(tmp_path / "s").awaitTermination()  # type: ignore[arg-type]
        assert spark.read.format("deltapy").load(str(tmp_path / "s")).count() == 3
    finally:
        delta_pyds.uninstall()
