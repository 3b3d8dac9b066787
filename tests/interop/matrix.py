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
from typing import Any

import pytest

MATRIX = Path(__file__).with_name("MATRIX.md")
DIRECTIONS = ("reference -> us", "us -> reference", "ping-pong", "deltalake -> us", "us -> deltalake")
_ORDER = {"fail": 0, "not supported": 1, "pass": 2}
_SETTINGS: pytest.StashKey[Recorder] = pytest.StashKey()


class Cell:
    """Where the test of one feature and one direction says what only it can know."""

    def __init__(self, item: pytest.Item, feature: str, direction: str) -> None:
        if direction not in DIRECTIONS:
            raise ValueError(f"{direction!r} is no direction of the matrix; those are {DIRECTIONS}.")
        self.feature = feature
        self.direction = direction
        self._item = item

    def peer_refuses(self, action: Callable[[], Any], match: str) -> None:
        """The peer itself refuses this, with an error that says so: the cell becomes "not supported by the peer".

        Raises: AssertionError where the peer does it after all, or fails with another error: then the row is stale.
        """
        try:
            action()
        except Exception as e:
            text = f"{type(e).__name__}: {e}"
            assert re.search(match, text), f"the peer failed in another way than {match!r}: {text}"
            self._item.user_properties.append(("refused", match))
        else:
            raise AssertionError(f"the peer does not refuse this any more ({match!r}): test it instead.")


class Recorder:
    """Collects the cells of one run."""

    def __init__(self) -> None:
        self.cells: dict[tuple[str, str], str] = {}
        self.seconds: dict[tuple[str, str], float] = {}
        self.versions: dict[str, str] = {}

    def add(self, feature: str, direction: str, outcome: str, seconds: float) -> None:
        key = (feature, direction)
        known = self.cells.get(key, "pass")
        self.cells[key] = min(known, outcome, key=_ORDER.__getitem__)
        self.seconds[key] = self.seconds.get(key, 0.0) + seconds

    def markdown(self) -> str:
        directions = [d for d in DIRECTIONS if any(direction == d for _, direction in self.cells)]
        lines = [
            "# What was exchanged with the other implementations, and how it went",
            "",
            "Written by `make interop`; nothing here is typed by hand. `fail` is ours to mend; `not supported` means",
            "that the peer refused it, with an error that the test asserts; an empty cell has no test.",
            "",
            *(f"- {name}: {version}" for name, version in self.versions.items()),
            f"- {self._sum()}",
            "",
            "| feature | " + " | ".join(directions) + " |",
            "|---|" + "---|" * len(directions),
        ]
        for feature in dict.fromkeys(feature for feature, _ in self.cells):
            cells = (self.cells.get((feature, direction), "") for direction in directions)
            lines.append(f"| {feature} | " + " | ".join(cells) + " |")
        return "\n".join(lines) + "\n"

    def _sum(self) -> str:
        outcomes = list(self.cells.values())
        return ", ".join(f"{outcomes.count(outcome)} {outcome}" for outcome in ("pass", "fail", "not supported"))


@pytest.fixture
def cell(request: pytest.FixtureRequest) -> Cell:
    """The cell of this test, as its marker ``cell(feature, direction)`` says."""
    found = _cell_of(request.node)
    if found is None:
        raise LookupError(f"{request.node.nodeid} has no marker cell(feature, direction).")
    return Cell(request.node, *found)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "cell(feature, direction): which cell of MATRIX.md the test decides")
    config.stash[_SETTINGS] = Recorder()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    report = yield
    found = _cell_of(item)
    if found is not None and (report.when == "call" or report.failed):
        refused = any(name == "refused" for name, _ in item.user_properties)
        outcome = "fail" if report.failed else "not supported" if refused else "pass"
        item.config.stash[_SETTINGS].add(*found, outcome, report.duration)
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A run that selected tests would leave rows out, so it writes only where it is told to."""
    config = session.config
    recorder = config.stash[_SETTINGS]
    selected = config.option.keyword or config.option.markexpr or any("::" in a for a in config.args)
    target = Path(os.environ["INTEROP_MATRIX"]) if "INTEROP_MATRIX" in os.environ else None if selected else MATRIX
    if target is None or not recorder.cells or (session.testsfailed == 0 and session.shouldstop):
        return
    recorder.versions = {**_own_versions(), **recorder.versions}
    target.write_text(recorder.markdown())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    recorder = config.stash[_SETTINGS]
    slowest = sorted(recorder.seconds.items(), key=lambda entry: -entry[1])[:5]
    if slowest:
        terminalreporter.write_line("slowest cells: " + ", ".join(f"{f} ({d}) {s:.0f} s" for (f, d), s in slowest))


def say_version(config: pytest.Config, name: str, version: str) -> None:
    """Put a version that only a running session knows on top of the matrix."""
    config.stash[_SETTINGS].versions[name] = version


def _own_versions() -> dict[str, str]:
    return {
        "day": dt.datetime.now(dt.timezone.utc).date().isoformat(),
        "delta_pyds": importlib.metadata.version("delta-pyds"),
        "Python": platform.python_version(),
        "pyarrow": importlib.metadata.version("pyarrow"),
        "PySpark": importlib.metadata.version("pyspark"),
        "deltalake": importlib.metadata.version("deltalake"),
    }


def _cell_of(item: pytest.Item) -> tuple[str, str] | None:
    marker = item.get_closest_marker("cell")
    return None if marker is None else (str(marker.args[0]), str(marker.args[1]))
