"""What a run beside the reference keeps from one sitting to the next."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop import journal
from tests.interop.journal import Outcome
from tests.interop.matrix import Recorder


@pytest.fixture(autouse=True)
def _own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "JOURNAL", tmp_path / "kept" / "outcomes.jsonl")
    monkeypatch.setattr(journal, "_COLLECTED", tmp_path / "kept" / "collected.json")


def _outcome(test: str, passed: bool, commit: str = "a") -> Outcome:
    return Outcome(test, passed, (("a feature", "ping-pong", "pass" if passed else "fail"),), 1.5, commit)


def test_what_passed_last_is_kept() -> None:
    assert journal.outcomes() == {}
    for outcome in (_outcome("one", False), _outcome("one", True), _outcome("two", True), _outcome("three", True)):
        journal.add(outcome)
    journal.add(_outcome("two", False, "b"))
    assert journal.outcomes() == {"one": _outcome("one", True), "three": _outcome("three", True)}
    journal.forget()
    journal.forget()
    assert journal.outcomes() == {}


def test_a_line_that_was_cut_off_is_left_out() -> None:
    journal.add(_outcome("one", True))
    journal.add(_outcome("two", True))
    text = journal.JOURNAL.read_text()
    journal.JOURNAL.write_text(text[:-20])
    assert list(journal.outcomes()) == ["one"]


def test_the_tests_in_their_order() -> None:
    assert journal.collected() == []
    cells = {"b": [("vacuum", "ping-pong")], "a": []}
    assert journal.collected(cells) == journal.collected() == ["b", "a"]
    assert journal.cells() == cells


def test_the_commit_is_named() -> None:
    assert journal.commit()


def test_cells_are_renewed_by_all_of_their_tests() -> None:
    """A cell that two tests decide stays as it is where one of them did not run."""
    journal.collected({"one": [("a", "ping-pong")], "two": [("a", "ping-pong")], "three": [("b", "ping-pong")]})
    page = "\n".join(["| feature | ping-pong |", "|---|---|", "| gone | pass |", "| a | fail |"])
    recorder = Recorder()
    recorder.outcomes = {
        "one": Outcome("one", True, (("a", "ping-pong", "pass"),), 1, "c"),
        "three": Outcome("three", True, (("b", "ping-pong", "pass"),), 1, "c"),
    }
    assert recorder.renewed(page) == {"a": {"ping-pong": "fail"}, "b": {"ping-pong": "pass"}}
    recorder.outcomes["two"] = Outcome("two", True, (("a", "ping-pong", "pass"),), 1, "c")
    assert recorder.renewed(page) == {"a": {"ping-pong": "pass"}, "b": {"ping-pong": "pass"}}
