"""The part of Thrift's compact protocol that Parquet footers need: find, skip and read values.

Invariant: for any bytes, the result is a value, a position within the bytes, or ThriftError; nothing is read beyond the
end.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)

_MAX_DEPTH = 32


class ThriftError(ValueError):
    """The bytes are not a value of the type."""


# Patterns for the usual form of a footer's column, which can then be skipped with two calls. They are small, because
# compiling them takes as long as skipping a hundred columns without them. Columns in other forms are skipped without
# them. A field begins with a byte that has the difference of its number to the previous one, and its type. The byte 0
# ends a struct.


def _heads(*kinds: int) -> bytes:
    """A pattern of the first byte of a field that has one of these types."""
    return b"[" + b"".join(re.escape(bytes([step << 4 | kind])) for kind in kinds for step in range(1, 16)) + b"]"


def _several(element: bytes, most: int, *kinds: int) -> bytes:
    """A pattern of a list of up to ``most`` elements (at most 14), whose number and type are in one byte."""
    heads = [b"".join(re.escape(bytes([n << 4 | kind])) for kind in kinds) for n in range(most + 1)]
    return b"|".join(b"[%s](?:%s){%d}" % (head, element, n) for n, head in enumerate(heads))


_VARINT = rb"[\x80-\xff]{0,9}[\x00-\x7f]"
_NUMBER = _heads(I16, I32, I64) + _VARINT + b"|" + _heads(TRUE, FALSE)
_NUMBERS = b"%s(?:%s)" % (_heads(LIST), _several(_VARINT, 9, I32, I64))
# up to 40 bytes, with their length in one byte
_SHORT = b"(?:" + b"|".join(re.escape(bytes([n])) + b".{%d}" % n for n in range(41)) + b")"
_STATISTICS = b"%s(?:%s|%s|%s%s)*\x00" % (_heads(STRUCT), _NUMBER, _NUMBERS, _heads(BINARY), _SHORT)
_PAIRS = b"%s(?:%s)" % (_heads(LIST), _several(b"(?:%s)*\x00" % _NUMBER, 4, STRUCT))
# from the start of the struct to the names in the inner struct, and from the end of the names to both ends
_TO_NAMES = b"(?:%s)*%s(?:%s|%s)*%s" % (_NUMBER, _heads(STRUCT), _NUMBER, _NUMBERS, _heads(LIST))
_TO_END = b"(?:%s|%s|%s|%s)*\x00(?:%s)*\x00" % (_NUMBER, _NUMBERS, _PAIRS, _STATISTICS, _NUMBER)


@cache
def _patterns() -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    return re.compile(_TO_NAMES), re.compile(_TO_END, re.DOTALL)


def varint(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned number, and its end."""
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ThriftError("a number does not end")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _zigzag(data: bytes, at: int) -> tuple[int, int]:
    if at < len(data) and data[at] < 0x80:
        return (data[at] >> 1) ^ -(data[at] & 1), at + 1
    value, at = varint(data, at)
    return (value >> 1) ^ -(value & 1), at


def list_header(data: bytes, at: int) -> tuple[int, int, int]:
    """The type and number of the elements of a list, and the start of the first one.

    Raises: ThriftError for more elements than bytes.
    """
    if at >= len(data):
        raise ThriftError("a list is cut short")
    head, at = data[at], at + 1
    size = head >> 4
    if size == 15:
        size, at = varint(data, at)
    if size > len(data) - at:
        raise ThriftError(f"a list has {size} elements, more than the remaining bytes")
    return head & 15, size, at


def field_header(data: bytes, at: int, before: int) -> tuple[int, int, int]:
    """The number and type of a field, and the start of its value; the type 0 ends the struct."""
    if at >= len(data):
        raise ThriftError("a struct is cut short")
    head, at = data[at], at + 1
    if not head:
        return 0, 0, at
    if head >> 4:
        return before + (head >> 4), head & 15, at
    number, at = _zigzag(data, at)
    return number, head & 15, at


