from __future__ import annotations

import pytest

from delta_pyds.backoff import pause_s


def test_pauses_double_up_to_the_longest_and_are_cut_at_random(monkeypatch: pytest.MonkeyPatch) -> None:
    for part in (0.3, 1.0):
        monkeypatch.setattr("random.uniform", lambda low, high, part=part: part if low <= part <= high else None)
        pauses = [pause_s(attempt, first_s=0.5, longest_s=3.0) for attempt in (1, 2, 3, 4, 5_000)]
        assert pauses == pytest.approx([part * whole for whole in (0.5, 1.0, 2.0, 3.0, 3.0)])
