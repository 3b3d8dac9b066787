"""Groups of files that Spark scans together.

Deletion vectors, and partition values that directories do not name, differ from file to file. They are either joined
to the rows as a small table, or constants. A constant costs a row almost nothing, and a filter on it skips the files,
but each constant needs a scan of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.columnar.scan_files import PARTITION_PREFIX
from delta_pyds.spark.native.files import NativeFiles, group_numbers
from delta_pyds.tasks.scan_state import ScanState

# Below so many rows a join costs less than another scan.
LARGE_FILE_ROWS = 250_000
# The most scans of one DataFrame: each costs 60 ms at the load, and planning in every query.
MAX_SCANS = 32
# Up to so many large files get scans of their own; more are joined, if their sizes differ.
FEW_SCANS = 4


@dataclass(frozen=True)
class Part:
    """One group of files.

    ``chosen``: positions of the files, which all have deletion vectors or all have none. ``joined``: whether their
    values are joined as a table. Else the files have equal partition values, or directories that name them, and a file
    with a deletion vector is alone.
    """

    chosen: Sequence[int]
    joined: bool = False


def parts_of(files: NativeFiles, scan: ScanState) -> list[Part]:
    """The groups; each file is in one of them."""
    deleted = files.with_deletions
    everything = range(len(files.files))
    live = everything if not deleted else sorted(set(everything).difference(deleted))
    parts = _live_parts(files, live, bool(scan.partition_columns) and files.hive_columns is None)
    large = [n for n in deleted if files.num_records[n] >= LARGE_FILE_ROWS]
    if len(large) > FEW_SCANS and len({files.files[n].size_bytes for n in deleted}) == len(deleted):
        large = []
    large = large[: max(0, MAX_SCANS - len(parts))]
    parts += [Part((n,)) for n in large]
    small = tuple(n for n in deleted if n not in set(large))
    return [*parts, Part(small, joined=True)] if small else parts


def _live_parts(files: NativeFiles, live: Sequence[int], valued: bool) -> list[Part]:
    if not live:
        return []
    if not valued:
        return [Part(live)]
    rows = files.rows_at(live)
    numbers = group_numbers([rows.column(name) for name in rows.column_names if name.startswith(PARTITION_PREFIX)])
    groups = pc.unique(numbers)
    if len(groups) > max(1, MAX_SCANS // 2):
        return [Part(live, joined=True)]
    positions = pa.array(live, pa.int64())
    return [Part(positions.filter(pc.equal(numbers, group)).to_pylist()) for group in groups]
