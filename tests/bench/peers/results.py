"""What the run found: rows with their goals and floors, as Markdown and as JSON.

Invariants: every figure comes from a ``Side`` that was measured in this run; a goal comes from ``goals``; the files are
written anew after each work, so that a run which is ended early leaves what it had.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.measure import Side, duration
from tests.bench.peers.goals import goal


@dataclass(frozen=True)
class Pair:
    """Whose median over whose; ``floor``: the side that says what the same work costs at least."""

    ours: str
    theirs: str
    floor: str | None = None


@dataclass(frozen=True)
class Row:
    """One comparison. ``limit``: the goal, as a ratio."""

    work: str
    what: str
    pair: Pair
    unit: str
    ours: float
    theirs: float
    limit: float | None
    floor: float | None

    @property
    def ratio(self) -> float | None:
        """None where theirs is too little to divide by."""
        return self.ours / self.theirs if self.theirs > 0 else None

    @property
    def outcome(self) -> str:
        if self.limit is None or self.ratio is None:
            return ""
        if self.ratio <= self.limit:
            return "met"
        if self.floor is None:
            return "MISSED"
        if self.floor / self.theirs > self.limit:
            return f"MISSED; the floor itself is at {self.floor / self.theirs:.2f}, above the goal"
        return f"MISSED; the floor is at {self.floor / self.theirs:.2f}"

    def cells(self) -> list[str]:
        floor = "" if self.floor is None else f"{_text(self.floor, self.unit)} ({self.pair.floor})"
        ratio = "" if self.ratio is None else f"{self.ratio:.2f}"
        limit = "" if self.limit is None else f"<= {self.limit:.2f}"
        ours, theirs = _text(self.ours, self.unit), _text(self.theirs, self.unit)
        return [self.what, self.pair.ours, ours, self.pair.theirs, theirs, ratio, limit, self.outcome, floor]

    def as_json(self) -> dict[str, Any]:
        return {
            "work": self.work, "what": self.what, "ours": self.pair.ours, "theirs": self.pair.theirs,
            "unit": self.unit, "ours_median": self.ours, "theirs_median": self.theirs, "ratio": self.ratio,
            "goal": self.limit, "outcome": self.outcome, "floor": self.pair.floor, "floor_median": self.floor,
        }  # fmt: skip


_HEAD = ("what", "ours", "measured", "theirs", "measured", "ratio", "goal", "", "floor")


class Results:
    """The rows of one run, and every single measure behind them."""

    def __init__(self, folder: Path, about: Mapping[str, Any], notes: Sequence[str]) -> None:
        self._folder = folder
        self._about = dict(about)
        self._notes = list(notes)
        self.rows: list[Row] = []
        self._rounds: list[dict[str, Any]] = []

    def about(self, more: Mapping[str, Any]) -> None:
        """Put what only a running session knows on top."""
        self._about.update(more)

    def add(self, work: str, what: str, took: Mapping[str, Side], pairs: Sequence[Pair], unit: str = "s") -> None:
        """One row for each pair; ``unit`` "s" takes seconds, "MB" takes the memory of the sides."""
        values = {name: side.median if unit == "s" else side.peak for name, side in took.items()}
        for pair in pairs:
            floor = None if pair.floor is None else values[pair.floor]
            limit = goal(work, pair.ours, pair.theirs, unit)
            self.rows.append(Row(work, what, pair, unit, values[pair.ours], values[pair.theirs], limit, floor))
        rounds = {name: side.seconds if unit == "s" else side.peak_mb for name, side in took.items()}
        self._rounds.append({"work": work, "what": what, "unit": unit, "rounds": rounds})

    def write(self, folder: Path | None = None) -> Path:
        """Both files, where the run keeps what it has or in ``folder``. Returns: the Markdown one."""
        folder = folder or self._folder
        folder.mkdir(parents=True, exist_ok=True)
        content = {"about": self._about, "rows": [row.as_json() for row in self.rows], "measures": self._rounds}
        (folder / "RESULTS.json").write_text(json.dumps(content, indent=1) + "\n")
        target = folder / "RESULTS.md"
        target.write_text(self.markdown())
        return target

    def markdown(self) -> str:
        goals = [row for row in self.rows if row.limit is not None]
        met = sum(row.outcome == "met" for row in goals)
        lines = [
            "# This project beside the reference, its peers and the floor",
            "",
            "Written by `make bench-peers`; nothing here is typed by hand.",
            "",
            *(f"- {name}: {value}" for name, value in self._about.items()),
            f"- goals: {met} of {len(goals)} rows met",
            "",
            *(f"{note}\n" for note in self._notes),
        ]
        for work in dict.fromkeys(row.work for row in self.rows):
            lines += [f"## {work}", "", _line(_HEAD), "|" + "---|" * len(_HEAD)]
            lines += [_line(row.cells()) for row in self.rows if row.work == work]
            lines.append("")
        return "\n".join(lines).rstrip() + "\n"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _text(value: float, unit: str) -> str:
    return duration(value) if unit == "s" else f"{value:.0f} MB"
