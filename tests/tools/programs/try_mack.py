"""The functions of mack on tables by path and by name."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import mack
from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession

_TIMES = "effective_time TIMESTAMP, end_time TIMESTAMP"


class Tables:
    """Tables in the working directory."""

    def __init__(self) -> None:
        self.spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()

    def frame(self, rows: list[tuple[Any, ...]], columns: str) -> DataFrame:
        return self.spark.createDataFrame(rows, columns)

    def make(self, path: str, rows: list[tuple[Any, ...]], columns: str = "id INT, city STRING") -> DeltaTable:
        self.frame(rows, columns).coalesce(1).write.format("delta").save(path)
        return DeltaTable.forPath(self.spark, path)


def rows(table: DeltaTable, *columns: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in table.toDF().select(*columns or ["*"]).collect()), key=repr)


def change_dimensions(tables: Tables) -> None:
    then, now = dt.datetime(2025, 1, 1), dt.datetime(2026, 1, 1)
    columns = f"id INT, city STRING, is_current BOOLEAN, {_TIMES}"
    table = tables.make("dimension", [(1, "Bern", True, then, None), (2, "Zug", True, then, None)], columns)
    updates = tables.frame([(2, "Uri", now), (3, "Chur", now)], "id INT, city STRING, effective_time TIMESTAMP")
    mack.type_2_scd_upsert(table, updates, "id", ["city"])
    assert rows(table) == [
        (1, "Bern", True, then, None),
        (2, "Uri", True, now, None),
        (2, "Zug", False, then, now),
        (3, "Chur", True, now, None),
    ]


def remove_duplicates(tables: Tables) -> None:
    content = [(1, "Bern"), (2, "Bern"), (3, "Zug")]
    table = tables.make("killed", content)
    mack.kill_duplicates(table, ["city"])
    assert rows(table) == [(3, "Zug")]
    table = tables.make("by_key", content)
    mack.drop_duplicates_pkey(table, "id", ["city"])
    assert rows(table) == [(1, "Bern"), (3, "Zug")]
    table = tables.make("dropped", content)
    mack.drop_duplicates(table, ["city"])
    assert rows(table, "city") == [("Bern",), ("Zug",)]


def append(tables: Tables) -> None:
    table = tables.make("appended", [(1, "Bern")])
    mack.append_without_duplicates(
        table, tables.frame([(1, "Uri"), (2, "Zug"), (2, "Zug")], "id INT, city STRING"), ["id"]
    )
    assert rows(table) == [(1, "Bern"), (2, "Zug")]
    more = tables.frame([(3, "Chur", True)], "id INT, city STRING, seen BOOLEAN")
    mack.validate_append(table, more, ["id", "city"], ["seen"])
    assert rows(table) == [(1, "Bern", None), (2, "Zug", None), (3, "Chur", True)]
    named = f"delta.`{Path('appended').absolute()}`"
    tables.spark.sql(f"ALTER TABLE {named} ADD CONSTRAINT positive CHECK (id > 0)")
    refused = tables.make("refused", [], "id INT, city STRING, seen BOOLEAN")
    mack.constraint_append(
        table, tables.frame([(4, "Sion", None), (-1, "Nyon", None)], more.schema.simpleString()), refused
    )
    assert (4, "Sion", None) in rows(table)
    assert rows(refused) == [(-1, "Nyon", None)]


def copy(tables: Tables) -> None:
    tables.spark.sql("CREATE TABLE named (id INT, city STRING) USING delta PARTITIONED BY (city)")
    tables.spark.sql("INSERT INTO named VALUES (1, 'Bern'), (2, 'Zug')")
    table = DeltaTable.forName(tables.spark, "named")
    mack.copy_table(table, target_path="copied")
    mack.copy_table(table, target_table="copied_too")
    for made in (DeltaTable.forPath(tables.spark, "copied"), DeltaTable.forName(tables.spark, "copied_too")):
        assert rows(made) == [(1, "Bern"), (2, "Zug")]
        assert made.detail().collect()[0].partitionColumns == ["city"]
    mack.rename_delta_table(table, "named_again")
    assert tables.spark.table("named_again").count() == 2
    assert Path("spark-warehouse/named_again/_delta_log").exists()


def look(tables: Tables) -> None:
    table = DeltaTable.forName(tables.spark, "copied_too")
    assert mack.latest_version(table) == 0
    assert mack.delta_file_sizes(table)["number_of_files"] == 2
    mack.show_delta_file_sizes(table, humanize_binary=True)
    assert mack.is_composite_key_candidate(table, ["id"])
    assert mack.find_composite_key_candidates(table) == ["id"]
    assert mack.with_md5_cols(table, ["id", "city"]).columns == ["id", "city", "md5_id_city"]


def main() -> None:
    tables = Tables()
    for step in (change_dimensions, remove_duplicates, append, copy, look):
        step(tables)


if __name__ == "__main__":
    main()
