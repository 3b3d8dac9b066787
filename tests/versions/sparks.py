"""The Sparks that the package promises besides the newest one, and the environment of each below ``.sparks``.

An environment has one PySpark with Spark Connect, this checkout and what the core of tests needs. It stays while this
file and ``pyproject.toml`` are as they were.
"""

from __future__ import annotations

from pathlib import Path

from tests.versions.environments import environment

# the newest patch of each; the newest Spark of all is in .venv, where all tests run
SPARKS = {"4.0": "4.0.5", "4.1": "4.1.4", "4.2": "4.2.1"}
_PACKAGES = ("pandas<3", "chispa>=0.10", "pytest>=8.0", "pytest-xdist>=3.6", "hypothesis>=6.100", "deltalake>=1.1")


def spark_environment(spark: str) -> Path:
    """The Python of the environment for a Spark such as ``4.1``."""
    return environment(spark, f"pyspark[connect]=={SPARKS[spark]}", *_PACKAGES)
