"""Errors about rows of changes: a query raises them at the row, and this module makes UserErrors of them.

So the changes are computed once, and no query looks for such rows first. The message of the query's error carries the
kind and the key, because Spark keeps nothing else of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from delta_pyds.errors import UserError
from delta_pyds.expr.nodes import Literal, literal_to_sql
from delta_pyds.protocol.quoting import quote_name
from delta_pyds.protocol.schema import STRING

_MARK = "_deltapy_changes"
_RAISED = re.compile(rf"{_MARK}<(\w+)>(.*?)</{_MARK}>", re.DOTALL)

NULL_KEY, NULL_SEQUENCE, TIE, NO_START = "null_key", "null_sequence", "tie", "no_start"
# no refusal yet: the values decide whether the change came before
REPEATED = "repeated"
_SENTENCES = {
    NULL_KEY: "the changes for the table {table} have a row with a null in a key (argument keys): {key}. Leave such "
    "rows out, or give them a key.",
    NULL_SEQUENCE: "the changes for the table {table} have a row whose sequence is null (argument sequence_by): {key}. "
    "Leave such rows out, or give them a sequence.",
    TIE: "different changes for the table {table} have the same key and the same sequence (argument sequence_by): "
    "{key}. Nothing says which one is newer: add a column to sequence_by, as in struct(time, number).",
    NO_START: "the table {table} has a row without __START_AT: {key}. Give it the sequence from which it is valid.",
}


class RepeatedSequenceError(Exception):
    """The table has the sequence of a change already. Only then are the values of its row read and compared."""


def raising(kind: str, keys: Sequence[str], alias: str | None = None) -> str:
    """The SQL of an expression that fails with the key of its row. ``alias``: that of the frame with the keys."""
    qualified = ((name, quote_name(name) if alias is None else quote_name(alias, name)) for name in keys)
    parts = (f"{_text(f'{name} = ')}, coalesce(CAST({column} AS STRING), 'NULL')" for name, column in qualified)
    key = f", {_text(', ')}, ".join(parts)
    return f"raise_error(concat({_text(f'{_MARK}<{kind}>')}, {key}, {_text(f'</{_MARK}>')}))"


@contextmanager
def refusals_as_user_errors(table: str) -> Iterator[None]:
    """Raise the UserError of a refused row instead of the error of the query that met it.

    Raises: RepeatedSequenceError for ``REPEATED``.
    """
    try:
        yield
    except Exception as error:
        found = _RAISED.search(str(error))
        if found is None:
            raise
        kind, key = found.groups()
        if kind == REPEATED:
            raise RepeatedSequenceError from None
        raise UserError(_SENTENCES[kind].format(table=table, key=key), table=table, key=key) from None


def _text(text: str) -> str:
    return literal_to_sql(Literal(text, STRING))
