"""The gains of vacuum and optimize, computed without running them.

Invariant: the files are those that ``layout.bins`` and ``layout.cubes`` choose with their default sizes, counted on
columns. A table that must not be changed has a reason instead of a gain.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.catalog.managed import check_allowed
from delta_pyds.commands.layout.bins import Sizes
from delta_pyds.commands.layout.cubes import PROVIDER
from delta_pyds.commands.maintenance.vacuum import VacuumOptions, plan_vacuum
from delta_pyds.commands.report.files import chunks, total
from delta_pyds.errors import DeltaError
from delta_pyds.protocol.features import Feature
from delta_pyds.table.definition.clustering import logical_clustering_columns
from delta_pyds.table.definition.statistics_columns import show_path
from delta_pyds.table.snapshot import Snapshot


@dataclass(frozen=True)
class VacuumGain:
    """The files that vacuum would delete. ``reason``: why they are unknown; then the numbers are 0."""

    num_files: int
    size_bytes: int
    num_directories: int
    retention_hours: float
    reason: str = ""


@dataclass(frozen=True)
class OptimizeGain:
    """The files that optimize would rewrite.

    ``verb``: compaction, clustering or purge. ``taken``, ``taken_bytes``: the files to rewrite. ``before``, ``after``:
    live files; for clustering ``after`` is an estimate. ``reason``: why the table must not be rewritten; then
    ``taken`` is 0.
    """

    verb: str
    before: int
    after: int
    taken: int
    taken_bytes: int
    bins: int
    reason: str = ""


def vacuum_gain(snapshot: Snapshot) -> VacuumGain:
    """The result of a dry run with the table's own retention. It lists the table's files."""
    hours = snapshot.configuration.properties.deleted_file_retention_ms / 3_600_000
    try:
        plan = plan_vacuum(snapshot.storage, snapshot.table_root, VacuumOptions())
    except DeltaError as error:
        return VacuumGain(0, 0, 0, hours, error.message)
    return VacuumGain(plan.files.num_rows, plan.size_bytes, len(plan.empty_directories), hours)


def optimize_gain(snapshot: Snapshot, files: pa.Table, sizes: Sizes | None = None) -> OptimizeGain:
    """The gain of ``optimize`` without arguments."""
    sizes = sizes or Sizes()
    try:
        check_allowed(snapshot.storage, "OPTIMIZE")
        snapshot.configuration.check_writable()
    except DeltaError as error:
        return OptimizeGain("compaction", files.num_rows, files.num_rows, 0, 0, 0, error.message)
    if snapshot.configuration.supports(Feature.CLUSTERING):
        by = logical_clustering_columns(snapshot.schema, snapshot.domain_metadata)
        if by:
            return _clustering(files, tuple(show_path(path) for path in by), sizes)
    return _compaction(files, sizes)


def purge_gain(files: pa.Table) -> OptimizeGain:
    """The gain of a rewrite of all files with deleted rows, which keeps the number of files."""
    marked = files.filter(files.column("vector"))
    number = marked.num_rows
    return OptimizeGain("purge", files.num_rows, files.num_rows, number, total(marked.column("size")), number)


def _compaction(files: pa.Table, sizes: Sizes) -> OptimizeGain:
    rows = files.column("rows").cast(pa.float64())
    many = pc.fill_null(
        pc.greater(files.column("deleted").cast(pa.float64()), pc.multiply(rows, sizes.max_deleted_ratio)), True
    )
    wanted = pc.or_(pc.less(files.column("size"), sizes.min_file_bytes), pc.and_(files.column("vector"), many))
    small = files.filter(wanted)
    codes = pa.chunked_array([c.indices.cast(pa.int64()) for c in small.column("partition").chunks], pa.int64())
    table = pa.table({"code": codes, "size": small.column("size")})
    table = table.take(pc.sort_indices(table, [("code", "ascending"), ("size", "ascending")]))
    bins = taken = taken_bytes = 0
    for number, size in _filled(table, sizes.max_file_bytes):
        if number > 1:
            bins, taken, taken_bytes = bins + 1, taken + number, taken_bytes + size
    return OptimizeGain("compaction", files.num_rows, files.num_rows - taken + bins, taken, taken_bytes, bins)


def _filled(table: pa.Table, room: int) -> Iterator[tuple[int, int]]:
    """The number and bytes of each bin. Bins are filled one after the other; each holds files of one partition."""
    number = size = 0
    current = None
    for codes, values in zip(chunks(table.column("code")), chunks(table.column("size")), strict=True):
        for code, size_bytes in zip(codes, values, strict=True):
            value = max(size_bytes, 0)
            if number and (code != current or size + value > room):
                yield number, size
                number = size = 0
            current, number, size = code, number + 1, size + value
    if number:
        yield number, size


def _clustering(files: pa.Table, columns: tuple[str, ...], sizes: Sizes) -> OptimizeGain:
    in_cube = pc.and_(files.column("cube").is_valid(), _named(files.column("cube_columns")))
    same = _mapped(files.column("cube_columns"), lambda text: _columns_of(text) == columns)
    provider = _mapped(files.column("provider"), lambda text: text in (None, PROVIDER))
    ours = files.filter(pc.and_(provider, pc.or_(pc.invert(in_cube), same)))
    in_cube = pc.and_(ours.column("cube").is_valid(), _named(ours.column("cube_columns")))
    of_cube = pc.if_else(in_cube, ours.column("cube"), pa.scalar(None, pa.string()))
    table = pa.table({"cube": of_cube, "size": ours.column("size").cast(pa.float64())})
    totals = table.group_by("cube").aggregate([("size", "sum")])
    large = totals.filter(pc.greater_equal(totals.column("size_sum"), sizes.min_cube_bytes)).column("cube")
    taken = table.filter(
        pc.or_(table.column("cube").is_null(), pc.invert(pc.is_in(table.column("cube"), large.drop_null())))
    )
    cubes = pc.unique(taken.column("cube"))
    if len(cubes) == 1 and cubes[0].is_valid:
        taken = taken.slice(0, 0)
    taken_bytes = total(taken.column("size"))
    after = min(taken.num_rows, math.ceil(taken_bytes / sizes.max_file_bytes)) if taken.num_rows else 0
    bins = math.ceil(taken_bytes / sizes.target_cube_bytes)
    before = files.num_rows
    return OptimizeGain("clustering", before, before - taken.num_rows + after, taken.num_rows, taken_bytes, bins)


def _named(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return _mapped(column, lambda text: _columns_of(text) is not None)


def _mapped(column: pa.ChunkedArray, decide: object) -> pa.ChunkedArray:
    """A decision for each distinct text of a dictionary column, and for null."""
    assert callable(decide)
    found = []
    for chunk in column.chunks:
        known = pa.array([bool(decide(text)) for text in chunk.dictionary.to_pylist()], pa.bool_())
        found.append(pc.fill_null(known.take(chunk.indices), bool(decide(None))))
    return pa.chunked_array(found, pa.bool_())


def _columns_of(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    try:
        names = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return tuple(names) if isinstance(names, list) and all(isinstance(n, str) for n in names) else None
