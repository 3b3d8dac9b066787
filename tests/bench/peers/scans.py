"""Reading ``lineitem``: all of it and a few orders of it, with every column and with three."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import delta_pyds
from delta_pyds.table.scan.scan import plan_scan
from delta_pyds.table.snapshot import load_snapshot
from tests.bench.measure import in_turn, say
from tests.bench.peers import tpch
from tests.bench.peers.goals import DELTALAKE, FORMAT, MINIMAL, PARQUET, PYARROW, READ, REFERENCE
from tests.bench.peers.results import Pair, Results
from tests.bench.peers.session import drain
from tests.bench.peers.settings import PeerSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_COLUMNS = ["l_orderkey", "l_extendedprice", "l_shipdate"]
_PAIRS = [
    Pair(READ, REFERENCE, PARQUET),
    Pair(FORMAT, MINIMAL, MINIMAL),
    Pair(FORMAT, REFERENCE, MINIMAL),
    Pair(READ, DELTALAKE, PYARROW),
    Pair(READ, PARQUET),
]


def scans(spark: SparkSession, settings: PeerSettings, results: Results) -> None:
    """Each load is part of what is measured, so the table is opened in it too."""
    bounds = tpch.few_orders(settings)
    for maker in settings.makers:
        table = tpch.table(spark, settings, maker, "lineitem")
        for between in (None, bounds):
            for columns in (None, _COLUMNS):
                work = "selective scan" if between else "full scan"
                what = f"{work}, {'3 columns' if columns else 'all columns'}, table by {maker}"
                say(what)
                frames = loads(spark, table, between, columns)
                _same_count(frames)
                sides: dict[str, Callable[[], Any]] = {n: _drained(load) for n, load in frames.items()}
                sides |= _without_spark(table, between, columns)
                results.add(work, what, in_turn(sides, settings.rounds, settings.spare_seconds), _PAIRS)


def loads(
    spark: SparkSession, table: Path, between: tuple[int, int] | None, columns: list[str] | None
) -> dict[str, Callable[[], DataFrame]]:
    """The call by which each side reads the rows; the floors are told the files that hold them."""
    path = str(table)
    where = _sql(between)
    schema = spark.read.format("deltapy").load(path).schema
    kept = type(schema)([field for field in schema if columns is None or field.name in columns])
    needed = _files(table, where)
    options = {"where": where, "columns": columns and ",".join(columns)}
    given = {key: value for key, value in options.items() if value}

    def asked(frame: DataFrame) -> DataFrame:
        frame = frame.where(where) if where else frame
        return frame.select(*columns) if columns else frame

    return {
        READ: lambda: delta_pyds.read(spark, path, where=where, columns=columns),
        FORMAT: lambda: spark.read.format("deltapy").options(**given).load(path),
        REFERENCE: lambda: asked(spark.read.format("delta").load(path)),
        PARQUET: lambda: asked(spark.read.schema(schema).parquet(*needed)),
        MINIMAL: lambda: asked(spark.read.format("floor").schema(kept).option("files", "\n".join(needed)).load()),
    }


def _files(table: Path, where: str | None) -> list[str]:
    return [file.path.removeprefix("file://") for file in plan_scan(load_snapshot(str(table)), where=where).files()]


def _sql(between: tuple[int, int] | None) -> str | None:
    return between and f"l_orderkey >= {between[0]} AND l_orderkey < {between[1]}"


def _drained(load: Callable[[], DataFrame]) -> Callable[[], None]:
    return lambda: drain(load())


def _same_count(frames: dict[str, Callable[[], DataFrame]]) -> None:
    """A quick answer is worth nothing when it is wrong."""
    counts = {name: load().count() for name, load in frames.items()}
    if len(set(counts.values())) > 1 or 0 in counts.values():
        raise RuntimeError(f"the sides do not read the same rows: {counts}")


def _without_spark(
    table: Path, between: tuple[int, int] | None, columns: list[str] | None
) -> dict[str, Callable[[], None]]:
    files, where = _files(table, None), _sql(between)

    def by_deltalake() -> None:
        from deltalake import DeltaTable, QueryBuilder

        query = f"SELECT {', '.join(columns) if columns else '*'} FROM t" + (f" WHERE {where}" if where else "")
        for _ in QueryBuilder().register("t", DeltaTable(str(table))).execute(query):
            pass

    def by_pyarrow() -> None:
        import pyarrow.dataset as ds

        key = ds.field("l_orderkey")
        chosen = between and (key >= between[0]) & (key < between[1])
        for _ in ds.dataset(files).to_batches(columns=columns, filter=chosen):
            pass

    return {DELTALAKE: by_deltalake, PYARROW: by_pyarrow}
