"""The scopes of a statement: its brackets, its WITH lists, its FROM lists, and the role of each name.

Invariant: one pass over the tokens builds the tree, in linear time, and every finder uses it. A table is expected only
where Spark's grammar expects one: elsewhere, ``delta.`x``` is the column ``x`` of ``delta``.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from delta_pyds.expr.parser.lexer import Token

# from: read in a FROM list. query: the query TABLE t. source: of MERGE. described: by DESCRIBE. other: may be written.
Role = Literal["from", "query", "source", "described", "other"]

# a setting of Spark turns strings in double quotes into names
_NAMES = ("word", "name", "string")
_BEGIN_QUERIES = ("SELECT", "WITH", "VALUES", "FROM", "MAP", "REDUCE")
_BEGIN_SUBQUERIES = ("SELECT", "FROM", "TABLE", "WITH", "VALUES")
_NO_TABLES = ("TABLE", "LATERAL", "ONLY", *_BEGIN_QUERIES)
TABLE_CHANGES = ("TABLE_CHANGES", "TABLE_CHANGES_BY_PATH")
# a name before a parenthesis is a function, except these
_TABLES_WITH_PARENTHESES = (*TABLE_CHANGES, "IDENTIFIER", "STREAM")
# these words end a FROM list
AFTER_TABLES = frozenset((
    "SELECT", "WHERE", "GROUP", "HAVING", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET", "WINDOW",
    "UNION", "EXCEPT", "MINUS", "INTERSECT", "SET", "VALUES",
))  # fmt: skip
# after these words, a table is still expected
_BEFORE_TABLE = ("LATERAL", "IF", "NOT", "EXISTS")
# after a command's word these words are keywords; in a FROM list they are tables
_KEYWORDS = AFTER_TABLES | {"JOIN", "IF", "NOT", "EXISTS", "EXTENDED", "FORMATTED"}
# after these words, TABLE is not the query TABLE t, and the statement writes the table that follows
_WRITTEN = (
    "INTO", "OVERWRITE", "UPDATE", "TRUNCATE", "ALTER", "DROP", "CREATE", "REPLACE", "EXTERNAL", "CACHE", "LAZY",
    "UNCACHE", "ANALYZE", "REFRESH", "REPAIR", "ON", "LOAD",
)  # fmt: skip
_AFTER_WITH = ("SELECT", "FROM", "VALUES", "TABLE", "INSERT", "MERGE", "UPDATE", "DELETE", "MAP", "REDUCE")


class Scope:
    """The tokens between two brackets, or the whole statement.

    ``opens``, ``closes``: the brackets. They are -1 and the end of the text for the whole statement; a scope that is
    not closed also ends there. ``may_select``: whether a query may begin in it, so that a star may belong to SELECT.
    """

    __slots__ = (
        "closes", "expects_table", "in_from", "in_subquery", "in_with", "is_open", "is_query", "may_select", "opens",
        "symbol",
    )  # fmt: skip

    def __init__(self, opens: int, symbol: str, closes: int) -> None:
        self.opens = opens
        self.closes = closes
        self.symbol = symbol
        self.may_select = False
        self.in_subquery = False
        # only the pass needs these: whether FROM begins a list of tables, and the position in such lists
        self.is_open = True
        self.is_query = False
        self.in_from = False
        self.expects_table = False
        self.in_with = False


class TablePosition(NamedTuple):
    """A position where Spark expects a table. ``first``: the first token of its name."""

    first: int
    role: Role


class Star(NamedTuple):
    """A star of SELECT or of a function's arguments, not a multiplication."""

    position: int
    scope: Scope


