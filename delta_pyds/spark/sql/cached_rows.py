"""Rows of whole tables that CACHE TABLE keeps in Spark.

Invariant: rows that are kept answer a query only while the table is at the version that they are of: what has other
files in its log is read anew, and kept instead. Spark itself keeps rows of no table of ours: to it each look at a
Python source is another one. On Spark Connect that is so from one query to the next, so only what Spark's own reader
reads is kept there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from delta_pyds.errors import TableNotFoundError, UnsupportedOperationError
from delta_pyds.log.listing import LogFile
from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.session import read
from delta_pyds.storage.resolve import resolve_storage
from delta_pyds.storage.table_path import PathLike, absolute_table_path
from delta_pyds.table.scan.read_report import report_of
from delta_pyds.table.snapshot import Snapshot, open_snapshot

if TYPE_CHECKING:
    from pyspark import StorageLevel
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class _Cached:
    """``path``: by which it is read. ``state``: what the table was when it was read."""

    path: PathLike
    state: tuple[str, int, LogFile | None]
    frame: DataFrame
    level: StorageLevel


_cached: WeakKeyDictionary[Any, dict[str, _Cached]] = WeakKeyDictionary()


def cache(spark: SparkSession, path: PathLike, snapshot: Snapshot, level: StorageLevel) -> DataFrame:
    """Have Spark keep the rows of the table at ``path``, from the first query on that reads them.

    Raises: UnsupportedOperationError on Spark Connect for what Spark's own Parquet reader cannot read.
    """
    root = absolute_table_path(path)
    forget(spark, root)
    frame = read(spark, path, version=snapshot.version)
    report = report_of(frame)
    if is_remote(spark) and report is not None and report.engine != "native":
        raise UnsupportedOperationError(
            f"on Spark Connect rows are kept of tables alone that Spark's own Parquet reader reads. {report}. Leave "
            "the table uncached.",
            table=root,
        )
    kept = _Cached(path, _state(snapshot), frame.persist(level), level)
    _cached.setdefault(spark, {})[root] = kept
    return kept.frame


def is_cached(spark: SparkSession, root: str) -> bool:
    """Whether rows are kept of the table."""
    return root in _cached.get(spark, {})


def any_cached(spark: SparkSession) -> bool:
    """Whether rows are kept of any table."""
    return bool(_cached.get(spark))


def cached_rows(spark: SparkSession, root: str) -> DataFrame | None:
    """The rows of a table of which rows are kept, else None; those of a later version are kept from now on.

    Raises: what opening the table raises.
    """
    found = _cached.get(spark, {}).get(root)
    if found is None:
        return None
    try:
        snapshot = open_snapshot(resolve_storage(root), root)
    except TableNotFoundError:
        forget(spark, root)  # somebody deleted it, and nobody else would let go of its rows
        raise
    if found.state == _state(snapshot):
        return _anew(spark, found.frame)
    try:
        return _anew(spark, cache(spark, found.path, snapshot, found.level))
    except UnsupportedOperationError:
        return None  # what it has become is not kept, or not read: who reads it says which


def _anew(spark: SparkSession, frame: DataFrame) -> DataFrame:
    """The same rows, of columns of their own: the answers of two queries can be joined by them."""
    return frame if is_remote(spark) else frame.toDF(*frame.columns)


def forget(spark: SparkSession, root: str) -> bool:
    """Returns: whether rows of the table were kept."""
    found = _cached.get(spark, {}).pop(root, None)
    if found is not None:
        found.frame.unpersist()
    return found is not None


def forget_all(spark: SparkSession) -> None:
    for root in list(_cached.get(spark, {})):
        forget(spark, root)


def _state(snapshot: Snapshot) -> tuple[str, int, LogFile | None]:
    return snapshot.metadata.id, snapshot.version, snapshot.segment.last_commit
