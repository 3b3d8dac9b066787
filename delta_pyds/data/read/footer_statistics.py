"""Row group statistics of a Parquet footer.

Invariant: a bound is known only if every value of the row group lies within it. It is unknown in doubtful cases:
another type than the table's, int96, bytes that a writer may have truncated, the Julian calendar.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from delta_pyds.columnar.parquet_footer import ColumnChunk, ParquetFooter
from delta_pyds.columnar.skipping import keep
from delta_pyds.data.columns import Constant
from delta_pyds.data.file_schema import FileColumn
from delta_pyds.data.read.row_groups import RowGroup
from delta_pyds.data.read.transform import Binding

# no writer truncates a maximum shorter than this; the exact writers never truncate, or round up
UNCUT_BYTES = 16
EXACT_WRITERS = ("parquet-cpp-arrow", "parquet-mr")


class RowGroupStatistics:
    """The statistics of some row groups of a file: a ``columnar.skipping.SkippingStatistics``."""

    def __init__(
        self,
        metadata: Any,
        footer: ParquetFooter,
        row_groups: Sequence[RowGroup],
        bind: Callable[[tuple[str, ...]], Binding | None],
        partition: Callable[[str], pa.Scalar],
        julian: bool,
    ) -> None:
        self._schema = metadata.schema
        self._footer = footer
        self._row_groups = row_groups
        self._bind = bind
        self._partition = partition
        self._julian = julian
        self._exact = str(metadata.created_by or "").startswith(EXACT_WRITERS)

    @property
    def num_files(self) -> int:
        return len(self._row_groups)

    def num_records(self) -> pa.Array:
        return pa.array([g.num_rows for g in self._row_groups], pa.int64())

    def partition(self, name: str) -> pa.Array:
        return Constant(self._partition(name)).array(self.num_files)

    def null_count(self, path: tuple[str, ...]) -> pa.Array | None:
        binding = self._bind(path)
        if binding is None:
            return None
        if binding.source is None:
            return self.num_records()
        return pa.array([None if c is None else c.null_count for c in self._chunks(binding)], pa.int64())

    def minimum(self, path: tuple[str, ...]) -> pa.Array | None:
        return self._bounds(path, "minimum", cut_is_fine=True)

    def maximum(self, path: tuple[str, ...]) -> pa.Array | None:
        return self._bounds(path, "maximum", cut_is_fine=False)

    def _chunks(self, binding: Binding) -> list[ColumnChunk | None]:
        source = binding.source
        if source is None or source.last_leaf != source.first_leaf + 1:
            return [None] * self.num_files
        return [self._footer.chunk(g.index, source.first_leaf) for g in self._row_groups]

    def _physical(self, source: FileColumn) -> str:
        return str(self._schema.column(source.first_leaf).physical_type)

    def _bounds(self, path: tuple[str, ...], which: str, cut_is_fine: bool) -> pa.Array | None:
        binding = self._bind(path)
        if binding is None or binding.source is None or binding.source.data_type != binding.target:
            return None
        target = binding.target
        if self._julian and (pt.is_date(target) or pt.is_timestamp(target)):
            return None
        physical = self._physical(binding.source)
        through = _raw_type(physical, target)
        if through is None:
            return None
        raw = [None if c is None else getattr(c, which) for c in self._chunks(binding)]
        if physical == "BYTE_ARRAY":
            if not cut_is_fine and not self._exact:
                raw = [v if v is not None and len(v) < UNCUT_BYTES else None for v in raw]
            return _strings(raw) if pt.is_string(target) else pa.array(raw, pa.binary())
        values = pa.array(raw, through)
        if pt.is_decimal(target):
            # unscaled integers; the cast to decimal would scale them
            whole = values.cast(pa.decimal128(38, 0))
            return pa.Array.from_buffers(target, len(whole), whole.buffers(), whole.null_count)
        return values.cast(target) if through.bit_width != target.bit_width else values.view(target)


def _raw_type(physical: str, target: pa.DataType) -> pa.DataType | None:
    """The Arrow type of the raw statistics if they can be converted to the target; otherwise None."""
    whole = pt.is_integer(target) or pt.is_date32(target) or pt.is_timestamp(target) or pt.is_decimal(target)
    if physical in ("INT32", "INT64") and whole:
        return pa.int32() if physical == "INT32" else pa.int64()
    if physical == "FLOAT" and pt.is_float32(target):
        return pa.float32()
    if physical == "DOUBLE" and pt.is_float64(target):
        return pa.float64()
    if physical == "BOOLEAN" and pt.is_boolean(target):
        return pa.bool_()
    if physical == "BYTE_ARRAY" and (pt.is_string(target) or pt.is_binary(target)):
        return pa.binary()
    return None


def _strings(raw: Sequence[bytes | None]) -> pa.Array:
    """Bounds as text; a bound truncated within a character is unknown."""
    texts: list[str | None] = []
    for value in raw:
        try:
            texts.append(None if value is None else value.decode())
        except UnicodeDecodeError:
            texts.append(None)
    return pa.array(texts, pa.string())


def kept_row_groups(skip: Any, statistics: RowGroupStatistics, row_groups: Sequence[RowGroup]) -> list[RowGroup]:
    """The row groups that may hold a matching row."""
    if not row_groups:
        return []
    return [g for g, kept in zip(row_groups, keep(skip, statistics).to_pylist(), strict=True) if kept]
