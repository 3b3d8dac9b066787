"""Writing ``lineitem``: append and overwrite, unpartitioned and into 100 partitions; and one small commit."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tests.bench.measure import in_turn, say
from tests.bench.peers import tpch
from tests.bench.peers.goals import DELTALAKE, DRAINED, FORMAT, REFERENCE, WRITE_PARQUET
from tests.bench.peers.many_files import table_of
from tests.bench.peers.results import Pair, Results
from tests.bench.peers.session import clear_reference
from tests.bench.peers.settings import PeerSettings
from tests.bench.tables import rows

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_Mode = Literal["append", "overwrite"]
_MODES: tuple[_Mode, ...] = ("append", "overwrite")
_PARTITION = "part"
_PAIRS = [
    Pair(FORMAT, REFERENCE, WRITE_PARQUET),
    Pair(FORMAT, WRITE_PARQUET, DRAINED),
    Pair(FORMAT, DELTALAKE),
    Pair(REFERENCE, WRITE_PARQUET),
]
# The synthetic tables are at version 10, and at 20 either side would write a checkpoint of all files.
_COMMITS_BEFORE_CHECKPOINT = 9

_ONE_ROW = (
    "SELECT CAST(1 AS BIGINT) AS id, 1 AS customer, CAST(1 AS DOUBLE) AS price, 'Amsterdam' AS city, 'x' AS comment, "
    "TIMESTAMP '2023-01-01 00:00:00' AS ts, DATE '2023-01-01' AS day"
)


def writes(spark: SparkSession, settings: PeerSettings, results: Results) -> None:
    """An append makes its table; the overwrite after it finds one that holds the same rows."""
    source = tpch.generated(settings, "lineitem")
    for partition in (None, _PARTITION):
        frame = spark.read.parquet(str(source))
        if partition:
            frame = frame.selectExpr("*", f"CAST(l_suppkey % 100 AS INT) AS {partition}")
        out = settings.scratch / "written"
        shutil.rmtree(out, ignore_errors=True)
        for mode in _MODES:
            what = f"{mode}, {'100 partitions' if partition else 'unpartitioned'}"
            say(f"write, {what}")
            sides = {
                side: _timed(spark, write, out / name, mode)
                for side, (name, write) in _writers(frame, source, out, mode, partition).items()
            }
            took = in_turn(sides, settings.rounds, settings.spare_seconds)
            _same_count(spark, out, frame.count())
            results.add("write", what, took, _PAIRS)
        shutil.rmtree(out)


def _writers(
    frame: DataFrame, source: Path, out: Path, mode: _Mode, partition: str | None
) -> dict[str, tuple[str, Callable[[], None]]]:
    """Each side's folder, and what writes into it."""
    return {
        FORMAT: ("ours", _ours(frame, out / "ours", mode, partition)),
        REFERENCE: ("delta", _spark(frame, "delta", out / "delta", mode, partition)),
        WRITE_PARQUET: ("parquet", _spark(frame, "parquet", out / "parquet", mode, partition)),
        DELTALAKE: ("deltalake", _deltalake(source, out / "deltalake", mode, partition)),
        DRAINED: ("drained", lambda: frame.write.format("floor").mode("append").save("nowhere")),
    }


def _timed(spark: SparkSession, write: Callable[[], None], path: Path, mode: str) -> Callable[[], tuple[float, float]]:
    """The write alone: making room for it is not part of it."""

    def run() -> tuple[float, float]:
        if mode == "append":
            shutil.rmtree(path, ignore_errors=True)
            clear_reference(spark)
        begin = time.perf_counter()
        write()
        return time.perf_counter() - begin, 0.0

    return run


def _ours(frame: DataFrame, path: Path, mode: str, partition: str | None) -> Callable[[], None]:
    def run() -> None:
        writer = frame.write.format("deltapy").mode(mode)
        (writer.option("partitionBy", partition) if partition else writer).save(str(path))

    return run


def _spark(frame: DataFrame, fmt: str, path: Path, mode: str, partition: str | None) -> Callable[[], None]:
    def run() -> None:
        writer = frame.write.format(fmt).mode(mode)
        (writer.partitionBy(partition) if partition else writer).save(str(path))

    return run


def _deltalake(source: Path, path: Path, mode: _Mode, partition: str | None) -> Callable[[], None]:
    """Its own reader and writer, without Spark."""

    def run() -> None:
        import pyarrow as pa
        import pyarrow.compute as pc
        import pyarrow.dataset as ds
        from deltalake import write_deltalake

        data = ds.dataset(str(source))
        columns: dict[str, Any] = {name: ds.field(name) for name in data.schema.names}
        if partition:
            key = ds.field("l_suppkey")
            columns[partition] = pc.subtract(key, pc.multiply(pc.divide(key, 100), 100)).cast(pa.int32())
        reader = data.scanner(columns=columns).to_reader()
        write_deltalake(str(path), reader, mode=mode, partition_by=[partition] if partition else None)

    return run


def _same_count(spark: SparkSession, out: Path, expected: int) -> None:
    """A quick write is worth nothing when rows are missing; the reference counts them all."""
    for name in ("ours", "delta", "deltalake"):
        found = spark.read.format("delta").load(str(out / name)).count()
        if found != expected:
            raise RuntimeError(f"{out / name} holds {found} rows, not {expected}")


def commits(spark: SparkSession, settings: PeerSettings, results: Results) -> None:
    """One row appended to a table of a few files and of very many: each side has its copy, which grows."""
    frame = spark.sql(_ONE_ROW).coalesce(1)
    row = rows(0, 1)
    for size in (10, max(settings.planning_files)):
        original = table_of(settings, size)
        out = settings.scratch / f"commits-{size}"
        shutil.rmtree(out, ignore_errors=True)
        for name in ("ours", "delta", "deltalake"):
            shutil.copytree(original, out / name)
        say(f"commit to {size:,} files")
        sides: dict[str, Callable[[], None]] = {
            FORMAT: _ours(frame, out / "ours", "append", None),
            REFERENCE: _spark(frame, "delta", out / "delta", "append", None),
            DELTALAKE: _append(row, out / "deltalake"),
            WRITE_PARQUET: _spark(frame, "parquet", out / "parquet", "append", None),
        }
        most = _COMMITS_BEFORE_CHECKPOINT - 1
        took = in_turn(sides, min(settings.rounds, most), settings.spare_seconds, most)
        shutil.rmtree(out)
        pairs = [Pair(FORMAT, REFERENCE, WRITE_PARQUET), Pair(FORMAT, DELTALAKE)]
        results.add("commit", f"append one row to a table of {size:,} files", took, pairs)


def _append(row: pa.Table, path: Path) -> Callable[[], None]:
    def run() -> None:
        from deltalake import write_deltalake

        write_deltalake(str(path), row, mode="append")

    return run
