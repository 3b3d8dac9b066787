"""The words before the verb of a command: ``WITH name AS (...)``, ``FROM t``, ``EXPLAIN``.

Invariant: a WITH moves into the query of its INSERT or MERGE, which means the same. Every position in the statement has
a position in the user's text. Other commands are refused by name if the table is a Delta table.
"""

from __future__ import annotations

from typing import TypeAlias

from delta_pyds.errors import SqlSyntaxError, UnsupportedOperationError
from delta_pyds.statements import insert
from delta_pyds.statements.arguments import BoundText
from delta_pyds.statements.kinds import TableReference
from delta_pyds.statements.reader import StatementReader
from delta_pyds.statements.spark_statements import EXPLAINED
from delta_pyds.statements.tables import source_table, table

# the start and end of a piece of the text, or new text
_Part: TypeAlias = "tuple[int, int] | str"


def with_in_query(reader: StatementReader) -> StatementReader | None:
    """The statement with its WITH in the query; None for a query, and for a statement that begins with another word.

    For a refused command, the reader then has the table and the reason for the refusal.
    Raises: the error of an INSERT into a table by path.
    """
    if not reader.token.is_word("WITH", "FROM"):
        return None
    try:
        if reader.token.is_word("FROM"):
            _refuse_from(reader)
            return None
        _step_over_with(reader)
        if reader.at("UPDATE") or reader.at("DELETE", "FROM"):
            _refuse(reader, "Put it into the query of the condition, or use MERGE.")
        elif reader.token.is_word("INSERT", "MERGE"):
            begin = reader.token.start
            parts = _insert(reader, begin) if reader.token.is_word("INSERT") else _merge(reader, begin)
            return None if parts is None else StatementReader(_rearranged(reader.bound, parts))
    except (SqlSyntaxError, UnsupportedOperationError) as error:
        # any other error comes again from the parser that reads the statement as written
        if reader.failure is error and reader.target is not None and reader.target.path is not None:
            raise
    finally:
        reader.index = 0
    return None


def explained(reader: StatementReader) -> StatementReader | None:
    """The statement after EXPLAIN; None for another statement."""
    if not reader.at("EXPLAIN"):
        return None
    index = 2 if reader.following.is_word(*EXPLAINED) else 1
    if reader.tokens[index].kind == "end":
        return None
    return StatementReader(_rearranged(reader.bound, [(reader.tokens[index].start, len(reader.text))]))


def _step_over_with(reader: StatementReader) -> None:
    reader.expect("WITH")
    reader.accept("RECURSIVE")
    while True:
        reader.identifier()
        while True:
            if reader.token.is_symbol("("):
                _step_over_parentheses(reader)
            elif reader.accept("MAX", "RECURSION", "LEVEL"):
                reader.take()
            elif not reader.accept("AS"):
                break
        if not reader.accept(","):
            return


def _step_over_parentheses(reader: StatementReader) -> None:
    closing = reader.scopes.closing(reader.index)
    if closing is None:
        reader.index = len(reader.tokens) - 1
        reader.fail("a parenthesis is not closed")
    reader.index = closing + 1


def _refuse_from(reader: StatementReader) -> None:
    """Refuse ``FROM t INSERT INTO u SELECT ...``, in which Spark accepts several INSERTs."""
    for index in reader.scopes.own_tokens(0, len(reader.tokens) - 1):
        reader.index = index
        if reader.at("INSERT", "INTO|OVERWRITE"):
            _refuse(reader, "Write INSERT INTO ... SELECT ... FROM; write several INSERTs as several statements.")
            return


def _refuse(reader: StatementReader, instead: str) -> None:
    """Refuse the command about the table after the next verb."""
    what = f"{reader.tokens[0].text.upper()} before {reader.take().text.upper()}"
    reader.accept("FROM|INTO|OVERWRITE")
    reader.accept("TABLE")
    reader.target = table(reader)
    reader.failure = UnsupportedOperationError(
        f"{what} is not supported by this version of delta_pyds. {instead}", feature=what
    )


def _insert(reader: StatementReader, begin: int) -> list[_Part]:
    text = reader.text
    inner = StatementReader(_rearranged(reader.bound, [(begin, len(text))]))
    try:
        query = insert.insert(inner).query
        inner.expect_end()
    except (SqlSyntaxError, UnsupportedOperationError) as error:
        reader.target, reader.failure = inner.target, error
        raise
    first = begin + inner.tokens[query.first].start
    last = first + len(query.text)
    return [(begin, first), *_query(reader, begin, first, last), (last, len(text))]


def _query(reader: StatementReader, begin: int, first: int, last: int) -> list[_Part]:
    """The query between two positions, with the WITH of the statement before its own."""
    start = reader.tokens[0].start
    if reader.text[first : first + 4].upper() == "WITH":
        return [(start, begin), "(", (first, last), ")"]
    return [(start, begin), (first, last)]


def _merge(reader: StatementReader, begin: int) -> list[_Part] | None:
    """The parts of the statement; None for a source in a schema.

    Such a source is not a name of WITH, and its whole name may qualify columns.
    """
    text = reader.text
    verb = reader.index
    for index in reader.scopes.own_tokens(verb, len(reader.tokens)):
        reader.index = index
        if reader.token.is_word("USING"):
            break
    reader.expect("USING")
    first = reader.token.start
    if reader.token.is_symbol("("):
        _step_over_parentheses(reader)
        inner = first + 1
        last = reader.previous.start
        while text[inner : inner + 1].isspace():
            inner += 1
        return [(begin, inner), *_query(reader, begin, inner, last), (last, len(text))]
    source = source_table(reader)
    named = reader.previous
    last = named.start + len(named.text)
    called = reader.token.kind == "name" or (reader.token.kind == "word" and not reader.token.is_word("ON"))
    if not called and not (isinstance(source, TableReference) and len(source.parts) == 1):
        reader.index = verb
        _refuse(reader, "Put it into the query of the source.")
        return None
    alias: list[_Part] = [] if called else [" AS ", (named.start, last)]
    start = reader.tokens[0].start
    return [(begin, first), "(", (start, begin), "SELECT * FROM ", (first, last), ")", *alias, (last, len(text))]


def _rearranged(bound: BoundText, parts: list[_Part]) -> BoundText:
    """A text of the given parts. New text has the position of the part after it."""
    pieces: list[str] = []
    edits: list[tuple[int, int, int, int]] = []
    length = 0
    for number, part in enumerate(parts):
        if isinstance(part, str):
            following = next((p[0] for p in parts[number:] if not isinstance(p, str)), len(bound.text))
            edits.append((length, len(part), bound.original_position(following), 0))
            pieces.append(part)
            length += len(part)
            continue
        start, end = part
        edits.append((length, 0, bound.original_position(start), 0))
        edits += [
            (length + at - start, size, there, there_size)
            for at, size, there, there_size in bound.edits
            if start <= at < end
        ]
        pieces.append(bound.text[start:end])
        length += end - start
    return BoundText("".join(pieces), bound.original, tuple(edits))
