"""One Spark session with both engines: ``format("delta")`` is the reference, ``format("deltapy")`` is ours.

Collected only with the plugin ``tests.interop.matrix``, which `make interop` loads in an environment of its own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.interop.setup_env import JARS
from tests.support.java_options import QUICK_COMPILER

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.interop.engines import Engines

_JAVA_OPTIONS = f"-Duser.timezone=UTC -Xms1500m {QUICK_COMPILER} -XX:+UseSerialGC"


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    """`make test` runs on a Spark that the reference does not support."""
    return None if config.pluginmanager.has_plugin("tests.interop.matrix") else True


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A local session of two threads, in UTC, reachable from this machine alone."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    from pyspark.sql import SparkSession

    scratch: Path = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.master("local[2]")
        .appName("delta_pyds interop")
        .config("spark.driver.extraClassPath", str(JARS / "*"))
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        # a checksum of ours that is wrong must end the reference's command, not only be logged
        .config("spark.databricks.delta.checksum.mismatch.fatal", "true")
        .config("spark.databricks.delta.retentionDurationCheck.enabled", "false")
        .config("spark.delta.logStore.file.impl", "io.delta.storage.LocalLogStore")
        .config("spark.databricks.delta.snapshotPartitions", "1")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "3g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.extraJavaOptions", _JAVA_OPTIONS)
        # hundreds of commands on a few rows each: what compiles them costs more than what runs them
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.python.unix.domain.socket.enabled", "true")
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .config("spark.local.dir", str(scratch / "local"))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def engines(spark: SparkSession) -> Engines:
    from tests.interop.engines import Engines

    return Engines(spark)
