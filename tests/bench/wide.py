"""A table of very many columns: (p) written and read, where whatever grows with their square shows."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

import delta_pyds
from tests.bench.measure import Line, in_turn, ratio_line, say
from tests.bench.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = 1000


def many_columns(spark: SparkSession, settings: Settings) -> list[Line]:
    """(p): rows of very many columns written and read through both engines, against Spark's own Parquet."""
    columns = settings.wide_columns
    say(f"(p) {columns:,} columns")
    source, plain, table = (settings.data / name for name in ("wide_source", "wide_parquet", "wide_deltapy"))
    for path in (source, plain, table):
        shutil.rmtree(path, ignore_errors=True)
    source.mkdir(parents=True)
    kinds = (range(ROWS), [f"text {i % 50}" for i in range(ROWS)], [i / 3 for i in range(ROWS)])
    arrays = [pa.array(kind) for kind in kinds]
    names = [f"column_{i}" for i in range(columns)]
    pq.write_table(pa.table([arrays[i % 3] for i in range(columns)], names=names), source / "part-0.parquet")
    frame = spark.read.parquet(str(source))
    written = in_turn(
        {
            "deltapy": lambda: _written(frame, str(table)),
            "parquet": lambda: frame.write.mode("append").parquet(str(plain)),
        },
        settings.rounds,
    )
    for path in (plain, table):
        shutil.rmtree(path)
    frame.write.parquet(str(plain))
    delta_pyds.write(frame, str(table))
    read = in_turn(
        {
            "native": lambda: _drained(delta_pyds.read(spark, str(table), engine="native")),
            "arrow": lambda: _drained(delta_pyds.read(spark, str(table), engine="arrow")),
            "parquet": lambda: _drained(spark.read.parquet(str(plain))),
        },
        settings.rounds,
    )
    what = f"{columns:,} columns x {ROWS:,} rows"
    return [
        ratio_line("p", f"write {what}, vs df.write.parquet", written["deltapy"], written["parquet"]),
        ratio_line("p", f"read {what}, native engine, vs spark.read.parquet", read["native"], read["parquet"]),
        ratio_line("p", f"read {what}, Python source, vs spark.read.parquet", read["arrow"], read["parquet"]),
    ]


def _written(frame: DataFrame, path: str) -> None:
    delta_pyds.write(frame, path, mode="append")


def _drained(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()
