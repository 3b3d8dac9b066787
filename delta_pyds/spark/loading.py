"""A table at a path as a DataFrame, by options as the format takes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.arguments import given_options
from delta_pyds.spark.plain_calls import plain_calls
from delta_pyds.spark.registration import register
from delta_pyds.spark.source.datasource import DeltaDataSource
from delta_pyds.spark.source.error_transport import errors_as_they_were
from delta_pyds.storage.resolve import has_scheme
from delta_pyds.storage.table_path import PathLike, absolute_table_path
from delta_pyds.table.scan.read_report import ReadReport, remember

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from delta_pyds.spark.native.read import NativeAttempt

_TIME_ZONE = "spark.sql.session.timeZone"


def load_by_options(spark: SparkSession, path: PathLike, options: Mapping[str, str], engine: str = "auto") -> DataFrame:
    """``read`` with options as the format takes them. Raises: as ``read``."""
    register(spark)
    given = {key.lower() for key in options}
    session: dict[str, Any] = {}
    if "timezone" not in given:
        session["timeZone"] = spark.conf.get(_TIME_ZONE)
    if "minpartitions" not in given:
        session["minPartitions"] = _parallelism(spark)
    return _load(spark, path, {**options, **given_options(session)}, engine)


def _load(spark: SparkSession, path: PathLike, given: Mapping[str, str], engine: str) -> DataFrame:
    root = absolute_table_path(path, remote=is_remote(spark))
    report = ReadReport(root, "arrow")
    if engine != "arrow":
        # a path with a scheme promises the same file system everywhere
        shared = has_scheme(path)
        attempt = _natively(spark, root, given, insist=engine == "native", sure_of_files=shared)
        report = attempt.report
        if attempt.frame is not None:
            remember(attempt.frame, report)
            return attempt.frame
    with errors_as_they_were(), plain_calls():
        frame = spark.read.format(DeltaDataSource.name()).options(**given).load(root)
        if is_remote(spark):
            _ = frame.schema  # a load alone does not ask the server, and its errors belong here
    remember(frame, report)
    return frame


def _natively(
    spark: SparkSession, path: str, given: Mapping[str, str], *, insist: bool, sure_of_files: bool
) -> NativeAttempt:
    # imported here: it loads what planning needs, and workers import this module too
    from delta_pyds.spark.native.read import read_natively

    return read_natively(spark, path, given, insist=insist, sure_of_files=sure_of_files)


def _parallelism(spark: SparkSession) -> int | None:
    """The number of parallel tasks; None on Spark Connect, where only the server knows it."""
    return None if is_remote(spark) else int(spark.sparkContext.defaultParallelism)
