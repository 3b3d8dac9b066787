"""Hooks for the conformance runner: ``delta_pyds.read`` with engine="auto", and how often that was the native one.

Through Spark Connect, the server gets an index of files for every table, also where a listing of few files is cheaper.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import sys
import tempfile
from collections import Counter
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from unittest.mock import patch

import pyarrow as pa

import delta_pyds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_Rows: TypeAlias = pa.Table | tuple[str, Any, list[Any]]

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


@cache
def _connect_session() -> SparkSession:
    from pyspark.sql import SparkSession

    from delta_pyds.spark.native import relations, server_index
    from tests.support.connect import connect_server

    until_the_end = ExitStack()
    atexit.register(until_the_end.close)
    directory = until_the_end.enter_context(tempfile.TemporaryDirectory())
    quiet = "--conf spark.log.level=OFF --conf spark.ui.showConsoleProgress=false"
    server = until_the_end.enter_context(connect_server(Path(directory), submit=quiet))
    spark: SparkSession = SparkSession.builder.remote(server).getOrCreate()
    until_the_end.callback(spark.stop)
    until_the_end.enter_context(patch.object(relations, "FEW_LISTED_FILES", 0))
    written = patch.object(relations, "directory_on_server", wraps=server_index.directory_on_server)
    indexes = until_the_end.enter_context(written)
    until_the_end.callback(lambda: print(f"indexes of files in the server: {indexes.call_count}"))
    until_the_end.callback(_report)
    return spark


def read(path: str, version: int | None) -> _Rows:
    """All rows of a version, by the engine that ``auto`` takes: as a table, or in the runner's form for rows."""
    return _read(_session(), path, path, version)


def read_on_connect(path: str, version: int | None) -> _Rows:
    """As ``read``, through Spark Connect."""
    # the scheme says that the server has the same files
    return _read(_connect_session(), path, f"file://{path}", version)


def _read(spark: SparkSession, table: str, path: str, version: int | None) -> _Rows:
    frame = delta_pyds.read(spark, path, version=version)
    report = delta_pyds.explain(frame)
    try:
        rows: _Rows = frame.toArrow()
    except pa.ArrowInvalid:
        # PySpark itself cannot make a table of null variants in a list
        runner = sys.modules["__main__"]
        rows = "rows", runner.tree_from_delta(json.loads(frame.schema.json())), frame.collect()
    if version is None:
        _engines[table] = report.engine
        if report.engine != "native":
            _reasons[re.sub(r"'.*?'", "'...'", report.reasons[0])] += 1
    return rows


def _report() -> None:
    native = sum(engine == "native" for engine in _engines.values())
    print(f"read natively: {native} of {len(_engines)} tables that could be read")
    for reason, count in _reasons.most_common():
        print(f"  not: {count:4} {reason}")
