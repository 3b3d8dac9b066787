"""The files of a scan as Arrow rows: how planning hands any number of them to the tasks.

Columns: ``path`` as in the log, ``size``, ``deletionVector``, ``baseRowId``,
``defaultRowCommitVersion``, one string column ``partition:i`` for each of
``ScanState.partition_columns``, and, once packed, ``start`` and ``length`` of
the piece of the file to read, in bytes.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pyarrow as pa

from delta_pyds.protocol.deletion_vector import DeletionVectorDescriptor
from delta_pyds.protocol.handoff import ScanFile
from delta_pyds.protocol.paths import resolve_data_path

PARTITION_PREFIX = "partition:"


def to_scan_files(batch: pa.RecordBatch, table_root: str) -> Iterator[ScanFile]:
    """Turn rows into ``ScanFile`` values, one at a time, in the task that reads them."""
    names = batch.schema.names
    partitions = sorted((n for n in names if n.startswith(PARTITION_PREFIX)), key=lambda n: int(n.split(":")[1]))
    for row in batch.to_pylist():
        vector = row["deletionVector"]
        yield ScanFile(
            path=resolve_data_path(table_root, row["path"]),
            size_bytes=row["size"],
            partition_values=tuple(row[n] for n in partitions),
            deletion_vector=None
            if vector is None or vector["storageType"] is None
            else msgspec.convert(vector, DeletionVectorDescriptor),
            base_row_id=row["baseRowId"],
            default_row_commit_version=row["defaultRowCommitVersion"],
            start=row.get("start", 0),
            length=row.get("length"),
        )
