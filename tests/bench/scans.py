"""Reading through Spark: (b) a full scan, (c) one file in a thousand, (e) fixed cost, (f) deletion vectors."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.measure import Line, duration, in_turn, ratio_line, say
from tests.bench.settings import CHECKOUT, Settings
from tests.bench.tables import data_table, table_with_vectors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def start_spark(settings: Settings) -> SparkSession:
    """A session of two threads with the settings that the project recommends, the same for all sides."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    # the workers import the minimal source by its name
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(CHECKOUT), os.environ.get("PYTHONPATH")]))
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master("local[2]")
        .appName("delta_pyds benchmarks")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "4g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(settings.data / "warehouse"))
        .config("spark.local.dir", str(settings.data / "spark"))
    )
    for key, value in recommended().items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    from delta_pyds.spark.source.datasource import DeltaDataSource
    from tests.bench.minimal_source import MinimalSource

    spark.dataSource.register(DeltaDataSource)
    spark.dataSource.register(MinimalSource)
    return spark


def recommended() -> dict[str, str]:
    """The settings of ``spark_conf/deltapy.conf``."""
    lines = (CHECKOUT / "spark_conf" / "deltapy.conf").read_text().splitlines()
    pairs = [line.split(None, 1) for line in lines if line.strip() and not line.lstrip().startswith("#")]
    return {key: value.strip() for key, value in pairs}


def _run(load: Callable[[], DataFrame]) -> Callable[[], None]:
    """Load, so that planning is measured too, and read every row to nowhere."""

    def run() -> None:
        load().write.format("noop").mode("overwrite").save()

    return run


def _ours(spark: SparkSession, path: Path, where: str | None = None) -> Callable[[], None]:
    options = {"where": where} if where else {}
    return _run(lambda: spark.read.format("deltapy").options(**options).load(str(path)))


def _minimal(spark: SparkSession, path: Path) -> Callable[[], None]:
    return _run(lambda: spark.read.format("minimal").load(str(path)))


def full_scan(spark: SparkSession, settings: Settings) -> list[Line]:
    """(b): every row, against the minimal source and against Spark's own reader."""
    table = data_table(settings.data, settings.scan_rows, settings.scan_files)
    _same_count(spark, table, settings.scan_rows)
    files = sorted(map(str, table.glob("*.parquet")))
    say(f"(b) {settings.scan_rows:,} rows")
    took = in_turn(
        {
            "deltapy": _ours(spark, table),
            "minimal": _minimal(spark, table),
            "parquet": _run(lambda: spark.read.parquet(*files)),
        },
        settings.rounds,
    )
    what = f"scan of {settings.scan_rows:,} rows x 7 columns"
    return [
        ratio_line("b", f"{what}, vs the minimal source", took["deltapy"], took["minimal"], 1.10),
        ratio_line("b", f"{what}, vs spark.read.parquet", took["deltapy"], took["parquet"]),
    ]


def one_file_of_many(spark: SparkSession, settings: Settings) -> list[Line]:
    """(c): a predicate that only one small file satisfies, against reading that file alone."""
    table = data_table(settings.data, settings.small_files * settings.small_file_rows, settings.small_files)
    number = settings.small_files // 3
    low = number * settings.small_file_rows
    where = f"id >= {low} AND id < {low + settings.small_file_rows}"
    file = table / f"part-{number:05d}.snappy.parquet"
    count = spark.read.format("deltapy").option("where", where).load(str(table)).count()
    if count != settings.small_file_rows:
        raise RuntimeError(f"where {where} gives {count} rows of {table}")
    say("(c) one file of many")
    took = in_turn({"deltapy": _ours(spark, table, where), "minimal": _minimal(spark, file)}, settings.short_rounds)
    what = f"where that matches 1 file of {settings.small_files:,}, vs that file by the minimal source"
    return [ratio_line("c", what, took["deltapy"], took["minimal"], 2.0)]


def fixed_cost(spark: SparkSession, settings: Settings) -> list[Line]:
    """(e): a warm query on a table of one small file."""
    table = data_table(settings.data, 100, 1)
    say("(e) fixed cost")
    sides = {"deltapy": _ours(spark, table), "minimal": _minimal(spark, table)}
    in_turn(sides, 2)
    took = in_turn(sides, settings.short_rounds)
    more = took["deltapy"].median - took["minimal"].median
    met = "met" if more <= 0.060 else "MISSED"
    ours, theirs = duration(took["deltapy"].median), duration(took["minimal"].median)
    what = "warm query on one small file, vs the minimal source"
    return [Line("e", what, ours, theirs, f"{more * 1000:+.0f} ms", f"<= +60 ms {met}")]


def deletion_vectors(spark: SparkSession, settings: Settings) -> list[Line]:
    """(f): the scan of (b) with 5 % of the rows deleted, against none deleted."""
    plain = data_table(settings.data, settings.scan_rows, settings.scan_files)
    deleted = table_with_vectors(settings.data, plain, 0.05)
    _same_count(spark, deleted, settings.scan_rows - settings.scan_rows // 20)
    say("(f) 5 % deleted")
    took = in_turn({"deleted": _ours(spark, deleted), "plain": _ours(spark, plain)}, settings.rounds)
    what = "scan with 5 % of the rows deleted by vectors, vs without"
    return [ratio_line("f", what, took["deleted"], took["plain"], 1.15)]


def _same_count(spark: SparkSession, table: Path, expected: int) -> None:
    """A quick answer is worth nothing when it is wrong."""
    count = spark.read.format("deltapy").load(str(table)).count()
    if count != expected:
        raise RuntimeError(f"{table} gives {count} rows, not {expected}")
