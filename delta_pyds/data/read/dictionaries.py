"""Text that a file keeps in dictionaries, decoded as such: the rows that stay are made plain, and no others.

Invariants: a value that names no entry of its dictionary is an error here; a batch is so short that its text, once
plain, is no more than other batches may hold.

Made plain at once, text takes six times as long to decode, and what is dropped is copied for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from delta_pyds.columnar.cast import MaybeConvert
from delta_pyds.columnar.parquet_footer import ColumnChunk, ParquetFooter
from delta_pyds.data.file_schema import FileColumn

# batches end where row groups do, and dictionaries change
_LEAST_ROWS = 1 << 14
# plain text takes four for its length alone: what takes less is in a dictionary, but for nulls
_MOST_BYTES_PER_VALUE = 3
# PLAIN, RLE and BIT_PACKED, PLAIN_DICTIONARY, RLE_DICTIONARY: of others Arrow makes no dictionaries
_ENCODINGS = frozenset({0, 2, 3, 4, 8})
_MOST_BYTES = 64 << 20


def dictionary_columns(
    columns: Sequence[FileColumn],
    metadata: Any,
    footer: ParquetFooter,
    row_groups: Sequence[int],
    leaves: Sequence[int],
) -> tuple[str, ...]:
    """The names of the columns among ``leaves`` that these row groups keep in dictionaries, each in few bytes."""
    if not row_groups or min(metadata.row_group(i).num_rows for i in row_groups) < _LEAST_ROWS:
        return ()
    wanted = frozenset(leaves)
    names = [column.name for column in columns]
    return tuple(
        column.name
        for column in columns
        if column.first_leaf in wanted
        and (pt.is_string(column.data_type) or pt.is_binary(column.data_type))
        and not column.is_extension
        # Arrow is told by names, in which dots also stand before nested fields
        and "." not in column.name
        and names.count(column.name) == 1
        and all(_is_small(footer.chunk(i, column.first_leaf)) for i in row_groups)
    )


def _is_small(chunk: ColumnChunk) -> bool:
    return (
        chunk.physical_type == "BYTE_ARRAY"
        and chunk.has_dictionary
        and bool(chunk.encodings)
        and chunk.encodings <= _ENCODINGS
        and chunk.uncompressed_bytes <= _MOST_BYTES_PER_VALUE * chunk.num_values
    )


def checked_pieces(batch: pa.RecordBatch, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The batch, cut where its text would be too much. ``names``: of the columns that came as dictionaries.

    Raises: pa.ArrowInvalid for a value that is no entry.
    """
    width = 0
    for column in map(batch.column, names):
        ends = pc.min_max(column.indices).as_py()
        if ends["min"] is not None and not 0 <= ends["min"] <= ends["max"] < len(column.dictionary):
            raise pa.ArrowInvalid(f"a value names the entry {ends['max']} of {len(column.dictionary)} in a dictionary")
        width += pc.max(pc.binary_length(column.dictionary)).as_py() or 0
    if width * batch.num_rows <= _MOST_BYTES:
        yield batch
        return
    rows = max(1, _MOST_BYTES // width)
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def made_plain(column: FileColumn, convert: MaybeConvert) -> MaybeConvert:
    """The conversion of a column's values, which may come as a dictionary where the file does not ask for one."""
    if not pt.is_string(column.data_type) and not pt.is_binary(column.data_type):
        return convert

    def converting(array: pa.Array) -> pa.Array:
        text = array.dictionary_decode() if pt.is_dictionary(array.type) else array
        return text if convert is None else convert(text)

    return converting
