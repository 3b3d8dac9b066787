"""Streams: through a log of many commits, and how long one micro-batch takes from its file to its commit."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from tests.bench.measure import Side, duration, in_turn, say
from tests.bench.minimal_source import SCHEMA
from tests.bench.peers.goals import FORMAT, MINIMAL, REFERENCE, STREAM_PARQUET
from tests.bench.peers.results import Pair, Results
from tests.bench.peers.session import clear_reference
from tests.bench.peers.settings import PeerSettings
from tests.bench.tables import made_once, rows
from tests.support.large_table import SHORTHAND
from tests.support.table_builder import TableBuilder
from tests.support.table_writes import write_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ROWS = 100
_WARM_UP = 3
_SECONDS = 600
# side: the format of its source and its sink
_FORMATS = {FORMAT: "deltapy", REFERENCE: "delta", STREAM_PARQUET: "parquet", MINIMAL: "floor"}
_PAIRS = [
    Pair(FORMAT, REFERENCE, MINIMAL),
    Pair(FORMAT, MINIMAL),
    Pair(FORMAT, STREAM_PARQUET),
    Pair(REFERENCE, STREAM_PARQUET),
]


def backlog(spark: SparkSession, settings: PeerSettings, results: Results) -> None:
    """All commits of a log, in ten micro-batches, to nowhere."""
    table = _log_of_commits(settings)
    say(f"stream over {settings.commits:,} commits")
    per_trigger = max(1, settings.commits // 10)
    sides = {
        side: _through(_stream(spark, fmt, table, per_trigger), settings, settings.commits * _ROWS)
        for side, fmt in _FORMATS.items()
    }
    took = in_turn(sides, settings.rounds, settings.spare_seconds)
    results.add("stream", f"{settings.commits:,} commits of one file, {per_trigger} files a batch", took, _PAIRS)


def micro_batch(spark: SparkSession, settings: PeerSettings, results: Results) -> None:
    """The duration of one trigger, by Spark: from looking for files to the commit of their rows in the sink.

    A query that runs polls all the time, so the sides run one after another, in blocks that alternate.
    """
    took = {side: Side() for side in _FORMATS}
    say("micro-batches of one file")
    for _ in range(settings.rounds):
        for side, fmt in _FORMATS.items():
            block = _block(spark, settings, fmt)
            took[side].seconds.extend(block)
            say(f"  {side}: {', '.join(map(duration, block))}")
    results.add("micro-batch", "one file of 100 rows, source to sink", took, _PAIRS)


def _log_of_commits(settings: PeerSettings) -> Path:
    def make(path: Path) -> None:
        table = TableBuilder(path, SHORTHAND)
        table.create()
        for number in range(settings.commits):
            file = path / f"part-{number:06d}.parquet"
            pq.write_table(_content(number), file)
            table.commit([table.add(file.name, size=file.stat().st_size, stats=json.dumps({"numRecords": _ROWS}))])

    return made_once(settings.data / f"commits-{settings.commits}-1", make)


def _content(number: int) -> Any:
    return rows(number * _ROWS, (number + 1) * _ROWS)


def _stream(spark: SparkSession, fmt: str, path: Path, per_trigger: int) -> Callable[[], DataFrame]:
    def load() -> DataFrame:
        reader = spark.readStream.format(fmt).option("maxFilesPerTrigger", per_trigger)
        if fmt in ("deltapy", "delta"):
            return reader.option("startingVersion", 0).load(str(path))
        return reader.schema(SCHEMA).load(str(path))

    return load


def _through(load: Callable[[], DataFrame], settings: PeerSettings, expected: int) -> Callable[[], tuple[float, float]]:
    scratch = settings.scratch / "stream"

    def run() -> tuple[float, float]:
        shutil.rmtree(scratch, ignore_errors=True)
        begin = time.perf_counter()
        writer = load().writeStream.format("noop").option("checkpointLocation", str(scratch / "checkpoint"))
        query = writer.trigger(availableNow=True).start()
        ended = query.awaitTermination(_SECONDS)
        seconds = time.perf_counter() - begin
        query.stop()
        found = sum(progress["numInputRows"] for progress in query.recentProgress)
        if not ended or found != expected:
            raise RuntimeError(f"{found} rows of {expected} came within {seconds:.0f} seconds")
        return seconds, 0.0

    return run


def _block(spark: SparkSession, settings: PeerSettings, fmt: str) -> list[float]:
    """The seconds of ``settings.micro_batches`` batches, after a few that are not counted."""
    scratch = settings.scratch / "micro-batch"
    shutil.rmtree(scratch, ignore_errors=True)
    clear_reference(spark)
    source = scratch / "source"
    source.mkdir(parents=True)
    add = _adder(fmt, source)
    add(0)
    frame = _stream(spark, fmt, source, 1000)()
    writer = frame.writeStream.format(fmt).option("checkpointLocation", str(scratch / "checkpoint"))
    query = writer.trigger(processingTime="0 seconds").start(str(scratch / "target"))
    batches = 1 + _WARM_UP + settings.micro_batches
    try:
        query.processAllAvailable()
        for number in range(1, batches):
            add(number)
            query.processAllAvailable()
    finally:
        query.stop()
    # not timed here: what adds a file takes a part of the time in which the query sees it already
    seconds = [p["durationMs"]["triggerExecution"] / 1000 for p in query.recentProgress if p["numInputRows"]]
    if len(seconds) != batches:
        raise RuntimeError(f"{len(seconds)} batches of {fmt} had rows, not {batches}")
    expected = _ROWS * batches
    found = spark.read.format("parquet" if fmt == "floor" else fmt).load(str(scratch / "target")).count()
    if found != expected:
        raise RuntimeError(f"the sink of {fmt} holds {found} rows, not {expected}")
    return seconds[1 + _WARM_UP :]


def _adder(fmt: str, source: Path) -> Callable[[int], None]:
    """A function that puts one more file into the source; our core does it for both engines."""

    def add(number: int) -> None:
        if fmt in ("deltapy", "delta"):
            write_rows(source, SHORTHAND, _content(number))
            return
        pq.write_table(_content(number), source / f".part-{number}.tmp")
        os.rename(source / f".part-{number}.tmp", source / f"part-{number:06d}.parquet")

    return add
