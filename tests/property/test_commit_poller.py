"""However commits and polls interleave, and whatever listings hide: every version comes once, in order."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from delta_pyds.errors import MissingLogFilesError
from delta_pyds.protocol.paths import commit_path, log_directory
from delta_pyds.table.stream.commit_poller import CommitPoller
from tests.support.memory_storage import MemoryStorage
from tests.support.sampling import examples

ROOT = "memory://t"


@dataclass
class World:
    """A log that grows, one who reads it, and what was delivered. ``cleaned``: versions below it are gone."""

    storage: MemoryStorage = field(default_factory=MemoryStorage)
    now: float = 0.0
    written: int = 0
    cleaned: int = 0
    delivered: int = 0
    hidden: frozenset[int] = frozenset()
    during: int = 0

    def __post_init__(self) -> None:
        self.storage.listed = self._listed
        self.storage.on_call = self._called
        self.restart()
        self.commit(1)

    def restart(self) -> None:
        self.tail = CommitPoller(self.storage, ROOT, clock=lambda: self.now, cache_bytes=200)

    def commit(self, count: int) -> None:
        for _ in range(count):
            self.written += 1
            version = self.written - 1
            self.storage.put(commit_path(ROOT, version), b'{"txn":{"appId":"a","version":%d}}\n' % version)

    def clean(self) -> None:
        """The commits that the reader has read, and no more."""
        version = min(self.delivered, self.written - 1)
        self.storage.put(f"{log_directory(ROOT)}/{version:020d}.checkpoint.parquet", b"x")
        for gone in range(self.cleaned, version):
            self.storage.delete(commit_path(ROOT, gone))
        self.cleaned = max(self.cleaned, version)

    def _listed(self, _: str, names: list[str]) -> list[str]:
        return [name for name in names if not name.endswith(".json") or int(name[:20]) not in self.hidden]

    def _called(self, operation: str, _: str) -> None:
        if operation in ("list_from", "status", "read") and self.during:
            self.during -= 1
            self.commit(1)

    def take(self, most: int, last: int | None = None) -> int:
        taken = 0
        commits = self.tail.commits(self.delivered, last)
        while taken < most and (commit := next(commits, None)) is not None:
            assert commit.version == self.delivered
            assert [a.txn.version for a in commit.actions if a.txn is not None] == [commit.version]
            self.delivered += 1
            taken += 1
        commits.close()
        return taken


STEPS = st.one_of(
    st.tuples(st.just("commit"), st.integers(1, 4)),
    st.tuples(st.just("commit during the poll"), st.integers(1, 5)),
    st.tuples(st.just("poll"), st.integers(1, 9)),
    st.tuples(st.just("poll all"), st.just(0)),
    st.tuples(st.just("poll to"), st.integers(0, 4)),
    st.tuples(st.just("read again"), st.integers(1, 5)),
    st.tuples(st.just("forget"), st.just(0)),
    st.tuples(st.just("wait"), st.integers(1, 12)),
    st.tuples(st.just("restart"), st.just(0)),
    st.tuples(st.just("clean"), st.just(0)),
    st.tuples(st.just("hide the last"), st.integers(0, 5)),
    st.tuples(st.just("hide one"), st.integers(1, 6)),
)


@settings(max_examples=int(os.environ.get("LOG_TAIL_EXAMPLES", "300")), deadline=None)
@given(st.lists(STEPS, max_size=40))
def test_every_version_is_delivered_once_and_in_order(steps: list[tuple[str, int]]) -> None:
    world = World()
    for kind, number in steps:
        if kind == "commit":
            world.commit(number)
        elif kind == "commit during the poll":
            world.during = number
        elif kind == "poll":
            world.take(number)
        elif kind == "poll all":
            there = world.written
            world.take(1 << 30)
            if not world.hidden:
                assert world.delivered >= there
        elif kind == "poll to":
            last = min(world.delivered + number, world.written - 1)
            world.take(1 << 30, last)
            assert world.delivered == max(world.delivered, last + 1)
        elif kind == "read again":
            first = max(world.cleaned, world.delivered - number)
            again = [one.version for one in world.tail.commits(first, world.delivered - 1)]
            assert again == list(range(first, world.delivered))
        elif kind == "forget":
            world.tail.forget(world.delivered)
        elif kind == "wait":
            world.now += number
        elif kind == "restart":
            world.restart()
        elif kind == "clean":
            world.clean()
        elif kind == "hide the last":
            world.hidden = frozenset(range(world.written - number, world.written + number))
        elif kind == "hide one":
            world.hidden = frozenset([world.written - number])
    world.hidden, world.during = frozenset(), 0
    while world.take(1 << 30):
        pass
    assert world.delivered == world.written


@settings(max_examples=examples(200), deadline=None)
@given(
    written=st.integers(3, 12),
    dropped=st.sets(st.integers(0, 11), max_size=4),
    first=st.integers(0, 11),
    polls=st.integers(1, 3),
)
def test_what_is_gone_is_never_passed_over(written: int, dropped: set[int], first: int, polls: int) -> None:
    world = World()
    world.commit(written - 1)
    first = min(first, written - 1)
    for version in dropped:
        world.storage.delete(commit_path(ROOT, version))
    there = set(range(written)) - dropped
    if not there or max(there) < first - 1:
        return
    expected = next((v for v in range(first, written + 1) if v not in there), written)
    delivered = first
    missing: int | None = None
    for _ in range(polls):
        try:
            for commit in world.tail.commits(delivered):
                assert commit.version == delivered
                delivered += 1
        except MissingLogFilesError as error:
            missing = error.parameters["version"]
        world.now += 11
    assert delivered == expected
    later = any(version > expected for version in there)
    assert missing == (expected if later else None)
