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

    Returns: one batch per partition, with ``start`` and ``length`` added (a
        null length means to the end); no batch is empty. The order is by
        falling size, as in Spark.
    """
    table = pa.Table.from_batches(batches) if (batches := list(batches)) else None
    if table is None or table.num_rows == 0:
        return []
    # a log may lack a size, or say 0: such a file costs nothing, is not cut, and is read whole
    sizes = pc.max_element_wise(pc.fill_null(table.column("size"), 0), 0)
    limit = _split_bytes(sizes, packing)
    files, costs = _pieces(table, sizes, limit)
    partitions: list[pa.RecordBatch] = []
    first, filled = 0, 0
    for i, cost in enumerate(costs):
        if filled + cost > limit and i > first:
            partitions.append(_batch(files, first, i))
            first, filled = i, 0
        filled += cost + packing.open_cost_bytes
    partitions.append(_batch(files, first, len(costs)))
    return partitions


def _batch(files: pa.Table, first: int, end: int) -> pa.RecordBatch:
    (batch,) = files.slice(first, end - first).combine_chunks().to_batches()
    return batch


def _split_bytes(sizes: pa.ChunkedArray, packing: Packing) -> int:
    total: int = (pc.sum(sizes).as_py() or 0) + len(sizes) * packing.open_cost_bytes
    per_partition = -(-total // max(packing.min_partitions, 1))
    return max(1, min(packing.max_partition_bytes, max(packing.open_cost_bytes, per_partition)))


def _pieces(table: pa.Table, sizes: pa.ChunkedArray, limit: int) -> tuple[pa.Table, list[int]]:
    """Cut files longer than the limit; the pieces by falling cost, and their costs.

    A file that is not cut has no ``length``: it is read to its end, whatever the log says of its size.
    """
    small = pc.less_equal(sizes, limit)
    whole = table.filter(small)
    whole = whole.append_column("start", _zeros(whole.num_rows)).append_column(
        "length", pa.nulls(whole.num_rows, pa.int64())
    )
    costs = sizes.filter(small).combine_chunks()
    if whole.num_rows < table.num_rows:
        indices: list[int] = []
        starts: list[int] = []
        lengths: list[int] = []
        for index in pc.indices_nonzero(pc.invert(small)).to_pylist():
            size = sizes[index].as_py()
            for start in range(0, size, limit):
                indices.append(index)
                starts.append(start)
                lengths.append(min(limit, size - start))
        cut = table.take(pa.array(indices)).append_column("start", pa.array(starts, pa.int64()))
        whole = pa.concat_tables([whole, cut.append_column("length", pa.array(lengths, pa.int64()))])
        costs = pa.concat_arrays([costs, pa.array(lengths, pa.int64())])
    order = pc.array_sort_indices(costs, order="descending")
    return whole.take(order).combine_chunks(), costs.take(order).to_pylist()


def _zeros(length: int) -> pa.Array:
    return pa.repeat(pa.scalar(0, pa.int64()), length)
