"""Deletion vectors in one array: the slots of files, and what a row finds in the array."""

from __future__ import annotations

import random

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from delta_pyds.spark.native.vectors import Slots, in_one_array, slots_of

SIZES = st.lists(st.integers(1, 1 << 40), min_size=1, max_size=40, unique=True)


@given(SIZES)
def test_each_file_has_its_own_slot(sizes: list[int]) -> None:
    slots = slots_of(sizes)
    if slots is not None:
        taken = {slots.of(size) for size in sizes}
        assert len(taken) == len(sizes)
        assert taken <= set(range(slots.count))


def test_files_of_similar_sizes_have_few_slots() -> None:
    seeded = random.Random(1)
    for count in (1, 2, 10, 100):
        slots = slots_of(seeded.sample(range(100_000_000, 101_000_000), count))
        assert slots is not None
        assert slots.count <= count * count


def test_equal_and_unknown_sizes_have_no_slots() -> None:
    assert slots_of([7, 8, 7]) is None
    assert slots_of([7, 0]) is None
    assert slots_of([-1]) is None
    assert slots_of([7]) == Slots(0, 1)
    assert slots_of([6, 7]) == Slots(0, 2)


def test_so_many_files_that_no_slots_separate_them() -> None:
    assert slots_of(random.Random(1).sample(range(1 << 40), 2000)) is None


@given(SIZES, st.data())
def test_a_row_finds_the_word_of_its_file_and_none_of_another(sizes: list[int], data: st.DataObject) -> None:
    slots = slots_of(sizes)
    if slots is None:
        return
    word = st.integers(-(1 << 63), (1 << 63) - 1)
    words = [data.draw(st.lists(word, max_size=4)) for _ in sizes]
    array = in_one_array(slots, sizes, [pa.array(own, pa.int64()) for own in words]).to_pylist()
    assert len(array) == 2 * slots.count + sum(map(len, words))
    for size, own in zip(sizes, words, strict=True):
        slot = slots.of(size)
        assert array[slot] == size
        first, count = array[slots.count | slot] >> 32, array[slots.count | slot] & 0x7FFFFFFF
        assert array[first : first + count] == own
    # a file of another size is unknown
    other = data.draw(st.integers(1, 1 << 40).filter(lambda size: size not in sizes))
    assert array[slots.of(other)] != other