def skip(data: bytes, at: int, kind: int, depth: int = 0) -> int:
    """The end of the value that starts at ``at``."""
    if depth > _MAX_DEPTH:
        raise ThriftError("it is nested too deeply")
    if kind in (TRUE, FALSE):
        return at  # in a field the type is the value
    if kind == STRUCT:
        _, kind, at = field_header(data, at, 0)
        while kind:
            at = skip(data, at, kind, depth + 1)
            _, kind, at = field_header(data, at, 0)
        return at
    if kind in (LIST, SET):
        element, size, at = list_header(data, at)
        if element in (TRUE, FALSE):
            return at + size
        for _ in range(size):
            at = skip(data, at, element, depth + 1)
        return at
    return read(data, at, kind, depth)[1]


def end_of_plain_column(data: bytes, at: int) -> int | None:
    """The end of a struct such as ``ColumnChunk``; None if it does not have the usual form.

    In the usual form, only numbers follow the inner struct.
    """
    to_names, to_end = _patterns()
    before = to_names.match(data, at)
    if before is not None:
        names = before.end()
        head = data[names] if names < len(data) else 0
        names += 1
        if head & 15 == BINARY and head < 0xF0:
            for _ in range(head >> 4):
                # a name that is longer or cut short has no matching end
                names += 1 + data[names] if names < len(data) and data[names] < 0x80 else len(data)
            after = to_end.match(data, names)
            if after is not None:
                return after.end()
    return None


def read_fields(data: bytes, at: int, wanted: Mapping[int, int], last: int | None = None) -> dict[int, Any]:
    """The wanted fields of the struct at ``at``, by number.

    Args:
        wanted: their numbers and types, none of them bool; a field with another type is skipped.
        last: the last number to look for, if the fields are in order.
    """
    found: dict[int, Any] = {}
    number, kind, at = field_header(data, at, 0)
    while kind and (last is None or number <= last):
        if wanted.get(number) == kind:
            found[number], at = read(data, at, kind)
        else:
            at = skip(data, at, kind)
        number, kind, at = field_header(data, at, number)
    return found


def read(data: bytes, at: int, kind: int, depth: int = 0) -> tuple[Any, int]:
    """A value and its end. A struct is a dictionary by field number, a list a list, binary is bytes."""
    if depth > _MAX_DEPTH:
        raise ThriftError("it is nested too deeply")
    if kind in (TRUE, FALSE):
        # in a struct the type is the value; in a list the value is a byte
        return _bytes(data, at, 1)[0] == TRUE, at + 1
    if kind in (I16, I32, I64):
        return _zigzag(data, at)
    if kind == BYTE:
        return _bytes(data, at, 1)[0], at + 1
    if kind == DOUBLE:
        return _bytes(data, at, 8), at + 8
    if kind == BINARY:
        size, at = varint(data, at)
        return _bytes(data, at, size), at + size
    if kind in (LIST, SET):
        element, size, at = list_header(data, at)
        values = []
        for _ in range(size):
            value, at = read(data, at, element, depth + 1)
            values.append(value)
        return values, at
    if kind == STRUCT:
        return _fields(data, at, depth)
    raise ThriftError(f"it has a value of the unknown type {kind}")


def _fields(data: bytes, at: int, depth: int) -> tuple[dict[int, Any], int]:
    found: dict[int, Any] = {}
    number, kind, at = field_header(data, at, 0)
    while kind:
        if kind in (TRUE, FALSE):
            found[number] = kind == TRUE
        else:
            found[number], at = read(data, at, kind, depth + 1)
        number, kind, at = field_header(data, at, number)
    return found, at


def _bytes(data: bytes, at: int, size: int) -> bytes:
    if size > len(data) - at:
        raise ThriftError(f"{size} bytes are needed, but only {max(0, len(data) - at)} remain")
    return data[at : at + size]
