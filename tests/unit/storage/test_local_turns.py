"""Turns of writers on one machine: one at a time, given back, and never necessary."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from delta_pyds.storage.local_turns import Turn


def _never(_: float) -> None:
    raise AssertionError("it waits.")


def test_one_writer_has_its_turn_at_a_time(tmp_path: Path) -> None:
    pauses: list[float] = []
    with Turn(str(tmp_path)) as first:
        assert first.wait(1.0, _never)
        second = Turn(f"file:{tmp_path}")
        assert not second.wait(0.1, pauses.append)
        assert sum(pauses) < 0.12
        assert pauses == sorted(pauses, reverse=True), "who has waited longer looks more often."
    with Turn(str(tmp_path)) as third:
        assert third.wait(1.0, _never)


def test_a_turn_begins_when_the_other_one_ends(tmp_path: Path) -> None:
    first, second = Turn(str(tmp_path)), Turn(str(tmp_path))
    assert first.wait(1.0, _never)
    assert second.wait(1.0, lambda _: first.end())
    assert second.wait(1.0, _never), "it has its turn already."
    second.end()
    second.end()


def test_a_forked_process_keeps_no_turn(tmp_path: Path) -> None:
    turn = Turn(str(tmp_path))
    assert turn.wait(1.0, _never)
    assert turn._descriptor is not None
    inherited = os.dup(turn._descriptor)
    turn.end()
    with Turn(str(tmp_path)) as other:
        assert other.wait(1.0, _never)
    os.close(inherited)


def test_a_writer_waits_once(tmp_path: Path) -> None:
    with Turn(str(tmp_path)) as first, Turn(str(tmp_path)) as second:
        assert first.wait(1.0, _never)
        assert not second.wait(0.01, lambda _: None)
        assert not second.wait(1.0, _never)


def test_where_there_are_no_locks_nobody_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for missing in (None, str(tmp_path / "missing")):
        assert not Turn(missing).wait(1.0, _never)

    def unsupported(descriptor: int, _: int) -> None:
        opened.append(descriptor)
        raise OSError("no locks")

    opened: list[int] = []
    monkeypatch.setattr(fcntl, "flock", unsupported)
    assert not Turn(str(tmp_path)).wait(1.0, _never)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(opened[0])
