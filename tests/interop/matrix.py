"""The feature matrix: outcomes of tests as cells, written to ``MATRIX.md`` when a whole run is over.

Invariants: a cell is what the tests of that feature and direction did in this run, and nothing else; a cell fails if
any of its tests fails; "not supported" is said only by ``Cell.peer_refuses``, which saw the peer's own error.

A pytest plugin: ``-p tests.interop.matrix``. Without it ``tests/interop`` is not collected.
"""

from __future__ import annotations

import datetime as dt
import importlib.metadata
import json
import os
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

import delta_pyds
from tests.interop import journal
from tests.interop.journal import Outcome
from tests.interop.setup_env import JARS

MATRIX = Path(__file__).with_name("MATRIX.md")
WAYS = ("vectors", "rewriting")
COMMANDS = ("delete", "update", "merge")
DIRECTIONS = (
    "reference -> us", "us -> reference", "ping-pong", "deltalake -> us", "us -> deltalake",
    *(f"{command} by {way}" for way in WAYS for command in COMMANDS),
)  # fmt: skip
_RECORDER: pytest.StashKey[Recorder] = pytest.StashKey()
# what travels with a report
_CELLS, _REFUSED, _DECIDED = "cells", "refused", "decided"
# tests that passed in an earlier sitting, for the processes of this one
_DONE = "INTEROP_DONE"


class Cell:
    """The place where the test of a feature records what only it can know."""

    def __init__(self, item: pytest.Item) -> None:
        self._item = item

    def passed(self, direction: str) -> None:
        """One of several cells of this test is decided, whatever comes after."""
        assert direction in {found for _, found, _ in _cells_of(self._item)}, f"the test has no cell for {direction!r}."
        self._item.user_properties.append((_DECIDED, direction))

    def peer_refuses(self, action: Callable[[], Any], match: str) -> None:
        """The peer itself refuses this, with an error that says so: the cell becomes "not supported by the peer".

        Raises: AssertionError where the peer does it after all, or fails with another error: then the row is stale.
        """
        try:
            action()
        except Exception as e:
            text = f"{type(e).__name__}: {e}"
            assert re.search(match, text), f"the peer failed in another way than {match!r}: {text}"
            self._item.user_properties.append((_REFUSED, match))
        else:
            raise AssertionError(f"the peer does not refuse this any more ({match!r}): test it instead.")


