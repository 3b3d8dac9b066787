"""A text to its statement.

Invariant: every text gives a statement or an error that is a sentence. What Spark has too is Spark's where it is about
a table by name and is not understood here; so a statement of a later Spark passes on.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from delta_pyds.errors import SqlSyntaxError, UnsupportedOperationError, UserError
from delta_pyds.statements import alter, create, describe, insert, maintenance, row_changes
from delta_pyds.statements.arguments import BoundText, bind, ends_value, parameters
from delta_pyds.statements.kinds import (
    PassThrough,
    SetProperties,
    SqlText,
    Statement,
    TableChanges,
    TableReference,
    TableSpan,
    TemporaryView,
    UnsetProperties,
)
from delta_pyds.statements.reader import StatementReader, tokens_of
from delta_pyds.statements.tables import find_tables, target_table

_PATH = re.compile(r"\bdelta(?:py)?\s*\.\s*`", re.IGNORECASE)
_OF_DELTA = ("OPTIMIZE", "VACUUM", "REORG", "RESTORE", "CONVERT", "GENERATE")
Read = Callable[[StatementReader], Statement]

# by the words that a statement begins with; the first that goes decides
_STATEMENTS: tuple[tuple[tuple[str, ...], Read], ...] = (
    (("DELETE", "FROM"), row_changes.delete),
    (("UPDATE",), row_changes.update),
    (("MERGE",), row_changes.merge),
    (("TRUNCATE", "TABLE"), row_changes.truncate),
    (("INSERT",), insert.insert),
    (("CREATE", "TABLE|EXTERNAL"), create.create_table),
    (("CREATE", "OR", "REPLACE", "TABLE"), create.create_table),
    (("REPLACE", "TABLE"), create.create_table),
    (("ALTER", "TABLE"), alter.alter_table),
    (("OPTIMIZE",), maintenance.optimize),
    (("VACUUM",), maintenance.vacuum),
    (("REORG",), maintenance.reorg),
    (("RESTORE",), maintenance.restore),
    (("CONVERT", "TO"), maintenance.convert),
    (("GENERATE",), maintenance.generate),
    (("DESC|DESCRIBE", "HISTORY"), describe.history),
    (("DESC|DESCRIBE", "DETAIL"), describe.detail),
    (("SHOW", "TBLPROPERTIES"), describe.show_properties),
    (("SHOW", "COLUMNS"), describe.show_columns),
)
_VIEWS = (("TEMP|TEMPORARY", "VIEW"), ("GLOBAL", "TEMP|TEMPORARY", "VIEW"))


def parse_statement(text: str, args: Any = None) -> ParsedStatement:
    """What a statement asks for.

    ``args``: values for ``:name`` (a mapping) or ``?`` (a list).
    Raises: SqlSyntaxError with the place in ``text``; UnsupportedOperationError for what the reference has and this
        version has not; UserError for an argument that a command lacks, and for ``${...}`` in a command.
    """
    unbound = BoundText(text, text)
    try:
        tokens = tokens_of(unbound)
    except SqlSyntaxError:
        words = text.split(None, 1)
        if _PATH.search(text) or (words and words[0].upper() in _OF_DELTA):
            raise
        return ParsedStatement(PassThrough("", ()), None)
    bound = bind(text, tokens, args)
    reader = StatementReader(bound)
    try:
        statement = _statement(reader) or pass_through(reader)
    except SqlSyntaxError:
        _check_variables(reader, 0, len(reader.tokens))
        raise
    positional = tuple(start for start, _, key in parameters(tokens) if isinstance(key, int))
    parsed = ParsedStatement(statement, reader, positional)
    if isinstance(statement, Statement) and statement.target.path is not None:
        parsed.check_complete()
    return parsed


class ParsedStatement:
    """A statement and its tokens. ``reader`` is None for what is no SQL to us."""

    def __init__(
        self,
        statement: Statement | PassThrough | TemporaryView,
        reader: StatementReader | None,
        positional: tuple[int, ...] = (),
    ) -> None:
        self.statement = statement
        self._reader = reader
        self._positional = positional

    def tables_in(self, piece: SqlText) -> tuple[TableSpan, ...]:
        """The tables by path in an expression or a query; places are in the piece."""
        if self._reader is None or not piece.last:
            return ()
        start = self._reader.tokens[piece.first].start
        # the piece is of the bound text, and so are these places
        plain = StatementReader(BoundText(self._reader.text, self._reader.text))
        return tuple(
            TableSpan(span.table, span.start - start, span.end - start)
            for span in find_tables(plain, piece.first, piece.last)
        )

    def expression(self, piece: SqlText) -> str:
        """The text of an expression, which Spark must not read as an expression with a name behind it."""
        if self._reader is None or piece.last - piece.first < 2:
            return piece.text
        before, last = self._reader.tokens[piece.last - 2 : piece.last]
        may_be_name = last.kind in ("word", "name") and (ends_value(before) or before.is_word("AS"))
        return f"({piece.text})" if may_be_name else piece.text

    def place_of(self, text: str, position: int) -> int | None:
        """Where in the user's text a place is in one of its expressions, as ``expression`` gave it; None if unknown."""
        if self._reader is None or not text:
            return None
        bound = self._reader.bound
        for piece, shift in ((text, 0), (text[1:-1], 1)):
            start = bound.text.find(piece)
            if start >= 0 and (shift == 0 or (text[0], text[-1]) == ("(", ")")):
                return bound.original_position(min(max(start + position - shift, 0), len(bound.text)))
        return None

    @property
    def positional(self) -> tuple[int, ...]:
        """Where the arguments ``?`` stand in the user's text."""
        return self._positional

    def check_complete(self) -> None:
        """Raises: UserError for an argument without a value, and for a variable of the session."""
        if self._reader is not None:
            check_complete(self._reader, 0, len(self._reader.tokens))

    def as_pass_through(self) -> PassThrough:
        """The same for Spark to run: a statement about a table by name that is not ours."""
        return PassThrough("", ()) if self._reader is None else pass_through(self._reader)


