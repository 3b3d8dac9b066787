"""CACHE TABLE with and without a query, UNCACHE TABLE, REFRESH TABLE."""

from __future__ import annotations

from delta_pyds.statements import pieces
from delta_pyds.statements.columns import property_value
from delta_pyds.statements.kinds import CachedView, CacheTable, Refresh, TableReference
from delta_pyds.statements.reader import StatementReader
from delta_pyds.statements.tables import table, target_table


def cached_view(reader: StatementReader) -> CachedView:
    """``CACHE [LAZY] TABLE v [OPTIONS (...)] [AS] query``"""
    lazy, name, first, _ = _begin(reader)
    options = reader.piece(first, reader.index).text if reader.index > first else ""
    reader.accept("AS")
    return CachedView(name, pieces.query(reader), lazy, options)


def cache_table(reader: StatementReader) -> CacheTable | None:
    """``CACHE [LAZY] TABLE t [OPTIONS (...)]``; None with a query, whose name is a new view."""
    lazy, target, _, options = _begin(reader)
    if not (reader.token.kind == "end" or reader.token.is_symbol(";")):
        return None
    reader.expect_end()
    reader.target = target
    return CacheTable(target, True, lazy, options.get("storagelevel"))


def _begin(reader: StatementReader) -> tuple[bool, TableReference, int, dict[str, str]]:
    """Whether it is lazy, the name, the first token of the options, and the options."""
    reader.expect("CACHE")
    lazy = reader.accept("LAZY")
    reader.expect("TABLE")
    name, first = table(reader), reader.index
    given = reader.in_parentheses(lambda: _option(reader)) if reader.accept("OPTIONS") else ()
    return lazy, name, first, dict(given)


def uncache_table(reader: StatementReader) -> CacheTable:
    """``UNCACHE TABLE [IF EXISTS] t``"""
    reader.expect("UNCACHE", "TABLE")
    reader.accept("IF", "EXISTS")
    return CacheTable(target_table(reader), False)


def _option(reader: StatementReader) -> tuple[str, str]:
    """The key in lower case, and the value."""
    # two adjacent strings are a key and its value
    key = reader.take().value if reader.token.kind == "string" else ".".join(reader.path())
    reader.accept("=|==")
    return key.lower(), property_value(reader)


def refresh(reader: StatementReader) -> Refresh:
    """``REFRESH TABLE t``"""
    reader.expect("REFRESH", "TABLE")
    return Refresh(target_table(reader))
