"""Spark's own statements: the tables that they read by path, and the tables that they change by name.

Invariant: a table by path is passed on to Spark only if Spark certainly only reads it. Otherwise Spark would write
files into the table without an entry in the log.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise

from delta_pyds.errors import SqlSyntaxError, UnsupportedOperationError, UserError
from delta_pyds.statements import pieces
from delta_pyds.statements.arguments import BoundText
from delta_pyds.statements.completeness import check_complete, variable_error
from delta_pyds.statements.kinds import Aggregate, PassThrough, SqlText, TableChanges, TableReference, TableSpan
from delta_pyds.statements.reader import StatementReader
from delta_pyds.statements.tables import find_plain_reads, find_tables, table

# the first words of statements that change tables: Spark refuses most of them for our tables, with its own messages
_CHANGES = ("ALTER", "DELETE", "UPDATE", "MERGE", "TRUNCATE", "REPLACE")
_TAKES_FRAMES = (
    "SELECT", "WITH", "FROM", "VALUES", "TABLE", "EXPLAIN", "INSERT", "CREATE TABLE", "CREATE OR REPLACE TABLE",
    "REPLACE TABLE", "MERGE", "UPDATE", "DELETE", "MAP", "REDUCE", "SET VAR", "SET VARIABLE", "",
)  # fmt: skip
EXPLAINED = ("LOGICAL", "FORMATTED", "EXTENDED", "CODEGEN", "COST")
_QUERIES = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "INSERT")


def pass_through(reader: StatementReader) -> PassThrough:
    """Spark's own statement, with the tables by path in it.

    Raises: SqlSyntaxError and UserError for an invalid name of a table; UnsupportedOperationError for a table that
        would be written.
    """
    reader.index = 0
    _check_dropped(reader)
    tables = find_tables(reader)
    for span in tables:
        original = reader.bound.original[span.start : span.end]
        if "${" in original:
            raise variable_error(original)
        check_complete(reader, span.first, span.last)
        check_read(reader, span)
    words = [token.text.upper() for token in reader.tokens[:4] if token.kind == "word"]
    changed, immediate = _changes(reader)
    verb = " ".join(words)
    named = _named(reader) if _only_reads_names(verb) else ()
    aggregates = _aggregates_of(reader, (*tables, *named))
    return PassThrough(verb, tables, changed, immediate, aggregates, _changed_views(reader), named)


def takes_frames(verb: str) -> bool:
    """Whether the statement only reads a query or a table, so that a DataFrame can replace it."""
    if verb.startswith(("DESC ", "DESCRIBE ")):
        return not {"EXTENDED", "FORMATTED"} & set(verb.split(" "))
    return any(verb == taken or verb.startswith(f"{taken} ") for taken in _TAKES_FRAMES)


def _only_reads_names(verb: str) -> bool:
    """Whether the statement only reads its names, and stores no text that contains them."""
    if verb.startswith("EXPLAIN "):
        words = [word for word in verb.split(" ")[1:] if word not in EXPLAINED]
        return bool(words) and words[0] in _QUERIES
    return takes_frames(verb) and not verb.startswith("DESC")


def _named(reader: StatementReader) -> tuple[TableSpan, ...]:
    try:
        return find_plain_reads(reader)
    except (SqlSyntaxError, UnsupportedOperationError):
        return ()  # Spark raises the error


def check_read(reader: StatementReader, span: TableSpan) -> None:
    """Raises: UnsupportedOperationError for a table by path that Spark might change."""
    if isinstance(span.table, TableChanges) or span.table.path is None or span.role != "other":
        return
    reader.refuse(
        f"a command about {span.table.text} after WITH, FROM or EXPLAIN, or one that only Spark knows,",
        "Begin the statement with the command of Delta; its query may have a WITH.",
    )


def _check_dropped(reader: StatementReader) -> None:
    """Raises: UnsupportedOperationError for a table by path, and for a quoted name in a database called delta.

    Spark would look for a table in this database, and with IF EXISTS raise no error if it does not exist.
    """
    if not reader.accept("DROP", "TABLE|VIEW"):
        return
    reader.accept("IF", "EXISTS")
    try:
        found = table(reader)
    except (SqlSyntaxError, UnsupportedOperationError):
        reader.index = 0
        return
    in_backticks = reader.previous.kind == "name"
    reader.index = 0
    is_path = found.path is not None
    if is_path or (in_backticks and len(found.parts) == 2 and found.parts[0].lower() in ("delta", "deltapy")):
        raise UnsupportedOperationError(
            f"DROP of {found.text!r:.200}, a table by path, is not supported by this version of delta_pyds. Delete its "
            "directory. To drop a table in a database, write its name without backticks.",
            code="DELTA_OPERATION_NOT_ALLOWED",
        )


# --- queries for the number of rows, minima and maxima of one whole table


def _aggregates_of(reader: StatementReader, tables: tuple[TableSpan, ...]) -> tuple[Aggregate, ...]:
    """The aggregates of ``SELECT count(*), min(a), max(b) FROM t``; empty for any other statement."""
    if len(tables) != 1 or not isinstance(tables[0].table, TableReference) or not tables[0].table.is_one_version:
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
        if reader.accept("AS") or reader.token.is_name:
            reader.identifier()
        reader.expect_end()
    except SqlSyntaxError:
        return ()
    finally:
        reader.index = 0
    return found


def _aggregate(reader: StatementReader) -> Aggregate:
    """Raises: SqlSyntaxError for any other selected expression."""
    reader.expect("COUNT|MIN|MAX")
    kind = reader.previous.text.lower()
    reader.expect("(")
    column = None
    if kind == "count":
        # count of a constant counts all rows, like a star
        if reader.token.kind == "number":
            reader.take()
        else:
            reader.expect("*")
    else:
        column = reader.identifier()
    reader.expect(")")
    if reader.accept("AS") or (reader.token.is_name and not reader.at("FROM")):
        reader.identifier()
    return Aggregate(kind, column)


# --- tables by name


def _changes(reader: StatementReader) -> tuple[tuple[TableReference | SqlText, ...], tuple[SqlText, ...]]:
    """The tables that the statement changes by name, and the expressions whose values it runs as statements."""
    changed: list[TableReference | SqlText] = []
    immediate: list[SqlText] = []
    target = reader.target
    if target is not None and target.path is None and reader.tokens[0].is_word(*_CHANGES):
        changed.append(target)
    # a script has several statements
    last = len(reader.tokens) if reader.tokens[0].is_word("BEGIN") else 1
    if reader.tokens[0].is_word(*_CHANGES, "COMMENT", "CREATE", "DROP") and _has_variable(reader):
        raise variable_error(reader.bound.original)
    index = 0
    while index < last:
        reader.index = index
        # Spark raises the error
        with suppress(SqlSyntaxError):
            _change_here(reader, changed, immediate)
        index = max(index + 1, reader.index)
    reader.index = 0
    return tuple(changed), tuple(immediate)


def _changed_views(reader: StatementReader) -> tuple[TableReference, ...]:
    """The views that the statement, or one of a script, changes or replaces. A renamed view is not among them."""
    found: list[TableReference] = []
    last = len(reader.tokens) if reader.tokens[0].is_word("BEGIN") else 1
    for index in range(last):
        reader.index = index
        if not (reader.accept("CREATE", "OR", "REPLACE", "VIEW") or reader.accept("ALTER", "VIEW")):
            continue
        with suppress(SqlSyntaxError, UnsupportedOperationError):
            name = table(reader)
            if name.path is None and not reader.at("RENAME"):
                found.append(name)
    reader.index = 0
    return tuple(found)


def made_view(reader: StatementReader) -> TableReference | None:
    """The catalog view that this statement creates or replaces; None for other statements."""
    reader.index = 0
    try:
        if not reader.accept("CREATE"):
            return None
        reader.accept("OR", "REPLACE")
        if not reader.accept("VIEW"):
            return None
        reader.accept("IF", "NOT", "EXISTS")
        found = table(reader)
        return found if found.path is None else None
    except (SqlSyntaxError, UnsupportedOperationError):
        return None
    finally:
        reader.index = 0


def _has_variable(reader: StatementReader) -> bool:
    """Whether the words that name the table include a variable, outside of strings."""
    return any(a.is_symbol("$") and b.is_symbol("{") for a, b in pairwise(reader.tokens[:12]))


def _change_here(reader: StatementReader, changed: list[TableReference | SqlText], immediate: list[SqlText]) -> None:
    if reader.accept("EXECUTE", "IMMEDIATE"):
        immediate.append(pieces.expression(reader, pieces.at_word("INTO", "USING")))
        return
    of_column = reader.accept("COMMENT", "ON", "COLUMN")
    if not (
        of_column
        or _accept_load(reader)
        or reader.accept("ALTER", "TABLE")
        or reader.accept("COMMENT", "ON", "TABLE")
        or reader.accept("CREATE", "OR", "REPLACE", "TABLE")
        or reader.accept("REPLACE", "TABLE")
    ):
        return
    first = reader.index
    try:
        found = table(reader)
    except UnsupportedOperationError:
        reader.index = first + 2
        changed.append(pieces.expression(reader))
        return
    # the table's name comes before the column's; a field of a struct has more names
    for end in range(len(found.parts) - 1, 0, -1) if of_column else (len(found.parts),):
        reference = TableReference(found.parts[:end], found.text, found.position)
        if reference.path is None and reference not in changed:
            changed.append(reference)


def _accept_load(reader: StatementReader) -> bool:
    if not reader.accept("LOAD", "DATA"):
        return False
    reader.accept("LOCAL")
    reader.expect("INPATH")
    reader.take()
    reader.accept("OVERWRITE")
    reader.expect("INTO")
    reader.expect("TABLE")
    return True


def listed_in(reader: StatementReader) -> tuple[str, ...] | None:
    """The schema after IN or FROM in SHOW TABLES, SHOW TABLE EXTENDED or SHOW VIEWS; None if not given."""
    reader.index = 0
    reader.accept("SHOW", "TABLES|VIEWS") or reader.accept("SHOW", "TABLE", "EXTENDED")
    if not reader.accept("IN|FROM"):
        return None
    if reader.accept("IDENTIFIER", "("):
        return name_of(reader.token.value) if reader.token.kind == "string" else None
    try:
        return reader.path()
    except SqlSyntaxError:
        return None  # Spark raises the error


def name_of(text: str) -> tuple[str, ...] | None:
    """The parts of a name given to IDENTIFIER; None for an invalid name."""
    try:
        reader = StatementReader(BoundText(text, text), any_letters=True)
        parts = reader.path()
        reader.expect_end()
    except (SqlSyntaxError, UserError):
        return None
    return parts
