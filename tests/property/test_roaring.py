from __future__ import annotations

import contextlib

from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64

from delta_pyds.columnar.roaring import BitmapError, deserialize, live_mask, serialize
from tests.support.sampling import examples

_values = st.one_of(
    st.sets(st.integers(0, 300_000), max_size=50),
    st.sets(st.integers(0, 2**62), max_size=20),
    st.lists(st.tuples(st.integers(0, 200_000), st.integers(1, 70_000)), max_size=5).map(
        lambda runs: {v for start, length in runs for v in range(start, start + length)}
    ),
    st.tuples(st.integers(0, 70_000), st.integers(2, 40), st.integers(1, 60_000)).map(
        lambda t: set(range(t[0], t[0] + t[2] * t[1], t[1]))
    ),
)


@given(_values)
@settings(max_examples=examples(150), deadline=None)
def test_codec_round_trips(values: set[int]) -> None:
    assert set(deserialize(serialize(BitMap64(values)))) == values


@given(_values, st.data())
@settings(max_examples=examples(300), deadline=None)
def test_damaged_bytes_are_refused_or_a_valid_bitmap_and_never_a_crash(values: set[int], data: st.DataObject) -> None:
    content = bytearray(serialize(BitMap64(values)))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, min(len(content) - 1, 80)) | st.integers(0, len(content) - 1))
        content[at] = data.draw(st.integers(0, 255))
    content = content[: data.draw(st.integers(0, len(content)) | st.just(len(content)))]
    with contextlib.suppress(BitmapError):
        bitmap = deserialize(bytes(content))
        # what is accepted is whole: all of it can be read and written again
        listed = list(bitmap) if len(bitmap) < 200_000 else []
        assert listed == sorted(set(listed))
        assert deserialize(serialize(bitmap)) == bitmap


@given(st.binary(max_size=300), st.sampled_from([1681511377, 1681511376]), st.sampled_from(["little", "big"]))
@settings(max_examples=examples(300), deadline=None)
def test_noise_behind_the_magic_number_never_crashes(noise: bytes, magic: int, order: str) -> None:
    try:
        bitmap = deserialize(magic.to_bytes(4, order) + noise)
    except BitmapError as refused:
        assert str(refused)
    else:
        assert deserialize(serialize(bitmap)) == bitmap


@given(_values, st.integers(0, 300_000), st.integers(0, 150_000))
@settings(max_examples=examples(60), deadline=None)
def test_mask_agrees_with_the_set(values: set[int], start: int, length: int) -> None:
    mask = live_mask(BitMap64(values), start, length)
    dead = {i for i, live in enumerate(mask.to_pylist()) if not live}
    assert len(mask) == length
    assert dead == {v - start for v in values if start <= v < start + length}
