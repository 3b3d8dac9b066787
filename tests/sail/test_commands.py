"""Commands on Sail: in the user's process or by Sail's queries and tasks; the model of rows says what is right."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import delta_pyds
from delta_pyds import DeltaTable
from delta_pyds.errors import UnsupportedOperationError
from tests.support.frames import ids_at
from tests.support.row_model.delta_table_engine import DeltaTableEngine
from tests.support.row_model.harness import Harness
from tests.support.row_model.programs import drawn_programs
from tests.support.row_model.steps import DELETES, LAYOUTS, MERGES, OTHERS, UPDATES
from tests.support.sampling import exhaustive, seed
from tests.support.table_builder import TableBuilder

STEPS = {"spark": (MERGES, OTHERS, UPDATES, MERGES, DELETES), "tasks": (UPDATES, DELETES, UPDATES)}
STEPS["auto"] = STEPS["spark"]


@pytest.mark.parametrize("engine", STEPS)
def test_the_model_of_rows(spark: SparkSession, tmp_path: Path, engine: str) -> None:
    """Drawn by the commit. A failure names the step; the same commit draws it again."""
    programs = drawn_programs(40 if exhaustive() else 3, f"{seed()} sail {engine}", LAYOUTS, STEPS[engine])
    for number, program in enumerate(programs):
        harness = Harness(tmp_path / str(number), program.layout, program.first, DeltaTableEngine(spark, engine))
        for step in program.steps:
            harness.run(step)
        harness.finish()


def test_expressions_that_only_the_engine_knows(spark: SparkSession, table: TableBuilder) -> None:
    path = f"file://{table.path}"
    spark.udf.register("twice", lambda value: value * 2, "long")
    DeltaTable.forPath(spark, path).update("id = 3", {"id": "twice(id) * 10"})
    DeltaTable.forPath(spark, path).delete("levenshtein(p, 'a b') = 0 AND id = 4")
    assert {3, 4}.isdisjoint(ids_at(spark, path)) and 60 in ids_at(spark, path)
    other = f"file://{table.path}2"
    delta_pyds.write(spark.range(5, 6), other)
    delta_pyds.sql(spark, f"DELETE FROM delta.`{path}` WHERE id IN (SELECT id FROM delta.`{other}`)")
    assert 5 not in ids_at(spark, path)
    delta_pyds.verify(str(table.path)).raise_for_errors()


def test_a_merge_of_a_source_larger_than_spark_would_collect(spark: SparkSession, table: TableBuilder) -> None:
    path = f"file://{table.path}"
    source = spark.range(1_000_100).selectExpr("id", "'m' AS p").alias("s")
    merge = DeltaTable.forPath(spark, path, engine="spark").alias("t").merge(source, "t.id = s.id")
    result = merge.whenNotMatchedInsert(values={"id": "s.id"}).execute()
    assert result.collect()[0]["num_inserted_rows"] == 1_000_100 - len(table.expected_rows())


def test_maintenance(spark: SparkSession, table: TableBuilder) -> None:
    path, expected = f"file://{table.path}", sorted(row["id"] for row in table.expected_rows())

    def run(text: str) -> list[Any]:
        return delta_pyds.sql(spark, text.format(f"delta.`{path}`")).collect()

    assert run("OPTIMIZE {}")[0]["metrics"]["numFilesRemoved"] >= 2
    latest = run("DESCRIBE HISTORY {} LIMIT 1")[0]["version"]
    run("DELETE FROM {} WHERE id = 6")
    run("RESTORE TABLE {} TO VERSION AS OF " + str(latest))
    assert ids_at(spark, path) == expected
    run("OPTIMIZE {} ZORDER BY (id)")
    run("REORG TABLE {} APPLY (PURGE)")
    assert run("VACUUM {} DRY RUN") is not None and run("VACUUM {}") is not None
    run("CREATE TABLE delta.`" + path + "_clone` SHALLOW CLONE {}")
    assert ids_at(spark, f"{path}_clone") == expected
    run("ALTER TABLE {} ADD COLUMNS (extra INT)")
    run("ALTER TABLE {} ADD CONSTRAINT positive CHECK (id > 0)")
    assert run("DESCRIBE DETAIL {}")[0]["numFiles"] >= 1
    spark.range(3).write.parquet(f"{path}_parquet")
    delta_pyds.sql(spark, f"CONVERT TO DELTA parquet.`{path}_parquet`")
    assert ids_at(spark, f"{path}_parquet") == [0, 1, 2]
    delta_pyds.verify(str(table.path)).raise_for_errors()


def test_install_takes_delta_there(spark: SparkSession, tmp_path: Path) -> None:
    path = f"file://{tmp_path}/t"
    try:
        assert "delta" in delta_pyds.install(spark, delta=True).formats
        spark.range(4).selectExpr("id", "1 AS p").write.format("delta").partitionBy("p").save(path)
        spark.range(4, 5).selectExpr("id", "2 AS p").write.format("delta").mode("append").save(path)
        with pytest.raises(Exception, match="already exists"):
            spark.range(4).write.format("delta").save(path)
        spark.sql(f"UPDATE delta.`{path}` SET id = 10 WHERE id = 0")
        assert spark.read.format("delta").load(path).agg({"id": "sum"}).collect()[0][0] == 20
        assert spark.sql(f"DESCRIBE HISTORY delta.`{path}`").count() == 3
        from delta.tables import DeltaTable as Installed

        Installed.forPath(spark, path).delete("id = 10")
        with pytest.raises(UnsupportedOperationError, match=r"Sail 0\.7.* runs no stream"):
            spark.readStream.format("delta").load(path)
    finally:
        delta_pyds.uninstall()


REFUSED: dict[str, Callable[[SparkSession], Any]] = {
    "CREATE TABLE": lambda spark: delta_pyds.sql(spark, "CREATE TABLE named (id INT) USING delta"),
    "write": lambda spark: delta_pyds.write(spark.range(1), table="named"),
    "DeltaTable.create": lambda spark: DeltaTable.create(spark).tableName("named").addColumn("i", "int").execute(),
}


@pytest.mark.parametrize("command", REFUSED)
def test_names_in_its_catalog_are_refused(spark: SparkSession, command: str) -> None:
    with pytest.raises(UnsupportedOperationError, match=r"Sail 0\.7.* has no session catalog of Spark"):
        REFUSED[command](spark)
