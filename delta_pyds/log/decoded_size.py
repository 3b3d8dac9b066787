"""Batch sizes for decoding checkpoints, so that memory is bounded by the size of their files.

A Parquet file of a few kilobytes may decode to many gigabytes. Thousands of rows may share one long text of a
dictionary, or repeat that of the previous row (DELTA_BYTE_ARRAY). Arrow copies the text for each row. A dictionary
itself is small enough to be examined first. Without one, texts are examined in small batches: no text is longer than
its chunk.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from delta_pyds.columnar.parquet_footer import ColumnChunk, ParquetFooter

# The target size of a batch of one text column. Several exist at a time: being decoded, enlarged, processed.
MAX_BATCH_BYTES = 64 << 20
# A batch up to this size needs no examination.
_SMALL_BATCH_BYTES = 256 << 20
# Statistics of a file take some kilobytes, and paths are shorter: longer texts are dropped.
MAX_TEXT_BYTES = 1 << 20
# No writer produces a chunk that exceeds both limits.
_MAX_CHUNK_BYTES = 1 << 30
_MAX_RATIO = 1_000
_PROBE_BUFFER = 1 << 16
_TEXTS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)


def rows_per_batch(longest_text: int, max_rows: int) -> int:
    """The number of rows with texts of this length that fit into a batch: at least 1, at most ``max_rows``."""
    return max_rows if longest_text <= 0 else max(1, min(max_rows, MAX_BATCH_BYTES // longest_text))


def longest_text_of_file(source: Any, metadata: pq.FileMetaData, max_rows: int) -> int:
    """Bytes of the longest text that rows of a whole file may share. Raises: as ``longest_text``."""
    footer, schema = ParquetFooter(metadata, source), metadata.schema
    chunks = ((group, leaf) for group in range(metadata.num_row_groups) for leaf in range(metadata.num_columns))
    return max(
        (
            longest_text(source, metadata, group, schema.column(leaf).path, footer.chunk(group, leaf), max_rows)
            for group, leaf in chunks
        ),
        default=0,
    )


def longest_text(
    source: Any, metadata: pq.FileMetaData, group: int, leaf: str, chunk: ColumnChunk, max_rows: int
) -> int:
    """Bytes of the longest text that rows of a column chunk may share.

    Args:
        source: the file, as Arrow opens it.
        metadata: its footer.
        group: the row group.
        leaf: the path of the column.
        chunk: the column's entry in the footer for the group.
        max_rows: the most rows in a batch.

    Returns: 0 if a batch is small in any case. Without a dictionary the search ends at the first text that is longer
        than ``MAX_TEXT_BYTES``.
    Raises: pyarrow.ArrowInvalid for a chunk with an impossible decompressed size.
    """
    size = chunk.uncompressed_bytes
    if size > _MAX_CHUNK_BYTES and size > _MAX_RATIO * max(chunk.compressed_bytes, 1):
        raise pa.ArrowInvalid(
            f"the footer states that {chunk.compressed_bytes} bytes of the column {leaf} decompress to {size}"
        )
    if chunk.physical_type != "BYTE_ARRAY" or size * max_rows <= _SMALL_BATCH_BYTES:
        return 0
    if not chunk.values_share_bytes:
        return 0
    if chunk.values_share_prefixes:
        return _longest_of_rows(source, metadata, group, leaf, rows_per_batch(size, max_rows))
    file = pq.ParquetFile(source, metadata=metadata, read_dictionary=[leaf], buffer_size=_PROBE_BUFFER)
    # reading the first row decodes the whole dictionary
    for batch in file.iter_batches(1, row_groups=[group], columns=[leaf]):
        return _longest(batch.column(0))
    return 0


def _longest_of_rows(source: Any, metadata: pq.FileMetaData, group: int, leaf: str, batch_rows: int) -> int:
    longest = 0
    file = pq.ParquetFile(source, metadata=metadata, buffer_size=_PROBE_BUFFER)
    for batch in file.iter_batches(batch_rows, row_groups=[group], columns=[leaf]):
        longest = max(longest, _longest(batch.column(0)))
        if longest > MAX_TEXT_BYTES:
            break
    return longest


def _longest(array: pa.Array) -> int:
    """Bytes of the longest text in an array of any type. Unused texts of a dictionary count too."""
    if pa.types.is_dictionary(array.type):
        return _longest(array.dictionary)
    if pa.types.is_string_view(array.type) or pa.types.is_binary_view(array.type):
        array = array.cast(pa.large_binary())
    if any(is_text(array.type) for is_text in _TEXTS):
        return int(pc.max(pc.binary_length(array)).as_py() or 0)
    if pa.types.is_struct(array.type):
        return max((_longest(array.field(i)) for i in range(array.type.num_fields)), default=0)
    if pa.types.is_map(array.type):
        return max(_longest(array.keys), _longest(array.items))
    nested = pa.types.is_list(array.type) or pa.types.is_large_list(array.type)
    return _longest(array.values) if nested else 0
