"""Whether the query of a statement reads the table that the statement writes."""

from __future__ import annotations

import re
from typing import Any, cast

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from delta_pyds.errors import DeltaError
from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.catalog_names import orphans, tracked_views
from delta_pyds.spark.catalog_names.texts import ENTRY_PREFIX, raw_string
from delta_pyds.spark.jvm_plans import analyzed
from delta_pyds.spark.sql.context import StatementContext
from delta_pyds.statements.kinds import SqlText, TableReference
from delta_pyds.storage.table_path import absolute_table_path, without_links

_VIEW = re.compile(r"\bView \(`((?:[^`]|``)+)`\.`((?:[^`]|``)+)`\.`((?:[^`]|``)+)`")


def reads_target(context: StatementContext, query: SqlText, rows: DataFrame, root: str) -> bool:
    """Return whether ``query`` reads the current rows of the table at ``root``, by path, by name or through views.

    Such an INSERT is not a blind append: a concurrent change may change its rows. Nor may a table be replaced by such
    rows after a concurrent change. Time travel is not such a read, because others cannot change an old version. The
    reference does the same.

    Args:
        query: The query of an INSERT or of AS SELECT.
        rows: Its DataFrame, which is analyzed but not run.
        root: The absolute path of the target.

    A name of WITH that equals the target's name counts as a read: then the append is checked for conflicts needlessly.
    """
    others = []
    tables = [span.table for span in context.parsed.reads_in(query, context.names.is_ours, context.names.is_read)]
    for table in (*tables, *context.parsed.names_in(query)):
        if not isinstance(table, TableReference) or table.travels:
            continue
        if context.names.is_ours(table):
            if _is_target(context, context.root(table), root):
                return True
            continue
        sources = tracked_views.sources_of(context.spark, table.parts[-1]) if len(table.parts) == 1 else ()
        if any(
            _is_target(context, absolute_table_path(one.path, remote=is_remote(context.spark)), root) for one in sources
        ):
            return True
        if not sources:
            others.append(table)
    return bool(others) and _reads_through_views(context, rows, root)


def _is_target(context: StatementContext, one: str, root: str) -> bool:
    return one == root or (not is_remote(context.spark) and without_links(one) == without_links(root))


def _reads_through_views(context: StatementContext, rows: DataFrame, root: str) -> bool:
    """Return whether a view of Spark's catalog in the analyzed plan shows the table."""
    plan = _analyzed(rows)
    if ENTRY_PREFIX not in plan:
        return False
    for found in dict.fromkeys(_VIEW.findall(plan)):
        parts = tuple(part.replace("``", "`") for part in found)
        reference = TableReference(parts, ".".join(parts))
        if context.names.is_ours(reference):
            if _is_target(context, context.root(reference), root):
                return True
        elif _names_path(orphans.view_text(context.spark, parts), root):
            return True
    return False


def _names_path(view_text: str, root: str) -> bool:
    """Return whether the text of a view over tables by path reads the latest version of the table at ``root``."""
    spellings = {root, root.removeprefix("file://")}
    try:
        return any(f"path = {raw_string(one)})" in view_text for one in spellings)
    except DeltaError:
        return False  # a path that no view can hold


def _analyzed(rows: DataFrame) -> str:
    """The analyzed plan as text."""
    if not is_remote(rows.sparkSession):
        return str(analyzed(rows).toString())
    try:
        explained = str(cast("Any", rows)._explain_string(extended=True))
    except PySparkException:
        return ""  # the write runs the same query, and reports the error
    return explained.partition("== Optimized Logical Plan ==")[0]
