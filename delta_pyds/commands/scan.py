"""The rows of a table as an Arrow stream, without Spark.

Invariant: a scan stays at its version, and plans again for each stream that is read.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from delta_pyds.commands.arrow_stream import ArrowStream
from delta_pyds.data.read.concurrent import read_concurrently
from delta_pyds.storage.table_path import PathLike
from delta_pyds.table.scan.scan import Scan, ScanReport, plan_scan
from delta_pyds.table.snapshot import load_snapshot

if TYPE_CHECKING:
    from delta_pyds.catalog import Catalog


class TableScan(ArrowStream):
    """Rows of one version of a table. Every consumer of Arrow streams can read it, any number of times.

    ``delta_pyds.scan`` makes it. The scan stays at its version, and plans again for each stream.

    >>> scan = delta_pyds.scan("/data/events", where="day >= '2026-01-01'", columns=["id", "day"])
    >>> polars.DataFrame(scan), duckdb.sql("SELECT count(*) FROM scan"), scan.to_table().to_pandas()
    """

    def __init__(self, planned: Scan, threads: int | None) -> None:
        # use delta_pyds.scan
        super().__init__(planned.state, threads)
        self._scan = planned

    @property
    def version(self) -> int:
        """The version of the table."""
        return self._scan.snapshot.version

    def to_batches(self) -> Generator[pa.RecordBatch, None, None]:
        """Yield the rows in bounded memory, file by file in the order of the log. At most ``threads`` files are open.

        Returns:
            Batches in the scan's ``schema``, of at most 262,144 rows.

        Raises:
            CorruptDataFileError: A file cannot be decoded; the error names it.
            FileNotFoundInStorageError: A file is missing.
            DeletionVectorError: A deletion vector is damaged.
            StorageError: The store failed.

        >>> for batch in delta_pyds.scan("/data/events").to_batches():
        ...     print(batch.num_rows)
        """
        return read_concurrently(self._state, self._scan.files(), threads=self._threads)

    def explain(self) -> ScanReport:
        """Report which files the scan opens, and which part of ``where`` ruled out the others. Reads the log only.

        Returns:
            The same report as ``delta_pyds.explain`` returns for a path.

        >>> print(delta_pyds.scan("/data/events", where="day = DATE'2026-01-31'").explain())
        """
        return self._scan.explain()

    def __repr__(self) -> str:
        return self._shown(f"version {self.version}", self._scan.where)


def scan(
    path: PathLike | None = None,
    *,
    table: str | None = None,
    catalog: str | Catalog | None = None,
    where: str | None = None,
    columns: str | Sequence[str] | None = None,
    version: int | None = None,
    timestamp: str | dt.datetime | None = None,
    timestamp_ms: int | None = None,
    time_zone: str = "UTC",
    storage_options: Mapping[str, Any] | None = None,
    threads: int | None = None,
) -> TableScan:
    """Read rows of a table as an Arrow stream, without Spark. pandas, Polars and DuckDB can read such a stream.

    Deletion vectors, column mapping, widened types, variants, partition values and defaults are applied. Timestamps
    come in microseconds, those with a zone in UTC; a variant is a struct of ``value`` and ``metadata``.

    Args:
        path: The path of the table.
        table: Instead of a path, the name of the table in ``catalog``.
        catalog: The catalog that manages the table, as ``load_snapshot`` takes it.
        where: A predicate of Spark SQL. Only rows for which it is true are read; by default all rows. Files and row
            groups are skipped as in ``delta_pyds.read``.
        columns: The columns to return, nested ones with dots, as a list or as text with commas; by default all.
        version: The version to read; by default the latest.
        timestamp: Instead of a version, a time: the last commit up to this time.
        timestamp_ms: The same in milliseconds since the epoch.
        time_zone: The zone of timestamps without one, in ``where`` and ``timestamp``. The default is UTC, because there
            is no session.
        storage_options: Options of the store, as its fsspec package takes them.
        threads: The number of files that are read at once, 1 or more. The default is one for each processor, at most
            16, and 16 for a store.

    Returns:
        A scan that has read nothing but the log.

    Raises:
        TableNotFoundError: There is no table.
        TimeTravelError: The table does not have that version or time.
        OptionError: An argument is invalid, or more than one of version and times is given.
        ExpressionError: ``where`` or the time zone is invalid or not supported.
        ColumnNotFoundError: ``where`` or ``columns`` names a column that the table does not have.
        DeltaError: The table cannot be opened; see ``load_snapshot``.

    >>> scan = delta_pyds.scan("/data/events", where="city = 'Bern'", columns=["id", "visits"])
    >>> scan.to_table().num_rows
    """
    snapshot = load_snapshot(
        path,
        table=table,
        catalog=catalog,
        version=version,
        timestamp=timestamp,
        timestamp_ms=timestamp_ms,
        time_zone=time_zone,
        storage_options=storage_options,
    )
    planned = plan_scan(snapshot, where=where, columns=columns, time_zone=time_zone, storage_options=storage_options)
    return TableScan(planned, threads)
