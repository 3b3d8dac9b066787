"""The rows of a table as a DataFrame with the file and position of each row, in which commands find rows to change.

Invariant: with either engine, the rows are those of one snapshot and of the files that ``files`` lists; a row of any
other file is an error (``number_of``). Nothing goes through the driver. On a classic session, planning opens no data
file.

Spark's own reader reads a file as it does for the reference. If it cannot read one, the query runs again by the Python
source (``by_either_reader``).

Protocol: "Row Tracking", "Deletion Vectors".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from delta_pyds.commands.row_changes.plan import file_names
from delta_pyds.errors import CorruptLogError, DeltaError, first_line
from delta_pyds.expr.nodes import Expr
from delta_pyds.protocol.paths import resolve_data_path
from delta_pyds.protocol.quoting import quote_name
from delta_pyds.protocol.schema import LONG, StructField, StructType
from delta_pyds.redaction import safe_logger
from delta_pyds.spark.native.connectors import NoConnectorError, connector_of
from delta_pyds.spark.native.eligibility import reasons_against
from delta_pyds.spark.native.file_index import NoIndexError
from delta_pyds.spark.native.files import files_of, reasons_against_files
from delta_pyds.spark.native.read import SPARK_ERRORS, describe
from delta_pyds.spark.native.scan import NativeScanError, native_frame
from delta_pyds.spark.native.server_proof import reason_against_server
from delta_pyds.spark.row_changes.handle import TableHandle
from delta_pyds.spark.source.error_transport import error_of
from delta_pyds.storage.allowed_roots import require_all_allowed
from delta_pyds.storage.resolve import normalize_table_root
from delta_pyds.table.scan.live_files import LiveFiles
from delta_pyds.table.scan.scan import Scan, plan_scan
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.tasks import scan_state
from delta_pyds.tasks.changed_rows import FILE_COLUMN, POSITION_COLUMN, ROW_ID_COLUMN

T = TypeVar("T")
logger = safe_logger(__name__)
_SOURCE = "deltapy"
# Spark's error for a data file that its reader cannot read
_UNREADABLE = "[FAILED_READ_FILE"


@dataclass(frozen=True)
class TargetFrame:
    """``frame``: the selected columns, then ``FILE_COLUMN`` (a URI), ``POSITION_COLUMN`` (a long), and
    ``ROW_ID_COLUMN`` if row ids are wanted: null for a row whose id is its position plus its file's base row id.

    ``files``: the files that are read, in the order of their numbers. ``reasons``: why Spark's own reader does not read
    them.
    """

    frame: DataFrame
    scan: Scan
    files: LiveFiles
    names: Mapping[str, int]
    engine: Literal["native", "arrow"]
    reasons: tuple[str, ...] = ()

    def number_of(self, file: int | str) -> int:
        """The number of the file that a task names. Raises: CorruptLogError for a file that is not in ``files``."""
        number = file if isinstance(file, int) else self.names.get(file_name(file))
        if number is None or not 0 <= number < len(self.files):
            raise CorruptLogError(
                f"a row comes from the file '{file}', which this command does not read from the table "
                f"{self.scan.snapshot.table_root}. Nothing was changed.",
                table=self.scan.snapshot.table_root,
                file=str(file),
            )
        return number

    @property
    def base_row_ids(self) -> dict[str, int]:
        """The first row id of each file that has one, by the file's name."""
        named = zip(self.names, self.files.rows.column("baseRowId").to_pylist(), strict=True)
        return {name: base for name, base in named if base is not None}


def file_name(text: str) -> str:
    """The file of a row, spelled as both engines spell it.

    Spark percent-encodes the characters that Java's URIs do not allow, and the percent sign; the other engine only the
    percent sign.
    """
    return normalize_table_root(unquote(text))


def target_frame(
    spark: SparkSession,
    snapshot: Snapshot,
    *,
    prune: str | None = None,
    columns: Sequence[str] | None = None,
    pushed: Sequence[Expr] = (),
    row_ids: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    time_zone: str = "UTC",
    engine: Literal["auto", "native", "arrow"] = "auto",
) -> TargetFrame:
    """The rows of the snapshot, without some that the predicates rule out.

    ``prune``: a predicate that ``expr.parse`` supports; rows for which it is not true may be missing. ``pushed``: more
    such conditions, bound, which only skip files. ``columns``: names of the table's columns, all by default.
    ``row_ids``: for a table that tracks rows. The caller has checked that the session sees the table at the same path.

    Raises: as ``plan_scan``; DeletionVectorError; CorruptLogError for a file that the log has twice.
    """
    scan = plan_scan(
        snapshot,
        where=prune,
        # a selection must not be empty
        columns=None if columns is None else [quote_name(name) for name in columns or snapshot.schema.names[:1]],
        pushed=pushed,
        time_zone=time_zone,
        storage_options=storage_options,
    )
    files = LiveFiles(scan)
    paths = files.rows.column("path")
    require_all_allowed(snapshot.storage, (resolve_data_path(snapshot.table_root, path.as_py()) for path in paths))
    names = {name: number for number, name in enumerate(file_names(snapshot.table_root, paths))}
    if len(names) < len(files):
        raise CorruptLogError(
            f"the log of the table {snapshot.table_root} lists one file twice, for instance by a relative and an "
            "absolute path. So it is unclear to which entry a row belongs. Nothing was changed. Find the file with "
            "verify, and restore an earlier version of the table.",
            table=snapshot.table_root,
        )
    reasons: tuple[str, ...] = ("the caller chose our Python source",)
    if engine != "arrow":
        frame, reasons = _native(spark, _with_row_ids(scan) if row_ids else scan, files, row_ids)
        if frame is not None:
            return TargetFrame(frame, scan, files, names, "native")
    return TargetFrame(_by_source(spark, scan, row_ids), scan, files, names, "arrow", reasons)


