"""The least that a Python data source can do: the Parquet files of a directory, passed through."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)

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

    def reader(self, schema: Any) -> MinimalReader:  # noqa: ARG002 - Spark calls it by this name
        return MinimalReader(self.options["path"])

    def writer(self, schema: Any, overwrite: bool) -> DrainingWriter:  # noqa: ARG002 - Spark passes them
        return DrainingWriter()


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
