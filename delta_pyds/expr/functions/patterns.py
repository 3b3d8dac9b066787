"""Patterns over strings: LIKE, startswith, endswith, contains."""

from __future__ import annotations

from delta_pyds.errors import ExpressionError
from delta_pyds.expr.logic import always, require_comparable
from delta_pyds.expr.nodes import (
    ANY_CHARACTER,
    ANY_STRING,
    NULL,
    Comparison,
    Expr,
    Like,
    Literal,
    Wildcard,
    to_sql,
    type_of,
)
from delta_pyds.expr.parser.lexer import shortened
from delta_pyds.protocol.schema import STRING

# beyond this length, matching takes excessive memory and time, and Arrow fails at some length
MAX_PATTERN = 10_000


def like(expr: Expr, pattern: Expr, escape: str = "\\") -> Expr:
    """``expr LIKE pattern ESCAPE escape``; the pattern is a constant.

    Raises: ExpressionError: INVALID_FORMAT.ESC_IN_THE_MIDDLE and .ESC_AT_THE_END as Spark.
    """
    text = _constant_text("LIKE", expr, pattern)
    return NULL if text is None else _like(expr, like_parts(text, escape))


def like_parts(text: str, escape: str) -> list[str | Wildcard]:
    """The parts of a LIKE pattern; two texts or two ANY_STRINGs are never adjacent.

    Raises: ExpressionError as ``like``, and for a pattern with wildcards that is too long.
    """
    parts: list[str | Wildcard] = []
    characters: list[str] = []

    def end_text() -> None:
        if characters:
            parts.append("".join(characters))
            characters.clear()

    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character == escape:
            characters.append(_escaped(text, position, escape))
            position += 1
        elif character == "%":
            end_text()
            if not parts or parts[-1] != ANY_STRING:
                parts.append(ANY_STRING)
        elif character == "_":
            end_text()
            parts.append(ANY_CHARACTER)
        else:
            characters.append(character)
    end_text()
    if len(text) > MAX_PATTERN and len(_between(parts)) > 1:
        raise ExpressionError(
            f"the pattern '{shortened(text)}' of LIKE has {len(text)} characters, but with wildcards at most "
            f"{MAX_PATTERN} are supported: shorten it, or use startswith, endswith and contains.",
            construct="LIKE",
        )
    return parts


def _between(parts: list[str | Wildcard]) -> list[str | Wildcard]:
    """The parts without ANY_STRING at either end, which costs nothing."""
    first = 1 if parts[:1] == [ANY_STRING] else 0
    return parts[first : len(parts) - 1 if parts[-1:] == [ANY_STRING] else len(parts)]


def _escaped(text: str, position: int, escape: str) -> str:
    if position == len(text):
        raise ExpressionError(
            f"the pattern '{shortened(text)}' ends with its escape character '{escape}'.",
            code="INVALID_FORMAT.ESC_AT_THE_END",
        )
    character = text[position]
    if character not in ("_", "%", escape):
        raise ExpressionError(
            f"in the pattern '{shortened(text, position)}' the escape character '{escape}' precedes "
            f"'{character}': it may only precede '_', '%' and itself.",
            code="INVALID_FORMAT.ESC_IN_THE_MIDDLE",
        )
    return character


def text_match(function: str, expr: Expr, text: Expr) -> Expr:
    """``startswith``, ``endswith`` and ``contains`` with a constant."""
    wanted = _constant_text(function, expr, text)
    return NULL if wanted is None else _like(expr, match_parts(function, wanted))


def match_parts(function: str, text: str) -> list[str | Wildcard]:
    """The parts of the LIKE pattern for ``startswith``, ``endswith`` or ``contains``."""
    before: list[str | Wildcard] = [] if function == "startswith" else [ANY_STRING]
    after: list[str | Wildcard] = [] if function == "endswith" else [ANY_STRING]
    return [*before, text, *after] if text else [ANY_STRING]


def _constant_text(function: str, expr: Expr, text: Expr) -> str | None:
    if isinstance(expr, Literal) and expr.value is None:
        return None
    if type_of(expr) != STRING or (isinstance(expr, Literal)):
        raise ExpressionError(f"{function} works on STRING columns only, not on '{to_sql(expr)}'.")
    if not isinstance(text, Literal) or not (text.value is None or isinstance(text.value, str)):
        raise ExpressionError(f"{function} needs a string literal, not '{to_sql(text)}'.")
    require_comparable(expr, text)
    return text.value


def _like(expr: Expr, parts: list[str | Wildcard]) -> Expr:
    if all(isinstance(part, str) for part in parts):
        return Comparison("=", expr, Literal("".join(str(part) for part in parts), STRING))
    if parts == [ANY_STRING]:
        return always(expr)
    return Like(expr, tuple(parts))
