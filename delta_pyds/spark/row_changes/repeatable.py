"""Whether a query that finds or changes rows has the same result for a row if it runs again later.

A command that lost a race runs its query again on the rows that the winner changed. So its expressions may not use
random numbers, the current time or user, or another table. They may not call a function that the session may replace.

A classic session shows the resolved plan. On Spark Connect only texts are available, so more is refused there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession

from delta_pyds.errors import ExpressionError, first_line
from delta_pyds.expr.parser.lexer import Token, tokenize
from delta_pyds.redaction import safe_logger
from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.built_in_functions import called, calls_only_built_in, is_built_in, is_keyword
from delta_pyds.spark.jvm_plans import analyzed, has_special_datetimes, whole_text
from delta_pyds.spark.row_changes.column_text import text_of_column
from delta_pyds.spark.row_changes.handle import TableHandle
from delta_pyds.spark.row_changes.session_settings import SessionSettings
from delta_pyds.spark.row_sources import text_has_subquery
from delta_pyds.spark.source.error_transport import errors_as_they_were
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.table.transaction.mend import NotRepeatableError
from delta_pyds.tasks.write_state import SparkExpression, WriteState

logger = safe_logger(__name__)
_VARIABLE = "VARIABLE_REFERENCE"
_SUBQUERY = "PLAN_EXPRESSION"
_PATTERNS = (_SUBQUERY, "CURRENT_LIKE", _VARIABLE)
# words that Spark casts to the time of the query, variables, and the mark of a shortened text
_CLOCK = re.compile(r"\b(now|today|yesterday|tomorrow)\b|\$\{|\.\.\.", re.IGNORECASE)
# functions whose value may be another one when the query runs again
_CHANGING = re.compile(
    r"current_.*|now|curdate|localtime|localtimestamp|session_user|user|unix_timestamp|rand|random|randn|randstr|uniform"
    r"|uuid|shuffle|monotonically_increasing_id|spark_partition_id|input_file_.*|(try_)?reflect|java_method",
    re.IGNORECASE,
)
# functions that return no text, but a date, a time or a number
_NO_TEXT = frozenset(("date", "timestamp", "to_date", "to_timestamp", "make_date", "make_timestamp", "int", "bigint"))
_CALLED = re.compile(r"\b([^\W\d]\w*)`?\(")


def require_repeatable(
    frame: DataFrame, expressions: Iterable[Column | str], *, of_table: Iterable[str] = (), names: Iterable[str] = ()
) -> None:
    """Check that the rows of a query change in the same way each time.

    ``frame``: the query, over rows of files and a materialized source. ``expressions``: of the user. ``of_table``: the
    expressions of the table's columns and rules. ``names``: the names that ``expressions`` may use.
    Raises: NotRepeatableError.
    """
    spark, given, own = frame.sparkSession, list(expressions), list(of_table)
    shown = [*own, *(one if isinstance(one, str) else str(one) for one in given)]
    if any(_CLOCK.search(text) for text in shown):
        raise NotRepeatableError
    texts = [one if isinstance(one, str) else text_of_column(one) for one in given]
    if is_remote(spark):
        words = {name.lower() for name in names}
        if any(text is None or not _has_only(text, words) for text in texts):
            raise NotRepeatableError
        if any(not _is_stable(text) or _may_compute_text(tokenize(text), words) for text in own):
            raise NotRepeatableError
    elif not _is_fixed_plan(frame) or has_special_datetimes(frame.sparkSession, analyzed(frame)):
        raise NotRepeatableError
    if not calls_only_built_in(spark, (one for one in given if isinstance(one, str))):
        raise NotRepeatableError
    # a Python function in a Column stays the same, unless the session looks it up by its name
    if any(_names_function_of_session(spark, one) for one in given if not isinstance(one, str)):
        raise NotRepeatableError


def require_independent_decisions(frame: DataFrame, expressions: Iterable[Column | str]) -> None:
    """Check that the query decides on each row without other rows: it has no subquery.

    Earlier decisions stay valid, even if they used random numbers or the time. Arguments as ``require_repeatable``.
    Raises: NotRepeatableError.
    """
    spark = frame.sparkSession
    if is_remote(spark):
        texts = [one if isinstance(one, str) else text_of_column(one) for one in expressions]
        known = [text for text in texts if text is not None]
        # a function of the session may have a subquery
        if len(known) < len(texts) or any(map(text_has_subquery, known)) or not calls_only_built_in(spark, known):
            raise NotRepeatableError
    elif analyzed(frame).containsPattern(_patterns(frame).withName(_SUBQUERY)):
        raise NotRepeatableError


@contextmanager
def errors_of_mends(settings: SessionSettings) -> Iterator[None]:
    """Raise a task's DeltaError itself, and NotRepeatableError for a query that Spark refuses over rows of files.

    Such a query uses a column that only Spark's own scan of files has. ``settings``: those when the command began.
    Under other settings, any error becomes a NotRepeatableError: they may be the cause.
    """
    try:
        with errors_as_they_were():
            yield
    except NotRepeatableError:
        raise
    except AnalysisException as error:
        logger.info("The command cannot decide again on some rows: %s", first_line(error))
        raise NotRepeatableError from error
    except Exception as error:
        _require_same(settings, error)
        raise


def _require_same(settings: SessionSettings, error: Exception) -> None:
    """Raises: NotRepeatableError from ``error`` if the session has other settings now."""
    try:
        settings.require_same()
    except NotRepeatableError as changed:
        raise changed from error
    except Exception as lost:
        # the session is gone: the first error must be raised
        logger.debug("The settings of the session are unknown: %s: %s", type(lost).__name__, lost)


def names_of(target: TableHandle, snapshot: Snapshot) -> list[str]:
    """The names that expressions over the table use: of its columns, and its alias."""
    names = list(snapshot.schema.names)
    return names if target.alias is None else [*names, target.alias]


def texts_of(write: WriteState) -> list[str]:
    """The expressions of the table that a session computes for written rows."""
    computed = [source.computed for source in write.columns if source.computed is not None]
    rules = [rule.expression for rule in write.checks if isinstance(rule.expression, SparkExpression)]
    return [expression.sql for expression in (*computed, *rules)]


def _is_fixed_plan(frame: Any) -> bool:
    """Whether a plan is deterministic, without subqueries, variables, and the current time or user."""
    plan, patterns = analyzed(frame), _patterns(frame)
    there = set(_PATTERNS).intersection(patterns.values().mkString(" ").split())
    if not plan.deterministic() or any(plan.containsPattern(patterns.withName(name)) for name in there):
        return False
    if _VARIABLE in there:
        return True
    # Spark 4.0 has no such pattern
    shown = whole_text(plan)
    return shown is not None and "variablereference(" not in shown


def _patterns(frame: Any) -> Any:
    return frame.sparkSession._jvm.org.apache.spark.sql.catalyst.trees.TreePattern


def _names_function_of_session(spark: SparkSession, column: Column) -> bool:
    names = set(_CALLED.findall(str(column)))
    return any(not is_built_in(spark, name) and spark.catalog.functionExists(name) for name in names)


def _has_only(text: str, names: set[str]) -> bool:
    """Whether a text has only these names, and calls no function whose value changes."""
    try:
        tokens = tokenize(text)
    except ExpressionError:
        return False
    calls = {token.start for token in called(tokens)}
    known = (t.value.lower() in names or is_keyword(t) or t.start in calls for t in tokens if t.is_name)
    return all(known) and _is_stable(text) and not _may_compute_text(tokens, names)


def _may_compute_text(tokens: Sequence[Token], names: set[str]) -> bool:
    """Whether Spark may compute a text from constants alone. The text may be a word for the time (see ``_CLOCK``)."""

    def is_column(token: Token) -> bool:
        return token.is_name and token.value.lower() in names and not is_keyword(token)

    # the opened calls: whether each may return a text, and names a column
    calls: list[list[bool]] = []
    for before, token, after in zip((None, *tokens), tokens, (*tokens[1:], None), strict=False):
        if token.kind == "string" and (_CLOCK.search(token.value) or (after is not None and after.kind == "string")):
            return True
        if token.is_word("X"):
            # bytes, which a cast may turn into a text
            return True
        if token.is_symbol("||") and not any(one is not None and is_column(one) for one in (before, after)):
            return True
        if token.is_symbol("("):
            name = before.value.lower() if before is not None and before.is_name else ""
            is_call = bool(name) and before is not None and not is_keyword(before)
            calls.append([is_call and name not in _NO_TEXT, False])
        elif token.is_symbol(")") and calls:
            may_be_text, has_column = calls.pop()
            if may_be_text and not has_column:
                return True
            if calls:
                calls[-1][1] |= has_column
        elif is_column(token) and calls:
            calls[-1][1] = True
    return False


def _is_stable(text: str) -> bool:
    """Whether a text names no function whose value changes, and has no subquery."""
    try:
        words = [token.value for token in tokenize(text) if token.is_name]
    except ExpressionError:
        return False
    return not any(map(_CHANGING.fullmatch, words)) and not text_has_subquery(text)
