"""Whether a plan of the JVM has values of the time at which Spark optimizes it."""

from __future__ import annotations

from typing import Any


def names_time(spark: Any, plan: Any) -> bool:
    """Whether Spark takes a constant text for the time of the query, such as ``cast('to' || 'day' as date)``.

    Its own rule says so, for any text that it can compute while it plans. It never does so for the value of a column.
    """
    rules = spark._jvm.org.apache.spark.sql.catalyst.optimizer
    plan = rules.ReplaceExpressions.apply(plan)
    return not plan.fastEquals(rules.SpecialDatetimeValues.apply(plan))
