"""Text that a file stores in dictionaries, decoded as dictionaries: only the remaining rows are expanded.

Invariants: an index outside of its dictionary is an error here. A batch is so short that its expanded text does not
exceed the size of other batches.

Decoding to expanded text takes six times as long, and copies rows that are dropped later.
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

# batches end where row groups end and where dictionaries change
_LEAST_ROWS = 1 << 14
# expanded text takes four bytes for its length alone: fewer bytes per value mean a dictionary, or nulls
_MOST_BYTES_PER_VALUE = 3
# PLAIN, RLE and BIT_PACKED, PLAIN_DICTIONARY, RLE_DICTIONARY: Arrow makes no dictionaries from other encodings
_ENCODINGS = frozenset({0, 2, 3, 4, 8})
_MOST_BYTES = 64 << 20


def dictionary_columns(
    columns: Sequence[FileColumn],
    metadata: Any,
    footer: ParquetFooter,
    row_groups: Sequence[int],
    leaves: Sequence[int],
) -> tuple[str, ...]:
    """The names of the columns among ``leaves`` that these row groups store compactly in dictionaries."""
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
        # Arrow needs names, and treats dots in them as separators of nested fields
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
    """The batch, split if its expanded text would be too large. ``names``: the columns decoded as dictionaries.

    Raises: pa.ArrowInvalid for an index outside of its dictionary.
    """
    width = 0
    for column in map(batch.column, names):
        ends = pc.min_max(column.indices).as_py()
        if ends["min"] is not None and not 0 <= ends["min"] <= ends["max"] < len(column.dictionary):
            raise pa.ArrowInvalid(f"the dictionary index {ends['max']} exceeds the {len(column.dictionary)} entries")
        width += pc.max(pc.binary_length(column.dictionary)).as_py() or 0
    if width * batch.num_rows <= _MOST_BYTES:
        yield batch
        return
    rows = max(1, _MOST_BYTES // width)
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def expanding_dictionaries(column: FileColumn, convert: MaybeConvert) -> MaybeConvert:
    """The conversion of a column's values, preceded by the expansion of a dictionary that the reader asked for."""
    if not pt.is_string(column.data_type) and not pt.is_binary(column.data_type):
        return convert

    def converting(array: pa.Array) -> pa.Array:
        # by class: `pt.is_dictionary` would create a type object for each array
        text = array.dictionary_decode() if isinstance(array, pa.DictionaryArray) else array
        return text if convert is None else convert(text)

    return converting
