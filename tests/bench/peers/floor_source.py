"""The floor of a Python source that reads: Parquet files, and only the columns of the schema that it is given."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from tests.bench.minimal_source import MinimalSource
from tests.bench.peers.settings import WORKERS

if TYPE_CHECKING:
    import pyarrow as pa

_MAX_PARTITION_BYTES = 128 << 20
_OPEN_COST_BYTES = 4 << 20


class FloorSource(MinimalSource):
    """``schema(...).option("files", one a line).load()``; it writes and streams as ``MinimalSource`` does."""

    @classmethod
    def name(cls) -> str:
        return "floor"

    def reader(self, schema: Any) -> FloorReader:
        return FloorReader(self.options["files"].split("\n"), [field.name for field in schema.fields])


class FloorReader(DataSourceReader):
    """Deals whole files out to full rounds of tasks, largest first, and passes pyarrow's batches on."""

    def __init__(self, files: list[str], columns: list[str]) -> None:
        self._files = files
        self._columns = columns

    def partitions(self) -> list[InputPartition]:
        sized = sorted(((os.path.getsize(f), f) for f in self._files), reverse=True)
        total = sum(size + _OPEN_COST_BYTES for size, _ in sized)
        rounds = -(-total // (WORKERS * (_MAX_PARTITION_BYTES + _OPEN_COST_BYTES)))
        partitions: list[list[str]] = [[] for _ in range(min(len(sized), rounds * WORKERS))]
        filled = [0] * len(partitions)
        for size, file in sized:
            least = filled.index(min(filled))
            partitions[least].append(file)
            filled[least] += size + _OPEN_COST_BYTES
        return [InputPartition(files) for files in partitions]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        import pyarrow.parquet as pq

        for path in partition.value:
            with pq.ParquetFile(path) as file:
                yield from file.iter_batches(batch_size=65_536, columns=self._columns)
