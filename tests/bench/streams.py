"""Streams: (j) a backlog, (k) a poll that finds nothing, (l) a micro-batch end to end, (m) memory over many."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from tests.bench.measure import Line, Side, duration, in_turn, ratio_line, say
from tests.bench.settings import Settings
from tests.bench.tables import made_once, rows
from tests.support.table_builder import TableBuilder
from tests.support.table_writes import write_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

FILES_PER_COMMIT = 10
_ROWS_PER_FILE = 100
_SCHEMA = {"id": "long", "customer": "integer", "price": "double", "city": "string", "comment": "string",
           "ts": "timestamp", "day": "date"}  # fmt: skip


def backlog(spark: SparkSession, settings: Settings) -> list[Line]:
    """(j): all commits of a log, 1,000 files a micro-batch, to nowhere; Spark's Parquet stream reads the same files."""
    table = _log_of_commits(settings)
    scratch = settings.data / "streams"
    total = settings.commits * FILES_PER_COMMIT * _ROWS_PER_FILE
    say(f"(j) {settings.commits:,} commits of {FILES_PER_COMMIT} files")

    def side(source: Callable[[], DataFrame]) -> Callable[[], None]:
        def run() -> None:
            shutil.rmtree(scratch, ignore_errors=True)
            writer = source().writeStream.format("noop").option("checkpointLocation", str(scratch / "c"))
            query = writer.trigger(availableNow=True).start()
            query.awaitTermination()
            found = sum(p["numInputRows"] for p in query.recentProgress)
            if found != total:
                raise RuntimeError(f"{found} rows of {total} came")

        return run

    sides = {name: side(make) for name, make in _sources(spark, table, settings).items()}
    took = in_turn(sides, settings.rounds)
    what = f"backlog of {settings.commits:,} commits x {FILES_PER_COMMIT} files"
    return [
        ratio_line("j", f"{what}, vs readStream.parquet", took["deltapy"], took["parquet"]),
        ratio_line("j", "  vs the minimal source (floor)", took["deltapy"], took["minimal"]),
    ]


def empty_poll(spark: SparkSession, settings: Settings) -> list[Line]:
    """(k): how long a trigger takes that finds nothing new, as Spark reports it."""
    table = _log_of_commits(settings)
    scratch = settings.data / "streams"
    spark.conf.set("spark.sql.streaming.noDataProgressEventInterval", "0")
    polls = max(settings.short_rounds, 10)
    took: dict[str, Side] = {}
    say("(k) polls that find nothing")
    for name, make in _sources(spark, table, settings).items():
        shutil.rmtree(scratch, ignore_errors=True)
        writer = make().writeStream.format("noop").option("checkpointLocation", str(scratch / "c"))
        with _running(writer.trigger(processingTime="0 seconds").start()) as query:
            query.processAllAvailable()
            last = query.lastProgress["batchId"]
            while sum(1 for p in query.recentProgress if _is_idle(p, last)) < polls:
                time.sleep(0.05)
            idle = [p["durationMs"]["triggerExecution"] / 1000 for p in query.recentProgress if _is_idle(p, last)]
        took[name] = Side(idle)
        say(f"  {name}: {duration(took[name].median)}")
    spark.conf.unset("spark.sql.streaming.noDataProgressEventInterval")
    own = Side([_own_poll(table) for _ in range(polls)])
    return [
        ratio_line("k", f"empty poll of {settings.commits * FILES_PER_COMMIT:,} files, vs readStream.parquet",
                   took["deltapy"], took["parquet"]),
        ratio_line("k", "  vs the minimal source (floor)", took["deltapy"], took["minimal"]),
        Line("k", "  of that, in our own code", f"{own.median * 1e6:.0f} us", "", ""),
    ]  # fmt: skip


def micro_batch(spark: SparkSession, settings: Settings) -> list[Line]:
    """(l): from a new file in the source to the commit of its rows in the sink."""
    scratch = settings.data / "streams"
    say("(l) a micro-batch of one file")
    took: dict[str, Side] = {}
    for name in ("deltapy", "parquet", "minimal"):
        shutil.rmtree(scratch, ignore_errors=True)
        source, target = scratch / "source", scratch / "target"
        source.mkdir(parents=True)
        add = _adder(name, source)
        add(0)
        frame = _stream(spark, name, source)
        writer = frame.writeStream.format(name).option("checkpointLocation", str(scratch / "c"))
        seconds = []
        with _running(writer.trigger(processingTime="0 seconds").start(str(target))) as query:
            query.processAllAvailable()
            for number in range(1, settings.short_rounds + 4):
                add(number)
                begin = time.perf_counter()
                query.processAllAvailable()
                seconds.append(time.perf_counter() - begin)
        took[name] = Side(seconds[3:])
        say(f"  {name}: {duration(took[name].median)}")
    what = "micro-batch of one file, source to sink"
    return [
        ratio_line("l", f"{what}, vs parquet to parquet", took["deltapy"], took["parquet"]),
        ratio_line("l", "  vs the minimal source and sink (floor)", took["deltapy"], took["minimal"]),
    ]


