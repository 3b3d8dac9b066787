"""Conditions over partition columns that hold for all rows that a DataFrame reads from a table.

Spark's optimizer pushes them down to the scans. Only a classic session shows them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from delta_pyds.protocol.quoting import quote_name
from delta_pyds.redaction import safe_logger
from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.jvm_plans import analyzed, has_special_datetimes, items, subqueries, whole_text
from delta_pyds.spark.native.scan import MAPPED_OPTION, TABLE_OPTION
from delta_pyds.spark.row_sources import MOST_LEAVES, OF_LOG, is_another
from delta_pyds.spark.settings import METADATA_ONLY

logger = safe_logger(__name__)

# expressions of an optimized plan, and their SQL
_INFIX = {
    "And": "AND", "Or": "OR", "EqualTo": "=", "EqualNullSafe": "<=>", "LessThan": "<", "LessThanOrEqual": "<=",
    "GreaterThan": ">", "GreaterThanOrEqual": ">=",
}  # fmt: skip
_AROUND = {"Not": ("NOT ", ""), "IsNull": ("", " IS NULL"), "IsNotNull": ("", " IS NOT NULL")}
_KNOWN = frozenset({*_INFIX, *_AROUND, "In"})
_NOT_AS_TEXT = ("TIMESTAMP", "STRING COLLATE")
_MOST_NODES = 500
# characters
_LONGEST_SET = 65_536


def rows_read(frame: Any, root: str) -> str | None:
    """A condition that holds for all rows that ``frame`` reads from the table; None if none is known."""
    spark = frame.sparkSession
    # with this setting a rule of Spark reads the names of directories, and the plan lacks the scan
    if is_remote(spark) or spark.conf.get(METADATA_ONLY, "false").strip().lower() != "false":
        return None
    try:
        before = analyzed(frame)
        current = spark._jvm.org.apache.spark.sql.catalyst.trees.TreePattern.CURRENT_LIKE()
        plans = (before, *subqueries(before))
        # the optimized plan has the current time and user as literals, and the query may run later
        if any(one.containsPattern(current) or has_special_datetimes(spark, one) for one in plans):
            return None
        if not all(_shows_partitions(one, root) for one in plans):
            return None
        # The DataFrame's own optimized plan may be as old as its first query, and has cached rows instead of scans.
        plan = spark._jsparkSession.sessionState().optimizer().execute(before)
        found = [one for some in (plan, *subqueries(plan)) for one in _conditions(some, None, root)]
    except Exception as error:  # a plan of another version of Spark, or a query with an error, which the write reports
        logger.info("The rows that are read from %s are unknown: %s", root, error)
        return None
    texts = [one for one in found if one is not None]
    return " OR ".join(f"({one})" for one in dict.fromkeys(texts)) if texts and len(texts) == len(found) else None


def _shows_partitions(plan: Any, root: str) -> bool:
    """Whether an optimized plan of this analyzed one shows each scan of the table, and which partitions it reads.

    An optimized plan lacks the alias by which rows from a log and scans without files are found (``log_rows``).
    """
    text = whole_text(plan)
    leaves = plan.collectLeaves()
    if text is None or OF_LOG.search(text) or leaves.size() > MOST_LEAVES:
        return False
    return all(is_another(leaf, root) or _partition_columns(leaf) for leaf in items(leaves))


def _conditions(node: Any, condition: Any | None, root: str) -> Iterator[str | None]:
    """For each scan of the table in an optimized plan, the condition of the filter directly above it, as SQL text.

    The text has the parts over partition columns; it is None without any. ``condition``: of a filter directly above
    this node.
    """
    children = items(node.children())
    if not children and not is_another(node, root):
        # columns of another leaf, such as a checkpoint, may have the names of the table's, and other values
        columns = _partition_columns(node)
        yield _PartitionConditions(columns).text(condition) if columns and condition is not None else None
    here = node.condition() if node.getClass().getSimpleName() == "Filter" else None
    for child in children:
        yield from _conditions(child, here, root)


def _partition_columns(leaf: Any) -> frozenset[str]:
    """The partition columns of a scan of a table by their names in lower case, if its files have them in their paths.

    Empty for another leaf, and if columns of the table have other names in files.
    """
    if leaf.getClass().getSimpleName() != "LogicalRelation":
        return frozenset()
    relation = leaf.relation()
    options = relation.options() if relation.getClass().getSimpleName() == "HadoopFsRelation" else None
    if options is None or not options.contains(TABLE_OPTION.lower()) or options.contains(MAPPED_OPTION.lower()):
        return frozenset()
    return frozenset(name.lower() for name in relation.partitionSchema().fieldNames())


class _PartitionConditions:
    """The parts of a filter's condition over partition columns. Each node costs a call to Spark's driver."""

    def __init__(self, columns: frozenset[str]) -> None:
        self._columns = columns
        self._left = _MOST_NODES

    def text(self, condition: Any) -> str | None:
        """Their text; None without any such part. A part that is left out lets more rows match."""
        waiting, found = [condition], []
        while waiting and self._left > 0:
            one = waiting.pop()
            if one.getClass().getSimpleName() == "And":
                self._left -= 1
                waiting += [one.right(), one.left()]
            else:
                found.append(self._of(one))
        return " AND ".join(text for text in found if text is not None) or None

    def _of(self, expression: Any) -> str | None:
        """The text of an expression of partition columns and literals; None for another one."""
        self._left -= 1
        if self._left < 0:
            return None
        kind = expression.getClass().getSimpleName()
        if kind == "AttributeReference":
            name = expression.name()
            # the order of a collation is Spark's alone, and the text of a timestamp has no zone
            other = name.lower() not in self._columns or expression.dataType().sql().startswith(_NOT_AS_TEXT)
            return None if other else quote_name(name)
        if kind == "Literal":
            text: str = expression.sql()
            return text
        if kind == "InSet":
            return self._of_set(expression)
        parts = []
        for child in items(expression.children()) if kind in _KNOWN else ():
            parts.append(self._of(child))
            if parts[-1] is None:
                return None
        if kind in _INFIX:
            return f"({parts[0]} {_INFIX[kind]} {parts[1]})"
        if kind == "In":
            return f"({parts[0]} IN ({', '.join(map(str, parts[1:]))}))"
        if kind in _AROUND:
            before, after = _AROUND[kind]
            return f"({before}{parts[0]}{after})"
        return None

    def _of_set(self, expression: Any) -> str | None:
        """The text of an IN with many values, which Spark turns into one set."""
        column, text = self._of(expression.child()), expression.sql()
        before = f"({expression.child().sql()} IN ("
        if column is None or not text.startswith(before) or len(text) > _LONGEST_SET:
            return None
        return f"({column} IN ({text[len(before) :]}"
