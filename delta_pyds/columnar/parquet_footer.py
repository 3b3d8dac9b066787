"""Parquet files opened with a checked footer, and the footer's data about each column.

Invariant: no footer can crash the process. Arrow's Python classes for the columns of a row group call C++. It throws an
exception, which nothing catches, if a footer contradicts itself (types, codecs, lengths of statistics and histograms,
encryption). Arrow cannot return a damaged footer as bytes either: writing one also crashes the process. So
``RowGroupMetaData.column`` is never called for a file that another program may have written. The footer's bytes are
read from the file, and the results of Arrow and of this module must agree.

Format: parquet.thrift, ``FileMetaData``.
"""

from __future__ import annotations

import io
import itertools
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from delta_pyds.columnar.older_arrow import PARQUET_OPTIONS
from delta_pyds.columnar.thrift import (
    I32,
    I64,
    LIST,
    STRUCT,
    ThriftError,
    end_of_plain_column,
    field_header,
    list_header,
    read,
    read_fields,
    skip,
)

_TYPES = ("BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
_CODECS = ("UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW")
# the stored form of bounds of numeric types; bounds of other types are bytes of any length, or have no order
_PLAIN = {
    "INT32": struct.Struct("<i"),
    "INT64": struct.Struct("<q"),
    "FLOAT": struct.Struct("<f"),
    "DOUBLE": struct.Struct("<d"),
    "BOOLEAN": struct.Struct("<B"),
}
# a footer is followed by its length and the magic number
_LENGTH_BYTES, _MAGIC_BYTES = 4, 4
_END_BYTES = _LENGTH_BYTES + _MAGIC_BYTES
# a ColumnOrder whose field 1, TYPE_ORDER, is set
_BY_TYPE = b"\x1c\x00\x00"
_FILE_ROW_GROUPS, _FILE_COLUMN_ORDERS = 4, 7
_GROUP_COLUMNS = 1
_CHUNK_META_DATA, _CHUNK_CRYPTO_METADATA = 3, 8
(
    _TYPE, _ENCODINGS, _PATH, _CODEC, _NUM_VALUES, _UNCOMPRESSED, _COMPRESSED, _DATA_PAGE, _DICTIONARY_PAGE, _STATISTICS
) = (1, 2, 3, 4, 5, 6, 7, 9, 11, 12)  # fmt: skip
_PLAIN_DICTIONARY, _RLE_DICTIONARY = 2, 8
# PLAIN (0) and DELTA_LENGTH_BYTE_ARRAY (6), in which every value has its own bytes; RLE (3) and BIT_PACKED (4), which
# encode levels; and dictionaries
_KNOWN_ENCODINGS = frozenset({0, 6, 3, 4, _PLAIN_DICTIONARY, _RLE_DICTIONARY})
# a field with another type is not used
_WANTED = {
    _TYPE: I32, _ENCODINGS: LIST, _CODEC: I32, _NUM_VALUES: I64, _UNCOMPRESSED: I64, _COMPRESSED: I64, _DATA_PAGE: I64,
    _DICTIONARY_PAGE: I64, _STATISTICS: STRUCT,
}  # fmt: skip
_OLD_MAX, _OLD_MIN, _NULL_COUNT, _MAX, _MIN = 1, 2, 3, 5, 6
# compiling the patterns that skip a column pays off only for more columns than most tasks read
_WALKED_BY_HAND = 64
_columns_seen = itertools.count()


def open_parquet(
    source: Any,
    *,
    pre_buffer: bool = False,
    verify_page_checksums: bool = True,
    metadata: Any = None,
    dictionaries: Sequence[str] = (),
    int96_unit: str = "us",  # nanoseconds overflow in the year 2262
) -> pq.ParquetFile:
    """Open a Parquet file, and check that its footer does not contradict itself.

    Args:
        source: an open file; the caller closes it.
        verify_page_checksums: verify the checksums of pages, where present (a footer has none).
        metadata: the file's footer, if it was read already.
        dictionaries: the paths of columns to decode as dictionaries.
        int96_unit: the unit that INT96 timestamps are decoded to.
    Raises: Arrow's errors; pa.ArrowInvalid.
    """
    try:
        metadata = short_footer(source) if metadata is None else metadata
        parquet = pq.ParquetFile(
            source,
            pre_buffer=pre_buffer,
            page_checksum_verification=verify_page_checksums,
            metadata=metadata,
            read_dictionary=list(dictionaries) or None,
            coerce_int96_timestamp_unit=int96_unit,
            **PARQUET_OPTIONS,
        )
    except UnicodeDecodeError as e:
        raise pa.ArrowInvalid(f"the footer has a name that is not UTF-8 ({e.reason})") from e
    _check(parquet.metadata)
    return parquet


def short_footer(source: Any) -> Any:
    """The footer of a remote object, if fewer bytes were fetched than Arrow would read; None for any other file.

    Raises: Arrow's errors, and errors of reading.
    """
    read_footer = getattr(source, "short_footer", None)
    footer = None if read_footer is None else read_footer()
    if footer is None:
        return None
    source = pa.BufferReader(footer)
    return pq.ParquetFile(source, **PARQUET_OPTIONS).metadata


def _check(metadata: Any) -> None:
    leaves, rows = metadata.num_columns, 0
    for i in range(metadata.num_row_groups):
        group = metadata.row_group(i)
        if group.num_columns != leaves:
            raise pa.ArrowInvalid(f"row group {i} has {group.num_columns} columns, but the schema has {leaves}")
        if group.num_rows < 0:
            raise pa.ArrowInvalid(f"row group {i} has {group.num_rows} rows, a negative number")
        rows += group.num_rows
    if rows != metadata.num_rows:
        raise pa.ArrowInvalid(f"the footer states {metadata.num_rows} rows, but its row groups have {rows}")


@dataclass(frozen=True)
class ColumnChunk:
    """The footer's data about one leaf column in one row group.

    Attributes:
        physical_type, codec: their names in parquet.thrift; ``codec`` is ``UNKNOWN`` for an undefined number.
        num_values: including nulls.
        first_byte: the start of its first page.
        has_dictionary: it may have a dictionary page.
        encodings: by their numbers in parquet.thrift.
        null_count, minimum, maximum: None if unknown. Bounds are numbers for numeric columns, bytes for others.
        contradicts: the file's statistics contradict each other. Some of them are unknown here, but other readers may
            trust them.
    """

    physical_type: str
    codec: str
    num_values: int
    uncompressed_bytes: int
    compressed_bytes: int
    first_byte: int
    has_dictionary: bool
    encodings: frozenset[int]
    null_count: int | None
    minimum: Any
    maximum: Any
    contradicts: bool = False

    @property
    def values_share_bytes(self) -> bool:
        """Whether all values together may be longer than ``uncompressed_bytes``; a single value never is.

        Values may share a dictionary entry or a prefix of the previous value (DELTA_BYTE_ARRAY).
        """
        return self.has_dictionary or self.values_share_prefixes

    @property
    def values_share_prefixes(self) -> bool:
        """Whether values may share prefixes, outside a dictionary, according to the encodings."""
        return not self.encodings or not self.encodings <= _KNOWN_ENCODINGS


class ColumnChunks(Protocol):
    """The column chunks of a file, parsed when they are asked for."""

    def chunk(self, row_group: int, leaf: int) -> ColumnChunk:
        """The data about a leaf column in a row group. Raises: pa.ArrowInvalid."""
        ...


class ParquetFooter:
    """The columns of a file's row groups, parsed lazily.

    Args:
        metadata: as parsed by Arrow.
        source: the open file. Its footer is read again immediately; a remote source has these bytes cached.
    Raises, on creation and on each call: pa.ArrowInvalid for a footer that contradicts itself.
    """

    def __init__(self, metadata: Any, source: Any) -> None:
        self._metadata = metadata
        self._schema = metadata.schema
        self._bytes = _footer_of(source, int(metadata.serialized_size))
        self._known: dict[tuple[int, int], ColumnChunk] = {}
        self._names_agree = False

    def chunk(self, row_group: int, leaf: int) -> ColumnChunk:
        """The data about a leaf column in a row group."""
        found = self._known.get((row_group, leaf))
        if found is None:
            found = self._known[row_group, leaf] = self._read(row_group, leaf)
        return found

    def _read(self, row_group: int, leaf: int) -> ColumnChunk:
        starts, ordered = self._positions
        column = self._schema.column(leaf)
        kind = column.physical_type
        # bounds of a decimal stored as bytes compare as numbers
        by_type = ordered[leaf : leaf + 1] == [True] and (kind != "BYTE_ARRAY" or column.logical_type.type != "DECIMAL")
        try:
            chunk = _column_chunk(self._bytes, starts[row_group][leaf], kind, by_type)
        except (ThriftError, IndexError, TypeError, KeyError) as e:
            raise pa.ArrowInvalid(
                f"the footer's entry of column {leaf} in row group {row_group} is invalid: {e}"
            ) from e
        rows = self._metadata.row_group(row_group).num_rows
        if not column.max_repetition_level and chunk.num_values != rows:
            raise pa.ArrowInvalid(
                f"the footer states {chunk.num_values} values of column {leaf} in row group {row_group}, "
                f"but {rows} rows"
            )
        return chunk

    def has_bytes(self, text: bytes) -> bool:
        """Whether the footer has these bytes anywhere."""
        return text in self._bytes

    def check_names(self) -> None:
        """Check that both lists of column names in the footer agree, to detect damage to one of them.

        Otherwise a column with a damaged name would count as missing and read as null.
        """
        if self._names_agree:
            return
        data, groups = self._bytes, self._positions[0]
        for starts in groups[:1]:
            for leaf, start in enumerate(starts):
                path, names = self._schema.column(leaf).path, _path_of_chunk(data, start)
                if path.encode() != b".".join(names):
                    shown = b".".join(names).decode("utf-8", "replace")
                    raise pa.ArrowInvalid(
                        f"the footer names a column {path!r} in the schema, but {shown!r} in a row group"
                    )
        self._names_agree = True

    @cached_property
    def _positions(self) -> tuple[list[list[int]], list[bool]]:
        """The start of each column of each row group; whether the bounds of each column have the order of its type."""
        data, at, number = self._bytes, 0, 0
        groups: list[list[int]] = []
        ordered: list[bool] = []
        try:
            number, kind, at = field_header(data, at, 0)
            while kind:
                if number == _FILE_ROW_GROUPS and kind == LIST:
                    _, count, at = list_header(data, at)
                    groups = []
                    for _ in range(count):
                        starts, at = _columns_of_group(data, at)
                        groups.append(starts)
                elif number == _FILE_COLUMN_ORDERS and kind == LIST:
                    ordered, at = _column_orders(data, at)
                else:
                    at = skip(data, at, kind)
                number, kind, at = field_header(data, at, number)
        except (ThriftError, TypeError) as e:
            raise pa.ArrowInvalid(f"the footer is not valid Thrift: {e}") from e
        columns = self._metadata.num_columns
        if len(groups) != self._metadata.num_row_groups or any(len(starts) != columns for starts in groups):
            raise pa.ArrowInvalid("the footer has several lists of row groups or columns, so readers may disagree")
        return groups, ordered


def _footer_of(source: Any, expected: int) -> bytes:
    """The bytes of an open file's footer. ``expected``: their number, which saves a request if it is right."""
    data = _last_bytes(source, expected + _END_BYTES)
    length = int.from_bytes(data[-_END_BYTES:-_MAGIC_BYTES], "little")
    if length + _END_BYTES != len(data):
        # Arrow does not count the signature of an encrypted footer
        data = _last_bytes(source, length + _END_BYTES)
    return data[:-_END_BYTES]


def _last_bytes(source: Any, count: int) -> bytes:
    if isinstance(source, pa.NativeFile):
        # one call: other threads may read from another position meanwhile
        size = source.size()
        return bytes(source.read_at(min(count, size), size - min(count, size)))
    size = source.seek(0, io.SEEK_END)
    source.seek(size - min(count, size))
    return bytes(source.read(min(count, size)))


def _columns_of_group(data: bytes, at: int) -> tuple[list[int], int]:
    """The start of each column, and the end of the row group."""
    starts: list[int] = []
    number, kind, at = field_header(data, at, 0)
    while kind:
        if number == _GROUP_COLUMNS and kind == LIST:
            _, count, at = list_header(data, at)
            starts = []
            for _ in range(count):
                starts.append(at)
                end = _end_if_plain(data, at)
                at = skip(data, at, STRUCT) if end is None else end
        else:
            at = skip(data, at, kind)
        number, kind, at = field_header(data, at, number)
    return starts, at


def _end_if_plain(data: bytes, at: int) -> int | None:
    """``end_of_plain_column``; None for the first columns that a process reads. Most tasks read no others."""
    return end_of_plain_column(data, at) if next(_columns_seen) >= _WALKED_BY_HAND else None


def _column_orders(data: bytes, at: int) -> tuple[list[bool], int]:
    _, count, first = list_header(data, at)
    if data.startswith(_BY_TYPE * count, first):
        return [True] * count, first + len(_BY_TYPE) * count
    orders, at = read(data, at, LIST)
    return [isinstance(order, dict) and 1 in order for order in orders], at


def _path_of_chunk(data: bytes, at: int) -> list[bytes]:
    try:
        meta = read_fields(data, at, {_CHUNK_META_DATA: STRUCT}).get(_CHUNK_META_DATA, {})
        return [bytes(name) for name in meta.get(_PATH, ())]
    except (ThriftError, TypeError, AttributeError) as e:
        raise pa.ArrowInvalid(f"the footer's entry of a column is invalid: {e}") from e


def _column_chunk(data: bytes, at: int, physical_type: str, ordered: bool) -> ColumnChunk:
    plain = _end_if_plain(data, at) is not None
    number, kind, at = field_header(data, at, 0)
    meta: dict[int, Any] = {}
    while kind:
        if number == _CHUNK_CRYPTO_METADATA:
            raise pa.ArrowInvalid("the columns are encrypted")
        if number == _CHUNK_META_DATA and kind == STRUCT:
            # fields of a plain column are in order
            meta = read_fields(data, at, _WANTED, _STATISTICS if plain else None)
            if plain:
                break  # no struct follows, so there is no encryption
        at = skip(data, at, kind)
        number, kind, at = field_header(data, at, number)
    found = _TYPES[meta[_TYPE]] if 0 <= meta[_TYPE] < len(_TYPES) else "UNKNOWN"
    if found != physical_type:
        raise pa.ArrowInvalid(
            f"the footer states a column's type as {physical_type} in the schema, but as {found} in a row group"
        )
    sizes = [meta[n] for n in (_NUM_VALUES, _UNCOMPRESSED, _COMPRESSED, _DATA_PAGE)]
    if min(sizes) < 0:
        raise pa.ArrowInvalid(f"the footer states a negative number for a column: {min(sizes)}")
    num_values, uncompressed, compressed, first_byte = sizes
    # some writers write 0 for "no dictionary"; no page starts at 0, where the magic number is
    dictionary = meta.get(_DICTIONARY_PAGE, 0)
    codec = meta[_CODEC]
    encodings = frozenset(meta.get(_ENCODINGS, ()))
    statistics = meta.get(_STATISTICS, {})
    nulls = statistics.get(_NULL_COUNT)
    minimum, maximum = _bounds(statistics, physical_type, ordered)
    # a column with only nulls has no bounds
    nulls_alone = minimum is not None and nulls == num_values
    crossed = minimum is not None and minimum > maximum
    if nulls_alone:
        nulls = None
    if crossed:
        minimum = maximum = None
    return ColumnChunk(
        physical_type=physical_type,
        codec=_CODECS[codec] if 0 <= codec < len(_CODECS) else "UNKNOWN",
        num_values=num_values,
        uncompressed_bytes=uncompressed,
        compressed_bytes=compressed,
        first_byte=dictionary if 0 < dictionary < first_byte else first_byte,
        has_dictionary=dictionary > 0 or _PLAIN_DICTIONARY in encodings or _RLE_DICTIONARY in encodings,
        encodings=encodings,
        null_count=nulls if nulls is not None and 0 <= nulls <= num_values else None,
        minimum=minimum,
        maximum=maximum,
        contradicts=nulls_alone or crossed,
    )


def _bounds(statistics: dict[int, Any], physical_type: str, ordered: bool) -> tuple[Any, Any]:
    plain = _PLAIN.get(physical_type)
    if ordered:
        low, high = statistics.get(_MIN), statistics.get(_MAX)
    elif plain is not None:
        # the older pair of bounds compares everything as signed, which is right only for numbers
        low, high = statistics.get(_OLD_MIN), statistics.get(_OLD_MAX)
    else:
        return None, None
    # INT96 has no order, and the order of fixed-length bytes depends on the logical type
    if low is None or high is None or physical_type in ("INT96", "FIXED_LEN_BYTE_ARRAY"):
        return None, None
    if plain is None:
        return low, high
    if len(low) != plain.size or len(high) != plain.size:
        return None, None
    values = plain.unpack(low)[0], plain.unpack(high)[0]
    if physical_type == "BOOLEAN":
        return (bool(values[0]), bool(values[1])) if max(values) <= 1 else (None, None)
    return (None, None) if any(map(math.isnan, values)) else values
