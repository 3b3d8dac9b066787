"""Table names in statements, and the tables of a statement or of a piece of it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from delta_pyds.catalog.settings import is_configured
from delta_pyds.errors import SqlSyntaxError, UnsupportedOperationError
from delta_pyds.statements import pieces
from delta_pyds.statements.arguments import BoundText
from delta_pyds.statements.kinds import (
    ChangesBound,
    ChangesClause,
    SqlText,
    TableChanges,
    TableReference,
    TableSpan,
)
from delta_pyds.statements.qualified_names import SESSION_CATALOG
from delta_pyds.statements.reader import StatementReader, syntax_error
from delta_pyds.statements.row_conditions import conditions_of
from delta_pyds.statements.scopes import AFTER_TABLES, TABLE_CHANGES, Role

_VERSION = re.compile(r"[vV](\d{1,18})")
_DIGITS = re.compile(r"\d{1,18}")
_BY_VERSION, _BY_TIME = "VERSION|SYSTEM_VERSION", "TIMESTAMP|SYSTEM_TIME"
# these words may follow a table with the name stream; before any other name, STREAM reads the table as a stream
_AFTER_NAME = AFTER_TABLES | frozenset((
    "ANTI", "AS", "CROSS", "EXCEPT", "FOR", "FULL", "INNER", "INSERT", "JOIN", "LATERAL", "LEFT", "NATURAL", "ON",
    "PIVOT", "QUALIFY", "RIGHT", "SEMI", "SYSTEM_TIME", "SYSTEM_VERSION", "TABLESAMPLE", "TIMESTAMP", "UNPIVOT",
    "USING", "VERSION", "WATERMARK", "WHEN", "WITH",
))  # fmt: skip
# these words belong to the name before them: it has no alias, and an alias must not be inserted before them
_BELONGS_TO_NAME = ("TABLESAMPLE", "WITH", "QUALIFY", "WATERMARK", "CHANGES", "INSERT", "MAP", "REDUCE")


def table(reader: StatementReader) -> TableReference:
    """A table by path or by name, also as ``IDENTIFIER('...')``."""
    first = reader.index
    if reader.at("IDENTIFIER", "("):
        return _identifier_clause(reader)
    parts = reader.path()
    piece = reader.piece(first, reader.index)
    return TableReference(parts, piece.text, piece.position)


def target_table(reader: StatementReader) -> TableReference:
    """The table of the statement. Later errors refer to this table."""
    reader.target = table(reader)
    if reader.token.is_symbol("@") or _at_time_travel(reader):
        reader.fail("a command changes the current table: leave the version out")
    if reader.target.path is not None:
        _refuse_options(reader)
    return reader.target


def column_of_table(reader: StatementReader) -> tuple[TableReference, str]:
    """``t.c``: a table, and the text of a column's name."""
    first = reader.index
    parts = reader.path()
    # a path has two parts, and a field of a struct has more names than its column
    named = next((n for n in (2, 3) if TableReference(parts[:n], "").path is not None), len(parts) - 1)
    if not 0 < named < len(parts):
        reader.fail("expected a table and its column")
    table_text = reader.piece(first, first + 2 * named - 1)
    reader.target = TableReference(parts[:named], table_text.text, table_text.position)
    return reader.target, reader.piece(first + 2 * named, reader.index).text


def _refuse_options(reader: StatementReader) -> None:
    """Raises: UnsupportedOperationError for options after a table by path: Spark would ignore them."""
    if reader.at("WITH", "("):
        reader.refuse(
            "WITH (options) after a table by path",
            "Name a version with VERSION AS OF, read changes with table_changes, or use delta_pyds.read.",
        )


def may_be_managed(parts: tuple[str, ...]) -> bool:
    """Whether a name begins with a catalog in the settings. Two parts are a schema and a table of Spark's catalog.

    Raises: OptionError for a file of catalogs that cannot be read.
    """
    return len(parts) > 2 and parts[0].lower() != SESSION_CATALOG and is_configured(parts[0])


def table_or_path(reader: StatementReader) -> TableReference:
    """The table of the statement, or a path as a string."""
    if reader.token.kind == "string":
        token = reader.token
        reader.target = TableReference(
            ("delta", reader.string()), token.text, reader.bound.original_position(token.start)
        )
        return reader.target
    return target_table(reader)


def source_table(reader: StatementReader) -> TableReference | TableChanges:
    """A table to read, at a version or a time or as changes if it is so named."""
    if reader.token.is_word(*TABLE_CHANGES) and reader.following.is_symbol("("):
        changes = _table_changes(reader)
        _refuse_options(reader)
        return changes
    found = table(reader)
    # without FROM, the word is an alias
    if reader.at("CHANGES", "FROM", f"{_BY_VERSION}|{_BY_TIME}"):
        clause = _changes_clause(reader)
        return replace(found, changes=replace(clause, options=_options(reader)))
    found = time_travel(reader, found)
    if found.path is not None:
        _refuse_options(reader)
    return found


