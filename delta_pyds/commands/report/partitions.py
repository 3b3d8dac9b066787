"""Files, bytes and rows by partition.

Invariant: partition values are compared as the log spells them. The numbers cover all partitions, the list the largest.

Protocol: "Partition Value Serialization".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.commands.report.files import partition_names

MOST_SHOWN = 15


@dataclass(frozen=True)
class Partition:
    """One partition. ``num_rows``: rows that are not deleted; None if the number of a file is unknown."""

    name: str
    num_files: int
    size_bytes: int
    num_rows: int | None


@dataclass(frozen=True)
class Partitions:
    """``largest``: descending by bytes. ``skew``: the largest size over the mean. ``median_bytes``: of a partition."""

    columns: tuple[str, ...]
    number: int
    largest: tuple[Partition, ...]
    skew: float
    median_bytes: int
    median_files: int


def partitions(files: pa.Table, columns: Sequence[str]) -> Partitions | None:
    """Count files by partition. Returns: None for a table without partition columns."""
    if not columns:
        return None
    if not files.num_rows:
        return Partitions(tuple(columns), 0, (), 0.0, 0, 0)
    encoded = files.column("partition")
    codes = pa.chunked_array([chunk.indices for chunk in encoded.chunks], pa.int32())
    names = encoded.chunk(0).dictionary
    live = pc.subtract(files.column("rows"), files.column("deleted"))
    table = pa.table(
        {"code": codes, "size": files.column("size").cast(pa.float64()), "rows": live, "unknown": live.is_null()}
    )
    found = table.group_by("code").aggregate([("size", "sum"), ("size", "count"), ("rows", "sum"), ("unknown", "any")])
    size = found.column("size_sum")
    order = pc.select_k_unstable(found, MOST_SHOWN, [("size_sum", "descending"), ("code", "ascending")])
    largest = [
        Partition(
            partition_names(names[row["code"]].as_py(), columns),
            row["size_count"],
            int(row["size_sum"]),
            None if row["unknown_any"] else row["rows_sum"],
        )
        for row in found.take(order).to_pylist()
    ]
    mean = pc.mean(size).as_py()
    return Partitions(
        tuple(columns),
        found.num_rows,
        tuple(largest),
        pc.max(size).as_py() / mean if mean else 1.0,
        int(pc.quantile(size, 0.5)[0].as_py()),
        int(pc.quantile(found.column("size_count"), 0.5)[0].as_py()),
    )
