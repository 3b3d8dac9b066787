"""The parser of a statement.

Invariant: every text gives a statement, or an error with a sentence. A statement about a table by name that this parser
does not know is passed on to Spark, because a later Spark may support it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import pairwise
from typing import Any, TypeVar

from delta_pyds.errors import DeltaError, SqlSyntaxError, UnsupportedOperationError
from delta_pyds.statements import (
    alter,
    caching,
    create,
    describe,
    insert,
    kinds,
    maintenance,
    pieces,
    row_changes,
)
from delta_pyds.statements.arguments import BoundText, bind, parameters
from delta_pyds.statements.completeness import check_complete, check_variables
from delta_pyds.statements.file_metadata import asks_for_files, asks_for_row_ids, stars
from delta_pyds.statements.leading_words import explained, with_in_query
from delta_pyds.statements.reader import StatementReader, tokens_of
from delta_pyds.statements.spark_statements import check_read, listed_in, made_view, pass_through
from delta_pyds.statements.tables import column_of_table, find_names, find_plain_reads, find_tables, target_table

_PATH = re.compile(r"\bdelta(?:py)?`?\s*\.\s*`", re.IGNORECASE)
# around a text, so that Spark refuses anything but a query
QUERY_ALONE = ("SELECT * FROM (", ")")
# We never pass on such a statement unread: Spark might change only its catalog, or raise no error although it should.
_GUARDED = ("ALTER", "BEGIN", "COMMENT", "CREATE", "DROP", "EXECUTE", "REPLACE")
_COMMANDS = ("DELETE", "UPDATE", "MERGE", "INSERT", "TRUNCATE", "ALTER")
_OF_DELTA = ("OPTIMIZE", "VACUUM", "REORG", "RESTORE", "CONVERT", "GENERATE")
# Spark has none of these statements; Convert takes the name of a directory of Parquet files
OF_DELTA_ALONE = (
    kinds.Clone, kinds.Optimize, kinds.Purge, kinds.Vacuum, kinds.Restore, kinds.Convert, kinds.Generate,
    kinds.DropFeature, kinds.SyncIdentity, kinds.DescribeHistory, kinds.DescribeDetail,
)  # fmt: skip
Read = Callable[[StatementReader], kinds.Statement | None]
V = TypeVar("V", kinds.TemporaryView, kinds.CachedView)

# by the first words of a statement; the first match decides
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
    (("DROP", "TABLE|VIEW"), alter.drop_table),
    (("OPTIMIZE",), maintenance.optimize),
    (("VACUUM",), maintenance.vacuum),
    (("REORG",), maintenance.reorg),
    (("RESTORE",), maintenance.restore),
    (("CONVERT", "TO"), maintenance.convert),
    (("GENERATE",), maintenance.generate),
    (("DESC|DESCRIBE", "HISTORY"), describe.history),
    (("DESC|DESCRIBE", "DETAIL"), describe.detail),
    (("DESC|DESCRIBE",), describe.describe),
    (("SHOW", "TBLPROPERTIES"), describe.show_properties),
    (("SHOW", "COLUMNS"), describe.show_columns),
    (("SHOW", "PARTITIONS"), describe.show_partitions),
    (("SHOW", "CREATE", "TABLE"), describe.show_create),
    (("ANALYZE", "TABLE"), maintenance.analyze),
    (("MSCK",), maintenance.repair),
    (("UNCACHE", "TABLE"), caching.uncache_table),
    (("REFRESH", "TABLE"), caching.refresh),
)
_VIEWS = (("TEMP|TEMPORARY", "VIEW"), ("GLOBAL", "TEMP|TEMPORARY", "VIEW"))


def parse_statement(text: str, args: Any = None) -> ParsedStatement:
    """Parse a statement.

    ``args``: values for ``:name`` (a mapping) or ``?`` (a list).
    Raises: SqlSyntaxError with the position in ``text``; UnsupportedOperationError for features of the reference that
        this version does not support; UserError for a missing argument of a command, and for ``${...}`` in a command.
    """
    unbound = BoundText(text, text)
    try:
        tokens = tokens_of(unbound)
    except SqlSyntaxError:
        words = text.split(None, 1)
        if _PATH.search(text) or (words and words[0].upper() in (*_OF_DELTA, *_GUARDED)):
            raise
        unread = StatementReader(BoundText("", ""))
        return ParsedStatement(kinds.PassThrough("", ()), unread, unread)
    bound = bind(text, tokens, args)
    whole = StatementReader(bound)
    reader = with_in_query(whole) or whole
    try:
        found = _statement(reader)
        if found is None and reader is not whole:
            whole.target, whole.failure = reader.target, reader.failure
        statement = found or pass_through(whole)
    except SqlSyntaxError:
        check_variables(reader, 0, len(reader.tokens))
        raise
    positional = tuple(start for start, _, key in parameters(tokens) if isinstance(key, int))
    parsed = ParsedStatement(statement, whole if found is None else reader, whole, positional)
    if isinstance(statement, kinds.Statement) and statement.target.path is not None:
        parsed.check_complete()
    return parsed


def begins_as_of_delta(text: str) -> bool:
    """Whether a statement begins with a word that begins no statement of Spark."""
    try:
        return tokens_of(BoundText(text, text))[0].is_word(*_OF_DELTA)
    except SqlSyntaxError:
        return text.lstrip().upper().startswith(_OF_DELTA)


@dataclass
class ParsedStatement:
    """A statement and its tokens.

    ``reader``: without tokens for a text that is not SQL. ``whole``: the tokens as written, before a WITH was moved.
    ``positional``: the positions of the arguments ``?`` in the user's text.
    """

    statement: kinds.Statement | kinds.PassThrough | kinds.TemporaryView | kinds.CachedView
    reader: StatementReader
    whole: StatementReader
    positional: tuple[int, ...] = ()

    @property
    def refused(self) -> tuple[kinds.TableReference, DeltaError] | None:
        """The table by name of Spark's own statement, and the reason why it is not a statement of Delta."""
        reader = self.reader
        if reader.target is None or reader.failure is None:
            return None
        return reader.target, reader.failure

    @property
    def refused_provider(self) -> str | None:
        """The format that CREATE TABLE names, if it is not a statement of Delta."""
        tokens = self.reader.tokens
        if self.refused is None or not tokens[0].is_word("CREATE", "REPLACE"):
            return None
        return next((after.value for token, after in pairwise(tokens) if token.is_word("USING")), None)

    def tables_in(
        self, piece: kinds.SqlText, is_ours: Callable[[kinds.TableReference], bool] | None = None
    ) -> tuple[kinds.TableSpan, ...]:
        """The Delta tables in an expression or a query, with their positions in the piece.

        ``is_ours``: whether a table by name, at a version or a time, is a Delta table; by default it is not.
        Raises: UnsupportedOperationError for a table that may be written there.
        """
        if not piece.last:
            return ()
        found = []
        for span in find_tables(self.reader, piece.first, piece.last):
            if _is_ours(span) or (is_ours is not None and _named(span, is_ours)):
                check_read(self.reader, span)
                found.append(span)
        return self._placed(found, piece)

    def reads_in(
        self,
        piece: kinds.SqlText,
        is_ours: Callable[[kinds.TableReference], bool],
        is_read: Callable[[kinds.TableReference], bool],
    ) -> tuple[kinds.TableSpan, ...]:
        """As ``tables_in``, and the names without a version that can only mean a table, if ``is_read`` accepts them."""
        if not piece.last:
            return ()
        tables = self.tables_in(piece, is_ours)
        plain = find_plain_reads(self.reader, piece.first, piece.last)
        named = self._placed((span for span in plain if _named(span, is_read)), piece)
        return tuple(sorted((*tables, *named), key=lambda span: span.start))

    def calls_columns_by_schema(self, table: kinds.TableReference) -> bool:
        """Whether columns may be qualified by more of the table's name than its last part."""
        return table.parts[-1].lower() in self.reader.scopes.qualifiers

    def _placed(self, spans: Iterable[kinds.TableSpan], piece: kinds.SqlText) -> tuple[kinds.TableSpan, ...]:
        """The tables with positions counted from the start of the piece, in the text with bound arguments."""
        tokens = self.reader.tokens
        start = tokens[piece.first].start
        found = []
        for span in spans:
            final = tokens[span.last - 1]
            first, last = tokens[span.first].start - start, final.start + len(final.text) - start
            found.append(replace(span, start=first, end=last))
        return tuple(found)

    def names_in(self, piece: kinds.SqlText | None) -> tuple[kinds.TableReference, ...]:
        """The tables without a path that a query, or the whole statement, names."""
        if piece is not None and not piece.last:
            return ()
        try:
            return find_names(self.reader) if piece is None else find_names(self.reader, piece.first, piece.last)
        except (SqlSyntaxError, UnsupportedOperationError):
            return ()  # the error comes when the statement runs

    @property
    def listed_in(self) -> tuple[str, ...] | None:
        """The schema whose tables a statement lists, if it names one."""
        return listed_in(self.reader)

    @property
    def made_view(self) -> kinds.TableReference | None:
        """The catalog view that this statement creates; None for other statements."""
        return made_view(self.reader)

    @property
    def asks_for_files(self) -> bool:
        """Whether ``_metadata`` is named."""
        return asks_for_files(self.reader)

    @property
    def asks_for_row_ids(self) -> bool:
        """Whether the statement names ``_metadata`` only for row ids."""
        return asks_for_row_ids(self.reader)

    def stars_in(self, piece: kinds.SqlText | None) -> tuple[int, ...]:
        """The ends of stars that would include ``_metadata``, in a query or in the user's text.

        Raises: UnsupportedOperationError if that is unknown.
        """
        if piece is not None and not piece.last:
            return ()
        if piece is None:
            return tuple(self.reader.bound.original_end(star.start + 1) for star in stars(self.reader))
        start = self.reader.tokens[piece.first].start
        return tuple(star.start + 1 - start for star in stars(self.reader, piece.first, piece.last))

    def expression(self, piece: kinds.SqlText) -> str:
        """The text of an expression, in parentheses if Spark might parse its end as an alias."""
        if piece.last - piece.first < 2:
            return piece.text
        may_be_named = pieces.may_be_named(self.reader, piece.first, piece.last)
        return f"({piece.text})" if may_be_named else piece.text

    def position_of(self, text: str, position: int) -> int | None:
        """The position in the user's text of a position in one of its pieces, as Spark got it; None if unknown."""
        if not text:
            return None
        bound = self.reader.bound
        for before, after in (("", ""), ("(", ")"), QUERY_ALONE):
            if not (text.startswith(before) and text.endswith(after)):
                continue
            start = bound.text.find(text[len(before) : len(text) - len(after)])
            if start >= 0:
                return bound.original_position(min(max(start + position - len(before), 0), len(bound.text)))
        return None

    def position_of_fragment(self, fragment: str, start: int) -> int | None:
        """The position in the user's text of a fragment of a piece that Spark quotes; None if it is uncertain.

        ``start``: the fragment's position in the piece that Spark got, in which tables may have other names.
        """
        if not fragment:
            return None
        bound, starts = self.reader.bound, [token.start for token in self.reader.tokens]
        found = [start for start in starts if bound.text.startswith(fragment, start)]
        if len(found) > 1:
            begins: set[int] = set()
            for piece in _pieces_of(self.statement):
                if piece.last:
                    first = starts[piece.first]
                    shifted = {first + start - len(before) for before in self._prefixes(piece)}
                    begins |= {begin for begin in shifted if first <= begin < first + len(piece.text)}
            found = [begin for begin in found if begin in begins]
        return bound.original_position(found[0]) if len(found) == 1 else None

    def _prefixes(self, piece: kinds.SqlText) -> tuple[str, ...]:
        """The texts that Spark may get before the piece."""
        return ("(",) if self.expression(piece) != piece.text else ("", QUERY_ALONE[0])

    def check_complete(self) -> None:
        """Raises: UserError for an argument without a value, and for a variable of the session."""
        check_complete(self.reader, 0, len(self.reader.tokens))

    def as_pass_through(self) -> kinds.PassThrough:
        """The statement for Spark to run, if its table by name is not a Delta table."""
        return pass_through(self.whole)


