"""One Spark session for all tests of a process that need one; `make test` runs two processes."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.java_options import QUICK_COMPILER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A local session of two threads, in UTC, reachable from this machine alone."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    scratch: Path = tmp_path_factory.mktemp("spark")
    # processes of sources see the environment of the JVM's start; what the file says, they read when they ask
    os.environ["DELTA_PYDS_CATALOGS"] = str(scratch / "catalogs.json")
    session = (
        SparkSession.builder.master("local[2]")
        .appName("delta_pyds tests")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.driver.extraJavaOptions", f"{QUICK_COMPILER} -XX:+UseSerialGC")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .config("spark.local.dir", str(scratch / "local"))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(params=["arrow", "native"])
def load(request: pytest.FixtureRequest) -> Callable[..., DataFrame]:
    """Loads a table with options of the format, through the Python source or through Spark's own Parquet reader.

    ``load(spark, path, **options)``. A test that uses it runs on both engines, and fails where the native one is not
    eligible.
    """

    def by_source(spark: SparkSession, path: object, **options: object) -> DataFrame:
        return spark.read.format("deltapy").options(**options).load(str(path))

    def natively(spark: SparkSession, path: object, **options: object) -> DataFrame:
        from delta_pyds.spark.native.read import describe, read_natively
        from delta_pyds.spark.options.read import parse_read_options

        given = {"timeZone": spark.conf.get("spark.sql.session.timeZone"), **options}
        texts = {"path": str(path), **{k: str(v) for k, v in given.items()}}
        attempt = read_natively(spark, describe(spark), parse_read_options(texts), insist=True)
        assert attempt.frame is not None
        return attempt.frame

    return natively if request.param == "native" else by_source
