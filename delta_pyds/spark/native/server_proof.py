"""A proof that the server of Spark Connect reads Parquet files as Spark does, once for a session.

Invariant: a Parquet reader of a server is used only after it gave the right answers about a file of the table: the
number of rows, their positions, the size of the file, and the rows that a deletion vector leaves. Other engines speak
the protocol of Spark Connect too and call themselves a version of Spark. For paths and options that they do not know,
they return no rows or wrong rows. For a file that is missing, the reader of Sail 0.7 returns no rows and no error.

A classic session has Spark itself and needs no proof. The file is one of the table's, because the server may not see
any other.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as spark_types

from delta_pyds.columnar.scan_files import to_scan_files
from delta_pyds.data.read.data_file import open_data_file
from delta_pyds.errors import first_line
from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.native.eligibility import METADATA_COLUMN
from delta_pyds.spark.native.scan import PINNED_OPTIONS
from delta_pyds.spark.native.vectors import ROW, VECTOR, is_live
from delta_pyds.spark.other_engines import other_engine
from delta_pyds.spark.plain_calls import plain_calls
from delta_pyds.storage.parquet_ends import ParquetEnds
from delta_pyds.storage.resolve import hadoop_path, scheme_of
from delta_pyds.table.scan.scan import Scan
from delta_pyds.table.transaction.row_counts import row_counts
from delta_pyds.tasks.scan_state import ScanFile

# Files without rows prove nothing. This is the most files to look at for one with rows.
_MOST_FILES = 16
_NO_SUCH_FILE = "PATH_NOT_FOUND"
# A deletion vector with the rows 0 and 2.
_VECTOR = 0b101
# For each session of Spark Connect and scheme of paths: why it is not Spark; an empty text if it is.
_answers: WeakKeyDictionary[Any, dict[str, str]] = WeakKeyDictionary()


def reason_against_server(spark: SparkSession, scan: Scan) -> str | None:
    """The reason against Spark's own reader in this session, as part of a sentence; None if nothing speaks against it.

    It takes one query of one row, once for a session and a scheme of paths.

    Raises: DeltaError for a data file that cannot be opened, and what reading the log raises.
    """
    if not is_remote(spark):
        return None
    known = _answers.setdefault(spark, {})
    scheme = scheme_of(scan.state.table_root)
    if scheme not in known:
        found = _file_with_rows(scan)
        if found is None:
            return "the scan has no file with rows to test the server of Spark Connect"
        try:
            known[scheme] = wrong_answer(spark, *found)
        except PySparkException as e:
            if not isinstance(e, AnalysisException) or e.getCondition() == _NO_SUCH_FILE:
                # not cached: the next file may exist, or the server may recover
                return _as_reason(spark, first_line(e))
            known[scheme] = first_line(e)
    return _as_reason(spark, known[scheme]) if known[scheme] else None


def wrong_answer(spark: SparkSession, file: ScanFile, num_rows: int) -> str:
    """The first wrong answer of Spark's own reader about a file; empty if all are right.

    Raises: Spark's exception if it cannot read the file.
    """
    schema = spark_types.StructType([spark_types.StructField(ROW, spark_types.LongType())])
    told = {
        "rows": F.count(F.lit(1)),
        "live rows": F.count(F.when(F.expr(is_live(VECTOR)), F.lit(1))),
        "first row": F.min(ROW),
        "last row": F.max(ROW),
        "bytes": F.max(f"{METADATA_COLUMN}.file_size"),
    }
    expected = (num_rows, num_rows - sum(row < num_rows for row in (0, 2)), 0, num_rows - 1, file.size_bytes)
    with plain_calls():
        words = F.array(F.lit(_VECTOR).cast("long")).alias(VECTOR)
        reader = spark.read.schema(schema).options(**PINNED_OPTIONS).option("recursiveFileLookup", "true")
        frame = reader.parquet(hadoop_path(file.path)).select(ROW, METADATA_COLUMN, words)
        found = tuple(frame.agg(*told.values()).collect()[0])
    wrong = [f"{what} {has}, not {had}" for what, has, had in zip(told, found, expected, strict=True) if has != had]
    return f"for {file.path} it returned {wrong[0]}" if wrong else ""


def _file_with_rows(scan: Scan) -> tuple[ScanFile, int] | None:
    """A small file with rows, and their number: by the log, or by the footer if the log does not say it."""
    unknown: list[ScanFile] = []
    for file, stats in _small_files(scan):
        num_rows = row_counts(stats).num_records
        if num_rows:
            return file, num_rows
        if num_rows is None and len(unknown) < _MOST_FILES:
            unknown.append(file)
    for file in unknown:
        ends = ParquetEnds("footers", scan.state.file_leaves)
        open_file = partial(ends.open, scan.snapshot.storage, file.path, file.size_bytes)
        with open_data_file(open_file, scan.state, file) as data:
            if data.num_rows:
                return file, data.num_rows
    return None


def _small_files(scan: Scan) -> Iterator[tuple[ScanFile, str | None]]:
    """The smallest files of each part of the log, with their statistics."""
    for batch in scan.adds(scan.request((*scan.selection.file_fields, "stats"))):
        smallest = pc.select_k_unstable(batch.files, k=_MOST_FILES, sort_keys=[("size", "ascending")])
        found: pa.RecordBatch = batch.files.take(smallest)
        files = to_scan_files(scan.selection.to_scan_batch(found), scan.snapshot.table_root)
        yield from zip(files, found.column("stats").to_pylist(), strict=True)


def _as_reason(spark: SparkSession, why: str) -> str:
    reader = other_engine(spark) or "the server of Spark Connect"
    return f"{reader} does not read Parquet files as Spark does: {why}"
