"""Optimised writes: rows are put together before they are written, so that a table gets fewer and larger files.

Invariant: the same rows are written. Spark shuffles them by the partition columns (its hint REBALANCE), and its
adaptive execution makes tasks of the size that the session says (``spark.sql.adaptive.advisoryPartitionSizeInBytes``,
``spark.sql.adaptive.coalescePartitions.parallelismFirst``); if that is off, Spark ignores the hint.

Through the plain format, ``df.write.format("deltapy")``, and in streams rows stay in Spark's partitions: a Python data
source cannot ask for a shuffle.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from delta_pyds.catalog.opening import table_storage
from delta_pyds.commands.write.request import WriteRequest
from delta_pyds.errors import TableNotFoundError
from delta_pyds.protocol.properties import Property
from delta_pyds.protocol.quoting import quote_name
from delta_pyds.redaction import safe_logger
from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.settings import OPTIMIZE_WRITE
from delta_pyds.table.snapshot import open_snapshot

logger = safe_logger(__name__)


def optimized(frame: DataFrame, request: WriteRequest, asked: bool | None, *, sure_of_files: bool) -> DataFrame:
    """The frame to write.

    ``asked``: the option says whether to; else the session (``spark.databricks.delta.optimizeWrite.enabled``); else the
    table (``delta.autoOptimize.optimizeWrite``), but not on Spark Connect. ``sure_of_files``: this process sees the
    table's files.
    """
    spark = frame.sparkSession
    if asked is None:
        setting = (spark.conf.get(OPTIMIZE_WRITE, None) or "").strip().lower()
        asked = setting == "true" if setting in ("true", "false") else None
        if setting not in ("", "true", "false"):
            logger.warning("The setting %s is neither true nor false, and says nothing here.", OPTIMIZE_WRITE)
    if asked is False:
        return frame
    # a client of Spark Connect may have no access to the table: it tries only if the option asks
    look = sure_of_files and (asked or not is_remote(spark))
    by, table_wants = _table(request) if look else (None, False)
    if not (table_wants if asked is None else asked):
        return frame
    if request.partition_by:
        by = tuple(path[0] for path in request.partition_by)
    names = {name.lower(): name for name in frame.columns}
    if by is None or any(name.lower() not in names for name in by):
        # without them each task would get rows of every partition, and write more files than before
        logger.warning(
            "Rows of the write to %s are not grouped: its partition columns are unknown here, or the table "
            "generates them.",
            request.table_root,
        )
        return frame
    columns = [quote_name(names[name.lower()]) for name in by]
    return frame.hint("rebalance", *columns)


def _table(request: WriteRequest) -> tuple[tuple[str, ...] | None, bool]:
    """The table's partition columns, and whether it wants optimised writes; one that cannot be read does not.

    A new table has those that the write names, and otherwise none.
    """
    try:
        storage = table_storage(request.table_root, request.storage_options)
        configuration = open_snapshot(storage, request.table_root).configuration
    except TableNotFoundError:
        return (), False
    except Exception as error:  # the write itself will raise the error
        logger.debug("The table %s was not looked at before it is written: %s", request.table_root, error)
        return None, False
    wanted = (configuration.configuration.get(Property.OPTIMIZE_WRITE) or "").strip().lower() == "true"
    return configuration.partition_columns, wanted
