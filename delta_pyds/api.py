"""What can be asked of a table without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from delta_pyds.table.scan import ScanReport, plan_scan
from delta_pyds.table.snapshot import load_snapshot


def explain(
    path: str,
    *,
    where: str | None = None,
    columns: str | Sequence[str] | None = None,
    version: int | None = None,
    timestamp_ms: int | None = None,
    time_zone: str = "UTC",
    storage_options: Mapping[str, Any] | None = None,
) -> ScanReport:
    """Which files a read would open, and for the others which part of ``where`` ruled them out.

    Nothing but the log is read. ``time_zone``: for timestamps without a zone in ``where``.

    Returns: a report; ``print`` it, or look at its ``files``, an Arrow table
        with ``path``, ``size_bytes``, ``kept`` and ``ruled_out_by``.
    Raises: what ``load_snapshot`` and ``plan_scan`` raise.
    """
    snapshot = load_snapshot(path, version=version, timestamp_ms=timestamp_ms, storage_options=storage_options)
    return plan_scan(snapshot, where=where, columns=columns, time_zone=time_zone).explain()
