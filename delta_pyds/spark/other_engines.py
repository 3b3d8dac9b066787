"""Engines other than Apache Spark that speak the protocol of Spark Connect: Sail.

Such a server calls itself a version of Spark. It runs Python sources and ``mapInArrow``, with these differences:

- A task has no ``TaskContext``: no number, and no settings of the session. Our tasks then draw a number.
- A source gets Arrow schemas. The mode of a write is append or overwrite: append may also mean "error" or "ignore".
- Its SQL settings have no defaults, and its Parquet reader has no column ``_metadata``.
"""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from pyspark import TaskContext
from pyspark.errors import AnalysisException

from delta_pyds.errors import UnsupportedOperationError
from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.plain_calls import plain_calls

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from delta_pyds.tasks.write_state import TaskOutput

_UNNAMED = "an engine that is not Apache Spark"
# the catalog of every session of Sail, unless its settings say otherwise
_CATALOG = "sail"
# for each session of Spark Connect: the engine; an empty text for Spark
_engines: WeakKeyDictionary[Any, str] = WeakKeyDictionary()


def other_engine(spark: SparkSession) -> str | None:
    """The name and version of the session's engine, for a sentence; None for Apache Spark.

    It takes one query, once for a session of Spark Connect.
    Raises: Spark's exception if the server does not answer.
    """
    if not is_remote(spark):
        return None
    if spark not in _engines:
        _engines[spark] = _asked(spark)
    return _engines[spark] or None


def engine_here() -> str:
    """The name of the engine other than Spark that called this process's code, for a sentence."""
    if "pysail" not in sys.modules:
        return _UNNAMED
    return f"Sail {importlib.metadata.version('pysail')}"


def runs_in_spark() -> bool:
    """Whether this code runs in a task of Apache Spark: tasks of other engines have no context."""
    return TaskContext.get() is not None


def require_streams(spark: SparkSession) -> None:
    """Raises: UnsupportedOperationError on an engine that runs no stream over a Python source."""
    if (engine := other_engine(spark)) is not None:
        raise UnsupportedOperationError(
            f"{engine} runs no stream over a Delta table: it reads the table once, as a batch, and writes no stream to "
            "a Python source. Nothing was started. Read the table with spark.read, or run the stream on Apache Spark."
        )


def require_distinct_identities(engine: str, outputs: Sequence[TaskOutput], table: str) -> None:
    """Raises: UnsupportedOperationError if several tasks without a number assigned identity values."""
    if sum(bool(output.identity_marks) for output in outputs) > 1:
        raise UnsupportedOperationError(
            f"{engine} does not number its tasks, so several tasks would assign the same identity values of the table "
            f"{table}. Nothing was committed. Give the rows in one task: df.coalesce(1).",
            table=table,
        )


def schema_of(schema: pa.Schema) -> StructType:
    """The columns that another engine describes in Arrow's types, in Spark's.

    Raises: PySparkTypeError for a type that Spark lacks.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def _asked(spark: SparkSession) -> str:
    try:
        with plain_calls():
            ((version, catalog),) = spark.sql("SELECT version(), current_catalog()").collect()
    except AnalysisException:  # Spark has both functions
        return _UNNAMED
    # Spark adds a revision to its version
    if str(version).startswith(spark.version):
        return ""
    return f"Sail {version}" if catalog == _CATALOG else f"{_UNNAMED} (version {version})"
