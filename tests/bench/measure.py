"""Timing two or more sides in turn, and the table of what came out."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass
class Side:
    """What one side's rounds gave: ``seconds`` and, where it was taken, ``peak_mb`` of each round."""

    seconds: list[float] = field(default_factory=list)
    peak_mb: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """Seconds."""
        return statistics.median(self.seconds)

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


def in_turn(sides: Mapping[str, Callable[[], tuple[float, float] | None]], rounds: int) -> dict[str, Side]:
    """Run the sides A B A B ..., once to warm up and then ``rounds`` times.

    A side that takes its own measure returns (seconds, MB); others are timed here.
    """
    results = {name: Side() for name in sides}
    for number in range(rounds + 1):
        for name, run in sides.items():
            begin = time.perf_counter()
            own = run()
            seconds, megabytes = own or (time.perf_counter() - begin, 0.0)
            if number:
                results[name].seconds.append(seconds)
                results[name].peak_mb.append(megabytes)
            say(f"  {name}: {seconds:.3f} s" + ("" if number else "  (warm-up)"))
    return results


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
