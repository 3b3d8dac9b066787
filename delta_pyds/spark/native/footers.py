"""Checks of data files for content that Spark's own Parquet reader would refuse or misread.

Invariant: each file is judged by its own footer. A footer is read once in a process for the same columns, because data
files never change.

Spark reads by the table's type and ignores parts of the file's type. It reads unsigned and decimal numbers that are
stored as integers as plain integers, and does not read nanoseconds and some codecs. Writers that follow the protocol do
not write these, but the log does not name the writer of a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from delta_pyds.bounded_cache import BoundedCache
from delta_pyds.columnar.cast import is_list_like, widens_by_rfc
from delta_pyds.data.read.calendar import uses_julian_dates, uses_julian_int96
from delta_pyds.data.read.data_file import DataFile, NamedErrors, open_data_file
from delta_pyds.data.read.transform import Binding, FileColumnBinder
from delta_pyds.protocol.schema import (
    DATE,
    TIMESTAMP,
    StructField,
    StructType,
    holds,
    type_to_json,
)
from delta_pyds.storage.base import Storage
from delta_pyds.storage.parquet_ends import ParquetEnds
from delta_pyds.tasks.scan_state import ScanFile, ScanState

_CODECS = frozenset({"UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD", "LZ4_RAW"})
# Reads of footers wait for a disk or a store, and are decoded outside of Python's lock.
_LOADERS = 16
# The number of footers requested at once: each takes some kilobytes while it waits.
_AT_ONCE = 4_096
# Layouts of files without a reason against them; nearly every table has one.
_MOST_LAYOUTS = 16
# Files without a reason against them, each some 300 bytes of memory: the columns, its path and size.
FILES_IN_ORDER: BoundedCache[tuple[str, str, int], bool] = BoundedCache(200_000)


def first_foreign_to_spark(
    storage: Storage, state: ScanState, files: Sequence[ScanFile], *, rebases: bool = True
) -> str | None:
    """The first reason against Spark's reader in the columns that the scan reads, as part of a sentence.

    None without one: then each of the files exists and has the size of the log. ``rebases``: whether the reader moves
    dates of the Julian calendar; Comet's does not.

    Raises: DeltaError for a data file that cannot be opened or lacks columns of the table.
    """
    check = _FooterCheck(storage, state, rebases)
    unknown = [file for file in files if (check.columns, file.path, file.size_bytes) not in FILES_IN_ORDER]
    with ThreadPoolExecutor(_LOADERS) as pool:
        try:
            for start in range(0, len(unknown), _AT_ONCE):
                some = unknown[start : start + _AT_ONCE]
                for file, reason in zip(some, pool.map(check.reason_against, some), strict=True):
                    if reason is not None:
                        return reason
                    FILES_IN_ORDER.put((check.columns, file.path, file.size_bytes), True)
        finally:
            pool.shutdown(cancel_futures=True)
    return None


@dataclass(frozen=True)
class _Needed:
    """For one layout of files: the leaf columns to read, and NOT NULL columns that may hold nulls."""

    leaves: Sequence[int]
    not_null: Sequence[Binding]


class _FooterCheck:
    def __init__(self, storage: Storage, state: ScanState, rebases: bool) -> None:
        self._storage = storage
        self._ends = ParquetEnds("footers", state.file_leaves)
        self._state = state
        names = {f.name for f in state.output}
        # a column of both output and predicate may be needed in two shapes
        wanted = [*state.output, *(f for f in state.inputs if f.name not in names or f not in state.output.fields)]
        self._fields = [f for f in wanted if f.physical_name not in state.partition_columns]
        apart = StructType(tuple(StructField(f.physical_name, f.data_type, f.nullable) for f in self._fields))
        self.columns = repr((state.table_root, type_to_json(apart), rebases))
        self._timestamps = any(holds(f.data_type, TIMESTAMP) for f in self._fields)
        self._dates = not rebases and any(holds(f.data_type, DATE) for f in self._fields)
        self._layouts: list[tuple[Any, _Needed]] = []

    def reason_against(self, file: ScanFile) -> str | None:
        with open_data_file(
            lambda: self._ends.open(self._storage, file.path, file.size_bytes), self._state, file
        ) as data:
            layout = data.metadata.schema
            needed = next((needed for known, needed in self._layouts if known.equals(layout)), None)
            if needed is None:
                binder = FileColumnBinder(file.path, data.columns, self._state.column_mapping_mode)
                bindings = [binder.bind(f) for f in self._fields]
                if any(binding.lacks() for binding in bindings):
                    data.check_names()
                for binding in bindings:
                    for what in _of_binding(binding):
                        return f"the data file '{file.path}' stores {what}"
                needed = _Needed(
                    sorted({leaf for b in bindings for leaf in b.leaves(data.size_of)}),
                    [b for b, f in zip(bindings, self._fields, strict=True) if not f.nullable and _nullable(b, layout)],
                )
                if len(self._layouts) < _MOST_LAYOUTS:
                    self._layouts.append((layout, needed))
            if self._timestamps and (uses_julian_dates(data.key_values) or uses_julian_int96(data.key_values)):
                # shifted by the rules of a zone, which is the JVM's unless the file names one; dates have no zone
                return f"the data file '{file.path}' has timestamps of the Julian calendar"
            if self._dates and uses_julian_dates(data.key_values):
                return f"the data file '{file.path}' has dates of the Julian calendar, which Comet does not move"
            with NamedErrors(self._state.table_root, file.path):
                return (
                    _of_codecs(data, needed.leaves)
                    or _of_nulls(data, needed.not_null)
                    or _of_statistics(data, needed.leaves)
                )


def _of_codecs(data: DataFile, leaves: Sequence[int]) -> str | None:
    if data.metadata.num_row_groups:
        for leaf in leaves:
            codec = data.footer.chunk(0, leaf).codec
            if codec not in _CODECS:
                return f"the data file '{data.path}' is compressed with {codec.lower()}"
    return None


def _of_statistics(data: DataFile, leaves: Sequence[int]) -> str | None:
    """Statistics that contradict each other, so that Spark's reader would skip rows."""
    for group in range(data.metadata.num_row_groups):
        if any(data.footer.chunk(group, leaf).contradicts for leaf in leaves):
            return f"the footer of the data file '{data.path}' has statistics that contradict each other"
    return None


