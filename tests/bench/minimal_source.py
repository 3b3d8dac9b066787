"""The least that a Python data source can do: the Parquet files of a directory, passed through."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.streaming.datasource import ReadMaxFiles, SupportsTriggerAvailableNow

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = "id long, customer int, price double, city string, comment string, ts timestamp, day date"
_MAX_PARTITION_BYTES = 128 << 20
_OPEN_COST_BYTES = 4 << 20


class MinimalSource(DataSource):
    """``load(directory)`` reads its ``*.parquet``; ``load(file)`` reads one."""

    @classmethod
    def name(cls) -> str:
        return "minimal"

    def schema(self) -> str:
        return SCHEMA

    def reader(self, schema: Any) -> DataSourceReader:
        return MinimalReader(self.options["path"])

    def writer(self, schema: Any, overwrite: bool) -> DrainingWriter:
        return DrainingWriter()

    def streamReader(self, schema: Any) -> MinimalStream:
        return MinimalStream(self.options["path"], int(self.options.get("maxFilesPerTrigger", "1000")))

    def streamWriter(self, schema: Any, overwrite: bool) -> FileWriter:
        return FileWriter(self.options["path"])


class DrainingWriter(DataSourceArrowWriter):
    """Takes rows and drops them: what it costs to send them to Python."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()


class MinimalReader(DataSourceReader):
    """Packs files as Spark does and reads them with pyarrow."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    def partitions(self) -> list[InputPartition]:
        files = list(self._path.glob("*.parquet")) if self._path.is_dir() else [self._path]
        sized = sorted(((f.stat().st_size, str(f)) for f in files), reverse=True)
        partitions: list[list[str]] = []
        filled = 0
        for size, file in sized:
            if not partitions or filled + size > _MAX_PARTITION_BYTES:
                partitions.append([])
                filled = 0
            partitions[-1].append(file)
            filled += size + _OPEN_COST_BYTES
        return [InputPartition(files) for files in partitions]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        import pyarrow.parquet as pq

        for path in partition.value:
            with pq.ParquetFile(path) as file:
                yield from file.iter_batches(batch_size=65_536)


class MinimalStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Files of a directory by name; an offset is how many of them were read."""

    def __init__(self, path: str, max_files: int) -> None:
        self._path = path
        self._max_files = max_files
        self._end: int | None = None

    def _files(self) -> list[str]:
        return sorted(f for f in os.listdir(self._path) if f.endswith(".parquet"))

    def initialOffset(self) -> dict[str, int]:
        return {"files": 0}

    def getDefaultReadLimit(self) -> ReadMaxFiles:
        return ReadMaxFiles(self._max_files)

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:
        there = self._end if self._end is not None else len(self._files())
        return {"files": max(start["files"], min(there, start["files"] + self._max_files))}

    def prepareForTriggerAvailableNow(self) -> None:
        self._end = len(self._files())

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        files = [os.path.join(self._path, f) for f in self._files()[start["files"] : end["files"]]]
        # as many files as make 128 MB with what opening each counts for
        return [InputPartition(files[i : i + 32]) for i in range(0, len(files), 32)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return MinimalReader(self._path).read(partition)


class FileWriter(DataSourceStreamArrowWriter):
    """Writes each task's rows as a Parquet file and keeps no log of them."""

    def __init__(self, path: str) -> None:
        self._path = path

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        import pyarrow.parquet as pq

        writer = None
        os.makedirs(self._path, exist_ok=True)
        for batch in iterator:
            if batch.num_rows:
                writer = writer or pq.ParquetWriter(os.path.join(self._path, f"{uuid.uuid4()}.parquet"), batch.schema)
                writer.write_batch(batch)
        if writer is not None:
            writer.close()
        return WriterCommitMessage()

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        pass

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        pass
