"""The native engine against Spark's reader of the same files, and against the Python source."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import delta_pyds
from tests.bench.measure import Line, in_turn, ratio_line, say
from tests.bench.settings import Settings
from tests.bench.tables import data_table, table_in_partitions, table_of_tiny_files, table_with_vectors
from tests.support.footers import forget_footers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Ask = Callable[["DataFrame"], "DataFrame"]

_GOAL, _GOAL_WITH_VECTORS = 1.05, 1.5


def queries(spark: SparkSession, settings: Settings) -> list[Line]:
    """(n): queries on one DataFrame, loaded each time; each is checked to have one answer on all sides."""
    plain = data_table(settings.data, settings.scan_rows, settings.scan_files)
    last = settings.scan_rows - settings.scan_rows // 100
    asked: dict[str, Ask | None] = {
        "every row": None,
        "sum of one column": lambda df: df.selectExpr("sum(customer)"),
        "count where id is in the last hundredth": lambda df: df.filter(f"id >= {last}").selectExpr("count(price)"),
    }
    lines = []
    for what, ask in asked.items():
        lines += _compare(spark, settings, f"{what}, {settings.scan_rows:,} rows", plain, _files(plain), ask, _GOAL)
    parts = table_in_partitions(settings.data, plain)
    lines += _compare(
        spark, settings, "sum where a partition column has one of 8 values", parts, [str(parts)],
        lambda df: df.filter("part = 3").selectExpr("sum(customer)"), _GOAL,
    )  # fmt: skip
    # the table is the small side: whether it is broadcast is for Spark to know
    small = data_table(settings.data, settings.small_file_rows, 1)
    lines += _compare(
        spark, settings, f"join of {settings.scan_rows:,} numbers to a table of {settings.small_file_rows:,} rows",
        small, _files(small),
        lambda df: spark.range(settings.scan_rows).join(df, "id").selectExpr("sum(customer)"), _GOAL,
    )  # fmt: skip
    deleted = table_with_vectors(settings.data, plain, 0.05)
    for what in ("every row", "sum of one column"):
        lines += _compare(
            spark, settings, f"{what}, 5 % deleted", deleted, _files(plain), asked[what], _GOAL_WITH_VECTORS, same=False
        )
    return lines


def load(spark: SparkSession, settings: Settings) -> list[Line]:
    """(o): what it costs before the first row that Spark is told of many files, each by its name."""
    lines = []
    for num_files in settings.native_files:
        table = table_of_tiny_files(settings.data, num_files)
        say(f"(o) {num_files:,} files")

        def first(table: Path = table) -> None:
            forget_footers()
            delta_pyds.read(spark, str(table), engine="native")

        def again(table: Path = table) -> None:
            delta_pyds.read(spark, str(table), engine="native")

        def parquet(table: Path = table) -> None:
            spark.read.schema("id long, customer int").parquet(str(table))

        took = in_turn({"first": first, "again": again, "parquet": parquet}, 1)
        what = f"load of {num_files:,} files"
        lines += [
            ratio_line("o", f"{what}, vs spark.read.parquet of their directory", took["first"], took["parquet"]),
            ratio_line("o", f"{what} again in one process", took["again"], took["parquet"]),
        ]
    return lines


def _files(table: Path) -> list[str]:
    return sorted(map(str, table.glob("*.parquet")))


def _compare(
    spark: SparkSession,
    settings: Settings,
    what: str,
    table: Path,
    files: list[str],
    ask: Ask | None,
    goal: float,
    *,
    same: bool = True,
) -> list[Line]:
    say(f"(n) {what}")
    sides: dict[str, Callable[[], DataFrame]] = {
        "native": lambda: delta_pyds.read(spark, str(table), engine="native"),
        "parquet": lambda: spark.read.parquet(*files),
        "arrow": lambda: delta_pyds.read(spark, str(table), engine="arrow"),
    }
    if ask is not None:
        answers = {side: ask(load()).collect() for side, load in sides.items() if same or side != "parquet"}
        if len({repr(rows) for rows in answers.values()}) > 1:
            raise RuntimeError(f"{what}: {answers}")
    took = in_turn({side: _run(load, ask) for side, load in sides.items()}, settings.rounds)
    return [
        ratio_line("n", f"{what}, native vs spark.read.parquet", took["native"], took["parquet"], goal),
        ratio_line("n", f"{what}, native vs arrow", took["native"], took["arrow"]),
    ]


def _run(load: Callable[[], DataFrame], ask: Ask | None) -> Callable[[], Any]:
    def run() -> None:
        if ask is None:
            load().write.format("noop").mode("overwrite").save()
        else:
            ask(load()).collect()

    return run
