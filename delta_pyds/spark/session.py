"""What a user calls with a session in hand: ``register`` and ``read``."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from delta_pyds.errors import OptionError
from delta_pyds.spark.datasource import DeltaDataSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
    storage_options: Mapping[str, Any] | None = None,
) -> DataFrame:
    """A DataFrame of the table at ``path``: everything that the options of the format can say, in Python.

    The DataFrame is the table at one version for as long as it lives, and
    exactly the rows for which ``where`` (a Spark SQL predicate) is true.
    ``timestamp``: text, or a datetime; without a zone it is in the session's
    time zone, as are the timestamps in ``where``. ``min_partitions``: by
    default the session's parallelism.

    Raises: OptionError for options that contradict each other. What is wrong
        with the table shows as Spark's AnalysisException, with the DeltaError as its text.
    """
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
        "minPartitions": min_partitions or _parallelism(spark),
        "storageOptions": json.dumps(dict(storage_options)) if storage_options else None,
    }
    reader = spark.read.format(DeltaDataSource.name())
    for key, value in options.items():
        if value is not None:
            reader = reader.option(key, value)
    return reader.load(path)


def _parallelism(spark: SparkSession) -> int | None:
    """How many tasks run at once; None on Spark Connect, where only the server knows."""
    try:
        return int(spark.sparkContext.defaultParallelism)
    except Exception:
        return None
