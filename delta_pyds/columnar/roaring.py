"""The bitmap inside a deletion vector, and masks made from it.

Invariant: every container is checked before the C++ library reads the bytes, so damaged bytes raise an error and never
crash or hang the process.
Protocol: "Deletion Vector Format". Container layout: the Roaring format
specification, "Standard 32-bit RoaringBitmap" and "64-bit extension".
"""

from __future__ import annotations

import struct
import sys
from array import array
from operator import lt

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

MAGIC = 1681511377
NATIVE_MAGIC = 1681511376
_PORTABLE_HEADER = struct.Struct("<IQ")
_COOKIE_WITH_RUNS = 12347
_COOKIE = 12346
_ARRAY_LIMIT = 4096  # a container with more values is a bitmap
_NO_OFFSETS_BELOW = 4  # a bitmap with runs and fewer containers than this has no offset header
_BLOCK = 1 << 16
_BLOCK_BYTES = _BLOCK // 8
_FULL = b"\xff" * _BLOCK_BYTES
_EMPTY = bytes(_BLOCK_BYTES)


class BitmapError(ValueError):
    """The bytes are not a valid bitmap. ``magic``: even the first four bytes, the magic number, are wrong."""

    def __init__(self, message: str, *, magic: bool = False) -> None:
        super().__init__(message)
        self.magic = magic


def serialize(bitmap: BitMap64) -> bytes:
    """Magic number and portable bitmap, with containers run-compressed if that is smaller."""
    compact = bitmap.copy()
    compact.run_optimize()
    return struct.pack("<I", MAGIC) + compact.serialize()


def deserialize(data: bytes) -> BitMap64:
    """Read the magic number and the bitmap: portable, or the older native format.

    Raises: BitmapError for any invalid or trailing byte.
    """
    magic = struct.unpack_from("<I", data)[0] if len(data) >= 4 else None
    if magic != MAGIC:
        # the protocol's own inline example is native, with big-endian numbers around the bitmaps
        for order in ("<I", ">I"):
            if magic is not None and struct.unpack_from(order, data)[0] == NATIVE_MAGIC:
                data = _portable_from_native(data, order)
                break
        else:
            raise BitmapError(f"the magic number is {magic}, not {MAGIC}", magic=True)
    _check_portable(data)
    return BitMap64.deserialize(data[4:])


def _portable_from_native(data: bytes, order: str) -> bytes:
    """Convert the older format: a count, then each 32-bit bitmap after its size; its position is its key."""
    count = _unpack(order, data, 4)
    buckets, at = [], 8
    for key in range(count):
        size = _unpack(order, data, at)
        bucket = data[at + 4 : at + 4 + size]
        if len(bucket) != size:
            raise BitmapError(f"bitmap {key} is cut short")
        buckets.append(struct.pack("<I", key) + bucket)
        at += 4 + size
    if at != len(data):
        raise BitmapError(f"{len(data) - at} bytes follow the last bitmap")
    return _PORTABLE_HEADER.pack(MAGIC, count) + b"".join(buckets)


def _check_portable(data: bytes) -> None:
    count = _unpack("<Q", data, 4)
    at, previous = 12, -1
    for _ in range(count):
        key = _unpack("<I", data, at)
        if key <= previous or key >= 1 << 31:
            raise BitmapError(f"the bucket key {key} is out of order or range")
        previous = key
        at = _check_bucket(data, at + 4)
    if at != len(data):
        raise BitmapError(f"{len(data) - at} bytes follow the last bucket")


