"""Opening a table of very many files and planning a query that one of them answers.

``cold``: nothing is known of the table; ``warm``: the same query again. Through Spark both engines stop where the first
task would start; without it, our core stands beside deltalake, each in a process of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import delta_pyds
from tests.bench.measure import in_turn, say
from tests.bench.peers.goals import CORE, DELTALAKE, FORMAT, PLAN_ONE_FILE, PYARROW, READ, REFERENCE
from tests.bench.peers.many_files import table_of
from tests.bench.peers.planning_floor import read_checkpoint
from tests.bench.peers.results import Pair, Results
from tests.bench.peers.session import forget, plan
from tests.bench.peers.settings import CHECKOUT, PeerSettings
from tests.bench.tables import wanted
from tests.support.large_table import ROWS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def key_of(size: int) -> int:
    """An id in the one file that exists."""
    return wanted(size) * ROWS + ROWS // 2


def loads(spark: SparkSession, table: Path, key: int) -> dict[str, Callable[[], DataFrame]]:
    """The call by which each side asks for the row ``id = key``."""
    where, path = f"id = {key}", str(table)
    one_file = str(next(table.glob("*.parquet")))
    schema = "id long, customer int, price double, city string, comment string, ts timestamp, day date"

    def floor() -> DataFrame:
        read_checkpoint(table)
        return spark.read.schema(schema).parquet(one_file).where(where)

    return {
        READ: lambda: delta_pyds.read(spark, path, where=where),
        FORMAT: lambda: spark.read.format("deltapy").option("where", where).load(path),
        REFERENCE: lambda: spark.read.format("delta").load(path).where(where),
        PLAN_ONE_FILE: floor,
    }


def through_spark(spark: SparkSession, settings: PeerSettings, results: Results) -> None:
    """Time of each size, cold and warm."""
    for size in settings.planning_files:
        table = table_of(settings, size)
        asked = loads(spark, table, key_of(size))
        for name, load in asked.items():
            found = load().count()
            if found != 1:
                raise RuntimeError(f"{name} finds {found} rows of {table}, not 1")
        for temperature in ("cold", "warm"):
            say(f"planning, {size:,} files, {temperature}")
            sides = {n: _planned(spark, table, load, temperature == "cold") for n, load in asked.items()}
            took = in_turn(sides, settings.rounds, settings.spare_seconds)
            pairs = [Pair(READ, REFERENCE, PLAN_ONE_FILE), Pair(FORMAT, REFERENCE, PLAN_ONE_FILE)]
            results.add("planning", f"open and plan, {size:,} files, {temperature}", took, pairs)


def _planned(
    spark: SparkSession, table: Path, load: Callable[[], DataFrame], cold: bool
) -> Callable[[], tuple[float, float]]:
    from time import perf_counter

    def run() -> tuple[float, float]:
        if cold:
            forget(spark, table)
        begin = perf_counter()
        plan(load())
        return perf_counter() - begin, 0.0

    return run


def without_spark(settings: PeerSettings, results: Results) -> None:
    """Time and whole-process memory of each size."""
    warm_up = table_of(settings, 10)
    for size in settings.planning_files:
        table = table_of(settings, size)
        say(f"planning without Spark, {size:,} files")
        module, key = "tests.bench.planning_process", str(key_of(size))
        sides = {
            CORE: _process(module, "deltapy", str(table), key, str(warm_up)),
            DELTALAKE: _process(module, "deltalake", str(table), key, str(warm_up)),
            PYARROW: _process("tests.bench.peers.planning_floor", str(table), str(warm_up)),
        }
        took = in_turn(sides, settings.rounds, settings.spare_seconds)
        what = f"open and prune without Spark, {size:,} files"
        results.add("planning", what, took, [Pair(CORE, DELTALAKE, PYARROW)])
        results.add("planning", f"{what}, peak of the process", took, [Pair(CORE, DELTALAKE, PYARROW)], "MB")


def _process(*command: str) -> Callable[[], tuple[float, float]]:
    def run() -> tuple[float, float]:
        done = subprocess.run([sys.executable, "-m", *command], check=True, stdout=subprocess.PIPE, cwd=CHECKOUT)
        result = json.loads(done.stdout.splitlines()[-1])
        if result.get("files", 1) != 1:
            raise RuntimeError(f"{command} keeps {result['files']} files, not 1")
        return result["seconds"], result["peak_mb"]

    return run
