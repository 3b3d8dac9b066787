"""The source of a merge, materialized once: every step sees the same rows.

Invariant: each row of the source is materialized exactly once, even if the source is not deterministic or reads the
same table. A small source is an Arrow table in the user's process; a larger one lies on the disks of the executors. If
rows of it are lost with an executor, the whole command runs again (``with_materialized_source``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import pyarrow as pa
from pyroaring import BitMap64
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - the same

from delta_pyds.errors import UnsupportedOperationError
from delta_pyds.redaction import safe_logger
from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.job_description import described
from delta_pyds.spark.other_engines import other_engine
from delta_pyds.spark.row_changes.frame_identity import has_other_aliases, with_identity_of
from delta_pyds.tasks.changed_rows import SOURCE_ROW_COLUMN

logger = safe_logger(__name__)
R = TypeVar("R")
# causes in Java may form a cycle
_MOST_CAUSES = 50

# the storage level by the number of the run. Reference: merge.materializeSource.rddStorageLevel and its retries
_LEVELS = (
    StorageLevel.DISK_ONLY, StorageLevel.DISK_ONLY_2, StorageLevel.DISK_ONLY_3, StorageLevel.DISK_ONLY_3,
)  # fmt: skip
_LOST = "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND"
# the most bytes that the user's process collects, and that each executor gets
SMALL_SOURCE_BYTES = 64 * 1024 * 1024
_MOST_ROWS = 1_000_000
_WANTED = "_deltapy_wanted_row"
# the same on other engines than Spark, which store no larger source
_MOST_BYTES_ELSEWHERE = 1024 * 1024 * 1024
_MOST_ROWS_ELSEWHERE = 20_000_000
# a source is not collected if Spark's estimate exceeds that size by more than this factor
_FACTOR = 4
# how much narrower than their origin rows without an estimate may be
_SCALED = 1 << 16
_PLAIN = (
    T.BooleanType, T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.FloatType, T.DoubleType, T.DecimalType,
    T.StringType, T.BinaryType, T.DateType, T.TimestampType, T.TimestampNTZType,
)  # fmt: skip


@dataclass(frozen=True)
class MergeSource:
    """``frame``: the rows, then ``SOURCE_ROW_COLUMN``: a number that is never null, and the index in ``rows``. The
    user's expressions resolve in it. ``rows``: all rows of a small source, with columns named by position (``c0``);
    None for a larger source.
    """

    frame: DataFrame
    original: DataFrame
    rows: pa.Table | None
    number_of_rows: int
    milliseconds: int

    @property
    def is_small(self) -> bool:
        return self.rows is not None

    def as_frame_of(self, original: DataFrame) -> MergeSource:
        """The same rows, for expressions that were resolved in another frame of the same columns."""
        if original is self.original:
            return self
        return replace(self, frame=with_identity_of(self.frame, original), original=original)

    def of_rows(self, rows: pa.Table) -> DataFrame:
        """A frame of some of the rows of a small source."""
        return _frame_of(self.original, rows)

    def chosen(self, numbers: BitMap64) -> MergeSource:
        """The source with these rows only, by their numbers."""
        wanted = pa.array(list(numbers), pa.int64())
        if self.rows is not None:
            rows = self.rows.take(wanted)
            return replace(self, frame=self.of_rows(rows), rows=rows, number_of_rows=rows.num_rows)
        few = self.frame.sparkSession.createDataFrame(pa.table({_WANTED: wanted}))
        few = F.broadcast(few) if len(wanted) <= _MOST_ROWS else few
        frame = self.frame.join(few, F.col(SOURCE_ROW_COLUMN) == F.col(_WANTED), "left_semi")
        return replace(self, frame=with_identity_of(frame, self.original), number_of_rows=len(wanted))


def with_materialized_source(run: Callable[[StorageLevel], R]) -> R:
    """Call ``run``, which materializes a source at a level and commits last. Call it again if rows of it are lost.

    Each run must change the same version of the table: the source may read it, and keeps its version.
    Spark cannot compute lost rows again: a checkpoint cuts the lineage, because they might come out different. Each
    further run stores more copies. Raises: as ``run``; after the fourth loss, its error.
    """
    for level in _LEVELS[:-1]:
        try:
            return run(level)
        except Exception as error:  # an error while Spark collects is py4j's, or Spark's own
            if _LOST not in conditions_of(error):
                raise
            logger.warning("An executor was lost, and rows of the source with it. The command runs again.")
    return run(_LEVELS[-1])


def conditions_of(error: BaseException) -> Iterator[str]:
    """The error conditions of Spark in an error and its causes."""
    at: BaseException | None = error
    seen: set[int] = set()
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        if isinstance(at, PySparkException):
            yield at.getCondition() or ""
        # of a classic session: py4j's error, or PySpark's error of it
        thrown: Any = getattr(at, "java_exception", None) or getattr(at, "_origin", None)
        for _ in range(_MOST_CAUSES):
            if thrown is None:
                break
            # most of the JVM's own errors have no condition
            if "getCondition" in dir(thrown):
                yield thrown.getCondition() or ""
            thrown = thrown.getCause()
        at = at.__cause__ or at.__context__


def materialize_source(
    source: DataFrame, level: StorageLevel = StorageLevel.DISK_ONLY, *, small_bytes: int = SMALL_SOURCE_BYTES
) -> MergeSource:
    """Compute the source. ``level``: for a large source. Raises: errors of its computation."""
    started = time.monotonic()
    other_aliases = has_other_aliases(source)
    rows = None if other_aliases else _small(source, small_bytes)
    if rows is None and (engine := other_engine(source.sparkSession)) is not None:
        rows = None if other_aliases else _small(source, _MOST_BYTES_ELSEWHERE, _MOST_ROWS_ELSEWHERE)
        if rows is None:
            raise UnsupportedOperationError(
                f"{engine} keeps no rows on the disks of its workers, so the source of a merge goes through this "
                f"process. It has more than {_MOST_ROWS_ELSEWHERE:,} rows or 1 GiB, types such as VARIANT, or columns "
                "of two aliases. Nothing was changed. Merge it in parts, or run the merge on Apache Spark.",
            )
    if rows is not None:
        frame, number = _frame_of(source, rows), rows.num_rows
    else:
        frame, number = _on_disk(source, level)
    spent = int((time.monotonic() - started) * 1000)
    return MergeSource(frame, source, rows, number, spent)


def _small(source: DataFrame, small_bytes: int, most_rows: int = _MOST_ROWS) -> pa.Table | None:
    """All rows, numbered, if they are few; else None, after reading one row above the limit."""
    types = [field.dataType for field in source.schema.fields]
    if not types or not all(_is_plain(data_type) for data_type in types):
        return None
    if _estimated_bytes(source, small_bytes) > _FACTOR * small_bytes:
        return None
    most = max(1, min(most_rows, small_bytes // sum(_width(data_type) for data_type in types)))
    names = [f"c{i}" for i in range(len(types))]
    try:
        with described(source.sparkSession, "source of a merge"):
            rows = source.toDF(*names).limit(most + 1).toArrow()
    except pa.ArrowInvalid:
        # PySpark 4.2 cannot collect null structs whose fields are not nullable
        return None
    if rows.num_rows > most or rows.nbytes > small_bytes:
        return None
    return rows.append_column(SOURCE_ROW_COLUMN, pa.array(range(rows.num_rows), pa.int64()))


def _estimated_bytes(source: DataFrame, unknown: int) -> int:
    """Spark's estimate of the size; ``unknown`` on Spark Connect, and for rows from Python."""
    if is_remote(source.sparkSession):
        return unknown
    frame: Any = source
    plan = frame._jdf.queryExecution().optimizedPlan()
    estimate = int(plan.stats().sizeInBytes())
    no_estimate = int(frame._jdf.sparkSession().sessionState().conf().defaultSizeInBytes())
    # columns that a plan leaves out or adds scale the number that stands for no estimate
    return unknown if estimate >= no_estimate // _SCALED else estimate


