"""Hooks for the conformance runner: ``delta_pyds.read`` and the format on Sail. Run in Sail's environment."""

from __future__ import annotations

import atexit
import json
import sys
import tempfile
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import delta_pyds
from delta_pyds.spark.registration import register
from tests.sail.server import sail_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Rows = pa.Table | tuple[str, Any, list[Any]]


@cache
def _session() -> SparkSession:
    stack = ExitStack()
    directory = stack.enter_context(tempfile.TemporaryDirectory())
    spark = stack.enter_context(sail_session(Path(directory)))
    atexit.register(stack.close)
    register(spark)
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    return spark


def read(path: str, version: int | None) -> Rows:
    return _rows(delta_pyds.read(_session(), path, version=version))


def read_format(path: str, version: int | None) -> Rows:
    reader = _session().read.format("deltapy").option("timeZone", "UTC")
    return _rows((reader if version is None else reader.option("versionAsOf", version)).load(path))


def _rows(frame: DataFrame) -> Rows:
    try:
        return frame.toArrow()
    except pa.ArrowInvalid:
        # PySpark itself cannot make a table of null variants in a list
        runner = sys.modules["__main__"]
        return "rows", runner.tree_from_delta(json.loads(frame.schema.json())), frame.collect()
