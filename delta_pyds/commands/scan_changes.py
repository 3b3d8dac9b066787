"""The changes of a range of versions as an Arrow stream, without Spark.

Invariant: a read of changes stays at its versions, and plans again for each stream that is read.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from delta_pyds.commands.arrow_stream import ArrowStream
from delta_pyds.data.read.computed_changes import with_changed_rows
from delta_pyds.data.read.concurrent import read_concurrently
from delta_pyds.errors import OptionError, UnsupportedOperationError
from delta_pyds.expr.types import is_comparable
from delta_pyds.protocol.schema import COLLATIONS, StructType, display
from delta_pyds.protocol.temporal import TimeZone
from delta_pyds.storage.table_path import PathLike
from delta_pyds.table.change_feed.arguments import compute_changes_of, key_columns, version_or_time
from delta_pyds.table.change_feed.change_scan import ChangeScan, change_range, plan_changes
from delta_pyds.table.change_feed.report import ChangesReport
from delta_pyds.table.snapshot import load_snapshot
from delta_pyds.table.time_travel import time_to_ms

if TYPE_CHECKING:
    from delta_pyds.catalog import Catalog


class TableChanges(ArrowStream):
    """Changes of a range of versions. Every consumer of Arrow streams can read it, any number of times.

    ``delta_pyds.scan_changes`` makes it. It stays at its versions, and plans again for each stream.

    >>> changes = delta_pyds.scan_changes("/data/prices", since=3, until=5)
    >>> polars.DataFrame(changes), duckdb.sql("SELECT count(*) FROM changes"), changes.to_table().to_pandas()
    """

    def __init__(self, planned: ChangeScan, keys: tuple[str, ...], threads: int | None) -> None:
        # use delta_pyds.scan_changes
        super().__init__(planned.state, threads)
        self._scan = planned
        self._keys = keys

    @property
    def since(self) -> int:
        """The version of the first commit."""
        return self._scan.range.first

    @property
    def until(self) -> int:
        """The version of the last commit."""
        return self._scan.range.last

    def to_batches(self) -> Generator[pa.RecordBatch, None, None]:
        """Yield the rows in bounded memory, commit by commit. Rows that wait for others spill to the local disk.

        Returns:
            Batches in ``schema``, of at most 262,144 rows.

        Raises:
            MissingLogFilesError: A commit of the range was cleaned up.
            UserError: The schemas of the range do not fit, or ``compute`` does not allow them.
            ProtocolError: The log contradicts itself, such as two rows with one row id.
            CorruptDataFileError: A file cannot be decoded; the error names it.
            FileNotFoundInStorageError: A file is missing, such as one that a vacuum deleted.
            DeletionVectorError: A deletion vector is damaged.
            StorageError: The store failed, or the local disk is full.

        >>> for batch in delta_pyds.scan_changes("/data/prices", since=3).to_batches():
        ...     print(batch.num_rows)
        """
        files = with_changed_rows(self._state, self._scan.files(), threads=self._threads)
        if self._keys:
            # imported here: most reads have no keys
            from delta_pyds.data.read.paired_changes import with_updates

            files = with_updates(self._state, files, self._keys, threads=self._threads)
        return read_concurrently(self._state, files, threads=self._threads)

    def explain(self) -> ChangesReport:
        """Report how the changes of each commit are found, and which files that reads. Reads the log only.

        Returns:
            The same report as ``delta_pyds.explain`` returns for a path with ``since``.

        Raises:
            MissingLogFilesError: A commit of the range was cleaned up.
            UserError: The schemas of the range do not fit, or ``compute`` does not allow them.

        >>> print(delta_pyds.scan_changes("/data/prices", since=3).explain())
        """
        return self._scan.explain()

    def __repr__(self) -> str:
        return self._shown(f"versions {self.since} to {self.until}", self._scan.selection.where)


def scan_changes(
    path: PathLike | None = None,
    *,
    table: str | None = None,
    catalog: str | Catalog | None = None,
    since: int | str | dt.datetime,
    until: int | str | dt.datetime | None = None,
    net: bool = False,
    keys: str | Sequence[str] | None = None,
    where: str | None = None,
    columns: str | Sequence[str] | None = None,
    compute: Literal["auto", "rowIds", "values", "never"] = "auto",
    time_zone: str = "UTC",
    storage_options: Mapping[str, Any] | None = None,
    threads: int | None = None,
) -> TableChanges:
    """Read the rows that commits inserted, updated and deleted as an Arrow stream, without Spark.

    The rows are those of ``delta_pyds.changes``. Types are as in ``delta_pyds.scan``.

    Args:
        path: The path of the table.
        table: Instead of a path, the name of the table in ``catalog``.
        catalog: The catalog that manages the table, as ``load_snapshot`` takes it.
        since: The first commit: its version, or a time, which means the first commit at or after it.
        until: The last commit: its version, or a time, which means the last commit at or before it. By default the
            latest.
        net: Whether to return only the difference between the table before ``since`` and after ``until``. It is always
            computed. A row that came and went is not in it.
        keys: Columns that identify a row. A delete and an insert of one version with the same keys become the two
            images of an update. They must be unique in the table; nulls are never paired.
        where: A predicate of Spark SQL over the columns of the table and of a change; by default all rows.
        columns: The columns to return, nested ones with dots; by default all, and the three of a change.
        compute: ``auto`` compares rows by row ids if the table tracks rows, else by values. ``rowIds`` and ``values``
            allow one way only. ``never`` refuses changes that were not recorded, as delta-spark does.
        time_zone: The zone of timestamps without one, in ``where``, ``since`` and ``until``. The default is UTC,
            because there is no session.
        storage_options: Options of the store, as its fsspec package takes them.
        threads: The number of files that are read at once, as ``scan`` takes it.

    Returns:
        A read of changes that has read nothing but the log. Its rows have the columns of the table, and
        ``_change_type`` (``insert``, ``delete``, ``update_preimage`` or ``update_postimage``), ``_commit_version`` and
        ``_commit_timestamp``; with ``net``, those of the last commit.

    Raises:
        OptionError: An argument is invalid.
        ColumnNotFoundError: ``keys``, ``where`` or ``columns`` names a column that does not exist.
        UnsupportedOperationError: A key is nested, a variant, or has a collation.
        TableNotFoundError: There is no table.
        TimeTravelError: The table does not have the first commit, or not that time.
        UserError: The range ends before it starts, its schemas do not fit, or ``compute`` does not allow them.
        ExpressionError: ``where`` or the time zone is invalid or not supported.
        DeltaError: The table cannot be opened; see ``load_snapshot``.

    >>> changes = delta_pyds.scan_changes("/data/prices", since="2026-01-31", net=True, keys="id")
    >>> changes.to_table().num_rows
    """
    if not isinstance(net, bool):
        raise OptionError(f"net is {net!r:.200}, but must be True or False.", option="net")
    if not isinstance(compute, str):
        raise OptionError(f"compute is {compute!r:.200}, but must be a text.", option="compute")
    way = compute_changes_of(compute, "compute")
    zone = TimeZone(time_zone)
    first = version_or_time("since", since)
    last = None if until is None else version_or_time("until", until)
    latest = load_snapshot(path, table=table, catalog=catalog, storage_options=storage_options)
    versions = change_range(
        latest,
        starting_version=first if isinstance(first, int) else None,
        starting_timestamp_ms=None if isinstance(first, int) else time_to_ms(first, zone, up=True),
        ending_version=last if isinstance(last, int) else None,
        ending_timestamp_ms=time_to_ms(last, zone) if isinstance(last, str) else None,
    )
    planned = plan_changes(
        latest,
        versions,
        where=where,
        columns=columns,
        time_zone=time_zone,
        storage_options=storage_options,
        compute=way,
        net=net,
    )
    names = key_columns(keys, planned.state.output.names)
    if names:
        _check_keys(names, planned.state.output)
        # a wanted row may have its other image in a file without wanted rows
        planned = replace(planned, selection=replace(planned.selection, filters=()))
    return TableChanges(planned, names, threads)


def _check_keys(keys: Sequence[str], columns: StructType) -> None:
    for field in columns:
        if field.name in keys and (COLLATIONS in field.metadata or not is_comparable(field.data_type)):
            kind = "text with a collation" if COLLATIONS in field.metadata else display(field.data_type)
            raise UnsupportedOperationError(
                f"keys names the column '{field.name}' of type {kind}, whose values cannot be compared here. Choose "
                "other keys, or read the changes by delta_pyds.changes, with Spark.",
                column=field.name,
            )
