"""A reader of tokens, types, strings, typed literals and intervals."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from delta_pyds.errors import ExpressionError
from delta_pyds.expr.nodes import Literal
from delta_pyds.expr.parser.lexer import Token, shortened, syntax_error, tokenize
from delta_pyds.expr.parser.syntax import Constant, Interval, Syntax, TypedText
from delta_pyds.expr.types import TYPE_NAMES
from delta_pyds.protocol.schema import (
    BINARY,
    DATE,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
    PrimitiveType,
)

_TYPED = {"DATE": DATE, "TIMESTAMP": TIMESTAMP, "TIMESTAMP_LTZ": TIMESTAMP, "TIMESTAMP_NTZ": TIMESTAMP_NTZ, "X": BINARY}
_SIZE = re.compile(r"0*[0-9]{1,2}")
_MICROS = {"HOUR": 3_600_000_000, "MINUTE": 60_000_000, "SECOND": 1_000_000, "MILLISECOND": 1_000, "MICROSECOND": 1}
_DAYS = {"DAY": 1, "WEEK": 7}
_MONTHS = {"MONTH": 1, "YEAR": 12}
_WHOLE = re.compile(r"-?\d{1,9}")


@dataclass(frozen=True)
class Purpose:
    """The purpose of a text, as messages name it, and its maximum nesting depth."""

    article: str
    noun: str
    max_depth: int


class TokenReader:
    """The tokens of a text and the index of the next one."""

    def __init__(self, text: str, purpose: Purpose) -> None:
        self.text = text
        self.purpose = purpose
        self.tokens = tokenize(text)
        self.index = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.index]

    @property
    def following(self) -> Token:
        return self.tokens[min(self.index + 1, len(self.tokens) - 1)]

    def take(self) -> Token:
        token = self.token
        self.index += 1
        return token

    def at(self, *words: str) -> bool:
        return self.token.is_word(*words)

    def accept(self, word: str) -> bool:
        token = self.tokens[self.index]
        if token.kind in ("word", "symbol") and (token.text == word or token.text.upper() == word):
            self.index += 1
            return True
        return False

    def expect(self, word: str) -> None:
        if not self.accept(word):
            self.fail(f"expected {word}")

    def fail(self, reason: str = "") -> NoReturn:
        near = "end of the text" if self.token.kind == "end" else f"'{shortened(self.token.text)}'"
        raise syntax_error(self.text, self.token.start, f"near {near}" + (f": {reason}" if reason else ""))

    def refuse(self, what: str) -> NoReturn:
        raise not_supported(what, self.purpose, self.token.start, self.text)

    # types and literals

    def data_type(self) -> DataType:
        token = self.take()
        word = token.text.upper()
        if token.kind != "word" or word not in TYPE_NAMES:
            self.index -= 1
            self.refuse(f"a cast to {token.text or 'nothing'}")
        found = TYPE_NAMES[word]
        if isinstance(found, DecimalType) and self.accept("("):
            precision = self.size()
            scale = self.size() if self.accept(",") else 0
            self.expect(")")
            if scale > precision:
                self.fail("the scale of a decimal cannot exceed its precision")
            return DecimalType(precision, scale)
        if self.token.is_symbol("("):
            self.refuse(f"a cast to {word} with a size")
        if self.at("COLLATE"):
            self.refuse("COLLATE")
        return found

    def size(self) -> int:
        token = self.take()
        if token.kind != "number" or not _SIZE.fullmatch(token.text) or int(token.text) > 38:
            self.index -= 1
            self.fail("expected a number up to 38")
        return int(token.text)

    def string(self) -> Literal:
        text = self.take().value
        while self.token.kind == "string":
            text += self.take().value
        return Literal(text, STRING)

    def typed_literal(self) -> Syntax:
        token = self.take()
        data_type: PrimitiveType | None = _TYPED.get(token.text.upper())
        if data_type is None:
            self.refuse(f"a literal of type {token.text.upper()}")
        text = str(self.string().value)
        if data_type != BINARY:
            return TypedText(data_type, text)
        try:
            return Constant(Literal(bytes.fromhex(text if len(text) % 2 == 0 else "0" + text), BINARY))
        except ValueError:
            raise syntax_error(self.text, token.start, f"near '{shortened(text)}': not a hexadecimal number") from None

    def interval(self) -> Interval:
        parts: list[tuple[str, str]] = []
        position = self.take().start
        start = self.token.start
        while True:
            sign = self.take().text if self.token.is_symbol("-", "+") else ""
            if self.token.kind not in ("number", "string"):
                break
            number = self.take()
            if self.token.kind != "word":
                self.refuse("an interval without units")
            parts.append((sign.replace("+", "") + number.value, self.take().text))
            if self.at("TO"):
                self.refuse("an interval of a range of units")
            if not (self.token.kind in ("number", "string") or self.token.is_symbol("-", "+")):
                break
            if self.token.is_symbol("-", "+") and not (
                self.following.kind in ("number", "string") and self.tokens[self.index + 2].kind == "word"
            ):
                break
        last = self.tokens[self.index - 1]
        return Interval(*_read_interval(parts), self.text[start : last.start + len(last.text)], position)


def not_supported(what: str, purpose: Purpose, position: int, text: str) -> ExpressionError:
    """The refusal of a construct by its name, with its position."""
    return ExpressionError(
        f"{what} is not supported in {purpose.article} {purpose.noun}, at position {position} of: "
        f"{shortened(text, position)}",
        construct=what,
    )


def _read_interval(parts: Sequence[tuple[str, str]]) -> tuple[int, int, int, bool, bool]:
    """Months, days and microseconds of ``(number, unit)`` pairs; whether there are months, and a time of day.

    Raises: ExpressionError for a unit or a number that is not supported.
    """
    months = days = micros = 0
    has_months = has_time = False
    for number, written in parts:
        unit = written.upper()
        unit = unit[:-1] if unit.endswith("S") else unit
        if not _WHOLE.fullmatch(number):
            raise ExpressionError(f"the interval '{number} {written}' is not supported: write a whole number.")
        count = int(number)
        if unit in _MONTHS:
            months += count * _MONTHS[unit]
            has_months = True
        elif unit in _DAYS:
            days += count * _DAYS[unit]
        elif unit in _MICROS:
            micros += count * _MICROS[unit]
            has_time = True
        else:
            raise ExpressionError(f"the unit {written.upper()} of an interval is not supported.")
    if not parts:
        raise ExpressionError("an interval needs a number and a unit.", code="PARSE_SYNTAX_ERROR")
    return months, days, micros, has_months, has_time
