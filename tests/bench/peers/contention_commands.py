"""The commands of writers that change one table at once, their texts for each engine, and the rows that they leave.

A writer's commands follow from a seed. Each commit says in ``userMetadata`` which command it is, so the log gives the
order in which the model takes them.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

Kind = Literal["delete", "update", "merge"]
KINDS: tuple[Kind, ...] = ("delete", "update", "merge")
SCHEMA = {"id": "long", "v": "long", "note": "string"}
NUM_ROWS = 96_000
# a command changes rows of one block of neighbouring ids
BLOCK_ROWS = 16
# writers of overlapping rows draw from so many blocks
_SHARED_BLOCKS = 24
_MODULUS = 1_000_003
MERGE_CONDITION = "t.id = s.id"


@dataclass(frozen=True)
class Race:
    """Writers of one table. ``each``: commands of each kind by each writer. ``disjoint``: no two change one row."""

    writers: int
    each: int
    disjoint: bool
    seed: int = 1

    @property
    def num_commands(self) -> int:
        """The commands of one writer."""
        return self.each * len(KINDS)


@dataclass(frozen=True)
class Command:
    """One command on the rows from ``first`` to ``last``. ``number``: other rows and values for each command."""

    kind: Kind
    first: int
    last: int
    number: int

    @property
    def condition(self) -> str:
        """Of a delete: a quarter of the rows. Of an update: all rows."""
        block = f"id >= {self.first} AND id <= {self.last}"
        return f"{block} AND id % 4 = {self.number % 4}" if self.kind == "delete" else block

    @property
    def value(self) -> str:
        """The new value of ``v`` by an update. Two updates in another order leave another value."""
        return f"(v * 3 + {self.number}) % {_MODULUS}"

    @property
    def source(self) -> list[tuple[int, int, str]]:
        """The rows of a merge's source: half of the block. Those that were deleted come back."""
        ids = random.Random(self.number).sample(range(self.first, self.last + 1), BLOCK_ROWS // 2)
        return [(i, (i * 7 + self.number) % _MODULUS, f"merge {self.number}") for i in sorted(ids)]

    def change(self, rows: dict[int, tuple[int, str]]) -> None:
        """Change the rows of the model: ``v`` and ``note`` by ``id``."""
        if self.kind == "merge":
            rows.update((i, (v, note)) for i, v, note in self.source)
            return
        for i in range(self.first, self.last + 1):
            if i not in rows:
                continue
            if self.kind == "update":
                rows[i] = ((rows[i][0] * 3 + self.number) % _MODULUS, rows[i][1])
            elif i % 4 == self.number % 4:
                del rows[i]


def command(race: Race, writer: int, n: int) -> Command:
    """The n-th command of a writer."""
    rng = random.Random(f"{race.seed}/{writer}/{n}")
    blocks = NUM_ROWS // BLOCK_ROWS
    if race.disjoint:
        block = rng.randrange(blocks // race.writers) * race.writers + writer
    else:
        block = rng.randrange(_SHARED_BLOCKS) * (blocks // _SHARED_BLOCKS)
    first = block * BLOCK_ROWS
    return Command(_kinds(race, writer)[n], first, first + BLOCK_ROWS - 1, rng.randrange(1_000_000))


@cache
def _kinds(race: Race, writer: int) -> list[Kind]:
    kinds = [kind for kind in KINDS for _ in range(race.each)]
    random.Random(f"{race.seed}/{writer}").shuffle(kinds)
    return kinds


def first_rows(start: int, stop: int) -> pa.Table:
    """Rows of the table before the race."""
    ids = range(start, stop)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "v": pa.array((i * 31 % _MODULUS for i in ids), pa.int64()),
            "note": [f"row {i} of the table before the race {i * 7919 % _MODULUS}" for i in ids],
        }
    )


def told(writer: int, n: int) -> str:
    """The ``userMetadata`` of a command."""
    return json.dumps({"writer": writer, "n": n})


def commits(table: Path) -> list[dict[str, Any]]:
    """The ``commitInfo`` of all versions after the first one."""
    files = sorted((table / "_delta_log").glob("*.json"))[1:]
    return [_commit_info(file.read_text().splitlines()) for file in files if len(file.stem) == 20]


def _commit_info(lines: Iterable[str]) -> dict[str, Any]:
    found: dict[str, Any] = next(a["commitInfo"] for a in map(json.loads, lines) if "commitInfo" in a)
    return found


def expected(race: Race, table: Path) -> dict[int, tuple[int, str]]:
    """The rows after the commands in the order of the log."""
    before = first_rows(0, NUM_ROWS)
    rows = {i: (v, note) for i, v, note in zip(*(column.to_pylist() for column in before.columns), strict=True)}
    for info in commits(table):
        # layouts have none
        if text := info.get("userMetadata"):
            which = json.loads(text)
            command(race, which["writer"], which["n"]).change(rows)
    return rows
