"""Batch sizes for decoding checkpoints, so that memory stays bounded by the size of their files.

A Parquet file of a few kilobytes may decode to many gigabytes: thousands of rows may share one long text of a
dictionary, or repeat that of the row before (DELTA_BYTE_ARRAY), and Arrow copies it for each of them. A dictionary
itself is small enough to be looked at first; else texts are looked at few at a time. None of them is longer than
what the chunk has in all.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from delta_pyds.columnar.parquet_footer import ColumnChunk, ParquetFooter

# What a batch of one text column should take, of which there are several at a time: decoded, grown, looked at.
MAX_BATCH_BYTES = 64 << 20
# What it may take, without being looked at first.
_SMALL_BATCH_BYTES = 256 << 20
# A file has some kilobytes of statistics, and no path is as long: a text of more is not worth its memory.
MAX_TEXT_BYTES = 1 << 20
# More than this, and so much more than what is in the file, no writer's column chunk decompresses to.
_MAX_CHUNK_BYTES = 1 << 30
_MAX_RATIO = 1_000
_PROBE_BUFFER = 1 << 16


def rows_at_once(longest_text: int, most: int) -> int:
    """How many rows whose texts may each be so long fit into a batch; one at least, and ``most`` at most."""
    return most if longest_text <= 0 else max(1, min(most, MAX_BATCH_BYTES // longest_text))


def longest_of_all(source: Any, metadata: pq.FileMetaData, most_rows: int) -> int:
    """Bytes of the longest text that rows of a whole file may share. Raises: pyarrow.ArrowInvalid, as for one chunk."""
    footer, schema = ParquetFooter(metadata, source), metadata.schema
    chunks = ((group, leaf) for group in range(metadata.num_row_groups) for leaf in range(metadata.num_columns))
    return max(
        (
            longest_text(source, metadata, group, schema.column(leaf).path, footer.chunk(group, leaf), most_rows)
            for group, leaf in chunks
        ),
        default=0,
    )


def longest_text(
    source: Any, metadata: pq.FileMetaData, group: int, leaf: str, chunk: ColumnChunk, most_rows: int
) -> int:
    """Bytes of the longest text that rows of a column chunk may share; 0 where a batch is small whatever it is.

    Of texts without a dictionary it may be any that is longer than ``MAX_TEXT_BYTES``, if there is one.

    ``source``: what Arrow opens. ``leaf``: the path of the column; ``chunk``: what the footer says of it in the group.

    Raises: pyarrow.ArrowInvalid for a chunk that decompresses to what no file can hold.
    """
    size = chunk.uncompressed_bytes
    if size > _MAX_CHUNK_BYTES and size > _MAX_RATIO * max(chunk.compressed_bytes, 1):
        raise pa.ArrowInvalid(f"its column {leaf} promises {size} bytes out of {chunk.compressed_bytes}")
    if chunk.physical_type != "BYTE_ARRAY" or size * most_rows <= _SMALL_BATCH_BYTES:
        return 0
    if not chunk.values_share_bytes:
        return 0
    if chunk.values_share_beginnings:
        return _longest_of_rows(source, metadata, group, leaf, rows_at_once(size, most_rows))
    file = pq.ParquetFile(source, metadata=metadata, read_dictionary=[leaf], buffer_size=_PROBE_BUFFER)
    # the first row brings the whole dictionary along
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
    """Bytes of the longest text in an array of any shape; of dictionaries, whether it is used or not."""
    if pa.types.is_dictionary(array.type):
        return _longest(array.dictionary)
    if pa.types.is_string_view(array.type) or pa.types.is_binary_view(array.type):
        array = array.cast(pa.large_binary())
    if pa.types.is_string(array.type) or pa.types.is_binary(array.type) or _is_large(array.type):
        return int(pc.max(pc.binary_length(array)).as_py() or 0)
    if pa.types.is_struct(array.type):
        return max((_longest(array.field(i)) for i in range(array.type.num_fields)), default=0)
    if pa.types.is_map(array.type):
        return max(_longest(array.keys), _longest(array.items))
    nested = pa.types.is_list(array.type) or pa.types.is_large_list(array.type)
    return _longest(array.values) if nested else 0


def _is_large(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_large_string(data_type) or pa.types.is_large_binary(data_type))
