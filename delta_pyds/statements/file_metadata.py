"""``_metadata``: the hidden column that says of each row which file it is in, where a query asks for it.

Invariant: the column is one like any other in what the query reads, so no star may show it. Where it could count
without being named (NATURAL JOIN, PIVOT, pipes), the query is refused.
"""

from __future__ import annotations

from itertools import pairwise

from delta_pyds.expr.parser.lexer import Token
from delta_pyds.statements.reader import StatementReader

COLUMN = "_metadata"
WITHOUT_IT = f" EXCEPT ({COLUMN})"
_QUERY = ("SELECT", "WITH", "VALUES", "FROM", "TABLE")
_BY_ALL_COLUMNS = ("NATURAL", "PIVOT", "UNPIVOT", "TRANSFORM", "MAP", "REDUCE", "TABLE")
# of row tracking: what our source knows of a row, and what the log says of its file alone
_OF_ROWS = ("row_id", "row_commit_version")
_OF_ROW_TRACKING = (*_OF_ROWS, "base_row_id", "default_row_commit_version")


def asks_for_files(reader: StatementReader) -> bool:
    return any(token.kind in ("word", "name") and token.value.lower() == COLUMN for token in reader.tokens)


def asks_for_row_ids(reader: StatementReader) -> bool:
    """Whether of ``_metadata`` nothing is named but the id and the version of rows."""
    named = [
        following.is_symbol(".") and behind.value.lower() in _OF_ROWS
        for token, following, behind in zip(reader.tokens, reader.tokens[1:], reader.tokens[2:], strict=False)
        if token.kind in ("word", "name") and token.value.lower() == COLUMN
    ]
    return bool(named) and all(named)


def stars(reader: StatementReader, first: int = 0, last: int | None = None) -> tuple[Token, ...]:
    """The stars among the tokens that would show the column.

    Raises: UnsupportedOperationError for what takes all columns in another way, and for fields that no file has.
    """
    found = []
    in_query = [True]
    before, previous = None, None
    for token, following in pairwise((*reader.tokens[first:last], reader.tokens[-1])):
        if token.is_symbol("("):
            in_query.append(following.is_word(*_QUERY) or following.is_symbol("("))
        elif token.is_symbol(")") and len(in_query) > 1:
            in_query.pop()
        elif token.is_word(*_BY_ALL_COLUMNS) or token.is_symbol("|>"):
            reader.refuse(f"{COLUMN} beside {token.text}", "Name the columns of the query in a SELECT.")
        elif token.is_symbol("*") and previous is not None and before is not None and _may_be_star(previous):
            counts = previous.is_symbol("(") and before.is_word("COUNT")
            if not counts and (not in_query[-1] or following.is_word("EXCEPT", "REPLACE")):
                reader.refuse(f"{COLUMN} beside this star", "Name the columns instead.")
            if not counts:
                found.append(token)
        elif (
            token.value.lower() in _OF_ROW_TRACKING
            and previous is not None
            and previous.is_symbol(".")
            and not asks_for_row_ids(reader)
        ):
            instead = f"Name {COLUMN}.row_id and {COLUMN}.row_commit_version alone, and no field of files."
            reader.refuse(f"{COLUMN}.{token.value} in this query", instead)
        before, previous = previous or token, token
    return tuple(found)


def _may_be_star(previous: Token) -> bool:
    """Whether no product can have this before its sign."""
    return previous.is_word("SELECT", "DISTINCT", "ALL") or previous.is_symbol(",", ".", "(")
