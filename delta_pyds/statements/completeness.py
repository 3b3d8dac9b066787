"""Arguments without a value, and variables of the session, which commands do not support."""

from __future__ import annotations

from itertools import pairwise

from delta_pyds.errors import UserError
from delta_pyds.statements.arguments import parameters
from delta_pyds.statements.reader import StatementReader


def check_complete(reader: StatementReader, first: int, last: int) -> None:
    """Raises: UserError for an argument without a value, and for a variable of the session."""
    tokens = reader.tokens[first:last]
    for start, _, key in parameters([*tokens, reader.tokens[-1]]):
        name = f":{key}" if isinstance(key, str) else "?"
        position = reader.bound.original_position(start)
        raise UserError(
            f"the argument {name} at position {position} of the statement has no value, or one that commands do not "
            "support: give a number, text, a date, a timestamp, bytes, a boolean or None in args.",
            code="UNBOUND_SQL_PARAMETER",
            argument=name,
        )
    check_variables(reader, first, last)


def check_variables(reader: StatementReader, first: int, last: int) -> None:
    """Raises: UserError for a variable of the session."""
    tokens = reader.tokens[first:last]
    for token, following in pairwise([*tokens, reader.tokens[-1]]):
        if token.is_symbol("$") and following.is_symbol("{"):
            raise variable_error(reader.bound.original[reader.bound.original_position(token.start) :][:100])
        if token.kind in ("name", "string") and "${" in token.text:
            raise variable_error(token.text)


def variable_error(text: str) -> UserError:
    return UserError(
        f"the statement holds a variable: {text!r:.200}. Spark would substitute its value before parsing, but a "
        "command of Delta uses the text as written: give the value in args.",
        code="DELTA_UNSUPPORTED_VARIABLE_IN_COMMAND",
    )
