"""Entries without a name: a process died while it gave, changed or removed a name.

Invariant: an entry is dropped only if its name has this package's form, and no view of its schema names it. The views
are read twice, some time apart. The table's name in an entry's name proves nothing: a renamed table keeps its entry.
"""

from __future__ import annotations

import json
import time

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from delta_pyds.errors import OptionError
from delta_pyds.protocol.quoting import quote_name
from delta_pyds.spark.catalog_names.texts import SESSION_CATALOG, is_entry
from delta_pyds.spark.plain_calls import plain_calls

_GONE = "TABLE_OR_VIEW_NOT_FOUND"


def remove_orphaned_holders(spark: SparkSession, schema: str | None = None, *, wait_seconds: float = 10) -> list[str]:
    """Drop the entries ``_deltapy_...`` of a schema that no named table uses any more.

    A process that dies while it gives, changes or removes a name leaves such an entry. It is harmless, but Spark's own
    SHOW TABLES shows it.

    Args:
        spark: The session, classic or of Spark Connect.
        schema: The schema; by default the session's current one.
        wait_seconds: The seconds between the two reads of the views; 0 or more. Meanwhile another process may complete
            the two entries of a name.

    Returns:
        The names of the dropped entries.

    Raises:
        OptionError: ``wait_seconds`` is invalid.
        AnalysisException: The schema does not exist.

    >>> delta_pyds.remove_orphaned_holders(spark, "sales")
    """
    if not isinstance(wait_seconds, (int, float)) or isinstance(wait_seconds, bool) or not wait_seconds >= 0:
        raise OptionError("wait_seconds must be a number that is not negative.", option="wait_seconds")
    with plain_calls():
        name = spark.catalog.currentDatabase() if schema is None else schema
        orphans = _orphans(spark, name)
        if orphans:
            time.sleep(wait_seconds)
            still = _orphans(spark, name)
            orphans = [entry for entry in orphans if entry in still]
        for entry in orphans:
            spark.sql(f"DROP TABLE IF EXISTS {quote_name(SESSION_CATALOG, name, entry)}")
    return orphans


def _orphans(spark: SparkSession, schema: str) -> list[str]:
    within = quote_name(SESSION_CATALOG, schema)
    tables = [row["tableName"] for row in spark.sql(f"SHOW TABLES IN {within}").collect() if not row["isTemporary"]]
    entries = [table for table in tables if is_entry(table)]
    if not entries:
        return []
    views = [row["viewName"] for row in spark.sql(f"SHOW VIEWS IN {within}").collect() if not row["isTemporary"]]
    texts = [view_text(spark, (SESSION_CATALOG, schema, view)).lower() for view in views]
    return [entry for entry in entries if entry not in views and not any(entry.lower() in t for t in texts)]


def view_text(spark: SparkSession, parts: tuple[str, ...]) -> str:
    """The text of a view; empty if the view was dropped meanwhile."""
    try:
        (row,) = spark.sql(f"DESCRIBE TABLE EXTENDED {quote_name(*parts)} AS JSON").collect()
    except PySparkException as error:
        if (error.getCondition() or "").startswith(_GONE):
            return ""
        raise
    return str(json.loads(row[0]).get("view_text") or "")
