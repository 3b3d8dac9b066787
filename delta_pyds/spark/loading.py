"""A table at a path as a DataFrame, by typed options or by the format's texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.options.read import PINNED_OPTION, ReadOptions, parse_read_options, read_texts
from delta_pyds.spark.options.stream import refuse_schema_tracking
from delta_pyds.spark.options.values import time_zone_option
from delta_pyds.spark.plain_calls import plain_calls
from delta_pyds.spark.registration import register
from delta_pyds.spark.settings import TIME_ZONE
from delta_pyds.spark.source.datasource import DeltaDataSource
from delta_pyds.spark.source.error_transport import errors_as_they_were
from delta_pyds.storage.resolve import has_scheme
from delta_pyds.storage.table_path import PathLike, absolute_table_path
from delta_pyds.table.scan.read_report import ReadReport, remember

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from delta_pyds.spark.planning.pruning import Pruning


def load(
    spark: SparkSession,
    path: PathLike,
    options: ReadOptions,
    engine: str = "auto",
    *,
    pruning: Pruning | None = None,
    pinned_version: int | None = None,
) -> DataFrame:
    """The table at ``path``, the user's own text, as a DataFrame. ``options``: without the path.

    ``pruning``: conditions that rule out files; rows for which they are not true may remain. ``pinned_version``: the
    version to read, which an earlier read by the same options has found.

    Raises: as ``read``.
    """
    register(spark)
    root = absolute_table_path(path, remote=is_remote(spark))
    options = replace(options, path=root, min_partitions=options.min_partitions or _parallelism(spark))
    report = ReadReport(root, "arrow")
    if engine == "arrow":
        options = _in_zone(options, spark.conf.get(TIME_ZONE))
    else:
        # imported here: it loads what planning needs, and workers import this module too
        from delta_pyds.spark.native.read import describe, read_natively

        session = describe(spark)
        options = _in_zone(options, session.settings[TIME_ZONE])
        # a path with a scheme means the same file system everywhere
        attempt = read_natively(
            spark,
            session,
            options,
            insist=engine == "native",
            sure_of_files=has_scheme(path),
            pruning=pruning,
            pinned_version=pinned_version,
        )
        report = attempt.report
        if attempt.frame is not None:
            remember(attempt.frame, report)
            return attempt.frame
    if pruning is not None:
        options = replace(options, where=pruning.text_without_time_zone)
        pinned_version = report.version if pinned_version is None else pinned_version
    texts = read_texts(options)
    if pinned_version is not None and not _names_version(options):
        chosen = options.version is not None or options.timestamp is not None
        texts = read_texts(replace(options, version=pinned_version, timestamp=None))
        if not chosen:
            texts[PINNED_OPTION] = "true"
    with errors_as_they_were(), plain_calls():
        frame = spark.read.format(DeltaDataSource.name()).options(**texts).load(root)
        if is_remote(spark):
            _ = frame.schema  # a load alone asks the server nothing, and its errors belong here
    if options.change_feed and (has_scheme(path) or not is_remote(spark)):
        report = replace(report, planner=partial(_explained, options))
    remember(frame, report)
    return frame


def _explained(options: ReadOptions) -> Any:
    """The report on a read of changes. Raises: as ``read``."""
    # imported here: it loads what planning needs, and workers import this module too
    from delta_pyds.spark.planning.driver import open_table, plan

    return plan(open_table(options), options).explain()


def _names_version(options: ReadOptions) -> bool:
    """Whether the path itself names a version or a time."""
    # imported here: it loads what planning needs, and workers import this module too
    from delta_pyds.spark.planning.driver import located

    return "@" in options.path and located(options)[1:] != (None, None)


def load_by_options(spark: SparkSession, path: PathLike, options: Mapping[str, str]) -> DataFrame:
    """``read`` with options as the format takes them. Raises: as ``read``."""
    register(spark)
    refuse_schema_tracking(options)
    root = absolute_table_path(path, remote=is_remote(spark))
    return load(spark, path, parse_read_options({**options, "path": root}))


def _in_zone(options: ReadOptions, zone_of_session: str | None) -> ReadOptions:
    return replace(options, time_zone=options.time_zone or time_zone_option(zone_of_session))


def _parallelism(spark: SparkSession) -> int | None:
    """The number of tasks that run at once; None on Spark Connect, where only the server knows."""
    return None if is_remote(spark) else int(spark.sparkContext.defaultParallelism)
