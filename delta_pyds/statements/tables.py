"""Tables as they are named, and where a query names them.

Invariant: only a place where Spark's grammar takes a table is one. ``delta.`x``` elsewhere is the column ``x`` of
something called ``delta``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from delta_pyds.catalog.settings import is_known
from delta_pyds.errors import SqlSyntaxError, UnsupportedOperationError
from delta_pyds.statements import pieces
from delta_pyds.statements.arguments import BoundText
from delta_pyds.statements.kinds import SqlText, TableChanges, TableReference, TableSpan
from delta_pyds.statements.reader import StatementReader, syntax_error

_VERSION = re.compile(r"[vV](\d{1,18})")
_DIGITS = re.compile(r"\d{1,18}")
_SESSION_CATALOG = "spark_catalog"
_CHANGES = ("TABLE_CHANGES", "TABLE_CHANGES_BY_PATH")
_QUERY = ("SELECT", "WITH", "VALUES", "FROM", "MAP", "REDUCE")
# what ends the list of tables after FROM
_AFTER_TABLES = frozenset((
    "SELECT", "WHERE", "GROUP", "HAVING", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET", "WINDOW",
    "UNION", "EXCEPT", "MINUS", "INTERSECT", "SET", "VALUES",
))  # fmt: skip
# what may follow a table that is called stream; before any other name the word makes a stream of a table
_BEHIND_NAME = _AFTER_TABLES | frozenset((
    "ANTI", "AS", "CROSS", "EXCEPT", "FOR", "FULL", "INNER", "INSERT", "JOIN", "LATERAL", "LEFT", "NATURAL", "ON",
    "PIVOT", "QUALIFY", "RIGHT", "SEMI", "SYSTEM_TIME", "SYSTEM_VERSION", "TABLESAMPLE", "TIMESTAMP", "UNPIVOT",
    "USING", "VERSION", "WATERMARK", "WHEN", "WITH",
))  # fmt: skip


def table(reader: StatementReader) -> TableReference:
    """A table by path or by name, also as ``IDENTIFIER('...')``."""
    first = reader.index
    if reader.at("IDENTIFIER", "("):
        return _identifier_clause(reader)
    parts = reader.path()
    piece = reader.piece(first, reader.index)
    return TableReference(parts, piece.text, piece.position)


def target_table(reader: StatementReader) -> TableReference:
    """The table that the statement is about; what is wrong behind it is then an error of a statement about it."""
    reader.target = table(reader)
    if reader.token.is_symbol("@") or _at_time_travel(reader):
        reader.fail("a table is changed as it is now: name no version")
    if reader.target.path is not None:
        _refuse_options(reader)
    return reader.target


def column_of_table(reader: StatementReader) -> tuple[TableReference, str]:
    """``t.c``: a table, and the text of a column's name."""
    first = reader.index
    parts = reader.path()
    # of a path the parts are two, and a field of a struct has more names than its column
    named = next((n for n in (2, 3) if TableReference(parts[:n], "").path is not None), len(parts) - 1)
    if not 0 < named < len(parts):
        reader.fail("expected a table and its column")
    table_text = reader.piece(first, first + 2 * named - 1)
    reader.target = TableReference(parts[:named], table_text.text, table_text.position)
    return reader.target, reader.piece(first + 2 * named, reader.index).text


def _refuse_options(reader: StatementReader) -> None:
    """Raises: UnsupportedOperationError for options behind a table by path: Spark would ignore them."""
    if reader.at("WITH", "("):
        reader.refuse(
            "WITH (options) behind a table by path",
            "Name a version with VERSION AS OF, read changes with table_changes, or use delta_pyds.read.",
        )


def may_be_managed(parts: tuple[str, ...]) -> bool:
    """Whether a name begins with that of a catalog of ours. Two parts are a schema and a table of Spark's catalog.

    Raises: OptionError for a file of catalogs that cannot be read.
    """
    return len(parts) > 2 and parts[0].lower() != _SESSION_CATALOG and is_known(parts[0])


def table_or_path(reader: StatementReader) -> TableReference:
    """The same, or a path as a string."""
    if reader.token.kind == "string":
        token = reader.token
        reader.target = TableReference(
            ("delta", reader.string()), token.text, reader.bound.original_position(token.start)
        )
        return reader.target
    return target_table(reader)


