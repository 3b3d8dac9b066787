from __future__ import annotations

import pytest

from tests.support import sampling
from tests.support.sampling import sampled


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
