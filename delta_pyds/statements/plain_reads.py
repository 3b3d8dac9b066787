"""Names that a query reads as tables, and that nothing in the statement gives another meaning.

Invariant: where a table may stand for the name, the statement means the same. What is doubtful is left out: Spark finds
the name by itself then.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from delta_pyds.expr.parser.lexer import Token
from delta_pyds.statements.kinds import TableReference, TableSpan
from delta_pyds.statements.reader import StatementReader
from delta_pyds.statements.tables import find_named

# a setting makes names of strings in double quotes
_NAMES = ("word", "name", "string")
# no alias, and no alias may be put before them
_BELONGS_TO_NAME = ("TABLESAMPLE", "WITH", "QUALIFY", "WATERMARK", "CHANGES", "INSERT", "MAP", "REDUCE")


def find_plain_reads(reader: StatementReader, first: int = 0, last: int | None = None) -> tuple[TableSpan, ...]:
    """Raises: SqlSyntaxError and UnsupportedOperationError for what stands in the place of a table."""
    found = tuple(span for span in find_named(reader, first, last) if _is_read_alone(reader.tokens, span))
    if not found:
        return ()
    hidden, qualifying = _names_of_with(reader.tokens), _qualifying(reader.tokens)
    # a variable of the session, or what gives a name of WITH, may stand for any text
    if "identifier" in hidden or any(a.is_symbol("$") and b.is_symbol("{") for a, b in pairwise(reader.tokens)):
        return ()
    return tuple(span for span in found if not _may_be_another(span.table, hidden, qualifying))


def calls_columns_by_schema(reader: StatementReader, table: TableReference) -> bool:
    """Whether columns may be called by more of the table's name than its last part."""
    return table.parts[-1].lower() in _qualifying(reader.tokens)


def _is_read_alone(tokens: Sequence[Token], span: TableSpan) -> bool:
    """Whether only reading follows the words before, and nothing behind belongs to the name."""
    following = tokens[span.last]
    if following.is_symbol("(") or following.is_word(*_BELONGS_TO_NAME):
        return False
    index = span.first - 1
    while index > 0 and tokens[index].is_symbol("("):
        index -= 1
    before = tokens[max(index, 0)]
    if before.is_word("TABLE"):
        return index == 0 and span.first == 1
    if before.is_word("FROM"):
        return index == 0 or not tokens[index - 1].is_word("DELETE")
    return before.is_symbol(",") or before.is_word("JOIN")


def _names_of_with(tokens: Sequence[Token]) -> frozenset[str]:
    """What WITH may name in any part of the statement, in lower case."""
    found = set()
    for number, token in enumerate(tokens[1:-1], 1):
        before, after = tokens[number - 1], tokens[number + 1]
        if token.kind not in _NAMES or not (after.is_symbol("(") or after.is_word("AS", "MAX")):
            continue
        behind_another = before.is_symbol(",") and tokens[number - 2].is_symbol(")")
        if before.is_word("WITH", "RECURSIVE") or behind_another:
            found.add(token.value.lower())
    return frozenset(found)


def _qualifying(tokens: Sequence[Token]) -> frozenset[str]:
    """Names that stand between two others, in lower case: ``orders`` in ``sales.orders.id``. An alias has no schema."""
    return frozenset(
        token.value.lower()
        for number, token in enumerate(tokens[2:-1], 2)
        if token.kind in _NAMES
        and tokens[number - 1].is_symbol(".")
        and tokens[number - 2].kind in _NAMES
        and tokens[number + 1].is_symbol(".")
    )


def _may_be_another(table: object, hidden: frozenset[str], qualifying: frozenset[str]) -> bool:
    assert isinstance(table, TableReference)
    name = table.parts[-1].lower()
    return name in qualifying or (len(table.parts) == 1 and name in hidden)
