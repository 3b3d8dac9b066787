"""The number of files that a search for one value of a column opens: the effect of clustering.

Invariant: a file is opened for a value between the minimum and the maximum of its statistics (truncated texts have
wider bounds). A search stays in one partition. Files without these statistics are left out and counted.

Protocol: "Per-file Statistics", "Clustered Table".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.commands.report.files import Ranges
from delta_pyds.protocol.schema import DataType, PrimitiveType, has_minimum
from delta_pyds.table.definition.clustering import logical_clustering_columns
from delta_pyds.table.definition.statistics_columns import (
    Path,
    find_path,
    show_path,
    statistics_columns,
)
from delta_pyds.table.snapshot import Snapshot

# at most this many columns are measured: clustering columns first, then in the table's order
MOST_COLUMNS = 8
_GROUP = 1 << 32


@dataclass(frozen=True)
class Depth:
    """The depth of one column.

    ``average`` and ``worst``: files opened for one value, over the minima and maxima of all files. None
    if no file has both. ``num_files``: files with both; ``num_unknown``: the other files.
    """

    column: str
    clustering: bool
    num_files: int
    num_unknown: int
    average: float | None
    worst: int | None


def depth_columns(snapshot: Snapshot) -> tuple[tuple[Path, DataType, bool], ...]:
    """The columns to measure, their types, and whether the table is clustered by them."""
    configuration = snapshot.configuration
    clustering = logical_clustering_columns(snapshot.schema, snapshot.domain_metadata)
    others = statistics_columns(snapshot.schema, configuration.properties, configuration.partition_columns)
    chosen = []
    for path in dict.fromkeys((*clustering, *others)):
        found = find_path(snapshot.schema, path)
        if found is not None and has_minimum(found[1]):
            chosen.append((found[0], found[1], path in clustering))
    return tuple(chosen[:MOST_COLUMNS])


def read_together(columns: Sequence[tuple[Path, DataType, bool]]) -> list[list[Path]]:
    """Columns in groups to read at once: all numbers, then each text alone, to hold one column of texts in memory."""
    texts = [path for path, data_type, _ in columns if data_type == PrimitiveType("string")]
    numbers = [path for path, _, _ in columns if path not in texts]
    return [numbers, *([path] for path in texts)]


def depth(path: Path, ranges: Ranges, partition: pa.ChunkedArray, *, clustering: bool) -> Depth:
    """The depth of one column. ``partition``: the partition of each file, encoded with one dictionary."""
    name, number = show_path(path), len(partition)
    if ranges.low is None or ranges.high is None:
        return Depth(name, clustering, 0, number, None, None)
    low, high = ranges.low, ranges.high
    known = pc.fill_null(pc.less_equal(low, high), False)
    num_files = int(pc.sum(known).as_py() or 0)
    if not num_files:
        return Depth(name, clustering, 0, number, None, None)
    codes = pa.chunked_array([chunk.indices.cast(pa.int64()) for chunk in partition.chunks], pa.int64())
    first, last = _keys(low.filter(known), high.filter(known), codes.filter(known))
    at_first, at_last = _opened(first, first, last), _opened(last, first, last)
    worst = max(pc.max(at_first).as_py(), pc.max(at_last).as_py())
    average = (pc.mean(at_first).as_py() + pc.mean(at_last).as_py()) / 2
    return Depth(name, clustering, num_files, number - num_files, average, worst)


def _keys(low: pa.ChunkedArray, high: pa.ChunkedArray, codes: pa.ChunkedArray) -> tuple[pa.Array, pa.Array]:
    """Both ends of each range as numbers in the order of partition and value."""
    ends = pa.chunked_array([*low.chunks, *high.chunks], low.type)
    rank = _rank(ends, "dense").cast(pa.int64())
    groups = codes.combine_chunks()
    base = pc.multiply(groups, _GROUP)
    number = len(low)
    return pc.add(base, rank.slice(0, number)), pc.add(base, rank.slice(number))


def _opened(values: pa.Array, first: pa.Array, last: pa.Array) -> pa.Array:
    """For each value, the number of ranges that hold it: those that begin by then, minus those that end before it."""
    return pc.subtract(_below(values, first, "max"), _below(values, last, "min"))


def _below(values: pa.Array, others: pa.Array, tiebreaker: str) -> pa.Array:
    """For each value, the number of others that are less; with the tiebreaker ``max``, less or equal."""
    both = _rank(pa.concat_arrays([values, others]), tiebreaker).slice(0, len(values))
    return pc.subtract(both.cast(pa.int64()), _rank(values, tiebreaker).cast(pa.int64()))


def _rank(values: pa.Array | pa.ChunkedArray, tiebreaker: str) -> pa.Array:
    try:
        rank = pc.rank(values, tiebreaker=tiebreaker)
    except pa.ArrowNotImplementedError:
        # older versions of Arrow do not rank decimals: doubles give the same order, except for rounding
        rank = pc.rank(values.cast(pa.float64()), tiebreaker=tiebreaker)
    return rank.combine_chunks() if isinstance(rank, pa.ChunkedArray) else rank
