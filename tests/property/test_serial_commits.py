"""Transactions that start from old versions, in any mixture, leave what a serial execution leaves."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from delta_pyds.errors import ConflictError
from delta_pyds.expr.parse import parse_predicate
from delta_pyds.table.transaction.transaction import Operation
from tests.support.memory_storage import MemoryStorage
from tests.support.sampling import examples
from tests.support.transactions import QUIET, SCHEMA, Table, file, removed

PARTITIONS = "abc"
LEVELS = ("Serializable", "WriteSerializable")


@dataclass(frozen=True)
class Step:
    """``lag``: how many versions ago the transaction started. ``scope``: what it reads; None: the table."""

    kind: str
    scope: str | None
    lag: int


STEPS = st.builds(
    Step,
    st.sampled_from(["append", "replace", "read and add", "compact"]),
    st.sampled_from([*PARTITIONS, None]),
    st.integers(0, 4),
)


class Model:
    """The live files of every version, as partition by path, and which versions were blind appends."""

    def __init__(self) -> None:
        self.states: list[dict[str, str]] = [{}]
        self.blind: set[str] = set()

    def scope(self, version: int, scope: str | None) -> set[str]:
        return {path for path, p in self.states[version].items() if scope in (None, p)}


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(STEPS, min_size=2, max_size=14), st.sampled_from(LEVELS))
def test_what_committed_had_read_what_was_there_right_before_it(steps: list[Step], level: str) -> None:
    table = Table(MemoryStorage())
    table.create(partitioned=True)
    model = Model()
    for number, step in enumerate(steps):
        newest = len(model.states) - 1
        start = max(0, newest - step.lag)
        seen = model.scope(start, step.scope)
        target = step.scope or "a"
        mine = table.start(table.snapshot(start))
        rearranges = step.kind == "compact"
        if step.kind != "append":
            if step.scope is None:
                mine.record_whole_table()
            else:
                mine.record_where(parse_predicate(f"p = '{step.scope}'", SCHEMA, time_zone="UTC").expr)
            mine.record_files(seen)
        if step.kind in ("replace", "compact"):
            mine.remove(
                r
                for path in seen
                for r in removed(path, partition_values={"p": model.states[start][path]}, data_change=not rearranges)
            )
        new = f"f{number}"
        mine.add(file(new, p=target, data_change=not rearranges))
        try:
            done = mine.commit(Operation("WRITE"), isolation_level=level, policy=QUIET)
        except ConflictError:
            assert start < newest, "a transaction that nobody raced was refused"
            assert step.kind != "append", "a blind append was refused"
            assert table.snapshot().version == newest
            continue
        assert done.version == newest + 1
        before = model.scope(newest, step.scope)
        if step.kind == "compact":
            assert seen <= before
        elif step.kind != "append":
            assert seen <= before
            late = before - seen
            assert not late if level == "Serializable" else late <= model.blind
        if step.kind == "append":
            model.blind.add(new)
        after = dict(model.states[newest])
        if step.kind in ("replace", "compact"):
            for path in seen:
                del after[path]
        after[new] = target
        model.states.append(after)
    assert table.snapshot().totals.num_files == len(model.states[-1])
    assert table.live() == sorted(model.states[-1])
