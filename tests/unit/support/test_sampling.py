from __future__ import annotations

import pytest

from tests.support import sampling
from tests.support.sampling import part_of, sampled


@pytest.fixture(autouse=True)
def _no_exhaustive_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EXHAUSTIVE", raising=False)


def _with_seed(monkeypatch: pytest.MonkeyPatch, text: str) -> list[int]:
    monkeypatch.setenv("SAMPLE_SEED", text)
    sampling.seed.cache_clear()
    try:
        return sampled(range(3000), one_in=3)
    finally:
        sampling.seed.cache_clear()


def test_a_sample_is_the_same_for_one_seed_and_another_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    first = _with_seed(monkeypatch, "a")
    assert first == _with_seed(monkeypatch, "a") == sorted(set(first))
    assert 850 < len(first) < 1150
    assert first != _with_seed(monkeypatch, "b")


def test_every_case_is_taken_by_some_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: set[int] = set()
    for number in range(40):
        taken.update(_with_seed(monkeypatch, f"commit {number}"))
    assert taken == set(range(3000))


def test_an_exhaustive_run_takes_everything_and_a_sample_is_never_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(sampled(["one"], one_in=10**6)) == 1
    monkeypatch.setenv("EXHAUSTIVE", "1")
    assert _with_seed(monkeypatch, "a") == list(range(3000))


def test_a_part_of_a_short_list_is_neither_all_of_it_nor_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = ["vectors", "rewriting", "partitioned", "mapped"]
    taken: set[str] = set()
    for number in range(40):
        monkeypatch.setenv("SAMPLE_SEED", f"commit {number}")
        sampling.seed.cache_clear()
        part = part_of(cases, one_in=3)
        assert len(part) == 2 and part == [case for case in cases if case in part]
        taken.update(part)
    sampling.seed.cache_clear()
    assert taken == set(cases)
    assert len(part_of(["one"], one_in=3)) == 1
    monkeypatch.setenv("EXHAUSTIVE", "1")
    assert part_of(cases, one_in=3) == cases
