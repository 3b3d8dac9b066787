"""How many rows a batch may have.

Invariant: a batch stays near 64 MB, so that batches of many tasks fit into
memory and 32-bit string offsets are never exceeded; narrow rows come in
batches of the size that was asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from delta_pyds.columnar.parquet_footer import ParquetFooter
from delta_pyds.data.read.row_groups import RowGroup

MAX_BATCH_BYTES = 64 << 20
PROBE_ROWS = 256
# what some rows may take without that less of them are looked at first
_PROBE_BYTES = 1 << 30
_PROBE_GROWTH = 16
# values of repeated columns take more bytes decoded than encoded: the widest, from a byte or less
_DECODED = 8
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8, "INT96": 8, "FIXED_LEN_BYTE_ARRAY": 16}


@dataclass(frozen=True)
class Widths:
    """What a schema says of the width of a row. ``varying``: leaves of which it says nothing, or that repeat."""

    fixed_bytes: int
    varying: Mapping[int, int | None]

    @classmethod
    def of(cls, schema: Any, leaves: Iterable[int]) -> Widths:
        """``schema``: the file's ``pyarrow.parquet.ParquetSchema``."""
        fixed = 0
        varying: dict[int, int | None] = {}
        for leaf in leaves:
            column = schema.column(leaf)
            width = _WIDTHS.get(column.physical_type)
            if width is None or column.max_repetition_level:
                varying[leaf] = width
            else:
                fixed += width
        return cls(fixed, varying)


class BatchSizer:
    """Estimates the width of a row from the footer, and learns from the batches that come.

    ``metadata``: the file's ``pyarrow.parquet.FileMetaData``, and ``footer`` what it says of columns. What a footer
    promises decides how many rows are asked for at once, never how much memory is asked for.
    """

    def __init__(self, metadata: Any, footer: ParquetFooter, widths: Widths, batch_rows: int) -> None:
        self._metadata = metadata
        self._footer = footer
        self._batch_rows = max(1, batch_rows)
        self._seen_bytes_per_row = 0.0
        self._probed: set[tuple[int, ...]] = set()
        self._fixed_bytes = widths.fixed_bytes
        self._varying = widths.varying

    def rows(self, row_groups: Sequence[RowGroup]) -> int:
        """Rows to decode at once from these row groups."""
        most = min(self._batch_rows, sum(group.num_rows for group in row_groups))
        widths = (self._bytes_per_row(group, most) for group in row_groups)
        return self._fit(max(self._seen_bytes_per_row, max(widths, default=0.0)))

    def hidden(self, leaves: Sequence[int]) -> list[int]:
        """Those leaves of whose values a dictionary may keep the footer from saying how wide they are.

        They are told once for the same ``leaves``. A few rows of them should be decoded and given to
        ``observe_hidden`` before many are.
        """
        if tuple(leaves) in self._probed:
            return []
        self._probed.add(tuple(leaves))
        return [leaf for leaf in leaves if self._varying.get(leaf, 0) is None]

    def may_be_large(self, row_group: RowGroup, rows: int) -> bool:
        """Whether so many rows may be too large: none is wider than the row group, but all may repeat the widest."""
        return bool(self._metadata.row_group(row_group.index).total_byte_size * rows > _PROBE_BYTES)

    def probes(self, leaves: Sequence[int], row_group: RowGroup) -> Iterator[int]:
        """How many of the first rows of ``hidden`` leaves to decode and ``observe_hidden``, few before many."""
        if not leaves:
            return
        rows = 1 if self.may_be_large(row_group, PROBE_ROWS) else PROBE_ROWS
        yield rows
        while rows < PROBE_ROWS and self._seen_bytes_per_row * rows * _PROBE_GROWTH <= MAX_BATCH_BYTES:
            rows *= _PROBE_GROWTH
            yield rows

    def observe_hidden(self, batch: pa.RecordBatch, row_group: RowGroup) -> None:
        """The same as ``observe``, of the leaves that ``hidden`` told; of the others the footer knows."""
        if batch.num_rows:
            self._see(batch.nbytes / batch.num_rows + self._bytes_per_row(row_group, self._batch_rows))

    def observe(self, batch: pa.RecordBatch) -> None:
        """Remember how wide the rows really were: dictionaries hide it from the footer."""
        # what its buffers hold is no less than the batch, and known at once: of narrow rows nobody asks further
        if batch.num_rows and batch.get_total_buffer_size() * self._batch_rows > MAX_BATCH_BYTES * batch.num_rows:
            self._see(batch.nbytes / batch.num_rows)

    def _see(self, bytes_per_row: float) -> None:
        self._seen_bytes_per_row = max(self._seen_bytes_per_row, bytes_per_row)

    def pieces(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The batch, cut without copying where it became too large."""
        fits = batch.num_rows <= self._batch_rows
        if fits and batch.get_total_buffer_size() <= 2 * MAX_BATCH_BYTES:
            yield batch
            return
        size = batch.nbytes
        if fits and size <= 2 * MAX_BATCH_BYTES:
            yield batch
            return
        rows = self._fit(size / batch.num_rows)
        for start in range(0, batch.num_rows, rows):
            yield batch.slice(start, rows)

    def _fit(self, bytes_per_row: float) -> int:
        if bytes_per_row * self._batch_rows <= MAX_BATCH_BYTES:
            return self._batch_rows
        return min(self._batch_rows, max(1, int(MAX_BATCH_BYTES / bytes_per_row)))

    def _bytes_per_row(self, row_group: RowGroup, most_rows: int) -> float:
        """``most_rows``: that a batch may have."""
        if not self._varying or not row_group.num_rows:
            return float(self._fixed_bytes)
        # all columns together, which mostly is little enough to ask no further
        most = (
            self._fixed_bytes + max(0, self._metadata.row_group(row_group.index).total_byte_size) / row_group.num_rows
        )
        if most * _DECODED * most_rows <= MAX_BATCH_BYTES:
            return float(most)
        total = 0
        for leaf, width in self._varying.items():
            chunk = self._footer.chunk(row_group.index, leaf)
            total += chunk.uncompressed_bytes if width is None else width * chunk.num_values
        return self._fixed_bytes + total / row_group.num_rows
