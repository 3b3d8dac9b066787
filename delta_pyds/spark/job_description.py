"""The descriptions of a command's jobs in Spark's UI: each step has its name while it runs.

Invariant: a description of the user's is restored after the step, and precedes ours until then. Naming a step
never makes it fail.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession

from delta_pyds.redaction import safe_logger, shown
from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.settings import JOB_DESCRIPTION

logger = safe_logger(__name__)

_LONGEST = 300


@contextmanager
def described(spark: SparkSession, text: str) -> Iterator[None]:
    """Give the jobs of the block this name: by their description, on Spark Connect by a tag.

    >>> with described(spark, "optimize of /data/events"):
    ...     frame.toArrow()
    """
    undo = _describe(spark, shown(text, limit=_LONGEST))
    try:
        yield
    finally:
        try:
            undo()
        except Exception as error:
            # the session is gone: the step's own error must be raised
            logger.debug("Jobs of Spark are still called %r: %s: %s", text, type(error).__name__, error)


def _describe(spark: Any, text: str) -> Any:
    try:
        return _tagged(spark, text) if is_remote(spark) else _named(spark.sparkContext, text)
    except Exception as error:
        logger.debug("Jobs of Spark are not called %r: %s: %s", text, type(error).__name__, error)
        return lambda: None


def _named(context: Any, text: str) -> Any:
    before = context.getLocalProperty(JOB_DESCRIPTION)
    ours = f"delta_pyds: {text}"
    context.setLocalProperty(JOB_DESCRIPTION, ours if before is None else f"{before}: {ours}")
    return lambda: context.setLocalProperty(JOB_DESCRIPTION, before)


def _tagged(spark: Any, text: str) -> Any:
    tag = f"delta_pyds: {text}".replace(",", ";")
    if tag in spark.getTags():
        return lambda: None
    spark.addTag(tag)
    return lambda: spark.removeTag(tag)
