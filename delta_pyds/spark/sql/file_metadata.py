"""Tables with Spark's hidden column ``_metadata`` as one of their columns, for queries that name it."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from delta_pyds.errors import UnsupportedOperationError, UserError
from delta_pyds.protocol.quoting import quote_name
from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.loading import load
from delta_pyds.spark.native.read import describe, read_natively
from delta_pyds.spark.options.read import ReadOptions
from delta_pyds.spark.options.values import time_zone_option
from delta_pyds.spark.planning.driver import open_table
from delta_pyds.spark.planning.pruning import Pruning
from delta_pyds.spark.registration import register
from delta_pyds.spark.settings import TIME_ZONE
from delta_pyds.statements.file_metadata import COLUMN
from delta_pyds.storage.resolve import has_scheme
from delta_pyds.storage.table_path import absolute_table_path
from delta_pyds.table.scan.read_report import remember, report_of
from delta_pyds.tasks.scan_state import ROW_COMMIT_VERSION_COLUMN, ROW_ID_COLUMN


def read_with_metadata(
    spark: SparkSession,
    path: str,
    options: ReadOptions,
    *,
    pruning: Pruning | None = None,
    pinned_version: int | None = None,
) -> tuple[DataFrame, bool]:
    """The rows with the column ``_metadata``, unless the table has its own; and whether it has its own.

    The arguments are those of ``load``.

    Raises: UnsupportedOperationError if Spark's own Parquet reader cannot read the table; as ``read``.
    """
    plain = load(spark, path, options, pruning=pruning, pinned_version=pinned_version)
    if COLUMN in map(str.lower, plain.columns):
        return plain, True
    register(spark)
    root = absolute_table_path(path, remote=is_remote(spark))
    session = describe(spark)
    options = replace(options, path=root, time_zone=time_zone_option(session.settings[TIME_ZONE]))
    attempt = read_natively(
        spark,
        session,
        options,
        insist=False,
        sure_of_files=has_scheme(path),
        with_metadata=True,
        pruning=pruning,
        pinned_version=pinned_version,
    )
    if attempt.frame is None:
        raise UnsupportedOperationError(
            f"the column _metadata needs Spark's own Parquet reader. {attempt.report}. Omit the column.",
            feature=COLUMN,
            table=root,
        )
    remember(attempt.frame, attempt.report)
    return attempt.frame, False


def read_with_row_ids(
    spark: SparkSession,
    path: str,
    options: ReadOptions,
    *,
    pruning: Pruning | None = None,
    pinned_version: int | None = None,
) -> tuple[DataFrame, bool]:
    """``read_with_metadata`` for a table that tracks rows: the column has ``row_id`` and ``row_commit_version``.

    Raises: UserError (FIELD_NOT_FOUND) for a table that does not track rows, except on Spark Connect; as
        ``read``.
    """
    plain = load(spark, path, options, pruning=pruning, pinned_version=pinned_version)
    if COLUMN in map(str.lower, plain.columns):
        return plain, True
    located = replace(options, path=absolute_table_path(path))
    if not is_remote(spark) and not open_table(located).snapshot.configuration.has_row_tracking:
        raise UserError(
            f"the table {path} does not track rows, so {COLUMN} has no row_id. Set delta.enableRowTracking=true.",
            code="FIELD_NOT_FOUND",
            table=path,
        )
    rows = load(spark, path, replace(options, row_ids=True), pruning=pruning, pinned_version=pinned_version)
    ids = F.struct(F.col(ROW_ID_COLUMN).alias("row_id"), F.col(ROW_COMMIT_VERSION_COLUMN).alias("row_commit_version"))
    shown = rows.select(*(F.col(quote_name(name)) for name in plain.columns), ids.alias(COLUMN))
    remember(shown, report_of(rows))
    return shown, False
