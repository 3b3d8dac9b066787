"""The binary form of variant values: encoding of values, decoding of objects.

Raises: ``ValueError`` with the reason for invalid bytes.
Specification: Parquet "Variant Binary Encoding".
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from itertools import accumulate, pairwise
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

NULL = b"\x00"
_SHORT_STRING_LIMIT = 64
_OBJECT, _ARRAY = 2, 3

Encoder = Callable[[Any], bytes]


def primitive_encoder(data_type: pa.DataType) -> tuple[Encoder, pa.DataType | None] | None:
    """The encoder for Python values of an Arrow type, and the type to view the array as first (None: its own).

    None for a type that variants do not support.
    """
    fixed: dict[pa.DataType, tuple[str, int, pa.DataType | None]] = {
        pa.int8(): ("<Bb", 3, None),
        pa.int16(): ("<Bh", 4, None),
        pa.int32(): ("<Bi", 5, None),
        pa.int64(): ("<Bq", 6, None),
        pa.float64(): ("<Bd", 7, None),
        pa.date32(): ("<Bi", 11, pa.int32()),
        pa.float32(): ("<Bf", 14, None),
        pa.time64("us"): ("<Bq", 17, pa.int64()),
    }
    if data_type in fixed:
        form, code, storage = fixed[data_type]
        return _packer(form, code), storage
    if pt.is_timestamp(data_type):
        codes = {("us", True): 12, ("us", False): 13, ("ns", True): 18, ("ns", False): 19}
        found = codes.get((data_type.unit, data_type.tz is not None))
        return None if found is None else (_packer("<Bq", found), pa.int64())
    encoder: Encoder | None = None
    if pt.is_boolean(data_type):
        encoder = _boolean
    elif pt.is_decimal128(data_type):
        encoder = _decimal_encoder(data_type.precision, data_type.scale)
    elif pt.is_string(data_type) or pt.is_large_string(data_type):
        encoder = _string
    elif pt.is_binary(data_type) or pt.is_large_binary(data_type):
        encoder = _binary
    elif pt.is_fixed_size_binary(data_type) and data_type.byte_width == 16:
        return (lambda uuid: bytes([20 << 2]) + uuid), None
    return None if encoder is None else (encoder, None)


def _packer(form: str, code: int) -> Encoder:
    pack = struct.Struct(form).pack
    return lambda v: pack(code << 2, v)


def _boolean(value: bool) -> bytes:
    return bytes([(1 if value else 2) << 2])


def _binary(value: bytes) -> bytes:
    return struct.pack("<BI", 15 << 2, len(value)) + value


def _string(text: str) -> bytes:
    data = text.encode()
    if len(data) < _SHORT_STRING_LIMIT:
        return bytes([len(data) << 2 | 1]) + data
    return struct.pack("<BI", 16 << 2, len(data)) + data


def _decimal_encoder(precision: int, scale: int) -> Encoder:
    code, width = (8, 4) if precision <= 9 else (9, 8) if precision <= 18 else (10, 16)
    header = bytes([code << 2, scale])

    def encode(value: Decimal) -> bytes:
        sign, digits, _ = value.as_tuple()  # Arrow's decimals always have the exponent -scale
        unscaled = int("".join(map(str, digits)) or "0")
        return header + (-unscaled if sign else unscaled).to_bytes(width, "little", signed=True)

    return encode


def encode_object(fields: Sequence[tuple[int, bytes]]) -> bytes:
    """Encode an object from (key id, encoded value) pairs, which must be sorted by key name."""
    ends = [0, *accumulate(len(value) for _, value in fields)]
    id_width, offset_width = _width(max((key for key, _ in fields), default=0)), _width(ends[-1])
    large = len(fields) > 255
    header = ((large << 4 | (id_width - 1) << 2 | (offset_width - 1)) << 2) | _OBJECT
    return b"".join(
        [
            bytes([header]),
            len(fields).to_bytes(4 if large else 1, "little"),
            _packed((key for key, _ in fields), id_width),
            _packed(ends, offset_width),
            *(value for _, value in fields),
        ]
    )


def encode_array(elements: Sequence[bytes]) -> bytes:
    """Encode an array of encoded values."""
    ends = [0, *accumulate(map(len, elements))]
    offset_width = _width(ends[-1])
    large = len(elements) > 255
    header = ((large << 2 | (offset_width - 1)) << 2) | _ARRAY
    count = len(elements).to_bytes(4 if large else 1, "little")
    return b"".join([bytes([header]), count, _packed(ends, offset_width), *elements])


def object_parts(data: bytes) -> dict[int, bytes]:
    """The fields of an encoded object: key id to encoded value."""
    if not data or data[0] & 3 != _OBJECT:
        raise ValueError("a value that is not an object is stored both shredded and not")
    info = data[0] >> 2
    offset_width, id_width, large = (info & 3) + 1, (info >> 2 & 3) + 1, info >> 4 & 1
    ids_at = 5 if large else 2
    count = int.from_bytes(data[1:ids_at], "little")
    offsets_at = ids_at + count * id_width
    values_at = offsets_at + (count + 1) * offset_width
    if values_at > len(data):
        raise ValueError("an object ends in the middle of its header")
    ids = _unpacked(data[ids_at:offsets_at], id_width)
    starts = _unpacked(data[offsets_at:values_at], offset_width)
    if values_at + max(starts) > len(data):
        raise ValueError("an object ends in the middle of its values")
    # values may be in any order: each one ends at the next start
    ends = dict(pairwise(sorted(set(starts))))
    parts = {}
    for key, start in zip(ids, starts[:count], strict=True):
        if start not in ends:
            raise ValueError("a value of an object is empty")
        parts[key] = data[values_at + start : values_at + ends[start]]
    return parts


def metadata_keys(metadata: bytes) -> dict[str, int]:
    """The dictionary of a variant's metadata: from name to id."""
    if not metadata or metadata[0] & 0xF != 1:
        raise ValueError("the metadata is not of version 1")
    width = (metadata[0] >> 6) + 1
    count = int.from_bytes(metadata[1 : 1 + width], "little")
    names_at = 1 + width * (count + 2)
    if names_at > len(metadata):
        raise ValueError("the metadata ends in the middle of its header")
    ends = _unpacked(metadata[1 + width : names_at], width)
    if ends != sorted(ends) or names_at + ends[-1] > len(metadata):
        raise ValueError("the metadata ends in the middle of its names")
    # a name that is not UTF-8 raises UnicodeDecodeError, a ValueError
    return {metadata[names_at + a : names_at + b].decode(): i for i, (a, b) in enumerate(pairwise(ends))}


def _width(largest: int) -> int:
    return 1 if largest < 1 << 8 else 2 if largest < 1 << 16 else 3 if largest < 1 << 24 else 4


def _packed(numbers: Iterable[int], width: int) -> bytes:
    return b"".join(n.to_bytes(width, "little") for n in numbers)


def _unpacked(data: bytes, width: int) -> list[int]:
    return [int.from_bytes(data[at : at + width], "little") for at in range(0, len(data), width)]
