"""Groups of files that Spark scans together.

Deletion vectors, and partition values that directories do not name, differ from file to file. They are either found for
each row by its file, or constants. A constant costs a row almost nothing, and a filter on it skips the files, but each
constant needs a scan of its own. A file is found faster by its size than by its name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.columnar.scan_files import PARTITION_PREFIX
from delta_pyds.spark.native.files import NativeFiles, group_numbers
from delta_pyds.tasks.scan_state import ScanState

# For fewer rows, another scan costs more than it saves.
LARGE_FILE_ROWS = 250_000
# The most scans of one DataFrame: each costs calls to Spark's driver at the load, and planning in every query.
MAX_SCANS = 32
# Up to this number, large files get scans of their own.
FEW_SCANS = 4
# The most groups of files with different sizes, and the most files of a group. Files beyond them are found by a join.
MAX_GROUPS = 4
MAX_GROUP_FILES = 300


@dataclass(frozen=True)
class Part:
    """One group of files.

    ``chosen``: positions of the files, which all have deletion vectors or all have none. ``joined``: whether vectors or
    values are found for each row by its file. Else the files have equal partition values, or directories that name
    them, and a file with a deletion vector is alone.
    """

    chosen: Sequence[int]
    joined: bool = False


def parts_of(files: NativeFiles, scan: ScanState) -> list[Part]:
    """The groups; each file is in one of them."""
    deleted = files.with_deletions
    everything = range(len(files.files))
    live = everything if not deleted else sorted(set(everything).difference(deleted))
    parts = _live_parts(files, live, bool(scan.partition_columns) and files.hive_columns is None)
    return [*parts, *_deleted_parts(files, deleted, max(1, MAX_SCANS - len(parts)))] if deleted else parts


def _deleted_parts(files: NativeFiles, deleted: Sequence[int], most: int) -> list[Part]:
    """At most ``most`` groups of the files with deletion vectors."""
    sizes = dict(zip(deleted, files.rows_at(deleted).column("size").to_pylist(), strict=True))
    large = [n for n in deleted if files.num_records[n] >= LARGE_FILE_ROWS]
    alone = large if len(large) <= FEW_SCANS else []
    groups: list[list[int]] = []
    rest = [n for n in deleted if n not in set(alone)]
    if most > 1 and sum(files.num_records[n] for n in rest) >= LARGE_FILE_ROWS:
        groups = _groups_of_sizes(files, sizes, rest)[: most - 1]
        grouped = {n for group in groups for n in group}
        rest = [n for n in rest if n not in grouped]
        if not alone:
            alone = [n for n in rest if n in set(large)]
    alone = alone[: max(0, most - len(groups) - 1)]
    rest = [n for n in rest if n not in set(alone)]
    parts = [Part((n,)) for n in alone] + [Part(tuple(group), joined=True) for group in groups]
    return [*parts, Part(tuple(rest), joined=True)] if rest else parts


def _groups_of_sizes(files: NativeFiles, sizes: Mapping[int, int], chosen: Sequence[int]) -> list[list[int]]:
    """Groups of files with different sizes, each with enough rows for a scan of its own."""
    groups: list[dict[int, int]] = []
    for n in chosen:
        free = (group for group in groups if sizes[n] not in group and len(group) < MAX_GROUP_FILES)
        group = next(free, None)
        if group is None:
            if len(groups) == MAX_GROUPS:
                continue
            group = {}
            groups.append(group)
        group[sizes[n]] = n
    found = [list(group.values()) for group in groups]
    return [group for group in found if sum(files.num_records[n] for n in group) >= LARGE_FILE_ROWS]


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
