"""The number of rows in a batch.

Invariant: a batch has about 64 MB at most, so that batches of many tasks fit into memory and 32-bit string offsets
never overflow. Batches of narrow rows have the requested number of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from delta_pyds.columnar.parquet_footer import ColumnChunks
from delta_pyds.data.read.row_groups import RowGroup

MAX_BATCH_BYTES = 64 << 20
PROBE_ROWS = 256
# a probe that may decode more than this is preceded by smaller ones
_PROBE_BYTES = 1 << 30
_PROBE_GROWTH = 16
# a value of a repeated column takes up to 8 bytes decoded, even if it is encoded in one byte or less
_DECODED = 8
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8, "INT96": 8, "FIXED_LEN_BYTE_ARRAY": 16}


@dataclass(frozen=True)
class Widths:
    """The width of a row by the schema. ``varying``: leaves of unknown width, or repeated leaves."""

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
    """Estimates the width of a row from the footer, and corrects it by the decoded batches.

    The footer decides how many rows are decoded at once, but never how much memory is allocated.

    Args:
        metadata: the file's ``pyarrow.parquet.FileMetaData``.
        footer: the column chunks of the same file.
    """

    def __init__(self, metadata: Any, footer: ColumnChunks, widths: Widths, batch_rows: int) -> None:
        self._metadata = metadata
        self._footer = footer
        self._batch_rows = max(1, batch_rows)
        self._seen_bytes_per_row = 0.0
        self._probed: set[tuple[int, ...]] = set()
        self._fixed_bytes = widths.fixed_bytes
        self._varying = widths.varying

    def rows(self, row_groups: Sequence[RowGroup]) -> int:
        """The number of rows to decode at once from these row groups."""
        most = min(self._batch_rows, sum(group.num_rows for group in row_groups))
        widths = (self._bytes_per_row(group, most) for group in row_groups)
        return self._fit(max(self._seen_bytes_per_row, max(widths, default=0.0)))

    def hidden(self, leaves: Sequence[int]) -> list[int]:
        """The leaves with values in a dictionary, whose width the footer does not show.

        They are returned only once for the same ``leaves``. Decode a few of their rows first, and pass them to
        ``observe_hidden``.
        """
        if tuple(leaves) in self._probed:
            return []
        self._probed.add(tuple(leaves))
        return [leaf for leaf in leaves if self._varying.get(leaf, 0) is None]

    def may_be_large(self, row_group: RowGroup, rows: int) -> bool:
        """Whether that many rows may be too large, if all repeat a value as large as the whole row group."""
        return bool(self._metadata.row_group(row_group.index).total_byte_size * rows > _PROBE_BYTES)

    def probes(self, leaves: Sequence[int], row_group: RowGroup) -> Iterator[int]:
        """The numbers of first rows of ``hidden`` leaves to decode and pass to ``observe_hidden``, ascending."""
        if not leaves:
            return
        rows = 1 if self.may_be_large(row_group, PROBE_ROWS) else PROBE_ROWS
        yield rows
        while rows < PROBE_ROWS and self._seen_bytes_per_row * rows * _PROBE_GROWTH <= MAX_BATCH_BYTES:
            rows *= _PROBE_GROWTH
            yield rows

    def observe_hidden(self, batch: pa.RecordBatch, row_group: RowGroup) -> None:
        """As ``observe``, for a batch of only the ``hidden`` leaves; the footer has the width of the others."""
        if batch.num_rows:
            self._see(batch.nbytes / batch.num_rows + self._bytes_per_row(row_group, self._batch_rows))

    def observe(self, batch: pa.RecordBatch) -> None:
        """Record the actual width of rows, which dictionaries hide from the footer."""
        # the buffers' size is an upper bound and cheap to get, and for narrow rows it suffices
        if batch.num_rows and batch.get_total_buffer_size() * self._batch_rows > MAX_BATCH_BYTES * batch.num_rows:
            self._see(batch.nbytes / batch.num_rows)

    def _see(self, bytes_per_row: float) -> None:
        self._seen_bytes_per_row = max(self._seen_bytes_per_row, bytes_per_row)

    def pieces(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The batch, split without copying if it became too large."""
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
        """The maximum width of a row by the footer. ``most_rows``: the maximum number of rows in a batch."""
        if not self._varying or not row_group.num_rows:
            return float(self._fixed_bytes)
        # the total of all columns is mostly small enough
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
