"""``spark.sql`` is ``delta_pyds.sql`` for statements about a table by path, or about one of our names.

Invariant: any other text goes to Spark as it is. On classic sessions a query without path and version is not parsed
here, because Spark's plan shows whether it reads one of our names. It is parsed if it has the name of a table that an
earlier query read, or if Spark cannot analyse it: the columns of a named table may have changed. On Spark Connect the
names of a query are looked up first, in parallel. Each name costs one request to the server; a query without names
costs none.
"""

from __future__ import annotations

import re
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from delta_pyds.errors import DeltaError
from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.catalog_names import tracked_views
from delta_pyds.spark.catalog_names.managed import may_name_managed
from delta_pyds.spark.catalog_names.texts import ENTRY_PREFIX, tables_of_entries
from delta_pyds.spark.install.formats import DELTAPY, delta_is_ours, prepare
from delta_pyds.spark.install.patches import Method, Replacement
from delta_pyds.spark.plain_calls import plain_calls
from delta_pyds.spark.registration import register
from delta_pyds.spark.spark_errors import errors_of_spark
from delta_pyds.spark.sql.run import OurStatement, reads_names_of_ours, statement_on_ours
from delta_pyds.spark.sql.run import run as run_sql
from delta_pyds.spark.sql.statement_errors import errors_about_relative_paths, errors_about_views

