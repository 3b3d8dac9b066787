"""The conditions of a statement that rows of one table must satisfy: of WHERE, and of ON in joins.

Invariant: a row of the table that breaks one of its conditions changes no result of the statement. A condition may also
be about other tables. Where the text has anything unknown, the table has no conditions.

A condition reaches a table through joins that drop the rows for which it is not true: not to the side of an outer join
that is filled with nulls, nor from ON to the side whose rows all stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from delta_pyds.errors import ExpressionError
from delta_pyds.expr.parser.lexer import Token
from delta_pyds.expr.parser.recognizer import called_functions
from delta_pyds.statements.arguments import ends_value
from delta_pyds.statements.kinds import RowConditions, TableReference, TableSpan
from delta_pyds.statements.reader import NO_ALIAS, StatementReader
from delta_pyds.statements.scopes import AFTER_TABLES

_BEGIN_QUERIES = ("SELECT", "WITH", "VALUES", "FROM", "TABLE", "MAP", "REDUCE")
_JOINS = ("INNER", "CROSS", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI", "NATURAL", "JOIN")
_KINDS = ("INNER", "CROSS", "LEFT", "RIGHT", "FULL", "OUTER", "SEMI", "ANTI")
# after a condition, these words begin the next clause
_END_CONDITION = AFTER_TABLES | {"QUALIFY", "LATERAL", "PIVOT", "UNPIVOT", "INSERT"}
# after a table, these words change its rows, belong to its name, or begin what this module does not know
_UNKNOWN = (
    "PIVOT", "UNPIVOT", "WITH", "QUALIFY", "WATERMARK", "CHANGES", "INSERT", "MAP", "REDUCE", "FOR", "VERSION",
    "TIMESTAMP", "SYSTEM_VERSION", "SYSTEM_TIME", "TABLESAMPLE",
)  # fmt: skip


class _UnknownError(Exception):
    """The FROM list or a condition has something unknown."""


class _Join(NamedTuple):
    """The sides whose rows the conditions after a join and of its ON may rule out."""

    left_after: bool
    right_after: bool
    left_on: bool
    right_on: bool


_INNER = _Join(True, True, True, True)
_JOIN_KINDS: Mapping[frozenset[str], _Join] = {
    frozenset(words): join
    for words, join in (
        ((), _INNER),
        (("INNER",), _INNER),
        (("CROSS",), _INNER),
        (("LEFT",), _Join(True, False, False, True)),
        (("LEFT", "OUTER"), _Join(True, False, False, True)),
        (("RIGHT",), _Join(False, True, True, False)),
        (("RIGHT", "OUTER"), _Join(False, True, True, False)),
        (("FULL",), _Join(False, False, False, False)),
        (("FULL", "OUTER"), _Join(False, False, False, False)),
        (("SEMI",), _Join(True, False, True, True)),
        (("LEFT", "SEMI"), _Join(True, False, True, True)),
        (("ANTI",), _Join(True, False, False, True)),
        (("LEFT", "ANTI"), _Join(True, False, False, True)),
    )
}


def conditions_of(reader: StatementReader, spans: Iterable[TableSpan]) -> dict[int, RowConditions]:
    """The conditions by the first token of a table. ``spans``: all tables of the statement that have a name."""
    tokens = reader.tokens
    # a variable may stand for any text, also in quotes
    if "${" in reader.bound.original or not any(token.is_word("WHERE", "ON") for token in tokens):
        return {}
    named = {span.first: span for span in spans}
    found: dict[int, RowConditions] = {}
    for index, token in enumerate(tokens):
        if token.is_word("SELECT") and not (index and tokens[index - 1].is_symbol(".")):
            found.update(_Select(reader, named).conditions(index))
    return found


@dataclass
class _Table:
    """``alias``: its name in conditions; None without one. ``texts``: the conditions that reach it."""

    first: int
    alias: str | None
    texts: list[str] = field(default_factory=list)


class _Select:
    """One SELECT, with its FROM list and its WHERE."""

    def __init__(self, reader: StatementReader, named: Mapping[int, TableSpan]) -> None:
        self._reader = reader
        self._tokens = reader.tokens
        self._named = named
        self._index = 0
        self._tables: list[_Table] = []
        # names of all relations in the FROM list, in lower case
        self._names: set[str] = set()
        self._merged: set[str] = set()
        self._is_natural = False

    def conditions(self, select: int) -> dict[int, RowConditions]:
        """The conditions by the first token of a table. ``select``: the word SELECT."""
        try:
            if not self._step_to_from(select + 1):
                return {}
            reached = self._from_list()
            if self._at("WHERE"):
                self._index += 1
                self._condition(reached)
        except _UnknownError:
            return {}
        names = frozenset(self._names)
        merged = None if self._is_natural else frozenset(self._merged)
        return {
            table.first: RowConditions(tuple(table.texts), table.alias, names, merged)
            for table in self._tables
            if table.texts
        }

    def _step_to_from(self, index: int) -> bool:
        """Go to the token after the FROM of this SELECT. Returns: whether it has one."""
        while (token := self._tokens[index]).kind != "end" and not token.is_symbol(")", "]", ";", "|>"):
            before = self._tokens[index - 1]
            if token.is_word("FROM") and not before.is_symbol("."):
                if not (before.is_word("DISTINCT") and self._tokens[index - 2].is_word("IS", "NOT")):
                    self._index = index + 1
                    return True
            elif token.is_word(*AFTER_TABLES) and ends_value(before):
                return False
            index = self._after_brackets(index)
        return False

    def _after_brackets(self, index: int) -> int:
        """The token after this one, or after the brackets that it opens."""
        if not self._tokens[index].is_symbol("(", "["):
            return index + 1
        closing = self._reader.scopes.closing(index)
        if closing is None:
            raise _UnknownError
        return closing + 1

    # --- the FROM list

    def _from_list(self) -> list[_Table]:
        """The tables that conditions of WHERE reach."""
        reached = self._joined()
        while self._accept(","):
            reached += self._joined()
        while self._at("LATERAL") and self._tokens[self._index + 1].is_word("VIEW"):
            self._lateral_view()
        if not self._ends_list():
            raise _UnknownError
        return reached

    def _ends_list(self) -> bool:
        token = self._token
        if token.kind == "end" or token.is_symbol(")", ";", "|>"):
            return True
        return token.is_word(*AFTER_TABLES) and not token.is_word("SELECT", "VALUES", "SET")

    def _joined(self) -> list[_Table]:
        """A relation and those that are joined to it: the tables that later conditions reach."""
        reached = self._relation()
        while self._at(*_JOINS):
            natural = self._accept_word("NATURAL")
            words = []
            while not self._at("JOIN"):
                if not self._at(*_KINDS):
                    raise _UnknownError
                words.append(self._token.text.upper())
                self._index += 1
            self._index += 1
            join = _JOIN_KINDS.get(frozenset(words))
            if join is None:
                raise _UnknownError
            right = self._relation()
            if self._accept_word("ON"):
                self._condition([*(reached if join.left_on else ()), *(right if join.right_on else ())])
            elif self._accept_word("USING"):
                first = self._index
                self._brackets()
                self._merged |= {t.value.lower() for t in self._tokens[first : self._index] if t.is_name}
            self._is_natural = self._is_natural or natural
            reached = [*(reached if join.left_after else ()), *(right if join.right_after else ())]
        return reached

    def _relation(self) -> list[_Table]:
        """One relation: the table, or the tables of joins between parentheses, that later conditions reach."""
        self._accept_word("LATERAL")
        first, span = self._index, self._named.get(self._index)
        reached: list[_Table] = []
        alias = None
        if span is not None and not self._tokens[span.last].is_symbol("("):
            self._index = span.last
            if isinstance(span.table, TableReference):
                alias = span.table.parts[-1] if span.table.path is None else None
                reached = [_Table(first, alias)] if span.table.is_one_version else []
        elif self._token.is_symbol("("):
            reached = self._between_parentheses()
        elif self._token.is_name and not self._at(*_BEGIN_QUERIES, "IDENTIFIER", "STREAM"):
            self._function()
        else:
            raise _UnknownError
        given, keeps = self._alias()
        name = given or alias
        if name is not None:
            self._names.add(name.lower())
        if span is None and given is not None:
            return []  # it hides the names of the tables
        if not keeps:
            return []
        if span is not None and reached:
            reached[0].alias = name
            self._tables += reached
        return reached

    def _between_parentheses(self) -> list[_Table]:
        closing = self._reader.scopes.closing(self._index)
        inner = self._index
        while self._tokens[inner].is_symbol("("):
            inner += 1
        if closing is None:
            raise _UnknownError
        if self._tokens[inner].is_word(*_BEGIN_QUERIES):
            self._index = closing + 1
            return []
        self._index += 1
        reached = self._joined()
        if self._index != closing:
            raise _UnknownError
        self._index += 1
        return reached

    def _function(self) -> None:
        self._index += 1
        while self._accept("."):
            self._index += 1
        self._brackets()

    def _brackets(self) -> None:
        if not self._token.is_symbol("("):
            raise _UnknownError
        self._index = self._after_brackets(self._index)

    def _alias(self) -> tuple[str | None, bool]:
        """The alias, and whether the relation has all its rows, with the names of its columns."""
        keeps = True
        if self._accept_word("TABLESAMPLE"):
            keeps = False
            self._brackets()
            if self._accept_word("REPEATABLE"):
                self._brackets()
        explicit = self._accept_word("AS")
        token = self._token
        if not token.is_name or token.is_word(*NO_ALIAS, *AFTER_TABLES, *_UNKNOWN):
            if explicit or token.is_word(*_UNKNOWN):
                raise _UnknownError
            return None, keeps
        self._index += 1
        if self._token.is_symbol("("):
            self._brackets()
            keeps = False
        return token.value, keeps

    def _lateral_view(self) -> None:
        """It adds columns to each row, and drops or repeats rows by their own values."""
        self._index += 2
        while not self._ends_list() and not (self._at("LATERAL") and self._tokens[self._index + 1].is_word("VIEW")):
            token = self._token
            if token.is_word("PIVOT", "UNPIVOT", *_JOINS):
                raise _UnknownError
            if token.is_name:
                self._names.add(token.value.lower())
            self._index = self._after_brackets(self._index)

    # --- conditions

    def _condition(self, reached: Sequence[_Table]) -> None:
        """Read a condition, and add it to the tables that it reaches."""
        first, pieces = self._index, []
        while not self._ends_condition():
            index = self._index
            self._index = self._after_brackets(index)
            # a query between parentheses is a value
            is_query = self._tokens[index].is_symbol("(") and self._begins_query(index)
            pieces.append("(1)" if is_query else self._text(index, self._index))
        if self._index == first:
            raise _UnknownError
        try:
            # otherwise the text may have the next clause, in words that a later Spark has
            called_functions(" ".join(pieces))
        except ExpressionError:
            raise _UnknownError from None
        text = self._text(first, self._index)
        for table in reached:
            table.texts.append(text)

    def _begins_query(self, index: int) -> bool:
        while self._tokens[index].is_symbol("("):
            index += 1
        return self._tokens[index].is_word(*_BEGIN_QUERIES)

    def _ends_condition(self) -> bool:
        token = self._token
        if token.kind == "end" or token.is_symbol(")", "]", ",", ";", "|>"):
            return True
        before = self._tokens[self._index - 1]
        # after an operator or a dot, such a word is a column
        return token.is_word(*_END_CONDITION, *_JOINS) and ends_value(before)

    def _text(self, first: int, last: int) -> str:
        final = self._tokens[last - 1]
        return self._reader.text[self._tokens[first].start : final.start + len(final.text)]

    # --- tokens

    @property
    def _token(self) -> Token:
        return self._tokens[self._index]

    def _at(self, *words: str) -> bool:
        return self._token.is_word(*words)

    def _accept_word(self, word: str) -> bool:
        found = self._at(word)
        self._index += found
        return found

    def _accept(self, symbol: str) -> bool:
        found = self._token.is_symbol(symbol)
        self._index += found
        return found
