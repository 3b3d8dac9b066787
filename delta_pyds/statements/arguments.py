"""The text of a statement with literals in place of its arguments.

Invariant: each position in the bound text has a position in the user's text, which errors show. An argument stays as
written if no value was given, or if its value has no literal here.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from delta_pyds.expr.parser.lexer import Token

_PLAIN = re.compile(r"[^'\\\x00-\x1f$]*")
_MIN_LONG, _MAX_LONG = -(1 << 63), (1 << 63) - 1
# after these words a value follows, so a colon begins an argument; after any other word it is a path into a variant
_BEFORE_VALUES = frozenset((
    "ALL", "AND", "ANY", "AS", "BETWEEN", "BY", "CASE", "CHECK", "DEFAULT", "DISTINCT", "DIV", "ELSE", "ESCAPE",
    "EXISTS", "FILTER", "FOR", "FROM", "HAVING", "ILIKE", "IN", "INTERVAL", "IS", "LIKE", "LIMIT", "NOT", "OF",
    "OFFSET", "ON", "OR", "OVER", "RETAIN", "RLIKE", "REGEXP", "SELECT", "SET", "SOME", "THEN", "USING", "VALUES",
    "WHEN", "WHERE", "WITH", "CONSTRAINT", "FEATURE", "LOCATION", "COMMENT", "VACUUM", "OPTIMIZE", "HISTORY",
    "DETAIL", "VERSION", "SYSTEM_VERSION", "TIMESTAMP", "SYSTEM_TIME",
))  # fmt: skip
# these words among them are often columns; directly before a colon, without a space, they are columns
_OFTEN_NAMES = frozenset((
    "ALL", "ANY", "BY", "CHECK", "COMMENT", "CONSTRAINT", "DEFAULT", "DETAIL", "EXISTS", "FEATURE", "FILTER", "FOR",
    "HISTORY", "LOCATION", "OF", "OFFSET", "OPTIMIZE", "OVER", "RETAIN", "SET", "SOME", "VACUUM", "VALUES",
    "VERSION", "SYSTEM_VERSION", "TIMESTAMP", "SYSTEM_TIME",
))  # fmt: skip
_NESTED_TYPES = ("STRUCT", "MAP", "ARRAY")


@dataclass(frozen=True)
class BoundText:
    """``edits``: start and length in ``text``, start and length in ``original``, in order."""

    text: str
    original: str
    edits: tuple[tuple[int, int, int, int], ...] = ()

    def original_position(self, position: int) -> int:
        """The position in the user's text. For a position within a value, the start of its argument."""
        found = bisect_right(self.edits, (position, math.inf)) - 1
        if found < 0:
            return position
        start, length, there, length_there = self.edits[found]
        return there if position < start + length else there + length_there + position - start - length

    def original_end(self, end: int) -> int:
        """The end, in the user's text, of a piece that ends before ``end``; for a value, the end of its argument."""
        found = bisect_right(self.edits, (end - 1, math.inf)) - 1
        if found >= 0 and end - 1 < self.edits[found][0] + self.edits[found][1]:
            return self.edits[found][2] + self.edits[found][3]
        return self.original_position(end - 1) + 1


def bind(text: str, tokens: Sequence[Token], args: Any) -> BoundText:
    """The text with literals for ``:name`` (``args`` is a mapping) or for ``?`` (a list)."""
    if not args:
        return BoundText(text, text)
    pieces: list[str] = []
    edits: list[tuple[int, int, int, int]] = []
    done = length = 0
    for start, end, key in parameters(tokens):
        literal = _literal_of(args, key)
        if literal is None:
            continue
        if start and _joins(text[start - 1]):
            literal = " " + literal
        if end < len(text) and _joins(text[end]):
            literal += " "
        pieces += [text[done:start], literal]
        length += start - done
        edits.append((length, len(literal), start, end - start))
        length += len(literal)
        done = end
    return BoundText("".join([*pieces, text[done:]]), text, tuple(edits))


