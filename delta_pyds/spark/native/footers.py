"""Checks of data files for content that Spark's own Parquet reader would refuse or misread.

Invariant: nothing is concluded from one file about another. A footer is read
once in a process for the same columns, because data files never change.

Spark goes by the table's type and not by all that the file says of its own: an
unsigned or decimal number that a file keeps as an integer it reads as a plain
integer, nanoseconds and some codecs it does not read. Writers that follow the
protocol write none of these, but the log does not say who wrote a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from delta_pyds.bounded_cache import BoundedCache
from delta_pyds.columnar.cast import is_list_like, widens_by_the_rfc
from delta_pyds.data.read.calendar import uses_julian_dates, uses_julian_int96
from delta_pyds.data.read.data_file import DataFile, Naming, open_data_file
from delta_pyds.data.read.transform import Binding, FileColumnBinder
from delta_pyds.protocol.schema import (
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
# Footers wait for a disk or a store, and are decoded outside of Python's lock.
_LOADERS = 16
# So many are asked for at once: each takes some kilobytes while it waits for its turn.
_AT_ONCE = 4_096
# Layouts of files that are known to be in order; nearly every table has one.
_MOST_LAYOUTS = 16
# Files that are known to be in order, each some 300 bytes of memory: the columns, its path and size.
FILES_IN_ORDER: BoundedCache[tuple[str, str, int], bool] = BoundedCache(200_000)


def first_foreign_to_spark(storage: Storage, state: ScanState, files: Sequence[ScanFile]) -> str | None:
    """What speaks against Spark's reader in the columns that the scan reads of these files, as part of a sentence.

    None if nothing does: then each of the files is there, and has the size that the log promises.
    Raises: what opening a data file and finding the table's columns in it raises.
    """
    check = _FooterCheck(storage, state)
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
    """Of files of one layout: the leaf columns to read; those that may be null although the table says not."""

    leaves: Sequence[int]
    not_null: Sequence[Binding]


class _FooterCheck:
    def __init__(self, storage: Storage, state: ScanState) -> None:
        self._storage = storage
        self._ends = ParquetEnds("footers", state.file_leaves)
        self._state = state
        names = {f.name for f in state.output}
        # a column that is returned and looked at may be needed in two shapes
        wanted = [*state.output, *(f for f in state.inputs if f.name not in names or f not in state.output.fields)]
        self._fields = [f for f in wanted if f.physical_name not in state.partition_columns]
        self.columns = repr((state.table_root, type_to_json(StructType(tuple(map(_apart, self._fields))))))
        self._timestamps = any(holds(f.data_type, TIMESTAMP) for f in self._fields)
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
                        return f"the data file '{file.path}' keeps {what}"
                needed = _Needed(
                    sorted({leaf for b in bindings for leaf in b.leaves(data.size_of)}),
                    [b for b, f in zip(bindings, self._fields, strict=True) if not f.nullable and _nullable(b, layout)],
                )
                if len(self._layouts) < _MOST_LAYOUTS:
                    self._layouts.append((layout, needed))
            if self._timestamps and (uses_julian_dates(data.key_values) or uses_julian_int96(data.key_values)):
                # moved by the rules of a zone, which is the JVM's where the file does not say; dates have none
                return f"the data file '{file.path}' has timestamps of the Julian calendar"
            with Naming(self._state.table_root, file.path):
                return (
                    _of_codecs(data, needed.leaves)
                    or _of_nulls(data, needed.not_null)
                    or _of_statistics(data, needed.leaves)
                )


def _apart(field: StructField) -> StructField:
    return StructField(field.physical_name, field.data_type, field.nullable)


def _of_codecs(data: DataFile, leaves: Sequence[int]) -> str | None:
    if data.metadata.num_row_groups:
        for leaf in leaves:
            codec = data.footer.chunk(0, leaf).codec
            if codec not in _CODECS:
                return f"the data file '{data.path}' is compressed with {codec.lower()}"
    return None


def _of_statistics(data: DataFile, leaves: Sequence[int]) -> str | None:
    """Spark's reader would skip rows by them."""
    for group in range(data.metadata.num_row_groups):
        if any(data.footer.chunk(group, leaf).contradicts for leaf in leaves):
            return f"the footer of the data file '{data.path}' has statistics that contradict each other"
    return None


def _nullable(binding: Binding, layout: Any) -> bool:
    """Whether the layout allows nulls in a column without parts."""
    source = binding.source
    return source is not None and not source.children and layout.column(source.first_leaf).max_definition_level > 0


def _of_nulls(data: DataFile, not_null: Sequence[Binding]) -> str | None:
    """The other engine refuses a null there; Spark's would return it."""
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
    """Whether Spark reads values that decode as ``source`` as the same ``target`` as we do."""
    if pt.is_dictionary(source):
        source = source.value_type
    if pt.is_timestamp(source) and pt.is_timestamp(target):
        # an instant is no wall clock time, whatever Spark makes of it
        return source.unit in ("us", "ms") and (source.tz is None or target.tz is not None)
    if pt.is_string(target) or pt.is_binary(target):
        return bool(pt.is_string(source) or pt.is_binary(source) or pt.is_large_string(source) or source == target)
    # what a column held before its type was widened; Spark does as we do, in filters too
    return bool(source == target or (widens_by_the_rfc(source, target) and not pt.is_unsigned_integer(source)))
