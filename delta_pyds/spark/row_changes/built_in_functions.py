"""Spark's built-in functions: whether a name means one of them in a session.

From Spark 4.2 on, a session looks names up along a path, and a setting can put its own functions first. Spark 4.0 and
4.1 have one register of names: a function of the session replaces the built-in one of its name. Operators call
functions by name too, of which BETWEEN is the only one without brackets. Functions of a catalog come last there.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from delta_pyds.expr.parser.lexer import Token
from delta_pyds.protocol.quoting import quote_name
from delta_pyds.spark.plain_calls import plain_calls
from delta_pyds.spark.versions import calls_built_in_functions_first

BUILT_IN = "system.builtin"
_CLASSES = "org.apache.spark.sql.catalyst.expressions."
_OPERATORS = frozenset({"between"})


def called_by_operators(tokens: Iterable[Token]) -> set[str]:
    """The names of functions that operators among the tokens call."""
    return {token.value.lower() for token in tokens if token.kind == "word"} & _OPERATORS


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
