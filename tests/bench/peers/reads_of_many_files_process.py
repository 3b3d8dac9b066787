"""One side in a session of its own: python -m tests.bench.peers.reads_of_many_files_process ARGUMENTS.

ARGUMENTS is JSON: ``side``, ``data``, ``options`` of the storage, ``settings`` of the session, and a ``warm_up``
question. After it the process answers lines of JSON: a ``table``, what to ``find`` of it (null: only prepare that, so
that it is not measured), and ``where`` as SQL or null.
An answer has the seconds of loading (``load``) and of everything (``seconds``), CPU time of all processes (``cpu``) and
``rows``. For "the plan" the driver has all files, and has not split them yet. The answer then has memory in MB in
place of rows: the ``heap`` of Spark's driver, and the user's ``process``, each more than before.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import delta_pyds
from delta_pyds.spark.native.file_index import written_index
from delta_pyds.spark.native.files import list_files
from delta_pyds.spark.planning.types import to_spark
from delta_pyds.storage.resolve import has_scheme
from delta_pyds.table.scan.scan import plan_scan
from delta_pyds.table.snapshot import load_snapshot
from tests.bench.peers.goals import ON_CONNECT, READ, READY_INDEX, REFERENCE
from tests.bench.peers.processes import cpu_seconds, memory_mb
from tests.bench.peers.session import connected, start

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

THE_PLAN = "the plan"
_FOUND = {
    "one column": ("count(*) AS n", "sum(id) AS ids"),
    # every value of every row
    "all columns": ("count(*) AS n", "sum(CAST(hash(*) AS BIGINT)) AS hashes"),
}
_Load = Callable[[], "DataFrame"]
# of a table and a condition as SQL
_Prepare = Callable[[str, "str | None"], _Load]


def main(arguments: dict[str, Any]) -> None:
    # what Spark prints goes elsewhere: answers alone are on the pipe
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sys.stdout = answers
    data, settings, side = Path(arguments["data"]), arguments["settings"], arguments["side"]
    with ExitStack() as until_the_end:
        if side == ON_CONNECT:
            spark = until_the_end.enter_context(connected(data, settings))
        else:
            spark = start(data, settings)
            until_the_end.callback(spark.stop)
        prepare = _sides(spark, arguments["options"], until_the_end)[side]
        for _ in range(2):
            _answered(spark, prepare, arguments["warm_up"])
        print("ANSWER ready", flush=True)
        for line in sys.stdin:
            try:
                answer = _answered(spark, prepare, json.loads(line))
            except Exception as error:  # of any class: the caller ends the run
                answer = {"error": str(error)}
            print("ANSWER", json.dumps(answer), flush=True)


def _sides(spark: SparkSession, options: dict[str, Any], until_the_end: ExitStack) -> dict[str, _Prepare]:
    """The preparation of each side to load a table."""

    def by_read(table: str, where: str | None) -> _Load:
        # the scheme says to Spark Connect that the server has the same files
        path = table if has_scheme(table) else f"file://{table}"
        return lambda: delta_pyds.read(spark, path, where=where, storage_options=options)

    def by_reference(table: str, where: str | None) -> _Load:
        return lambda: _filtered(spark.read.format("delta").load(table), where)

    @cache
    def by_index(table: str, where: str | None) -> _Load:
        scan = plan_scan(load_snapshot(table, storage_options=options), where=where, storage_options=options)
        files = list_files(scan)
        location = until_the_end.enter_context(written_index(files, range(len(files.files))))
        schema = to_spark(scan.state.output)

        def load() -> DataFrame:
            reader = spark.read.schema(schema).option("recursiveFileLookup", "true")
            return _filtered(reader.parquet(location), where)

        return load

    return {READ: by_read, ON_CONNECT: by_read, REFERENCE: by_reference, READY_INDEX: by_index}


def _filtered(frame: DataFrame, where: str | None) -> DataFrame:
    return frame.where(where) if where else frame


def _answered(spark: SparkSession, prepare: _Prepare, question: dict[str, Any]) -> dict[str, Any]:
    load, find = prepare(question["table"], question["where"]), question["find"]
    if find is None:
        return {}
    before = _memory(spark) if find == THE_PLAN else {}
    cpu, begin = cpu_seconds(), time.perf_counter()
    frame = load()
    loaded = time.perf_counter()
    rows = []
    if find == THE_PLAN:
        planned: Any = frame
        planned._jdf.queryExecution().executedPlan()
    else:
        rows = [list(row) for row in frame.selectExpr(*_FOUND[find]).collect()]
    ended = time.perf_counter()
    took = {"load": loaded - begin, "seconds": ended - begin, "cpu": cpu_seconds() - cpu}
    if find != THE_PLAN:
        return {**took, "rows": rows}
    after = _memory(spark)
    return {**took, **{name: after[name] - before[name] for name in after}}


def _memory(spark: SparkSession) -> dict[str, float]:
    """MB that are in use."""
    jvm: Any = spark._jvm
    for _ in range(3):
        jvm.java.lang.System.gc()
    runtime = jvm.java.lang.Runtime.getRuntime()
    used = float(runtime.totalMemory() - runtime.freeMemory()) / 1e6
    return {"heap": used, "process": memory_mb()["driver Python"]}


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
