"""Queries that ask one whole table for its number of rows, its smallest and its largest values."""

from __future__ import annotations

from delta_pyds.errors import SqlSyntaxError
from delta_pyds.statements.kinds import Aggregate, TableReference, TableSpan
from delta_pyds.statements.reader import StatementReader


def aggregates_of(reader: StatementReader, tables: tuple[TableSpan, ...]) -> tuple[Aggregate, ...]:
    """What ``SELECT count(*), min(a), max(b) FROM t`` asks for; nothing where the statement is any other."""
    if len(tables) != 1 or not isinstance(tables[0].table, TableReference) or tables[0].table.stream is not None:
        return ()
    [span] = tables
    reader.index = 0
    try:
        reader.expect("SELECT")
        found = reader.list_of(lambda: _aggregate(reader))
        reader.expect("FROM")
        if reader.index != span.first:
            return ()
        reader.index = span.last
        if reader.accept("AS") or reader.token.kind in ("word", "name"):
            reader.identifier()
        reader.expect_end()
    except SqlSyntaxError:
        return ()
    finally:
        reader.index = 0
    return found


def _aggregate(reader: StatementReader) -> Aggregate:
    """Raises: SqlSyntaxError for whatever else is selected."""
    reader.expect("COUNT|MIN|MAX")
    kind = reader.previous.text.lower()
    reader.expect("(")
    column = None
    if kind == "count":
        # of a constant as of a star: all rows
        if reader.token.kind == "number":
            reader.take()
        else:
            reader.expect("*")
    else:
        column = reader.identifier()
    reader.expect(")")
    if reader.accept("AS") or (reader.token.kind in ("word", "name") and not reader.at("FROM")):
        reader.identifier()
    return Aggregate(kind, column)