class ScopeTree:
    """The scopes of the tokens, which end with the token ``end``.

    ``tables``, ``stars``: in the order of the text. ``qualifiers``: names between two others, in lower case: ``orders``
    in ``sales.orders.id``. ``has_variable``: whether the text has a variable of the session, whose value may be any
    text. ``has_outer_query``: whether SELECT or TABLE occurs outside of all subqueries.
    """

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._end = len(tokens) - 1
        whole = Scope(-1, "", self._end)
        whole.is_query = whole.may_select = True
        self._open = [whole]
        # how many parentheses are open
        self._parentheses = 0
        self._openings: dict[int, int] = {}
        self._closings: dict[int, int] = {}
        # by name in lower case; the scopes of a name do not overlap, and are in order
        self._with_names: dict[str, list[tuple[int, Scope]]] = {}
        self._outer_subqueries: list[Scope] = []
        # the last token that is not an opening parenthesis
        self._before = -1
        self._in_query = False
        self.tables: list[TablePosition] = []
        self.stars: list[Star] = []
        self.qualifiers: set[str] = set()
        self.has_variable = False
        self.has_outer_query = False
        for index in range(self._end):
            token = tokens[index]
            if token.kind == "symbol":
                self._symbol(index, token)
            else:
                self._other(index, token)

    def tables_between(self, first: int, last: int) -> Sequence[TablePosition]:
        """The positions of tables in a piece of the statement."""
        begin = bisect_left(self.tables, first, key=lambda one: one.first)
        return self.tables[begin : bisect_left(self.tables, last, key=lambda one: one.first)]

    def stars_between(self, first: int, last: int) -> Sequence[Star]:
        begin = bisect_left(self.stars, first, key=lambda one: one.position)
        return self.stars[begin : bisect_left(self.stars, last, key=lambda one: one.position)]

    def is_of_with(self, name: str, index: int) -> bool:
        """Whether the single name ``name`` at a token may be a name of WITH.

        A name of WITH is visible in its own query, and in its scope after it.
        """
        return self._is_visible(name.lower(), index) or self._is_visible("identifier", index)

    @property
    def has_query(self) -> bool:
        return self.has_outer_query or bool(self._outer_subqueries)

    def closing(self, index: int) -> int | None:
        """The closing bracket of an opening one; None if it is not closed."""
        return self._closings.get(index)

    def opening(self, index: int) -> int | None:
        """The opening bracket of a closing one; None if it closes nothing."""
        return self._openings.get(index)

    def in_subquery(self, index: int) -> bool:
        """Whether the token is in a query between parentheses.

        Every token counts as inside if a query is outside of parentheses, because its end is unknown.
        """
        if self.has_outer_query:
            return True
        found = bisect_right(self._outer_subqueries, index, key=lambda scope: scope.opens) - 1
        return found >= 0 and index < self._outer_subqueries[found].closes

    def own_tokens(self, first: int, last: int) -> Iterator[int]:
        """The tokens from ``first`` to before ``last`` that are not inside brackets; the brackets are included."""
        index = first
        while index < last:
            yield index
            closing = self._closings.get(index)
            if closing is not None:
                yield closing
                index = closing
            elif self._tokens[index].is_symbol("(", "["):
                return  # the bracket is not closed
            index += 1

    def _is_visible(self, name: str, index: int) -> bool:
        scopes = self._with_names.get(name)
        if scopes is None:
            return False
        found = bisect_right(scopes, index, key=lambda one: one[0]) - 1
        return found >= 0 and index < scopes[found][1].closes

    # the pass

    def _symbol(self, index: int, token: Token) -> None:
        scope, text = self._open[-1], token.text
        if text == "(":
            self._enter(index, text)
            return
        if text == "[":
            self._enter(index, text)
        elif text in (")", "]"):
            self._leave(index, text)
        elif text == ",":
            scope.expects_table = scope.in_from
        elif text == "|>":
            scope.in_from = scope.expects_table = False  # an operator of a pipe follows
        elif text == ".":
            self._qualifier(index)
        elif text == "*":
            before = self._tokens[index - 1]
            if index and (before.is_symbol(",", ".", "(") or before.is_word("SELECT", "DISTINCT", "ALL")):
                self.stars.append(Star(index, scope))
        elif text == "$":
            self.has_variable = self.has_variable or self._tokens[index + 1].is_symbol("{")
        self._before = index

    def _enter(self, index: int, symbol: str) -> None:
        outer, following = self._open[-1], self._tokens[index + 1]
        scope = Scope(index, symbol, self._end)
        scope.in_subquery = outer.in_subquery
        if symbol == "(":
            self._parentheses += 1
            begins = following.is_word(*_BEGIN_QUERIES)
            scope.is_query = begins or outer.expects_table
            scope.in_from = scope.expects_table = outer.expects_table and not begins
            scope.may_select = following.is_symbol("(") or following.is_word(*_BEGIN_SUBQUERIES)
            if not scope.in_subquery and following.is_word(*_BEGIN_SUBQUERIES):
                scope.in_subquery = True
                self._outer_subqueries.append(scope)
        else:
            scope.may_select = outer.may_select
        self._open.append(scope)

    def _leave(self, index: int, symbol: str) -> None:
        if not (self._parentheses if symbol == ")" else self._open[-1].symbol == "["):
            return
        # a square bracket that is not closed ends with its parenthesis
        while True:
            scope = self._open.pop()
            scope.closes, scope.is_open = index, False
            if symbol == "]" or scope.symbol == "(":
                break
        self._openings[index], self._closings[scope.opens] = scope.opens, index
        if symbol == ")":
            self._parentheses -= 1
            self._open[-1].expects_table = False

    def _qualifier(self, index: int) -> None:
        if index < 3:
            return
        name = self._tokens[index - 1]
        if name.kind in _NAMES and self._tokens[index - 2].is_symbol(".") and self._tokens[index - 3].kind in _NAMES:
            self.qualifiers.add(name.value.lower())

    def _other(self, index: int, token: Token) -> None:
        scope = self._open[-1]
        if scope.in_with and token.kind in _NAMES and self._is_in_with_list(index):
            self._add_with_name(token.value.lower(), index, scope)
        if token.kind == "word":
            self._word(index, token.text.upper(), scope)
        else:
            if scope.expects_table and token.kind == "name":
                self.tables.append(TablePosition(index, self._role()))
            scope.expects_table = False
        self._before = index

    def _word(self, index: int, word: str, scope: Scope) -> None:
        if word in ("SELECT", "TABLE") and not scope.in_subquery:
            self.has_outer_query = True
        if index and self._tokens[index - 1].is_symbol("."):
            scope.expects_table = False
            return
        if scope.expects_table and self._at_table(index, word):
            self.tables.append(TablePosition(index, self._role()))
            if self._in_list():
                scope.expects_table = False
                return
        if scope.in_with and word in _AFTER_WITH and not self._is_in_with_list(index):
            scope.in_with = False
        elif word == "WITH" and self._tokens[index + 1].kind in _NAMES:
            scope.in_with = True
        if word == "FROM":
            scope.expects_table = scope.is_query and not self._compares(index)
            # after ON ... IS DISTINCT FROM, the list of tables continues
            scope.in_from = scope.in_from or scope.expects_table
        elif word == "JOIN":
            scope.expects_table = scope.in_from = scope.is_query
        elif word == "TABLE" or (len(self._open) == 1 and self._takes_table(index, word)):
            scope.expects_table = True
        elif word in AFTER_TABLES or (word == "VIEW" and index and self._tokens[index - 1].is_word("LATERAL")):
            scope.in_from = scope.expects_table = False
        elif word not in _BEFORE_TABLE:
            scope.expects_table = False
        if len(self._open) == 1 and (word in AFTER_TABLES or word == "FROM"):
            self._in_query = True

    def _at_table(self, index: int, word: str) -> bool:
        """Whether the word can begin the name of a table, if a table is expected here."""
        following = self._tokens[index + 1]
        if word in _NO_TABLES or (word in _KEYWORDS and not self._in_list() and not following.is_symbol(".")):
            return False
        return word in _TABLES_WITH_PARENTHESES or not following.is_symbol("(")

    def _in_list(self) -> bool:
        """Whether the table that is expected now is one of a FROM list."""
        before = self._tokens[self._before]
        return before.is_symbol(",") or before.is_word("FROM", "JOIN")

    def _role(self) -> Role:
        """The role of the table that is expected now, by the word before it."""
        if self._before < 0:
            return "other"
        word = self._tokens[self._before]
        before = self._tokens[self._before - 1] if self._before else None
        if word.is_word("FROM"):
            return "other" if before is not None and before.is_word("DELETE") else "from"
        if word.is_word("TABLE"):
            return "other" if before is not None and before.is_word(*_WRITTEN) else "query"
        if word.is_word("USING"):
            return "source" if self._tokens[0].is_word("MERGE") else "other"
        if word.is_symbol(",") or word.is_word("JOIN"):
            return "from"
        return "described" if word.is_word("DESC", "DESCRIBE", "EXTENDED", "FORMATTED") else "other"

    def _compares(self, index: int) -> bool:
        """Whether FROM belongs to IS DISTINCT FROM."""
        tokens = self._tokens
        return index > 1 and tokens[index - 1].is_word("DISTINCT") and tokens[index - 2].is_word("IS", "NOT")

    def _takes_table(self, index: int, word: str) -> bool:
        if word in ("INTO", "OVERWRITE", "EXTENDED", "FORMATTED"):
            return True
        if word == "UPDATE":
            return index == 0 or is_update(self._tokens, index)
        if index == 0:
            return word in ("DESC", "DESCRIBE")
        leading = self._tokens[0].text.upper()
        if (word, leading) in (("USING", "MERGE"), ("IN", "SHOW"), ("VIEW", "DROP"), ("VIEW", "ALTER")):
            return True
        return (word, leading) == ("LIKE", "CREATE") and not self._in_query

    def _is_in_with_list(self, index: int) -> bool:
        """Whether the token is at a position where a WITH list names a query."""
        tokens = self._tokens
        if index == 0 or not (tokens[index + 1].is_symbol("(") or tokens[index + 1].is_word("AS", "MAX")):
            return False
        before = tokens[index - 1]
        return before.is_word("WITH", "RECURSIVE") or (before.is_symbol(",") and tokens[index - 2].is_symbol(")"))

    def _add_with_name(self, name: str, index: int, scope: Scope) -> None:
        scopes = self._with_names.setdefault(name, [])
        # a name in an outer scope already hides as much
        if not scopes or not scopes[-1][1].is_open:
            scopes.append((index, scope))


def is_update(tokens: Sequence[Token], index: int) -> bool:
    """Whether UPDATE begins a command: SET follows a name and an optional alias."""
    if not tokens[index].is_word("UPDATE") or (index and tokens[index - 1].is_symbol(".")):
        return False
    for number, token in enumerate(tokens[index + 1 : index + 20]):
        if token.is_word("SET") and number:
            return True
        if not token.is_name and not token.is_symbol("."):
            return False
    return False
