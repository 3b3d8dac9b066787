"""Writes data files: the rows of one task of a write.

Invariant: every row is in exactly one of the files that ``close`` returns, in its partition and in the order of
arrival. The files are durable, and are not part of the table until a commit names them. Memory and the number of open
files are bounded for any number of partitions.

A partition's rows wait in memory until they fill a row group. When the waiting rows of all partitions are too many,
they go to the local disk. A partition with rows on disk is written once it fills a file, or at the end. So each of many
partitions gets one file, instead of one each time that memory was full.
Protocol: "Data Files", "Add File and Remove File".
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

import pyarrow as pa

from delta_pyds.columnar.row_origins import join_packed, pack
from delta_pyds.data.spill import Spill
from delta_pyds.data.write.layout import Layout, PartitionKey
from delta_pyds.data.write.output_file import OutputFile, bounded_columns, codec, dictionary_columns
from delta_pyds.data.write.parquet_schema import FileSchema
from delta_pyds.data.write.statistics import StatisticsPlan
from delta_pyds.protocol.paths import encode_path, join
from delta_pyds.storage.resolve import resolve_storage
from delta_pyds.tasks.write_state import WriteState, WrittenFile

_ROW_GROUP_ROWS = 1 << 20
_ROW_GROUP_BYTES = 64 << 20
# the maximum of all partitions' rows in memory
_MEMORY_BYTES = 128 << 20
_OPEN_FILES = 16
# rows are grouped by partition in batches that fit into the processor's cache; larger ones for many partitions
_GROUPED_ROWS = 1 << 16
_MOST_GROUPED_ROWS = 1 << 20
_GROUPED_BYTES = 32 << 20
_ROWS_PER_PARTITION = 128
# a file is full at this share of its target size: the rest would be a tiny row group
_FULL = 0.95
# chunks with fewer rows are joined before they are encoded
_CHUNK_ROWS = 4_096
# after the columns of a file, which may have any name
_ORIGIN = pa.field("_deltapy_origin", pa.int64())


class DataFileWriter:
    """Writes the files of one task. ``partition_id``: the task's number, for the names of its files.

    ``with_origins``: each file gets the origins of its rows (``columnar.row_origins``).

    Raises: OptionError for an unknown compression, UserError for a schema that files cannot hold.
    """

    def __init__(self, state: WriteState, partition_id: int, *, with_origins: bool = False) -> None:
        self._state = state
        self._storage = resolve_storage(state.table_root, state.storage_options)
        self._schema = FileSchema(state)
        # the rows that wait: the columns of a file, and their origins
        self._waiting = self._schema.arrow.append(_ORIGIN) if with_origins else self._schema.arrow
        self._with_origins = with_origins
        self._layout = Layout(state)
        self._statistics = StatisticsPlan(state, self._schema)
        self._codec = codec(state.compression)
        kind = "cdc" if state.change_data else "part"
        self._name = f"{kind}-{partition_id:05d}-{uuid.uuid4()}"
        self._dictionary: list[str] | None = None
        self._bounded = bounded_columns([f.column for f in self._schema.fields])
        self._created: list[str] = []
        self._written: list[WrittenFile] = []
        self._streams: list[BinaryIO] = []
        self._partitions: dict[PartitionKey, _Partition] = {}
        self._open: dict[PartitionKey, _Partition] = {}
        self._pending = _Pieces()
        self._grouped_rows = _GROUPED_ROWS
        self._held_bytes = 0
        # sizes of the rows written so far, to get the ratio of encoded bytes to bytes in memory
        self._encoded_bytes, self._plain_bytes = 0, 0
        self._closed = False

    # --- what a task calls

    def write(self, batch: pa.RecordBatch, origins: pa.Array | None = None) -> None:
        """Add rows: the table's columns by logical name, in its order, with its Arrow types up to nullability.

        ``origins``: of each row, if the writer was made with them.

        Raises: SchemaMismatchError for other columns; UserError (DELTA_NOT_NULL_CONSTRAINT_VIOLATED);
            ProtocolError for a partition value that the log cannot store; StorageError.
        """
        if self._closed:
            raise ValueError("the writer is closed")
        if batch.num_rows == 0:
            return
        columns = self._schema.columns(batch)
        if self._with_origins:
            columns = [*columns, origins]
        if not self._layout.columns:
            rows = pa.RecordBatch.from_arrays(columns, schema=self._waiting)
            self._add((), rows, rows.nbytes)
            return
        partition = [batch.column(i) for i in self._layout.positions]
        names = [str(i) for i in range(len(columns) + len(partition))]
        rows = pa.RecordBatch.from_arrays([*columns, *partition], names)
        self._pending.add(rows, rows.nbytes)
        if self._pending.rows >= self._grouped_rows or self._pending.bytes >= _GROUPED_BYTES:
            self._group()

    def close(self) -> tuple[WrittenFile, ...]:
        """Finish all files, and wait until they are durable. Returns: the files; none if there were no rows."""
        written = self.finish()
        if self._streams:
            self._storage.make_durable(self._streams, below=self._state.table_root)
            self._streams.clear()
        return written

    def finish(self) -> tuple[WrittenFile, ...]:
        """As ``close`` without the wait, for callers that write other files meanwhile; ``close`` must follow."""
        if not self._closed:
            self.end_files()
            self._closed = True
        return tuple(self._written)

    def end_files(self) -> None:
        """Finish the files of all rows so far: later rows go to new files."""
        self._group()
        for partition in self._partitions.values():
            self._drain(partition)
            self._finish(partition)
        self._partitions.clear()
        self._held_bytes = 0

    def discard(self) -> None:
        """Delete all files of this writer, as far as the storage allows. May be called at any time, and repeatedly."""
        self._closed = True
        for partition in self._partitions.values():
            if partition.file is not None:
                partition.file.abandon()
        self._partitions.clear()
        self._open.clear()
        self._pending.take()
        self._written.clear()
        self._streams.clear()
        for path in self._created:
            with contextlib.suppress(Exception):
                self._storage.delete(path, below=self._state.table_root)

    # --- rows to partitions

    def _group(self) -> None:
        """Assign the pending rows to their partitions."""
        if not self._pending.rows:
            return
        count = len(self._waiting)
        found = 0
        for batch in _joined(self._pending.take()):
            rows = pa.RecordBatch.from_arrays(batch.columns[:count], schema=self._waiting)
            if self._dictionary is None:
                self._choose_encodings(self._of_file(pa.Table.from_batches([rows])))
            row_bytes = rows.nbytes / rows.num_rows
            for key, part in self._layout.split(batch.columns[count:], rows):
                found += 1
                self._add(key, part, int(part.num_rows * row_bytes) + 1)
        self._grouped_rows = min(max(_GROUPED_ROWS, found * _ROWS_PER_PARTITION), _MOST_GROUPED_ROWS)

    def _add(self, key: PartitionKey, rows: pa.RecordBatch, num_bytes: int) -> None:
        partition = self._partitions.get(key)
        if partition is None:
            partition = self._partitions[key] = _Partition(key)
        partition.waiting.add(rows, num_bytes)
        self._held_bytes += num_bytes
        if self._is_ready(partition):
            self._drain(partition)
        if self._held_bytes >= _MEMORY_BYTES and self._layout.columns:
            self._spill()

    def _is_ready(self, partition: _Partition) -> bool:
        waiting = partition.waiting
        if partition.spilled:
            return (partition.spilled_bytes + waiting.bytes) * self._ratio >= self._state.target_file_bytes
        # with a small target size, no more than one file's rows need to wait
        enough = min(_ROW_GROUP_BYTES, self._state.target_file_bytes / self._ratio)
        return waiting.rows >= _ROW_GROUP_ROWS or waiting.bytes >= enough

    def _spill(self) -> None:
        """Move all waiting rows to the local disk: all, because one slice keeps the whole batch in memory."""
        spilled: list[tuple[_Partition, int]] = []

        def batches() -> Iterator[pa.RecordBatch]:
            for partition in self._partitions.values():
                num_bytes = partition.waiting.bytes
                for batch in _joined(partition.waiting.take()):
                    spilled.append((partition, num_bytes))
                    num_bytes = 0
                    yield batch

        spill = Spill(self._waiting, batches())
        for number, (partition, num_bytes) in enumerate(spilled):
            partition.spilled.append((spill, number))
            partition.spilled_bytes += num_bytes
        self._held_bytes = 0

    # --- partitions to files

    def _drain(self, partition: _Partition) -> None:
        """Write all waiting rows of a partition, in order, as row groups of the maximum size."""
        pieces = _Pieces()
        for batch, num_bytes in partition.take():
            pieces.add(batch, num_bytes)
            if pieces.rows >= _ROW_GROUP_ROWS or pieces.bytes >= _ROW_GROUP_BYTES:
                self._encode(partition, pieces)
        if pieces.rows:
            self._encode(partition, pieces)
        if not self._layout.columns:
            self._held_bytes = 0

    def _encode(self, partition: _Partition, pieces: _Pieces) -> None:
        num_bytes = pieces.bytes
        batches = pieces.take()
        table = pa.Table.from_batches(batches)
        if table.num_rows < len(batches) * _CHUNK_ROWS:
            table = table.combine_chunks()
        origins = table.column(len(self._schema.fields)) if self._with_origins else None
        table = self._of_file(table)
        if self._dictionary is None:
            self._choose_encodings(table)
        row_bytes = max(1.0, num_bytes / table.num_rows)
        start = 0
        while start < table.num_rows:
            file = self._file(partition)
            rows = table.slice(start, self._room(file, row_bytes))
            before = file.size_bytes
            file.write(rows)
            self._encoded_bytes += file.size_bytes - before
            self._plain_bytes += int(rows.num_rows * row_bytes)
            if origins is not None:
                # packed at once: a large file has many rows, and most origins need a few bytes
                partition.origins += [pack(chunk) for chunk in origins.slice(start, rows.num_rows).chunks]
            start += rows.num_rows
            limit = self._state.max_records_per_file
            if 0 < limit <= file.num_rows or file.size_bytes >= self._state.target_file_bytes * _FULL:
                self._finish(partition)

    def _of_file(self, rows: pa.Table) -> pa.Table:
        return rows.remove_column(len(self._schema.fields)) if self._with_origins else rows

    def _choose_encodings(self, sample: pa.Table) -> None:
        self._dictionary = dictionary_columns([f.column for f in self._schema.fields], sample)

    @property
    def _ratio(self) -> float:
        return max(self._encoded_bytes / self._plain_bytes, 1e-4) if self._plain_bytes else 1.0

    def _room(self, file: OutputFile, row_bytes: float) -> int:
        """The maximum number of rows in the file's next row group: at least one."""
        room = int((self._state.target_file_bytes - file.size_bytes) / (row_bytes * self._ratio))
        room = min(max(room, 1), _ROW_GROUP_ROWS)
        limit = self._state.max_records_per_file
        return min(room, limit - file.num_rows) if limit > 0 else room

    def _file(self, partition: _Partition) -> OutputFile:
        """The partition's open file, or a new one."""
        # the last key in the dictionary is the most recently used one
        self._open.pop(partition.key, None)
        if partition.file is None:
            if len(self._open) >= _OPEN_FILES:
                self._finish(next(iter(self._open.values())))
            name = f"{self._name}.c{len(self._created):03d}{self._codec.suffix}.parquet"
            directory = self._layout.directory(partition.key)
            partition.path = f"{directory}/{name}" if directory else name
            path = join(self._state.table_root, partition.path)
            self._created.append(path)
            partition.file = OutputFile(
                self._storage,
                path,
                self._schema.arrow,
                self._codec,
                self._dictionary or (),
                self._bounded,
                self._statistics,
            )
        self._open[partition.key] = partition
        return partition.file

    def _finish(self, partition: _Partition) -> None:
        """Close the partition's file, if it has one; later rows go to a new file."""
        self._open.pop(partition.key, None)
        file = partition.file
        if file is None:
            return
        modification_time_ms, statistics = file.close()
        partition.file = None
        origins, partition.origins = partition.origins, []
        self._streams.append(file.stream)
        self._written.append(
            WrittenFile(
                path=encode_path(partition.path),
                partition_values=self._layout.values(partition.key),
                size_bytes=file.size_bytes,
                modification_time_ms=modification_time_ms,
                num_records=file.num_rows,
                statistics=statistics,
                origins=join_packed(origins) if self._with_origins else None,
            )
        )


