"""Whether what answers on Spark Connect reads Parquet files as Spark does: proved once for a session.

Invariant: no row is read natively, and no row to change is looked for, through a server that has not told of one of
the table's own files what its footer says: how many rows it has, where they stand in it, its size, and which of them a
deletion vector leaves. Other engines speak the protocol of Spark Connect too, call themselves a version of Spark, and
return nothing, or something else, for paths and options that mean nothing to them (Sail 0.7 does).

A classic session has Spark itself, and is not asked. The file is one of the table's because no other is sure to be
where the server reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as spark_types

from delta_pyds.data.read.data_file import open_data_file
from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.native.files import spark_path
from delta_pyds.spark.native.scan import METADATA_COLUMN, PINNED_OPTIONS
from delta_pyds.spark.native.side_table import ROW, is_live
from delta_pyds.spark.plain_calls import plain_calls
from delta_pyds.storage.base import Storage
from delta_pyds.storage.parquet_ends import ParquetEnds
from delta_pyds.storage.resolve import scheme_of
from delta_pyds.tasks.scan_state import ScanFile, ScanState

# Files without rows prove nothing. So many footers are looked at for one that has some.
_MOST_FOOTERS = 16
_NO_SUCH_FILE = "PATH_NOT_FOUND"
# A deletion vector that holds rows 0 and 2.
_VECTOR = 0b101
# Of each session of Spark Connect, by the scheme of paths: why it is no Spark, or that it is one (an empty text).
_answers: WeakKeyDictionary[Any, dict[str, str]] = WeakKeyDictionary()


def reason_against_server(
    spark: SparkSession, storage: Storage, state: ScanState, files: Sequence[ScanFile]
) -> str | None:
    """Why Spark's own reader is not to be had in this session, as part of a sentence; None if it is.

    ``files``: of the scan, with resolved paths. One query of one row, once for a session and a scheme of paths.
    Raises: what opening a data file raises.
    """
    if not is_remote(spark) or not files:
        return None
    known = _answers.setdefault(spark, {})
    scheme = scheme_of(files[0].path)
    if scheme not in known:
        found = _file_with_rows(storage, state, files)
        if found is None:
            return "no file with rows was found that the server of Spark Connect could be tried with"
        try:
            known[scheme] = wrong_answer(spark, *found)
        except PySparkException as e:
            if not isinstance(e, AnalysisException) or e.getCondition() == _NO_SUCH_FILE:
                return _as_reason(_said(e))  # the next file may be there, and the server have come back
            known[scheme] = _said(e)
    return _as_reason(known[scheme]) if known[scheme] else None


def is_no_spark(spark: SparkSession) -> bool:
    """Whether the server of the session gave an answer that Spark does not give."""
    return is_remote(spark) and any(_answers.get(spark, {}).values())


def wrong_answer(spark: SparkSession, file: ScanFile, num_rows: int) -> str:
    """What Spark's own reader says of a file that it should not; empty if it says what is so.

    Raises: what Spark raises where it cannot read the file.
    """
    schema = spark_types.StructType([spark_types.StructField(ROW, spark_types.LongType())])
    told = {
        "rows": F.count(F.lit(1)),
        "live rows": F.count(F.when(is_live(F.array(F.lit(_VECTOR).cast("long"))), F.lit(1))),
        "first row": F.min(ROW),
        "last row": F.max(ROW),
        "bytes": F.max(f"{METADATA_COLUMN}.file_size"),
    }
    expected = (num_rows, num_rows - sum(row < num_rows for row in (0, 2)), 0, num_rows - 1, file.size_bytes)
    with plain_calls():
        reader = spark.read.schema(schema).options(**PINNED_OPTIONS).option("recursiveFileLookup", "true")
        frame = reader.parquet(spark_path(file.path)).select(ROW, METADATA_COLUMN)
        found = tuple(frame.agg(*told.values()).collect()[0])
    wrong = [f"{what} {has}, not {had}" for what, has, had in zip(told, found, expected, strict=True) if has != had]
    return f"of {file.path} it told {wrong[0]}" if wrong else ""


def _file_with_rows(storage: Storage, state: ScanState, files: Sequence[ScanFile]) -> tuple[ScanFile, int] | None:
    """The smallest file that has rows, and their number by its footer."""
    for file in sorted(files, key=lambda file: file.size_bytes)[:_MOST_FOOTERS]:
        ends = ParquetEnds("footers", state.file_leaves)
        with open_data_file(partial(ends.open, storage, file.path, file.size_bytes), state, file) as data:
            if data.num_rows:
                return file, data.num_rows
    return None


def _as_reason(why: str) -> str:
    return f"the server of Spark Connect was not seen to read Parquet files as Spark does: {why}"


def _said(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
