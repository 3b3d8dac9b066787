"""Expressions of a table that a Spark session computes: the columns that they name, and the ones that are refused.

Invariant: a table's author is not trusted. Its expressions compute values of a row from that row, or they are refused.
A text reaches Spark only if it is one expression by Spark's grammar, does not depend on settings of the session, and
calls only ``allowed_functions``, by unqualified names. ``spark.row_changes.table_expression`` checks that these names
mean Spark's built-in functions in the session.

Text in double quotes is an identifier if ``spark.sql.ansi.doubleQuotedIdentifiers`` is on. It counts as string and
name, and is never called. ``spark.sql.parser.escapedStringLiterals`` does not change where a string ends.

Protocol: "CHECK Constraints", "Column Invariants", "Generated Columns", "Default Columns".
"""

from __future__ import annotations

from delta_pyds.errors import ExpressionError
from delta_pyds.expr.parser.lexer import tokenize
from delta_pyds.expr.parser.recognizer import called_functions
from delta_pyds.protocol.schema import StructType
from delta_pyds.table.definition.allowed_functions import ALLOWED_FUNCTIONS
from delta_pyds.tasks.write_state import SparkExpression


def spark_expression(text: str, schema: StructType, owner: str) -> SparkExpression:
    """The expression, for a session to compute.

    Args:
        schema: of the table.
        owner: the owner of the expression, for messages.
    Raises:
        ExpressionError: the text is not an expression, has ``*`` or a variable reference of the session, or calls a
            function that is not in ``allowed_functions``.
    """
    problem = _problem(text)
    if problem is not None:
        raise ExpressionError(
            f"nothing can be written: {owner}, {text}, {problem}. An expression of a table may only compute a value of "
            "a row. Give the table another expression (drop the constraint, set another default, replace the column). "
            "Compute the rest in the rows that you write.",
            code="DELTA_UNSUPPORTED_EXPRESSION",
            expression=text,
        )
    return SparkExpression(text, named_columns(text, schema))


def named_columns(text: str, schema: StructType) -> tuple[str, ...]:
    """The columns that a text may use, in the table's order."""
    names = possible_names(text)
    return tuple(name for name in schema.names if names is None or name.lower() in names)


def possible_names(text: str) -> frozenset[str] | None:
    """All possible names of columns or variables, or parts of them, in lower case.

    None if any name is possible: the text cannot be tokenized, or Spark makes identifiers from other text in it.
    """
    try:
        tokens = tokenize(text)
    except ExpressionError:
        return None
    if "${" in text or any(token.is_word("IDENTIFIER") for token in tokens):
        return None
    names = {token.value for token in tokens if token.is_name}
    names |= {token.text[1:-1].replace('""', '"') for token in tokens if token.text.startswith('"')}
    return frozenset(name.lower() for name in names if name)


def function_names(text: str) -> frozenset[str]:
    """The names of the functions that an expression calls, in lower case, without qualifiers.

    Raises: ExpressionError if the text is not a Spark expression.
    """
    return frozenset(call.name[-1].lower() for call in called_functions(text))


def _problem(text: str) -> str | None:
    if "${" in text:
        return "has ${...}, which Spark replaces by settings of the session"
    try:
        calls = called_functions(text)
    except ExpressionError as e:
        return f"is not an expression of a row: {e.message}"
    for call in calls:
        name = ".".join(call.name)
        if len(call.name) > 1:
            return f"calls {name}: function names must be unqualified"
        if not (name.isascii() and name.lower() in ALLOWED_FUNCTIONS):
            return f"calls {name}, which is not one of Spark's functions that depend only on their arguments"
    return None