def memory(spark: SparkSession, settings: Settings) -> list[Line]:
    """(m): the memory of all of Spark's Python processes early and late in a long run of micro-batches."""
    table = _log_of_commits(settings)
    scratch = settings.data / "streams"
    shutil.rmtree(scratch, ignore_errors=True)
    batches = 2 * settings.commits
    say(f"(m) {batches:,} micro-batches")
    frame = spark.readStream.format("deltapy").options(startingVersion=0, maxFilesPerTrigger=1).load(str(table))
    writer = frame.writeStream.format("deltapy").option("checkpointLocation", str(scratch / "c"))
    samples: list[tuple[int, float]] = []
    with _running(writer.trigger(processingTime="0 seconds").start(str(scratch / "target"))) as query:
        while True:
            time.sleep(0.5)
            if query.exception() is not None:
                raise RuntimeError(str(query.exception()))
            done = (query.lastProgress or {}).get("batchId", 0)
            samples.append((done, _python_memory_mb()))
            if done >= batches:
                break
    early = statistics.median([mb for done, mb in samples if batches // 10 <= done <= batches // 5] or [samples[0][1]])
    late = statistics.median([mb for done, mb in samples if done >= batches * 9 // 10])
    return [
        Line("m", f"memory of the Python processes after {batches:,} micro-batches, vs after a tenth of them",
             f"{late:.0f} MB", f"{early:.0f} MB", f"{late / early:.2f}"),
    ]  # fmt: skip


def _log_of_commits(settings: Settings) -> Path:
    def make(path: Path) -> None:
        table = TableBuilder(path, _SCHEMA)
        table.create()
        number = 0
        for _ in range(settings.commits):
            adds = []
            for _ in range(FILES_PER_COMMIT):
                file = path / f"part-{number:06d}.parquet"
                pq.write_table(rows(number * _ROWS_PER_FILE, (number + 1) * _ROWS_PER_FILE), file)
                stats = json.dumps({"numRecords": _ROWS_PER_FILE})
                adds.append(table.add(file.name, size=file.stat().st_size, stats=stats))
                number += 1
            table.commit(adds)

    return made_once(settings.data / f"commits-{settings.commits}-{FILES_PER_COMMIT}", make)


def _sources(spark: SparkSession, table: Path, settings: Settings) -> dict[str, Callable[[], DataFrame]]:
    per_trigger = 1000 if settings.commits >= 1000 else 50
    ours = {"startingVersion": 0, "maxFilesPerTrigger": per_trigger}
    return {
        "deltapy": lambda: spark.readStream.format("deltapy").options(**ours).load(str(table)),
        "parquet": lambda: _stream(spark, "parquet", table, maxFilesPerTrigger=per_trigger),
        "minimal": lambda: _stream(spark, "minimal", table, maxFilesPerTrigger=per_trigger),
    }


def _stream(spark: SparkSession, name: str, path: Path, **options: Any) -> DataFrame:
    from tests.bench.minimal_source import SCHEMA

    reader = spark.readStream.format(name).options(**options)
    return (reader if name == "deltapy" else reader.schema(SCHEMA)).load(str(path))


def _adder(name: str, source: Path) -> Callable[[int], None]:
    """A function that puts one more file into the source."""

    def add(number: int) -> None:
        table = rows(number * _ROWS_PER_FILE, (number + 1) * _ROWS_PER_FILE)
        if name == "deltapy":
            write_rows(source, _SCHEMA, table)
            return
        pq.write_table(table, source / f".part-{number}.tmp")
        os.rename(source / f".part-{number}.tmp", source / f"part-{number:06d}.parquet")

    return add


@contextmanager
def _running(query: StreamingQuery) -> Iterator[StreamingQuery]:
    try:
        yield query
    finally:
        query.stop()


def _is_idle(progress: Any, last: int) -> bool:
    return progress["batchId"] >= last and progress["numInputRows"] == 0 and "addBatch" not in progress["durationMs"]


def _own_poll(table: Path) -> float:
    from delta_pyds.storage.resolve import resolve_storage
    from delta_pyds.table.snapshot import load_snapshot
    from delta_pyds.table.stream.commit_poller import CommitPoller

    version = load_snapshot(str(table)).version
    tail = CommitPoller(resolve_storage(str(table), {}), str(table))
    list(tail.commits(version + 1))
    begin = time.perf_counter()
    list(tail.commits(version + 1))
    return time.perf_counter() - begin


def _python_memory_mb() -> float:
    """Resident memory of the Python processes below this one, Spark's workers and daemons."""
    parents: dict[int, int] = {}
    names: dict[int, str] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                text = (folder / "stat").read_text()
            except OSError:
                continue
            pid, rest = int(folder.name), text[text.rindex(")") + 2 :].split()
            parents[pid], names[pid] = int(rest[1]), text[text.index("(") + 1 : text.rindex(")")]

    def below(pid: int) -> bool:
        while pid in parents:
            pid = parents[pid]
            if pid == os.getpid():
                return True
        return False

    total = 0.0
    for pid, name in names.items():
        if name.startswith("python") and below(pid):
            try:
                pages = int((Path("/proc") / str(pid) / "statm").read_text().split()[1])
            except OSError:
                continue
            total += pages * os.sysconf("SC_PAGE_SIZE") / 1e6
    return total
