"""Rows of whole tables that CACHE TABLE caches in Spark.

Invariant: cached rows answer a query only while the table is at their version. If its log ends with another commit, the
table is read again, and its new rows are cached instead. Spark alone would not find cached rows of our tables: each
load of a Python source has a new plan. On Spark Connect even each query has a new plan. So only tables that Spark's own
reader reads are cached there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from delta_pyds.errors import TableNotFoundError, UnsupportedOperationError
from delta_pyds.log.listing import LogFile
from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.loading import load
from delta_pyds.spark.options.read import ReadOptions
from delta_pyds.storage.resolve import resolve_storage
from delta_pyds.storage.table_path import PathLike, absolute_table_path
from delta_pyds.table.scan.read_report import report_of
from delta_pyds.table.snapshot import Snapshot, open_snapshot


@dataclass(frozen=True)
class _Cached:
    """``path``: the path that is read. ``state``: the table's state when it was read."""

    path: PathLike
    state: tuple[str, int, LogFile | None]
    frame: DataFrame
    level: StorageLevel


@dataclass(frozen=True)
class CachedRows:
    """The rows of a table at a version."""

    frame: DataFrame
    version: int


_cached: WeakKeyDictionary[Any, dict[str, _Cached]] = WeakKeyDictionary()


def cache(spark: SparkSession, path: PathLike, snapshot: Snapshot, level: StorageLevel) -> DataFrame:
    """Let Spark cache the rows of the table at ``path``, when the first query reads them.

    Raises: UnsupportedOperationError on Spark Connect for a table that Spark's own Parquet reader cannot read.
    """
    root = absolute_table_path(path)
    forget(spark, root)
    # not as a version that the user chose: commits change what a statement reads
    frame = load(spark, path, ReadOptions(root), pinned_version=snapshot.version)
    report = report_of(frame)
    if is_remote(spark) and report is not None and report.engine != "native":
        raise UnsupportedOperationError(
            "on Spark Connect only tables that Spark's own Parquet reader can read can be cached. "
            f"{report}. Do not cache this table.",
            table=root,
        )
    cached = _Cached(path, _state(snapshot), frame.persist(level), level)
    _cached.setdefault(spark, {})[root] = cached
    return cached.frame


def is_cached(spark: SparkSession, root: str) -> bool:
    """Whether rows of the table are cached."""
    return root in _cached.get(spark, {})


def any_cached(spark: SparkSession) -> bool:
    """Whether rows of any table are cached."""
    return bool(_cached.get(spark))


def cached_rows(spark: SparkSession, root: str, version: int | None = None) -> CachedRows | None:
    """The cached rows of a table; None without any. Rows of a later version replace the cached ones.

    ``version``: the only one to return, if the statement has read another than the newest version.

    Raises: as ``open_snapshot``.
    """
    found = _cached.get(spark, {}).get(root)
    if found is None:
        return None
    try:
        snapshot = open_snapshot(resolve_storage(root), root)
    except TableNotFoundError:
        forget(spark, root)  # the table was deleted: free its rows now
        raise
    if version not in (None, snapshot.version):
        return None
    if found.state == _state(snapshot):
        return _with_new_ids(spark, found.frame, snapshot)
    try:
        return _with_new_ids(spark, cache(spark, found.path, snapshot, found.level), snapshot)
    except UnsupportedOperationError:
        return None  # the new version cannot be cached or cannot be read; the next read reports the error


def _with_new_ids(spark: SparkSession, frame: DataFrame, snapshot: Snapshot) -> CachedRows:
    """The same rows with new column ids, so that the answers of two queries can be joined."""
    return CachedRows(frame if is_remote(spark) else frame.toDF(*frame.columns), snapshot.version)


def forget(spark: SparkSession, root: str) -> bool:
    """Free the cached rows of a table. Returns: whether there were any."""
    found = _cached.get(spark, {}).pop(root, None)
    if found is not None:
        found.frame.unpersist()
    return found is not None


def forget_all(spark: SparkSession) -> None:
    for root in list(_cached.get(spark, {})):
        forget(spark, root)


def _state(snapshot: Snapshot) -> tuple[str, int, LogFile | None]:
    return snapshot.metadata.id, snapshot.version, snapshot.segment.last_commit
