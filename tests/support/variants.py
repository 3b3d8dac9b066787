"""Variant values for tests: plain Python values to bytes and back, and shredded, independent of the package.

Specification: Parquet "Variant Binary Encoding", "Variant Shredding".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from decimal import Context, Decimal
from itertools import accumulate, pairwise
from typing import Any

import pyarrow as pa

MISSING = object()


def keys_of(value: Any) -> Iterator[str]:
    """All keys of all objects in a value."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from keys_of(item)
    elif isinstance(value, list):
        for item in value:
            yield from keys_of(item)


def metadata(keys: list[str]) -> bytes:
    """A dictionary of the keys in the order given, with offsets of two bytes."""
    names = [k.encode() for k in keys]
    ends = list(accumulate(map(len, names), initial=0))
    return struct.pack(f"<BH{len(ends)}H", 1 | 1 << 6, len(keys), *ends) + b"".join(names)


def encode(value: Any, keys: list[str]) -> bytes:
    """None, booleans, whole numbers, floats, text, lists and dicts."""
    if value is None:
        return b"\x00"
    if isinstance(value, bool):
        return b"\x04" if value else b"\x08"
    if isinstance(value, int):
        return struct.pack("<Bq", 6 << 2, value)
    if isinstance(value, float):
        return struct.pack("<Bd", 7 << 2, value)
    if isinstance(value, str):
        return struct.pack("<BI", 16 << 2, len(value.encode())) + value.encode()
    if isinstance(value, list):
        parts = [encode(v, keys) for v in value]
        ends = list(accumulate(map(len, parts), initial=0))
        # large, with offsets of four bytes
        return struct.pack(f"<BI{len(ends)}I", (4 | 3) << 2 | 3, len(parts), *ends) + b"".join(parts)
    fields = sorted(value, key=str.encode)
    # values lie in the opposite order of the fields
    parts = [encode(value[k], keys) for k in reversed(fields)]
    ends = list(accumulate(map(len, parts), initial=0))
    ids = struct.pack(f"<{len(fields)}H", *(keys.index(k) for k in fields))
    offsets = struct.pack(f"<{len(fields) + 1}I", *reversed(ends[:-1]), ends[-1])
    # large, with ids of two bytes and offsets of four
    return struct.pack("<BI", (1 << 4 | 1 << 2 | 3) << 2 | 2, len(fields)) + ids + offsets + b"".join(parts)


def decode(value: bytes, meta: bytes) -> Any:
    """A value as Python has it; dates, timestamps and the like as (type number, count)."""
    width = (meta[0] >> 6) + 1
    count = int.from_bytes(meta[1 : 1 + width], "little")
    ends = [int.from_bytes(meta[1 + width * (i + 1) :][:width], "little") for i in range(count + 1)]
    names = meta[1 + width * (count + 2) :]
    return _decode(value, [names[a:b].decode() for a, b in pairwise(ends)])


def _decode(value: bytes, keys: list[str]) -> Any:
    basic, info = value[0] & 3, value[0] >> 2
    if basic == 1:
        return value[1 : 1 + info].decode()
    if basic == 0:
        return _primitive(info, value[1:])
    width = (info & 3) + 1
    id_width = (info >> 2 & 3) + 1 if basic == 2 else 0
    size = 4 if info >> (4 if basic == 2 else 2) & 1 else 1
    count = int.from_bytes(value[1 : 1 + size], "little")
    at = 1 + size
    ids = [int.from_bytes(value[at + i * id_width :][:id_width], "little") for i in range(count)]
    at += count * id_width
    starts = [int.from_bytes(value[at + i * width :][:width], "little") for i in range(count)]
    at += (count + 1) * width
    items = [_decode(value[at + s :], keys) for s in starts]
    if basic == 3:
        return items
    found = [keys[i] for i in ids]
    assert found == sorted(found, key=str.encode), "fields of objects come in the order of their names"
    return dict(zip(found, items, strict=True))


def _primitive(kind: int, data: bytes) -> Any:
    if kind <= 2:
        return (None, True, False)[kind]
    numbers = {3: "<b", 4: "<h", 5: "<i", 6: "<q", 7: "<d", 14: "<f"}
    if kind in numbers:
        return struct.unpack_from(numbers[kind], data)[0]
    if kind in (8, 9, 10):
        width = {8: 4, 9: 8, 10: 16}[kind]
        return Decimal(int.from_bytes(data[1 : 1 + width], "little", signed=True)).scaleb(-data[0], Context(prec=60))
    if kind in (15, 16):
        raw = data[4 : 4 + int.from_bytes(data[:4], "little")]
        return raw.decode() if kind == 16 else raw
    if kind == 20:
        return (20, data[:16])
    return (kind, struct.unpack_from("<i" if kind == 11 else "<q", data)[0])


def group_type(shape: Any) -> pa.DataType:
    """The Parquet group of a shape: an Arrow type, ``[shape]`` arrays, ``{name: shape}`` objects, None for plain."""
    fields = [pa.field("value", pa.binary())]
    if isinstance(shape, dict):
        typed = pa.struct([pa.field(k, group_type(s), nullable=False) for k, s in shape.items()])
        fields.append(pa.field("typed_value", typed))
    elif isinstance(shape, list):
        fields.append(pa.field("typed_value", pa.list_(pa.field("element", group_type(shape[0]), nullable=False))))
    elif shape is not None:
        fields.append(pa.field("typed_value", shape))
    return pa.struct(fields)


def shred(value: Any, shape: Any, keys: list[str]) -> dict[str, Any]:
    """A value as a row of the group of the shape."""
    typed: Any = None
    rest = value
    if isinstance(shape, dict) and isinstance(value, dict):
        typed = {k: shred(value.get(k, MISSING), s, keys) for k, s in shape.items()}
        rest = {k: v for k, v in value.items() if k not in shape} or MISSING
    elif isinstance(shape, list) and isinstance(value, list):
        typed = [shred(v, shape[0], keys) for v in value]
    elif isinstance(shape, pa.DataType) and _fits(value, shape):
        typed = value
    if typed is not None and not isinstance(shape, dict):
        rest = MISSING
    plain = {"value": None if rest is MISSING else encode(rest, keys)}
    return plain if shape is None else plain | {"typed_value": typed}


def _fits(value: Any, shape: pa.DataType) -> bool:
    if pa.types.is_boolean(shape):
        return isinstance(value, bool)
    if pa.types.is_integer(shape):
        return (
            isinstance(value, int)
            and not isinstance(value, bool)
            and -(2 ** (shape.bit_width - 1)) <= value < 2 ** (shape.bit_width - 1)
        )
    if pa.types.is_floating(shape):
        return isinstance(value, float)
    return pa.types.is_string(shape) and isinstance(value, str)


def shredded_array(values: list[Any], shape: Any) -> pa.Array:
    """A variant column; ``MISSING`` is a null row."""
    rows = []
    for value in values:
        keys = sorted(set(keys_of(value)), key=lambda k: k[::-1])
        rows.append(None if value is MISSING else {"metadata": metadata(keys)} | shred(value, shape, keys))
    inner = group_type(shape)
    return pa.array(rows, pa.struct([pa.field("metadata", pa.binary(), nullable=True), *inner]))
