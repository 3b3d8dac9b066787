"""Files into partitions of about equal cost, as Spark packs the files of its own sources."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

DEFAULT_MAX_PARTITION_BYTES = 128 * 1024 * 1024
DEFAULT_OPEN_COST_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True)
class Packing:
    """How much a partition may hold.

    ``max_partition_bytes``: aim for at most this much of Parquet in a
    partition. ``open_cost_bytes``: what opening a file counts for.
    ``min_partitions``: make partitions smaller while there are fewer than this.
    """

    max_partition_bytes: int = DEFAULT_MAX_PARTITION_BYTES
    open_cost_bytes: int = DEFAULT_OPEN_COST_BYTES
    min_partitions: int = 1


def pack(batches: Iterable[pa.RecordBatch], packing: Packing) -> list[pa.RecordBatch]:
    """Distribute files over partitions.

    Each file appears whole in one partition, or cut into byte ranges that
    cover it without overlap; a task reads the row groups whose midpoint lies in its range.

    Returns: one batch per partition, with ``start`` and ``length`` added; no
        batch is empty. The order is by falling size, as in Spark.
    """
    table = pa.Table.from_batches(batches) if (batches := list(batches)) else None
    if table is None or table.num_rows == 0:
        return []
    files = _with_ranges(table, _split_bytes(table, packing))
    lengths = files.column("length").to_pylist()
    limit = _split_bytes(table, packing)
    partitions: list[pa.RecordBatch] = []
    first, filled = 0, 0
    for i, length in enumerate(lengths):
        if filled + length > limit and i > first:
            partitions.append(files.slice(first, i - first))
            first, filled = i, 0
        filled += length + packing.open_cost_bytes
    partitions.append(files.slice(first))
    return partitions


def _split_bytes(table: pa.Table, packing: Packing) -> int:
    total: int = (pc.sum(table.column("size")).as_py() or 0) + table.num_rows * packing.open_cost_bytes
    per_partition = -(-total // max(packing.min_partitions, 1))
    return max(1, min(packing.max_partition_bytes, max(packing.open_cost_bytes, per_partition)))


def _with_ranges(table: pa.Table, limit: int) -> pa.RecordBatch:
    """Cut files longer than the limit, and sort the pieces by falling length."""
    sizes = table.column("size")
    whole = table.append_column("start", pa.repeat(pa.scalar(0, pa.int64()), table.num_rows)).append_column(
        "length", sizes
    )
    large = pc.greater(sizes, limit)
    if pc.any(large).as_py():
        indices: list[int] = []
        starts: list[int] = []
        lengths: list[int] = []
        for index in pc.indices_nonzero(large).to_pylist():
            size = sizes[index].as_py()
            for start in range(0, size, limit):
                indices.append(index)
                starts.append(start)
                lengths.append(min(limit, size - start))
        pieces = table.take(pa.array(indices)).append_column("start", pa.array(starts, pa.int64()))
        whole = pa.concat_tables(
            [whole.filter(pc.invert(large)), pieces.append_column("length", pa.array(lengths, pa.int64()))]
        )
    whole = whole.take(pc.sort_indices(whole, sort_keys=[("length", "descending")]))
    batches = whole.combine_chunks().to_batches()
    return batches[0]