def _at_stream(reader: StatementReader) -> bool:
    """Whether ``STREAM t`` or ``STREAM (t)`` is read here."""
    if not reader.token.is_word("STREAM") or not (
        reader.previous.is_word("FROM", "JOIN") or reader.previous.is_symbol(",") or reader.previous.is_symbol("(")
    ):
        return False
    following = reader.following
    return following.kind == "name" or (
        following.is_symbol("(") or (following.kind == "word" and following.text.upper() not in _AFTER_NAME)
    )


def _streamed_table(reader: StatementReader) -> TableReference:
    """``STREAM t [CHANGES [FROM ...]] [WITH (option = value, ...)]``, ``STREAM (t)``"""
    reader.expect("STREAM")
    in_parentheses = reader.accept("(")
    found = table(reader)
    if in_parentheses:
        reader.expect(")")
    elif reader.at("("):
        reader.fail("expected a table after STREAM")  # a function
    elif reader.at("CHANGES"):
        found = replace(found, changes=_changes_clause(reader, of_stream=True))
    options = _options(reader)
    if reader.at("IDENTIFIED", "BY"):
        if found.path is not None:
            reader.refuse("IDENTIFIED BY after STREAM", "Leave it out.")
        reader.fail("the source of a stream cannot be named here")  # Spark's own
    return replace(found, stream=options)


def _options(reader: StatementReader) -> tuple[tuple[str, str], ...]:
    """``WITH (option = value, ...)``; empty if it does not come next."""
    if not reader.at("WITH", "("):
        return ()
    reader.take()
    return reader.in_parentheses(lambda: _option(reader))


def _option(reader: StatementReader) -> tuple[str, str]:
    name = reader.string() if reader.token.kind == "string" else ".".join(reader.path())
    reader.accept("=")
    return name, reader.string() if reader.token.kind == "string" else reader.take().text


def _changes_clause(reader: StatementReader, *, of_stream: bool = False) -> ChangesClause:
    """``CHANGES FROM VERSION a [EXCLUSIVE] [TO VERSION b [EXCLUSIVE]]``, or TIMESTAMP instead of both VERSION

    A stream has no end, and may begin where it likes.
    """
    reader.expect("CHANGES")
    if of_stream and not reader.at("FROM"):
        return ChangesClause(by_version=True, bounds=())
    reader.expect("FROM")
    by_version = reader.at(_BY_VERSION)
    kinds = _BY_VERSION if by_version else _BY_TIME
    reader.expect(kinds)
    bounds = [_changes_bound(reader, by_version)]
    if reader.at("TO", kinds):
        if of_stream:
            reader.fail("a stream has no end")
        reader.take()
        reader.take()
        bounds.append(_changes_bound(reader, by_version))
    return ChangesClause(by_version, tuple(bounds))


def _changes_bound(reader: StatementReader, by_version: bool) -> ChangesBound:
    token, first = reader.token, reader.index
    value: str | SqlText
    if by_version:
        if token.kind != "string" and not (token.kind == "number" and token.text.isdecimal()):
            reader.fail("expected the number of a version")
        value = reader.take().value
    else:
        value = pieces.value_expression(reader)
        if any(one.is_word("SELECT") for one in reader.tokens[first : reader.index]):
            reader.fail("the time must not contain a query", token)
    inclusive = reader.accept("INCLUSIVE") or not reader.accept("EXCLUSIVE")
    return ChangesBound(value, inclusive)


def time_travel(reader: StatementReader, found: TableReference) -> TableReference:
    """``VERSION AS OF``, ``TIMESTAMP AS OF`` or ``@v3`` after a table."""
    if reader.token.is_symbol("@") and reader.previous.start + len(reader.previous.text) == reader.token.start:
        reader.take()
        token = reader.take()
        version = _VERSION.fullmatch(token.text)
        if version is None and not (token.kind == "number" and len(token.text) == 17):
            reader.fail("expected a version such as @v3, or a time of 17 digits", token)
        if version is not None:
            return replace(found, version=int(version[1]))
        digits = token.text
        day, time = f"{digits[:4]}-{digits[4:6]}-{digits[6:8]}", f"{digits[8:10]}:{digits[10:12]}:{digits[12:14]}"
        return replace(found, timestamp=SqlText(f"'{day} {time}.{digits[14:]}'", found.position))
    if not _at_time_travel(reader):
        return found
    reader.accept("FOR")
    by_version = reader.token.is_word("VERSION", "SYSTEM_VERSION")
    reader.take()
    reader.expect("AS", "OF")
    if not by_version:
        return replace(found, timestamp=pieces.value_expression(reader))
    token = reader.token
    if token.kind in ("number", "string") and _DIGITS.fullmatch(token.value):
        reader.take()
        return replace(found, version=int(token.value))
    raise syntax_error(reader.bound, token, "expected the number of a version")


def _at_time_travel(reader: StatementReader) -> bool:
    kinds = f"{_BY_VERSION}|{_BY_TIME}"
    return reader.at(kinds, "AS", "OF") or reader.at("FOR", kinds, "AS", "OF")


