"""All numbers of a report, for one version of a table.

Invariants: the log is read a bounded number of times, data files never. Each live file takes some 40 bytes of memory,
and 16 for each measured column of numbers; one column of texts is in memory at a time.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.commands.report.depth import Depth, depth, depth_columns, read_together
from delta_pyds.commands.report.files import Bars, ages, deletions, partition_names, read_files, sizes, total
from delta_pyds.commands.report.gains import OptimizeGain, VacuumGain, optimize_gain, purge_gain, vacuum_gain
from delta_pyds.commands.report.versions import Versions, versions
from delta_pyds.protocol.features import Feature
from delta_pyds.protocol.schema import display
from delta_pyds.redaction import safe_logger
from delta_pyds.table.detail import TableDetail, table_detail
from delta_pyds.table.snapshot import Snapshot

_MOST_SHOWN = 15

logger = safe_logger(__name__)


@dataclass(frozen=True)
class FileNumbers:
    """The numbers of the live files.

    ``num_rows``: rows that are not deleted, of the files whose number of rows is known; ``num_uncounted``: the other
    files. ``num_deleted``: rows that ``num_vectors`` deletion vectors mark. ``num_deleted_counted``: those in files
    whose number of rows is known.
    """

    num_files: int
    size_bytes: int
    median_bytes: int
    num_rows: int
    num_uncounted: int
    num_deleted: int
    num_deleted_counted: int
    num_vectors: int
    sizes: Bars
    ages: Bars
    deletions: Bars

    @property
    def deletion_ratio(self) -> float:
        """The share of deleted rows in files with a known number of rows; 0 if no number is known."""
        rows = self.num_rows + self.num_deleted_counted
        return self.num_deleted_counted / rows if rows else 0.0


@dataclass(frozen=True)
class TableMeasures:
    """The numbers of a report. ``columns``: name, type, nullability. ``partitions``: None without partition columns."""

    detail: TableDetail
    version: int
    now_ms: int
    files: FileNumbers
    partitions: _Partitions | None
    depths: tuple[Depth, ...]
    versions: Versions
    optimize: OptimizeGain
    purge: OptimizeGain
    vacuum: VacuumGain
    columns: tuple[tuple[str, str, bool], ...]


def measure(snapshot: Snapshot, *, now_ms: int | None = None) -> TableMeasures:
    """Measure a version. Nothing is changed. The table's files are listed, for the gain of vacuum.

    Raises: DeltaError for a log that cannot be read.
    """
    started = time.monotonic()
    now_ms = int(time.time() * 1000) if now_ms is None else now_ms
    wanted = depth_columns(snapshot)
    first, *others = read_together(wanted)
    files, ranges = read_files(snapshot, first, tags=snapshot.configuration.supports(Feature.CLUSTERING))
    partition = files.column("partition")
    clustering = {path: clustered for path, _, clustered in wanted}
    found = {path: depth(path, ranges[path], partition, clustering=clustering[path]) for path in first}
    del ranges
    for (path,) in others:
        again, texts = read_files(snapshot, (path,))
        found[path] = depth(path, texts[path], again.column("partition"), clustering=clustering[path])
    numbers = file_numbers(files, now_ms)
    measures = TableMeasures(
        detail=table_detail(snapshot),
        version=snapshot.version,
        now_ms=now_ms,
        files=numbers,
        partitions=_partitions(files, snapshot.configuration.partition_columns),
        depths=tuple(found[path] for path, _, _ in wanted),
        versions=versions(snapshot, numbers.num_files, numbers.size_bytes),
        optimize=optimize_gain(snapshot, files),
        purge=purge_gain(files),
        vacuum=vacuum_gain(snapshot),
        columns=tuple((field.name, display(field.data_type), field.nullable) for field in snapshot.schema),
    )
    seconds = time.monotonic() - started
    logger.info("Measured %d files of table %s in %.1f s.", numbers.num_files, snapshot.table_root, seconds)
    return measures


def file_numbers(files: pa.Table, now_ms: int) -> FileNumbers:
    """The numbers of the files that ``read_files`` returned."""
    rows, deleted = files.column("rows"), files.column("deleted")
    median = pc.quantile(files.column("size"), 0.5)[0].as_py() if files.num_rows else 0
    return FileNumbers(
        num_files=files.num_rows,
        size_bytes=total(files.column("size")),
        median_bytes=int(median),
        num_rows=max(0, total(pc.subtract(rows, deleted))),
        num_uncounted=rows.null_count,
        num_deleted=total(deleted),
        num_deleted_counted=total(deleted.filter(rows.is_valid())),
        num_vectors=int(pc.sum(files.column("vector")).as_py() or 0),
        sizes=sizes(files),
        ages=ages(files, now_ms),
        deletions=deletions(files),
    )


@dataclass(frozen=True)
class _Partition:
    """One partition. ``num_rows``: rows that are not deleted; None if the number of a file is unknown."""

    name: str
    num_files: int
    size_bytes: int
    num_rows: int | None


@dataclass(frozen=True)
class _Partitions:
    """``largest``: descending by bytes. ``skew``: the largest size over the mean. ``median_bytes``: of a partition."""

    columns: tuple[str, ...]
    number: int
    largest: tuple[_Partition, ...]
    skew: float
    median_bytes: int
    median_files: int


def _partitions(files: pa.Table, columns: Sequence[str]) -> _Partitions | None:
    """Count files by partition. Returns: None for a table without partition columns."""
    if not columns:
        return None
    if not files.num_rows:
        return _Partitions(tuple(columns), 0, (), 0.0, 0, 0)
    encoded = files.column("partition")
    codes = pa.chunked_array([chunk.indices for chunk in encoded.chunks], pa.int32())
    names = encoded.chunk(0).dictionary
    live = pc.subtract(files.column("rows"), files.column("deleted"))
    table = pa.table(
        {"code": codes, "size": files.column("size").cast(pa.float64()), "rows": live, "unknown": live.is_null()}
    )
    found = table.group_by("code").aggregate([("size", "sum"), ("size", "count"), ("rows", "sum"), ("unknown", "any")])
    size = found.column("size_sum")
    order = pc.select_k_unstable(found, _MOST_SHOWN, [("size_sum", "descending"), ("code", "ascending")])
    largest = [
        _Partition(
            partition_names(names[row["code"]].as_py(), columns),
            row["size_count"],
            int(row["size_sum"]),
            None if row["unknown_any"] else row["rows_sum"],
        )
        for row in found.take(order).to_pylist()
    ]
    mean = pc.mean(size).as_py()
    return _Partitions(
        tuple(columns),
        found.num_rows,
        tuple(largest),
        pc.max(size).as_py() / mean if mean else 1.0,
        int(pc.quantile(size, 0.5)[0].as_py()),
        int(pc.quantile(found.column("size_count"), 0.5)[0].as_py()),
    )
