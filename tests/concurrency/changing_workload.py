"""Writers that change rows of one table at the same time, and what must be true of the log that they leave.

Each commit says in its userMetadata which step it was, so the log gives the serial order: the model takes the steps in
that order, and must end with the rows of the table. The steps of a writer follow from a seed.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from delta_pyds.catalog.opening import committer_of
from delta_pyds.log.committer import LoggedCommit
from delta_pyds.protocol.actions import CommitInfo
from delta_pyds.table.snapshot import Snapshot
from tests.support.row_model.expressions import Column, Expression, call
from tests.support.row_model.expressions import Literal as Constant
from tests.support.row_model.steps import Append, Clause, Delete, Layout, Merge, Overwrite, Update
from tests.support.row_model.upkeep import Optimize, Purge, Restore, Truncate, ZOrder

Change = Append | Overwrite | Delete | Update | Merge | Optimize | ZOrder | Purge | Truncate | Restore
LAYOUT_STEPS = (Optimize, ZOrder, Purge)
PARTITIONS = ("x", "y", "z z/=%")
LAYOUTS = {
    "vectors": Layout(deletion_vectors=True, change_feed=True, row_tracking=True, partitioned=True),
    "rewriting": Layout(change_feed=True, row_tracking=True, partitioned=True),
}
# one writer's refusals in a row before it gives up: by then it starves
ATTEMPTS = 200
_KEYS = 40
# 7 only by sums, so that a constraint against it refuses few steps
_NUMBERS = (0, 1, 2, 3, 4, 5, 6, 8)


@dataclass(frozen=True)
class Planned:
    """One step. ``partition``: the only one that it reads; None for all."""

    step: Change
    partition: str | None


@dataclass(frozen=True)
class Workload:
    """The steps that writers draw.

    ``layouts``, ``replacements``: the weights of OPTIMIZE, Z-order and REORG, and of TRUNCATE, RESTORE and deletes of
    whole partitions; other steps have 16. ``overwrites``: the weight of overwrites among these. ``columns``: those that
    a merge inserts; None for ``*``.
    """

    seed: int
    layouts: int = 0
    replacements: int = 0
    overwrites: int = 3
    columns: tuple[str, ...] | None = None

    def planned(self, writer: int, n: int) -> Planned:
        """The n-th step of a writer."""
        rng = random.Random(f"{self.seed}/{writer}/{n}")
        partition = rng.choice([*PARTITIONS, None])
        kinds = ["append", "delete", "update", "merge", "overwrite", "layout", "replacement"]
        kind = rng.choices(kinds, [3, 2, 4, 4, self.overwrites, self.layouts, self.replacements])[0]
        name = f"{writer}-{n}"
        if kind == "layout":
            return Planned(rng.choice([Optimize(), ZOrder(("k",)), Purge()]), None)
        if kind == "replacement":
            return _replacement(rng, partition)
        if kind == "overwrite":
            return _overwriting(rng, partition, name)
        if kind == "append":
            return Planned(Append((_new_rows(rng, writer, n, rng.choice(PARTITIONS)),)), None)
        rest = call("({0} = {1})", call("({0} % {1})", Column("k"), Constant(7)), Constant(rng.randrange(7)))
        if kind == "delete":
            return Planned(Delete(_within(partition, rest, None)), partition)
        if kind == "update":
            more = call("({0} + {1})", Column("n"), Constant(10))
            return Planned(Update(_within(partition, rest, None), (("n", more), ("s", Constant(name)))), partition)
        keys = rng.sample(range(_KEYS), 6)
        home = partition or rng.choice(PARTITIONS)
        rows = tuple(_row(key, rng.choice(_NUMBERS), home, name) for key in keys)
        more = call("({0} + {1})", Column("n", "t"), Column("n", "s"))
        by_key = call("({0} = {1})", Column("k", "t"), Column("k", "s"))
        few = call("({0} < {1})", Column("n", "s"), Constant(2))
        matched = (Clause("delete", few), Clause("update", None, (("n", more), ("s", Column("s", "s")))))
        given = None if self.columns is None else tuple((c, Column(c, "s")) for c in self.columns)
        inserted = Clause("insert", None, given)
        return Planned(Merge(rows, _within(partition, by_key, "t"), matched, (inserted,)), partition)


def _replacement(rng: random.Random, partition: str | None) -> Planned:
    kind = rng.choice(["partition", "truncate", "restore", "restore"])
    if kind == "truncate":
        return Planned(Truncate(), None)
    if kind == "restore":
        return Planned(Restore(rng.randrange(1, 5)), None)
    where = None if partition is None else call("({0} = {1})", Column("p"), Constant(partition))
    return Planned(Delete(where), partition)


def _overwriting(rng: random.Random, partition: str | None, text: str) -> Planned:
    """Mostly a range of keys is replaced. Now and then it is a whole partition, or the table."""
    home = partition or rng.choice(PARTITIONS)
    first = rng.randrange(_KEYS)
    rows = tuple(_row(first + i, rng.choice(_NUMBERS), home, text) for i in range(rng.randrange(4)))
    kind = rng.choices(["range", "partition", "table"], [8, 2, 1])[0]
    if kind == "range":
        above = call("({0} >= {1})", Column("k"), Constant(first))
        within = call("({0} AND {1})", above, call("({0} < {1})", Column("k"), Constant(first + 4)))
        return Planned(Overwrite((rows,), _within(partition, within, None)), partition)
    if kind == "partition" and rows:
        return Planned(Overwrite((rows,), dynamic=True), home)
    return Planned(Overwrite((rows,)), None)


def _new_rows(rng: random.Random, writer: int, n: int, partition: str) -> tuple[dict[str, Any], ...]:
    """Rows with keys that no other step inserts."""
    first = 1000 * (writer + 1) + 10 * n
    return tuple(_row(first + i, rng.choice(_NUMBERS), partition, f"{writer}-{n}") for i in range(3))


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


def run(workload: Workload, writer: int, steps: range, change: Callable[[Change, str], int | None]) -> Report:
    """Make these steps of a writer, each tried until it is in. ``change`` returns the version, None for no commit."""
    report = Report()
    for n in steps:
        told = {"writer": writer, "n": n}
        for _ in range(ATTEMPTS):
            try:
                version = change(workload.planned(writer, n).step, json.dumps(told))
            except RefusedError as refused:
                report.refused.append({**told, "code": refused.code, "winner": refused.winner})
            else:
                report.done.append({**told, "version": version})
                break
        else:
            raise AssertionError(f"writer {writer} was refused {ATTEMPTS} times in a row at its step {n}.")
    return report


# --- what must be


class Log:
    """The commits after version 0, which created the table, by version."""

    def __init__(self, latest: Snapshot) -> None:
        commits = committer_of(latest.storage, latest.table_root).commits_after(0, known_version=latest.version)
        self.commits: dict[int, LoggedCommit] = {commit.version: commit for commit in commits}
        assert list(self.commits) == list(range(1, latest.version + 1)), "the log has a gap."
        physical = [f.physical_name for f in latest.schema if f.name in latest.configuration.partition_columns]
        self._partition = physical[0] if physical else None

    def info(self, version: int) -> CommitInfo:
        return next(a.commit_info for a in self.commits[version].actions if a.commit_info is not None)

    def told(self, version: int) -> dict[str, Any]:
        """What a commit says that it was."""
        info = self.info(version)
        facts = {"readVersion": info.read_version, "version": version, "numMends": self.num_mends(version)}
        return json.loads(info.user_metadata or "{}") | facts

    def num_mends(self, version: int) -> int:
        return int((self.info(version).operation_metrics or {}).get("numMends", 0))

    def touches(self, version: int, partition: str | None, *kinds: str) -> bool:
        """Whether a commit has such actions (``add``, ``remove``) of files of a partition (None: of any)."""
        files = [getattr(a, kind) for a in self.commits[version].actions for kind in kinds]
        return any(
            partition is None or self._partition is None or file.partition_values.get(self._partition) == partition
            for file in files
            if file is not None
        )


def overlooked(log: Log, workload: Workload, told: Sequence[dict[str, Any]]) -> list[str]:
    """Commits that an earlier one should have refused: it added files to a partition that the later one read.

    Whether a file that was removed had been read the log does not say: skipping may have left it out.
    """
    found = []
    for commit in told:
        step = workload.planned(commit["writer"], commit["n"])
        # deltalake rules files of winners out by their statistics
        by_deltalake = str(log.info(commit["version"]).engine_info).startswith("delta-rs")
        if by_deltalake or not isinstance(step.step, (Delete, Update, Merge)):
            continue
        for winner in range(commit["readVersion"] + 1, commit["version"]):
            if log.touches(winner, step.partition, "add"):
                found.append(f"version {commit['version']} read version {commit['readVersion']} and overlooks {winner}")
    return found


def wrongly_refused(log: Log, workload: Workload, reports: Sequence[Report]) -> list[dict[str, Any]]:
    """Refusals that no row of the decision table explains: of a blind append, or by a commit that met nothing read."""
    allowed = {"DELTA_CONCURRENT_APPEND", "DELTA_CONCURRENT_DELETE_READ", "DELTA_CONCURRENT_DELETE_DELETE"}
    found = []
    for refused in (refused for report in reports for refused in report.refused):
        step = workload.planned(refused["writer"], refused["n"])
        right = refused["code"] in allowed and not isinstance(step.step, Append)
        if not right or (
            refused["winner"] is not None and not log.touches(refused["winner"], step.partition, "add", "remove")
        ):
            found.append(refused)
    return found