def _statement(reader: StatementReader) -> kinds.Statement | kinds.TemporaryView | kinds.CachedView | None:
    """The statement of Delta; None for a statement of Spark."""
    if reader.at("CREATE") and any(reader.at("CREATE", *w) or reader.at("CREATE", "OR", "REPLACE", *w) for w in _VIEWS):
        return _view(reader, create.temporary_view)
    if reader.at("CACHE", "TABLE") or reader.at("CACHE", "LAZY", "TABLE"):
        return _view(reader, caching.cached_view) or _tried(reader, caching.cache_table)
    if reader.at("COMMENT", "ON", "TABLE|COLUMN"):
        return _tried(reader, _comment)
    if reader.at("EXPLAIN"):
        return _explain(reader)
    for words, read in _STATEMENTS:
        if reader.at(*words):
            return _tried(reader, read)
    if reader.token.is_word("BEGIN") and _names_ours(reader):
        reader.refuse("CREATE TABLE ... USING deltapy within BEGIN ... END", "Run it as a statement of its own.")
    if reader.token.is_word("OPTIMIZE", "VACUUM", "RESTORE", "CONVERT"):
        reader.fail("this statement is unknown")
    return None


def _explain(reader: StatementReader) -> kinds.Explain | None:
    """EXPLAIN of a command of Delta; Spark explains every other statement."""
    command = explained(reader)
    if command is None:
        return None
    command = with_in_query(command) or command
    found = _statement(command) if command.token.is_word(*_COMMANDS) else None
    if not isinstance(found, kinds.Statement) or isinstance(found, kinds.Create):
        return None
    reader.target = found.target
    return kinds.Explain(found.target, command.tokens[0].text.upper(), command.text.strip())


