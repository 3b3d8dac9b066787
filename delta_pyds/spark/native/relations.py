"""Spark's relations of indexed files, shared by the reads of one session.

Invariant: equal files, read in the same way, are one relation in Spark's driver. So Spark sees that two reads of a
table are the same, and computes a part of a query that occurs twice only once. Each DataFrame has columns of its own,
so a join of two reads is not ambiguous.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, SparkSession

from delta_pyds.bounded_cache import BoundedCache

# A file takes some 700 bytes of the driver's memory.
MAX_SHARED_FILES = 200_000
# A relation without files takes as much as so many of them.
_RELATION = 100


class _Relation:
    """``reference``: of the JVM's relation. It does not keep the session alive."""

    def __init__(self, reference: Any, num_files: int) -> None:
        self.reference = reference
        self.size = _RELATION + num_files


_relations: WeakKeyDictionary[Any, BoundedCache[Hashable, _Relation]] = WeakKeyDictionary()


def shared_frame(spark: SparkSession, key: Hashable, num_files: int, load: Callable[[], DataFrame]) -> DataFrame:
    """The DataFrame that ``load`` returns, or one over the relation that an earlier call with this key loaded.

    ``key``: names the files and everything that is said to Spark about them. The session is a classic one.
    """
    session: Any = spark
    known = _relations.setdefault(spark, BoundedCache(MAX_SHARED_FILES, size_of=lambda relation: relation.size))
    relation = known.get(key)
    if relation is not None:
        return DataFrame(session._jsparkSession.baseRelationToDataFrame(relation.reference), spark)
    frame = load()
    plan: Any = frame
    known.put(key, _Relation(plan._jdf.queryExecution().analyzed().relation(), num_files))
    return frame
