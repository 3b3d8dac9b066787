"""Spark Declarative Pipelines: methods inside the functions and files that define a pipeline.

Spark sends no request of such a function to the server before the whole pipeline is defined. So nothing can be planned
there: the Python source reads our tables, and plans when the pipeline runs. ``register`` is not needed,
because the server finds the installed source.

Invariant: inside a pipeline a replaced method is Spark's own, or has a form here that sends no request.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from delta_pyds.errors import DeltaError, UnsupportedOperationError
from delta_pyds.spark.install.formats import DELTAPY, is_ours
from delta_pyds.spark.plain_calls import plain_calls
from delta_pyds.spark.table_commands.identifiers import path_if_in_name
from delta_pyds.statements import kinds
from delta_pyds.statements.parse import parse_statement

Method = Callable[..., Any]

_MODULE = "pyspark.pipelines.add_pipeline_analysis_context"
_REGISTRY = "pyspark.pipelines.spark_connect_graph_element_registry"
_CONTEXT = "PipelineAnalysisContext"
_CREATES_OURS = re.compile(r"\bUSING\s+`?(?:delta|deltapy)\b", re.IGNORECASE)
_PATH = re.compile(r"\b(?:delta|deltapy)`?\s*\.\s*`[^`]*/", re.IGNORECASE)
_BY_SINK = (
    "Leave the format out. To keep the rows as a Delta table, create a sink, such as "
    "dp.create_sink('events', 'deltapy', {'path': '/data/events'}), and append the stream to it by "
    "@dp.append_flow(target='events')"
)


def session_in(target: Any) -> Any:
    """The session of an object of PySpark: a session, a reader, a writer, a frame, a catalog; None for others."""
    known: Mapping[str, Any] = getattr(target, "__dict__", {})
    if hasattr(target, "_client") and hasattr(target, "readStream"):
        return target
    found = (known[name] for name in ("_spark", "_session", "_sparkSession", "_client") if name in known)
    return next((one for one in found if hasattr(one, "readStream")), None)


def is_defined(target: Any) -> bool:
    """Whether this thread runs a function or file that defines a pipeline. ``target``: an object of PySpark."""
    if _MODULE not in sys.modules:
        return False
    return any(extension.type_url.endswith(_CONTEXT) for _, extension in _extensions(session_in(target)))


def _extensions(spark: Any) -> list[Any]:
    client = getattr(spark, "client", None)
    found: list[Any] = getattr(getattr(client, "thread_local", None), "user_context_extensions", [])
    return found


@contextmanager
def _requests_allowed(spark: Any) -> Iterator[None]:
    """Have the server answer a question that is not about the pipeline."""
    local, before = spark.client.thread_local, _extensions(spark)
    local.user_context_extensions = [one for one in before if not one[1].type_url.endswith(_CONTEXT)]
    try:
        yield
    finally:
        local.user_context_extensions = before


def _is_ours(spark: Any, name: Any) -> bool:
    if not isinstance(name, str):
        return False
    with _requests_allowed(spark):
        return is_ours(spark, name)


def form_of(name: str, original: Method) -> Method:
    """The method of this name inside a pipeline."""
    form = _FORMS.get(name)
    return original if form is None else partial(form, original)


# --- what a function reads


def _format(original: Method, /, self: Any, source: str) -> Any:
    return original(self, DELTAPY if _is_ours(session_in(self), source) else source)


def _load(
    original: Method, /, self: Any, path: Any = None, format: Any = None, schema: Any = None, **options: Any
) -> Any:
    if format is not None and _is_ours(session_in(self), format):
        format = DELTAPY
    return original(self, path, format, schema, **options)


def _table(original: Method, /, self: Any, *args: Any, **kwargs: Any) -> Any:
    name = args[0] if args else next(iter(kwargs.values()), None)
    spark = session_in(self)
    path = path_if_in_name(name)
    if path is None or not _is_ours(spark, str(name).partition(".")[0].strip(" `")):
        return original(self, *args, **kwargs)
    reader = spark.read if self is spark else self
    return reader.format(DELTAPY).load(path)


def _sql(original: Method, /, self: Any, sqlQuery: Any, args: Any = None, **kwargs: Any) -> Any:
    spans = _paths_in(self, sqlQuery, args)
    if not spans:
        return original(self, sqlQuery, args, **kwargs)
    # Spark takes the text as a template: without values its braces are doubled
    text = sqlQuery if kwargs else sqlQuery.replace("{", "{{").replace("}", "}}")
    shift = _shift(sqlQuery) if not kwargs else lambda position: position
    frames = dict(kwargs)
    for number, span in reversed(list(enumerate(spans))):
        name = f"deltapy_{number}"
        frames[name] = _frame(self, span)
        text = f"{text[: shift(span.start)]}{{{name}}}{text[shift(span.end) :]}"
    return original(self, text, args, **frames)


def _shift(text: str) -> Callable[[int], int]:
    return lambda position: position + sum(text.count(brace, 0, position) for brace in "{}")


def _paths_in(spark: Any, text: Any, args: Any) -> list[kinds.TableSpan]:
    """The tables by path in a query.

    Raises: UnsupportedOperationError for a command on such a table.
    """
    if not isinstance(text, str) or "/" not in text:
        return []
    try:
        statement = parse_statement(text, args).statement
    except DeltaError:
        return []  # Spark reports the error
    if not isinstance(statement, kinds.PassThrough):
        target = getattr(statement, "target", None)
        if isinstance(target, kinds.TableReference) and target.path and _is_ours(spark, target.parts[-2]):
            raise _refused(f"a command on {target.text!r:.200}", "The function of a pipeline only queries tables")
        return []
    spans = [span for span in statement.tables if _is_path_of_ours(spark, span.table)]
    return sorted(spans, key=lambda span: span.start)


def _is_path_of_ours(spark: Any, table: Any) -> bool:
    if isinstance(table, kinds.TableChanges):
        return True
    return table.path is not None and _is_ours(spark, table.parts[-2])


def _frame(spark: Any, span: kinds.TableSpan) -> Any:
    table = span.table
    if isinstance(table, kinds.TableChanges) or table.changes is not None or table.timestamp is not None:
        raise _refused(
            "table_changes, CHANGES FROM or TIMESTAMP AS OF",
            "Read it by spark.read.format('deltapy') with the options readChangeFeed or timestampAsOf",
        )
    with plain_calls():
        reader = spark.read if table.stream is None else spark.readStream
        reader = reader.format(DELTAPY).options(**dict(table.stream or ()))
        if table.version is not None:
            reader = reader.option("versionAsOf", table.version)
        return reader.load(table.path)


# --- what a pipeline defines


def _output(original: Method, /, self: Any, output: Any) -> None:
    ours = _is_ours(self._spark, getattr(output, "format", None))
    if ours and hasattr(output, "table_properties"):
        raise _refused(
            f"the table {output.name!r:.200} of format {output.format}",
            _BY_SINK + "; or write the table's rows after the run by delta_pyds.write",
        )
    original(self, replace(output, format=DELTAPY) if ours else output)


def _register_sql(original: Method, /, self: Any, sql_text: str, file_path: Any) -> None:
    if _CREATES_OURS.search(sql_text):
        raise _refused(f"a table USING delta in the file {file_path}", _BY_SINK + ", in a Python file")
    if _PATH.search(sql_text):
        raise _refused(
            f"a path as a table in the file {file_path}",
            "Define a view in a Python file: @dp.temporary_view on a function that returns "
            "spark.read.format('delta').load(path). The SQL file reads it by its name",
        )
    original(self, sql_text, file_path)


def _refused(about: str, remedy: str) -> UnsupportedOperationError:
    return UnsupportedOperationError(
        f"a Spark Declarative Pipeline cannot have {about}, because Spark gives a Python source no name and no "
        f"location there. {remedy}.",
        feature="pipelines",
    )


# each gets the original method, and then the call
_FORMS: dict[str, Method] = {
    "format": _format,
    "load": _load,
    "table": _table,
    "sql": _sql,
    "register_output": _output,
    "register_sql": _register_sql,
}
REGISTRY = {name: _FORMS[name] for name in ("register_output", "register_sql")}


def registry() -> Any:
    """The class that sends a pipeline's definitions to the server; None in a program that defines no pipeline."""
    module = sys.modules.get(_REGISTRY)
    return None if module is None else module.SparkConnectGraphElementRegistry