def _tried(reader: StatementReader, read: Read) -> kinds.Statement | None:
    # Spark would store the name of our format alone, and lose the other clauses of CREATE TABLE
    creates_ours = reader.token.is_word("CREATE", "REPLACE") and _names_ours(reader)
    of_delta = creates_ours or reader.token.is_word(*_OF_DELTA)
    try:
        found = read(reader)
        if found is not None:
            reader.expect_end(of_delta=isinstance(found, OF_DELTA_ALONE))
        return found
    except (SqlSyntaxError, UnsupportedOperationError) as error:
        if of_delta or (reader.target is not None and reader.target.path is not None):
            raise
        reader.failure = error
        return None


def _names_ours(reader: StatementReader) -> bool:
    return any(
        token.is_word("USING") and following.value.lower() == "deltapy" for token, following in pairwise(reader.tokens)
    )


def _view(reader: StatementReader, read: Callable[[StatementReader], V]) -> V | None:
    """A view over tables that may be Delta tables; any other view is Spark's."""
    try:
        found = read(reader)
        reader.expect_end()
    except (SqlSyntaxError, UnsupportedOperationError):
        reader.index = 0
        return None
    return found if find_tables(reader, found.query.first, found.query.last) else None


def _is_ours(span: kinds.TableSpan) -> bool:
    """Whether it is a table by path, or the changes of a table. A table by name may have another format."""
    return isinstance(span.table, kinds.TableChanges) or span.table.path is not None


