"""The history and the detail of a table as Arrow tables; columns, types and order are the reference's.

Protocol: "Commit Provenance Information".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from delta_pyds.table.detail import TableDetail
from delta_pyds.table.history import CommitRecord

_TIME = pa.timestamp("us", "UTC")
_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999
_TEXTS = pa.map_(pa.string(), pa.string())
_JOB_FIELDS = ("jobId", "jobName", "jobRunId", "runId", "jobOwnerId", "triggerType")

HISTORY_SCHEMA = pa.schema(
    [
        ("version", pa.int64()),
        ("timestamp", _TIME),
        ("userId", pa.string()),
        ("userName", pa.string()),
        ("operation", pa.string()),
        ("operationParameters", _TEXTS),
        ("job", pa.struct([(name, pa.string()) for name in _JOB_FIELDS])),
        ("notebook", pa.struct([("notebookId", pa.string())])),
        ("clusterId", pa.string()),
        ("readVersion", pa.int64()),
        ("isolationLevel", pa.string()),
        ("isBlindAppend", pa.bool_()),
        ("operationMetrics", _TEXTS),
        ("userMetadata", pa.string()),
        ("engineInfo", pa.string()),
    ]
)
DETAIL_SCHEMA = pa.schema(
    [
        ("format", pa.string()),
        ("id", pa.string()),
        ("name", pa.string()),
        ("description", pa.string()),
        ("location", pa.string()),
        ("createdAt", _TIME),
        ("lastModified", _TIME),
        ("partitionColumns", pa.list_(pa.string())),
        ("clusteringColumns", pa.list_(pa.string())),
        ("numFiles", pa.int64()),
        ("sizeInBytes", pa.int64()),
        ("properties", _TEXTS),
        ("minReaderVersion", pa.int32()),
        ("minWriterVersion", pa.int32()),
        ("tableFeatures", pa.list_(pa.string())),
    ]
)


def history_table(records: Iterable[CommitRecord]) -> pa.Table:
    """One row for each commit, in the order given. A value that a commit lacks, or has in another type, is null."""
    return pa.Table.from_pylist([_commit_row(record) for record in records], schema=HISTORY_SCHEMA)


def detail_table(detail: TableDetail, location: str | None = None) -> pa.Table:
    """The detail of a table, as one row. ``location``: the root to show, by default the table's own."""
    row = {
        "format": "delta",
        "id": detail.id,
        "name": detail.name,
        "description": detail.description,
        "location": detail.location if location is None else location,
        "createdAt": _microseconds(detail.created_ms),
        "lastModified": _microseconds(detail.last_modified_ms),
        "partitionColumns": list(detail.partition_columns),
        "clusteringColumns": list(detail.clustering_columns),
        "numFiles": detail.num_files,
        "sizeInBytes": detail.size_bytes if _is_long(detail.size_bytes) else None,
        "properties": list(detail.properties.items()),
        "minReaderVersion": detail.min_reader_version,
        "minWriterVersion": detail.min_writer_version,
        "tableFeatures": list(detail.features),
    }
    return pa.Table.from_pylist([row], schema=DETAIL_SCHEMA)


def _commit_row(record: CommitRecord) -> dict[str, Any]:
    info = record.commit_info
    row: dict[str, Any] = {"version": record.version, "timestamp": _microseconds(record.timestamp_ms)}
    if info is None:
        return {**row, "operationParameters": []}  # as the reference: no parameters, rather than unknown ones
    return {
        **row,
        "userId": _text(info.user_id),
        "userName": _text(info.user_name),
        "operation": info.operation,
        "operationParameters": _texts(info.operation_parameters),
        "job": _fields(info.job, _JOB_FIELDS),
        "notebook": _fields(info.notebook, ("notebookId",)),
        "clusterId": _text(info.cluster_id),
        "readVersion": info.read_version if _is_long(info.read_version) else None,
        "isolationLevel": _text(info.isolation_level),
        "isBlindAppend": info.is_blind_append if isinstance(info.is_blind_append, bool) else None,
        "operationMetrics": _texts(info.operation_metrics),
        "userMetadata": _text(info.user_metadata),
        "engineInfo": _text(info.engine_info),
    }


def _microseconds(time_ms: int | None) -> int | None:
    """Null for a time outside the years 1 to 9999, which neither Python nor Spark can express."""
    return None if time_ms is None or not _FIRST_MS <= time_ms <= _LAST_MS else time_ms * 1000


def _is_long(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def _texts(value: Any) -> list[tuple[str, str | None]] | None:
    return [(str(key), _text(item)) for key, item in value.items()] if isinstance(value, Mapping) else None


def _fields(value: Any, names: tuple[str, ...]) -> dict[str, str | None] | None:
    return {name: _text(value.get(name)) for name in names} if isinstance(value, Mapping) else None


def _text(value: Any) -> str | None:
    """A value of JSON that another engine wrote: a text as it is, other values as JSON text."""
    return value if value is None or isinstance(value, str) else json.dumps(value, separators=(",", ":"))
