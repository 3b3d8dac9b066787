"""What is asked of a damaged table through Spark: both engines, and a stream.

The rows that come are to be those of the core, and an error is to be a DeltaError. What Spark's own Parquet reader
says of a damaged data file is Spark's.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from tests.fuzz.operations import Outcome, short
from tests.fuzz.tables import BaseTable
from tests.support.footers import forget_footers
from tests.support.java_options import QUICK_COMPILER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FRAMES = "Traceback (most recent call last)"
_OURS = re.compile(r"delta_pyds\.errors\.\w+: \[")
_ENDED = re.compile(r"Python worker exited unexpectedly|Crash|SIGABRT|SIGSEGV")


def start_spark(scratch: Path) -> SparkSession:
    """A session of one thread, whose JVM and Python processes are of this process's limits."""
    # what its processes say of damaged tables is expected
    with open(scratch / "stderr", "wb") as target:
        os.dup2(target.fileno(), 2)
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[1]")
        .appName("delta_pyds fuzz")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "600m")
        .config("spark.driver.extraJavaOptions", f"{QUICK_COMPILER} -XX:+UseSerialGC")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .config("spark.local.dir", str(scratch / "local"))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    return session


def spark_operations(
    table: BaseTable, random: Random, spark: SparkSession, scratch: Path
) -> dict[str, tuple[str, Callable[[str], Counter[str]]]]:
    """Two operations, each with the name of the core's that gives the same rows; a stream takes long, and is rare."""
    predicate = random.choice(table.predicates)
    found: dict[str, tuple[str, Callable[[str], Counter[str]]]] = {
        "arrow": ("read", lambda root: _rows(spark.read.format("deltapy").load(root))),
        "native": ("read", lambda root: _rows(_native(spark, root))),
        f"arrow where {predicate}": (
            f"where {predicate}",
            lambda root: _rows(spark.read.format("deltapy").load(root).where(predicate)),
        ),
        f"native where {predicate}": (f"where {predicate}", lambda root: _rows(_native(spark, root).where(predicate))),
    }
    chosen = {name: found[name] for name in random.sample(sorted(found), 2)}
    if random.random() < 0.1:
        chosen["spark-stream"] = ("stream", lambda root: _streamed(spark, root, scratch))
    return chosen


def spark_outcome(operation: Callable[[str], Counter[str]], root: str) -> Outcome:
    """Run one operation; each exception is an outcome."""
    from delta_pyds.errors import DeltaError

    try:
        return Outcome("rows", operation(root))
    except DeltaError as error:
        return Outcome("error", text=str(error))
    except Exception as error:
        return _of_spark(str(error))


def _of_spark(text: str) -> Outcome:
    if _OURS.search(text):
        return Outcome("error", text=text)
    if _FRAMES in text or _ENDED.search(text):
        return Outcome("exception", text=short(text))
    return Outcome("error", text=text)


def _rows(frame: DataFrame) -> Counter[str]:
    return Counter(map(repr, frame.toArrow().to_pylist()))


def _native(spark: SparkSession, root: str) -> DataFrame:
    from delta_pyds.spark.session import read

    # files do not change in a table; here they do
    forget_footers()
    return read(spark, root, engine="native")


def _streamed(spark: SparkSession, root: str, scratch: Path) -> Counter[str]:
    name = f"rows_{len(list(scratch.glob('checkpoint_*')))}"
    checkpoint = scratch / f"checkpoint_{name}"
    checkpoint.mkdir()
    query = (
        spark.readStream.format("deltapy")
        .load(root)
        .writeStream.format("memory")
        .queryName(name)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    try:
        query.awaitTermination()
        return _rows(spark.table(name))
    finally:
        query.stop()
        spark.catalog.dropTempView(name)
