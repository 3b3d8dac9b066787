"""Long work shows itself, and what shows it cannot harm it."""

from __future__ import annotations

import io
import logging
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import delta_pyds
from delta_pyds import ProgressStep
from delta_pyds.cli.main import main
from delta_pyds.commands.maintenance.clone import CloneOptions, shallow_clone
from delta_pyds.commands.maintenance.convert import ConvertOptions, convert
from delta_pyds.commands.maintenance.restore import RestoreOptions, restore
from delta_pyds.progress import advance_of_step, name_of_step, step
from delta_pyds.protocol.schema import StructType
from delta_pyds.storage.resolve import resolve_storage
from delta_pyds.table.snapshot import load_snapshot
from tests.support.table_writes import write_rows

ID = {"id": "long"}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    for n in range(3):
        write_rows(tmp_path / "t", ID, [{"id": n}])
    return tmp_path / "t"


def _optimize(table: Path) -> None:
    assert main(["optimize", str(table)]) == 0


def _vacuum(table: Path) -> None:
    _optimize(table)
    assert main(["vacuum", str(table), "--hours", "0", "--unsafe-retention"]) == 0


def _convert(table: Path) -> None:
    import shutil

    shutil.rmtree(table / "_delta_log")
    convert(resolve_storage(str(table), {}), str(table), ConvertOptions(StructType(())))


def _clone(table: Path) -> None:
    target = str(table.parent / "clone")
    shallow_clone(load_snapshot(table), resolve_storage(target, {}), target, CloneOptions())


def _restore(table: Path) -> None:
    main(["optimize", str(table)])
    restore(load_snapshot(table), RestoreOptions(version=2))


def _checkpoint(table: Path) -> None:
    delta_pyds.checkpoint(table)


def _verify(table: Path) -> None:
    delta_pyds.verify(table)


@pytest.mark.parametrize(
    ("command", "name", "done"),
    [
        (_optimize, "optimize", 1),
        (_vacuum, "deletion of files", 3),
        (_vacuum, "listing", 1),
        (_convert, "reading of footers", 3),
        (_clone, "check of cloned files", 1),
        (_restore, "check of restored files", 3),
        (_checkpoint, "checkpoint", 1),
        (_verify, "verification of files", 3),
        (_verify, "verification of the log", 3),
    ],
)
def test_each_long_command_tells_its_steps(
    table: Path, command: Callable[[Path], None], name: str, done: int, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[ProgressStep] = []
    with caplog.at_level(logging.INFO, "delta_pyds"), delta_pyds.progress_to(seen.append):
        command(table)
    told = [s for s in seen if s.name == name]
    assert (told[0].done, told[0].ended) == (0, False)
    assert (told[-1].done, told[-1].ended) == (done, True) and told[-1].total in (None, done)
    assert sum(s.ended for s in told) == 1
    # and the log has the number and the seconds
    assert any(m.startswith(name.capitalize()) and f": {done} " in m and m.endswith(" s.") for m in caplog.messages)


def test_what_shows_a_step_cannot_stop_it(table: Path, caplog: pytest.LogCaptureFixture) -> None:
    def broken(_step: ProgressStep) -> None:
        raise ValueError("no screen")

    with delta_pyds.progress_to(broken):
        assert delta_pyds.verify(table).ok
    assert sum("no screen" in message for message in caplog.messages) == 2  # once for each step


def test_steps_are_told_as_seldom_as_somebody_can_look() -> None:
    seen: list[ProgressStep] = []
    with delta_pyds.progress_to(seen.append), step("count", "t", total=100_000) as advance:
        for _ in range(100_000):
            advance(1)
    assert len(seen) < 1_000 and seen[-1].done == 100_000


def test_a_step_that_fails_is_over_and_claims_nothing(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[ProgressStep] = []
    with (
        caplog.at_level(logging.INFO, "delta_pyds"),
        delta_pyds.progress_to(seen.append),
        pytest.raises(KeyError),
        step("count", "t", total=3) as advance,
    ):
        advance(1)
        raise KeyError
    assert (seen[-1].done, seen[-1].ended) == (1, True)
    assert not caplog.messages and name_of_step() is None


def test_work_finds_the_step_it_belongs_to() -> None:
    advance_of_step()(7)  # of none
    seen: list[ProgressStep] = []
    with delta_pyds.progress_to(seen.append), step("outer", "t") as outer:
        with step("inner", "s3://user:secret@host/t"):
            advance_of_step()(2)
            assert name_of_step() == "inner of s3://***@host/t"
        outer(1)
        assert name_of_step() == "outer of t"
    assert [(s.name, s.done) for s in seen if s.ended] == [("inner", 2), ("outer", 1)]


def test_nothing_is_shown_where_nobody_looks(table: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert delta_pyds.verify(table).ok
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("asked", [True, None, False])
def test_a_terminal_has_bars(table: Path, monkeypatch: pytest.MonkeyPatch, asked: bool | None) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    if asked is None:
        delta_pyds.verify(table)
    else:
        with delta_pyds.progress_to(asked):
            delta_pyds.verify(table)
    assert ("verification of files" in screen.getvalue()) is (asked is not False)


def test_without_tqdm_there_are_no_bars_and_no_error(table: Path) -> None:
    code = (
        "import sys; sys.modules['tqdm'] = None; sys.modules['tqdm.auto'] = None; sys.stderr.isatty = lambda: True\n"
        "import delta_pyds\n"
        f"assert delta_pyds.verify({str(table)!r}).ok\n"
        "try:\n    with delta_pyds.progress_to(True): pass\nexcept ImportError: print('asked for')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("asked for\n", "")