def _nullable(binding: Binding, layout: Any) -> bool:
    """Whether the layout allows nulls in a primitive column."""
    source = binding.source
    return source is not None and not source.children and layout.column(source.first_leaf).max_definition_level > 0


def _of_nulls(data: DataFile, not_null: Sequence[Binding]) -> str | None:
    """Possible nulls in NOT NULL columns: the Python source refuses them, Spark would return them."""
    for binding in not_null:
        assert binding.source is not None
        for group in range(data.metadata.num_row_groups):
            if data.footer.chunk(group, binding.source.first_leaf).null_count != 0:
                return f"the data file '{data.path}' may hold nulls in '{binding.where.column}', which is NOT NULL"
    return None


def _of_binding(binding: Binding) -> Iterator[str]:
    if binding.source is None:
        return
    for child in binding.children:
        yield from _of_binding(child)
    source, target = binding.source.data_type, binding.target
    parted = pt.is_struct(source) or pt.is_map(source) or is_list_like(source)
    if not parted and not _is_alike(source, target):
        yield f"the column '{binding.where.column}' as {source}"


def _is_alike(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether Spark converts values that decode as ``source`` to ``target`` as delta_pyds does."""
    if pt.is_dictionary(source):
        source = source.value_type
    if pt.is_timestamp(source) and pt.is_timestamp(target):
        # an instant is not a wall clock time, although Spark converts it
        return source.unit in ("us", "ms") and (source.tz is None or target.tz is not None)
    if pt.is_string(target) or pt.is_binary(target):
        return bool(pt.is_string(source) or pt.is_binary(source) or pt.is_large_string(source) or source == target)
    # the types before widening; Spark converts them as delta_pyds does, in filters too
    return bool(source == target or (widens_by_rfc(source, target) and not pt.is_unsigned_integer(source)))
