"""The keyword DEFAULT among the values of an INSERT: its positions and columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from delta_pyds.expr.parser.lexer import Token
from delta_pyds.statements.scopes import ScopeTree

# these words end the list of the selected values
_CLAUSES = (
    "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "SORT", "DISTRIBUTE", "CLUSTER", "LIMIT", "OFFSET", "WINDOW",
    "LATERAL", "UNION", "EXCEPT", "INTERSECT", "MINUS", "QUALIFY",
)  # fmt: skip


# in a query with these words, DEFAULT is not a value for Spark
_OTHER_QUERIES = ("GROUP", "HAVING", "UNION", "EXCEPT", "INTERSECT", "MINUS", "QUALIFY")


@dataclass(frozen=True)
class DefaultValue:
    """``column``: the number in the row. ``start``, ``end``: positions in the text of the query."""

    column: int
    start: int
    end: int


def default_values(tokens: Sequence[Token]) -> tuple[DefaultValue, ...]:
    """The keywords DEFAULT that are values of rows.

    ``tokens``: the query's. As in Spark, DEFAULT is a value in ``VALUES (1, DEFAULT), ...`` and in ``SELECT 1,
    DEFAULT``, but not in a query with GROUP BY, DISTINCT or a set operation such as UNION.
    """
    if tokens[0].is_word("VALUES"):
        return tuple(_of_rows(tokens))
    return tuple(_of_selection(tokens)) if tokens[0].is_word("SELECT") else ()


def _is_alone(tokens: Sequence[Token], index: int) -> bool:
    """Whether the word is between commas or parentheses, like a value."""
    if index == 0 or not tokens[index].is_word("DEFAULT"):
        return False
    before, after = tokens[index - 1], tokens[min(index + 1, len(tokens) - 1)]
    begins = before.is_symbol("(", ",") or before.is_word("SELECT", "VALUES")
    ends = after.is_symbol(")", ",", ";") or after.kind == "end" or after.is_word(*_CLAUSES)
    return begins and (ends or index + 1 == len(tokens))


def _of_rows(tokens: Sequence[Token]) -> Iterator[DefaultValue]:
    scopes = ScopeTree(tokens)
    for index in scopes.own_tokens(1, len(tokens)):
        if _is_alone(tokens, index):
            yield _value(0, tokens[index])
        elif tokens[index].is_symbol("("):
            column = 0
            for inner in scopes.own_tokens(index + 1, scopes.closing(index) or len(tokens)):
                if _is_alone(tokens, inner):
                    yield _value(column, tokens[inner])
                column += tokens[inner].is_symbol(",")


def _of_selection(tokens: Sequence[Token]) -> Iterator[DefaultValue]:
    if tokens[min(1, len(tokens) - 1)].is_word("DISTINCT"):
        return
    column = 0
    listed = True
    found = []
    for index in ScopeTree(tokens).own_tokens(0, len(tokens)):
        token = tokens[index]
        if index and tokens[index - 1].is_symbol("."):
            continue
        if token.is_word(*_OTHER_QUERIES):
            return
        if token.is_word(*_CLAUSES):
            listed = False
        elif listed and token.is_symbol(","):
            column += 1
        elif listed and _is_alone(tokens, index):
            found.append(_value(column, token))
    yield from found


def _value(column: int, token: Token) -> DefaultValue:
    return DefaultValue(column, token.start, token.start + len(token.text))


def has_star(tokens: Sequence[Token]) -> bool:
    """Whether a SELECT has a star: after it, the number of a value is not its number in the row."""
    return any(
        token.is_symbol("*") and (before.is_symbol(",", ".") or before.is_word("SELECT", "ALL"))
        for before, token in pairwise(tokens)
    )


def reads(tokens: Sequence[Token]) -> bool:
    """Whether the query reads tables, which may have a column with the name DEFAULT."""
    return any(token.is_word("FROM") for token in tokens)
