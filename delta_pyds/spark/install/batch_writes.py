"""``df.write.format("deltapy")``, as ``delta_pyds.write`` writes: all modes, partitions and clustering.

Spark hands a Python source only two modes, and neither partitions nor clustering.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from typing import Any

from delta_pyds.errors import OptionError, UnsupportedOperationError, UserError
from delta_pyds.protocol.quoting import quote_name
from delta_pyds.spark.arguments import choice_argument
from delta_pyds.spark.catalog_names.locations import location_of, refuse_existing, settle
from delta_pyds.spark.install.batch_reads import path_if_ours
from delta_pyds.spark.install.names import named_if_ours
from delta_pyds.spark.install.patches import Method, Replacement
from delta_pyds.spark.install.recorded_options import (
    RecordedOptions,
    for_ours,
    format_method,
    frame_of,
    recorded,
    recording,
    session_of,
)
from delta_pyds.spark.install.write_settings import with_defaults, with_settings
from delta_pyds.spark.options.values import no_path
from delta_pyds.spark.options.write import replace_using
from delta_pyds.spark.plain_calls import plain_calls
from delta_pyds.spark.session import column_list, save_by_options
from delta_pyds.spark.spark_errors import errors_of_spark
from delta_pyds.spark.sql.run import run as run_sql
from delta_pyds.table.scan.column_selection import parse_column_list

_MODES = ("append", "overwrite", "errorifexists", "error", "default", "ignore")
_OPTIONS_OF_NAMES = ("table", "catalog")


def _save(
    original: Method,
    /,
    self: Any,
    path: Any = None,
    format: Any = None,
    mode: Any = None,
    partitionBy: Any = None,
    **options: Any,
) -> None:
    if not for_ours(self, format):
        original(self, path, format, mode, partitionBy, **options)
        return
    with errors_of_spark():
        _record(self, mode, partitionBy, options)
        calls = recorded(self)
        root = calls.option("path") if path is None else os.fspath(path) if isinstance(path, os.PathLike) else path
        if path is not None and calls.option("path") is not None:
            raise OptionError(
                "the path is given twice, to save() and as the option path. Omit one of them.", option="path"
            )
        if not isinstance(root, str) or not root.strip():
            if any(calls.option(name) is not None for name in _OPTIONS_OF_NAMES):
                original(self)
                return
            raise no_path('.save("/path/of/table")', "INSERT INTO t WITH (path = '/path/of/table') ...")
        _write(self, root, calls)


def _save_as_table(
    original: Method,
    /,
    self: Any,
    name: Any,
    format: Any = None,
    mode: Any = None,
    partitionBy: Any = None,
    **options: Any,
) -> None:
    spark = session_of(self)
    path = path_if_ours(spark, name)
    ours = for_ours(self, format)
    unsaid = format is None and recorded(self).format is None
    named = named_if_ours(spark, name) if path is None and not ours else None
    if path is None and not ours and named is None:
        original(self, name, format, mode, partitionBy, **options)
        return
    with errors_of_spark():
        if named is not None and not unsaid:
            # Spark would drop the name, but not the table
            raise UserError(
                f"{named.name} is a Delta table, and cannot be saved as {format or recorded(self).format}. Choose "
                "another name, or drop the table first.",
                code="DELTA_INVALID_PROVIDER",
                table=named.name,
            )
        _record(self, mode, partitionBy, options)
        calls = recorded(self)
        if path is None:
            _write_named(self, name, calls)
            return
        if calls.option("path") is not None:
            raise OptionError("the path is given twice, in the name and as an option.", option="path")
        _write(self, path, calls)


def _insert_into(original: Method, /, self: Any, tableName: Any, overwrite: bool | None = None) -> None:
    spark = session_of(self)
    if path_if_ours(spark, tableName) is None and named_if_ours(spark, tableName) is None:
        original(self, tableName, overwrite)
        return
    with errors_of_spark():
        _insert_by_position(self, tableName, overwrite, recorded(self))


def _insert_by_position(writer: Any, name: str, overwrite: bool | None, calls: RecordedOptions) -> None:
    """Insert the rows. Columns are matched by position, as in Spark's insertInto."""
    replaces = calls.mode == "overwrite" if overwrite is None else overwrite
    using = calls.option("replaceUsing") if replaces else None
    if calls.partition_by or calls.cluster_by or calls.options("replaceusing" if using else ""):
        raise UnsupportedOperationError(
            f"insertInto({name!r:.200}) takes no options (but replaceUsing with overwrite), partitions or clustering: "
            'the table has its own. Omit them, or use .format("deltapy").save(path), which matches columns by name.',
            feature="insertInto",
        )
    frame, view = frame_of(writer), f"_deltapy_{uuid.uuid4().hex}"
    target = f"INSERT {'OVERWRITE' if replaces else 'INTO'} {name}"
    if using:
        target = f"INSERT INTO {name} REPLACE USING ({', '.join(map(quote_name, replace_using(using)))})"
    with plain_calls():
        run_sql(frame.sparkSession, f"{target} SELECT * FROM {view}", frames={view: frame})


