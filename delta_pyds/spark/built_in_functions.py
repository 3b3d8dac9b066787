"""Spark's built-in functions: whether a name means one of them in a session, and which names a text calls.

From Spark 4.2 on, a session looks names up along a path, and a setting can put its own functions first. Spark 4.0 and
4.1 have one register of names: a function of the session replaces the built-in one of its name. Operators call
functions by name too, of which BETWEEN is the only one without brackets. Functions of a catalog come last there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import pairwise

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

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
# words of expressions that are not names
WORDS = frozenset((
    "AND", "OR", "NOT", "IN", "LIKE", "RLIKE", "ILIKE", "ESCAPE", "BETWEEN", "CASE", "WHEN", "THEN", "ELSE", "END",
    "IS", "NULL", "TRUE", "FALSE", "CAST", "TRY_CAST", "AS", "DIV", "DATE", "TIMESTAMP", "TIMESTAMP_LTZ",
    "TIMESTAMP_NTZ", "INTERVAL", "YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", "STRING", "BINARY", "BOOLEAN",
    "TINYINT", "SMALLINT", "INT", "INTEGER", "BIGINT", "LONG", "FLOAT", "DOUBLE", "DECIMAL", "X",
))  # fmt: skip

# words of these that have a bracket after them only as the name of a function
_ONLY_AS_NAME = frozenset(("X", "LONG", "INTEGER", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "END", "NULL", "TRUE", "FALSE"))


def called_by_operators(tokens: Iterable[Token]) -> set[str]:
    """The names of functions that operators among the tokens call."""
    return {token.value.lower() for token in tokens if token.kind == "word"} & _OPERATORS


def is_name(token: Token) -> bool:
    return token.kind in ("word", "name")


def is_keyword(token: Token) -> bool:
    """Whether the token is a word that an expression has beside names."""
    return token.kind == "word" and token.text.upper() in WORDS


def called(tokens: Iterable[Token]) -> Iterator[Token]:
    """The names of the functions that an expression calls, each without a qualifier."""
    follows_bracket = False
    for token, after in pairwise(tokens):
        # after a call there may be OVER (...) and FILTER (...)
        other = (is_keyword(token) and not token.is_word(*_ONLY_AS_NAME)) or follows_bracket
        if is_name(token) and after.is_symbol("(") and not other:
            yield token
        follows_bracket = token.is_symbol(")")


def calls_only_built_in(spark: SparkSession, text: str) -> bool:
    """Whether an expression certainly calls Spark's own functions alone.

    Raises: ExpressionError if Spark's lexer does not read the text.
    """
    tokens = tokenize(text)
    # session.max may be the session's own
    starts = {token.start for token in called(tokens)}
    qualified = any(dot.is_symbol(".") and name.start in starts for dot, name in pairwise(tokens))
    return not qualified and are_built_in(spark, {token.value.lower() for token in called(tokens)})


def are_built_in(spark: SparkSession, names: Collection[str]) -> bool:
    """``is_built_in`` for each of the names. Most names cost no call of the session; no names cost none at all."""
    if not names:
        return True
    if calls_built_in_functions_first(spark):
        if path_before_built_in(spark) is not None:
            return False
        names = set(names) - ALLOWED_FUNCTIONS - _OF_COLUMNS
    return all(is_built_in(spark, name) for name in names)


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
