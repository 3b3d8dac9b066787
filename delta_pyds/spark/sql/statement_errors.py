"""Errors of Spark about a statement, in the words of the user's statement.

Invariant: an error of Spark does not change unless it is about an expression of the statement, a relative path, or a
view. Without an error there is no request to Spark.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import SparkSession

from delta_pyds.errors import DeltaError, SqlSyntaxError, TableNotFoundError, UnsupportedOperationError, UserError
from delta_pyds.expr.parser.lexer import marked_position
from delta_pyds.spark.catalog_names.lookup import find_quietly
from delta_pyds.spark.plain_calls import plain_calls
from delta_pyds.spark.spark_errors import explained, fragment_of
from delta_pyds.statements.kinds import Delete, Insert, Merge, PassThrough, Truncate, Update
from delta_pyds.statements.parse import ParsedStatement, parse_statement
from delta_pyds.statements.spark_statements import name_of

_CHANGES = (Delete, Insert, Merge, Truncate, Update)
# parts of Spark's errors about a view over a table that it cannot change itself
_MESSAGES = ("TABLE_OPERATION", "does not support deletes", "does not support truncates", "Unexpected table relation")
# Spark knows our catalog entry as a view
_IS_VIEW = re.compile(r"expects a table but (.+?) is a view")
# Spark's scripts replace an error without an SQLSTATE, such as that of a DELETE, by a NullPointerException
_WITHOUT_CAUSE = 'because "sqlState" is null'
_NAME = re.compile(r"\b(delta|deltapy)`?\s*\.\s*`([^`/]+)`", re.IGNORECASE)
# Spark raises the second condition if the schema is called like one of its data sources
_CONDITIONS = ("TABLE_OR_VIEW_NOT_FOUND", "UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY")
_SHOWN = re.compile(r"\s*(?:SQLSTATE: \w+ )?\(line (\d+), pos (\d+)\)\s*== SQL ==\n(.*)", re.DOTALL)
_CODE = re.compile(r"\[[A-Z_.]+\]\s*")


@contextmanager
def errors_with_positions(parsed: ParsedStatement, text: str) -> Iterator[None]:
    """Add the position in ``text`` to an error of Spark's parser or analysis, if it is known.

    Spark gets the expressions of a command one by one, so its lines and positions are relative to an expression.
    """
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


@contextmanager
def errors_about_relative_paths(text: Any) -> Iterator[None]:
    """Raises: TableNotFoundError (TABLE_OR_VIEW_NOT_FOUND) instead of Spark's error about a relative path.

    To Spark, and the reference, ``delta.`events` `` is a table of a schema ``delta``.
    """
    try:
        yield
    except AnalysisException as error:
        if isinstance(error, DeltaError) or error.getCondition() not in _CONDITIONS:
            raise
        # the second condition of Spark names no table
        about_name = error.getCondition() == "TABLE_OR_VIEW_NOT_FOUND"
        about = (error.getMessageParameters() or {}).get("relationName", "") if about_name else text
        found = _NAME.search(about) if isinstance(about, str) else None
        if found is None:
            raise
        schema, name = found.groups()
        raise TableNotFoundError(
            f"the schema {schema!r} has no table {name!r:.200}. If it is a path: in SQL paths are absolute, or have "
            f"a scheme. Write {schema}.`{os.path.abspath(name)}`, if that is the table.",
            code="TABLE_OR_VIEW_NOT_FOUND",
            table=name,
        ) from None


@contextmanager
def errors_about_views(spark: SparkSession, text: Any, args: Any = None) -> Iterator[None]:
    """Replace Spark's errors about a row change through a view. The reference supports views of one table.

    Raises: UnsupportedOperationError instead of Spark's error about the tables below the view.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, DeltaError):
            raise
        message = str(error)
        of_rows = any(words in message for words in _MESSAGES)
        if not (of_rows or _WITHOUT_CAUSE in message or _IS_VIEW.search(message)):
            raise
        refused = _refused_immediate(spark, text, args, message) or (of_rows and _refused(spark, text, args))
        if not refused:
            raise
        raise refused from None


def _refused_immediate(spark: SparkSession, text: Any, args: Any, message: str) -> UnsupportedOperationError | None:
    """The refusal of a statement whose text only Spark knows, such as that of a variable of a script."""
    try:
        statement = parse_statement(text, args).statement
    except DeltaError:
        return None
    if not isinstance(statement, PassThrough) or not statement.immediate:
        return None
    view = _IS_VIEW.search(message)
    if view is not None and find_quietly(spark, name_of(view[1]) or ()) is None:
        return None
    unknown = "the script failed, and Spark reports no cause. " if _WITHOUT_CAUSE in message else ""
    return UnsupportedOperationError(
        f"{unknown}EXECUTE IMMEDIATE of a variable whose text changes a Delta table is not supported by this version "
        "of delta_pyds. Give spark.sql the statement itself.",
        code="DELTA_OPERATION_NOT_ALLOWED",
        feature="EXECUTE IMMEDIATE",
    )


def _refused(spark: SparkSession, text: Any, args: Any) -> UnsupportedOperationError | None:
    try:
        statement = parse_statement(text, args).statement
        if not isinstance(statement, _CHANGES) or statement.target.path is not None:
            return None
        name = statement.target.text
        with plain_calls():
            found = spark.catalog.getTable(name)
    except (DeltaError, PySparkException):
        return None
    if not (found.isTemporary or found.tableType == "VIEW"):
        return None
    verb = type(statement).__name__.upper()
    return UnsupportedOperationError(
        f"{verb} of {name!r:.200}, which is a view, is not supported by this version of delta_pyds. Name the table "
        "itself, by its name or as delta.`/its/path`. The source of a MERGE and the query of an INSERT may be views.",
        code="EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE",
        feature=f"{verb} of a view",
    )