class _Pieces:
    """Batches in order, with their numbers of rows and bytes."""

    def __init__(self) -> None:
        self.rows = 0
        self.bytes = 0
        self._batches: list[pa.RecordBatch] = []

    def add(self, batch: pa.RecordBatch, num_bytes: int) -> None:
        # the size is passed in, because computing the bytes of a slice takes longer than making it
        self.rows += batch.num_rows
        self.bytes += num_bytes
        self._batches.append(batch)

    def take(self) -> list[pa.RecordBatch]:
        taken, self._batches, self.rows, self.bytes = self._batches, [], 0, 0
        return taken


@dataclass(eq=False)
class _Partition:
    """The rows of one partition that are not in a finished file: ``file``'s, then those on disk, then in memory."""

    key: PartitionKey
    waiting: _Pieces = field(default_factory=_Pieces)
    spilled: list[tuple[Spill, int]] = field(default_factory=list)
    spilled_bytes: int = 0
    file: OutputFile | None = None
    path: str = ""
    # packed, of rows in order
    origins: list[bytes] = field(default_factory=list)

    def take(self) -> Iterator[tuple[pa.RecordBatch, int]]:
        """All waiting rows, in order, with their bytes."""
        spilled, self.spilled, self.spilled_bytes = self.spilled, [], 0
        row_bytes = self.waiting.bytes / max(1, self.waiting.rows)
        waiting = self.waiting.take()
        for spill, number in spilled:
            batch = spill.batch(number)
            yield batch, batch.nbytes
        for batch in waiting:
            yield batch, int(batch.num_rows * row_bytes)


def _joined(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """The rows as one batch, or as few as possible."""
    if len(batches) < 2:
        return batches
    joined: list[pa.RecordBatch] = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return joined