def _statement(reader: StatementReader) -> Statement | TemporaryView | None:
    """The statement of Delta; None for what is Spark's."""
    if reader.at("CREATE") and any(reader.at("CREATE", *w) or reader.at("CREATE", "OR", "REPLACE", *w) for w in _VIEWS):
        return _view(reader)
    if reader.at("COMMENT", "ON", "TABLE"):
        return _tried(reader, _comment)
    for words, read in _STATEMENTS:
        if reader.at(*words):
            return _tried(reader, read)
    if reader.token.is_word("OPTIMIZE", "VACUUM", "RESTORE", "CONVERT"):
        reader.fail("this statement is not known")
    return None


def _tried(reader: StatementReader, read: Read) -> Statement | None:
    of_delta = reader.token.is_word(*_OF_DELTA)
    try:
        return read(reader)
    except (SqlSyntaxError, UnsupportedOperationError):
        if of_delta or (reader.target is not None and reader.target.path is not None):
            raise
        return None


def _view(reader: StatementReader) -> TemporaryView | None:
    """A view over tables by path; any other is Spark's."""
    try:
        found = create.temporary_view(reader)
    except SqlSyntaxError:
        reader.index = 0
        return None
    return found if find_tables(reader, found.query.first, found.query.last) else None


def _comment(reader: StatementReader) -> SetProperties | UnsetProperties:
    """``COMMENT ON TABLE t IS 'text' | NULL``"""
    reader.expect("COMMENT", "ON", "TABLE")
    target = target_table(reader)
    reader.expect("IS")
    removed = reader.accept("NULL")
    text = "" if removed else reader.string()
    reader.expect_end()
    if removed:
        return UnsetProperties(target, ("comment",), True)
    return SetProperties(target, {"comment": text})


def pass_through(reader: StatementReader) -> PassThrough:
    """Spark's own statement, with the tables by path in it.

    Raises: as ``parse_statement`` for what stands in the name of a table.
    """
    reader.index = 0
    tables = find_tables(reader)
    for span in tables:
        _check_plain(reader, span)
        _check_read(reader, span)
    words = [token.text.upper() for token in reader.tokens[:4] if token.kind == "word"]
    return PassThrough(" ".join(words), tables, _changed_by_name(reader))


def _changed_by_name(reader: StatementReader) -> TableReference | None:
    return reader.target if reader.target is not None and reader.target.path is None else None


def _check_plain(reader: StatementReader, span: TableSpan) -> None:
    original = reader.bound.original[span.start : span.end]
    if "${" in original:
        raise _variable(original)
    check_complete(reader, span.first, span.last)


def _check_read(reader: StatementReader, span: TableSpan) -> None:
    """Raises: UnsupportedOperationError for a table that is changed, by a command that is not the first word."""
    words = [token.text.upper() for token in reader.tokens[max(span.first - 2, 0) : span.first]]
    if not words or isinstance(span.table, TableChanges) or span.table.path is None:
        return
    if words[-1] in ("INTO", "OVERWRITE", "UPDATE") or words in (["DELETE", "FROM"], ["INTO", "TABLE"]):
        reader.refuse(
            f"a command about {span.table.text} behind WITH, FROM or EXPLAIN",
            "Begin the statement with the command; a WITH may stand in its query.",
        )


def check_complete(reader: StatementReader, first: int, last: int) -> None:
    """Raises: UserError for an argument without a value, and for a variable of the session."""
    tokens = reader.tokens[first:last]
    for start, _, key in parameters([*tokens, reader.tokens[-1]]):
        name = f":{key}" if isinstance(key, str) else "?"
        place = reader.bound.original_position(start)
        raise UserError(
            f"the argument {name} at position {place} of the statement has no value, or one that a command cannot "
            "take: give a number, a text, a date, a timestamp, bytes, a boolean or None in args.",
            code="UNBOUND_SQL_PARAMETER",
            argument=name,
        )
    _check_variables(reader, first, last)


def _check_variables(reader: StatementReader, first: int, last: int) -> None:
    tokens = reader.tokens[first:last]
    for token, following in pairwise([*tokens, reader.tokens[-1]]):
        if token.is_symbol("$") and following.is_symbol("{"):
            raise _variable(reader.bound.original[reader.bound.original_position(token.start) :][:100])
        if token.kind in ("name", "string") and "${" in token.text:
            raise _variable(token.text)


def _variable(text: str) -> UserError:
    return UserError(
        f"the statement holds a variable: {text!r:.200}. Spark puts its value there before it parses the text, and a "
        "command of Delta would take the text as it stands: give the value in args.",
        code="DELTA_UNSUPPORTED_VARIABLE_IN_COMMAND",
    )
