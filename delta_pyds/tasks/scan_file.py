"""Conversion of logged and newly written files to ``ScanFile``."""

from __future__ import annotations

from dataclasses import replace

from delta_pyds.protocol.actions import AddFile
from delta_pyds.protocol.deletion_vector import DeletionVectorDescriptor
from delta_pyds.protocol.paths import resolve_data_path
from delta_pyds.protocol.schema import StructType
from delta_pyds.tasks.scan_state import ScanFile, ScanState
from delta_pyds.tasks.write_state import WriteState, WrittenFile


def scan_file(file: AddFile, state: ScanState, vector: DeletionVectorDescriptor | None) -> ScanFile:
    """The ``ScanFile`` of a logged file. ``vector``: the deletion vector to apply, which may not be the file's own."""
    values = file.partition_values or {}
    return ScanFile(
        path=resolve_data_path(state.table_root, file.path),
        size_bytes=file.size,
        partition_values=tuple(values.get(name) for name in state.partition_columns),
        deletion_vector=vector,
        base_row_id=file.base_row_id,
        default_row_commit_version=file.default_row_commit_version,
    )


def written_scan(scan: ScanState, write: WriteState) -> ScanState:
    """The scan of files that were written with this state, and are not committed yet: all their columns."""
    return replace(
        scan,
        output=write.schema,
        inputs=StructType(()),
        skip=None,
        row_ids=None,
        # not all their columns have field ids, but all have physical names
        column_mapping_mode="name" if scan.column_mapping_mode == "id" else scan.column_mapping_mode,
        partition_columns=tuple(f.physical_name for f in write.schema if f.name in write.partition_columns),
    )


def written_scan_file(file: WrittenFile, state: ScanState) -> ScanFile:
    """The ``ScanFile`` of a file that is not committed yet."""
    return ScanFile(
        path=resolve_data_path(state.table_root, file.path),
        size_bytes=file.size_bytes,
        partition_values=tuple(file.partition_values.get(name) for name in state.partition_columns),
    )
