"""The names of our format in a session: ``deltapy``, and on request ``delta``, if the reference is absent.

Invariant: if the reference's JAR is in a session, ``delta`` is the reference's.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from delta_pyds.spark.reference import DELTA, has_reference
from delta_pyds.spark.settings import SPARK_CATALOG

DELTAPY = "deltapy"
_CATALOG_OF_REFERENCE = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
# Spark's own catalog
_BUILT_IN = "builtin"

_delta_wanted = False
_looked_at: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()
_without_catalog: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()


def want_delta(wanted: bool) -> None:
    """Set whether ``delta`` is ours, in every session without the reference."""
    global _delta_wanted
    _delta_wanted = wanted


def is_ours(spark: SparkSession, name: str) -> bool:
    """Whether the format of this name is ours in this session."""
    lowered = name.lower()
    return lowered == DELTAPY or (lowered == DELTA and delta_is_ours(spark))


def delta_is_ours(spark: SparkSession) -> bool:
    prepare(spark)
    return _delta_wanted and not has_reference(spark)


def prepare(spark: SparkSession, *, again: bool = False) -> None:
    """Set Spark's own catalog if the session's settings name the reference's: programs for the reference set that.

    Without the JAR, Spark could not find any name. Each session is checked once, unless ``again`` is true.
    """
    if not _delta_wanted or (spark in _looked_at and not again):
        return
    _looked_at[spark] = True
    if (spark.conf.get(SPARK_CATALOG, None) or "") == _CATALOG_OF_REFERENCE and not has_reference(spark):
        spark.conf.set(SPARK_CATALOG, _BUILT_IN)
        _without_catalog[spark] = True


def restore_catalogs() -> None:
    """Restore the settings that ``prepare`` changed."""
    _looked_at.clear()
    while _without_catalog:
        spark, _ = _without_catalog.popitem()
        try:
            spark.conf.set(SPARK_CATALOG, _CATALOG_OF_REFERENCE)
        except Exception:  # a stopped session accepts no settings
            continue