def _identifier_clause(reader: StatementReader) -> TableReference:
    reader.index += 2
    token = reader.token
    text = reader.string() if token.kind == "string" else ""
    if not text or not reader.accept(")"):
        reader.refuse(
            "IDENTIFIER over anything but one string", "Write the name of the table, or give it as an argument."
        )
    try:
        inner = StatementReader(BoundText(text, text))
        parts = inner.path()
        inner.expect_end()
    except SqlSyntaxError:
        reader.fail("this string is not a valid name of a table", token)
    return TableReference(parts, text, reader.bound.original_position(token.start))


def _table_changes(reader: StatementReader) -> TableChanges:
    by_path = reader.take().is_word(TABLE_CHANGES[1])
    reader.expect("(")
    name = reader.string()
    bounds: list[SqlText] = []
    while reader.accept(","):
        bounds.append(pieces.expression(reader))
    if not 1 <= len(bounds) <= 2:
        reader.fail("table_changes needs a table and the first version or time; the last one is optional")
    reader.expect(")")
    return TableChanges(name, by_path, tuple(bounds))


# --- the tables of a statement or of a piece of it


def find_names(reader: StatementReader, first: int = 0, last: int | None = None) -> tuple[TableReference, ...]:
    """The names without a path that a query reads: of tables, of views, and of WITH."""
    found = (span.table for span in _spans(reader, first, last))
    return tuple(table for table in found if isinstance(table, TableReference) and table.path is None)


def find_tables(reader: StatementReader, first: int = 0, last: int | None = None) -> tuple[TableSpan, ...]:
    """The tables among the tokens that Spark does not find by itself.

    They are tables by path, tables by name at a version or a time, and tables that a catalog may manage.
    """
    return _with_conditions(reader, (span for span in _spans(reader, first, last) if not _is_plain(span.table)))


def find_plain_reads(reader: StatementReader, first: int = 0, last: int | None = None) -> tuple[TableSpan, ...]:
    """The other names that a query reads as tables, and that have no other meaning in the statement.

    Invariant: if a table replaces the name, the statement means the same. A doubtful name is left out; Spark then
    resolves it itself.
    Raises: SqlSyntaxError and UnsupportedOperationError for an invalid name of a table.
    """
    return _with_conditions(reader, (span for span in _spans(reader, first, last) if _is_plain_read(reader, span)))


def _is_plain(table: TableReference | TableChanges) -> bool:
    """Whether the table is named without a path, a version and a catalog in the settings."""
    if isinstance(table, TableChanges):
        return False
    return not (table.path is not None or table.travels or may_be_managed(table.parts))


def _is_plain_read(reader: StatementReader, span: TableSpan) -> bool:
    scopes, table = reader.scopes, span.table
    # a variable may stand for any text
    if scopes.has_variable or not isinstance(table, TableReference) or not _is_plain(table):
        return False
    following = reader.tokens[span.last]
    if following.is_symbol("(") or following.is_word(*_BELONGS_TO_NAME):
        return False
    if span.role != "from" and not (span.role == "query" and span.first == 1):
        return False
    # an alias has no schema
    if table.parts[-1].lower() in scopes.qualifiers:
        return False
    return len(table.parts) > 1 or not scopes.is_of_with(table.parts[0], span.first)


def _with_conditions(reader: StatementReader, spans: Iterable[TableSpan]) -> tuple[TableSpan, ...]:
    found = tuple(spans)
    if found and reader.conditions is None:
        try:
            reader.conditions = conditions_of(reader, _spans(reader, 0, None))
        except (SqlSyntaxError, UnsupportedOperationError):
            reader.conditions = {}  # the error comes where the statement is parsed
    conditions = reader.conditions or {}
    return tuple(replace(span, conditions=conditions.get(span.first)) for span in found) if conditions else found


def _spans(reader: StatementReader, first: int, last: int | None) -> list[TableSpan]:
    found: list[TableSpan] = []
    begin, done = reader.index, first
    try:
        for position in reader.scopes.tables_between(first, len(reader.tokens) - 1 if last is None else last):
            # the time of a table contains no other table
            if position.first < done:
                continue
            reader.index = position.first
            span = _table_here(reader, position.role)
            if span is not None:
                found.append(span)
                done = span.last
    finally:
        reader.index = begin
    return found


def _table_here(reader: StatementReader, role: Role) -> TableSpan | None:
    """The table whose name begins here; None if it is a function call."""
    token, begin = reader.token, reader.index
    streams = _at_stream(reader)
    if token.is_word("STREAM") and reader.following.is_symbol("(") and not streams:
        return None
    try:
        found = _streamed_table(reader) if streams else source_table(reader)
    except SqlSyntaxError:
        if token.value.lower() in ("delta", "deltapy") or token.is_word(*TABLE_CHANGES):
            raise
        return None
    except UnsupportedOperationError:
        if token.is_word("IDENTIFIER"):
            return None  # the argument is an expression: Spark resolves the table
        raise
    last, bound = reader.previous, reader.bound
    end = bound.original_end(last.start + len(last.text))
    return TableSpan(found, bound.original_position(token.start), end, begin, reader.index, role)
