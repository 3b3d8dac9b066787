"""Rows of whole tables that CACHE TABLE keeps in Spark.

Invariant: rows that are kept answer a query only while the table is at the version that they are of: what has other
files in its log is read anew, and kept instead. Spark itself keeps rows of no table of ours: to it each look at a
Python source is another one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from delta_pyds.log.listing import LogFile
from delta_pyds.spark.session import read
from delta_pyds.storage.resolve import resolve_storage
from delta_pyds.table.snapshot import Snapshot, open_snapshot

if TYPE_CHECKING:
    from pyspark import StorageLevel
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class _Kept:
    """``state``: what the table was when it was read."""

    state: tuple[str, int, LogFile | None]
    frame: DataFrame
    level: StorageLevel


_kept: WeakKeyDictionary[Any, dict[str, _Kept]] = WeakKeyDictionary()


def keep(spark: SparkSession, root: str, snapshot: Snapshot, level: StorageLevel) -> DataFrame:
    """Have Spark keep the rows of the table at ``root``, from the first query on that reads them."""
    forget(spark, root)
    frame = read(spark, root, version=snapshot.version).persist(level)
    _kept.setdefault(spark, {})[root] = _Kept(_state(snapshot), frame, level)
    return frame


def are_kept(spark: SparkSession) -> bool:
    """Whether rows are kept of any table."""
    return bool(_kept.get(spark))


def kept_rows(spark: SparkSession, root: str) -> DataFrame | None:
    """The rows of a table of which rows are kept, else None; those of a later version are kept from now on.

    Raises: what opening the table raises.
    """
    found = _kept.get(spark, {}).get(root)
    if found is None:
        return None
    snapshot = open_snapshot(resolve_storage(root), root)
    return found.frame if found.state == _state(snapshot) else keep(spark, root, snapshot, found.level)


def forget(spark: SparkSession, root: str) -> bool:
    """Returns: whether rows of the table were kept."""
    found = _kept.get(spark, {}).pop(root, None)
    if found is not None:
        found.frame.unpersist()
    return found is not None


def forget_all(spark: SparkSession) -> None:
    for root in list(_kept.get(spark, {})):
        forget(spark, root)


def _state(snapshot: Snapshot) -> tuple[str, int, LogFile | None]:
    return snapshot.metadata.id, snapshot.version, snapshot.segment.last_commit