class Recorder:
    """Collects what the tests of one run came to: they may run in several processes."""

    def __init__(self) -> None:
        self.outcomes: dict[str, Outcome] = {}
        self._commit = journal.commit()
        self._unknown_failures = False

    @property
    def complete(self) -> bool:
        """Whether every test of this folder ran, and whatever failed is in a cell."""
        there = {file.name for file in MATRIX.parent.glob("test_*.py")}
        everything = journal.collected()
        files = {Path(test.partition("::")[0]).name for test in everything}
        return not self._unknown_failures and set(everything) <= self.outcomes.keys() and files == there

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._unknown_failures |= report.failed

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One phase of one test. Reports of worker processes come here as well."""
        properties = dict(report.user_properties)
        if not (report.when == "call" or report.failed):
            return
        if _CELLS not in properties:
            self._unknown_failures |= report.failed
            return
        decided = {direction for name, direction in report.user_properties if name == _DECIDED}
        cells = []
        for feature, direction, note in cast("list[tuple[str, str, str]]", properties[_CELLS]):
            failed = report.failed and direction not in decided
            outcome = "fail" if failed else "not supported" if _REFUSED in properties else f"pass{note}"
            cells.append((feature, direction, outcome))
        self.outcomes[report.nodeid] = Outcome(
            report.nodeid, not report.failed, tuple(cells), report.duration, self._commit
        )
        if "PYTEST_XDIST_WORKER" not in os.environ:  # the process that collects reports writes each once
            journal.add(self.outcomes[report.nodeid])

    def cells(self) -> dict[str, dict[str, str]]:
        """By feature in the order of collection, by direction: the worst that one of a cell's tests came to."""
        cells: dict[str, dict[str, str]] = {}
        for test in journal.collected():
            for feature, direction, outcome in self.outcomes[test].cells if test in self.outcomes else ():
                of_feature = cells.setdefault(feature, {})
                of_feature[direction] = min(of_feature.get(direction, outcome), outcome, key=_order)
        return cells

    def renewed(self, page: str) -> dict[str, dict[str, str]]:
        """The cells of a page with those that this run decided, by all of their tests, in their places."""
        known = _rows(page)
        decided = {test: outcome.cells for test, outcome in self.outcomes.items()}
        # of a test that did not run, only its markers tell its cells
        open_cells = {cell for test, cells in journal.cells().items() if test not in decided for cell in cells}
        for feature, of_feature in self.cells().items():
            for direction, outcome in of_feature.items():
                if (feature, direction) not in open_cells:
                    known.setdefault(feature, {})[direction] = outcome
        there = {feature for cells in journal.cells().values() for feature, _ in cells}
        return {feature: of_feature for feature, of_feature in known.items() if feature in there}

    def slowest(self) -> list[tuple[str, float]]:
        """Cells with their seconds."""
        seconds: dict[str, float] = {}
        for outcome in self.outcomes.values():
            for feature, direction, _ in outcome.cells:
                cell = f"{feature} ({direction})"
                seconds[cell] = seconds.get(cell, 0.0) + outcome.seconds / len(outcome.cells)
        return sorted(seconds.items(), key=lambda entry: -entry[1])[:5]

    def renewed_page(self, page: str) -> str:
        """The page with what this run decided, and a line that says so: all else on it is of the runs before."""
        cells = self.renewed(page)
        known = _rows(page)
        changed = [feature for feature in self.cells() if feature in cells]
        said = [line for line in page.splitlines() if line.startswith("- ")][:-1]
        added = [feature for feature in changed if feature not in known]
        commits = ", ".join(dict.fromkeys(outcome.commit for outcome in self.outcomes.values()))
        day = _versions()["day"]
        line = f"- renewed on {day} at {commits}, {len(changed)} rows, of them new: {', '.join(added) or 'none'}"
        return self.markdown(cells, [*said, line])

    def markdown(self, cells: Mapping[str, Mapping[str, str]] | None = None, about: Sequence[str] | None = None) -> str:
        """The page. ``cells``, ``about``: other ones than those of this run alone."""
        cells = self.cells() if cells is None else cells
        directions = [d for d in DIRECTIONS if any(d in of_feature for of_feature in cells.values())]
        lines = [
            "# Tables exchanged with the other implementations",
            "",
            "`make interop` writes this page; nothing is typed by hand. `fail` is an error of delta_pyds.",
            "`not supported` means that the other implementation refused, and the test asserts its error.",
            "An empty cell has no test. Brackets after `pass` give its condition.",
            "",
            *(about or [*(f"- {name}: {version}" for name, version in _versions().items()), *self._sittings()]),
            f"- {_sum(cells)}",
            "",
            "| feature | " + " | ".join(directions) + " |",
            "|---|" + "---|" * len(directions),
        ]
        for feature, of_feature in cells.items():
            lines.append(f"| {feature} | " + " | ".join(of_feature.get(d, "") for d in directions) + " |")
        return "\n".join(lines) + "\n"

    def _sittings(self) -> list[str]:
        commits = list(dict.fromkeys(outcome.commit for outcome in self.outcomes.values()))
        return [f"- commits, of as many sittings: {', '.join(commits)}"] if len(commits) > 1 else []


def _rows(page: str) -> dict[str, dict[str, str]]:
    """The cells of a page."""
    table = [[cell.strip() for cell in line[1:-1].split("|")] for line in page.splitlines() if line.startswith("| ")]
    directions = table[0][1:]
    return {row[0]: {d: cell for d, cell in zip(directions, row[1:], strict=True) if cell} for row in table[1:]}


def _sum(cells: Mapping[str, Mapping[str, str]]) -> str:
    outcomes = [outcome.partition(" (")[0] for of_feature in cells.values() for outcome in of_feature.values()]
    return ", ".join(f"{outcomes.count(outcome)} {outcome}" for outcome in ("pass", "fail", "not supported"))


