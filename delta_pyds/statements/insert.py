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
        found = replace(found, partition=partition_values(reader))
    if reader.at("IF", "NOT", "EXISTS"):
        reader.refuse("INSERT ... IF NOT EXISTS", "Check that the partition is empty before you insert.")
    if not overwrite and _at_alias(reader):
        _alias(reader)
    if reader.accept("BY", "NAME"):
        found = replace(found, by_name=True)
    elif reader.token.is_symbol("(") and not pieces.at_query(reader):
        found = replace(found, columns=reader.in_parentheses(reader.identifier))
    if not overwrite and reader.at("REPLACE", "WHERE|USING|ON"):
        found = _replacing(reader, found)
    return replace(found, query=pieces.query(reader))


def _at_alias(reader: StatementReader) -> bool:
    """Whether ``[AS] name`` precedes ``[BY NAME] REPLACE``. The word AS may be the name itself."""
    return any(_replaces_at(reader, reader.index + 1 + has_as) for has_as in range(1 + reader.at("AS")))


def _replaces_at(reader: StatementReader, index: int) -> bool:
    if not reader.tokens[index - 1].is_name:
        return False
    following = reader.tokens[index : index + 4]
    if len(following) == 4 and following[0].is_word("BY") and following[1].is_word("NAME"):
        following = following[2:]
    return len(following) > 1 and following[0].is_word("REPLACE") and following[1].is_word("WHERE", "USING", "ON")


def _alias(reader: StatementReader) -> None:
    start = reader.token
    if not _replaces_at(reader, reader.index + 1):
        reader.expect("AS")
    reader.alias()
    if reader.at("REPLACE", "WHERE") or reader.at("BY", "NAME", "REPLACE", "WHERE"):
        code = "INSERT_REPLACE_WHERE_TABLE_ALIAS_NOT_ALLOWED"
        reader.refuse_at_end("a table cannot have an alias before REPLACE WHERE", code, start)


def _replacing(reader: StatementReader, found: Insert) -> Insert:
    if reader.accept("REPLACE", "WHERE"):
        return replace(found, replace_where=pieces.expression(reader, pieces.begins_query))
    if reader.at("REPLACE", "ON"):
        reader.refuse("INSERT ... REPLACE ON", "Use REPLACE WHERE, or MERGE.")
    if found.columns is not None or found.partition is not None:
        reader.fail("REPLACE USING excludes PARTITION and a list of columns")
    reader.expect("REPLACE", "USING")
    return replace(found, replace_using=reader.in_parentheses(reader.identifier))


def partition_values(reader: StatementReader) -> tuple[tuple[str, SqlText | None], ...]:
    """``(column [= literal], ...)``"""
    start = reader.token
    found = reader.in_parentheses(lambda: _partition(reader))
    names = [name.lower() for name, _ in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        reader.refuse_at_end(f"PARTITION names the column '{twice}' twice", "DUPLICATE_KEY", start)
    return found


def _partition(reader: StatementReader) -> tuple[str, SqlText | None]:
    name = reader.identifier()
    return name, _constant(reader) if reader.accept("=|==") else None


def _constant(reader: StatementReader) -> SqlText:
    """A literal, or an argument whose value is a literal or a CAST of one."""
    first = reader.index
    if reader.accept("CAST", "("):
        _constant(reader)
        reader.expect("AS")
        pieces.data_type(reader)
        reader.expect(")")
    elif reader.accept(":"):
        reader.identifier()
    elif not reader.accept("?|NULL|TRUE|FALSE"):
        if reader.token.is_word("INTERVAL"):
            reader.fail("the value of a partition column cannot be an interval")
        typed = reader.token.kind == "word" and reader.following.kind == "string"
        if typed:
            reader.take()
        if typed or reader.token.kind == "string":
            reader.string()
        else:
            _ = reader.accept("-")
            if reader.token.kind != "number":
                reader.fail("the value of a partition column must be a constant")
            reader.take()
    return reader.piece(first, reader.index)
