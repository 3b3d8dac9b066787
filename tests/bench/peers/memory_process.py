"""Memory of one work by one side, in a session of its own: python -m tests.bench.peers.memory_process ARGUMENTS.

ARGUMENTS is JSON: ``work``, ``side``, ``data``, ``table``, ``warm_up`` (a small table), and of both the
``key`` that planning looks for; of a table whose rows change the ``key`` is their number, and ``change`` says how.
Prints JSON: ``roles`` (the peak of each role, MB) and ``added`` (MB of all processes above what they had before).
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.bench.peers.changes import DELETE, MERGE
from tests.bench.peers.goals import DRAINED, FORMAT, REFERENCE, WRITE_PARQUET
from tests.bench.peers.maintenance import vacuum_plan
from tests.bench.peers.planning import loads as planning_loads
from tests.bench.peers.processes import Peak
from tests.bench.peers.row_changes import copied, in_session, source_of_merge, source_view
from tests.bench.peers.scans import loads as scan_loads
from tests.bench.peers.session import drain, plan, start
from tests.bench.peers.settings import PeerSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_WRITERS = {FORMAT: "deltapy", REFERENCE: "delta", WRITE_PARQUET: "parquet", DRAINED: "floor"}


def main(arguments: dict[str, Any]) -> None:
    spark = start(Path(arguments["data"]))
    try:
        prepare = _works(spark, arguments)
        prepare(arguments["warm_up"], arguments["warm_up_key"])()
        work = prepare(arguments["table"], arguments["key"])
        _settle(spark)
        with Peak() as peak:
            work()
        print(json.dumps({"roles": peak.roles, "added": peak.added}))
    finally:
        spark.stop()


def _works(spark: SparkSession, arguments: dict[str, Any]) -> Callable[[str, int], Callable[[], None]]:
    """Prepare the work: finding out what the sides are asked for is not measured."""
    side = arguments["side"]

    def planning(table: str, key: int) -> Callable[[], None]:
        load = planning_loads(spark, Path(table), key)[side]
        return lambda: plan(load())

    def full_scan(table: str, _: int) -> Callable[[], None]:
        load = scan_loads(spark, Path(table), None, None)[side]
        return lambda: drain(load())

    def write(table: str, _: int) -> Callable[[], None]:
        out = Path(arguments["data"]) / "peers-scratch" / "memory"
        shutil.rmtree(out, ignore_errors=True)
        frame = spark.read.parquet(table)
        return lambda: frame.write.format(_WRITERS[side]).mode("append").save(str(out))

    def row_change(table: str, num_rows: int) -> Callable[[], None]:
        settings = PeerSettings(Path(arguments["data"]))
        change = next(c for c in (DELETE, MERGE) if c.name == arguments["change"])
        source_view(spark, settings, source_of_merge(num_rows))
        path = copied(Path(table), settings.scratch / "memory")
        run = partial(in_session(spark, change, side), path)

        def changed() -> None:
            run()

        return changed

    def vacuum(tables: str, _: int) -> Callable[[], None]:
        table, inventory = map(Path, tables.split("\n"))

        def planned() -> None:
            vacuum_plan(spark, side, table, inventory)

        return planned

    works = {"planning": planning, "full scan": full_scan, "write": write, "row changes": row_change}
    works["vacuum planning"] = vacuum
    return works[arguments["work"]]


def _settle(spark: SparkSession) -> None:
    """Collect what the start and the warm-up left: it is not part of the work."""
    jvm: Any = spark._jvm
    jvm.java.lang.System.gc()
    time.sleep(1)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
