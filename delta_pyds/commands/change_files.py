"""Change data files: the rows that a commit took out and put in, for readers of the change data feed.

Protocol: "Add CDC File", "Change Data Files".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from delta_pyds.commands.scan_files import scan_file, written_scan_file
from delta_pyds.data.reader import read
from delta_pyds.data.writer import DataFileWriter
from delta_pyds.protocol.actions import AddCDCFile, AddFile
from delta_pyds.protocol.schema import STRING, StructField, StructType
from delta_pyds.protocol.write_handoff import WriteState, WrittenFile
from delta_pyds.table.scan import Scan

CHANGE_TYPE = "_change_type"
_DRIVER_PARTITION = 0


def write_changes(
    scan: Scan, state: WriteState, leaving: Sequence[AddFile], written: Sequence[WrittenFile]
) -> list[AddCDCFile]:
    """Write the rows of ``leaving`` that the scan's predicate selects as deletes, those of ``written`` as inserts.

    A commit with change files is read from them alone: they must be complete.
    """
    deleted = (b for file in leaving for b in read(scan.state, scan_file(file, scan.state, file.deletion_vector)))
    as_written = replace(
        scan.state,
        output=state.schema,
        inputs=StructType(()),
        partition_columns=tuple(f.physical_name for f in state.schema if f.name in state.partition_columns),
        predicate=None,
        skip=None,
    )
    inserted = (b for file in written for b in read(as_written, written_scan_file(file, as_written)))
    files = [
        *_write(replace(state, schema=scan.state.output), deleted, "delete"),
        *_write(state, inserted, "insert"),
    ]
    return [
        AddCDCFile(
            path=file.path, partition_values=dict(file.partition_values), size=file.size_bytes, data_change=False
        )
        for file in files
    ]


def _write(state: WriteState, batches: Iterable[pa.RecordBatch], change: str) -> tuple[WrittenFile, ...]:
    target = replace(
        state,
        schema=StructType((*state.schema.fields, StructField(CHANGE_TYPE, STRING))),
        stats_columns=(),
        change_data=True,
    )
    writer = DataFileWriter(target, _DRIVER_PARTITION)
    try:
        for batch in _with_change(batches, change):
            writer.write(batch)
        return writer.close()
    except BaseException:
        writer.discard()
        raise


def _with_change(batches: Iterable[pa.RecordBatch], change: str) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        column = pa.repeat(pa.scalar(change, pa.string()), batch.num_rows)
        yield pa.RecordBatch.from_arrays([*batch.columns, column], names=[*batch.schema.names, CHANGE_TYPE])
