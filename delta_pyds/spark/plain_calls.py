"""Calls of PySpark's own methods where ``delta_pyds.install`` has replaced them.

Invariant: within ``plain_calls`` the methods that ``install`` replaced do what Spark's do, in this thread alone.
``delta_pyds.read``, ``write`` and ``sql`` call Spark within it: else they would call themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from pyspark.sql import DataFrame, SparkSession

_plain: ContextVar[bool] = ContextVar("delta_pyds_plain_calls", default=False)


def are_plain() -> bool:
    """Whether Spark's own methods are meant now, in this thread."""
    return _plain.get()


@contextmanager
def plain_calls() -> Iterator[None]:
    token = _plain.set(True)
    try:
        yield
    finally:
        _plain.reset(token)


def plain_sql(spark: SparkSession, statement: str) -> DataFrame:
    """Run a statement by Spark's own ``sql``."""
    with plain_calls():
        return spark.sql(statement)
