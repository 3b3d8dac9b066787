"""Which files Spark scans together.

What differs from file to file, deletion vectors and partition values that the
directories do not tell, comes either with a small table that is joined to the
rows, or as a constant. A constant costs a row next to nothing, and a filter on
it leaves the files out, but each is a scan of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from delta_pyds.spark.native.files import NativeFiles
from delta_pyds.tasks.scan_state import ScanState

# Below that many rows, joining them costs less than one scan more.
LARGE_FILE_ROWS = 250_000
# Scans of one DataFrame: each costs 60 ms at the load, and planning in every query.
MAX_SCANS = 32
# Up to so many large files the rows that they save are worth it; more are joined, if that can be done by size.
FEW_SCANS = 4


@dataclass(frozen=True)
class Part:
    """``chosen``: positions of the files, all of them with deletion vectors or none.

    ``joined``: what is known of them comes with a table; else they have the same partition values, or directories
    that tell them, and with a deletion vector there is just one.
    """

    chosen: tuple[int, ...]
    joined: bool = False


def parts_of(files: NativeFiles, scan: ScanState) -> list[Part]:
    """Parts that together have each of the files once."""
    deleted = files.with_deletions
    live = sorted(set(range(len(files.files))).difference(deleted))
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
        return [Part(tuple(live))]
    groups: dict[tuple[str | None, ...], list[int]] = {}
    for n in live:
        groups.setdefault(files.files[n].partition_values, []).append(n)
    if len(groups) <= max(1, MAX_SCANS // 2):
        return [Part(tuple(group)) for group in groups.values()]
    return [Part(tuple(live), joined=True)]