def source_table(reader: StatementReader) -> TableReference | TableChanges:
    """A table to be read, at a version or a time where one is named."""
    if reader.token.is_word(*_CHANGES) and reader.following.is_symbol("("):
        changes = _table_changes(reader)
        _refuse_options(reader)
        return changes
    found = time_travel(reader, table(reader))
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
        following.is_symbol("(") or (following.kind == "word" and following.text.upper() not in _BEHIND_NAME)
    )


def _streamed_table(reader: StatementReader) -> TableReference:
    """``STREAM t [WITH (option = value, ...)]``, ``STREAM (t)``"""
    reader.expect("STREAM")
    in_parentheses = reader.accept("(")
    found = table(reader)
    if in_parentheses:
        reader.expect(")")
    elif reader.at("("):
        reader.fail("expected a table behind STREAM")  # a function
    options: tuple[tuple[str, str], ...] = ()
    if reader.at("WITH", "("):
        reader.take()
        options = reader.in_parentheses(lambda: _option(reader))
    if reader.at("IDENTIFIED", "BY"):
        if found.path is not None:
            reader.refuse("IDENTIFIED BY behind STREAM", "Leave it out.")
        reader.fail("a source of a stream is not named here")  # Spark's own
    return replace(found, stream=options)


def _option(reader: StatementReader) -> tuple[str, str]:
    name = reader.string() if reader.token.kind == "string" else ".".join(reader.path())
    reader.accept("=")
    return name, reader.string() if reader.token.kind == "string" else reader.take().text


def time_travel(reader: StatementReader, found: TableReference) -> TableReference:
    """``VERSION AS OF``, ``TIMESTAMP AS OF`` or ``@v3`` behind a table."""
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
    kinds = "VERSION|SYSTEM_VERSION|TIMESTAMP|SYSTEM_TIME"
    return reader.at(kinds, "AS", "OF") or reader.at("FOR", kinds, "AS", "OF")


def _identifier_clause(reader: StatementReader) -> TableReference:
    reader.index += 2
    token = reader.token
    text = reader.string() if token.kind == "string" else ""
    if not text or not reader.accept(")"):
        reader.refuse("IDENTIFIER over anything but one string", "Write the name of the table, or give it as argument.")
    try:
        inner = StatementReader(BoundText(text, text))
        parts = inner.path()
        inner.expect_end()
    except SqlSyntaxError:
        reader.fail("this string is no name of a table", token)
    return TableReference(parts, text, reader.bound.original_position(token.start))


def _table_changes(reader: StatementReader) -> TableChanges:
    by_path = reader.take().is_word(_CHANGES[1])
    reader.expect("(")
    name = reader.string()
    bounds: list[SqlText] = []
    while reader.accept(","):
        bounds.append(pieces.expression(reader))
    if not 1 <= len(bounds) <= 2:
        reader.fail("table_changes takes a table, the first version or time, and maybe the last")
    reader.expect(")")
    return TableChanges(name, by_path, tuple(bounds))


# --- where a query names tables


@dataclass
class _Group:
    """What is between two parentheses, or the whole. ``query``: FROM in it begins tables; in a function's it does not.

    ``in_from``: a comma is between tables. ``expects``: a table comes next.
    """

    query: bool
    in_from: bool = False
    expects: bool = False


def find_names(reader: StatementReader, first: int = 0, last: int | None = None) -> tuple[TableReference, ...]:
    """What stands among the tokens where a query names a table, and is no path: tables, views, and names of WITH."""
    found = (span.table for span in _find(reader, first, last, names=True))
    return tuple(table for table in found if isinstance(table, TableReference) and table.path is None)


def find_named(reader: StatementReader, first: int = 0, last: int | None = None) -> tuple[TableSpan, ...]:
    """The places of the same names, without those that ``find_tables`` finds."""
    found = _find(reader, first, last, names=True)
    return tuple(
        span
        for span in found
        if isinstance(span.table, TableReference)
        and not (span.table.path or span.table.travels or may_be_managed(span.table.parts))
    )


def find_tables(reader: StatementReader, first: int = 0, last: int | None = None) -> tuple[TableSpan, ...]:
    """Every table by path among the tokens, and of those by name what is read at a version or a time, and what a
    catalog may manage.
    """
    return _find(reader, first, last, names=False)


