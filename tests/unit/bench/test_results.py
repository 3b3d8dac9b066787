"""The order in which sides are timed, and results that an interrupted run leaves to the next one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bench.measure import Side, in_turn
from tests.bench.peers.goals import FORMAT, MINIMAL, READ, REFERENCE
from tests.bench.peers.results import Pair, Results

_WORKS = ("planning", "scans")


def test_sides_run_to_and_fro_so_that_a_drift_of_the_machine_is_nobodys() -> None:
    order: list[str] = []
    took = in_turn({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, 4)
    assert "".join(order) == "ab" + "ab" + "ba" + "ab" + "ba"
    assert {name: len(side.seconds) for name, side in took.items()} == {"a": 4, "b": 4}


def test_short_works_get_more_rounds_than_asked_for_and_no_more_than_most() -> None:
    took = in_turn({"a": lambda: (1.0, 2.0)}, 2, spare=60, most=7)
    assert took["a"].seconds == [1.0] * 7
    assert took["a"].peak_mb == [2.0] * 7


def _results(folder: Path, sizes: str = "10 files") -> Results:
    return Results(folder, _WORKS, "today", {"sizes": sizes}, ["A note."])


def _measured(results: Results, work: str, ours: float) -> None:
    with results.part(work):
        took = {READ: Side([ours]), FORMAT: Side([2 * ours]), REFERENCE: Side([10.0]), MINIMAL: Side([ours])}
        results.add("full scan", f"all of {work}", took, [Pair(READ, REFERENCE), Pair(FORMAT, MINIMAL, MINIMAL)])


def test_a_run_that_ended_early_is_gone_on_with(tmp_path: Path) -> None:
    first = _results(tmp_path)
    _measured(first, "planning", 1.0)
    assert first.missing == ["scans"]
    assert "**not measured: scans**" in (tmp_path / "RESULTS.md").read_text()
    with pytest.raises(ZeroDivisionError), first.part("scans"):
        raise ZeroDivisionError
    assert first.missing == ["scans"]

    second = _results(tmp_path)
    second.go_on()
    assert second.missing == ["scans"]
    _measured(second, "scans", 20.0)
    assert not second.missing
    text = (tmp_path / "RESULTS.md").read_text()
    assert "not measured" not in text
    assert "| all of planning | delta_pyds.read | 1.00 s | format delta | 10.00 s | 0.10 | <= 1.10 | met |" in text
    assert "| 2.00 | <= 1.05 | MISSED; the floor is at 1.00 |" in text
    again = _results(tmp_path)
    again.go_on()
    assert again.markdown() == second.markdown()
    assert list(json.loads((tmp_path / "RESULTS.json").read_text())["works"]) == ["planning", "scans"]


def test_figures_of_other_sizes_are_marked_until_their_work_runs_again(tmp_path: Path) -> None:
    _measured(_results(tmp_path), "planning", 1.0)
    now = _results(tmp_path, "1,000 files")
    now.go_on()
    _measured(now, "scans", 1.0)
    assert now.missing == ["planning"]
    text = (tmp_path / "RESULTS.md").read_text()
    assert "**Not of this run: measured with sizes 10 files.**" in text
    assert "**not measured: planning**" in text
    # the mark stays with the work
    later = _results(tmp_path, "1,000 files")
    later.go_on()
    assert later.missing == ["planning"]
    _measured(later, "planning", 2.0)
    assert "Not of this run" not in later.markdown()


def test_a_work_has_the_load_of_the_machine_and_what_a_side_cannot(tmp_path: Path) -> None:
    results = _results(tmp_path)
    with results.part("scans"):
        results.note("scans: Sail cannot: no such function")
    text = results.markdown()
    assert "- scans: Sail cannot: no such function" in text
    assert "scans, load average " in text


def test_without_an_earlier_run_there_is_nothing_to_go_on_with(tmp_path: Path) -> None:
    results = _results(tmp_path)
    results.go_on()
    assert results.missing == ["planning", "scans"]
