"""Reads the tokens of a statement: names, literals, and errors with their position in the user's text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import NoReturn, TypeVar

from delta_pyds.errors import DeltaError, ExpressionError, SqlSyntaxError, UnsupportedOperationError
from delta_pyds.expr.parser.lexer import Token, after_hints, marked_position, shortened, tokenize
from delta_pyds.statements.arguments import BoundText
from delta_pyds.statements.kinds import RowConditions, SqlText, TableReference
from delta_pyds.statements.scopes import ScopeTree

T = TypeVar("T")
# only these words cannot be an alias of a table without backticks
NO_ALIAS = (
    "ANTI", "CROSS", "EXCEPT", "FULL", "INNER", "INTERSECT", "JOIN", "LATERAL", "LEFT", "MINUS", "NATURAL", "ON",
    "RIGHT", "SEMI", "UNION", "USING",
)  # fmt: skip


class StatementReader:
    """The tokens of a statement and the index of the next one.

    ``target``: the table of the statement. ``failure``: our parser's error, if the statement is passed on to Spark.
    ``late_error``: the error of a construct that is grammatical but refused by Spark's parser. ``expect_end`` raises
    it, unless another error comes first. ``any_letters``: names with letters beyond ASCII need no backticks, as in
    Python calls. ``conditions``: those of ``row_conditions``, once they were found.
    """

    def __init__(self, bound: BoundText, *, any_letters: bool = False) -> None:
        self.bound = bound
        self._any_letters = any_letters
        self.text = bound.text
        self.tokens = tokens_of(bound)
        self.index = 0
        self.target: TableReference | None = None
        self.failure: DeltaError | None = None
        self.late_error: SqlSyntaxError | None = None
        self.conditions: Mapping[int, RowConditions] | None = None

    @cached_property
    def scopes(self) -> ScopeTree:
        return ScopeTree(self.tokens)

    @property
    def token(self) -> Token:
        return self.tokens[self.index]

    @property
    def following(self) -> Token:
        return self.tokens[min(self.index + 1, len(self.tokens) - 1)]

    @property
    def previous(self) -> Token:
        return self.tokens[max(self.index - 1, 0)]

    def take(self) -> Token:
        token = self.token
        self.index = min(self.index + 1, len(self.tokens) - 1)
        return token

    def at(self, *words: str) -> bool:
        """Whether these words come next, one after another; bars separate alternatives of a word."""
        for offset, wanted in enumerate(words):
            token = self.tokens[min(self.index + offset, len(self.tokens) - 1)]
            if token.kind not in ("word", "symbol") or token.text.upper() not in wanted.split("|"):
                return False
        return True

    def accept(self, *words: str) -> bool:
        """Step over these words if they come next."""
        found = self.at(*words)
        if found:
            self.index += len(words)
        return found

    def expect(self, *words: str) -> None:
        for word in words:
            if not self.accept(word):
                self.fail(f"expected {word.replace('|', ' or ')}")

    def expect_end(self, *, of_delta: bool = False) -> None:
        """``of_delta``: only Delta has the statement; hints in it are comments, as in the reference."""
        while self.accept(";"):
            pass
        if self.token.kind != "end":
            self.fail("the statement should end here")
        for number in after_hints(self.text, self.tokens) if "/*+" in self.text and not of_delta else ():
            if not (number and self.tokens[number - 1].is_word("SELECT")):
                self.fail("a hint can only follow SELECT", self.tokens[number])
        if self.late_error is not None:
            raise self.late_error

    def refuse_at_end(self, reason: str, code: str, token: Token | None = None) -> None:
        """Let ``expect_end`` raise this error, if it is the first of its kind. ``code``: Spark's."""
        if self.late_error is None:
            self.late_error = syntax_error(self.bound, token or self.token, reason, code)

    def fail(self, reason: str, token: Token | None = None) -> NoReturn:
        raise syntax_error(self.bound, token or self.token, reason)

    def refuse(self, what: str, instead: str, *, code: str | None = None) -> NoReturn:
        """Raises: UnsupportedOperationError for a feature of the reference that this version does not support."""
        raise UnsupportedOperationError(
            f"{what} is not supported by this version of delta_pyds. {instead}", code=code, feature=what
        )

    def piece(self, first: int, last: int) -> SqlText:
        """The exact text of the tokens from ``first`` to before ``last``."""
        if first >= last:
            self.fail("an expression is missing", self.tokens[first])
        start, final = self.tokens[first].start, self.tokens[last - 1]
        return SqlText(
            self.text[start : final.start + len(final.text)],
            self.bound.original_position(start),
            first,
            last,
        )

    # names and literals

    def identifier(self) -> str:
        """A name, in backticks or not."""
        token = self.token
        if not token.is_name or not token.value:
            self.fail("expected a name")
        if token.kind == "word" and not (self._any_letters or token.value.isascii()):
            reason = "write a name with letters beyond ASCII in backticks"
            raise syntax_error(self.bound, token, reason, "INVALID_IDENTIFIER")
        self.take()
        return token.value

    def alias(self) -> str:
        """An alias of a table."""
        if self.token.is_word(*NO_ALIAS):
            self.fail("write this word in backticks to use it as an alias")
        return self.identifier()

    def path(self) -> tuple[str, ...]:
        """Names with dots between them."""
        parts = [self.identifier()]
        while self.accept("."):
            parts.append(self.identifier())
        if self.token.is_symbol("-") and self.following.is_name:
            self.fail("write a name with a hyphen in backticks")
        return tuple(parts)

    def path_text(self) -> str:
        """Names with dots as they are written."""
        first = self.index
        self.path()
        return self.piece(first, self.index).text

    def string(self) -> str:
        """A string, or several adjacent ones."""
        if self.token.kind != "string":
            self.fail("expected a string")
        found = self.take().value
        while self.token.kind == "string":
            found += self.take().value
        return found

    def whole_number(self) -> int:
        """A whole number, with an optional sign."""
        negative = self.accept("-")
        token = self.token
        if token.kind != "number" or token.suffix or not token.text.isdecimal() or len(token.text) > 19:
            self.fail("expected a whole number")
        self.take()
        return -int(token.text) if negative else int(token.text)

    def number(self) -> float:
        negative = self.accept("-")
        if self.token.kind != "number":
            self.fail("expected a number")
        found = float(self.take().value)
        return -found if negative else found

    def list_of(self, item: Callable[[], T]) -> tuple[T, ...]:
        """Items with commas between them."""
        found = [item()]
        while self.accept(","):
            found.append(item())
        return tuple(found)

    def in_parentheses(self, item: Callable[[], T]) -> tuple[T, ...]:
        self.expect("(")
        found = self.list_of(item)
        self.expect(")")
        return found


def tokens_of(bound: BoundText) -> list[Token]:
    """Raises: SqlSyntaxError."""
    try:
        return tokenize(bound.text, statement=True)
    except ExpressionError as e:
        position = e.parameters.get("position", 0)
        reason = e.parameters.get("reason", f": {e.message}")
        raise _error(bound, position, str(reason)) from None


def syntax_error(bound: BoundText, token: Token, reason: str, code: str | None = None) -> SqlSyntaxError:
    """An error with its position in the user's text."""
    near = "end of the text" if token.kind == "end" else f"'{shortened(token.text)}'"
    return _error(bound, token.start, f"near {near}: {reason}", code)


def _error(bound: BoundText, position: int, reason: str, code: str | None = None) -> SqlSyntaxError:
    text = bound.original
    original = bound.original_position(position)
    line_start = text.rfind("\n", 0, original) + 1
    return SqlSyntaxError(
        f"the statement is not SQL of Spark or Delta: syntax error {reason} {marked_position(text, original)}",
        code=code,
        multiline=True,
        position=original,
        line=text.count("\n", 0, original) + 1,
        column=original - line_start,
    )
