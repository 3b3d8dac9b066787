"""Races that queries of Spark lose over Spark Connect: ``connect_races.py <server> <folder> <client>``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from delta_pyds import DeltaTable, read
from delta_pyds.errors import ConflictError
from delta_pyds.spark.settings import TIME_ZONE, USER_METADATA
from tests.spark.row_changes.test_mended_queries import lose, made, rows_of, updated

# true for 0 to 4, and in Tokyo for 15 to 19
EARLY = "hour(timestamp_seconds(id * 3600)) < 5"


def delete(table: DeltaTable) -> Any:
    return table.delete(EARLY)


def update(table: DeltaTable) -> Any:
    return table.update(EARLY, {"v": "v + 10"})


def merge(table: DeltaTable) -> Any:
    source = table.toDF().sparkSession.range(20).alias("s")
    merging = table.alias("t").merge(source, "t.id = s.id")
    return merging.whenMatchedUpdate(EARLY.replace("(id", "(t.id"), {"v": "t.v + 10"}).execute()


COMMANDS: dict[str, tuple[Callable[[DeltaTable], Any], Callable[[int, int], int | None]]] = {
    "delete": (delete, lambda i, v: None if i < 5 else v),
    "update": (update, lambda i, v: v + 10 if i < 5 else v),
    "merge": (merge, lambda i, v: v + 10 if i < 5 else v),
}


def main(server: str, folder: Path) -> None:
    spark = SparkSession.builder.remote(server).getOrCreate()
    spark.conf.set(TIME_ZONE, "UTC")
    for name, (command, after) in COMMANDS.items():
        table = made(folder / name)

        def winner(table: Path = table) -> None:
            updated(table, "id IN (3, 4)", v="1")
            updated(table, "id = 12", id="2")
            # these mean nothing for an expression
            spark.conf.set(USER_METADATA, "of another command")
            spark.conf.set("spark.sql.shuffle.partitions", "3")

        before = [(i, 1 if i in (3, 4) else 0) for i in range(20) if i != 12]
        metrics = lose(spark, table, winner, command)
        changed = [(i, after(i, v)) for i, v in [*before, (2, 0)]]
        assert rows_of(table) == sorted((i, v) for i, v in changed if v is not None), name
        assert metrics["numMends"] == "1", (name, metrics)
        another_run(spark, folder / f"{name}-again", command, after)
    one_meaning(spark, folder / "zone", merge)
    for name, command in reading_commands(spark).items():
        reads_its_table(spark, folder / name.replace(" ", "-"), command)
    print("all is well")


def another_run(
    spark: SparkSession, path: Path, command: Callable[[DeltaTable], Any], after: Callable[[int, int], int | None]
) -> None:
    """A whole command may run again: nothing in it is from the table, for certain."""
    made(path)
    again = {"row_level_concurrency": False, "max_runs": 2}
    metrics = lose(spark, path, lambda: updated(path, "id = 15", id="1"), command, **again)
    changed = [(i, after(i, 0)) for i in [*range(20), 1] if i != 15]
    assert rows_of(path) == sorted((i, v) for i, v in changed if v is not None), path.name
    assert "numMends" not in metrics, (path.name, metrics)


def reading_commands(spark: SparkSession) -> dict[str, Callable[[DeltaTable], Any]]:
    """Commands whose texts read the table, in ways that only the server knows: through the view ``one``."""

    def merge_of(value: str) -> Callable[[DeltaTable], Any]:
        def run(table: DeltaTable) -> Any:
            rows = spark.range(1).selectExpr("3L AS id", f"{value} AS v")
            return table.alias("t").merge(rows.alias("s"), "t.id = s.id").whenMatchedUpdateAll().execute()

        return run

    return {
        "update to a table": lambda table: table.update("id = 3", {"v": "(TABLE one) + 1"}),
        "delete in a table": lambda table: table.delete("id = 3 AND v IN (TABLE one)"),
        "delete in a pipe": lambda table: table.delete("id = 3 AND v = (FROM one |> SELECT m)"),
        "update by a function": lambda table: table.update("id = 3", {"v": "newest() + 1"}),
        "merge of a function": merge_of("newest() + 1"),
        "merge of a table": merge_of("(TABLE one)"),
    }


def reads_its_table(spark: SparkSession, path: Path, command: Callable[[DeltaTable], Any]) -> None:
    """A winner changes what the command reads, and none of the rows that it changes."""
    table = made(path)
    read(spark, path.as_uri()).createOrReplaceTempView("of_table")
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW one AS SELECT max(v) AS m FROM of_table")
    spark.sql("CREATE OR REPLACE TEMPORARY FUNCTION newest() RETURNS BIGINT RETURN (SELECT m FROM one)")
    with pytest.raises(ConflictError):
        lose(spark, table, lambda: updated(table, "id = 15", v="100"), command)
    assert rows_of(table) == [(i, 100 if i == 15 else 0) for i in range(20)], path.name


def one_meaning(spark: SparkSession, path: Path, command: Callable[[DeltaTable], Any]) -> None:
    """A command has the settings of its start, or loses."""
    table = made(path)

    def winner() -> None:
        updated(table, "id IN (3, 18)", v="1")
        spark.conf.set(TIME_ZONE, "Asia/Tokyo")

    with pytest.raises(ConflictError):
        lose(spark, table, winner, command)
    spark.conf.set(TIME_ZONE, "UTC")
    assert rows_of(table) == [(i, 1 if i in (3, 18) else 0) for i in range(20)], path.name


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
