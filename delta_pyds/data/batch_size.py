"""How many rows a batch may have.

Invariant: a batch stays near 64 MB, so that batches of many tasks fit into
memory and 32-bit string offsets are never exceeded; narrow rows come in
batches of the size that was asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from delta_pyds.data.row_groups import RowGroup

MAX_BATCH_BYTES = 64 << 20
PROBE_ROWS = 256
_MIN_ROWS = 64
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8, "INT96": 8, "FIXED_LEN_BYTE_ARRAY": 16}


class BatchSizer:
    """Estimates the width of a row from the footer, and learns from the batches that come."""

    def __init__(self, metadata: Any, leaves: Sequence[int], batch_rows: int) -> None:
        self._metadata = metadata
        self._leaves = leaves
        self._batch_rows = max(1, batch_rows)
        self._seen_bytes_per_row = 0.0
        self._probed: set[tuple[int, ...]] = set()

    def rows(self, row_groups: Sequence[RowGroup]) -> int:
        """Rows to decode at once from these row groups."""
        return self._fit(max(self._seen_bytes_per_row, max(map(self._bytes_per_row, row_groups), default=0.0)))

    def hidden(self, row_group: RowGroup, leaves: Sequence[int]) -> list[int]:
        """Those leaves of whose values a dictionary keeps the footer from saying how wide they are.

        They are told once for the same ``leaves``. A few rows of them should be decoded and given to
        ``observe_hidden`` before many are.
        """
        if tuple(leaves) in self._probed:
            return []
        self._probed.add(tuple(leaves))
        group = self._metadata.row_group(row_group.index)
        columns = ((leaf, group.column(leaf)) for leaf in leaves)
        return [n for n, c in columns if c.physical_type == "BYTE_ARRAY" and any("DICT" in e for e in c.encodings)]

    def observe_hidden(self, batch: pa.RecordBatch, row_group: RowGroup) -> None:
        """The same as ``observe``, of the leaves that ``hidden`` told; of the others the footer knows."""
        if batch.num_rows:
            self._see(batch.nbytes / batch.num_rows + self._bytes_per_row(row_group))

    def observe(self, batch: pa.RecordBatch) -> None:
        """Remember how wide the rows really were: dictionaries hide it from the footer."""
        if batch.num_rows:
            self._see(batch.nbytes / batch.num_rows)

    def _see(self, bytes_per_row: float) -> None:
        self._seen_bytes_per_row = max(self._seen_bytes_per_row, bytes_per_row)

    def pieces(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The batch, cut without copying where it became too large."""
        size = batch.nbytes
        if size <= 2 * MAX_BATCH_BYTES and batch.num_rows <= self._batch_rows:
            yield batch
            return
        rows = self._fit(size / batch.num_rows)
        for start in range(0, batch.num_rows, rows):
            yield batch.slice(start, rows)

    def _fit(self, bytes_per_row: float) -> int:
        if bytes_per_row * self._batch_rows <= MAX_BATCH_BYTES:
            return self._batch_rows
        return min(self._batch_rows, max(_MIN_ROWS, int(MAX_BATCH_BYTES / bytes_per_row)))

    def _bytes_per_row(self, row_group: RowGroup) -> float:
        if not row_group.num_rows:
            return 0.0
        group = self._metadata.row_group(row_group.index)
        total = 0
        for leaf in self._leaves:
            column = group.column(leaf)
            width = _WIDTHS.get(column.physical_type)
            total += column.total_uncompressed_size if width is None else width * column.num_values
        return float(total / row_group.num_rows)
