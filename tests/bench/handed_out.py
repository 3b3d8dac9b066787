"""What a million files cost the driver that hands them out to 1,000 tasks: python -m tests.bench.handed_out [--quick].

Prints seconds, bytes and peak memory, of the format in a process without Spark and of both engines in a driver. Nothing
is compared, and no file is read: the tables of the format's part stand in a log alone.
"""

from __future__ import annotations

import argparse
import json
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.bench.measure import say
from tests.bench.planning_process import peak_mb
from tests.bench.scans import start_spark
from tests.bench.settings import Settings
from tests.bench.tables import planning_table, table_of_tiny_files

_TASKS = 1_000
_FILES = 1_000_000
# each is a file on the disk; the native engine takes any number
_NATIVE_FILES = 100_000
# more than all files of such a table, so that the number of tasks decides
_LARGE = 1 << 62


def main() -> None:
    """Make the tables, measure each kind in a process of its own, and print a line for each."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.handed_out", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small tables: shows that it runs")
    parser.add_argument("--data", type=Path, help="where generated tables are kept (default: a temporary directory)")
    parser.add_argument("--one", nargs=2, metavar=("KIND", "TABLE"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(_KINDS[given.one[0]](given.one[1])))
        return
    data = (given.data or Path(tempfile.gettempdir()) / "delta_pyds_bench").resolve()
    files, native = (10_000, 1_000) if given.quick else (_FILES, _NATIVE_FILES)
    table, tiny = str(planning_table(data, files, "struct")), str(table_of_tiny_files(data, native))
    for kind, path in (("plan", table), ("arrow", table), ("native", tiny)):
        say(f"{kind}: {path}")
        command = [sys.executable, "-m", "tests.bench.handed_out", "--one", kind, path]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        print(kind, json.dumps(json.loads(done.stdout.splitlines()[-1]), indent=1), flush=True)


def plan(path: str) -> dict[str, Any]:
    """The work of the process that Spark starts to plan a query with the format."""
    from delta_pyds.spark.options.read import parse_read_options
    from delta_pyds.spark.planning import driver
    from delta_pyds.spark.source.reader import FilePartition
    from delta_pyds.spark.source.task_scan import task_scan, to_stream

    took: dict[str, float] = {}
    before = peak_mb()
    start = time.perf_counter()

    def ended(step: str) -> None:
        nonlocal start
        took[step] = round(time.perf_counter() - start, 3)
        start = time.perf_counter()

    options = parse_read_options(_options(path))
    opened = driver.open_table(options)
    scan = driver.plan(opened, options)
    ended("open")
    batches = list(scan.batches())
    ended("files")
    packed = driver.partitions(batches, options)
    ended("pack")
    tasks = [pickle.dumps(FilePartition(to_stream(batch))) for batch in packed]
    ended("pickle")
    number, rows = sum(batch.num_rows for batch in batches), sum(batch.num_rows for batch in packed)
    shared = len(pickle.dumps(task_scan(scan.selection, opened, zone_used=False)))
    return {
        "seconds": took,
        "files": number,
        "pieces": rows,
        "tasks": len(tasks),
        "bytes of the files' rows in memory, each": round(sum(batch.nbytes for batch in batches) / number, 1),
        "bytes of a task": sum(map(len, tasks)) // len(tasks),
        "bytes of a file in a task": round(sum(map(len, tasks)) / rows, 1),
        "bytes of a task without files": len(tasks[0]) - packed[0].nbytes,
        "bytes that all tasks share": shared,
        "MB at the peak": round(peak_mb()),
        "MB before": round(before),
    }


def arrow(path: str) -> dict[str, Any]:
    """The same in a driver of Spark, to the tasks of a job."""
    return _in_a_driver(lambda spark: spark.read.format("deltapy").options(**_options(path)).load())


def native(path: str) -> dict[str, Any]:
    """The native engine, by which Spark's own plan carries the files."""
    import delta_pyds

    return _in_a_driver(lambda spark: delta_pyds.read(spark, path, engine="native"))


def _in_a_driver(load: Callable[[Any], Any]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        spark = start_spark(Settings.quick(Path(folder)))
        spark.conf.set("spark.sql.files.minPartitionNum", str(_TASKS))
        spark.range(1).count()
        heap = _heap_mb(spark)
        start = time.perf_counter()
        frame = load(spark)
        loaded = time.perf_counter()
        rows = frame._jdf.queryExecution().toRdd()
        partitions = rows.partitions()
        planned = time.perf_counter()
        found = {
            "seconds": {"load": round(loaded - start, 3), "tasks": round(planned - loaded, 3)},
            "tasks": len(partitions),
            "bytes of a task's files": _serialized(spark, partitions),
            "MB of heap that the plan keeps": round(_heap_mb(spark) - heap),
            "MB at the peak of this process": round(peak_mb()),
        }
        spark.stop()
        return found


def _serialized(spark: Any, partitions: Any) -> int:
    """As Spark sends them, on average of 20."""
    some = [partitions[i] for i in range(0, len(partitions), max(1, len(partitions) // 20))]
    sizes = []
    for one in some:
        out = spark._jvm.java.io.ByteArrayOutputStream()
        spark._jvm.java.io.ObjectOutputStream(out).writeObject(one)
        sizes.append(out.size())
    return sum(sizes) // len(sizes)


def _heap_mb(spark: Any) -> float:
    for _ in range(3):
        spark._jvm.java.lang.System.gc()
    runtime = spark._jvm.java.lang.Runtime.getRuntime()
    return float(runtime.totalMemory() - runtime.freeMemory()) / 1e6


def _options(path: str) -> dict[str, str]:
    return {"path": path, "minPartitions": str(_TASKS), "maxPartitionBytes": str(_LARGE)}


_KINDS: dict[str, Callable[[str], dict[str, Any]]] = {"plan": plan, "arrow": arrow, "native": native}


if __name__ == "__main__":
    main()
