"""Hooks for the conformance runner: our core, asked the questions of its manifest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from delta_pyds.commands.scan_changes import scan_changes
from delta_pyds.data.read.reader import output_schema
from delta_pyds.data.read.reader import read as read_file
from delta_pyds.protocol.paths import resolve_data_path
from delta_pyds.table.history import history as commit_history
from delta_pyds.table.history import version_at as find_version
from delta_pyds.table.scan.scan import Scan, plan_scan
from delta_pyds.table.snapshot import load_snapshot


def _rows(scan: Scan) -> pa.Table:
    batches = [batch for file in scan.files() for batch in read_file(scan.state, file)]
    return pa.Table.from_batches(batches, schema=output_schema(scan.state))


def read(path: str, version: int | None) -> pa.Table:
    return _rows(plan_scan(load_snapshot(path, version=version)))


def row_ids(path: str) -> pa.Table:
    return _rows(plan_scan(load_snapshot(path), row_ids=True))


def cdf(path: str, start: int, end: int | None) -> pa.Table:
    """The recorded feed: the expected answers refuse versions without one (``recorded_feed``)."""
    return scan_changes(path, since=start, until=end, compute="never").to_table()


def files(path: str, version: int | None, predicate: str | None) -> list[str]:
    scan = plan_scan(load_snapshot(path, version=version), where=predicate)
    return [resolve_data_path(path, p) for batch in scan.batches() for p in batch.column("path").to_pylist()]


def version_at(path: str, timestamp_ms: int) -> int:
    latest = load_snapshot(path)
    return find_version(
        latest.storage,
        latest.table_root,
        timestamp_ms,
        properties_of_latest=latest.configuration.properties,
        latest_version=latest.version,
    )


def txn(path: str, app_id: str) -> int | None:
    found = load_snapshot(path).transactions.get(app_id)
    return None if found is None else found.version


def detail(path: str) -> dict[str, Any]:
    snapshot = load_snapshot(path)
    protocol = snapshot.protocol
    return {
        "version": snapshot.version,
        "min_reader_version": protocol.min_reader_version,
        "min_writer_version": protocol.min_writer_version,
        "reader_features": sorted(protocol.reader_features or []),
        "writer_features": sorted(protocol.writer_features or []),
        "partition_columns": list(snapshot.metadata.partition_columns or []),
        "properties": dict(snapshot.metadata.configuration or {}),
        "num_files": snapshot.totals.num_files,
        "domain_metadata": {k: d.configuration for k, d in snapshot.domain_metadata.items()},
    }


def history(path: str) -> list[dict[str, Any]]:
    return list(_history(path))


def _history(path: str) -> Iterator[dict[str, Any]]:
    snapshot = load_snapshot(path)
    for record in commit_history(snapshot.storage, snapshot.table_root):
        info = record.commit_info
        yield {"version": record.version, "operation": info.operation if info else None}