def by_either_reader(target: TableHandle, run: Callable[[TableHandle], T]) -> T:
    """Run a query over a target frame. If Spark's own reader cannot read a file, run it again by the Python source.

    Spark's reader reads no nanoseconds and lacks some codecs. ``run``: commits nothing before all rows are read.
    """
    try:
        return run(target)
    except DeltaError:
        raise
    except Exception as e:
        if target.reader == "arrow" or error_of(e) is not None or _UNREADABLE not in str(e):
            raise
        why = next(line for line in str(e).splitlines() if _UNREADABLE in line)
        logger.warning("Spark's own reader cannot read the table %s; the Python source does: %s", target.path, why)
        return run(replace(target, reader="arrow"))


# --- Spark's own reader


def _native(
    spark: SparkSession, scan: Scan, live: LiveFiles, row_ids: bool
) -> tuple[DataFrame | None, tuple[str, ...]]:
    session = describe(spark)
    reasons = reasons_against(scan.state, session, uses_time_zone=scan.uses_time_zone, sure_of_files=True)
    if reasons:
        return None, reasons
    try:
        connector_of(spark, scan, remote=session.remote)
    except NoConnectorError as e:
        return None, (str(e),)
    files = files_of(scan, live.rows.to_batches())
    if found := tuple(reasons_against_files(files, scan.state)):
        return None, found
    if unproven := reason_against_server(spark, scan):
        return None, (unproven,)
    try:
        try:
            frame = native_frame(spark, scan, files, session=session, located=True)
        except NativeScanError:
            if scan.state.predicate is None:
                raise
            # the predicate only skips files, which are already chosen
            scan = _with_state(scan, predicate=None, inputs=StructType(()))
            frame = native_frame(spark, scan, files, session=session, located=True)
    except (NativeScanError, NoIndexError) as e:
        return None, (str(e),)
    except SPARK_ERRORS as e:
        return None, (f"Spark cannot read the files: {first_line(e)}",)
    return (_row_ids_last(frame, scan) if row_ids else frame), ()


def _with_row_ids(scan: Scan) -> Scan:
    """The scan with the materialized row id as an additional last column."""
    name = scan.snapshot.configuration.row_id_columns().row_id
    if name is None:
        return scan
    return _with_state(scan, output=StructType((*scan.state.output, StructField(name, LONG))))


def _with_state(scan: Scan, **changes: Any) -> Scan:
    return replace(scan, selection=replace(scan.selection, state=replace(scan.state, **changes)))


def _row_ids_last(frame: DataFrame, scan: Scan) -> DataFrame:
    name = scan.snapshot.configuration.row_id_columns().row_id
    if name is None:
        return frame.withColumn(ROW_ID_COLUMN, F.lit(None).cast("bigint"))
    columns = [F.col(quote_name(c)) for c in frame.columns if c != name]
    return frame.select(*columns, F.col(quote_name(name)).alias(ROW_ID_COLUMN))


# --- the Python source


def _by_source(spark: SparkSession, scan: Scan, row_ids: bool) -> DataFrame:
    state = scan.state
    options = {
        "versionAsOf": str(scan.snapshot.version),
        "columns": ",".join(quote_name(name) for name in state.output.names),
        "rowPosition": "true",
        "timeZone": state.time_zone,
    }
    if scan.where:
        options["where"] = scan.where
    if row_ids:
        options["rowIds"] = "true"
    if state.storage_options:
        options["storageOptions"] = json.dumps(dict(state.storage_options))
    frame = spark.read.format(_SOURCE).options(**options).load(scan.snapshot.table_root)
    columns = [F.col(quote_name(name)) for name in state.output.names]
    columns.append(F.replace(F.col(scan_state.FILE_PATH_COLUMN), F.lit("%"), F.lit("%25")).alias(FILE_COLUMN))
    columns.append(F.col(scan_state.ROW_POSITION_COLUMN).alias(POSITION_COLUMN))
    if row_ids:
        columns.append(F.col(scan_state.ROW_ID_COLUMN).alias(ROW_ID_COLUMN))
    return frame.select(*columns)
