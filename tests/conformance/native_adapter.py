"""A hook for the conformance runner: ``delta_pyds.read`` with engine="auto", and how often that was the native one."""

from __future__ import annotations

import atexit
import json
import os
import re
import sys
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import delta_pyds

if TYPE_CHECKING:
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


def read(path: str, version: int | None) -> pa.Table | tuple[str, Any, list[Any]]:
    """All rows of a version, by the engine that ``auto`` takes: as a table, or in the runner's form for rows."""
    frame = delta_pyds.read(_session(), path, version=version)
    report = delta_pyds.explain(frame)
    try:
        rows: pa.Table | tuple[str, Any, list[Any]] = frame.toArrow()
    except pa.ArrowInvalid:
        # PySpark itself cannot make a table of null variants in a list
        runner = sys.modules["__main__"]
        rows = "rows", runner.tree_from_delta(json.loads(frame.schema.json())), frame.collect()
    if version is None:
        _engines[path] = report.engine
        if report.engine != "native":
            _reasons[re.sub(r"'.*?'", "'...'", report.reasons[0])] += 1
    return rows


def _report() -> None:
    native = sum(engine == "native" for engine in _engines.values())
    print(f"read natively: {native} of {len(_engines)} tables that could be read")
    for reason, count in _reasons.most_common():
        print(f"  not: {count:4} {reason}")