@pytest.fixture
def cell(request: pytest.FixtureRequest) -> Cell:
    """The cells of this test, as its markers ``cell(feature, direction)`` say."""
    return Cell(request.node)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--bounded", action="store_true", help="a part of each kind of check, for every change")
    parser.addoption("--renew", action="store_true", help="put the cells of this run into MATRIX.md, however few")
    parser.addoption("--go-on", action="store_true", help="leave out what passed in the last sitting of a whole run")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "cell(feature, direction, note=''): a cell of MATRIX.md that the test decides")
    config.addinivalue_line("markers", "also_bounded: runs with --bounded, too")
    recorder = config.stash[_RECORDER] = Recorder()
    config.pluginmanager.register(recorder)
    if hasattr(config, "workerinput"):
        return
    os.environ.pop(_DONE, None)
    if config.getoption("renew") and any(".py" in argument for argument in config.args):
        raise pytest.UsageError("--renew needs the names of all tests: choose them with -k, and name no file.")
    if config.getoption("--go-on"):
        recorder.outcomes = journal.outcomes()
        # the processes that run tests must leave out the same ones
        os.environ[_DONE] = json.dumps(sorted(recorder.outcomes))
    elif not (config.getoption("bounded") or config.getoption("keyword") or any(".py" in a for a in config.args)):
        journal.forget()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give every test its cells, before anything is deselected: of a part, no matrix is written."""
    journal.collected({item.nodeid: [cell[:2] for cell in _cells_of(item)] for item in items})
    for item in items:
        item.user_properties.append((_CELLS, _cells_of(item)))
    done = set(json.loads(os.environ.get(_DONE, "[]")))
    left = {item for item in items if item.nodeid in done}
    if config.getoption("bounded"):
        left |= {item for item in items if item.get_closest_marker("also_bounded") is None}
    if left:
        config.hook.pytest_deselected(items=[item for item in items if item in left])
        items[:] = [item for item in items if item not in left]


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """A run of a part leaves cells out, so it writes only where it is told to."""
    recorder = session.config.stash[_RECORDER]
    finished = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)
    if hasattr(session.config, "workerinput") or exitstatus not in finished:
        return
    if "INTEROP_MATRIX" in os.environ:
        Path(os.environ["INTEROP_MATRIX"]).write_text(recorder.markdown())
    elif session.config.getoption("renew"):
        MATRIX.write_text(recorder.renewed_page(MATRIX.read_text()))
    elif recorder.complete:
        MATRIX.write_text(recorder.markdown())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if slowest := config.stash[_RECORDER].slowest():
        terminalreporter.write_line(
            "slowest cells: " + ", ".join(f"{cell} {seconds:.0f} s" for cell, seconds in slowest)
        )


def _versions() -> dict[str, str]:
    jar = next((jar.name for jar in JARS.glob("delta-spark_*.jar")), "")
    return {
        "day": dt.datetime.now(dt.timezone.utc).date().isoformat(),
        "delta-spark": re.sub(r"delta-spark_(.*)\.jar", r"\1", jar),
        "delta_pyds": delta_pyds.__version__,
        "Python": platform.python_version(),
        "pyarrow": importlib.metadata.version("pyarrow"),
        "PySpark": importlib.metadata.version("pyspark"),
        "deltalake": importlib.metadata.version("deltalake"),
    }


def _cells_of(item: pytest.Item) -> list[tuple[str, str, str]]:
    """Feature, direction and note of each."""
    found = []
    for marker in item.iter_markers("cell"):
        feature, direction, *note = map(str, marker.args)
        if direction not in DIRECTIONS:
            raise ValueError(
                f"{direction!r} of {item.nodeid} is not a direction of the matrix; those are {DIRECTIONS}."
            )
        found.append((feature, direction, f" ({note[0]})" if note else ""))
    if not found:
        raise LookupError(f"{item.nodeid} has no marker cell(feature, direction).")
    return found


def _order(outcome: str) -> int:
    """The worst one of a cell's tests is shown; of two that passed, the one with a note."""
    return {"fail": 0, "not supported": 1, "pass": 3}.get(outcome, 2)
