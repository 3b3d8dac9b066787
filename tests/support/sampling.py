"""Which part of an exhaustive list a run of the tests takes.

Invariants: the part depends on the commit alone, so both processes of `make test` agree, a failure comes again until
the next commit, and every case is taken within some commits; with ``EXHAUSTIVE=1`` (`make test-exhaustive`) it is the
whole list. ``SAMPLE_SEED`` repeats the run of another commit.
"""

from __future__ import annotations

import functools
import os
import subprocess
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

_CHECKOUT = Path(__file__).resolve().parents[2]


def exhaustive() -> bool:
    """Whether this run takes everything."""
    return os.environ.get("EXHAUSTIVE", "") not in ("", "0")


@functools.cache
def seed() -> str:
    """``SAMPLE_SEED``, else the commit, else ``none`` where there is no git."""
    given = os.environ.get("SAMPLE_SEED")
    if given:
        return given
    try:
        found = subprocess.run(
            ["git", "rev-parse", "--short=12", "HEAD"], cwd=_CHECKOUT, capture_output=True, text=True, check=False
        )
    except OSError:
        return "none"
    return found.stdout.strip() or "none"


def sampled(items: Iterable[T], one_in: int) -> list[T]:
    """About one in ``one_in`` of the items, at least one; each item is chosen by its own text.

    >>> sampled(["i = 1", "i = 2", "i = 3"], one_in=3)
    """
    everything = list(items)
    if exhaustive() or one_in <= 1:
        return everything
    chosen = [item for item in everything if zlib.crc32(f"{seed()} {item!r}".encode()) % one_in == 0]
    return chosen or everything[:1]


def examples(number: int) -> int:
    """The number of examples of a property: a third, at least ten; all of them in a run that takes everything."""
    return number if exhaustive() else max(10, number // 3)


def part_of(items: Iterable[T], one_in: int) -> list[T]:
    """One in ``one_in`` of the items, rounded up: for short lists, of which a run must neither take all nor none.

    >>> part_of(["vectors", "rewriting", "partitioned"], one_in=3)
    """
    everything = list(items)
    if exhaustive() or one_in <= 1:
        return everything
    number = -(-len(everything) // one_in)
    chosen = sorted(everything, key=lambda item: zlib.crc32(f"{seed()} {item!r}".encode()))[:number]
    return [item for item in everything if item in chosen]
