"""Expressions of a table that a Spark session computes: what their texts name, and what no session is asked for.

Invariant: a table is another's; its expressions compute values of a row from that row, or they are refused. A text
reaches Spark only if it is one expression by Spark's grammar, means the same whatever the session's settings are, and
calls none but ``allowed_functions``, by names without qualifiers. That these are Spark's own in a session is for
``spark.row_changes.table_expression`` to ask.

A text in double quotes is a name where ``spark.sql.ansi.doubleQuotedIdentifiers`` is on: it counts as both, and is
never called. ``spark.sql.parser.escapedStringLiterals`` moves no end of a text.

Protocol: "CHECK Constraints", "Column Invariants", "Generated Columns", "Default Columns".
"""

from __future__ import annotations

from delta_pyds.errors import ExpressionError
from delta_pyds.expr.parser.lexer import tokenize
from delta_pyds.expr.parser.recognizer import called_functions
from delta_pyds.protocol.schema import StructType
from delta_pyds.table.definition.allowed_functions import ALLOWED_FUNCTIONS
from delta_pyds.tasks.write_state import SparkExpression


def spark_expression(text: str, schema: StructType, what: str) -> SparkExpression:
    """The expression, for a session to compute. ``schema``: of the table. ``what``: whose it is, for messages.

    Raises: ExpressionError naming what no session is asked for: functions that are not known to see nothing but their
        arguments, ``*``, what is no expression, and settings of the session in the text.
    """
    problem = _problem(text)
    if problem is not None:
        raise ExpressionError(
            f"nothing can be written: {what}, {text}, {problem}. An expression of a table computes a value of a "
            "row, and may do no more. Give the table another one (drop the constraint, set another default, replace "
            "the column), and compute the rest in the rows that you write.",
            code="DELTA_UNSUPPORTED_EXPRESSION",
            expression=text,
        )
    return SparkExpression(text, named_columns(text, schema))


def named_columns(text: str, schema: StructType) -> tuple[str, ...]:
    """The columns that a text may name, in the table's order."""
    names = possible_names(text)
    return tuple(name for name in schema.names if names is None or name.lower() in names)


def possible_names(text: str) -> frozenset[str] | None:
    """All that could be the name of a column, a variable or a part of one, in lower case.

    None where any name is possible: in a text that cannot be read, or in which Spark makes names of other texts.
    """
    try:
        tokens = tokenize(text)
    except ExpressionError:
        return None
    if "${" in text or any(token.is_word("IDENTIFIER") for token in tokens):
        return None
    names = {token.value for token in tokens if token.kind in ("word", "name")}
    names |= {token.text[1:-1].replace('""', '"') for token in tokens if token.text.startswith('"')}
    return frozenset(name.lower() for name in names if name)


def function_names(text: str) -> frozenset[str]:
    """The names of the functions that an expression calls, in lower case, without what qualifies them.

    Raises: ExpressionError for what is no expression of Spark's.
    """
    return frozenset(call.name[-1].lower() for call in called_functions(text))


def _problem(text: str) -> str | None:
    if "${" in text:
        return "has ${...}, in place of which Spark puts settings of the session"
    try:
        calls = called_functions(text)
    except ExpressionError as e:
        return f"is no expression of a row: {e.message}"
    for call in calls:
        name = ".".join(call.name)
        if len(call.name) > 1:
            return f"calls {name}: functions are called by names without qualifiers"
        if not (name.isascii() and name.lower() in ALLOWED_FUNCTIONS):
            return f"calls {name}, which is no function of Spark's that is known to see nothing but its arguments"
    return None
