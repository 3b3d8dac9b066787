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
# fields of row tracking: our source has the first two for each row; the log has the others only for files
_OF_ROWS = ("row_id", "row_commit_version")
_OF_ROW_TRACKING = (*_OF_ROWS, "base_row_id", "default_row_commit_version")


def asks_for_files(reader: StatementReader) -> bool:
    """Whether the statement names ``_metadata``."""
    return any(_is_column(token) for token in reader.tokens)


def asks_for_row_ids(reader: StatementReader) -> bool:
    """Whether the statement names only the row id and the row commit version of ``_metadata``."""
    named = [
        following.is_symbol(".") and field.value.lower() in _OF_ROWS
        for token, following, field in zip(reader.tokens, reader.tokens[1:], reader.tokens[2:], strict=False)
        if _is_column(token)
    ]
    return bool(named) and all(named)


def _is_column(token: Token) -> bool:
    return token.is_name and token.value.lower() == COLUMN


def stars(reader: StatementReader, first: int = 0, last: int | None = None) -> tuple[Token, ...]:
    """The stars among the tokens that would include the column.

    Raises: UnsupportedOperationError for other constructs that include all columns, and for fields that no file has.
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
            reader.refuse(f"{COLUMN} together with this star", "Name the columns instead.")
        found.append(tokens[star.position])
    if refused is not None:
        reader.refuse(*refused[1:])
    return tuple(found)


def _refused(reader: StatementReader, first: int, last: int) -> tuple[int, str, str] | None:
    """The first token that excludes the column: its number, the refused construct, and what to do instead."""
    only_rows = asks_for_row_ids(reader)
    for index in range(first, last):
        token = reader.tokens[index]
        if token.is_word(*_BY_ALL_COLUMNS) or token.is_symbol("|>"):
            return index, f"{COLUMN} together with {token.text}", "Name the columns of the query in a SELECT."
        is_field = token.value.lower() in _OF_ROW_TRACKING and index > first and reader.tokens[index - 1].is_symbol(".")
        if is_field and not only_rows:
            instead = f"Name only {COLUMN}.row_id and {COLUMN}.row_commit_version, and no field of files."
            return index, f"{COLUMN}.{token.value} in this query", instead
    return None
