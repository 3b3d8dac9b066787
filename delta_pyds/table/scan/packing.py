"""Packing of files into partitions of about equal cost.

Spark fills one partition after the other, up to the limit. Here all are filled alike, and where more are needed than
run at once, so many that every round of tasks is full: of three tasks on two cores, the last would run alone.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

DEFAULT_MAX_PARTITION_BYTES = 128 * 1024 * 1024
DEFAULT_OPEN_COST_BYTES = 4 * 1024 * 1024
# Into more pieces files are not cut, which 12 TB of them at once come to by default: a size in the log is a promise,
# and one of exabytes must not take memory.
_MAX_PIECES = 100_000


@dataclass(frozen=True)
class Packing:
    """How much a partition may hold.

    ``max_partition_bytes``: at most this much of Parquet in a partition, and of
    costs of opening all files but one, unless that made more than 100,000
    pieces of files. ``open_cost_bytes``: what opening a file counts for.
    ``min_partitions``: tasks that run at once: make
    partitions smaller while there are fewer, and a multiple of it where there are more.
    """

    max_partition_bytes: int = DEFAULT_MAX_PARTITION_BYTES
    open_cost_bytes: int = DEFAULT_OPEN_COST_BYTES
    min_partitions: int = 1

    @property
    def room(self) -> int:
        """What the costs of a partition's pieces, opening each of them included, may add up to."""
        return self.max_partition_bytes + self.open_cost_bytes

    @property
    def at_once(self) -> int:
        return max(self.min_partitions, 1)

    def in_full_rounds(self, partitions: int) -> int:
        """So many that the last round of tasks is full too; few are what they are."""
        return partitions if partitions <= self.at_once else -(-partitions // self.at_once) * self.at_once


def pack(batches: Iterable[pa.RecordBatch], packing: Packing) -> list[pa.RecordBatch]:
    """Distribute files over partitions.

    Each file appears whole in one partition, or cut into byte ranges that
    cover it without overlap; a task reads the row groups whose midpoint lies in its range.

    Returns: one batch per partition, with ``start`` and ``length`` added (a
        null length means to the end); no batch is empty. In each the
        largest piece comes first.
    """
    table = pa.Table.from_batches(batches) if (batches := list(batches)) else None
    if table is None or table.num_rows == 0:
        return []
    # a log may lack a size, or say 0: such a file costs nothing, is not cut, and is read whole
    sizes = pc.max_element_wise(pc.fill_null(table.column("size"), 0), 0)
    limit = _split_bytes(sizes, packing)
    files, costs = _pieces(table, sizes, limit)
    return [_batch(files, chosen) for chosen in _distributed(costs, limit, packing)]


def _batch(files: pa.Table, chosen: Sequence[int]) -> pa.RecordBatch:
    (batch,) = files.take(pa.array(chosen, pa.int64())).combine_chunks().to_batches()
    return batch


def _split_bytes(sizes: pa.ChunkedArray, packing: Packing) -> int:
    # in floating point, for the log may promise more than 64 bits hold
    total = int(pc.sum(sizes.cast(pa.float64(), safe=False)).as_py() or 0) + len(sizes) * packing.open_cost_bytes
    partitions = packing.in_full_rounds(max(-(-total // packing.room), packing.at_once))
    wanted = min(packing.max_partition_bytes, max(packing.open_cost_bytes, -(-total // partitions)))
    return max(1, wanted, -(-total // _MAX_PIECES))


def _distributed(costs: Sequence[int], limit: int, packing: Packing) -> list[list[int]]:
    """The places of the pieces in each partition: dealt out evenly to as few as they may fit into.

    Pieces of more than half of a partition do not fit into so few: then to as many as one filled after the other
    would be, and if that is uneven still, those. Never more attempts, for there may be a hundred thousand pieces.
    """
    opened = [cost + packing.open_cost_bytes for cost in costs]
    least = max(1, -(-sum(opened) // (limit + packing.open_cost_bytes)))
    chosen = _dealt(opened, packing.in_full_rounds(least))
    if _fits(chosen, opened, packing.room):
        return chosen
    filled = _filled(opened, packing.room)
    chosen = _dealt(opened, packing.in_full_rounds(len(filled)))
    return chosen if _fits(chosen, opened, packing.room) else filled


def _dealt(costs: Sequence[int], partitions: int) -> list[list[int]]:
    """Each piece, by falling cost, goes where there is least so far."""
    chosen: list[list[int]] = [[] for _ in range(min(partitions, len(costs)))]
    heap = [(0, i) for i in range(len(chosen))]
    for place, cost in enumerate(costs):
        before, i = heap[0]
        heapq.heapreplace(heap, (before + cost, i))
        chosen[i].append(place)
    # a piece that costs nothing leaves the heap as it was
    return [places for places in chosen if places]


def _filled(costs: Sequence[int], room: int) -> list[list[int]]:
    """One partition after the other, as Spark does it."""
    chosen: list[list[int]] = []
    total = 0
    for place, cost in enumerate(costs):
        if not chosen or total + cost > room:
            chosen.append([])
            total = 0
        chosen[-1].append(place)
        total += cost
    return chosen


def _fits(chosen: Sequence[Sequence[int]], costs: Sequence[int], room: int) -> bool:
    return all(len(places) == 1 or sum(costs[i] for i in places) <= room for places in chosen)


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
            length = -(-size // -(-size // limit))  # in equal parts, none of them tiny
            for start in range(0, size, length):
                indices.append(index)
                starts.append(start)
                lengths.append(min(length, size - start))
        cut = table.take(pa.array(indices)).append_column("start", pa.array(starts, pa.int64()))
        whole = pa.concat_tables([whole, cut.append_column("length", pa.array(lengths, pa.int64()))])
        costs = pa.concat_arrays([costs, pa.array(lengths, pa.int64())])
    order = pc.array_sort_indices(costs, order="descending")
    return whole.take(order).combine_chunks(), costs.take(order).to_pylist()


def _zeros(length: int) -> pa.Array:
    return pa.repeat(pa.scalar(0, pa.int64()), length)
