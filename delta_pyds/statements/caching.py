"""CACHE TABLE over a query, and REFRESH TABLE."""

from __future__ import annotations

from delta_pyds.statements import pieces
from delta_pyds.statements.kinds import CachedView, Refresh
from delta_pyds.statements.reader import StatementReader
from delta_pyds.statements.tables import table, target_table


def cached_view(reader: StatementReader) -> CachedView:
    """``CACHE [LAZY] TABLE v [OPTIONS (...)] [AS] query``"""
    reader.expect("CACHE")
    lazy = reader.accept("LAZY")
    reader.expect("TABLE")
    name = table(reader)
    first = reader.index
    if reader.accept("OPTIONS"):
        reader.in_parentheses(lambda: _option(reader))
    options = reader.piece(first, reader.index).text if reader.index > first else ""
    reader.accept("AS")
    found = pieces.query(reader)
    reader.expect_end()
    return CachedView(name, found, lazy, options)


def _option(reader: StatementReader) -> None:
    if reader.token.kind == "string":
        reader.take()  # two beside each other are a key and its value
    else:
        reader.path()
    reader.accept("=")
    reader.take()


def refresh(reader: StatementReader) -> Refresh:
    """``REFRESH TABLE t``"""
    reader.expect("REFRESH", "TABLE")
    target = target_table(reader)
    reader.expect_end()
    return Refresh(target)
