"""INSERT in its forms."""

from __future__ import annotations

from dataclasses import replace

from delta_pyds.statements import pieces
from delta_pyds.statements.kinds import Insert, SqlText
from delta_pyds.statements.reader import StatementReader
from delta_pyds.statements.tables import target_table


def insert(reader: StatementReader) -> Insert:
    """``INSERT INTO | OVERWRITE t [PARTITION ...] [BY NAME | (columns) | REPLACE WHERE | USING ...] query``"""
    reader.expect("INSERT")
    evolves = reader.accept("WITH", "SCHEMA", "EVOLUTION")
    overwrite = reader.accept("OVERWRITE")
    if not overwrite:
        reader.expect("INTO")
    reader.accept("TABLE")
    target = target_table(reader)
    found = Insert(target, SqlText("", 0), overwrite, evolves=evolves)
    if reader.accept("PARTITION"):
        found = replace(found, partition=reader.in_parentheses(lambda: _partition(reader)))
    if reader.at("IF", "NOT", "EXISTS"):
        reader.refuse("INSERT ... IF NOT EXISTS", "Look first, and then insert.")
    if reader.accept("BY", "NAME"):
        found = replace(found, by_name=True)
    elif reader.token.is_symbol("(") and not pieces.at_query(reader):
        found = replace(found, columns=reader.in_parentheses(reader.identifier))
    if not overwrite and reader.at("REPLACE", "WHERE|USING|ON"):
        found = _replacing(reader, found)
    return replace(found, query=_query(reader))


def _replacing(reader: StatementReader, found: Insert) -> Insert:
    if reader.accept("REPLACE", "WHERE"):
        return replace(found, replace_where=pieces.expression(reader, pieces.begins_query))
    if reader.at("REPLACE", "ON"):
        reader.refuse("INSERT ... REPLACE ON", "Use REPLACE WHERE, or MERGE.")
    reader.expect("REPLACE", "USING")
    return replace(found, replace_using=reader.in_parentheses(reader.identifier))


def _query(reader: StatementReader) -> SqlText:
    found = pieces.query(reader)
    reader.expect_end()
    return found


def _partition(reader: StatementReader) -> tuple[str, SqlText | None]:
    name = reader.identifier()
    return name, pieces.expression(reader) if reader.accept("=|==") else None
