"""``spark.sql`` is ``delta_pyds.sql`` for what may be about a table by its path.

Invariant: any other text goes to Spark as it is, without being parsed here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from delta_pyds.errors import UnsupportedOperationError
from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.install.formats import delta_is_ours, prepare
from delta_pyds.spark.install.patches import Method, Replacement
from delta_pyds.spark.plain_calls import plain_calls
from delta_pyds.spark.sql.run import run as run_sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BY_PATH = re.compile(r"\b(delta|deltapy)`?\s*\.\s*`", re.IGNORECASE)
# by a name: Spark would look for the JAR
_CREATES = re.compile(r"\s*(?:CREATE|REPLACE)\b[^;]*?\bTABLE\b[^;]*?\bUSING\s+`?delta\b", re.IGNORECASE)
_CHANGES = re.compile(r"\btable_changes(?:_by_path)?\s*\(", re.IGNORECASE)


def _sql_method(original: Method) -> Method:
    def sql(self: Any, sqlQuery: str, args: Any = None, **kwargs: Any) -> Any:
        prepare(self)
        if not isinstance(sqlQuery, str) or not _is_about_ours(self, sqlQuery):
            if isinstance(sqlQuery, str) and _CREATES.match(sqlQuery) and delta_is_ours(self):
                raise UnsupportedOperationError(
                    "a table of Spark's catalog cannot be one of the format delta without the reference's JAR, in this "
                    "version of delta_pyds. Name it by its path: CREATE TABLE delta.`/data/events` ...",
                    code="DELTA_OPERATION_NOT_ALLOWED",
                )
            return original(self, sqlQuery, args, **kwargs)
        # a text may only look as if it were about a table, and comes back then
        with plain_calls():
            return _formatted(self, sqlQuery, args, kwargs) if kwargs else run_sql(self, sqlQuery, args)

    return sql


def _is_about_ours(spark: SparkSession, text: str) -> bool:
    prefixes = {match[1].lower() for match in _BY_PATH.finditer(text)}
    if "deltapy" in prefixes:
        return True
    return bool(prefixes or _CHANGES.search(text)) and delta_is_ours(spark)


def _formatted(spark: SparkSession, text: str, args: Any, values: dict[str, Any]) -> Any:
    """A text with ``{name}``: DataFrames are temporary views while the statement runs."""
    if is_remote(spark):
        from pyspark.sql.connect.sql_formatter import SQLStringFormatter as ConnectFormatter

        names: Any = ConnectFormatter(spark)  # type: ignore[arg-type]
        formatted = names.format(text, **values)
        return run_sql(spark, formatted, args, frames={name: frame for frame, name in names._temp_views})
    from pyspark.sql.sql_formatter import SQLStringFormatter

    formatter: Any = SQLStringFormatter(spark)
    try:
        return run_sql(spark, formatter.format(text, **values), args)
    finally:
        formatter.clear()


SESSION: dict[str, Replacement] = {"sql": _sql_method}
