"""What a user calls with a session in hand: ``register`` and ``read``."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from delta_pyds.errors import OptionError
from delta_pyds.spark.datasource import DeltaDataSource
from delta_pyds.table.read_report import ReadReport, remember

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from delta_pyds.spark.native_read import NativeAttempt

_ENGINES = ("auto", "native", "arrow")

_registered: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()


def register(spark: SparkSession) -> None:
    """Make the format ``deltapy`` known to this session.

    Needed only where Spark cannot find it by itself, because the package is not
    installed beside Spark's own Python. Calling it again does nothing.
    """
    if spark not in _registered:
        spark.dataSource.register(DeltaDataSource)
        _registered[spark] = True


def read(
    spark: SparkSession,
    path: str,
    *,
    where: str | None = None,
    columns: str | Sequence[str] | None = None,
    version: int | None = None,
    timestamp: str | dt.datetime | None = None,
    time_zone: str | None = None,
    row_position: bool = False,
    row_ids: bool = False,
    min_partitions: int | None = None,
    verify_page_checksums: bool | None = None,
    storage_options: Mapping[str, Any] | None = None,
    engine: str = "auto",
) -> DataFrame:
    """A DataFrame of the table at ``path``: everything that the options of the format can say, in Python.

    The DataFrame is the table at one version for as long as it lives, and
    exactly the rows for which ``where`` (a Spark SQL predicate) is true.
    ``timestamp``: text, or a datetime; without a zone it is in the session's
    time zone, as are the timestamps in ``where``. ``min_partitions``: by
    default the session's parallelism. ``verify_page_checksums``: false leaves the checksums of Parquet pages,
    where a file has them, unlooked at.

    ``engine``: ``native`` plans here and reads with Spark's own Parquet reader,
    which prunes columns and partitions, hands filters down and knows sizes, for
    each query anew; every column of it may be null for all that Spark knows.
    ``arrow`` is the Python source. ``auto`` takes ``native`` where the rows
    are certain to be the same; ``delta_pyds.explain`` of the DataFrame says
    which and why. The session's settings are looked at once, here.

    Raises: OptionError for options that contradict each other; with ``native``
        UnsupportedOperationError naming the reasons against it, and any DeltaError of planning.
        Else what is wrong with the table shows as Spark's AnalysisException, with the DeltaError as its text.
    """
    if engine not in _ENGINES:
        raise OptionError(f"the engine is '{engine}', but must be one of {', '.join(_ENGINES)}.", option="engine")
    if version is not None and timestamp is not None:
        raise OptionError(
            "version and timestamp are both given: a table is read at a version or at a time, not both.",
            code="DELTA_ONEOF_IN_TIMETRAVEL",
        )
    register(spark)
    options: dict[str, Any] = {
        "where": where,
        "columns": columns if columns is None or isinstance(columns, str) else ",".join(columns),
        "versionAsOf": version,
        "timestampAsOf": timestamp.isoformat(" ") if isinstance(timestamp, dt.datetime) else timestamp,
        "timeZone": time_zone or spark.conf.get("spark.sql.session.timeZone"),
        "rowPosition": row_position,
        "rowIds": row_ids,
        "verifyPageChecksums": verify_page_checksums,
        "minPartitions": min_partitions or _parallelism(spark),
        "storageOptions": json.dumps(dict(storage_options)) if storage_options else None,
    }
    given = {key: value for key, value in options.items() if value is not None}
    report = ReadReport(path, "arrow")
    if engine != "arrow":
        attempt = _natively(spark, path, given, insist=engine == "native")
        report = attempt.report
        if attempt.frame is not None:
            remember(attempt.frame, report)
            return attempt.frame
    frame = spark.read.format(DeltaDataSource.name()).options(**given).load(path)
    remember(frame, report)
    return frame


def _natively(spark: SparkSession, path: str, given: Mapping[str, Any], *, insist: bool) -> NativeAttempt:
    # imported here: it loads what planning needs, and workers import this module too
    from delta_pyds.spark.native_read import read_natively

    texts = {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in given.items()}
    return read_natively(spark, path, texts, insist=insist)


def write(
    df: DataFrame,
    path: str,
    *,
    mode: str = "errorifexists",
    partition_by: str | Sequence[str] | None = None,
    cluster_by: str | Sequence[str] | None = None,
    replace_where: str | None = None,
    partition_overwrite: str | None = None,
    merge_schema: bool = False,
    overwrite_schema: bool = False,
    properties: Mapping[str, str] | None = None,
    user_metadata: str | None = None,
    txn: tuple[str, int] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> None:
    """Write a DataFrame as one version of the table at ``path``: what the options of the format can say, in Python.

    Either all rows of ``df`` are in the table afterwards, or none. ``mode``:
    ``append``, ``overwrite``, ``errorifexists`` or ``ignore``, the four of
    Spark, of which it gives a Python source only two. ``partition_by``,
    ``cluster_by``: column names, for a table that the write creates, which
    ``df.write.partitionBy`` cannot pass on. ``properties``: ``delta.*`` keys of such a table. ``txn``:
    application id and version, so that a repeated write is made once. ``options``: any other option of the format.

    Raises: OptionError for an unknown mode, or another key in ``properties``. What is wrong with the table or
        the rows shows as Spark's AnalysisException, with the DeltaError as its text.
    """
    known = {"append": None, "overwrite": None, "errorifexists": "errorIfExists", "error": "errorIfExists",
             "default": "errorIfExists", "ignore": "ignore"}  # fmt: skip
    if mode.lower() not in known:
        raise OptionError(
            f"the mode is '{mode}', but must be append, overwrite, errorifexists or ignore.", option="mode"
        )
    strange = [key for key in properties or {} if not key.lower().startswith("delta.")]
    if strange:
        raise OptionError(
            f"properties has the key {strange[0]!r}: only those that begin with 'delta.' can be set when a table is "
            "written. Options of the write go into options.",
            option="properties",
        )
    spark = df.sparkSession
    register(spark)
    given: dict[str, Any] = {
        "createMode": known[mode.lower()],
        "partitionBy": _column_list(partition_by),
        "clusterBy": _column_list(cluster_by),
        "replaceWhere": replace_where,
        "partitionOverwriteMode": partition_overwrite,
        "mergeSchema": merge_schema or None,
        "overwriteSchema": overwrite_schema or None,
        "userMetadata": user_metadata,
        "txnAppId": None if txn is None else txn[0],
        "txnVersion": None if txn is None else txn[1],
        "storageOptions": json.dumps(dict(storage_options)) if storage_options else None,
        "timeZone": spark.conf.get("spark.sql.session.timeZone"),
        **(properties or {}),
        **(options or {}),
    }
    writer = df.write.format(DeltaDataSource.name()).mode("overwrite" if mode.lower() == "overwrite" else "append")
    for key, value in given.items():
        if value is not None:
            writer = writer.option(key, value)
    writer.save(path)


def _column_list(columns: str | Sequence[str] | None) -> str | None:
    """Names as the options take them; in a list each is one whole name, whatever is in it."""
    if columns is None or isinstance(columns, str):
        return columns
    return ",".join("`" + name.replace("`", "``") + "`" for name in columns)


def _parallelism(spark: SparkSession) -> int | None:
    """How many tasks run at once; None on Spark Connect, where only the server knows."""
    try:
        return int(spark.sparkContext.defaultParallelism)
    except Exception:
        return None