def _frame_of(source: DataFrame, rows: pa.Table) -> DataFrame:
    given = [T.StructField(f"c{i}", field.dataType) for i, field in enumerate(source.schema.fields)]
    # with explicit types: Spark would take times without a zone as instants in the session's zone
    schema = T.StructType([*given, T.StructField(SOURCE_ROW_COLUMN, T.LongType())])
    plain = source.sparkSession.createDataFrame(rows, schema)
    return with_identity_of(plain.toDF(*source.columns, SOURCE_ROW_COLUMN), source)


def _on_disk(source: DataFrame, level: StorageLevel) -> tuple[DataFrame, int]:
    # no column is renamed here, so aliases stay valid
    numbered = source.withColumn(SOURCE_ROW_COLUMN, F.monotonically_increasing_id())
    checkpointed = numbered.localCheckpoint(eager=True, storageLevel=level)
    number = checkpointed.count()
    logger.debug("The source of the merge has %s rows, stored on the disks of the executors.", number)
    return with_identity_of(checkpointed, source), number


def _is_plain(data_type: T.DataType) -> bool:
    """Whether such values pass through Arrow here and back unchanged."""
    if isinstance(data_type, T.StructType):
        return bool(data_type.fields) and all(_is_plain(field.dataType) for field in data_type.fields)
    if isinstance(data_type, T.ArrayType):
        return _is_plain(data_type.elementType)
    if isinstance(data_type, T.MapType):
        return _is_plain(data_type.keyType) and _is_plain(data_type.valueType)
    return isinstance(data_type, _PLAIN) and type(data_type) in _PLAIN


def _width(data_type: T.DataType) -> int:
    """An estimate of the bytes of one value."""
    if isinstance(data_type, T.StructType):
        return sum(_width(field.dataType) for field in data_type.fields)
    if isinstance(data_type, (T.ArrayType, T.MapType)):
        return 128
    return 32 if isinstance(data_type, (T.StringType, T.BinaryType)) else 8
