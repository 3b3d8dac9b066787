from __future__ import annotations

import struct

import pytest
from pyroaring import BitMap, BitMap64

from delta_pyds.columnar.roaring import MAGIC, NATIVE_MAGIC, BitmapError, deserialize, live_mask, serialize
from delta_pyds.protocol.deletion_vector import z85_decode

SHAPES = {
    "empty": [],
    "one": [0],
    "array container": list(range(0, 8000, 3)),
    "bitmap container": list(range(0, 65536, 2)),
    "full container": list(range(65536)),
    "runs": [*range(10, 5000), *range(6000, 9000), *range(65530, 65540)],
    "mixed": [*range(70000, 90000), *range(0, 60000, 7), *range(200000, 260000, 2), 2**31, 2**32 - 1],
    "beyond 32 bits": [1, 2**32, 2**32 + 5, 2**40, 2**62],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_round_trip(shape: str) -> None:
    bitmap = BitMap64(SHAPES[shape])
    assert deserialize(serialize(bitmap)) == bitmap
    # containers that nobody compressed into runs
    assert deserialize(struct.pack("<I", MAGIC) + bitmap.serialize()) == bitmap


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("shape", SHAPES)
def test_native_format_is_read(shape: str, order: str) -> None:
    values = [v for v in SHAPES[shape] if v < 2**34]
    buckets = [BitMap(v & 0xFFFFFFFF for v in values if v >> 32 == key) for key in range(4)]
    data = struct.pack(order + "II", NATIVE_MAGIC, len(buckets))
    for bucket in buckets:
        content = bucket.serialize()
        data += struct.pack(order + "I", len(content)) + content
    assert deserialize(data) == BitMap64(values)


def test_example_of_the_protocol() -> None:
    # "Deletion Vectors", JSON example 3, in the native format
    data = z85_decode("wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L")
    assert list(deserialize(data)) == [3, 4, 7, 11, 18, 29]


def test_wrong_magic_is_told_apart() -> None:
    for data in (b"", b"\x01\x02", struct.pack("<I", MAGIC + 1) + bytes(20), struct.pack(">I", MAGIC) + bytes(20)):
        with pytest.raises(BitmapError) as caught:
            deserialize(data)
        assert caught.value.magic


@pytest.mark.parametrize("shape", SHAPES)
def test_bytes_cut_anywhere_or_added_are_refused(shape: str) -> None:
    data = serialize(BitMap64(SHAPES[shape]))
    cuts = range(4, len(data)) if len(data) < 200 else [*range(4, 100), *range(len(data) - 50, len(data))]
    for cut in cuts:
        with pytest.raises(BitmapError):
            deserialize(data[:cut])
    with pytest.raises(BitmapError):
        deserialize(data + b"\0")


def _portable(body: bytes, count: int = 1, key: int = 0) -> bytes:
    return struct.pack("<IQI", MAGIC, count, key) + body


DAMAGED = {
    "key with the highest bit": _portable(BitMap([1]).serialize(), key=1 << 31),
    "repeated keys": _portable(BitMap([1]).serialize(), count=2) + struct.pack("<I", 0) + BitMap([1]).serialize(),
    "promise of many buckets": struct.pack("<IQ", MAGIC, 2**63),
    "unknown cookie": _portable(struct.pack("<II", 12345, 1) + bytes(16)),
    "too many containers": _portable(struct.pack("<II", 12346, 2**31)),
    "container keys out of order": _portable(struct.pack("<IIHHHHIIHH", 12346, 2, 1, 0, 0, 0, 24, 26, 5, 5)),
    "wrong offset": _portable(struct.pack("<IIHHIH", 12346, 1, 0, 0, 99, 5)),
    "values out of order": _portable(struct.pack("<IIHHIHH", 12346, 1, 0, 1, 16, 5, 4)),
    "values repeated": _portable(struct.pack("<IIHHIHH", 12346, 1, 0, 1, 16, 5, 5)),
    "run beyond the container": _portable(struct.pack("<IBHHHHH", 12347, 1, 0, 10, 1, 65530, 10)),
    "run one beyond the container": _portable(struct.pack("<IBHHHHH", 12347, 1, 0, 6, 1, 65530, 6)),
    "runs that touch": _portable(struct.pack("<IBHHHHHHH", 12347, 1, 0, 9, 2, 0, 4, 5, 4)),
    "runs that overlap": _portable(struct.pack("<IBHHHHHHH", 12347, 1, 0, 10, 2, 0, 9, 5, 0)),
    "runs of another cardinality": _portable(struct.pack("<IBHHHHH", 12347, 1, 0, 10, 1, 0, 3)),
    "no runs": _portable(struct.pack("<IBHHH", 12347, 1, 0, 10, 0)),
    "bitmap of another cardinality": _portable(struct.pack("<IIHHI", 12346, 1, 0, 5000, 16) + bytes(8192)),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_damage_inside_the_bytes_is_refused(damage: str) -> None:
    with pytest.raises(BitmapError):
        deserialize(DAMAGED[damage])


@pytest.mark.parametrize("shape", SHAPES)
def test_mask_is_true_for_what_the_bitmap_lacks(shape: str) -> None:
    bitmap = BitMap64(SHAPES[shape])
    for start, length in ((0, 1), (0, 65536), (5, 65536), (65535, 2), (60001, 210000), (2**32 - 3, 10), (7, 0)):
        got = live_mask(bitmap, start, length)
        deleted = {v - start for v in SHAPES[shape] if start <= v < start + length}
        assert got.to_pylist() == [i not in deleted for i in range(length)]
        assert got.null_count == 0


def test_mask_of_blocks_with_few_rows_left() -> None:
    # what is left is an array, runs or nothing, none of which has the layout of a mask
    bitmap = BitMap64()
    bitmap.add_range(0, 400_000)
    for left in (3, 9, 70_000, *range(140_000, 140_100), 399_999):
        bitmap.discard(left)
    mask = live_mask(bitmap, 0, 400_010).to_pylist()
    kept = [i for i, live in enumerate(mask) if live]
    assert kept == [3, 9, 70_000, *range(140_000, 140_100), *range(399_999, 400_010)]


@pytest.mark.parametrize("count", [4095, 4096, 4097])
def test_a_container_of_as_many_values_as_an_array_may_have(count: int) -> None:
    # up to 4096 values stand one by one, more are a bitmap: of two apart, for no runs to be made of them
    values = list(range(1, 2 * count, 2))
    data = serialize(BitMap64(values))
    assert len(data) == 4 + 8 + 4 + 4 + 4 + 4 + 4 + (2 * count if count <= 4096 else 8192)
    assert list(deserialize(data)) == values
    assert live_mask(BitMap64(values), 0, 65536).to_pylist() == [n not in set(values) for n in range(65536)]
    # what is left is an array of exactly so many
    left = BitMap64(range(65536)) - BitMap64(values)
    assert live_mask(left, 0, 2 * count).to_pylist() == [n % 2 == 1 for n in range(2 * count)]
    with pytest.raises(BitmapError):
        deserialize(data[:-1])
