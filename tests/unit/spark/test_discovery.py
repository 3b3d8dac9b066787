"""Spark looks for top-level modules named ``pyspark_*`` that have a ``DefaultSource``."""

from __future__ import annotations

import importlib
import pkgutil


def test_the_module_that_spark_looks_for_is_installed_at_the_top_level() -> None:
    found = [m.name for m in pkgutil.iter_modules() if m.name.startswith("pyspark_")]
    assert found == ["pyspark_deltapy"]
    source = importlib.import_module("pyspark_deltapy").DefaultSource
    assert source.name() == "deltapy"
    assert source.__module__ == "delta_pyds.spark.datasource"
