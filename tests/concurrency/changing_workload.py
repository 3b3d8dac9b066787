"""Writers that change rows of one table at the same time, and what must be true of the log that they leave.

Each commit says in its userMetadata which step it was, so the log gives the serial order: the model takes the steps in
that order, and must end with the rows of the table. The steps of a writer follow from a seed.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.commits import actions
from tests.support.row_model.expressions import Column, Expression, call
from tests.support.row_model.expressions import Literal as Constant
from tests.support.row_model.model import Model
from tests.support.row_model.steps import Append, Clause, Delete, Layout, Merge, Overwrite, Update
from tests.support.row_model.upkeep import Optimize, ZOrder

Change = Append | Overwrite | Delete | Update | Merge | Optimize | ZOrder
LAYOUT_STEPS = (Optimize, ZOrder)
PARTITIONS = ("x", "y", "z z/=%")
LAYOUTS = {
    "vectors": Layout(deletion_vectors=True, change_feed=True, row_tracking=True, partitioned=True),
    "rewriting": Layout(change_feed=True, row_tracking=True, partitioned=True),
}
# one writer's refusals in a row before it gives up: by then it starves
ATTEMPTS = 200
_KEYS = 40


@dataclass(frozen=True)
class Planned:
    """One step. ``partition``: the only one that it reads; None for all."""

    step: Change
    partition: str | None


def planned(seed: int, writer: int, n: int, *, layouts: int = 0) -> Planned:
    """The n-th step of a writer. ``layouts``: the weight of compactions and Z-orders among the steps."""
    rng = random.Random(f"{seed}/{writer}/{n}")
    partition = rng.choice([*PARTITIONS, None])
    kind = rng.choices(["append", "delete", "update", "merge", "overwrite", "layout"], [3, 2, 4, 4, 3, layouts])[0]
    if kind == "layout":
        return Planned(rng.choice([Optimize(), ZOrder(("k",))]), None)
    if kind == "append":
        # keys that no other writer inserts
        first = 1000 * (writer + 1) + 10 * n
        rows = tuple(_row(first + i, rng.randrange(9), rng.choice(PARTITIONS), f"{writer}-{n}") for i in range(3))
        return Planned(Append((rows,)), None)
    if kind == "overwrite":
        return _overwriting(rng, partition, f"{writer}-{n}")
    rest = call("({0} = {1})", call("({0} % {1})", Column("k"), Constant(7)), Constant(rng.randrange(7)))
    if kind == "delete":
        return Planned(Delete(_within(partition, rest, None)), partition)
    if kind == "update":
        more = call("({0} + {1})", Column("n"), Constant(10))
        assigned = (("n", more), ("s", Constant(f"{writer}-{n}")))
        return Planned(Update(_within(partition, rest, None), assigned), partition)
    keys = rng.sample(range(_KEYS), 6)
    home = partition or rng.choice(PARTITIONS)
    rows = tuple(_row(key, rng.randrange(9), home, f"{writer}-{n}") for key in keys)
    more = call("({0} + {1})", Column("n", "t"), Column("n", "s"))
    by_key = call("({0} = {1})", Column("k", "t"), Column("k", "s"))
    few = call("({0} < {1})", Column("n", "s"), Constant(2))
    matched = (Clause("delete", few), Clause("update", None, (("n", more), ("s", Column("s", "s")))))
    return Planned(Merge(rows, _within(partition, by_key, "t"), matched, (Clause("insert"),)), partition)


def _overwriting(rng: random.Random, partition: str | None, text: str) -> Planned:
    """Mostly a range of keys is replaced. Now and then it is a whole partition, or the table."""
    home = partition or rng.choice(PARTITIONS)
    first = rng.randrange(_KEYS)
    rows = tuple(_row(first + i, rng.randrange(9), home, text) for i in range(rng.randrange(4)))
    kind = rng.choices(["range", "partition", "table"], [8, 2, 1])[0]
    if kind == "range":
        above = call("({0} >= {1})", Column("k"), Constant(first))
        within = call("({0} AND {1})", above, call("({0} < {1})", Column("k"), Constant(first + 4)))
        return Planned(Overwrite((rows,), _within(partition, within, None)), partition)
    if kind == "partition" and rows:
        return Planned(Overwrite((rows,), dynamic=True), home)
    return Planned(Overwrite((rows,)), None)


def _row(k: int, n: int, p: str, s: str) -> dict[str, Any]:
    return {"k": k, "n": n, "s": s, "p": p, "z": None}


def _within(partition: str | None, condition: Expression, relation: str | None) -> Expression:
    if partition is None:
        return condition
    return call("({0} AND {1})", call("({0} = {1})", Column("p", relation), Constant(partition)), condition)


@dataclass
class Report:
    """The answers that one writer got."""

    done: list[dict[str, Any]] = field(default_factory=list)
    refused: list[dict[str, Any]] = field(default_factory=list)


class RefusedError(Exception):
    """A conflict that an engine named. ``winner``: the version that came first, where it says so."""

    def __init__(self, code: str, winner: int | None) -> None:
        super().__init__(code)
        self.code, self.winner = code, winner


def run(writer: int, steps: int, seed: int, change: Callable[[Change, str], int | None], *, layouts: int = 0) -> Report:
    """Make all steps of a writer, each tried until it is in. ``change`` returns the version, None for no commit."""
    report = Report()
    for n in range(steps):
        told = {"writer": writer, "n": n}
        for _ in range(ATTEMPTS):
            try:
                version = change(planned(seed, writer, n, layouts=layouts).step, json.dumps(told))
            except RefusedError as refused:
                report.refused.append({**told, "code": refused.code, "winner": refused.winner})
            else:
                report.done.append({**told, "version": version})
                break
        else:
            raise AssertionError(f"writer {writer} was refused {ATTEMPTS} times in a row at its step {n}.")
    return report


# --- what must be


def replay(
    path: Path, layout: Layout, versions: int, seed: int, *, layouts: int = 0
) -> tuple[Model, list[dict[str, Any]]]:
    """The model after the steps in the order of the log, and what each commit says that it was."""
    model, told = Model(layout), []
    for version in range(1, versions + 1):
        info = next(a["commitInfo"] for a in actions(path, version) if "commitInfo" in a)
        mends = int(info["operationMetrics"].get("numMends", 0))
        facts = {"readVersion": info["readVersion"], "version": version, "numMends": mends}
        told.append(json.loads(info["userMetadata"]) | facts)
        effect = model.effect(planned(seed, told[-1]["writer"], told[-1]["n"], layouts=layouts).step)
        assert not effect.errors
        model.take(effect)
    return model, told


def overlooked(path: Path, seed: int, told: Sequence[dict[str, Any]], *, layouts: int = 0) -> list[str]:
    """Commits that an earlier one should have refused: it added files to a partition that the later one read.

    Whether a file that was removed had been read the log does not say: skipping may have left it out.
    """
    found = []
    for commit in told:
        step = planned(seed, commit["writer"], commit["n"], layouts=layouts)
        if isinstance(step.step, (Append, *LAYOUT_STEPS)):
            continue
        for winner in range(commit["readVersion"] + 1, commit["version"]):
            if touches(path, winner, step.partition, "add"):
                found.append(f"version {commit['version']} read version {commit['readVersion']} and overlooks {winner}")
    return found


def touches(path: Path, version: int, partition: str | None, *kinds: str) -> bool:
    """Whether a commit has such actions (``add``, ``remove``) of files of a partition (None: of any)."""
    files = [a[kind] for a in actions(path, version) for kind in kinds if kind in a]
    return any(partition is None or file["partitionValues"].get("p") == partition for file in files)


def wrongly_refused(path: Path, seed: int, reports: Sequence[Report]) -> list[dict[str, Any]]:
    """Refusals that no row of the decision table explains: of a blind append, or by a commit that met nothing read."""
    allowed = {"DELTA_CONCURRENT_APPEND", "DELTA_CONCURRENT_DELETE_READ", "DELTA_CONCURRENT_DELETE_DELETE"}
    found = []
    for refused in (refused for report in reports for refused in report.refused):
        step = planned(seed, refused["writer"], refused["n"])
        right = refused["code"] in allowed and not isinstance(step.step, Append)
        if not right or (
            refused["winner"] is not None and not touches(path, refused["winner"], step.partition, "add", "remove")
        ):
            found.append(refused)
    return found
