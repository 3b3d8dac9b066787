"""Functions that need no Spark session."""

from __future__ import annotations

import datetime as dt
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, overload

from delta_pyds.catalog.address import locate
from delta_pyds.errors import OptionError
from delta_pyds.storage.table_path import PathLike
from delta_pyds.table.scan.read_report import explained
from delta_pyds.table.scan.scan import ScanReport, plan_scan
from delta_pyds.table.snapshot import load_snapshot

if TYPE_CHECKING:
    from delta_pyds.catalog import Catalog
    from delta_pyds.commands.report.page import Checks
    from delta_pyds.table.change_feed.report import ChangesReport


class SupportsInputFiles(Protocol):
    """The part of a DataFrame that this module uses."""

    def inputFiles(self) -> list[str]:  # noqa: N802 - Spark's name
        ...


class Explanation(Protocol):
    """The common part of all reports of ``explain``: each prints as text, and a notebook shows it as a table."""

    @property
    def version(self) -> int | None:
        """The version that is read, or that the command created; None if it is unknown or does not exist."""

    def _repr_html_(self) -> str: ...


@overload
def explain(
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
) -> ScanReport: ...


@overload
def explain(
    path: PathLike | None = None,
    *,
    table: str | None = None,
    catalog: str | Catalog | None = None,
    where: str | None = None,
    columns: str | Sequence[str] | None = None,
    since: int | str | dt.datetime,
    until: int | str | dt.datetime | None = None,
    net: bool = False,
    compute: Literal["auto", "rowIds", "values", "never"] = "auto",
    time_zone: str = "UTC",
    storage_options: Mapping[str, Any] | None = None,
) -> ChangesReport: ...


@overload
def explain(path: SupportsInputFiles) -> Explanation: ...


def explain(
    path: PathLike | SupportsInputFiles | None = None,
    *,
    table: str | None = None,
    catalog: str | Catalog | None = None,
    where: str | None = None,
    columns: str | Sequence[str] | None = None,
    version: int | None = None,
    timestamp: str | dt.datetime | None = None,
    timestamp_ms: int | None = None,
    since: int | str | dt.datetime | None = None,
    until: int | str | dt.datetime | None = None,
    net: bool = False,
    compute: Literal["auto", "rowIds", "values", "never"] = "auto",
    time_zone: str = "UTC",
    storage_options: Mapping[str, Any] | None = None,
) -> Explanation:
    """Report which files a read would open, or how a DataFrame or a command of delta_pyds ran.

    For a path, only the log is read: the report says which part of ``where`` ruled out each file. With ``since``, it
    says how the changes of each commit are found, and what that reads. For a DataFrame of ``delta_pyds.read``, the
    report says which engine reads it, and why. For a query of ``delta_pyds.sql``, it says so for each table. For the
    DataFrame of a command of ``DeltaTable``, it says what the command did, where it ran, and why.

    Args:
        path: The path of the table; or exactly the DataFrame that ``delta_pyds.read``, ``delta_pyds.changes``, a query
            of ``delta_pyds.sql`` or a command of ``DeltaTable`` returned, without other arguments.
        table: Instead of a path, the name of the table in ``catalog``.
        catalog: The catalog that manages the table, as ``load_snapshot`` takes it.
        where: A predicate of Spark SQL; by default all rows.
        columns: The columns to read, nested ones with dots; by default all.
        version: The version of the table; by default the latest.
        timestamp: Instead of a version, a time: the last commit up to this time.
        timestamp_ms: The same in milliseconds since the epoch.
        since: Instead of a version, the first commit of a read of changes, as ``scan_changes`` takes it.
        until: The last commit of a read of changes.
        net: Whether the changes are the difference between the ends of the range.
        compute: How changes are computed that were not recorded.
        time_zone: The zone of timestamps without one, in ``where`` and in times. The default is UTC, because there is
            no session.
        storage_options: Options of the store, as its fsspec package takes them.

    Returns:
        A report that prints as text and that a notebook shows as a table. Each has ``version``. The report of a path
        also has ``files``, an Arrow table with ``path``, ``size_bytes``, ``kept`` and ``ruled_out_by``. That of changes
        has ``commits``, an Arrow table with ``version``, ``way`` (``recorded``, ``rowIds``, ``values``, ``files`` that
        came or left as a whole, or ``none``), numbers of files and ``size_bytes``. That of a DataFrame has ``engine``,
        ``reasons`` and ``num_files``, and ``changes`` if it reads them; that of a query ``reads``, one such report for
        each table and set of its files; that of a command ``place`` and its numbers of rows, or its metrics. In a
        session with an accelerator (Comet), ``acceleration`` of a DataFrame or a query says which scans it takes; Spark
        then plans it.

    Raises:
        OptionError: The object was not returned by ``delta_pyds.read``, a query of Delta tables or a command, or an
            argument is invalid.
        TableNotFoundError: There is no table.
        TimeTravelError: The table does not have that version or time.
        ExpressionError: ``where`` or the time zone is invalid or not supported.
        ColumnNotFoundError: ``where`` or ``columns`` names a column that the table does not have.

    >>> print(delta_pyds.explain("/data/events", where="day = DATE'2026-01-31'"))
    >>> delta_pyds.explain(delta_pyds.read(spark, "/data/events")).engine
    'native'
    >>> print(delta_pyds.explain("/data/prices", since=3))
    """
    if path is not None and not isinstance(path, str | os.PathLike):
        report: Explanation = explained(path)
        return report
    if since is not None:
        from delta_pyds.commands.scan_changes import scan_changes

        if any(given is not None for given in (version, timestamp, timestamp_ms)):
            raise OptionError("since and a version or a time of the table are given: leave one out.", option="since")
        return scan_changes(
            path,
            table=table,
            catalog=catalog,
            since=since,
            until=until,
            net=net,
            where=where,
            columns=columns,
            compute=compute,
            time_zone=time_zone,
            storage_options=storage_options,
        ).explain()
    if until is not None or net or compute != "auto":
        raise OptionError(
            "until, net or compute is given without since: give since, the first commit of a read of changes.",
            option="since",
        )
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
    return plan_scan(snapshot, where=where, columns=columns, time_zone=time_zone).explain()


