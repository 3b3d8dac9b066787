"""Packing of files into partitions of about equal cost.

Spark fills one partition after the other up to the limit. Here all partitions get about the same cost. If there are
more partitions than tasks that run at once, their number is a multiple of that: with three tasks on two cores, the
last one would run alone.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.columnar.scan_files import MAY_LACK

DEFAULT_MAX_PARTITION_BYTES = 128 * 1024 * 1024
DEFAULT_OPEN_COST_BYTES = 4 * 1024 * 1024
# The maximum number of pieces, 12 TB with the default sizes. The sizes come from the log, and a wrong one of exabytes
# must not exhaust memory.
_MAX_PIECES = 100_000
# offsets into texts are 32 bits
_MOST_TEXT_BYTES = (1 << 31) - 1


@dataclass(frozen=True)
class Packing:
    """Limits on a partition.

    Attributes:
        max_partition_bytes: the maximum of Parquet bytes in a partition, plus the open costs of all its files but one.
            It is exceeded if it would cut files into more than 100,000 pieces.
        open_cost_bytes: the cost of opening a file, in bytes.
        min_partitions: tasks that run at once. With fewer partitions, partitions get smaller; with more, their number
            is a multiple of it.
    """

    max_partition_bytes: int = DEFAULT_MAX_PARTITION_BYTES
    open_cost_bytes: int = DEFAULT_OPEN_COST_BYTES
    min_partitions: int = 1

    @property
    def room(self) -> int:
        """The maximum total cost of a partition's pieces, each with its open cost."""
        return self.max_partition_bytes + self.open_cost_bytes

    @property
    def at_once(self) -> int:
        return max(self.min_partitions, 1)

    def in_full_rounds(self, partitions: int) -> int:
        """Round up so that the last round of tasks is full; a number below one round stays."""
        return partitions if partitions <= self.at_once else -(-partitions // self.at_once) * self.at_once


def pack(batches: Iterable[pa.RecordBatch], packing: Packing) -> list[pa.RecordBatch]:
    """Distribute files over partitions.

    Each file is in one partition as a whole, or is cut into byte ranges that cover it without overlap. A task reads
    the row groups whose midpoint lies in its range. Files that are compared with each other stay together, uncut.

    Returns: one non-empty batch per partition, with the largest piece first. Columns ``start`` and ``length`` are added
        if any file is cut (a null length means to the end). Columns of ``MAY_LACK`` that are null for all files are
        dropped.
    """
    found = list(batches)
    if not found:
        return []
    single, compared = _split_compared(pa.Table.from_batches(found))
    return [*_packed_groups(compared, packing), *_packed_files(single, packing)]


def _split_compared(table: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The files that are read one by one, and those that are compared with each other."""
    if "compared" not in table.schema.names or table.column("compared").null_count == table.num_rows:
        return table, table.slice(0, 0)
    compared = table.column("compared").is_valid()
    return table.filter(pc.invert(compared)), table.filter(compared)


def _packed_files(table: pa.Table, packing: Packing) -> list[pa.RecordBatch]:
    if table.num_rows == 0:
        return []
    sizes = _sizes(table)
    limit = _split_bytes(sizes, packing)
    pieces, order, costs = _pieces(table, sizes, limit)
    return list(_batches(pieces, order, _distribute(costs, limit, packing)))


def _packed_groups(table: pa.Table, packing: Packing) -> list[pa.RecordBatch]:
    if table.num_rows == 0:
        return []
    sizes = _sizes(table)
    members: defaultdict[int, list[int]] = defaultdict(list)
    costs: Counter[int] = Counter()
    groups = pc.struct_field(table.column("compared").combine_chunks(), "group").to_pylist()
    for row, (group, size) in enumerate(zip(groups, sizes.to_pylist(), strict=True)):
        costs[group] += size + (packing.open_cost_bytes if members[group] else 0)
        members[group].append(row)
    by_cost = costs.most_common()
    chosen = _distribute([cost for _, cost in by_cost], _split_bytes(sizes, packing), packing)
    # the rows of the groups one after the other, and where those of each begin
    order = [row for group, _ in by_cost for row in members[group]]
    starts = list(accumulate((len(members[group]) for group, _ in by_cost), initial=0))
    rows = [[row for i in one for row in range(starts[i], starts[i + 1])] for one in chosen]
    return list(_batches(_needed(table), pa.array(order, pa.int64()), rows))


def _sizes(table: pa.Table) -> pa.ChunkedArray:
    # the log may have no size or 0 for a file: it costs nothing, is not cut, and is read to its end
    return pc.max_element_wise(pc.fill_null(table.column("size"), 0), 0)


def _needed(table: pa.Table) -> pa.Table:
    """The table without columns that are null for all files: tasks do not need them."""
    names = table.schema.names
    return table.drop_columns([n for n in MAY_LACK if n in names and table.column(n).null_count == table.num_rows])


def _batches(pieces: pa.Table, order: pa.Array, chosen: Sequence[Sequence[int]]) -> Iterator[pa.RecordBatch]:
    """One batch for each partition. ``order``: indexes of the pieces; ``chosen`` indexes into it.

    All batches are slices of one table: a table for each of 100,000 partitions took 8 GB and a minute.
    """
    positions = pa.array([position for one in chosen for position in one], pa.int64())
    (ordered,) = _addressable(pieces).take(order.take(positions)).combine_chunks().to_batches()
    start = 0
    for one in chosen:
        yield ordered.slice(start, len(one))
        start += len(one)


def _addressable(table: pa.Table) -> pa.Table:
    """The table with 64-bit string offsets if an array could exceed 2 GiB, as the paths of 20 million files do."""
    fields = [
        f.with_type(pa.large_string()) if f.type == pa.string() and column.nbytes > _MOST_TEXT_BYTES else f
        for f, column in zip(table.schema, table.columns, strict=True)
    ]
    return table.cast(pa.schema(fields))


def _split_bytes(sizes: pa.ChunkedArray, packing: Packing) -> int:
    # in floating point: the total of wrong sizes may exceed 64 bits
    total = int(pc.sum(sizes.cast(pa.float64(), safe=False)).as_py() or 0) + len(sizes) * packing.open_cost_bytes
    partitions = packing.in_full_rounds(max(-(-total // packing.room), packing.at_once))
    wanted = min(packing.max_partition_bytes, max(packing.open_cost_bytes, -(-total // partitions)))
    return max(1, wanted, -(-total // _MAX_PIECES))


def _distribute(costs: Sequence[int], limit: int, packing: Packing) -> list[list[int]]:
    """The indexes of the pieces in each partition: balanced over as few partitions as possible.

    If a partition is too large then, partitions are filled one after the other, and the pieces are balanced over their
    number. If a partition is still too large, the filled ones are the result. There may be a hundred thousand pieces,
    so there are no more attempts.
    """
    opened = [cost + packing.open_cost_bytes for cost in costs]
    least = max(1, -(-sum(opened) // (limit + packing.open_cost_bytes)))
    chosen = _balanced(opened, packing.in_full_rounds(least))
    if _fits(chosen, opened, packing.room):
        return chosen
    filled = _filled(opened, packing.room)
    chosen = _balanced(opened, packing.in_full_rounds(len(filled)))
    return chosen if _fits(chosen, opened, packing.room) else filled


def _balanced(costs: Sequence[int], partitions: int) -> list[list[int]]:
    """Assign each piece, by falling cost, to the partition with the lowest cost so far."""
    chosen: list[list[int]] = [[] for _ in range(min(partitions, len(costs)))]
    heap = [(0, i) for i in range(len(chosen))]
    for index, cost in enumerate(costs):
        before, i = heap[0]
        heapq.heapreplace(heap, (before + cost, i))
        chosen[i].append(index)
    # a piece without cost leaves the heap as it was, so partitions may be empty
    return [indexes for indexes in chosen if indexes]


def _filled(costs: Sequence[int], room: int) -> list[list[int]]:
    """Fill one partition after the other, as Spark does."""
    chosen: list[list[int]] = []
    total = 0
    for index, cost in enumerate(costs):
        if not chosen or total + cost > room:
            chosen.append([])
            total = 0
        chosen[-1].append(index)
        total += cost
    return chosen


def _fits(chosen: Sequence[Sequence[int]], costs: Sequence[int], room: int) -> bool:
    return all(len(indexes) == 1 or sum(costs[i] for i in indexes) <= room for indexes in chosen)


def _pieces(table: pa.Table, sizes: pa.ChunkedArray, limit: int) -> tuple[pa.Table, pa.Array, list[int]]:
    """Cut files longer than the limit.

    A file that is not cut has no ``length``: it is read to its actual end, even if the log has a wrong size.

    Returns: the pieces, their indexes by falling cost, and the costs in that order.
    """
    small = pc.less_equal(sizes, limit)
    costs = sizes.filter(small).combine_chunks()
    table = _needed(table)
    whole = table
    if len(costs) < table.num_rows:
        whole = table.filter(small)
        whole = whole.append_column("start", pa.repeat(pa.scalar(0, pa.int64()), whole.num_rows)).append_column(
            "length", pa.nulls(whole.num_rows, pa.int64())
        )
        indices: list[int] = []
        starts: list[int] = []
        lengths: list[int] = []
        for index in pc.indices_nonzero(pc.invert(small)).to_pylist():
            size = sizes[index].as_py()
            length = -(-size // -(-size // limit))  # equal parts, so that no piece is tiny
            for start in range(0, size, length):
                indices.append(index)
                starts.append(start)
                lengths.append(min(length, size - start))
        cut = table.take(pa.array(indices)).append_column("start", pa.array(starts, pa.int64()))
        whole = pa.concat_tables([whole, cut.append_column("length", pa.array(lengths, pa.int64()))])
        costs = pa.concat_arrays([costs, pa.array(lengths, pa.int64())])
    order = pc.array_sort_indices(costs, order="descending")
    return whole, order, costs.take(order).to_pylist()
