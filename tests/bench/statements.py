"""The cost of SQL beside the calls that it stands for: (r) queries, commands, and what passes through ``install``."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import delta_pyds
from delta_pyds import DeltaTable
from tests.bench.measure import Line, Side, in_turn, say
from tests.bench.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CALLS = 20
_MOST_MS = 10.0


def statements(spark: SparkSession, settings: Settings) -> list[Line]:
    """(r): ``delta_pyds.sql`` over what it stands for, and what passes through ``install`` over Spark alone."""
    say("(r) statements")
    home = settings.data / "statements"
    shutil.rmtree(home, ignore_errors=True)
    path, parquet = str(home / "t"), str(home / "p")
    delta_pyds.write(spark.range(1000).selectExpr("id", "CAST(id AS STRING) AS s"), path)
    spark.range(10).coalesce(1).write.parquet(parquet)
    query = "SELECT s, id + 1 AS n FROM {} WHERE id % 7 = 3 AND s LIKE '1%'"
    clauses = "WHEN MATCHED THEN UPDATE SET s = u.s WHEN NOT MATCHED THEN INSERT *"
    merge = f"MERGE INTO delta.`{path}` t USING u ON t.id = u.id {clauses}"
    updates = spark.range(2000, 2001).selectExpr("id", "'x' AS s").limit(0)
    updates.createOrReplaceTempView("u")

    def built() -> None:
        builder = DeltaTable.forPath(spark, path).alias("t").merge(spark.table("u").alias("u"), "t.id = u.id")
        builder.whenMatchedUpdate(set={"s": "u.s"}).whenNotMatchedInsertAll().execute()

    pairs: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
        "delta_pyds.sql(SELECT), over spark.sql of delta_pyds.read": (
            lambda: delta_pyds.sql(spark, query.format(f"delta.`{path}`")).collect(),
            lambda: spark.sql(query.format("{t}"), t=delta_pyds.read(spark, path)).collect(),
        ),
        "delta_pyds.sql(MERGE), over the builder": (lambda: delta_pyds.sql(spark, merge), built),
    }
    lines = []
    for what, (text, other) in pairs.items():
        took = in_turn({"text": _repeated(text), "other": _repeated(other)}, settings.rounds)
        lines.append(_line(f"{what}, one call", took["text"], took["other"]))
    passed: dict[str, Callable[[], object]] = {
        "spark.sql of no Delta table": lambda: spark.sql("SELECT 1 AS x WHERE 'delta' <> 'x'"),
        "spark.read.parquet": lambda: spark.read.parquet(parquet),
    }
    for what, call in passed.items():
        took = in_turn({"installed": _repeated(call, installed=spark), "plain": _repeated(call)}, settings.rounds)
        lines.append(_line(f"{what}, after install over before, one call", took["installed"], took["plain"]))
    spark.catalog.dropTempView("u")
    return lines


def _repeated(call: Callable[[], object], installed: SparkSession | None = None) -> Callable[[], tuple[float]]:
    """Seconds of one of several calls."""

    def run() -> tuple[float]:
        if installed is not None:
            delta_pyds.install(installed, delta=True)
        try:
            begin = time.perf_counter()
            for _ in range(_CALLS):
                call()
            return ((time.perf_counter() - begin) / _CALLS,)
        finally:
            if installed is not None:
                delta_pyds.uninstall()

    return run


def _line(what: str, left: Side, right: Side) -> Line:
    more = (left.median - right.median) * 1000
    wanted = f"<= {_MOST_MS:.0f} ms {'met' if more <= _MOST_MS else 'MISSED'}"
    return Line("r", what, f"{left.median * 1000:.1f} ms", f"{right.median * 1000:.1f} ms", f"{more:+.1f} ms", wanted)
