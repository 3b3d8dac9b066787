"""Spark looks for top-level modules named ``pyspark_*`` that have a ``DefaultSource``."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys


def test_the_module_that_spark_looks_for_is_installed_at_the_top_level() -> None:
    found = [m.name for m in pkgutil.iter_modules() if m.name.startswith("pyspark_")]
    assert found == ["pyspark_deltapy"]
    source = importlib.import_module("pyspark_deltapy").DefaultSource
    assert source.name() == "deltapy"
    assert source.__module__ == "delta_pyds.spark.source.datasource"


def test_what_executors_unpickle_loads_no_planning() -> None:
    code = "import sys, delta_pyds.spark.source.datasource, delta_pyds.spark.source.reader; print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for name in (
        "delta_pyds.table",
        "delta_pyds.log",
        "delta_pyds.expr",
        "delta_pyds.spark.planning.driver",
        "delta_pyds.spark.options.read",
    ):
        assert f"'{name}'" not in done.stdout