def _find(reader: StatementReader, first: int, last: int | None, *, names: bool) -> tuple[TableSpan, ...]:
    end = len(reader.tokens) - 1 if last is None else last
    begin = reader.index
    reader.index = first
    groups = [_Group(True)]
    found: list[TableSpan] = []
    try:
        while reader.index < end:
            span = _table_here(reader, names) if groups[-1].expects else None
            if span is not None:
                found.append(span)
                groups[-1].expects = False
                continue
            _step(reader, groups, first)
            reader.index += 1
    finally:
        reader.index = begin
    return tuple(found)


def _step(reader: StatementReader, groups: list[_Group], first: int) -> None:
    """What a token that is no table says of those behind it."""
    token, group = reader.token, groups[-1]
    if token.kind == "symbol":
        if token.text == "(":
            query = reader.following.is_word(*_QUERY)
            relation = group.expects and not query
            groups.append(_Group(query or group.expects, in_from=relation, expects=relation))
        elif token.text == ")" and len(groups) > 1:
            groups.pop()
            groups[-1].expects = False
        elif token.text == ",":
            group.expects = group.in_from
        elif token.text == "|>":
            group.in_from = group.expects = False  # an operator of a pipe follows
        return
    if token.kind != "word" or (reader.index > first and reader.previous.is_symbol(".")):
        group.expects = False
        return
    word = token.text.upper()
    if word == "FROM":
        group.expects = group.query and not _compares(reader, first)
        # behind ON ... IS DISTINCT FROM the list of tables goes on
        group.in_from = group.in_from or group.expects
    elif word == "JOIN":
        group.expects = group.in_from = group.query
    elif word == "TABLE" or (len(groups) == 1 and _takes_table(reader, first, word)):
        group.expects = True
    elif word in _AFTER_TABLES or (word == "VIEW" and reader.index > first and reader.previous.is_word("LATERAL")):
        group.in_from = group.expects = False
    elif word not in ("LATERAL", "IF", "NOT", "EXISTS"):
        group.expects = False


def _compares(reader: StatementReader, first: int) -> bool:
    """Whether FROM belongs to IS DISTINCT FROM."""
    if reader.index - first < 2 or not reader.previous.is_word("DISTINCT"):
        return False
    return reader.tokens[reader.index - 2].is_word("IS", "NOT")


def _takes_table(reader: StatementReader, first: int, word: str) -> bool:
    """Words of commands behind which a table stands."""
    if word in ("INTO", "OVERWRITE", "EXTENDED", "FORMATTED"):
        return True
    leading = [token.text.upper() for token in reader.tokens[first : first + 2]]
    if word == "UPDATE":
        return reader.index == first or pieces.at_command(reader)
    if reader.index == first:
        return word in ("DESC", "DESCRIBE")
    if (word, leading[0]) in (("USING", "MERGE"), ("IN", "SHOW"), ("VIEW", "DROP"), ("VIEW", "ALTER")):
        return True
    return word == "LIKE" and leading[0] == "CREATE"


def _table_here(reader: StatementReader, names: bool) -> TableSpan | None:
    """``names``: whether a name without a version counts, too."""
    token = reader.token
    if token.kind not in ("word", "name") or token.is_word("TABLE", "LATERAL", "ONLY", "SELECT", "FROM", *_QUERY):
        return None
    begin = reader.index
    streams = _at_stream(reader)
    named = token.kind == "name" or not reader.following.is_symbol("(") or token.is_word(*_CHANGES, "IDENTIFIER")
    if not (named or streams):
        return None
    try:
        found = _streamed_table(reader) if streams else source_table(reader)
    except SqlSyntaxError:
        if token.value.lower() in ("delta", "deltapy") or token.is_word(*_CHANGES):
            raise
        reader.index = begin
        return None
    except UnsupportedOperationError:
        if token.is_word("IDENTIFIER"):
            # over an expression: whatever it names, Spark looks for it
            reader.index = begin
            return None
        raise
    last = reader.previous
    if not (names or isinstance(found, TableChanges) or found.path or found.travels or may_be_managed(found.parts)):
        # a name is a token like any other
        reader.index = begin
        return None
    bound = reader.bound
    end = bound.original_end(last.start + len(last.text))
    return TableSpan(found, bound.original_position(token.start), end, begin, reader.index)
