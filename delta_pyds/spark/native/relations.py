"""Spark's relations of indexed files, shared by the reads of one session.

Invariant: equal files, read in the same way, are one relation in Spark's driver. So Spark sees that two reads of a
table are the same, and computes a part of a query that occurs twice only once. Each DataFrame has columns of its own,
so a join of two reads is not ambiguous.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from delta_pyds.bounded_cache import BoundedCache
from delta_pyds.redaction import safe_logger
from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.jvm_plans import analyzed
from delta_pyds.spark.native.eligibility import METADATA_COLUMN, SessionDescription
from delta_pyds.spark.native.file_index import NoIndexError, digest, log_chunks, written_index
from delta_pyds.spark.native.files import NativeFiles
from delta_pyds.spark.native.filled_index import MIN_FILES, fill
from delta_pyds.spark.native.server_index import directory_on_server, pinned, reason_against_index, rows_of
from delta_pyds.spark.settings import IGNORE_SINK_LOG
from delta_pyds.storage.resolve import scheme_of

logger = safe_logger(__name__)
# An option of Spark's reader: directories name no partition values. With partitions, Spark needs another map of files,
# which cannot be filled.
RECURSIVE = "recursiveFileLookup"
# A file takes some 700 bytes of the driver's memory.
MAX_SHARED_FILES = 200_000
# A relation without files takes as much memory as this number of files.
_RELATION = 100
# Without an index of files, Spark lists each path by itself. On a disk, that took 0.2 ms of CPU for each file, measured
# up to this number. The Python source needs more to read the smallest file. A store answers slowly.
MAX_LISTED_FILES = 100_000
MAX_LISTED_FILES_IN_A_STORE = 1_000
# Spark lists more paths than this by a job. To list so few local files takes less time than an index in a server.
FEW_LISTED_FILES = 32


class _Relation:
    """``held``: a reference to the JVM's relation that does not keep the session alive, or a view on Connect."""

    def __init__(self, held: Any, num_files: int) -> None:
        self.held = held
        self.size = _RELATION + num_files


_relations: WeakKeyDictionary[Any, BoundedCache[Hashable, _Relation]] = WeakKeyDictionary()


def takes_index(spark: SparkSession, session: SessionDescription, table_root: str, num_files: int) -> bool:
    """Whether Spark reads the files by an index. Otherwise it lists each path.

    Raises: NoIndexError if Spark would list too many; PySparkException.
    """
    local = scheme_of(table_root) == "file"
    if session.ignores_sink_logs:
        reason: str | None = f"{IGNORE_SINK_LOG} is true"
    elif not session.remote:
        return True
    elif local and num_files <= FEW_LISTED_FILES:
        return False
    else:
        reason = reason_against_index(spark)
    if reason is None:
        return True
    most = MAX_LISTED_FILES if local else MAX_LISTED_FILES_IN_A_STORE
    if num_files > most:
        raise NoIndexError(
            f"the scan has more than {most:,} files, which Spark would list one by one, because it takes no index of "
            f"them: {reason}"
        )
    return False


def indexed_rows(
    spark: SparkSession,
    files: NativeFiles,
    chosen: Sequence[int],
    schema: StructType,
    options: Mapping[str, str],
    *,
    with_metadata: bool,
) -> DataFrame:
    """The rows of the files at the positions ``chosen``, with the columns of ``schema``.

    ``with_metadata``: Spark's column ``_metadata`` can be used too. On Connect it is then a column like the others.

    Raises: NoIndexError; what Spark raises if it cannot take the files.
    """

    def load() -> Any:
        # a cached relation needs no reader, whose options cost calls to Spark's driver
        reader: Any = spark.read.schema(schema).options(**options)
        if not is_remote(spark):
            if len(chosen) >= MIN_FILES and RECURSIVE in options:
                try:
                    relation = _relation_of(reader, files, ())
                    fill(spark, relation, files, chosen)
                    return relation
                except NoIndexError as reason:
                    logger.info("the table %s: %s", files.table_root, reason)
            return _relation_of(reader, files, chosen)
        with directory_on_server(spark, log_chunks(files, chosen)) as location:
            frame = reader.parquet(location)
            return pinned(spark, frame.select("*", METADATA_COLUMN) if with_metadata else frame, options)

    if len(chosen) > MAX_SHARED_FILES:
        return _rows_of(spark, load())
    key = (schema.json(), tuple(sorted(options.items())), with_metadata, digest(files, chosen))
    known = _relations.setdefault(spark, BoundedCache(MAX_SHARED_FILES, size_of=lambda relation: relation.size))
    relation = known.get(key)
    if relation is None:
        relation = _Relation(load(), len(chosen))
        known.put(key, relation)
    return _rows_of(spark, relation.held)


def _relation_of(reader: Any, files: NativeFiles, chosen: Sequence[int]) -> Any:
    """The JVM's relation of the files in a log."""
    with written_index(files, chosen) as location:
        return analyzed(reader.parquet(location)).relation()


def _rows_of(spark: SparkSession, held: Any) -> DataFrame:
    if is_remote(spark):
        return rows_of(spark, held)
    session: Any = spark
    return DataFrame(session._jsparkSession.baseRelationToDataFrame(held), spark)
