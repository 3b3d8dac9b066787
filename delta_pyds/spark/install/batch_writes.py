"""``df.write.format("deltapy")``, as ``delta_pyds.write`` writes: all modes, partitions and clustering.

Of these Spark hands a Python source two modes, and neither partitions nor clustering.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from delta_pyds.errors import OptionError, UnsupportedOperationError
from delta_pyds.spark.arguments import choice_argument
from delta_pyds.spark.delta_table.spark_errors import errors_of_spark
from delta_pyds.spark.install import told as tell
from delta_pyds.spark.install.batch_reads import path_if_ours
from delta_pyds.spark.install.patches import Method, Replacement
from delta_pyds.spark.install.told import Told, for_ours, frame_of, session_of, told
from delta_pyds.spark.install.write_settings import with_defaults, with_settings
from delta_pyds.spark.native.expressions import quoted
from delta_pyds.spark.options.values import no_path
from delta_pyds.spark.session import column_list, save_by_options
from delta_pyds.table.scan.column_selection import parse_column_list

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MODES = ("append", "overwrite", "errorifexists", "error", "default", "ignore")
_OPTIONS_OF_NAMES = ("table", "catalog")


def _save_method(original: Method) -> Method:
    def save(
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
            _say(self, mode, partitionBy, options)
            said = told(self)
            root = said.option("path") if path is None else path
            if path is not None and said.option("path") is not None:
                raise OptionError(
                    "the path is given twice, to save() and as the option path: leave one of them out.", option="path"
                )
            if not isinstance(root, str) or not root.strip():
                if any(said.option(name) is not None for name in _OPTIONS_OF_NAMES):
                    original(self)
                    return
                raise no_path('.save("/path/of/table")', "INSERT INTO t WITH (path = '/path/of/table') ...")
            _write(self, root, said)

    return save


def _save_as_table_method(original: Method) -> Method:
    def save_as_table(
        self: Any, name: Any, format: Any = None, mode: Any = None, partitionBy: Any = None, **options: Any
    ) -> None:
        path = path_if_ours(session_of(self), name)
        if path is None and not for_ours(self, format):
            original(self, name, format, mode, partitionBy, **options)
            return
        with errors_of_spark():
            if path is None:
                raise _no_names("saveAsTable", name)
            _say(self, mode, partitionBy, options)
            said = told(self)
            if said.option("path") is not None:
                raise OptionError("the path is given twice, in the name and as an option.", option="path")
            _write(self, path, said)

    return save_as_table


def _insert_into_method(original: Method) -> Method:
    def insert_into(self: Any, tableName: Any, overwrite: bool | None = None) -> None:
        if path_if_ours(session_of(self), tableName) is None:
            original(self, tableName, overwrite)
            return
        with errors_of_spark():
            raise UnsupportedOperationError(
                f"insertInto({tableName!r:.200}), which goes by the places of columns, is not supported in this "
                'version. Use .format("deltapy").mode("append").save(path), which goes by their names.',
                feature="insertInto",
            )

    return insert_into


def _no_names(call: str, name: Any) -> UnsupportedOperationError:
    return UnsupportedOperationError(
        f"{call}({name!r:.200}) would put a name into Spark's catalog without the place of the table, for Spark hands "
        'none to a Python source. Write to the path: .save("/data/events"), or name it: deltapy.`/data/events`.',
        feature=call,
    )


def _say(writer: Any, mode: Any, partition_by: Any, options: Mapping[str, Any]) -> None:
    writer.mode(mode).options(**options)
    if partition_by is not None:
        writer.partitionBy(partition_by)


def _write(writer: Any, path: str, said: Told) -> None:
    """Raises: UnsupportedOperationError for buckets; OptionError for what contradicts itself; what a write raises."""
    frame, mode, options = _planned(writer, path, said)
    options = with_defaults(frame.sparkSession, path, options)
    save_by_options(frame, path, options, mode=mode)


def _planned(writer: Any, path: str, said: Told) -> tuple[DataFrame, str, dict[str, str]]:
    refuse(said)
    frame = frame_of(writer)
    mode = _mode(said)
    options = {**said.options("path"), **layout(said)}
    return frame, mode, with_settings(frame.sparkSession, path, options, overwrite=mode == "overwrite")


def refuse(said: Told) -> None:
    """Raises: UnsupportedOperationError for what no Delta table has."""
    for name in said.refused:
        raise UnsupportedOperationError(
            f"a Delta table has no buckets, so {name} is not for it. Use partitionBy, or clusterBy.",
            code="DELTA_OPERATION_NOT_ALLOWED",
            feature=name,
        )


def layout(said: Told) -> dict[str, str]:
    """``partitionBy`` and ``clusterBy`` as options of the format. Raises: OptionError where one is an option too."""
    found: dict[str, str] = {}
    for name, columns in (("partitionBy", said.partition_by), ("clusterBy", said.cluster_by)):
        if not columns:
            continue
        # names of clusterBy may be paths of nested columns, as Spark reads them
        text = column_list(name, columns) if name == "partitionBy" else ",".join(map(_path_text, columns))
        other = said.option(name)
        if other is not None and other != text:
            raise OptionError(f"{name} is given twice, by its method and as an option.", option=name)
        found[name] = text or ""
    return found


def _path_text(column: str) -> str:
    """Raises: OptionError for more than one."""
    paths = parse_column_list(column, "clusterBy")
    if len(paths) != 1:
        raise OptionError(f"clusterBy takes columns one by one, and {column!r:.200} is none.", option="clusterBy")
    return quoted(*paths[0])


def _mode(said: Told) -> str:
    created = said.option("createMode")
    if said.mode is None:
        return "errorifexists" if created is None else "append"
    mode = choice_argument("mode", said.mode, _MODES)
    if created is not None and mode not in ("append", "overwrite"):
        raise OptionError(
            f"the mode {mode} and the option createMode={created} both say what becomes of a table that is there: "
            "leave one of them out.",
            option="createMode",
        )
    return mode


WRITER: dict[str, Replacement] = {
    "format": tell.format_method,
    "option": tell.option_method,
    "options": tell.options_method,
    "mode": tell.mode_method,
    "partitionBy": tell.partition_by_method,
    "clusterBy": tell.cluster_by_method,
    "bucketBy": tell.refused_method("bucketBy"),
    "sortBy": tell.refused_method("sortBy"),
    "save": _save_method,
    "saveAsTable": _save_as_table_method,
    "insertInto": _insert_into_method,
}
