"""Whether a plan of the JVM contains the time at which Spark optimizes it."""

from __future__ import annotations

from typing import Any


def has_special_datetimes(spark: Any, plan: Any) -> bool:
    """Whether Spark takes a constant text for the time of the query, such as ``cast('to' || 'day' as date)``.

    Spark's own rule decides, for every text that Spark can compute while it plans. Values of columns stay texts.
    """
    rules = spark._jvm.org.apache.spark.sql.catalyst.optimizer
    plan = rules.ReplaceExpressions.apply(plan)
    return not plan.fastEquals(rules.SpecialDatetimeValues.apply(plan))
