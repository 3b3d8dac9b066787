"""Optimised writes: rows are put together before they are written, so that a table gets fewer and larger files.

Invariant: the same rows are written, whatever fails here. Spark shuffles them by the partition columns (its hint
REBALANCE) and its adaptive execution makes tasks of about the wanted size; the session's settings of that are changed
while the write runs, and are then as they were.

Through the plain format, ``df.write.format("deltapy")``, and in streams rows come as Spark has cut them: a Python data
source cannot ask for a shuffle.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from delta_pyds.protocol.properties import Property
from delta_pyds.redaction import safe_logger
from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.options.values import boolean_option
from delta_pyds.spark.options.write import parse_table_options
from delta_pyds.storage.resolve import resolve_storage
from delta_pyds.table.scan.column_selection import parse_column_list
from delta_pyds.table.snapshot import open_snapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

logger = safe_logger(__name__)

OPTION = "optimizeWrite"
_PREFIX = "spark.databricks.delta.optimizeWrite."
_ENABLED = f"{_PREFIX}enabled"
_BIN_SIZE = f"{_PREFIX}binSize"
_ADAPTIVE = "spark.sql.adaptive.enabled"
# megabytes of shuffled rows, as in the reference
_DEFAULT_BIN = 512
_lock = threading.Lock()
# by session: how many writes run with our settings, and what the settings were before the first of them
_running: dict[int, tuple[int, dict[str, str | None]]] = {}


@contextmanager
def optimized(
    frame: DataFrame, root: str, options: Mapping[str, str], *, sure_of_files: bool
) -> Iterator[tuple[DataFrame, dict[str, str]]]:
    """The frame to write, and the options without that of optimised writes.

    The option says whether to; else the session (``spark.databricks.delta.optimizeWrite.enabled``); else the table
    (``delta.autoOptimize.optimizeWrite``), but not on Spark Connect. ``sure_of_files``: this process sees the table's
    files.

    Raises: OptionError for an option that is neither true nor false.
    """
    given = {key.lower(): value for key, value in options.items()}
    asked = boolean_option(given, OPTION.lower(), OPTION)
    kept = {key: value for key, value in options.items() if key.lower() != OPTION.lower()}
    spark = frame.sparkSession
    if asked is None:
        said = (spark.conf.get(_ENABLED, None) or "").strip().lower()
        asked = said == "true" if said in ("true", "false") else None
    if asked is False:
        yield frame, kept
        return
    # a client of Spark Connect may have no way to the table: without being asked it does not try
    look = sure_of_files and (asked or not is_remote(spark))
    by, table_wants = _table(root, {**kept, "path": root}) if look else ((), False)
    if not (table_wants if asked is None else asked):
        yield frame, kept
        return
    if (spark.conf.get(_ADAPTIVE, None) or "true").strip().lower() != "true":
        logger.warning("Rows of the write to %s are not put together: %s is off in this session.", root, _ADAPTIVE)
        yield frame, kept
        return
    if given.get("partitionby"):
        by = tuple(path[0] for path in parse_column_list(given["partitionby"], "partitionBy"))
    names = {name.lower() for name in frame.columns}
    # a column that the table generates does not come with the rows
    columns = ["`" + name.replace("`", "``") + "`" for name in by if name.lower() in names]
    with _sized(spark):
        yield frame.hint("rebalance", *columns), kept


def _table(root: str, options: Mapping[str, str]) -> tuple[tuple[str, ...], bool]:
    """The table's partition columns, and whether it wants optimised writes; what cannot be read wants nothing."""
    try:
        path, storage_options = parse_table_options(options)
        configuration = open_snapshot(resolve_storage(path, storage_options), path).configuration
    except Exception as error:  # there is none yet, or the write itself will say what is wrong
        logger.debug("The table %s was not looked at before it is written: %s", root, error)
        return (), False
    wanted = (configuration.configuration.get(Property.OPTIMIZE_WRITE) or "").strip().lower() == "true"
    return configuration.partition_columns, wanted


@contextmanager
def _sized(spark: SparkSession) -> Iterator[None]:
    """While it runs, adaptive execution makes tasks of the wanted size, not as many as there are cores."""
    text = (spark.conf.get(_BIN_SIZE, None) or "").strip()
    megabytes = int(text) if text.isascii() and text.isdecimal() and 0 < len(text) < 7 else _DEFAULT_BIN
    settings = {
        "spark.sql.adaptive.advisoryPartitionSizeInBytes": f"{max(1, megabytes)}m",
        "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    }
    key = id(spark)
    with _lock:
        count, before = _running.get(key, (0, {}))
        if not count:
            before = {name: spark.conf.get(name, None) for name in settings}
            for name, value in settings.items():
                spark.conf.set(name, value)
        _running[key] = (count + 1, before)
    try:
        yield
    finally:
        with _lock:
            count, before = _running.pop(key)
            if count > 1:
                _running[key] = (count - 1, before)
            else:
                for name, old in before.items():
                    if old is None:
                        spark.conf.unset(name)
                    else:
                        spark.conf.set(name, old)