def _write_named(writer: Any, name: Any, calls: RecordedOptions) -> None:
    """Raises: UserError if a table has the name and the mode forbids one; as ``location_of`` and ``_write``."""
    frame = frame_of(writer)
    location = location_of(frame.sparkSession, name, calls.option("path"))
    if location.table is not None and _mode(calls) in ("errorifexists", "error", "default"):
        refuse_existing("create", name)
    if location.table is None or _mode(calls) != "ignore":
        _write(writer, location.path, calls)
        settle(frame.sparkSession, location)


def _record(writer: Any, mode: Any, partition_by: Any, options: Mapping[str, Any]) -> None:
    writer.mode(mode).options(**options)
    if partition_by is not None:
        writer.partitionBy(partition_by)


def _write(writer: Any, path: str, calls: RecordedOptions) -> None:
    """Raises: UnsupportedOperationError for buckets; OptionError for contradictions; as ``write``."""
    refuse(calls)
    frame, mode = frame_of(writer), _mode(calls)
    options = {**calls.options("path"), **layout(calls)}
    options = with_settings(frame.sparkSession, path, options, overwrite=mode == "overwrite")
    save_by_options(frame, path, with_defaults(frame.sparkSession, path, options), mode=mode)


def refuse(calls: RecordedOptions) -> None:
    """Raises: UnsupportedOperationError for buckets: a Delta table has none."""
    for name in calls.refused:
        raise UnsupportedOperationError(
            f"a Delta table has no buckets, so {name} is not supported. Use partitionBy, or clusterBy.",
            code="DELTA_OPERATION_NOT_ALLOWED",
            feature=name,
        )


def layout(calls: RecordedOptions) -> dict[str, str]:
    """``partitionBy`` and ``clusterBy`` as options of the format. Raises: OptionError if one is also an option."""
    found: dict[str, str] = {}
    for name, columns in (("partitionBy", calls.partition_by), ("clusterBy", calls.cluster_by)):
        if not columns:
            continue
        # clusterBy also takes paths of nested columns, in Spark's syntax
        text = column_list(name, columns) if name == "partitionBy" else ",".join(map(_path_text, columns))
        other = calls.option(name)
        if other is not None and other != text:
            raise OptionError(f"{name} is given twice, by its method and as an option.", option=name)
        found[name] = text or ""
    return found


def _path_text(column: str) -> str:
    """Raises: OptionError for more than one column."""
    paths = parse_column_list(column, "clusterBy")
    if len(paths) != 1:
        raise OptionError(f"clusterBy takes single columns, but {column!r:.200} is not one.", option="clusterBy")
    return quote_name(*paths[0])


def _mode(calls: RecordedOptions) -> str:
    created = calls.option("createMode")
    if calls.mode is None:
        return "errorifexists" if created is None else "append"
    mode = choice_argument("mode", calls.mode, _MODES)
    if created is not None and mode not in ("append", "overwrite"):
        raise OptionError(
            f"the mode {mode} and the option createMode={created} both say what happens to an existing table. "
            "Omit one of them.",
            option="createMode",
        )
    return mode


WRITER: dict[str, Replacement] = {
    "format": format_method,
    "option": recording(RecordedOptions.add_option),
    "options": recording(RecordedOptions.add_options),
    "mode": recording(RecordedOptions.set_mode),
    "partitionBy": recording(RecordedOptions.set_partitions),
    "clusterBy": recording(RecordedOptions.set_clusters),
    "bucketBy": recording(lambda calls, *args, **_: calls.refused.update(bucketBy=args)),
    "sortBy": recording(lambda calls, *args, **_: calls.refused.update(sortBy=args)),
    "save": _save,
    "saveAsTable": _save_as_table,
    "insertInto": _insert_into,
}
