"""Columns that are qualified by the whole name of their table: ``sales.orders.id``, ``delta.`/data/orders`.id``.

Invariant: a qualifier becomes our alias only if it can mean nothing else. It is a chain of names that begins with the
table's schema, or catalog and schema, before a column of the table. Spark, too, looks for such a column before it looks
for fields of structs. A name that a subquery or a lambda function may also use is left to Spark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from delta_pyds.errors import ExpressionError, UserError
from delta_pyds.expr.parser.lexer import Token, tokenize
from delta_pyds.protocol.quoting import quote_name
from delta_pyds.statements.scopes import ScopeTree

_PATH_FORMATS = ("delta", "deltapy")
SESSION_CATALOG = "spark_catalog"


@dataclass(frozen=True)
class QualifiedTable:
    """``table``: its name, or its path. ``qualifiers``: the names that may precede it, the nearest first, in lower
    case: ``(("sales",), ("spark_catalog",))``. ``alias``: replaces the whole name. ``columns``: returns the names of
    its columns; it is called only if they matter."""

    table: str
    qualifiers: tuple[tuple[str, ...], ...]
    alias: str
    columns: Callable[[], Iterable[str]]

    @classmethod
    def at_path(cls, path: str, columns: Callable[[], Iterable[str]]) -> QualifiedTable:
        return cls(path, (_PATH_FORMATS, (SESSION_CATALOG,)), path, columns)

    @classmethod
    def of_schema(cls, schema: str, table: str, columns: Callable[[], Iterable[str]]) -> QualifiedTable:
        return cls(table, ((schema.lower(),), (SESSION_CATALOG,)), table, columns)

    def is_named(self, token: Token) -> bool:
        if not token.is_name:
            return False
        # paths differ by case, names do not
        return token.value == self.table if "/" in self.table else token.value.lower() == self.table.lower()

    def is_in(self, text: str) -> bool:
        """Whether a text can qualify a column by more of the table's name than its last part."""
        before = "|".join(re.escape(name.replace("`", "``")) for name in self.qualifiers[0])
        named = re.escape(self.table.replace("`", "``"))
        if re.search(rf"\b(?:{before})`?\s*\.\s*`?{named}`?\s*\.", text, re.IGNORECASE) is None:
            return False
        try:
            tokens = tokenize(text, statement=True)
        except ExpressionError:
            return True
        # not in strings and comments
        return any(first < number for first, number in _chains(tokens, self))

    def is_in_alone(self, text: str) -> bool:
        """Whether a text can qualify a column by only the last part of the table's name."""
        if self.table.lower().replace("`", "``") not in text.lower():
            return False
        try:
            tokens = tokenize(text)
        except ExpressionError:
            return True
        return any(first == number for first, number in _chains(tokens, self))

    def under_whole_name(self) -> QualifiedTable:
        """The same table under our own alias, which only a table of the same name in the same schema shares."""
        return self if "/" in self.table else replace(self, alias=f"{self.qualifiers[0][0]}.{self.table}")


def may_be_qualified(text: str, table: str) -> bool:
    """Whether a text has names before and after the last part of a table's name."""
    named = re.escape(table.replace("`", "``"))
    return re.search(rf"\.\s*`?{named}`?\s*\.", text, re.IGNORECASE) is not None


def by_alias(
    text: str,
    tables: Sequence[QualifiedTable],
    *,
    is_target: bool = False,
    others: Mapping[str, Collection[str]] | None = None,
) -> str:
    """The text with the tables' aliases instead of their whole names.

    ``is_target``: the text is the name of an assigned column, which may be new. ``others``: table names with their
    columns, all in lower case.

    Raises: UserError (AMBIGUOUS_REFERENCE) for a column of two tables with the same name.
    """
    if not any(table.table.lower().replace("`", "``") in text.lower() for table in tables):
        return text
    try:
        tokens = tokenize(text)
    except ExpressionError:
        return text  # the parser that reads it raises the error
    scopes = ScopeTree(tokens)
    lambdas = any(token.is_symbol("->") for token in tokens)
    names = [table.table.lower() for table in tables]
    cuts: list[tuple[int, int, str]] = []
    for table in tables:
        another = (scopes.has_query or lambdas) and _may_mean_another(tokens, table)
        if another and lambdas and (scopes.has_query or table.alias.lower() == table.table.lower()):
            continue
        bare = not (another and lambdas) and names.count(table.table.lower()) == 1
        chains = [
            (first, number)
            for first, number in _chains(tokens, table)
            # in a subquery the last part alone may be a column, and the whole name another table
            if (first < number or bare) and (not scopes.in_subquery(number) or (first < number and not another))
        ]
        cuts += _cuts(tokens, table, chains, is_target, (others or {}).get(table.table.lower(), ()))
    for start, end, name in sorted(cuts, reverse=True):
        text = text[:start] + name + text[end:]
    return text


def _cuts(
    tokens: list[Token],
    table: QualifiedTable,
    chains: Sequence[tuple[int, int]],
    is_target: bool,
    shared: Collection[str],
) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and replacement of the qualifiers in ``chains``, which may mean the table.

    ``shared``: the columns of another table with the same last part of its name.
    """
    columns = {column.lower() for column in table.columns()} if chains else set()
    for first, number in chains:
        column = tokens[number + 2].value.lower()
        known = column in columns
        if first == number and column in shared and not is_target:
            if known:
                raise UserError(
                    f"{table.table}.{column} may be a column of the table and one of the source, which has the same "
                    "name. Give the source another name.",
                    code="AMBIGUOUS_REFERENCE",
                    name=f"{table.table}.{column}",
                )
            continue
        if known or (is_target and tokens[first].value.lower() not in columns):
            token = tokens[number]
            same = token.value.lower() == table.alias.lower()
            yield tokens[first].start, token.start + len(token.text), token.text if same else quote_name(table.alias)


def _chains(tokens: list[Token], table: QualifiedTable) -> Iterator[tuple[int, int]]:
    """The first and the last token of each name of the table that is followed by another name."""
    for number in range(len(tokens) - 2):
        if not table.is_named(tokens[number]) or not tokens[number + 1].is_symbol("."):
            continue
        first = number
        for names in table.qualifiers:
            if not _is_before(tokens, first, names):
                break
            first -= 2
        begins = not (first and tokens[first - 1].is_symbol("."))
        if begins and tokens[number + 2].is_name:
            yield first, number


def _is_before(tokens: list[Token], number: int, names: Collection[str]) -> bool:
    """Whether ``name.`` precedes the token."""
    if number < 2 or not tokens[number - 1].is_symbol("."):
        return False
    found = tokens[number - 2]
    return found.is_name and found.value.lower() in names


def _may_mean_another(tokens: list[Token], table: QualifiedTable) -> bool:
    """Whether a subquery may read the table, or another table or an argument of a function may have its name."""
    return any(table.is_named(token) and not following.is_symbol(".") for token, following in pairwise(tokens))
