"""``df.writeTo("delta.`/data/events`")``: its verbs, run by ``delta_pyds.write``."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from delta_pyds.errors import OptionError, UnsupportedOperationError
from delta_pyds.protocol.quoting import quote_name
from delta_pyds.spark.arguments import property_options
from delta_pyds.spark.catalog_names.locations import location_of, no_table_to_replace, refuse_existing, settle
from delta_pyds.spark.install.batch_reads import path_if_ours
from delta_pyds.spark.install.batch_writes import layout, refuse
from delta_pyds.spark.install.formats import is_ours
from delta_pyds.spark.install.names import named_if_ours
from delta_pyds.spark.install.patches import Method, Replacement
from delta_pyds.spark.install.recorded_options import RecordedOptions, recorded, recording, session_of
from delta_pyds.spark.install.write_settings import with_defaults, with_settings
from delta_pyds.spark.row_changes.column_text import name_of, text_of_column
from delta_pyds.spark.session import save_by_options
from delta_pyds.spark.settings import DEFAULT_FORMAT
from delta_pyds.spark.spark_errors import errors_of_spark

_FRAME = "_deltapy_frame"


def _write_to(original: Method, /, self: Any, table: str) -> Any:
    writer = original(self, table)
    recorded(writer).table = table
    setattr(writer, _FRAME, self)
    return writer


def _set_provider(calls: RecordedOptions, provider: str) -> None:
    calls.format = provider


def _set_property(calls: RecordedOptions, property: str, value: str) -> None:
    calls.properties[property] = value


def _verb_method(verb: Any) -> Any:
    """``verb``: takes the frame, the path, the recorded options, and the arguments of the call."""

    def method(original: Method, /, self: Any, *args: Any, **kwargs: Any) -> None:
        calls = recorded(self)
        spark = session_of(self)
        path = path_if_ours(spark, calls.table)
        named = None if path is not None else named_if_ours(spark, calls.table)
        if (
            path is None
            and named is None
            and not (verb in _MAKING and is_ours(spark, calls.format or spark.conf.get(DEFAULT_FORMAT, None) or ""))
        ):
            original(self, *args, **kwargs)
            return
        with errors_of_spark():
            _check_provider(self, calls)
            if path is None:
                _by_name(getattr(self, _FRAME), calls, verb, args, kwargs)
                return
            if calls.option("path") is not None:
                raise OptionError("the path is given twice, in the name and as the option path.", option="path")
            verb(getattr(self, _FRAME), path, calls, *args, **kwargs)

    return method


def _by_name(frame: DataFrame, calls: RecordedOptions, verb: Any, args: Any, kwargs: Any) -> None:
    """Run a verb on a table by name. A verb that creates a table writes its rows before it gives the name."""
    name = str(calls.table)
    path = calls.option("path") if verb in _MAKING else None
    location = location_of(frame.sparkSession, name, path)
    if verb is _create and location.table is not None:
        refuse_existing("create", name)
    if verb is _replace and location.table is None:
        raise no_table_to_replace(name)
    verb(frame, location.path, calls, *args, **kwargs)
    settle(frame.sparkSession, location)


def _check_provider(writer: Any, calls: RecordedOptions) -> None:
    if calls.format is not None and not is_ours(session_of(writer), calls.format):
        raise UnsupportedOperationError(
            f"the table {calls.table} is a Delta table, so it cannot be written using {calls.format}.",
            feature="using",
        )


def _append(frame: DataFrame, path: str, calls: RecordedOptions) -> None:
    _save(frame, path, calls, {"createMode": "errorIfNotExists"}, mode="append")


def _overwrite(frame: DataFrame, path: str, calls: RecordedOptions, condition: Any) -> None:
    # PySpark takes a string as the name of a column
    text = quote_name(condition) if isinstance(condition, str) else text_of_column(condition)
    if text is None:
        raise UnsupportedOperationError(
            "the condition of overwrite(...) is a Column that delta_pyds cannot write as SQL with certainty. Write "
            'df.write.format("deltapy").mode("overwrite").option("replaceWhere", "...").save(path).',
            feature="overwrite",
        )
    _save(frame, path, calls, {"createMode": "errorIfNotExists", "replaceWhere": text}, mode="overwrite")


def _overwrite_partitions(frame: DataFrame, path: str, calls: RecordedOptions) -> None:
    given = {"createMode": "errorIfNotExists", "partitionOverwriteMode": "dynamic"}
    _save(frame, path, calls, given, mode="overwrite")


def _save(frame: DataFrame, path: str, calls: RecordedOptions, given: dict[str, str], *, mode: str) -> None:
    if calls.partition_by or calls.cluster_by or calls.properties:
        raise UnsupportedOperationError(
            "partitionedBy, clusterBy and tableProperty apply only to a table that the write creates: use create, "
            "replace or createOrReplace.",
            feature="partitionedBy",
        )
    twice = [name for name in given if calls.option(name) is not None]
    if twice:
        raise OptionError(
            f"the method called after writeTo sets the option {twice[0]} itself. Omit it.", option=twice[0]
        )
    options = {**calls.options(), **given}
    options = with_settings(frame.sparkSession, path, options, overwrite=mode == "overwrite")
    save_by_options(frame, path, options, mode=mode)


def _create(frame: DataFrame, path: str, calls: RecordedOptions) -> None:
    _save_new(frame, path, calls, mode="errorifexists")


def _replace(frame: DataFrame, path: str, calls: RecordedOptions) -> None:
    _save_new(frame, path, calls, mode="overwrite", createMode="replace")


def _create_or_replace(frame: DataFrame, path: str, calls: RecordedOptions) -> None:
    _save_new(frame, path, calls, mode="overwrite", createMode="createOrReplace")


def _save_new(frame: DataFrame, path: str, calls: RecordedOptions, *, mode: str, **given: str) -> None:
    refuse(calls)
    partitioned = RecordedOptions()
    partitioned.partition_by = tuple(_name(column) for column in calls.partition_by)
    partitioned.cluster_by = calls.cluster_by
    options = {**calls.options("path"), **layout(partitioned), **property_options(calls.properties), **given}
    options = with_settings(frame.sparkSession, path, options, overwrite=mode == "overwrite")
    save_by_options(frame, path, with_defaults(frame.sparkSession, path, options), mode=mode)


def _name(column: Any) -> str:
    """Raises: UnsupportedOperationError for a transform such as ``years(col)``."""
    name = column.strip("`") if isinstance(column, str) and "(" not in column else name_of(column)
    if name is None:
        raise UnsupportedOperationError(
            f"partitionedBy takes names of columns, but {str(column)!r:.200} is not one. Partition by a column that is "
            "generated from another.",
            feature="partitionedBy",
        )
    return name


# the verbs that may create a table
_MAKING = (_create, _replace, _create_or_replace)
FRAME: dict[str, Replacement] = {"writeTo": _write_to}
WRITER: dict[str, Replacement] = {
    "using": recording(_set_provider),
    "option": recording(RecordedOptions.add_option),
    "options": recording(RecordedOptions.add_options),
    "tableProperty": recording(_set_property),
    "partitionedBy": recording(lambda calls, col, *cols: calls.set_partitions(col, *cols)),
    "clusterBy": recording(lambda calls, col, *cols: calls.set_clusters(col, *cols)),
    "append": _verb_method(_append),
    "overwrite": _verb_method(_overwrite),
    "overwritePartitions": _verb_method(_overwrite_partitions),
    "create": _verb_method(_create),
    "replace": _verb_method(_replace),
    "createOrReplace": _verb_method(_create_or_replace),
}
