"""One Spark session with both engines and the floor, and the same settings for all of them."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.bench.peers.sail import running
from tests.bench.peers.settings import CHECKOUT, WORKERS
from tests.bench.scans import recommended
from tests.interop.reference_session import WITHOUT_REFERENCE, reference_session
from tests.interop.setup_env import JARS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Of a machine with few cores; the reference computes the state of a log in as many tasks as its queries have.
_PARTITIONS = "4"


def start(data: Path, settings: Mapping[str, str] | None = None) -> SparkSession:
    """A session of two threads, reachable from this machine alone. ``settings``: more of them."""
    _prepare_environment()
    builder = reference_session(WORKERS, data / "spark", memory="3g").appName("delta_pyds and its peers")
    spark = _configured(builder).config(map=dict(settings or {})).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    from delta_pyds.spark.registration import register
    from tests.bench.peers.floor_source import FloorSource

    register(spark)
    spark.dataSource.register(FloorSource)
    return spark


@contextmanager
def connected(data: Path, settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """A session of Spark Connect. Its server is a session as ``start`` makes it, in a process of its own."""
    from pyspark.sql import SparkSession

    from delta_pyds.spark.registration import register

    command = [
        sys.executable,
        "-m",
        "tests.bench.peers.connect_server_process",
        json.dumps([str(data), dict(settings)]),
    ]
    with running(command, os.environ) as server:
        spark: SparkSession = SparkSession.builder.remote(server.version).getOrCreate()
        register(spark)
        yield spark
        spark.stop()


def start_without_reference(data: Path) -> SparkSession:
    """A session with the same settings, and without the reference."""
    from pyspark.sql import SparkSession

    _prepare_environment()
    builder = (
        SparkSession.builder.master(f"local[{WORKERS}]")
        .config("spark.driver.memory", "3g")
        .config("spark.sql.warehouse.dir", str(data / "warehouse-of-names"))
        .config("spark.local.dir", str(data / "local-of-names"))
        .config(map=WITHOUT_REFERENCE)
    )
    spark = _configured(builder).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def _configured(builder: SparkSession.Builder) -> SparkSession.Builder:
    return (
        builder.config("spark.databricks.delta.snapshotPartitions", _PARTITIONS)
        .config("spark.sql.shuffle.partitions", _PARTITIONS)
        .config(map=recommended())
    )


def _prepare_environment() -> None:
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    # the workers import the floor by its name
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(CHECKOUT), os.environ.get("PYTHONPATH")]))


def versions() -> dict[str, str]:
    """Of everything that is compared, and the machine that it ran on."""
    jar = next((f.name for f in JARS.glob("delta-spark_*.jar")), "")
    packages = ("delta-pyds", "pyspark", "deltalake", "pyarrow", "tpchgen-cli", "duckdb-extension-tpcds")
    return {
        **{name: importlib.metadata.version(name) for name in packages},
        "delta-spark": re.sub(r"delta-spark_(.*)\.jar", r"\1", jar),
        "Python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, local[{WORKERS}]",
    }


def java_version(spark: SparkSession) -> str:
    return str(_jvm(spark).java.lang.System.getProperty("java.version"))


def plan(df: DataFrame) -> None:
    """Everything before the first task of a query: which files, in which partitions."""
    frame: Any = df
    frame._jdf.queryExecution().toRdd().getNumPartitions()


def drain(df: DataFrame) -> None:
    """Read every row to nowhere."""
    df.write.format("noop").mode("overwrite").save()


def forget(spark: SparkSession, table: Path) -> None:
    """Both engines open the table again when they are next asked.

    The reference drops what it kept; ours keeps what it knows of the log's files only while they have the same times.
    """
    from tests.support.footers import forget_footers

    clear_reference(spark)
    forget_footers()
    for file in (table / "_delta_log").glob("*.*"):
        os.utime(file)


def clear_reference(spark: SparkSession) -> None:
    """It keeps what it knows of a table by its path, also of one that was removed."""
    _jvm(spark).org.apache.spark.sql.delta.DeltaLog.clearCache()


def _jvm(spark: SparkSession) -> Any:
    return spark._jvm
