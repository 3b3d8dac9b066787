"""Plans of the JVM, as a classic session has them: their parts, their text, and the times in them."""

from __future__ import annotations

import re
from typing import Any

# the end of a text that is longer than spark.sql.maxPlanStringLength
_CUT = re.compile(r"(?:\.\.\. -?\d+ more characters|Truncated plan of -?\d+ characters)\s*\Z")
# by default, Spark shows at most 25 expressions of a node
_ALL_FIELDS = 1 << 30
_SOME_FIELDS = re.compile(r"\.\.\. -?\d+ more fields")


def analyzed(frame: Any) -> Any:
    """The plan of a DataFrame after Spark's analyzer."""
    return frame._jdf.queryExecution().analyzed()


def subqueries(plan: Any) -> list[Any]:
    return items(plan.subqueriesAll())


def items(values: Any) -> list[Any]:
    """The items of a sequence of Scala. Each costs a call to Spark's driver."""
    return [values.apply(number) for number in range(values.size())]


def whole_text(plan: Any) -> str | None:
    """The text of each node of a plan, with all its expressions. Returns: None if Spark cut it."""
    from py4j.protocol import Py4JError

    try:
        # verbose, without a suffix; neither numbers of operators nor their output
        text: str = plan.treeString(True, False, _ALL_FIELDS, False, False)
    except Py4JError:  # another version of Spark
        text = plan.toString()
        if _SOME_FIELDS.search(text):
            return None
    return None if _CUT.search(text) else text


def has_special_datetimes(spark: Any, plan: Any) -> bool:
    """Whether Spark takes a constant text for the time of the query, such as ``cast('to' || 'day' as date)``.

    Spark's own rule decides, for every text that Spark can compute while it plans. Values of columns stay texts.
    """
    rules = spark._jvm.org.apache.spark.sql.catalyst.optimizer
    plan = rules.ReplaceExpressions.apply(plan)
    return not plan.fastEquals(rules.SpecialDatetimeValues.apply(plan))
