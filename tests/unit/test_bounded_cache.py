from __future__ import annotations

from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from delta_pyds.bounded_cache import BoundedCache


def test_what_was_not_used_for_longest_is_given_up_first() -> None:
    cache: BoundedCache[str, int] = BoundedCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    assert "b" in cache  # which does not count as a use
    cache.put("c", 3)
    assert list(cache) == ["a", "c"]
    assert cache.get("b") is None


def test_a_value_larger_than_the_limit_is_not_kept_and_drives_nothing_out() -> None:
    cache: BoundedCache[str, bytes] = BoundedCache(10, size_of=len)
    cache.put("a", b"1234")
    cache.put("b", b"x" * 11)
    assert list(cache) == ["a"]
    cache.put("a", b"x" * 11)  # what was there is not the value of its key any more
    assert list(cache) == []
    cache.put("c", b"x" * 10)
    assert list(cache) == ["c"]


def test_room_is_not_made_at_the_cost_of_what_is_to_be_kept() -> None:
    cache: BoundedCache[int, bytes] = BoundedCache(10, size_of=len)
    for number in range(5):
        cache.put(number, b"12")
    assert not cache.make_room(5, keep=lambda number: number < 3)
    assert list(cache) == [0, 1, 2, 3, 4]
    assert cache.make_room(4, keep=lambda number: number < 3)
    assert list(cache) == [0, 1, 2]


@given(
    st.integers(1, 8), st.lists(st.tuples(st.sampled_from("pgf"), st.integers(0, 5), st.integers(0, 9)), max_size=40)
)
def test_it_is_a_mapping_that_forgets(limit: int, steps: list[tuple[str, int, int]]) -> None:
    cache: BoundedCache[int, int] = BoundedCache(limit, size_of=lambda value: value)
    model: OrderedDict[int, int] = OrderedDict()
    for step, key, value in steps:
        if step == "p":
            cache.put(key, value)
            model.pop(key, None)
            if value <= limit:
                model[key] = value
                while sum(model.values()) > limit:
                    model.popitem(last=False)
        elif step == "g":
            assert cache.get(key) == model.get(key)
            if key in model:
                model.move_to_end(key)
        else:
            cache.forget(key)
            model.pop(key, None)
        assert list(cache) == list(model)


def test_threads_share_one() -> None:
    cache: BoundedCache[int, int] = BoundedCache(5)

    def use(seed: int) -> None:
        random = Random(seed)
        for _ in range(3000):
            key = random.randrange(10)
            if cache.get(key) not in (None, key):
                raise AssertionError(key)
            cache.put(key, key)
            assert len(list(cache)) <= 5

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(use, range(4)))
    assert len(list(cache)) == 5
