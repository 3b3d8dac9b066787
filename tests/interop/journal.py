"""The results of a whole run's tests, kept from one start to the next: a whole run takes an hour.

Invariant: a test that failed, or has another name now, is run again; the matrix says which commits were judged.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

_CHECKOUT = Path(__file__).resolve().parents[2]
JOURNAL = _CHECKOUT / ".interop" / "outcomes.jsonl"
_COLLECTED = _CHECKOUT / ".interop" / "collected.json"


@dataclass(frozen=True)
class Outcome:
    """One test's: ``cells`` are feature, direction and what it came to; ``commit`` is that of the checkout."""

    test: str
    passed: bool
    cells: tuple[tuple[str, str, str], ...]
    seconds: float
    commit: str


def add(outcome: Outcome) -> None:
    """Keep it at once: a run may be ended at any time."""
    JOURNAL.parent.mkdir(exist_ok=True)
    with JOURNAL.open("a") as file:
        file.write(json.dumps(asdict(outcome)) + "\n")


def outcomes() -> dict[str, Outcome]:
    """The last one of each test that passed then."""
    found = {outcome.test: outcome for outcome in _all()}
    return {test: outcome for test, outcome in found.items() if outcome.passed}


def collected(tests: Mapping[str, Sequence[tuple[str, str]]] | None = None) -> list[str]:
    """All tests in their order, whatever of them is run: processes that collect say it, with the cells of each; the
    one that sums up asks."""
    if tests is not None:
        _COLLECTED.parent.mkdir(exist_ok=True)
        part = _COLLECTED.with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps(tests))
        part.replace(_COLLECTED)
    return list(cells())


def cells() -> dict[str, list[tuple[str, str]]]:
    """Features and directions of each test that was collected."""
    found = json.loads(_COLLECTED.read_text()) if _COLLECTED.exists() else {}
    return {test: [(feature, direction) for feature, direction in of_test] for test, of_test in found.items()}


def forget() -> None:
    """A run from the beginning has no earlier sitting."""
    JOURNAL.unlink(missing_ok=True)


def commit() -> str:
    """Of the checkout, with a mark where files are changed."""
    found = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--exclude=*"],
        cwd=_CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )
    return found.stdout.strip() or "unknown"


def _all() -> Iterator[Outcome]:
    if not JOURNAL.exists():
        return
    for line in JOURNAL.read_text().splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue  # the last line of a run that was killed
        cells = tuple((feature, direction, outcome) for feature, direction, outcome in record.pop("cells"))
        yield Outcome(cells=cells, **record)
