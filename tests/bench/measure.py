"""Timing two or more sides in turn, and the table of what came out."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class Measure(NamedTuple):
    """The cost of one run. ``peak_mb``, ``cpu_seconds``: 0 where they were not measured."""

    seconds: float
    peak_mb: float = 0.0
    cpu_seconds: float = 0.0


@dataclass
class Side:
    """The figures of one side's rounds: ``seconds`` and, where measured, ``peak_mb`` and ``cpu_seconds`` of each."""

    seconds: list[float] = field(default_factory=list)
    peak_mb: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """Seconds."""
        return statistics.median(self.seconds)

    @property
    def cpu(self) -> float:
        """Seconds of CPU time."""
        return statistics.median(self.cpu_seconds)

    @property
    def peak(self) -> float:
        """The largest peak of memory, in MB."""
        return max(self.peak_mb)


@dataclass(frozen=True)
class Line:
    """One line of the report: ``left`` and ``right`` in ``unit``, and how they compare."""

    name: str
    what: str
    left: str
    right: str
    compared: str
    target: str = ""


def in_turn(
    sides: Mapping[str, Callable[[], tuple[float, ...] | None]], rounds: int, spare: float = 0, most: int = 12
) -> dict[str, Side]:
    """Run the sides once to warm up and then ``rounds`` times, in alternating order: A B C, C B A, A B C ...

    A machine that gets slower or quicker meanwhile does so for all of them then, and not for those that come last.
    More rounds follow, up to ``most``, for as long as another one would end within ``spare`` seconds of the first.
    A side that takes its own measure returns a ``Measure``, or the beginning of one; others are timed here.
    """
    results = {name: Side() for name in sides}
    order = list(sides)
    _round(sides, results, order, counted=False)
    start, number, last = time.perf_counter(), 0, 0.0
    while number < rounds or (number < most and time.perf_counter() - start + last <= spare):
        begin = time.perf_counter()
        _round(sides, results, order[::-1] if number % 2 else order, counted=True)
        number, last = number + 1, time.perf_counter() - begin
    return results


def _round(
    sides: Mapping[str, Callable[[], tuple[float, ...] | None]],
    results: Mapping[str, Side],
    order: Sequence[str],
    *,
    counted: bool,
) -> None:
    for name in order:
        begin = time.perf_counter()
        own = sides[name]()
        measure = Measure(*own) if own else Measure(time.perf_counter() - begin)
        if counted:
            results[name].seconds.append(measure.seconds)
            results[name].peak_mb.append(measure.peak_mb)
            results[name].cpu_seconds.append(measure.cpu_seconds)
        cpu = f", {measure.cpu_seconds:.2f} s of CPU time" if measure.cpu_seconds else ""
        say(f"  {name}: {measure.seconds:.3f} s{cpu}" + ("" if counted else "  (warm-up)"))


def ratio_line(name: str, what: str, left: Side, right: Side, target: float | None = None, note: str = "") -> Line:
    """A line that compares medians; ``target`` is the largest ratio wanted."""
    ratio = left.median / right.median
    wanted = "" if target is None else f"<= {target:.2f} {'met' if ratio <= target else 'MISSED'}"
    return Line(name, what, duration(left.median), duration(right.median), f"{ratio:.2f}{note}", wanted)


def duration(seconds: float) -> str:
    """Seconds or milliseconds, three digits."""
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"


def say(text: str) -> None:
    """Progress, which is not part of the report."""
    print(text, file=sys.stderr, flush=True)


def report(lines: list[Line]) -> str:
    """The lines as a table."""
    head = ("", "what", "deltapy", "other", "ratio", "target")
    rows = [head, *((x.name, x.what, x.left, x.right, x.compared, x.target) for x in lines)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    text = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([text[0], "-" * max(map(len, text)), *text[1:]])
