"""Each test runs on two kinds of cluster, whose executors are processes of their own.

On the standalone one speculation is on: a task that takes longer than others runs a second time beside the first.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.support.clusters import LOCAL_CLUSTER, environment, session_on, standalone

_SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.5",
    "spark.speculation.minTaskRuntime": "1s",
}


@pytest.fixture(scope="session", params=["local-cluster", "standalone"])
def spark(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session of a driver and two executors of one core."""
    scratch = tmp_path_factory.mktemp(request.param)
    # the JVM of the driver takes it from here, once for all sessions of this process
    os.environ.update({k: v for k, v in environment(scratch).items() if k != "SPARK_HOME" or k not in os.environ})
    if request.param == "local-cluster":
        session = session_on(LOCAL_CLUSTER, scratch)
        yield session
        session.stop()
        return
    with standalone(scratch, dict(os.environ)) as master:
        session = session_on(master, scratch, _SPECULATION)
        yield session
        session.stop()
