"""Facts about the Spark of this process: the parts that it has and lacks. The other modules ask here.

Each answer comes from a look at PySpark, if it shows the difference. A version decides only about behavior that PySpark
does not show, and only after a test found it. A process of the source runs the PySpark of the driver, or of the server
of Spark Connect. A user's process may run another PySpark than the server.
"""

from __future__ import annotations

import importlib.util
import re
from functools import cache
from typing import Any

import pyspark
from pyspark.sql import DataFrameReader, SparkSession, datasource
from pyspark.sql.catalog import Catalog

# Versions of Spark for which tests/spark/test_pushdown.py found the state with
# the scan. That test fails when this set and Spark disagree, in either direction.
# On 2026-11-28 PyPI had no preview of Spark 5. How PySpark will show this, and
# ``pushLimit``, is unknown, so nothing looks for them yet.
VERSIONS_WITH_PUSHDOWN_PER_SCAN: frozenset[str] = frozenset()
# Methods of ``spark.catalog`` that ``install`` replaces, and some versions lack.
CATALOG_METHODS = (
    "analyzeTable", "dropTable", "dropView", "getCreateTableString", "getTableProperties", "listPartitions",
    "listViews", "truncateTable",
)  # fmt: skip
# From this version on (tested), names of functions are looked up along a path, and Spark's own come first by default.
# A setting can change it. Before it, a function of the session replaces the built-in one.
_BUILT_IN_FIRST = (4, 2)


def has_filters() -> bool:
    """Whether Spark can push filters to a Python source; Spark 4.0 cannot."""
    return hasattr(datasource, "Filter")


def keeps_pushed_filters_with_scan() -> bool:
    """Whether two uses of a DataFrame have their own pushed filters."""
    return pyspark.__version__ in VERSIONS_WITH_PUSHDOWN_PER_SCAN


@cache
def has_admission_control() -> bool:
    """Whether Spark tells a Python stream its start, its limit and its trigger; Spark 4.0 and 4.1 do not."""
    return importlib.util.find_spec("pyspark.sql.streaming.datasource") is not None


@cache
def has_pipelines() -> bool:
    """Whether Spark has declarative pipelines; Spark 4.0 does not."""
    return importlib.util.find_spec("pyspark.pipelines") is not None


def has_changes() -> bool:
    """Whether ``spark.read`` has ``changes``, and SQL the clause CHANGES; Spark 4.0 and 4.1 have neither."""
    return hasattr(DataFrameReader, "changes")


def arrow_stream_writer() -> type[Any]:
    """The base class of a sink that takes Arrow batches.

    Spark 4.0 has no name for it. It gives batches to each writer that is a ``DataSourceArrowWriter``, of a stream too.
    """
    found: type[Any] | None = getattr(datasource, "DataSourceStreamArrowWriter", None)
    bases = (datasource.DataSourceStreamWriter, datasource.DataSourceArrowWriter)
    return found or type("DataSourceStreamArrowWriter", bases, {})


def lacks() -> list[str]:
    """Describe what the newest Spark has and this one lacks, as far as it matters here."""
    by_path = _is_from(pyspark.__version__, _BUILT_IN_FIRST)
    methods = [name for name in CATALOG_METHODS if not hasattr(Catalog, name)]
    found = [
        None if has_filters() else "filter pushdown",
        None if has_admission_control() else "limits and triggers of Python streams",
        None if by_path else "its own functions beside a session's of the same name",
        None if has_pipelines() else "declarative pipelines",
        None if has_changes() else "reads of changes (`spark.read.changes`, CHANGES FROM)",
        f"in `spark.catalog`: {', '.join(methods)}" if methods else None,
    ]
    return [text for text in found if text is not None]


def calls_built_in_functions_first(spark: SparkSession) -> bool:
    """Whether the session's server prefers its built-in functions to a user's of the same name, by default."""
    return _is_from(spark.version, _BUILT_IN_FIRST)


def _is_from(version: str, first: tuple[int, int]) -> bool:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2]) >= first
