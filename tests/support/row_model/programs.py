"""Whole programs drawn for the model: a kind of table, its first rows, and the steps that follow.

For engines of which every step costs seconds: hypothesis draws, but runs nothing and shrinks nothing, and of what it
draws those programs are taken that change rows by most of their steps.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.support.row_model.model import Model
from tests.support.row_model.steps import ROW, Append, Layout, Rows, Step, Upkeep

_DRAWS_FOR_ONE = 40
# two or three files with some rows each
FIRST = st.lists(st.lists(ROW, min_size=2, max_size=6).map(tuple), min_size=2, max_size=3).map(tuple)
# of the six first features each pair is there in all four combinations
PAIRS_OF_FEATURES = {
    "no features": Layout(),
    "vectors, changes, mapping": Layout(deletion_vectors=True, change_feed=True, mapped=True),
    "vectors, row tracking, partitions": Layout(deletion_vectors=True, row_tracking=True, partitioned=True),
    "changes, row tracking, constraint": Layout(change_feed=True, row_tracking=True, constrained=True),
    "mapping, partitions, constraint": Layout(mapped=True, partitioned=True, constrained=True),
    "all six features": Layout(True, True, True, True, True, True),
}


@dataclass(frozen=True)
class Program:
    """``first``: the rows of each task of the first write."""

    layout: Layout
    first: tuple[Rows, ...]
    steps: tuple[Step, ...]

    def worth(self) -> int:
        """The number of steps that change some rows and leave others, or keep the table; refused ones do not count."""
        model, worth = Model(self.layout), 0
        for step in (Append(self.first), *self.steps):
            effect = model.effect(step)
            if not effect.errors:
                kept = set(map(id, effect.rows)) - {id(row) for row, _ in effect.new_values}
                changes = bool(effect.changes) and any(id(row) in kept for row in model.rows)
                worth += changes or (isinstance(step, Upkeep) and not effect.impossible)
                model.take(effect)
        return worth


def drawn_programs(
    count: int,
    of: str,
    layouts: st.SearchStrategy[Layout],
    steps: Sequence[st.SearchStrategy[Step]],
    *,
    draws: int = _DRAWS_FOR_ONE,
) -> list[Program]:
    """``count`` programs with a step of each of ``steps``, in this order; the same ones for the same text ``of``.

    They are the most worth of many, and no two begin with the same rows: hypothesis varies what it drew before.
    ``draws``: how many are drawn for one.
    """
    found: list[Program] = []

    @seed(zlib.crc32(of.encode()))
    @settings(
        max_examples=draws * count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(layouts, FIRST, st.tuples(*steps))
    def draw(layout: Layout, first: tuple[Rows, ...], given_steps: tuple[Step, ...]) -> None:
        found.append(Program(layout, first, given_steps))

    draw()
    best = sorted(found, key=Program.worth, reverse=True)
    different = {repr(program.first): program for program in reversed(best)}
    return sorted(different.values(), key=Program.worth, reverse=True)[:count]
