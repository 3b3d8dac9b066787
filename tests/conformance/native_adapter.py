"""A hook for the conformance runner: ``delta_pyds.read`` with engine="auto", and how often that was the native one."""

from __future__ import annotations

import atexit
import os
import sys
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING

import delta_pyds

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

_engines: dict[str, str] = {}
_reasons: Counter[str] = Counter()


@cache
def _session() -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[2]")
        .appName("delta_pyds conformance")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    atexit.register(spark.stop)
    atexit.register(_report)
    return spark


def read(path: str, version: int | None) -> pa.Table:
    """All rows of a version, by the engine that ``auto`` takes."""
    frame = delta_pyds.read(_session(), path, version=version)
    report = delta_pyds.explain(frame)
    table = frame.toArrow()
    if version is None:
        _engines[path] = report.engine
        if report.engine != "native":
            _reasons[report.reasons[0].split("'")[0]] += 1
    return table


def _report() -> None:
    native = sum(engine == "native" for engine in _engines.values())
    print(f"read natively: {native} of {len(_engines)} tables that could be read")
    for reason, count in _reasons.most_common():
        print(f"  not: {count:4} {reason}")
