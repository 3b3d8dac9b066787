"""Packing of files into partitions of about equal cost.

Spark fills one partition after the other, up to the limit. Here all are filled alike, and where more are needed than
run at once, so many that every round of tasks is full: of three tasks on two cores, the last would run alone.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.columnar.scan_files import MAY_LACK

DEFAULT_MAX_PARTITION_BYTES = 128 * 1024 * 1024
DEFAULT_OPEN_COST_BYTES = 4 * 1024 * 1024
# Into more pieces files are not cut, which 12 TB of them at once come to by default: a size in the log is a promise,
# and one of exabytes must not take memory.
_MAX_PIECES = 100_000
# offsets into texts are 32 bits
_MOST_TEXT_BYTES = (1 << 31) - 1


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

    Returns: one batch per partition, with ``start`` and ``length`` added if any file is cut (a null length means to
        the end), and without what no file has (``MAY_LACK``); no batch is empty. In each the largest piece comes first.
    """
    table = pa.Table.from_batches(batches) if (batches := list(batches)) else None
    if table is None or table.num_rows == 0:
        return []
    # a log may lack a size, or say 0: such a file costs nothing, is not cut, and is read whole
    sizes = pc.max_element_wise(pc.fill_null(table.column("size"), 0), 0)
    limit = _split_bytes(sizes, packing)
    pieces, order, costs = _pieces(table, sizes, limit)
    return list(_batches(pieces, order, _distributed(costs, limit, packing)))


def _batches(pieces: pa.Table, order: pa.Array, chosen: Sequence[Sequence[int]]) -> Iterator[pa.RecordBatch]:
    """One batch for each partition. ``order``: of the pieces, in which ``chosen`` counts them.

    All are views of one table: a table for each of 100,000 partitions took 8 GB, and a minute.
    """
    places = pa.array([place for one in chosen for place in one], pa.int64())
    (ordered,) = _addressable(pieces).take(order.take(places)).combine_chunks().to_batches()
    start = 0
    for one in chosen:
        yield ordered.slice(start, len(one))
        start += len(one)


def _addressable(table: pa.Table) -> pa.Table:
    """The table with texts of which one array holds all, which are the names of some 20 million files otherwise."""
    fields = [
        f.with_type(pa.large_string()) if f.type == pa.string() and column.nbytes > _MOST_TEXT_BYTES else f
        for f, column in zip(table.schema, table.columns, strict=True)
    ]
    return table.cast(pa.schema(fields))


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


def _pieces(table: pa.Table, sizes: pa.ChunkedArray, limit: int) -> tuple[pa.Table, pa.Array, list[int]]:
    """Cut files longer than the limit. Returns: the pieces, their places by falling cost, and their costs so.

    A file that is not cut has no ``length``: it is read to its end, whatever the log says of its size.
    """
    small = pc.less_equal(sizes, limit)
    costs = sizes.filter(small).combine_chunks()
    # what no file has need not travel with each of them
    names = table.schema.names
    table = table.drop_columns([n for n in MAY_LACK if n in names and table.column(n).null_count == table.num_rows])
    whole = table
    if len(costs) < table.num_rows:
        whole = table.filter(small)
        whole = whole.append_column("start", _zeros(whole.num_rows)).append_column(
            "length", pa.nulls(whole.num_rows, pa.int64())
        )
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
    return whole, order, costs.take(order).to_pylist()


def _zeros(length: int) -> pa.Array:
    return pa.repeat(pa.scalar(0, pa.int64()), length)
