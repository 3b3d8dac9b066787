"""The files of a scan as Arrow rows. In this form, the planner passes any number of files to tasks.

Columns: ``path`` as in the log, ``size``, ``deletionVector``, ``baseRowId``, ``defaultRowCommitVersion``, and one
string column ``partition:i`` for each of ``ScanState.partition_columns``. Packed rows also have ``start`` and
``length`` of the piece of the file to read, in bytes, and lack the columns of ``MAY_LACK`` that are null for all files.
The change feed has three more columns: ``selected``, a struct like ``deletionVector``, ``changeData``, a boolean, and
``compared``, a struct of the type ``COMPARED``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import msgspec
import pyarrow as pa

from delta_pyds.errors import DeletionVectorError
from delta_pyds.protocol.deletion_vector import DeletionVectorDescriptor
from delta_pyds.protocol.paths import resolve_data_path
from delta_pyds.tasks.scan_state import ComparedFile, RowIdColumns, ScanFile

PARTITION_PREFIX = "partition:"
MAY_LACK = ("deletionVector", "baseRowId", "defaultRowCommitVersion", "selected", "changeData", "compared")
COMPARED = pa.struct(
    [
        ("group", pa.int64()),
        ("removed", pa.bool_()),
        ("row_ids", pa.struct([(f.name, pa.string()) for f in fields(RowIdColumns)])),
    ]
)


def to_scan_files(batch: pa.RecordBatch, table_root: str) -> Iterator[ScanFile]:
    """Convert rows to ``ScanFile`` values, one at a time, in the task that reads them."""
    names = batch.schema.names
    partitions = sorted((n for n in names if n.startswith(PARTITION_PREFIX)), key=lambda n: int(n.split(":")[1]))
    for row in batch.to_pylist():
        yield ScanFile(
            path=resolve_data_path(table_root, row["path"]),
            size_bytes=row["size"] or 0,
            partition_values=tuple(row[n] for n in partitions),
            deletion_vector=_descriptor(row.get("deletionVector"), row["path"]),
            base_row_id=row.get("baseRowId"),
            default_row_commit_version=row.get("defaultRowCommitVersion"),
            start=row.get("start", 0),
            length=row.get("length"),
            selected=_descriptor(row.get("selected"), row["path"]),
            change_data=row.get("changeData") is True,
            compared=_compared(row.get("compared")),
        )


def _compared(compared: dict[str, Any] | None) -> ComparedFile | None:
    if compared is None:
        return None
    row_ids = compared["row_ids"]
    return ComparedFile(compared["group"], compared["removed"], None if row_ids is None else RowIdColumns(**row_ids))


def _descriptor(vector: dict[str, Any] | None, path: str) -> DeletionVectorDescriptor | None:
    # some writers of checkpoints write a struct of nulls if there is no deletion vector
    if vector is None or vector["storageType"] is None:
        return None
    try:
        return msgspec.convert(vector, DeletionVectorDescriptor)
    except msgspec.ValidationError as e:
        raise DeletionVectorError(
            f"the log's deletion vector of the file '{path}' is incomplete ({e}): without it deleted and live rows "
            "cannot be distinguished. Restore the log, or the table to an earlier version.",
            code="DELTA_DELETION_VECTOR_MALFORMED_DESCRIPTOR",
            path=path,
        ) from None
