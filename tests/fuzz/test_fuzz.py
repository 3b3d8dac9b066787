"""A bounded part of ``make fuzz``, and that it finds what it is there to find."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from delta_pyds.errors import DeltaError
from tests.fuzz.byte_damage import footer_start
from tests.fuzz.damage import Damage, apply
from tests.fuzz.expressions import Spelled, SpelledSummary
from tests.fuzz.operations import Outcome, outcome_of
from tests.fuzz.runner import SoundCopy
from tests.fuzz.tables import TABLES, build
from tests.fuzz.verdicts import Result, Summary, Verdict, verdict

_PROJECT = Path(__file__).resolve().parents[2]
_HINT = Damage("hint", "bytes", "_delta_log/_last_checkpoint", "")
_COMMIT = Damage("commit", "json", "_delta_log/00000000000000000000.json", "")


def _python(*arguments: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own, because it forks, and this one may have threads."""
    return subprocess.run([sys.executable, *arguments], cwd=_PROJECT, capture_output=True, text=True)


@pytest.mark.parametrize(("part", "count"), [("anything", 150), ("footers", 80)])
def test_damaged_tables_bring_no_fault(part: str, count: int) -> None:
    done = _python("-m", "tests.fuzz", "--seed", "bounded", "--part", part, "--count", str(count), "--spark", "0")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{count} damaged tables" in done.stdout


def test_of_footers_alone_nothing_else_is_damaged(tmp_path: Path) -> None:
    build(TABLES[0], tmp_path / "sound")
    content = {p: p.read_bytes() for p in (tmp_path / "sound").rglob("*.parquet")}
    hows = set()
    for seed in range(60):
        copy = SoundCopy(tmp_path / "sound", tmp_path / "table")
        copy.restore()
        [damage] = apply(tmp_path / "table", [], Random(seed), "footers")
        hows.add(damage.how)
        before, after = content[tmp_path / "sound" / damage.file], (tmp_path / "table" / damage.file).read_bytes()
        assert before[: footer_start(before)] == after[: footer_start(before)]
        assert after != before or damage.how == "bounds" or "byte" in damage.what
        # a contradiction can be seen, independent of what the format checks
        assert damage.unchecked == (damage.how == "footer bytes")
    assert hows == {"footer bytes", "bounds"}


_BROKEN = """
import os, time
from tests.fuzz import runner

faults = {faults!r}
ask = runner._ask

def broken(say, table, place, number, *rest):
    runner.chosen = lambda table, random: {{"read": lambda root: eval(faults[number])}}
    return ask(say, table, place, number, *rest)

runner._ask = broken
runner.SECONDS = {seconds}
for result in runner.run("1", range(len(faults)), processes=1):
    print(result.kind, result.verdicts[0].text.splitlines()[-1], sep=": ")
    assert result.damages and result.table != "?"
"""


@pytest.mark.parametrize(
    ("faults", "seconds", "told"),
    [
        (["time.sleep(60)"], 2, ["hang: no end after 2 seconds"]),
        (
            ["os.abort()", "os._exit(3)", "[].pop()", "bytearray(3 << 30)"],
            60,
            [
                "crash: signal SIGABRT",
                "crash: exit 3",
                "exception: IndexError: pop from empty list",
                "exception: MemoryError",
            ],
        ),
    ],
)
def test_what_becomes_of_a_process_is_told(faults: list[str], seconds: int, told: list[str]) -> None:
    done = _python("-c", _BROKEN.format(faults=faults, seconds=seconds))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == told


def test_a_seed_and_a_number_mean_one_damage(tmp_path: Path) -> None:
    done = []
    for name in ("one", "two"):
        table = TABLES[0]
        build(table, tmp_path / name)
        damages = apply(tmp_path / name, [], Random(5))
        files = {p.relative_to(tmp_path / name): p.read_bytes() for p in (tmp_path / name).rglob("*") if p.is_file()}
        done.append((damages, files))
    assert done[0] == done[1]


def test_a_damaged_table_is_made_whole_again(tmp_path: Path) -> None:
    build(TABLES[0], tmp_path / "sound")
    copy = SoundCopy(tmp_path / "sound", tmp_path / "table")
    copy.restore()
    whole = {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in (tmp_path / "sound").rglob("*") if p.is_file()}
    for seed in range(40):
        apply(tmp_path / "table", [tmp_path / "sound"], Random(seed))
        copy.restore()
        found = [p for p in (tmp_path / "table").rglob("*") if not p.is_dir()]
        assert {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in found} == whole


_ROWS = Outcome("rows", Counter({"a": 1}))


@pytest.mark.parametrize(
    ("operation", "outcome", "damage", "kind"),
    [
        ("read", Outcome("rows", Counter({"a": 1})), _HINT, "same"),
        ("read", Outcome("rows", Counter({"a": 2})), _HINT, "wrong rows"),
        ("read", Outcome("rows", Counter()), _HINT, "wrong rows"),
        ("read", Outcome("rows", Counter()), _COMMIT, "unchecked"),
        ("read", Outcome("error", text="a sentence"), _COMMIT, "refused"),
        ("verify", Outcome("error", text="a sentence"), _COMMIT, "verify raised"),
        ("read", Outcome("exception", text="KeyError"), _COMMIT, "exception"),
    ],
)
def test_verdicts(operation: str, outcome: Outcome, damage: Damage, kind: str) -> None:
    assert verdict(operation, outcome, _ROWS, [damage]).kind == kind


@pytest.mark.parametrize("text", ["a \x1b[31m", "\ud800", "x" * 20_000])
def test_messages_that_nobody_can_read(text: str) -> None:
    class UnreadableError(DeltaError):
        def __str__(self) -> str:
            return text

    assert outcome_of(lambda _: _raise(UnreadableError("")), "").kind == "bad message"
    assert outcome_of(lambda _: _raise(DeltaError(text)), "").kind == "error"


def _raise(error: Exception) -> None:
    raise error


def test_the_summary_counts_faults_and_what_has_no_check() -> None:
    summary = Summary()
    summary.add(Result(1, "t", [_COMMIT], [Verdict("read", "unchecked", "1 rows instead of 2")], True))
    summary.add(Result(2, "t", [_HINT], [Verdict("read", "refused"), Verdict("where x", "wrong rows", "0 rows")]))
    summary.add(Result(3, "t", [_HINT], [Verdict("read", "refused")]))
    text = "\n".join(summary.lines())
    assert (summary.total, summary.num_faults) == (3, 1)
    assert "commit       json               1     1" in text
    assert "--only 2 " in text


def test_no_spelling_of_an_expression_runs_what_it_may_not() -> None:
    done = _python("-m", "tests.fuzz", "--seed", "bounded", "--count", "250", "--part", "expressions")
    assert done.returncode == 0, done.stdout + done.stderr
    # that there was something to hold, and that something harmless was not held
    found = re.search(r"250 spellings of expressions, of which Spark alone runs (\d+):", done.stdout)
    assert found is not None and int(found[1]) > 20, done.stdout
    assert "harmless" in done.stdout


def test_a_spelling_that_escapes_is_told() -> None:
    summary = SpelledSummary()
    summary.add(Spelled(7, "reflect('a')", {}, "escaped", "", True))
    assert [one.number for one in summary.escaped] == [7]
    assert any("--only 7 --part expressions  escaped: \"reflect('a')\"" in line for line in summary.lines())