_BY_PATH = re.compile(r"\b(delta|deltapy)`?\s*\.\s*`", re.IGNORECASE)
_BLANK = r"(?:\s|--[^\n]*(?:\n|$)|/\*[^*]*(?:\*(?!/)[^*]*)*\*/|\()*"
# statements that may change a table, or that only Delta can answer
_COMMAND = re.compile(
    _BLANK + r"(?:INSERT|MERGE|UPDATE|DELETE|TRUNCATE|ALTER|DROP|COMMENT|CREATE|REPLACE|OPTIMIZE|VACUUM|REORG|RESTORE|"
    r"GENERATE|DESC|DESCRIBE|SHOW|REFRESH|EXPLAIN|CACHE|UNCACHE|CLEAR|ANALYZE|MSCK|BEGIN|EXECUTE|CONVERT)\b",
    re.IGNORECASE | re.DOTALL,
)
# features that Spark's view of a table does not have
_VERSIONS = re.compile(r"\bAS\s+OF\b|@v?\d|\btable_changes\b|\bCHANGES\b|\b_metadata\b|\bSTREAM\b", re.IGNORECASE)
_QUERY = re.compile(_BLANK + r"(?:SELECT|WITH|FROM|TABLE)\b", re.IGNORECASE | re.DOTALL)
# Spark analyses each of these completely before it runs any of it
_ANALYSED = re.compile(
    _BLANK + r"(?:SELECT|WITH|FROM|TABLE|CACHE|CREATE(?:\s+(?:OR|REPLACE|GLOBAL|TEMP|TEMPORARY))*\s+VIEW)\b",
    re.IGNORECASE | re.DOTALL,
)
# words that may stand before a command
_LEADS = re.compile(_BLANK + r"(?:WITH|FROM)\b", re.IGNORECASE | re.DOTALL)
_READS = re.compile(r"\b(?:FROM|JOIN|TABLE)\b", re.IGNORECASE)
_CHANGING = re.compile(r"\b(?:INSERT|MERGE|UPDATE|DELETE)\b", re.IGNORECASE)
_CREATES = re.compile(_BLANK + r"(?:CREATE|REPLACE)\b[^;]*", re.IGNORECASE | re.DOTALL)
_TABLE = re.compile(r"\bTABLE\b", re.IGNORECASE)
_USING_DELTA = re.compile(r"\bUSING\s+`?delta\b", re.IGNORECASE)
_VIEW_USING_DELTA = re.compile(
    _BLANK + r"CREATE(?:\s+OR\s+REPLACE)?(?:\s+GLOBAL)?\s+TEMP(?:ORARY)?\s+VIEW\s+(?:`[^`]*`|[^\s(`;'])+\s*"
    r"(?:\([^;']*?\)\s*)?\bUSING\s+(`delta`|delta\b)",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+")
# for each classic session, the names of our tables that its queries have read, in lower case
_tables_read: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()
_CHANGES = re.compile(r"\btable_changes(?:_by_path)?\s*\(", re.IGNORECASE)


def _sql(original: Method, /, self: Any, sqlQuery: str, args: Any = None, **kwargs: Any) -> Any:
    # outermost: Spark may get one statement twice, but its error must be logged once
    with errors_of_spark():
        return _run(original, self, sqlQuery, args, kwargs)


def _run(original: Method, self: Any, sqlQuery: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    prepare(self)
    if isinstance(sqlQuery, str):
        tracked_views.forget_created_by(self, sqlQuery)
    tracked_views.refresh(self, sqlQuery)
    text = _with_our_name(self, sqlQuery) if isinstance(sqlQuery, str) else sqlQuery
    ours = _on_ours(self, text, args) if isinstance(text, str) else None
    if ours is None:
        try:
            with errors_about_relative_paths(text), errors_about_views(self, text, args):
                frame = original(self, text, args, **kwargs)
        except AnalysisException as error:
            if isinstance(error, DeltaError) or not _reads_outdated_columns(self, text):
                raise
        else:
            if kwargs or not _reads_names_of_ours(self, text, frame):
                return frame
    # if a text only looks as if it were about our table, ``run_sql`` gives it to Spark
    with plain_calls():
        if kwargs:
            return _formatted(self, text, args, kwargs)
        return run_sql(self, *(ours or (text, args, None)))


def _on_ours(spark: SparkSession, text: str, args: Any) -> OurStatement | None:
    """The statement for ``run_sql`` if a text is about our tables; None if Spark runs it.

    On classic sessions Spark runs a query of a name without a version: the view shows the table.
    """
    if _is_about_ours(spark, text):
        return text, args, None
    if may_name_managed(text):
        with plain_calls():
            found = statement_on_ours(spark, text, args)
        if found is not None:
            return found
    asks = (_QUERY.match(text) and _may_read_ours(spark, text)) or (_LEADS.match(text) and _CHANGING.search(text))
    if not (asks or _COMMAND.match(text) or _VERSIONS.search(text)):
        return None
    if creates_delta(text):
        return (text, args, None) if delta_is_ours(spark) else None
    with plain_calls():
        return statement_on_ours(spark, text, args)


def _with_our_name(spark: SparkSession, text: str) -> str:
    """The text of a view that Spark creates ``USING delta``, with our format's name."""
    view = _VIEW_USING_DELTA.match(text)
    if view is None or not delta_is_ours(spark):
        return text
    register(spark)
    return f"{text[: view.start(1)]}{DELTAPY}{text[view.end(1) :]}"


def creates_delta(text: str) -> bool:
    """Whether a text is ``CREATE ... TABLE ... USING delta``, by one search for each word."""
    begun = _CREATES.match(text)
    table = begun and _TABLE.search(begun[0])
    return bool(begun and table and _USING_DELTA.search(begun[0], table.end()))


def _reads_names_of_ours(spark: SparkSession, text: Any, frame: Any) -> bool:
    """Whether a query that has not run yet reads one of our names. ``frame``: Spark's DataFrame of the query."""
    if is_remote(spark) or not isinstance(text, str) or not _QUERY.match(text) or _CHANGING.search(text):
        return False
    if not _READS.search(text):
        return False
    # one call of the JVM takes as long as everything else here
    plan = frame._jdf.logicalPlan().toString()
    if ENTRY_PREFIX not in plan:
        return False
    _tables_read.setdefault(spark, set()).update(tables_of_entries(plan))
    return True


def _may_read_ours(spark: SparkSession, text: str) -> bool:
    """Whether the names of a query are looked up before Spark analyses it: it has a name that was ours before.

    Spark would analyse a query of our names twice, which takes longer than the lookups.
    """
    if is_remote(spark):
        return True
    known = _tables_read.get(spark, set())
    return bool(known) and not known.isdisjoint(_WORD.findall(text.lower()))


def _reads_outdated_columns(spark: SparkSession, text: Any) -> bool:
    """Whether a text that Spark cannot analyse reads our names, whose columns other writers may have changed."""
    if is_remote(spark) or not isinstance(text, str) or not _ANALYSED.match(text) or _CHANGING.search(text):
        return False
    with plain_calls():
        return reads_names_of_ours(spark, text)


def _is_about_ours(spark: SparkSession, text: str) -> bool:
    prefixes = {match[1].lower() for match in _BY_PATH.finditer(text)}
    if "deltapy" in prefixes:
        return True
    return bool(prefixes or _CHANGES.search(text)) and delta_is_ours(spark)


def _formatted(spark: SparkSession, text: str, args: Any, values: dict[str, Any]) -> Any:
    """Run a text with ``{name}``: DataFrames are temporary views while the statement runs."""
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


SESSION: dict[str, Replacement] = {"sql": _sql}
