"""CREATE VIEW over tables by path: Spark stores the text of a view, not its DataFrame.

Invariant: in the view's text each table by path is a catalog entry in the view's schema. The entry holds the table's
columns, and the view's text holds the path. So any session reads the current rows, or those of the named version. An
entry that no view names is removed by ``remove_orphaned_holders``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from delta_pyds.errors import UnsupportedOperationError
from delta_pyds.spark.catalog_names import naming, orphans
from delta_pyds.spark.catalog_names.texts import SESSION_CATALOG, NamedTable, raw_string
from delta_pyds.spark.plain_calls import plain_calls
from delta_pyds.statements.kinds import TableReference, TableSpan
from delta_pyds.table.snapshot import Snapshot


def create_view(
    spark: SparkSession,
    text: str,
    args: Any,
    view: TableReference,
    spans: Sequence[TableSpan],
    *,
    open_table: Callable[[TableReference], Snapshot],
) -> DataFrame:
    """Run the statement ``text``, which creates ``view``, with a catalog entry for the table of each span.

    Raises: UnsupportedOperationError for a table that no text can name: at a time, of changes, of a catalog
        of delta_pyds, of STREAM, or with both kinds of quotes in its path; as ``open_table``; Spark's exceptions.
    """
    schema, name = naming.full_name(spark, view.parts)
    tables = [_by_path(span, text) for span in spans]
    snapshots = {_location(table): open_table(table) for table in tables}
    paths = {location: raw_string(location) for location in snapshots}  # checks the paths before any entry is created
    entries: dict[str, NamedTable] = {}
    try:
        for location, snapshot in snapshots.items():
            entries[location] = naming.make_entry(spark, (schema, name), snapshot.schema, location)
        replaced, done = "", 0
        for span, table in zip(spans, tables, strict=True):
            location = _location(table)
            # lower-case ``with`` marks a user's view; the view of a named table has WITH
            entry = f"{entries[location].quoted_entry} with (path = {paths[location]})"
            replaced, done = f"{replaced}{text[done : span.start]}{entry}", span.end
        with plain_calls():
            return spark.sql(replaced + text[done:], args)
    finally:
        # CREATE VIEW may have failed, or the view may have existed before
        with plain_calls():
            named = orphans.view_text(spark, (SESSION_CATALOG, schema, name)).lower()
        for table_entry in entries.values():
            if table_entry.holder.lower() not in named:
                naming.drop_entry(spark, table_entry)


def _location(table: TableReference) -> str:
    return f"{table.path}" if table.version is None else f"{table.path}@v{table.version}"


def _by_path(span: TableSpan, text: str) -> TableReference:
    table = span.table
    if (
        isinstance(table, TableReference)
        and table.path is not None
        and table.timestamp is None
        and table.is_one_version
    ):
        return table
    named = text[span.start : span.end]
    raise UnsupportedOperationError(
        f"a view in Spark's catalog cannot read {named!r:.200}. It can read tables by name, and by path: the current "
        "version, or VERSION AS OF with a number. CREATE TEMPORARY VIEW has no such limit.",
        code="DELTA_OPERATION_NOT_ALLOWED",
    )
