"""Checks the footers of files that a merge would skip by the keys of its source.

Invariant: a row that matches a row of the source is found, even if the log is wrong about its file. A merge that misses
it inserts it a second time. The reference does not rely on the log here: it reads the keys of all files, and prunes
only by conditions on the table's columns alone. We prune by keys too, and read the footers of the files that the keys
rule out. A footer is read once in a process for the same columns: data files never change.

Protocol: "Per-file Statistics".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.bounded_cache import BoundedCache
from delta_pyds.columnar.skipping import keep
from delta_pyds.data.read.data_file import NamedErrors, open_data_file
from delta_pyds.data.read.file_plan import FilePlan
from delta_pyds.data.read.row_groups import row_groups_in
from delta_pyds.expr.logic import and_
from delta_pyds.expr.nodes import Expr, references
from delta_pyds.expr.stats_rewrite import needs, skipping
from delta_pyds.protocol.schema import StructType, num_leaves
from delta_pyds.redaction import safe_logger
from delta_pyds.storage.parquet_ends import ParquetEnds
from delta_pyds.table.scan.scan import Scan
from delta_pyds.tasks.scan_state import ScanFile, ScanState

Path = tuple[str, ...]

logger = safe_logger(__name__)

# Threads wait for a disk or a store, and release Python's lock while they decode a footer.
_LOADERS = 16
# This many footers are read before any of them is checked.
_AT_ONCE = 4_096


@dataclass(frozen=True)
class _Footer:
    """Statistics of some columns in a footer: one array each, with an entry for each row group; None if unknown."""

    rows: pa.Array
    minimum: Mapping[Path, pa.Array | None]
    maximum: Mapping[Path, pa.Array | None]
    null_count: Mapping[Path, pa.Array | None]


# An entry has some 1,500 bytes for a key of one column. Its name is the columns, the file's path and its size.
_FOOTERS: BoundedCache[tuple[str, str, int], _Footer] = BoundedCache(20_000)


def split_keys(conditions: Iterable[Expr], partition_columns: Sequence[str]) -> tuple[list[Expr], list[Expr]]:
    """The conditions over partition columns, and the others: the log has exact values of partition columns."""
    exact: list[Expr] = []
    others: list[Expr] = []
    for condition in conditions:
        paths = references(condition)
        (exact if all(path[0] in partition_columns for path in paths) else others).append(condition)
    return exact, others


def bounds_hold(all_files: Scan, kept: Scan, keys: Sequence[Expr]) -> bool:
    """Whether the footers agree that no row of the files that the log rules out satisfies the conditions.

    ``kept``: the files of ``all_files`` that ``keys`` (conditions over columns of the files) do not rule out by the
    log.

    Raises: errors of opening a data file and of finding the table's columns in it.
    """
    left = {file.path for file in kept.files()}
    ruled_out = [file for file in all_files.files() if file.path not in left]
    wrong = next(_wrong(all_files, ruled_out, and_(tuple(keys))), None)
    if wrong is not None:
        logger.warning(
            "The footer of the file %s of the table %s contradicts the statistics in the log. The merge looks for its "
            "keys in all files. Verify the table.",
            wrong.path,
            all_files.state.table_root,
        )
    return wrong is None


def _wrong(scan: Scan, files: Sequence[ScanFile], condition: Expr) -> Iterator[ScanFile]:
    """The files that their footers do not rule out."""
    skip = skipping(condition, ())
    wanted = needs(skip)
    paths = sorted(wanted.bounds | wanted.null_count)
    schema = StructType(tuple(f for f in scan.snapshot.schema if f.name in {path[0] for path in paths}))
    state = replace(scan.state, output=schema, inputs=StructType(()), predicate=None, skip=None, row_ids=None)
    ends = ParquetEnds("footers", num_leaves(scan.snapshot.schema))
    columns = repr((scan.state.table_root, state.column_mapping_mode, schema, paths))

    def footer_of(file: ScanFile) -> _Footer:
        name = (columns, file.path, file.size_bytes)
        known = _FOOTERS.get(name)
        if known is None:
            known = _read(scan, state, ends, file, paths)
            _FOOTERS.put(name, known)
        return known

    with ThreadPoolExecutor(_LOADERS, thread_name_prefix="deltapy-footers") as pool:
        for start in range(0, len(files), _AT_ONCE):
            some = files[start : start + _AT_ONCE]
            footers = list(pool.map(footer_of, some))
            may = keep(skip, _Footers(footers))
            at = 0
            for file, footer in zip(some, footers, strict=True):
                if pc.any(may.slice(at, len(footer.rows)), min_count=0).as_py():
                    yield file
                at += len(footer.rows)


def _read(scan: Scan, state: ScanState, ends: ParquetEnds, file: ScanFile, paths: Sequence[Path]) -> _Footer:
    storage = scan.snapshot.storage
    with open_data_file(lambda: ends.open(storage, file.path, file.size_bytes), state, file) as data:
        plan = FilePlan(state, file, data)
        with NamedErrors(state.table_root, file.path):
            groups = row_groups_in(data.metadata, data.footer, 0, None, file.size_bytes)
            found = plan.statistics([group for group in groups if group.num_rows])
            return _Footer(
                found.num_records(),
                {path: found.minimum(path) for path in paths},
                {path: found.maximum(path) for path in paths},
                {path: found.null_count(path) for path in paths},
            )


class _Footers:
    """The row groups of several files: a ``columnar.skipping.SkippingStatistics``."""

    def __init__(self, footers: Sequence[_Footer]) -> None:
        self._footers = footers
        self.num_files = sum(len(footer.rows) for footer in footers)

    def partition(self, name: str) -> pa.Array:
        raise ValueError(f"no footer has values of the partition column {name}")

    def minimum(self, path: Path) -> pa.Array | None:
        return self._joined([footer.minimum[path] for footer in self._footers])

    def maximum(self, path: Path) -> pa.Array | None:
        return self._joined([footer.maximum[path] for footer in self._footers])

    def null_count(self, path: Path) -> pa.Array | None:
        return self._joined([footer.null_count[path] for footer in self._footers])

    def num_records(self) -> pa.Array | None:
        return self._joined([footer.rows for footer in self._footers])

    def _joined(self, arrays: Sequence[pa.Array | None]) -> pa.Array | None:
        known = next((array for array in arrays if array is not None), None)
        if known is None:
            return None
        pairs = zip(arrays, self._footers, strict=True)
        return pa.concat_arrays([pa.nulls(len(f.rows), known.type) if array is None else array for array, f in pairs])
