"""Spark's own reads of changes: ``spark.read.changes``, ``spark.readStream.changes`` and CHANGES FROM of SQL.

Spark asks a catalog for changes, and a Python source has none. So these reads become reads of our change feed.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from delta_pyds.spark.loading import load_by_options
from delta_pyds.spark.options.changes import ChangesRead, changes_read
from delta_pyds.spark.other_engines import require_streams
from delta_pyds.spark.plain_calls import plain_calls
from delta_pyds.spark.registration import register
from delta_pyds.spark.settings import TIME_ZONE
from delta_pyds.spark.source.datasource import DeltaDataSource
from delta_pyds.spark.source.error_transport import errors_as_they_were
from delta_pyds.storage.table_path import PathLike
from delta_pyds.table.scan.read_report import remember, report_of
from delta_pyds.tasks.scan_state import CHANGE_TYPE_COLUMN


def read_changes(
    spark: SparkSession, path: PathLike, options: Mapping[str, str], *, alias: str | None = None
) -> DataFrame:
    """The changes of a table. ``options``: Spark's, and those of our format. ``alias``: the name of the rows.

    Raises: as ``changes_read`` and ``read``.
    """
    read = changes_read(options, _time_zone(spark))
    frame = load_by_options(spark, path, read.options)
    shown = _shown(frame, read, alias)
    remember(shown, report_of(frame))
    return shown


def stream_changes(
    spark: SparkSession,
    path: PathLike,
    options: Mapping[str, str],
    *,
    alias: str | None = None,
    source_name: str | None = None,
) -> DataFrame:
    """The same as a stream. ``source_name``: the argument of ``readStream.name``.

    Raises: as ``changes_read``; UnsupportedOperationError on an engine without streams.
    """
    read = changes_read(options, _time_zone(spark), stream=True)
    require_streams(spark)
    register(spark)
    reader = spark.readStream.format(DeltaDataSource.name()).options(**read.options)
    if source_name is not None:
        reader = reader.name(source_name)
    with errors_as_they_were(), plain_calls():
        frame = reader.load(str(path))
        _ = frame.schema  # on Spark Connect the server reports errors only on this request
    return _shown(frame, read, alias)


def _shown(frame: DataFrame, read: ChangesRead, alias: str | None) -> DataFrame:
    if not read.images and CHANGE_TYPE_COLUMN in frame.columns:
        kind = f.col(CHANGE_TYPE_COLUMN)
        of_image = f.when(kind == "update_preimage", "delete").when(kind == "update_postimage", "insert")
        frame = frame.withColumn(CHANGE_TYPE_COLUMN, of_image.otherwise(kind))
    frame = frame if read.where is None else frame.where(read.where)
    return frame if alias is None else frame.alias(alias)


def _time_zone(spark: SparkSession) -> str:
    return spark.conf.get(TIME_ZONE) or "UTC"
