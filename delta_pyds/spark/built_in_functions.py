"""Spark's built-in functions: whether a name means one of them in a session, and which names a text calls.

From Spark 4.2 on, a session looks names up along a path, and a setting can put its own functions first. Spark 4.0 and
4.1 have one register of names: a function of the session replaces the built-in one of its name. Operators call
functions by name too, of which BETWEEN is the only one without brackets. Functions of a catalog come last there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from delta_pyds.errors import ExpressionError
from delta_pyds.expr.parser.lexer import Token, tokenize
from delta_pyds.protocol.quoting import quote_name
from delta_pyds.spark.plain_calls import plain_calls
from delta_pyds.spark.settings import FUNCTION_ORDER, SQL_PATH
from delta_pyds.spark.versions import calls_built_in_functions_first
from delta_pyds.table.definition.allowed_functions import ALLOWED_FUNCTIONS

BUILT_IN = "system.builtin"
_CLASSES = "org.apache.spark.sql.catalyst.expressions."
_OPERATORS = frozenset({"between"})
# the names of a Column's operators and methods
_OF_COLUMNS = frozenset((
    "+", "-", "*", "/", "%", "==", "<=>", "<", ">", "<=", ">=", "!=", "!", "~", "&", "|", "^", "and", "or", "not", "in",
    "when", "negative", "isnull", "isnotnull",
))  # fmt: skip
# words of expressions that call nothing if a bracket follows
_NOT_CALLED = frozenset((
    "AND", "OR", "NOT", "IN", "LIKE", "RLIKE", "ILIKE", "ESCAPE", "BETWEEN", "CASE", "WHEN", "THEN", "ELSE", "IS",
    "CAST", "TRY_CAST", "AS", "DIV", "INTERVAL",
))  # fmt: skip
# further words of expressions that are not names. With a bracket they are: date(x) calls a function. So does
# DECIMAL(3, 1) here, although it is also a type.
_WORDS = _NOT_CALLED | {
    "END", "NULL", "TRUE", "FALSE", "DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "YEAR", "MONTH", "DAY",
    "HOUR", "MINUTE", "SECOND", "STRING", "BINARY", "BOOLEAN", "TINYINT", "SMALLINT", "INT", "INTEGER", "BIGINT",
    "LONG", "FLOAT", "DOUBLE", "DECIMAL", "X",
}  # fmt: skip


def called_by_operators(tokens: Iterable[Token]) -> set[str]:
    """The names of functions that operators among the tokens call."""
    return {token.value.lower() for token in tokens if token.kind == "word"} & _OPERATORS


def is_keyword(token: Token) -> bool:
    """Whether the token is a word that an expression has beside names."""
    return token.kind == "word" and token.text.upper() in _WORDS


def called(tokens: Iterable[Token]) -> Iterator[Token]:
    """The names of the functions that an expression calls, each without a qualifier."""
    follows_bracket = False
    for token, after in pairwise(tokens):
        # after a call there may be OVER (...) and FILTER (...)
        if token.is_name and after.is_symbol("(") and not (token.is_word(*_NOT_CALLED) or follows_bracket):
            yield token
        follows_bracket = token.is_symbol(")")


def called_names(text: str) -> set[str] | None:
    """The functions that an expression calls by name or operator.

    Returns: None if a name has a qualifier, or if Spark's lexer does not read the text.
    """
    try:
        tokens = tokenize(text)
    except ExpressionError:
        return None
    calls = list(called(tokens))
    # session.max may be the session's own
    starts = {token.start for token in calls}
    if any(dot.is_symbol(".") and name.start in starts for dot, name in pairwise(tokens)):
        return None
    return {token.value.lower() for token in calls} | called_by_operators(tokens)


def calls_only_built_in(spark: SparkSession, texts: Iterable[str], names: Iterable[str] = ()) -> bool:
    """Whether expressions certainly call Spark's own functions alone. ``names``: further functions that they call.

    Most names cost no call of the session; no names cost none at all.
    """
    calls = set(names)
    for text in texts:
        found = called_names(text)
        if found is None:
            return False
        calls |= found
    if calls and calls_built_in_functions_first(spark):
        if path_before_built_in(spark) is not None:
            return False
        calls -= ALLOWED_FUNCTIONS | _OF_COLUMNS | _OPERATORS
    return all(is_built_in(spark, name) for name in calls)


def path_before_built_in(spark: SparkSession) -> str | None:
    """The path of the session's functions if Spark's own do not come first, else None."""
    order = spark.conf.get(FUNCTION_ORDER, None) or "second"
    if (spark.conf.get(SQL_PATH, None) or "false").lower() == "false" and order.lower() in ("second", "last"):
        return None
    with plain_calls():
        path = str(spark.sql(f"SELECT {BUILT_IN}.current_path()").collect()[0][0])
    return None if path.split(",")[0].replace("`", "") == BUILT_IN else path


def is_built_in(spark: SparkSession, name: str) -> bool:
    """Whether the name, without a qualifier, means Spark's own function, not one of a session or an extension.

    With a path of functions, Spark's own must come first in it.
    """
    if calls_built_in_functions_first(spark):
        try:
            found = spark.catalog.getFunction(f"{BUILT_IN}.{quote_name(name)}")
        except PySparkException:
            return False
        return (found.className or "").startswith(_CLASSES)
    return _is_registered(spark, name)


def _is_registered(spark: SparkSession, name: str) -> bool:
    """The same by the register of Spark 4.0 and 4.1. A session's function has no usage text, whatever its class."""
    try:
        with plain_calls():
            rows = [str(row[0]) for row in spark.sql(f"DESCRIBE FUNCTION {quote_name(name)}").collect()]
    except PySparkException:
        return False
    return any(row.startswith(f"Class: {_CLASSES}") for row in rows) and "Usage: N/A." not in rows
