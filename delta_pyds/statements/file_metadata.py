"""``_metadata``: the hidden column with the file of each row.

Invariant: the tables of the query have it as an ordinary column, so every star leaves it out. A query that could use it
without naming it (NATURAL JOIN, PIVOT, pipes) is refused.
"""

from __future__ import annotations

from delta_pyds.expr.parser.lexer import Token
from delta_pyds.statements.reader import StatementReader

COLUMN = "_metadata"
WITHOUT_IT = f" EXCEPT ({COLUMN})"
_BY_ALL_COLUMNS = ("NATURAL", "PIVOT", "UNPIVOT", "TRANSFORM", "MAP", "REDUCE", "TABLE")
# fields of row tracking: our source knows the first two of each row; the others the log has of files alone
_OF_ROWS = ("row_id", "row_commit_version")
_OF_ROW_TRACKING = (*_OF_ROWS, "base_row_id", "default_row_commit_version")


def asks_for_files(reader: StatementReader) -> bool:
    """Whether ``_metadata`` is named."""
    return any(_is_column(token) for token in reader.tokens)


def asks_for_row_ids(reader: StatementReader) -> bool:
    """Whether the id and the version of rows are the only fields of ``_metadata`` that are named."""
    named = [
        following.is_symbol(".") and field.value.lower() in _OF_ROWS
        for token, following, field in zip(reader.tokens, reader.tokens[1:], reader.tokens[2:], strict=False)
        if _is_column(token)
    ]
    return bool(named) and all(named)


def _is_column(token: Token) -> bool:
    return token.kind in ("word", "name") and token.value.lower() == COLUMN


def stars(reader: StatementReader, first: int = 0, last: int | None = None) -> tuple[Token, ...]:
    """The stars among the tokens that would show the column.

    Raises: UnsupportedOperationError for other constructs that take all columns, and for fields that no file has.
    """
    tokens = reader.tokens
    end = len(tokens) if last is None else last
    found, refused = [], _refused(reader, first, end)
    for star in reader.scopes.stars_between(first, end):
        if refused is not None and refused[0] < star.position:
            break
        if tokens[star.position - 1].is_symbol("(") and tokens[max(star.position - 2, 0)].is_word("COUNT"):
            continue
        if not star.scope.may_select or tokens[star.position + 1].is_word("EXCEPT", "REPLACE"):
            reader.refuse(f"{COLUMN} beside this star", "Name the columns instead.")
        found.append(tokens[star.position])
    if refused is not None:
        reader.refuse(*refused[1:])
    return tuple(found)


def _refused(reader: StatementReader, first: int, last: int) -> tuple[int, str, str] | None:
    """The first token that cannot stand beside the column: its number, what is refused, and what to do instead."""
    only_rows = asks_for_row_ids(reader)
    for index in range(first, last):
        token = reader.tokens[index]
        if token.is_word(*_BY_ALL_COLUMNS) or token.is_symbol("|>"):
            return index, f"{COLUMN} beside {token.text}", "Name the columns of the query in a SELECT."
        is_field = token.value.lower() in _OF_ROW_TRACKING and index > first and reader.tokens[index - 1].is_symbol(".")
        if is_field and not only_rows:
            instead = f"Name {COLUMN}.row_id and {COLUMN}.row_commit_version alone, and no field of files."
            return index, f"{COLUMN}.{token.value} in this query", instead
    return None