# verify holds an object for each live file
_MOST_FILES_VERIFIED = 200_000


def report(
    path: PathLike | None = None,
    *,
    table: str | None = None,
    catalog: str | Catalog | None = None,
    to: str | os.PathLike[str] | None = None,
    verify: Literal["log", "data"] | bool = True,
    storage_options: Mapping[str, Any] | None = None,
) -> str:
    """Describe a table in one HTML page, with the gains of maintenance. Nothing is changed.

    The page has sizes and ages of files, partitions, deleted rows, clustering depth, growth, operations, properties and
    features. It has the findings of ``verify``, and the gains of vacuum and optimize. It loads nothing else, is light
    or dark as the reader's system is, fits a phone, and shows itself in a notebook. The log is read, and files are
    listed for the gain of vacuum. Data files are read only with ``verify="data"``.

    Args:
        path: The path of the table.
        table: Instead of a path, the name of the table in ``catalog``.
        catalog: The catalog that manages the table, as ``load_snapshot`` takes it.
        to: A local file to write the page to; an existing file is overwritten.
        verify: True and ``"log"`` check the log against the protocol, True only for at most 200,000 files. ``"data"``
            reads all data too. False checks nothing.
        storage_options: Options of the store, as its fsspec package takes them.

    Returns:
        The page as text.

    Raises:
        TableNotFoundError: There is no table.
        DeltaError: The table cannot be opened; see ``load_snapshot``.
        OptionError: An argument is invalid.
        OSError: ``to`` cannot be written.

    >>> html = delta_pyds.report("/data/events", to="events.html")
    """
    from delta_pyds.commands.report.measure import measure
    from delta_pyds.commands.report.page import page

    if not isinstance(verify, bool) and verify not in ("log", "data"):
        raise OptionError(f"verify is {verify!r}: give True, False, 'log' or 'data'.", option="verify")
    address = locate(path, table=table, catalog=catalog, storage_options=storage_options)
    root, options = address.table_root, address.storage_options
    measures = measure(load_snapshot(root, storage_options=options))
    checks = _checks(root, verify, measures.files.num_files, options)
    # read from the loaded package: an import of its version would load Spark
    html = page(measures, checks, f"delta_pyds {sys.modules['delta_pyds'].__version__}")
    if to is not None:
        # a name from a log may contain half of a surrogate pair
        Path(to).write_text(html, encoding="utf-8", errors="backslashreplace")
    return html


def _checks(
    path: PathLike, how: Literal["log", "data"] | bool, num_files: int, storage_options: Mapping[str, Any] | None
) -> Checks:
    from delta_pyds.commands.report.page import Checks
    from delta_pyds.verification.verify import verify

    if how is False:
        return Checks(reason="verify was not requested.")
    if how is True and num_files > _MOST_FILES_VERIFIED:
        return Checks(
            reason=f"verify did not run, because the table has {num_files:,} files: run deltapy verify --log-only, or "
            "request a report with verify='log'."
        )
    found = verify(path, data=how == "data", storage_options=storage_options)
    _, checked, *_ = str(found).splitlines()
    if how != "data":
        checked = f"{checked.rpartition(', ')[0]}. No data file was read"
    findings = tuple((f.severity, f.rule, f.where, f.message) for f in found.findings)
    return Checks(findings, f"{checked[:1].upper()}{checked[1:]}.", data=how == "data")