def _named(span: kinds.TableSpan, is_ours: Callable[[kinds.TableReference], bool]) -> bool:
    return isinstance(span.table, kinds.TableReference) and is_ours(span.table)


def _comment(reader: StatementReader) -> kinds.SetProperties | kinds.UnsetProperties | kinds.AlterColumn:
    """``COMMENT ON TABLE t IS 'text' | NULL``, ``COMMENT ON COLUMN t.c IS 'text' | NULL``"""
    reader.expect("COMMENT", "ON", "TABLE|COLUMN")
    column = None
    if reader.previous.is_word("COLUMN"):
        target, column = column_of_table(reader)
    else:
        target = target_table(reader)
    reader.expect("IS")
    removed = reader.accept("NULL")
    text = "" if removed else reader.string()
    if column is not None:
        return kinds.AlterColumn(target, column, comment=text)
    if removed:
        return kinds.UnsetProperties(target, ("comment",), True)
    return kinds.SetProperties(target, {"comment": text})


def _pieces_of(value: object) -> Iterator[kinds.SqlText]:
    """The expressions and queries of a statement."""
    if isinstance(value, kinds.SqlText):
        yield value
    elif isinstance(value, (tuple, list)):
        for one in value:
            yield from _pieces_of(one)
    elif is_dataclass(value):
        for one in fields(value):
            yield from _pieces_of(getattr(value, one.name))
