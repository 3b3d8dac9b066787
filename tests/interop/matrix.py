"""The feature matrix: outcomes of tests as cells, written to ``MATRIX.md`` when a whole run is over.

Invariants: a cell is what the tests of that feature and direction did in this run, and nothing else; a cell fails if
any of its tests fails; "not supported" is said only by ``Cell.peer_refuses``, which saw the peer's own error.

A pytest plugin: ``-p tests.interop.matrix``. Without it ``tests/interop`` is not collected.
"""

from __future__ import annotations

import datetime as dt
import importlib.metadata
import os
import platform
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

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


class Cell:
    """Where the test of one feature says what only it can know."""

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
    """Collects the cells of one run, in the order of collection: tests may run in several processes."""

    def __init__(self) -> None:
        self.cells: dict[tuple[str, str], str] = {}
        self.seconds: dict[tuple[str, str], float] = {}
        self._rank: dict[str, int] = {}
        self._ran: set[int] = set()
        self._all = -1
        self._files: set[str] = set()
        self._unknown_failures = False

    @property
    def complete(self) -> bool:
        """Whether every test of this folder ran, and whatever failed is in a cell."""
        there = {file.name for file in MATRIX.parent.glob("test_*.py")}
        return not self._unknown_failures and len(self._ran) == self._all and self._files == there

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
        number, self._all, cells = cast("tuple[int, int, list[tuple[str, str, str]]]", properties[_CELLS])
        self._ran.add(number)
        self._files.add(Path(report.nodeid.partition("::")[0]).name)
        decided = {direction for name, direction in report.user_properties if name == _DECIDED}
        for feature, direction, note in cells:
            failed = report.failed and direction not in decided
            outcome = "fail" if failed else "not supported" if _REFUSED in properties else f"pass{note}"
            key = (feature, direction)
            self.cells[key] = min(self.cells.get(key, outcome), outcome, key=_order)
            self.seconds[key] = self.seconds.get(key, 0.0) + report.duration / len(cells)
            self._rank[feature] = min(number, self._rank.get(feature, number))

    def markdown(self) -> str:
        directions = [d for d in DIRECTIONS if any(direction == d for _, direction in self.cells)]
        lines = [
            "# What was exchanged with the other implementations, and how it went",
            "",
            "Written by `make interop`; nothing here is typed by hand. `fail` is ours to mend; `not supported` means",
            "that the peer refused it, with an error that the test asserts; an empty cell has no test. A `pass` after",
            "which something stands in brackets was reached so.",
            "",
            *(f"- {name}: {version}" for name, version in _versions().items()),
            f"- {self._sum()}",
            "",
            "| feature | " + " | ".join(directions) + " |",
            "|---|" + "---|" * len(directions),
        ]
        for feature in sorted(self._rank, key=self._rank.__getitem__):
            cells = (self.cells.get((feature, direction), "") for direction in directions)
            lines.append(f"| {feature} | " + " | ".join(cells) + " |")
        return "\n".join(lines) + "\n"

    def _sum(self) -> str:
        outcomes = [outcome.partition(" (")[0] for outcome in self.cells.values()]
        return ", ".join(f"{outcomes.count(outcome)} {outcome}" for outcome in ("pass", "fail", "not supported"))


@pytest.fixture
def cell(request: pytest.FixtureRequest) -> Cell:
    """The cells of this test, as its markers ``cell(feature, direction)`` say."""
    return Cell(request.node)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--bounded", action="store_true", help="a part of each kind of check, for every change")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "cell(feature, direction, note=''): a cell of MATRIX.md that the test decides")
    config.addinivalue_line("markers", "also_bounded: runs with --bounded, too")
    config.stash[_RECORDER] = Recorder()
    config.pluginmanager.register(config.stash[_RECORDER])


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give every test its cells, before anything is deselected: of a part, no matrix is written."""
    for number, item in enumerate(items):
        item.user_properties.append((_CELLS, (number, len(items), _cells_of(item))))
    if config.getoption("bounded"):
        left = [item for item in items if item.get_closest_marker("also_bounded") is None]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in set(left)]


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """A run of a part leaves cells out, so it writes only where it is told to."""
    recorder = session.config.stash[_RECORDER]
    if hasattr(session.config, "workerinput") or exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        return
    if "INTEROP_MATRIX" in os.environ:
        Path(os.environ["INTEROP_MATRIX"]).write_text(recorder.markdown())
    elif recorder.complete:
        MATRIX.write_text(recorder.markdown())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    recorder = config.stash[_RECORDER]
    slowest = sorted(recorder.seconds.items(), key=lambda entry: -entry[1])[:5]
    if slowest:
        terminalreporter.write_line("slowest cells: " + ", ".join(f"{f} ({d}) {s:.0f} s" for (f, d), s in slowest))


def _versions() -> dict[str, str]:
    jar = next((jar.name for jar in JARS.glob("delta-spark_*.jar")), "")
    return {
        "day": dt.datetime.now(dt.timezone.utc).date().isoformat(),
        "delta-spark": re.sub(r"delta-spark_(.*)\.jar", r"\1", jar),
        "delta_pyds": importlib.metadata.version("delta-pyds"),
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
            raise ValueError(f"{direction!r} of {item.nodeid} is no direction of the matrix; those are {DIRECTIONS}.")
        found.append((feature, direction, f" ({note[0]})" if note else ""))
    if not found:
        raise LookupError(f"{item.nodeid} has no marker cell(feature, direction).")
    return found


def _order(outcome: str) -> int:
    """The worst one of a cell's tests is shown; of two that passed, the one with a note."""
    return {"fail": 0, "not supported": 1, "pass": 3}.get(outcome, 2)
