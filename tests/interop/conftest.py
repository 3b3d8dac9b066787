"""One Spark session with both engines: ``format("delta")`` is the reference, ``format("deltapy")`` is ours.

Collected only with the plugin ``tests.interop.matrix``, which `make interop` loads in an environment of its own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.interop.reference_session import for_few_rows, reference_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.interop.engines import Engines


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    """`make test` runs on a Spark that the reference does not support."""
    return None if config.pluginmanager.has_plugin("tests.interop.matrix") else True


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A local session of two threads, in UTC, reachable from this machine alone."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = reference_session(2, tmp_path_factory.mktemp("spark"), memory="3g").appName("delta_pyds interop")
    session = (
        for_few_rows(builder, "-Xms1500m")
        .config("spark.databricks.delta.retentionDurationCheck.enabled", "false")
        .config("spark.delta.logStore.file.impl", "io.delta.storage.LocalLogStore")
        .config("spark.python.unix.domain.socket.enabled", "true")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def engines(spark: SparkSession) -> Engines:
    from tests.interop.engines import Engines

    return Engines(spark)
