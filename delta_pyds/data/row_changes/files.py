"""Batches written as complete files, or not at all; files rewritten with their remaining rows.

Protocol: "Row Tracking".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa

from delta_pyds.columnar.roaring import deserialize, live_mask
from delta_pyds.columnar.row_origins import of_whole_file, unpack
from delta_pyds.data.read.deletion_vector import inline_vector
from delta_pyds.data.read.reader import read
from delta_pyds.data.write.writer import DataFileWriter
from delta_pyds.errors import ProtocolError
from delta_pyds.protocol.schema import LONG, STRING, StructField, StructType
from delta_pyds.tasks.row_changes import RewriteFiles, TableFile, WithoutRows
from delta_pyds.tasks.scan_state import CHANGE_TYPE_COLUMN, RowIdColumns
from delta_pyds.tasks.write_state import TaskOutput, WriteState, WrittenFile

# the tasks of a write number their partitions from 0; the UUID alone makes a file's name unique
PARTITION = 0
# a new file of this size is not small
_LARGE_BYTES = 16 << 20


def write_files(state: WriteState, batches: Iterable[pa.RecordBatch]) -> tuple[WrittenFile, ...]:
    """Write all rows to new files. Raises: as ``DataFileWriter``, after it deleted the files."""
    return _write(DataFileWriter(state, PARTITION), ((batch, None) for batch in batches))


def write_with_origins(
    state: WriteState, *groups: Iterable[tuple[pa.RecordBatch, pa.Array]]
) -> tuple[WrittenFile, ...]:
    """Write all rows to new files that record their origins; no file has rows of two groups.

    Raises: as ``write_files``.
    """
    return _write(DataFileWriter(state, PARTITION, with_origins=True), *groups)


def _write(
    writer: DataFileWriter, *groups: Iterable[tuple[pa.RecordBatch, pa.Array | None]]
) -> tuple[WrittenFile, ...]:
    try:
        for rows in groups:
            for batch, origins in rows:
                writer.write(batch, origins)
            writer.end_files()
        return writer.close()
    except BaseException:
        # also for GeneratorExit and KeyboardInterrupt: a killed task deletes as many files as it can
        with suppress(Exception):
            writer.discard()
        raise


def of_change_files(state: WriteState) -> WriteState:
    """The state for the same rows in files of the change data feed, with ``_change_type`` after the columns."""
    schema = StructType((*state.schema.fields, StructField(CHANGE_TYPE_COLUMN, STRING)))
    # readers find change files in the commit and never skip one, so statistics have no use
    return replace(state, schema=schema, stats_columns=(), change_data=True)


def with_row_ids(state: WriteState, columns: RowIdColumns | None) -> WriteState:
    """The state for the same rows, followed by the columns that keep a moved row's id and commit version.

    Raises: ProtocolError for a table that tracks rows but does not name those columns: row ids would be lost.

    Protocol: "Row Tracking".
    """
    if columns is None:
        return state
    names = [name for name in (columns.row_id, columns.row_commit_version) if name is not None]
    if len(names) < 2:
        raise ProtocolError(
            f"the table {state.table_root} tracks its rows (delta.enableRowTracking=true), but lacks "
            "delta.rowTracking.materializedRowIdColumnName or "
            "delta.rowTracking.materializedRowCommitVersionColumnName. These properties name the columns that keep "
            "the ids of moved rows. Nothing was changed. Repair the metadata, or set delta.enableRowTracking=false.",
            code="DELTA_MATERIALIZED_ROW_TRACKING_COLUMN_NAME_MISSING",
            table=state.table_root,
        )
    return replace(state, schema=StructType((*state.schema.fields, *(StructField(name, LONG) for name in names))))


def joined_files(files: Sequence[TableFile]) -> Iterator[list[tuple[int, TableFile]]]:
    """Groups of files whose rows may share a new file, with their indices in ``files``.

    Small files of a partition are joined. A large one is rewritten alone. So a command that lost a race for it takes
    back nothing else.
    """
    group: list[tuple[int, TableFile]] = []
    size = 0
    for index, file in sorted(enumerate(files), key=lambda one: [v or "" for v in one[1].scan.partition_values]):
        if group and max(size, file.scan.size_bytes) >= _LARGE_BYTES:
            yield group
            group, size = [], 0
        group.append((index, file))
        size += file.scan.size_bytes
    if group:
        yield group


def rewrite_files(task: RewriteFiles) -> TaskOutput:
    """Write new files with the remaining rows. Raises: as ``read`` and ``DataFileWriter``."""
    names = list(task.write.schema.names)

    def staying(group: Sequence[tuple[int, TableFile]]) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
        for index, file in group:
            for batch in read(task.scan, file.scan):
                yield batch.rename_columns(names), of_whole_file(index, batch.num_rows)

    files = write_with_origins(task.write, *map(staying, joined_files(task.files)))
    copied = sum(file.num_records for file in files)
    return TaskOutput(files, copied_rows=copied, origin_files=tuple(file.number for file in task.files))


def write_without_rows(task: WithoutRows) -> TaskOutput:
    """Write a file again without some of its rows. Raises: as ``read`` and ``DataFileWriter``."""
    deleted, origins = deserialize(task.deleted), unpack(task.origins)
    file = replace(task.file, deletion_vector=inline_vector(deleted))
    remaining = origins.filter(live_mask(deleted, 0, len(origins)))

    def rows() -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
        start = 0
        for batch in read(task.scan, file):
            yield batch, remaining.slice(start, batch.num_rows)
            start += batch.num_rows

    return TaskOutput(write_with_origins(task.write, rows()))
