"""Parquet footers as trees that a test can change, and changes of all kinds to them.

A footer is a Thrift struct in the compact protocol. A struct is here a dictionary
of field number to ``[type, value]``, a list ``[element type, [values]]``; so whatever
one may write by hand can be written, and nothing is checked.
"""

from __future__ import annotations

import copy
import struct
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

MAGIC = b"PAR1"
TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)

# field numbers of FileMetaData, RowGroup, ColumnChunk, ColumnMetaData and Statistics
SCHEMA, NUM_ROWS, ROW_GROUPS, CREATED_BY, COLUMN_ORDERS = 2, 3, 4, 6, 7
COLUMNS, TOTAL_BYTE_SIZE, GROUP_ROWS = 1, 2, 3
META_DATA, CRYPTO_METADATA = 3, 8
TYPE, ENCODINGS, NUM_VALUES, UNCOMPRESSED, COMPRESSED, DATA_PAGE, DICTIONARY_PAGE, STATISTICS, SIZES = (
    1, 2, 5, 6, 7, 9, 11, 12, 16,
)  # fmt: skip
NULL_COUNT, MIN_VALUE, MAX_VALUE = 3, 6, 5
# of a PageHeader
PAGE_UNCOMPRESSED = 2

Struct = dict[int, list[Any]]


def read_footer(content: bytes) -> Struct:
    """The footer of a Parquet file."""
    return _Reader(content[-8 - struct.unpack("<I", content[-8:-4])[0] : -8]).value(STRUCT)


def with_footer(content: bytes, footer: Struct) -> bytes:
    """The file with another footer."""
    body = content[: -8 - struct.unpack("<I", content[-8:-4])[0]]
    tail = bytes(_value(STRUCT, footer))
    return body + tail + struct.pack("<I", len(tail)) + MAGIC


def chunks(footer: Struct) -> Iterator[Struct]:
    """The ``ColumnChunk`` of each row group and column."""
    for group in footer[ROW_GROUPS][1][1]:
        yield from group[COLUMNS][1][1]


def with_page_size(content: bytes, uncompressed: int) -> bytes:
    """The file of one column and one page, whose header says that the page has so many bytes when it is unpacked."""
    footer = read_footer(content)
    (chunk,) = chunks(footer)
    column = chunk[META_DATA][1]
    at = column[DATA_PAGE][1]
    reader = _Reader(content[at:])
    header = reader.value(STRUCT)
    end = at + reader.at
    header[PAGE_UNCOMPRESSED][1] = uncompressed
    new = _value(STRUCT, header)
    for size in (COMPRESSED, UNCOMPRESSED):
        column[size][1] += len(new) - reader.at
    return with_footer(content[:at] + new + content[end:], footer)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def _byte(self) -> int:
        self.at += 1
        return self._data[self.at - 1]

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return value

    def _zigzag(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def value(self, kind: int) -> Any:
        if kind in (TRUE, FALSE):
            return self._byte()
        if kind == BYTE:
            return self._byte()
        if kind in (I16, I32, I64):
            return self._zigzag()
        if kind in (DOUBLE, BINARY):
            size = 8 if kind == DOUBLE else self._varint()
            self.at += size
            return self._data[self.at - size : self.at]
        if kind in (LIST, SET):
            head = self._byte()
            size = head >> 4 if head >> 4 != 15 else self._varint()
            return [head & 15, [self.value(head & 15) for _ in range(size)]]
        assert kind == STRUCT, kind
        fields: Struct = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._zigzag()
            found = head & 15
            fields[number] = [found, None if found in (TRUE, FALSE) else self.value(found)]
        return fields


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _zigzag(value: int) -> bytes:
    return _varint((value << 1) ^ (value >> 63))


def _value(kind: int, value: Any) -> bytes:
    if kind in (TRUE, FALSE, BYTE):
        return bytes([value])
    if kind in (I16, I32, I64):
        return _zigzag(value)
    if kind == DOUBLE:
        return bytes(value)
    if kind == BINARY:
        return _varint(len(value)) + value
    if kind in (LIST, SET):
        element, values = value
        head = (
            bytes([len(values) << 4 | element]) if len(values) < 15 else bytes([0xF0 | element]) + _varint(len(values))
        )
        return head + b"".join(_value(element, v) for v in values)
    out, before = bytearray(), 0
    for number, (found, content) in sorted(value.items()):
        step = number - before
        out += bytes([step << 4 | found]) if 0 < step <= 15 else bytes([found]) + _zigzag(number)
        out += b"" if found in (TRUE, FALSE) else _value(found, content)
        before = number
    return bytes(out) + b"\0"


# --- changes


_INTEGERS = (
    0,
    1,
    2,
    3,
    5,
    6,
    7,
    40,
    -1,
    127,
    255,
    2**15,
    2**31 - 1,
    -(2**31),
    2**31,
    2**36,
    2**62,
    -(2**63),
    2**63 - 1,
)


def _places(value: Any, kind: int, put: Callable[[Any], None]) -> Iterator[tuple[int, Any, Callable[[Any], None]]]:
    yield kind, value, put
    if kind == STRUCT:
        for cell in value.values():
            if cell[1] is not None:
                yield from _places(cell[1], cell[0], lambda v, cell=cell: cell.__setitem__(1, v))
    elif kind in (LIST, SET):
        for i, item in enumerate(value[1]):
            yield from _places(item, value[0], lambda v, i=i: value[1].__setitem__(i, v))


def mutated(footer: Struct, random: Random) -> Struct:
    """The footer with one thing in it changed: a number, some bytes, a field or an element too many or too few."""
    footer = copy.deepcopy(footer)
    places = list(_places(footer, STRUCT, lambda _: None))
    while True:
        kind, value, put = random.choice(places)
        if kind in (BYTE, I16, I32, I64):
            put(random.choice((*_INTEGERS, value + 1, value - 1, value * 2)))
        elif kind == BINARY:
            put(random.choice((b"", value[:-1], value + b"x", b"\xff" * len(value), b"\0" * 3, value * 2)))
        elif kind == STRUCT and value:
            number = random.choice(list(value))
            if random.random() < 0.5:
                del value[number]
            else:
                value[random.randrange(1, 18)] = copy.deepcopy(value[number])
        elif kind in (LIST, SET) and value[1]:
            at = random.randrange(len(value[1]))
            if random.random() < 0.5:
                del value[1][at]
            else:
                value[1].insert(random.randrange(len(value[1]) + 1), copy.deepcopy(value[1][at]))
        else:
            continue
        return footer
