"""Tables created, replaced and altered through ``DeltaTable``: what only a session can check, and that rows go in."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException, IllegalArgumentException, ParseException
from pyspark.sql.types import IntegerType, StringType, StructField, StructType, VarcharType

import delta_pyds
from delta_pyds import DeltaTable, IdentityGenerator
from delta_pyds.errors import ConstraintViolationError, DeltaError
from delta_pyds.table.snapshot import load_snapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# each takes seconds of Spark: a run takes a part of them, chosen by the commit
pytestmark = pytest.mark.one_test_in(4)


def rows(table: DeltaTable, *columns: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in table.toDF().select(*columns or "*").collect()), key=str)


def test_a_built_table_computes_numbers_and_defaults(spark: SparkSession, tmp_path: Path) -> None:
    path = f"{tmp_path}/t"
    table = (
        DeltaTable.create(spark)
        .location(path)
        .addColumn("id", "BIGINT", generatedAlwaysAs=IdentityGenerator(5, 2), comment="the id")
        .addColumn("a", IntegerType(), nullable=False)
        .addColumn("double", "INT", generatedAlwaysAs="a * 2")
        .addColumn("word", "varchar(3)", default="'x'")
        .addColumns([DeltaTable.columnBuilder(spark, "p").dataType("struct<x:int,y:string>").comment("c").build()])
        .clusterBy("a", "p.x")
        .property("delta.feature.allowColumnDefaults", "supported")
        .property("delta.constraints.small", "a < 100")
        .comment("what it is")
        .execute()
    )

    delta_pyds.write(spark.range(2).selectExpr("cast(id + 1 AS int) AS a").coalesce(1), path, mode="append")

    assert rows(table) == [(5, 1, 2, "x", None), (7, 2, 4, "x", None)]
    detail = table.detail().collect()[0]
    assert (detail.description, detail.clusteringColumns) == ("what it is", ["a", "p.x"])
    assert table.history().collect()[-1].operation == "CREATE TABLE"
    for broken in ("cast(null AS int) AS a", "200 AS a", "1 AS a, 'long' AS word", "1 AS a, 3 AS double"):
        with pytest.raises(DeltaError):
            delta_pyds.write(spark.sql(f"SELECT {broken}"), path, mode="append")
    assert table.toDF().count() == 2


def test_the_four_ways_to_begin(spark: SparkSession, tmp_path: Path) -> None:
    path = f"{tmp_path}/t"
    name = f"delta.`{path}`"
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        DeltaTable.replace(spark).location(path).addColumn("a", "INT").execute()
    DeltaTable.createIfNotExists(spark).tableName(name).addColumns(StructType().add("a", IntegerType())).execute()
    assert DeltaTable.createIfNotExists(spark).location(path).addColumn("b", "INT").execute().toDF().columns == ["a"]
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        DeltaTable.create(spark).location(path).addColumn("a", "INT").execute()
    assert DeltaTable.replace(spark).location(path).addColumn("b", "INT").execute().toDF().columns == ["b"]
    replaced = DeltaTable.createOrReplace(spark).location(path).addColumn("c", "INT").partitionedBy(["c"])
    assert replaced.addColumn("d", "INT").execute().toDF().columns == ["c", "d"]
    assert [row.operation for row in DeltaTable.forPath(spark, path).history().collect()] == [
        "CREATE OR REPLACE TABLE", "REPLACE TABLE", "CREATE TABLE",
    ]  # fmt: skip


def test_expressions_that_no_generated_column_has(spark: SparkSession, tmp_path: Path) -> None:
    for data_type, expression, error in (
        ("INT", "q + 1", "DELTA_INVALID_GENERATED_COLUMN_REFERENCES"),
        ("INT", "g + 1", "DELTA_INVALID_GENERATED_COLUMN_REFERENCES"),
        ("BIGINT", "a + 1", "DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH"),
        ("DOUBLE", "rand()", "DELTA_NON_DETERMINISTIC_EXPRESSION_IN_GENERATED_COLUMN"),
        ("INT", "(SELECT 1)", None),
        ("BIGINT", "sum(a)", None),
        ("INT", "a +", None),
    ):
        builder = DeltaTable.create(spark).location(f"{tmp_path}/t").addColumn("a", "INT")
        builder.addColumn("g", data_type, generatedAlwaysAs=expression)
        with pytest.raises(AnalysisException, match=error):
            builder.execute()
    assert not (tmp_path / "t").exists()


def test_wrong_arguments_of_the_builder(spark: SparkSession) -> None:
    builder: Any = DeltaTable.create(spark)
    for wrong in (
        lambda: builder.tableName(1),
        lambda: builder.location(1),
        lambda: builder.comment(1),
        lambda: builder.addColumn(1, "INT"),
        lambda: builder.addColumn("a", 1),
        lambda: builder.addColumn("a", "INT", nullable=1),
        lambda: builder.addColumn("a", "INT", generatedAlwaysAs=1),
        lambda: builder.addColumn("a", "INT", generatedByDefaultAs="a"),
        lambda: builder.addColumns("a INT"),
        lambda: builder.addColumns(["a"]),
        lambda: builder.partitionedBy(1),
        lambda: builder.clusterBy(["a", 1]),
        lambda: builder.property("a", 1),
    ):
        with pytest.raises(TypeError):
            wrong()
    assert "secret" not in repr(builder.location("s3://key:secret@b/t"))
    builder = DeltaTable.create(spark)
    with pytest.raises(ValueError, match="step"):
        builder.addColumn("a", "BIGINT", generatedAlwaysAs=IdentityGenerator(1, 0))
    with pytest.raises(ValueError, match="both"):
        builder.addColumn("a", "BIGINT", generatedAlwaysAs="1", generatedByDefaultAs=IdentityGenerator())
    with pytest.raises(ParseException):
        builder.addColumn("a", "INTT")
    with pytest.raises(IllegalArgumentException, match="MISSING_TABLE_NAME_OR_LOCATION"):
        builder.addColumn("a", "INT").execute()


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> DeltaTable:
    frame = spark.range(4).selectExpr(
        "id", "cast(id AS int) AS n", "named_struct('x', id, 'y', nullif(id, 2)) AS s", "nullif(id, 3) AS m"
    )
    delta_pyds.write(frame.coalesce(1), f"{tmp_path}/t")
    return DeltaTable.forPath(spark, f"{tmp_path}/t")


def test_columns_change(table: DeltaTable) -> None:
    table.setProperties({"delta.columnMapping.mode": "name", "delta.enableTypeWidening": "true"})
    table.addColumn("s.z", "varchar(2)", comment="new", first=True)
    table.addColumns([StructField("c", VarcharType(5)), StructField("d", StringType())])
    table.renameColumn("s.x", "a b")
    table.dropColumns("d", "s.y")
    table.alterColumn("n", dataType="DOUBLE", comment="wide")
    table.moveColumn("m", first=True)

    shown = table.toDF()
    assert shown.columns == ["m", "id", "n", "s", "c"]
    assert rows(table, "n", "s") == [(float(i), (None, i)) for i in range(4)]
    assert table.toDF().schema["n"].metadata["comment"] == "wide"
    assert [row.operation for row in table.history(7).collect()] == [
        "CHANGE COLUMN", "CHANGE COLUMN", "DROP COLUMNS", "RENAME COLUMN", "ADD COLUMNS", "ADD COLUMNS",
        "SET TBLPROPERTIES",
    ]  # fmt: skip
    with pytest.raises(IllegalArgumentException):
        table.alterColumn("n")
    path = table.detail().collect()[0].location
    text = load_snapshot(path).schema.fields[3].metadata["__CHAR_VARCHAR_TYPE_STRING"]
    assert text == "struct<z:varchar(2),`a b`:bigint>"
    for z, fits in (("ab", True), ("abc", False)):
        frame = table.toDF().sparkSession.sql(f"SELECT named_struct('z', '{z}', 'a b', 9L) AS s")
        with nullcontext() if fits else pytest.raises(ConstraintViolationError, match="VARCHAR_LIMIT"):
            delta_pyds.write(frame, path, mode="append")
    table.delete("s.`a b` = 9")

    table.setProperties({"delta.enableRowTracking": "true"})
    with pytest.raises(AnalysisException, match="DELTA_INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING"):
        table.setProperties({"delta.columnMapping.mode": "none"})
    table.renameColumn("s.`a b`", "ab")
    table.setProperties({"delta.columnMapping.mode": "none"})
    assert rows(table, "n", "s") == [(float(i), (None, i)) for i in range(4)]
    assert not delta_pyds.verify(path).findings


def test_columns_are_replaced(spark: SparkSession, tmp_path: Path) -> None:
    path = f"{tmp_path}/t"
    spark.sql("SELECT 1 AS a, 'x' AS b").write.format("deltapy").mode("append").save(path)
    table = DeltaTable.forPath(spark, path)

    table.replaceColumns(StructType().add("b", "string").add("a", "integer").add("c", "integer"))

    assert table.toDF().columns == ["b", "a", "c"] and rows(table) == [("x", 1, None)]
    assert table.history(1).collect()[0].operation == "REPLACE COLUMNS"
    with pytest.raises(AnalysisException, match="DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP"):
        table.replaceColumns(StructType().add("b", "integer").add("a", "integer").add("c", "integer"))


def test_rules_are_held_against_the_rows_that_are_there(table: DeltaTable) -> None:
    table.addConstraint("small", "n < 4")
    with pytest.raises(ConstraintViolationError, match="1 rows"):
        table.addConstraint("smaller", "n < 3")
    with pytest.raises(ConstraintViolationError, match="1 rows"):
        table.addConstraint("null does not pass", "m >= 0")
    with pytest.raises(AnalysisException, match="DELTA_NON_BOOLEAN_CHECK_CONSTRAINT"):
        table.addConstraint("number", "n")
    with pytest.raises(AnalysisException):
        table.addConstraint("nobody", "nobody > 0")
    with pytest.raises(DeltaError, match="small"):
        table.update(set={"n": "n + 1"})
    table.dropConstraint("SMALL")
    table.dropConstraint("small", ifExists=True)

    for name in ("m", "s.y"):
        with pytest.raises(ConstraintViolationError, match="DELTA_NEW_NOT_NULL_VIOLATION"):
            table.alterColumn(name, nullable=False)
    table.alterColumn("n", nullable=False)
    table.alterColumn("s.x", nullable=False)
    with pytest.raises(DeltaError):
        table.update(set={"n": "null"})


def test_defaults(spark: SparkSession, table: DeltaTable, tmp_path: Path) -> None:
    table.addFeatureSupport("allowColumnDefaults")
    table.alterColumn("m", default="7L")
    for wrong, error in (("id", "NOT_CONSTANT"), ("'abc'", "DATA_TYPE")):
        with pytest.raises(AnalysisException, match=error):
            table.alterColumn("n", default=wrong)
    delta_pyds.write(spark.sql("SELECT 9L AS id"), f"{tmp_path}/t", mode="append")
    assert table.toDF().where("id = 9").collect()[0].m == 7
    table.alterColumn("m", dropDefault=True)
