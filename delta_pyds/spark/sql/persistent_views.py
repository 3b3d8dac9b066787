"""CREATE VIEW over tables by path: Spark keeps the text of a view, and no frame.

Invariant: in the view's text each table by path is an entry of the view's schema that holds the table's columns, with
the path beside it. So any session reads the rows of now, or of the version that was named. An entry goes once no view
names it (``remove_orphaned_holders``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from delta_pyds.errors import UnsupportedOperationError
from delta_pyds.spark.named_tables import naming, orphans
from delta_pyds.spark.named_tables.texts import SESSION_CATALOG, NamedTable, raw_string
from delta_pyds.spark.plain_calls import plain_calls
from delta_pyds.spark.sql.context import StatementContext
from delta_pyds.statements.kinds import TableReference, TableSpan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def create_view(context: StatementContext, view: TableReference, spans: Sequence[TableSpan]) -> DataFrame:
    """Raises: UnsupportedOperationError for what no text can name: a time, ``table_changes``, a table of a catalog of
    delta_pyds, STREAM, and a path with both kinds of quotes; what opening a table raises; Spark's exceptions.
    """
    schema, name = naming.full_name(context.spark, view.parts)
    tables = [_by_path(span, context) for span in spans]
    snapshots = {_place(table): context.snapshot(table) for table in tables}
    places = {place: raw_string(place) for place in snapshots}  # what no text can hold is said before anything is made
    holders: list[NamedTable] = []
    try:
        entries = {}
        for place, snapshot in snapshots.items():
            holders.append(naming.make_holder(context.spark, (schema, name), snapshot.schema, place))
            # not as the text of a table's name has it: this is a view of the user's
            entries[place] = f"{holders[-1].quoted_holder} with (path = {places[place]})"
        text, done = "", 0
        for span, table in zip(spans, tables, strict=True):
            text, done = f"{text}{context.text[done : span.start]}{entries[_place(table)]}", span.end
        with plain_calls():
            return context.spark.sql(text + context.text[done:], context.args)
    finally:
        # of a view that could not be made, or that was there
        with plain_calls():
            kept = orphans.view_text(context.spark, (SESSION_CATALOG, schema, name)).lower()
        for holder in holders:
            if holder.holder.lower() not in kept:
                naming.drop_holder(context.spark, holder)


def _place(table: TableReference) -> str:
    return f"{table.path}" if table.version is None else f"{table.path}@v{table.version}"


def _by_path(span: TableSpan, context: StatementContext) -> TableReference:
    table = span.table
    if (
        isinstance(table, TableReference)
        and table.path is not None
        and table.timestamp is None
        and table.stream is None
    ):
        return table
    named = context.text[span.start : span.end]
    raise UnsupportedOperationError(
        f"a view of Spark's catalog cannot hold {named!r:.200}: it takes names, and tables by path as they are now or "
        "at VERSION AS OF a number. CREATE TEMPORARY VIEW takes all.",
        code="DELTA_OPERATION_NOT_ALLOWED",
    )
