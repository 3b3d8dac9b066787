"""Methods of a DataFrame that read: row ids by ``select``, temporary views, and those that run a query.

Invariants:

- ``df.select("_metadata.row_id")`` is ours only if it names one of the two fields as a string, on a DataFrame that
  reads one table. A Python source has no hidden column, and Spark's own Parquet reader no row ids, so the table is read
  with them, at the DataFrame's version if that is known.
- ``df.createOrReplaceTempView`` of a whole read tracks its table, as the reference's does.
- ``df.collect()`` and others raise a DeltaError of a worker unwrapped, without the tracebacks that Spark and PySpark
  add. The results, and every other error, are Spark's.
"""

from __future__ import annotations

from typing import Any

from delta_pyds.protocol.quoting import quote_name
from delta_pyds.spark.catalog_names import tracked_views
from delta_pyds.spark.install.patches import Method, Replacement
from delta_pyds.spark.options.read import ReadOptions
from delta_pyds.spark.plain_calls import plain_calls
from delta_pyds.spark.spark_errors import errors_of_spark
from delta_pyds.spark.sql.file_metadata import read_with_row_ids
from delta_pyds.statements.file_metadata import COLUMN

_FIELDS = (f"{COLUMN}.row_id", f"{COLUMN}.row_commit_version")
_ACTIONS = ("collect", "count", "show", "explain", "toPandas", "toArrow", "head", "first", "take", "tail", "isEmpty",
            "foreach", "foreachPartition")  # fmt: skip


def _select(original: Method, /, self: Any, *cols: Any) -> Any:
    given = cols[0] if len(cols) == 1 and isinstance(cols[0], list) else cols
    if not any(isinstance(column, str) and column.lower() in _FIELDS for column in given):
        return original(self, *cols)
    origin = tracked_views.origin_of(self)
    if origin is None or not origin.whole or len(origin.sources) != 1:
        return original(self, *cols)
    source = origin.sources[0]
    with errors_of_spark(), plain_calls():
        options = ReadOptions("", version=origin.version, storage_options=source.storage_options or {})
        frame, own = read_with_row_ids(self.sparkSession, source.path, options)
        if own:
            return original(self, *cols)
        shown = [quote_name(name) for name in self.columns]
        chosen = [one for column in given for one in (shown if isinstance(column, str) and column == "*" else [column])]
        return original(frame, *chosen)


def _create(original: Method, /, self: Any, name: str) -> None:
    original(self, name)
    tracked_views.created(name, self)


def _action(original: Method, /, self: Any, *args: Any, **kwargs: Any) -> Any:
    with errors_of_spark():
        return original(self, *args, **kwargs)


FRAME: dict[str, Replacement] = {
    "select": _select,
    # on classic sessions registerTempTable calls the JVM directly
    **dict.fromkeys(("createTempView", "createOrReplaceTempView", "registerTempTable"), _create),
    **dict.fromkeys(_ACTIONS, _action),
}
# toPandas logs a warning of this method's error, and raises the error again
PANDAS: dict[str, Replacement] = {"_collect_as_arrow": _action}
