"""Rows through a writer of data files, and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from delta_pyds.columnar.schema import arrow_schema
from delta_pyds.data.write.writer import DataFileWriter
from delta_pyds.protocol.paths import resolve_data_path
from delta_pyds.protocol.schema import StructType, schema_to_string
from delta_pyds.tasks.scan_state import ScanFile
from delta_pyds.tasks.write_state import ColumnSource, WriteState, WrittenFile
from tests.support.scans import scan, state_of


def write_state(root: Path | str, schema: StructType, **given: Any) -> WriteState:
    """A write of all columns as they come, with statistics of all leaves."""
    columns = tuple(ColumnSource(f, "input", i) for i, f in enumerate(schema))
    defaults: dict[str, Any] = {
        "table_root": str(root),
        "storage_options": {},
        "schema": schema,
        "columns": columns,
        "stats_columns": leaf_paths(schema),
    }
    return WriteState(**(defaults | given))


def leaf_paths(schema: StructType) -> tuple[tuple[str, ...], ...]:
    """The logical paths of all leaves; arrays and maps are leaves."""
    paths: list[tuple[str, ...]] = []
    for f in schema.fields:
        if isinstance(f.data_type, StructType):
            paths += [(f.name, *below) for below in leaf_paths(f.data_type)]
        else:
            paths.append((f.name,))
    return tuple(paths)


def batch_of(schema: StructType, rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=arrow_schema(schema))


def write_files(state: WriteState, *batches: pa.RecordBatch, partition_id: int = 0) -> tuple[WrittenFile, ...]:
    writer = DataFileWriter(state, partition_id)
    for batch in batches:
        writer.write(batch)
    return writer.close()


def write_rows(state: WriteState, rows: list[dict[str, Any]]) -> tuple[WrittenFile, ...]:
    return write_files(state, batch_of(state.schema, rows))


def on_disk(state: WriteState, file: WrittenFile) -> Path:
    """The file that the log's path leads to."""
    return Path(resolve_data_path(state.table_root, file.path))


def read_back(state: WriteState, *files: WrittenFile) -> pa.Table:
    """All rows of the files by our reader, partition values out of the log's strings."""
    physical = tuple(f.physical_name for name in state.partition_columns for f in state.schema if f.name == name)
    scanned = state_of(
        Path(state.table_root),
        state.schema,
        partition_columns=physical,
        column_mapping_mode=state.column_mapping_mode,
    )
    found = [
        ScanFile(str(on_disk(state, f)), f.size_bytes, tuple(f.partition_values[name] for name in physical))
        for f in files
    ]
    return scan(scanned, *found)


def statistics(file: WrittenFile) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(file.statistics)
    return parsed


def committed(root: Path, state: WriteState, files: tuple[WrittenFile, ...]) -> None:
    """A table at ``root`` whose only version has these files; the log is written by hand."""
    reader = ["timestampNtz", "deletionVectors"] + (["columnMapping"] if state.column_mapping_mode != "none" else [])
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": reader, "writerFeatures": reader}
    metadata = {
        "id": "9f6a1c1e-0000-4000-8000-000000000000",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema_to_string(state.schema),
        "partitionColumns": list(state.partition_columns),
        "configuration": {"delta.columnMapping.mode": state.column_mapping_mode},
        "createdTime": 0,
    }
    actions: list[dict[str, Any]] = [{"protocol": protocol}, {"metaData": metadata}]
    for f in files:
        add = {
            "path": f.path,
            "partitionValues": dict(f.partition_values),
            "size": f.size_bytes,
            "modificationTime": f.modification_time_ms,
            "dataChange": True,
            "stats": f.statistics,
        }
        actions.append({"add": add})
    log = root / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020d}.json").write_text("\n".join(json.dumps(a, ensure_ascii=False) for a in actions))