def parameters(tokens: Sequence[Token]) -> list[tuple[int, int, str | int]]:
    """The arguments of a statement: start, end, and the name or the index."""
    found: list[tuple[int, int, str | int]] = []
    count = 0
    in_types = _colons_in_types(tokens)
    for index, token in enumerate(tokens):
        if token.kind != "symbol" or token.text not in (":", "?"):
            continue
        if token.text == "?":
            found.append((token.start, token.start + 1, count))
            count += 1
        elif index not in in_types and _is_named_parameter(tokens, index):
            name = tokens[index + 1]
            found.append((token.start, name.start + len(name.text), name.value))
    return found


def _is_named_parameter(tokens: Sequence[Token], index: int) -> bool:
    """Whether the colon begins an argument; otherwise it begins a path into a variant."""
    if not tokens[index + 1].is_name:
        return False
    if index == 0:
        return True
    before = tokens[index - 1]
    if ends_value(before) or before.is_symbol(":"):
        return False
    if before.kind != "word":
        return True
    is_field = index > 1 and tokens[index - 2].is_symbol(".", ":")
    joined = before.start + len(before.text) == tokens[index].start
    return not is_field and not (joined and before.is_word(*_OFTEN_NAMES))


def _colons_in_types(tokens: Sequence[Token]) -> frozenset[int]:
    """The colons after names of fields, as in ``STRUCT<location: STRING>``."""
    found: set[int] = set()
    opened: list[list[int]] = []
    for index, token in enumerate(tokens):
        if token.kind != "symbol":
            continue
        if token.text == "<" and index and tokens[index - 1].is_word(*_NESTED_TYPES):
            opened.append([])
        elif token.text == ":" and opened and tokens[index - 1].is_name:
            opened[-1].append(index)
        elif token.text in (">", ">>", ">>>"):
            for _ in token.text:
                found.update(opened.pop() if opened else ())
        elif token.text == ";":
            opened.clear()
    return frozenset(found)


def ends_value(token: Token) -> bool:
    """Whether a value may end with this token."""
    if token.kind == "word":
        return token.text.upper() not in _BEFORE_VALUES
    return token.kind in ("name", "string", "number", "list") or token.is_symbol(")", "]", "?")


def sql_literal(value: Any) -> str | None:
    """SQL that has this value in any session; None for a value without such a literal here."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        # a space before a sign, because two signs would begin a comment
        return None if not _MIN_LONG < value <= _MAX_LONG else f" {value}" if value < 0 else str(value)
    if isinstance(value, float):
        return f"CAST('{value!r}' AS DOUBLE)"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, (bytes, bytearray)):
        return f"X'{bytes(value).hex()}'"
    if isinstance(value, Decimal):
        return f" {value:f}BD" if value.is_finite() and len(value.as_tuple().digits) <= 38 else None
    if isinstance(value, dt.datetime):
        # without a zone it is a time of this process, as in PySpark
        return f"TIMESTAMP_LTZ'{value.astimezone(dt.timezone.utc).replace(tzinfo=None).isoformat(' ')}Z'"
    return f"DATE'{value.isoformat()}'" if isinstance(value, dt.date) else None


def _text(value: str) -> str | None:
    """The text in quotes, if no setting of the session can change its meaning; else as bytes."""
    if _PLAIN.fullmatch(value):
        return f"'{value}'"
    try:
        return f"CAST(X'{value.encode().hex()}' AS STRING)"
    except UnicodeEncodeError:
        return None


def _literal_of(args: Any, key: str | int) -> str | None:
    if isinstance(args, Mapping):
        return sql_literal(args[key]) if isinstance(key, str) and key in args else None
    if isinstance(args, (list, tuple)) and isinstance(key, int) and key < len(args):
        return sql_literal(args[key])
    return None


def _joins(character: str) -> bool:
    return character.isalnum() or character in "_'`\""
