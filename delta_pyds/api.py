"""Functions that need no Spark session."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, overload

from delta_pyds.commands.layout.operation import LayoutResult
from delta_pyds.commands.row_changes.result import RowChangeResult
from delta_pyds.storage.table_path import PathLike
from delta_pyds.table.scan.read_report import ReadReport, report_of
from delta_pyds.table.scan.scan import ScanReport, plan_scan
from delta_pyds.table.snapshot import load_snapshot


class SupportsInputFiles(Protocol):
    """A DataFrame, as far as this module needs to know one."""

    def inputFiles(self) -> list[str]:  # noqa: N802 - Spark's name
        ...


@overload
def explain(
    path: PathLike,
    *,
    where: str | None = None,
    columns: str | Sequence[str] | None = None,
    version: int | None = None,
    timestamp: str | dt.datetime | None = None,
    timestamp_ms: int | None = None,
    time_zone: str = "UTC",
    storage_options: Mapping[str, Any] | None = None,
) -> ScanReport: ...


@overload
def explain(path: SupportsInputFiles) -> ReadReport | RowChangeResult | LayoutResult: ...


def explain(
    path: PathLike | SupportsInputFiles,
    *,
    where: str | None = None,
    columns: str | Sequence[str] | None = None,
    version: int | None = None,
    timestamp: str | dt.datetime | None = None,
    timestamp_ms: int | None = None,
    time_zone: str = "UTC",
    storage_options: Mapping[str, Any] | None = None,
) -> ScanReport | ReadReport | RowChangeResult | LayoutResult:
    """Report which files a read would open, and which part of ``where`` ruled out the others. Reads the log only.
    ``version``, ``timestamp``, ``timestamp_ms``: as ``load_snapshot`` takes them.
    ``time_zone``: of timestamps that name none, in ``where`` and in ``timestamp``.
    With a DataFrame that ``delta_pyds.read`` returned instead of a path: which engine reads it, and why. With one that
    ``DeltaTable.delete``, ``update`` or a merge returned: what the command did, where it ran, and why there.

    >>> print(delta_pyds.explain("/data/events", where="day = DATE'2026-01-31'"))
    >>> delta_pyds.explain(delta_pyds.read(spark, "/data/events")).engine
    'native'

    Returns: a report; ``print`` it. That of a path has ``files``, an Arrow table
        with ``path``, ``size_bytes``, ``kept`` and ``ruled_out_by``; that of a
        DataFrame has ``engine`` and ``reasons``, that of a command ``version``, ``place`` and numbers of rows.
    Raises: what ``load_snapshot`` and ``plan_scan`` raise; OptionError for another object.
    """
    if not isinstance(path, str | os.PathLike):
        report: ReadReport | RowChangeResult | LayoutResult = report_of(path)
        return report
    snapshot = load_snapshot(
        path,
        version=version,
        timestamp=timestamp,
        timestamp_ms=timestamp_ms,
        time_zone=time_zone,
        storage_options=storage_options,
    )
    return plan_scan(snapshot, where=where, columns=columns, time_zone=time_zone).explain()