def _check_bucket(data: bytes, start: int) -> int:
    """Check one 32-bit bitmap and return its end."""
    cookie = _unpack("<I", data, start)
    at = start + 4
    if cookie & 0xFFFF == _COOKIE_WITH_RUNS:
        count = (cookie >> 16) + 1
        flags = data[at : at + (count + 7) // 8]
        at += (count + 7) // 8
        has_offsets = count >= _NO_OFFSETS_BELOW
    elif cookie == _COOKIE:
        count = _unpack("<I", data, at)
        flags = b""
        at += 4
        has_offsets = True
    else:
        raise BitmapError(f"the cookie {cookie:#x} is invalid")
    if count > _BLOCK or at + 4 * count > len(data):
        raise BitmapError(f"{count} containers do not fit")
    header = _words("H", data[at : at + 4 * count])
    keys, cardinalities = header[0::2], header[1::2]
    if not _ascending(keys):
        raise BitmapError("the container keys are out of order")
    at += 4 * count
    offsets = None
    if has_offsets:
        if at + 4 * count > len(data):
            raise BitmapError("the container offsets are cut short")
        offsets = _words("I", data[at : at + 4 * count])
        at += 4 * count
    for i in range(count):
        if offsets is not None and offsets[i] != at - start:
            raise BitmapError(f"the offset of container {i} is wrong")
        is_run = bool(flags) and bool(flags[i >> 3] >> (i & 7) & 1)
        at = _check_container(data, at, cardinalities[i] + 1, is_run)
    return at


def _check_container(data: bytes, at: int, cardinality: int, is_run: bool) -> int:
    if is_run:
        size = 4 * _unpack("<H", data, at)
        at += 2
    else:
        size = 2 * cardinality if cardinality <= _ARRAY_LIMIT else _BLOCK_BYTES
    content = data[at : at + size]
    if len(content) != size:
        raise BitmapError("a container is cut short")
    if is_run:
        words = _words("H", content)
        starts, lengths = words[0::2], words[1::2]
        ends = [s + n for s, n in zip(starts, lengths, strict=True)]
        # a run that touches the one before it should have been one run
        if not size or max(ends) >= _BLOCK or not all(e + 1 < s for e, s in zip(ends, starts[1:], strict=False)):
            raise BitmapError("the runs of a container are empty, overlap or are out of order")
        if sum(lengths) + len(lengths) != cardinality:
            raise BitmapError("a container of runs does not have the stated cardinality")
    elif cardinality <= _ARRAY_LIMIT:
        if not _ascending(_words("H", content)):
            raise BitmapError("the values of a container are out of order")
    elif _bit_count(content) != cardinality:
        raise BitmapError("a bitmap container does not have the stated cardinality")
    return at + size


def _unpack(form: str, data: bytes, at: int) -> int:
    try:
        return int(struct.unpack_from(form, data, at)[0])
    except struct.error:
        raise BitmapError(f"the bytes end at {len(data)}, in the middle of a header") from None


def _words(code: str, data: bytes) -> array[int]:
    words = array(code, data)
    if sys.byteorder == "big":
        words.byteswap()
    return words


def _ascending(words: array[int]) -> bool:
    if len(words) < 64:
        return all(map(lt, words, words[1:]))
    values = pa.Array.from_buffers(pa.uint16(), len(words), [None, pa.py_buffer(words)])
    return bool(pc.all(pc.less(values[:-1], values[1:])).as_py())


def _bit_count(data: bytes) -> int:
    return int(pa.BooleanArray.from_buffers(pa.bool_(), 8 * len(data), [None, pa.py_buffer(data)]).true_count)


# --- masks


def live_mask(deleted: BitMap64, start: int, length: int) -> pa.BooleanArray:
    """For each position in ``[start, start + length)``, true if it is not in the bitmap.

    Bitmap containers have the layout of Arrow's booleans. The library computes the complement. Most of its containers
    are bitmaps, and their bytes become the mask without conversion.
    """
    first, stop = start // _BLOCK, -(-(start + length) // _BLOCK)
    window = BitMap64()
    window.add_range(first * _BLOCK, stop * _BLOCK)
    window.difference_update(deleted)
    blocks = [_EMPTY] * (stop - first)
    for block, content in _blocks(window.serialize()):
        blocks[block - first] = content
    bits = pa.py_buffer(b"".join(blocks))
    return pa.BooleanArray.from_buffers(pa.bool_(), length, [None, bits], offset=start - first * _BLOCK)


def _blocks(data: bytes) -> list[tuple[int, bytes]]:
    """The 65536-bit blocks of a portable bitmap that this library serialized: (number, bytes)."""
    found = []
    at = 8
    for _ in range(_unpack("<Q", data, 0)):
        key, cookie = struct.unpack_from("<II", data, at)
        at += 8
        flags = b""
        if cookie & 0xFFFF == _COOKIE_WITH_RUNS:
            count = (cookie >> 16) + 1
            flags = data[at : at + (count + 7) // 8]
            at += len(flags)
        else:
            count = _unpack("<I", data, at)
            at += 4
        header = _words("H", data[at : at + 4 * count])
        at += (8 if not flags or count >= _NO_OFFSETS_BELOW else 4) * count
        for i in range(count):
            block, cardinality = (key << 16) + header[2 * i], header[2 * i + 1] + 1
            if flags and flags[i >> 3] >> (i & 7) & 1:
                size = 2 + 4 * _unpack("<H", data, at)
                content = _from_runs(_words("H", data[at + 2 : at + size]))
            elif cardinality <= _ARRAY_LIMIT:
                size = 2 * cardinality
                content = _from_values(_words("H", data[at : at + size]))
            else:
                size = _BLOCK_BYTES
                content = data[at : at + size]
            at += size
            found.append((block, content))
    return found


def _from_values(values: array[int]) -> bytes:
    bits = bytearray(_BLOCK_BYTES)
    for value in values:
        bits[value >> 3] |= 1 << (value & 7)
    return bytes(bits)


def _from_runs(words: array[int]) -> bytes:
    if len(words) == 2 and words[1] == _BLOCK - 1:
        return _FULL
    bits = bytearray(_BLOCK_BYTES)
    for start, more in zip(words[0::2], words[1::2], strict=True):
        end = start + more + 1
        # whole bytes at once; the partial bytes at the ends in one small number
        low, high = start >> 3, (end + 7) >> 3
        ones = ((1 << (end - start)) - 1) << (start & 7)
        merged = int.from_bytes(bits[low:high], "little") | ones
        bits[low:high] = merged.to_bytes(high - low, "little")
    return bytes(bits)


def bitmap_of(positions: pa.Int64Array) -> BitMap64:
    """Row positions as a bitmap. ``positions`` must have no null and no negative value."""
    data = positions.buffers()[1]
    if data is None or not len(positions):
        return BitMap64()
    values = array("Q")
    # a slice shares the buffer of its array
    values.frombytes(memoryview(data)[8 * positions.offset : 8 * (positions.offset + len(positions))])
    return BitMap64(values)
