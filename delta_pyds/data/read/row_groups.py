"""The row groups of a file that a split reads, and the positions of their rows.

Invariant: if the splits cover the file, every row group belongs to exactly one of them: the one with its midpoint.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from delta_pyds.columnar.parquet_footer import ColumnChunks


@dataclass(frozen=True)
class RowGroup:
    """``first_row`` counts from the start of the file."""

    index: int
    first_row: int
    num_rows: int


def row_groups_in(
    metadata: Any, footer: ColumnChunks, start: int, length: int | None, size_bytes: int
) -> list[RowGroup]:
    """The row groups whose midpoint lies in ``[start, start + length)``; all of them if there is no length.

    Args:
        metadata: the file's ``pyarrow.parquet.FileMetaData``.
        footer: the column chunks of the same file.
        size_bytes: the file size that the splits were made from.
    """
    found, first_row = [], 0
    for index in range(metadata.num_row_groups):
        num_rows = metadata.row_group(index).num_rows
        # wrong offsets in a footer must not put a row group after the last split
        whole = start == 0 and length is None
        midpoint = start if whole else min(_midpoint(footer, index, metadata.num_columns), size_bytes - 1)
        if start <= midpoint and (length is None or midpoint < start + length):
            found.append(RowGroup(index, first_row, num_rows))
        first_row += num_rows
    return found


def _midpoint(footer: ColumnChunks, row_group: int, num_columns: int) -> int:
    """The middle of the row group's bytes: the start of its first page plus half of its compressed size."""
    chunks = [footer.chunk(row_group, i) for i in range(num_columns)]
    first = min((chunk.first_byte for chunk in chunks), default=0)
    return first + sum(chunk.compressed_bytes for chunk in chunks) // 2


def runs(groups: Sequence[RowGroup], max_rows: int) -> Iterator[list[RowGroup]]:
    """Consecutive row groups in runs of about ``max_rows`` rows, at least one group each.

    Small row groups are decoded together, so that batches are not small, too.
    """
    run: list[RowGroup] = []
    rows = 0
    for group in groups:
        if run and (run[-1].index + 1 != group.index or rows + group.num_rows > max_rows):
            yield run
            run, rows = [], 0
        run.append(group)
        rows += group.num_rows
    if run:
        yield run
