"""The results of a run: rows with their goals and floors, as Markdown and as JSON.

Invariants: both sides of a ratio are ``Side``s that were measured in turn, within one work; the head says which run
each work is of; a goal comes from ``goals``; the files are written again after each work, so that a run which is ended
early leaves what it had, and another one can go on from there. Figures of other versions or sizes stay until their work
is run again: their heading names what they were measured with.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
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
    """One comparison."""

    work: str
    what: str
    pair: Pair
    unit: str
    ours: float
    theirs: float
    floor: float | None

    @property
    def limit(self) -> float | None:
        """The goal, as a ratio."""
        return goal(self.work, self.pair.ours, self.pair.theirs, self.unit)

    @property
    def ratio(self) -> float | None:
        """None where theirs is too little to divide by."""
        return self.ours / self.theirs if self.theirs > 0 else None

    @property
    def outcome(self) -> str:
        if self.limit == 0:
            return "met" if self.ours == 0 else "MISSED"
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

    @staticmethod
    def from_json(row: Mapping[str, Any]) -> Row:
        pair = Pair(row["ours"], row["theirs"], row["floor"])
        return Row(
            row["work"], row["what"], pair, row["unit"], row["ours_median"], row["theirs_median"],
            row["floor_median"],
        )  # fmt: skip


@dataclass
class _Part:
    """The results of one work.

    ``run``: of which run it is; ``about``: versions and sizes; ``load``: of the machine, before and after;
    ``notes``: which side could not do what; ``measures``: every round of every side.
    """

    run: str
    about: dict[str, Any]
    load: str = ""
    notes: list[str] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    measures: list[dict[str, Any]] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        rows = [row.as_json() for row in self.rows]
        about = {"run": self.run, "about": self.about, "load": self.load, "notes": self.notes}
        return {**about, "rows": rows, "measures": self.measures}

    @staticmethod
    def from_json(content: Mapping[str, Any], about: Mapping[str, Any]) -> _Part:
        """``about``: of the file, for a work that has none of its own."""
        rows = [Row.from_json(row) for row in content["rows"]]
        own, load, notes = content.get("about", dict(about)), content.get("load", ""), content.get("notes", [])
        return _Part(content["run"], own, load, notes, rows, content["measures"])

    def differing(self, about: Mapping[str, Any]) -> dict[str, Any]:
        """The versions and sizes of the work that are others than those of ``about``."""
        return {name: value for name, value in self.about.items() if about.get(name, value) != value}


_HEAD = ("what", "ours", "measured", "theirs", "measured", "ratio", "goal", "", "floor")


class Results:
    """The rows of each work, and every single measure under them.

    ``works``: all there are, in their order; ``run``: when this run began, and how often it measures.
    """

    def __init__(
        self, folder: Path, works: Sequence[str], run: str, about: Mapping[str, Any], notes: Sequence[str]
    ) -> None:
        self._folder = folder
        self._works = list(works)
        self._run = run
        self._about = dict(about)
        self._notes = list(notes)
        self._parts: dict[str, _Part] = {}
        self._current: _Part | None = None

    def go_on(self) -> None:
        """Begin with what an earlier run left in the folder. Works of other versions or sizes count as missing."""
        file = self._folder / "RESULTS.json"
        if not file.exists():
            return
        content = json.loads(file.read_text())
        self._parts = {work: _Part.from_json(part, content["about"]) for work, part in content["works"].items()}

    @property
    def missing(self) -> list[str]:
        """Works without results of these versions and sizes."""
        return [
            work for work in self._works if work not in self._parts or self._parts[work].differing(self._about)
        ]  # fmt: skip

    @contextmanager
    def part(self, work: str) -> Iterator[None]:
        """What is added inside replaces what was known of ``work``; written at its end, if it got there."""
        part = self._current = _Part(self._run, {})
        before = os.getloadavg()[0]
        try:
            yield
        finally:
            self._current = None
        part.about = dict(self._about)
        part.load = f"{before:.1f} to {os.getloadavg()[0]:.1f}"
        self._parts[work] = part
        self.write()

    def about(self, more: Mapping[str, Any]) -> None:
        """Put what only a running session knows on top."""
        self._about.update(more)

    def note(self, text: str) -> None:
        """A sentence below the rows of this work."""
        assert self._current is not None, "inside part() only"
        self._current.notes.append(text)

    def add(self, work: str, what: str, took: Mapping[str, Side], pairs: Sequence[Pair], unit: str = "s") -> None:
        """One row for each pair; ``unit`` "s" takes seconds, "MB" the memory of the sides, "CPU s" CPU time.
        "times", "requests", "kB", "aborts": the sides' seconds are multiples of others, or numbers of these.
        """
        assert self._current is not None, "inside part() only"
        values = {name: _value(side, unit) for name, side in took.items()}
        for pair in pairs:
            floor = None if pair.floor is None else values[pair.floor]
            row = Row(work, what, pair, unit, values[pair.ours], values[pair.theirs], floor)
            self._current.rows.append(row)
        rounds = {name: _rounds(side, unit) for name, side in took.items()}
        self._current.measures.append({"work": work, "what": what, "unit": unit, "rounds": rounds})

    def write(self, folder: Path | None = None) -> Path:
        """Both files, where the run keeps what it has or in ``folder``. Returns: the Markdown one."""
        folder = folder or self._folder
        folder.mkdir(parents=True, exist_ok=True)
        content = {"about": self._about, "works": {work: part.as_json() for work, part in self._known()}}
        (folder / "RESULTS.json").write_text(json.dumps(content, indent=1) + "\n")
        target = folder / "RESULTS.md"
        target.write_text(self.markdown())
        return target

    def _known(self) -> list[tuple[str, _Part]]:
        return [(work, self._parts[work]) for work in self._works if work in self._parts]

    def markdown(self) -> str:
        rows = [row for _, part in self._known() for row in part.rows]
        goals = [row for row in rows if row.limit is not None]
        runs: dict[str, list[str]] = {}
        for work, part in self._known():
            load = f", load average {part.load}" if part.load else ""
            other = ", ".join(f"{name} {value}" for name, value in part.differing(self._about).items())
            marked = f"{work}{load}" + (f" **(measured with {other})**" if other else "")
            runs.setdefault(part.run, []).append(marked)
        met = sum(row.outcome == "met" for row in goals)
        lines = [
            "# This project beside the reference, its peers and the floor",
            "",
            "Written by `make bench-peers`; nothing here is typed by hand.",
            "",
            *(f"- {name}: {value}" for name, value in self._about.items()),
            *(f"- run of {run}: {'; '.join(works)}" for run, works in sorted(runs.items())),
            *([f"- **not measured: {', '.join(self.missing)}**"] if self.missing else []),
            f"- goals: {met} of {len(goals)} rows met",
            "",
            *(f"{note}\n" for note in self._notes),
        ]
        for _, part in self._known():
            other = ", ".join(f"{name} {value}" for name, value in part.differing(self._about).items())
            for work in dict.fromkeys(row.work for row in part.rows):
                lines += [f"## {work}", ""]
                lines += [f"**Not of this run: measured with {other}.**", ""] if other else []
                lines += [_line(_HEAD), "|" + "---|" * len(_HEAD)]
                lines += [*(_line(row.cells()) for row in part.rows if row.work == work), ""]
            lines += [*(f"- {note}" for note in part.notes), ""] if part.notes else []
        return "\n".join(lines).rstrip() + "\n"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _value(side: Side, unit: str) -> float:
    if unit == "MB":
        return side.peak
    return side.cpu if unit == "CPU s" else side.median


def _rounds(side: Side, unit: str) -> list[float]:
    return {"CPU s": side.cpu_seconds, "MB": side.peak_mb}.get(unit, side.seconds)


def _text(value: float, unit: str) -> str:
    if unit == "times":
        return f"{value:.2f} times"
    if unit in ("requests", "kB", "aborts"):
        return f"{value:,.0f} {unit}"
    return f"{value:.0f} MB" if unit == "MB" else duration(value)
