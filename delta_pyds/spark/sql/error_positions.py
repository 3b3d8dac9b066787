"""Errors of Spark about an expression, with the position in the user's statement.

Spark gets the expressions of a command one by one, so its lines and positions are relative to an expression.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException, ParseException

from delta_pyds.errors import DeltaError, SqlSyntaxError, UserError
from delta_pyds.expr.parser.lexer import marked_position
from delta_pyds.spark.query_context import fragment_of
from delta_pyds.spark.spark_errors import explained

if TYPE_CHECKING:
    from delta_pyds.statements.parse import ParsedStatement

_SHOWN = re.compile(r"\s*(?:SQLSTATE: \w+ )?\(line (\d+), pos (\d+)\)\s*== SQL ==\n(.*)", re.DOTALL)
_CODE = re.compile(r"\[[A-Z_.]+\]\s*")


@contextmanager
def errors_with_positions(parsed: ParsedStatement, text: str) -> Iterator[None]:
    """Add the position in ``text`` to an error of Spark's parser or analysis, if it is known."""
    try:
        yield
    except UserError as e:
        position = _position_of(e.parameters.get("fragment"), parsed)
        if position is None:
            raise
        parameters = {name: value for name, value in e.parameters.items() if name != "fragment"}
        raise type(e)(
            f"{e.message} {marked_position(text, position)}", code=e.code, multiline=True, **parameters
        ) from None
    except ParseException as e:
        found = None if isinstance(e, DeltaError) else _with_position(e, parsed, text)
        if found is None:
            raise
        raise found from None
    except AnalysisException as e:
        position = _position_of(fragment_of(e), parsed)
        if position is None:
            raise
        raise explained(e, marked_position(text, position)) from None


def _position_of(fragment: tuple[str, int] | None, parsed: ParsedStatement) -> int | None:
    return None if fragment is None else parsed.position_of_fragment(*fragment)


def _with_position(error: ParseException, parsed: ParsedStatement, text: str) -> SqlSyntaxError | None:
    message = str(error)
    shown = _SHOWN.search(message)
    if shown is None:
        return None
    line, column = int(shown[1]), int(shown[2])
    lines = shown[3].split("\n")
    # Spark prints a mark below the line of the error
    if not 0 < line < len(lines) or not lines[line].startswith("-" * column + "^^^"):
        return None
    piece = "\n".join([*lines[:line], *lines[line + 1 :]]).split("\n\nJVM stacktrace")[0].strip()
    position = parsed.position_of(piece, sum(len(before) + 1 for before in lines[: line - 1]) + column)
    if position is None:
        return None
    reason = _CODE.sub("", message[: shown.start()].strip(), count=1)
    line_start = text.rfind("\n", 0, position) + 1
    return SqlSyntaxError(
        f"{reason} {marked_position(text, position)}",
        code=error.getCondition(),
        multiline=True,
        position=position,
        line=text.count("\n", 0, position) + 1,
        column=position - line_start,
    )
