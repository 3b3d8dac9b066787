"""Writing: (g) rows into files through Spark, (h) commits per second, (i) a commit to a table of very many files."""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.measure import Line, Side, in_turn, ratio_line, say
from tests.bench.settings import Settings
from tests.bench.tables import data_table, planning_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WRITERS = 8


def rows_to_files(spark: SparkSession, settings: Settings) -> list[Line]:
    """(g): the same rows, unpartitioned and into 100 partitions: ours, Spark's own Parquet writer, deltalake."""
    source = data_table(settings.data, settings.scan_rows, settings.scan_files)
    files = sorted(map(str, source.glob("*.parquet")))
    lines: list[Line] = []
    for partitions in (None, "part"):
        say(f"(g) {settings.scan_rows:,} rows, {'into 100 partitions' if partitions else 'unpartitioned'}")
        frame = spark.read.parquet(*files)
        if partitions:
            frame = frame.selectExpr("*", "CAST(customer % 100 AS INT) AS part")
        out = settings.data / "written"
        sides = {
            "deltapy": _ours(frame, out / "deltapy", partitions),
            "parquet": _parquet(frame, out / "parquet", partitions),
            "drained": _drained(frame),
            "deltalake": _deltalake(settings, source, out / "deltalake", partitions),
        }
        took = in_turn(sides, settings.rounds)
        _same_count(spark, out / "deltapy", settings.scan_rows)
        shutil.rmtree(out)
        what = f"write {settings.scan_rows:,} rows x 7" + (", 100 partitions" if partitions else "")
        lines.append(ratio_line("g", f"{what}, vs df.write.parquet", took["deltapy"], took["parquet"], 1.5))
        lines.append(ratio_line("g", "  vs deltalake (no Spark: its own reader and writer)", took["deltapy"],
                                took["deltalake"]))  # fmt: skip
        lines.append(ratio_line("g", "  vs rows sent to Python and dropped (floor)", took["deltapy"], took["drained"]))
    return lines


def _ours(frame: DataFrame, path: Path, partitions: str | None) -> Callable[[], None]:
    def run() -> None:
        shutil.rmtree(path, ignore_errors=True)
        writer = frame.write.format("deltapy").mode("append")
        (writer.option("partitionBy", partitions) if partitions else writer).save(str(path))

    return run


def _parquet(frame: DataFrame, path: Path, partitions: str | None) -> Callable[[], None]:
    def run() -> None:
        writer = frame.write.mode("overwrite")
        (writer.partitionBy(partitions) if partitions else writer).parquet(str(path))

    return run


def _drained(frame: DataFrame) -> Callable[[], None]:
    return lambda: frame.write.format("minimal").mode("append").save("nowhere")


def _deltalake(
    settings: Settings, source: Path, path: Path, partitions: str | None
) -> Callable[[], tuple[float, float]]:
    command = [sys.executable, "-m", "tests.bench.deltalake_writer", str(source), str(path), partitions or ""]

    def run() -> tuple[float, float]:
        shutil.rmtree(path, ignore_errors=True)
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=settings.checkout)
        result = json.loads(done.stdout.splitlines()[-1])
        return result["seconds"], result["peak_mb"]

    return run


def _same_count(spark: SparkSession, path: Path, rows: int) -> None:
    found = spark.read.format("deltapy").option("columns", "id").load(str(path)).count()
    if found != rows:
        raise RuntimeError(f"{path} holds {found} rows, not {rows}")


def commits_per_second(settings: Settings) -> list[Line]:
    """(h): one writer, and eight that contend, each commit a file of one row; against deltalake."""
    lines = []
    for writers in (1, WRITERS):
        say(f"(h) {writers} writers")
        sides = {side: _committers(settings, side, writers) for side in ("deltapy", "deltalake")}
        took = in_turn(sides, settings.rounds)
        total = settings.write_commits * writers
        rates = {side: total / took[side].median for side in took}
        what = f"{writers} writer{'s' if writers > 1 else ''}, {settings.write_commits} commits each, per second"
        compared = f"{rates['deltalake'] / rates['deltapy']:.2f}"
        lines.append(Line("h", what, f"{rates['deltapy']:.0f}/s", f"{rates['deltalake']:.0f}/s", compared))
    return lines


def _committers(settings: Settings, side: str, writers: int) -> Callable[[], tuple[float, float]]:
    def run() -> tuple[float, float]:
        path = settings.data / "commits"
        shutil.rmtree(path, ignore_errors=True)
        command = [sys.executable, "-m", "tests.bench.commit_process", side, str(path), str(settings.write_commits)]
        subprocess.run([*command[:-1], "0"], check=True, cwd=settings.checkout)
        started = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=settings.checkout, text=True)
            for _ in range(writers)
        ]
        for process in started:
            assert process.stdout is not None
            process.stdout.readline()  # it has imported all that it needs
        outputs = [process.communicate("go\n")[0] for process in started]
        results = [json.loads(text.splitlines()[-1]) for text in outputs]
        shutil.rmtree(path)
        return max(r["end"] for r in results) - min(r["begin"] for r in results), 0.0

    return run


def commit_to_many_files(settings: Settings) -> list[Line]:
    """(i): one append to a table of the largest size, against one to a table of 10 files; the cost must not grow."""
    lines = []
    sizes = (10, *settings.planning_files)
    took: dict[int, Side] = {}
    for size in sizes:
        original = planning_table(settings.data, size, "json")
        say(f"(i) {size:,} files")
        took[size] = in_turn({"deltapy": _one_commit(settings, original)}, settings.rounds)["deltapy"]
    for size in sizes[1:]:
        lines.append(ratio_line("i", f"append to a table of {size:,} files, vs of 10", took[size], took[10]))
    return lines


def _one_commit(settings: Settings, original: Path) -> Callable[[], tuple[float, float]]:
    copy = settings.data / "one-commit"
    command = [sys.executable, "-m", "tests.bench.commit_process", "deltapy", str(copy), "5"]

    def run() -> tuple[float, float]:
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(original, copy)
        process = subprocess.run(
            command, input="go\n", check=True, stdout=subprocess.PIPE, cwd=settings.checkout, text=True
        )
        result = json.loads(process.stdout.splitlines()[-1])
        shutil.rmtree(copy)
        return statistics.median(result["each"]), 0.0

    return run
