"""Ratified commits become files of the log: in order, once, by whoever comes next. What staging leaves is deleted."""

from __future__ import annotations

import os

import pytest

from delta_pyds.catalog.committer import CatalogCommitter
from delta_pyds.catalog.publishing import publish
from delta_pyds.errors import NothingWrittenError, StorageError
from delta_pyds.storage.local import LocalStorage
from delta_pyds.table.transaction.transaction import CommitPolicy
from tests.support.catalogs import NAME, CatalogTable, faulty, proposal, raising
from tests.support.transactions import Crash


def unpublished(table: CatalogTable, *names: str) -> None:
    """Commits of a writer that dies before it publishes."""
    real = LocalStorage.put_if_absent

    def dies(self: LocalStorage, path: str, data: bytes) -> None:
        if path.endswith(".json") and "_staged_commits" not in path:
            raise StorageError("the writer is gone")
        real(self, path, data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalStorage, "put_if_absent", dies)
        for name in names:
            table.append(name)


def test_ratified_and_never_published(table: CatalogTable) -> None:
    unpublished(table, "a", "b", "c")
    assert table.published() == [0] and table.unpublished() == [1, 2, 3]
    assert table.files() == ["a", "b", "c"] and table.files(2) == ["a", "b"]

    table.append("d")

    assert table.published() == [0, 1, 2, 3, 4] and table.unpublished() == []
    assert table.files() == ["a", "b", "c", "d"]


def test_a_checkpoint_publishes_before(table: CatalogTable) -> None:
    unpublished(table, "a", "b")
    storage = table.storage()
    assert CatalogCommitter(storage).publish(2)
    assert table.published() == [0, 1, 2] and table.unpublished() == []


def test_there_is_no_checkpoint_of_what_is_not_published(table: CatalogTable) -> None:
    real = LocalStorage.put_if_absent

    def no_commit(self: LocalStorage, path: str, data: bytes) -> None:
        if path.endswith("01.json"):
            raise StorageError("not now")
        real(self, path, data)

    interval = CommitPolicy()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalStorage, "put_if_absent", no_commit)
        for n in range(1, 11):
            table.append(f"f{n}", policy=interval)
    assert table.published() == [0] and table.unpublished() == list(range(1, 11))
    assert not list(table.log.glob("*.checkpoint*"))
    # the backlog is full: the eleventh publishes before it is ratified
    table.append("last", policy=interval)
    assert table.published() == list(range(12)) and len(table.files()) == 11


def test_a_full_backlog_that_cannot_be_published(table: CatalogTable) -> None:
    unpublished(table, *(f"f{n}" for n in range(10)))
    (table.log / f"{1:020d}.json").write_text("rogue")
    with pytest.raises(NothingWrittenError, match="another commit, which no catalog has ratified"):
        table.append("one more")
    assert len(table.files()) == 10
    (table.log / f"{1:020d}.json").unlink()
    assert table.append("one more").version == 11
    assert table.published() == list(range(12))


def test_a_rogue_entry_stays_and_is_never_reported(table: CatalogTable) -> None:
    table.append("a")
    (table.log / f"{2:020d}.json").write_text("rogue")
    table.append("b")
    table.append("c")
    assert table.files() == ["a", "b", "c"]
    assert table.published() == [0, 1, 2] and table.unpublished() == [2, 3]
    assert (table.log / f"{2:020d}.json").read_text() == "rogue"


@pytest.mark.parametrize("side", ["before", "after"])
def test_a_report_that_fails(table: CatalogTable, side: str) -> None:
    there = faulty(table, **{side: raising(OSError("gone"), "report_published", 1)})
    assert there.append("a").version == 1
    assert table.published() == [0, 1]
    assert there.append("b").version == 2
    assert table.unpublished() == [] and table.files() == ["a", "b"]


def test_two_publishers(table: CatalogTable) -> None:
    unpublished(table, "a", "b", "c")
    one, other = table.storage(), table.storage()
    committers = CatalogCommitter(one), CatalogCommitter(other)
    stale = one.latest()
    assert committers[1].publish(3)
    assert stale is not None and [c.version for c in stale.unpublished] == [1, 2, 3]
    assert publish(one, stale).version == 3
    assert table.published() == [0, 1, 2, 3] and table.files() == ["a", "b", "c"]


def test_the_state_after_a_crash_at_each_call(table: CatalogTable) -> None:
    """The process ends before or after each call of the catalog: the next writer finds the old table or the new one."""
    outcomes = []
    for side in ("before", "after"):
        for method in ("load_table", "propose_commit", "report_published"):
            before = table.files()
            dying = faulty(table, **{side: raising(Crash(), method)})
            with pytest.raises(Crash):
                dying.append(f"{side} {method}")
            found = table.files()
            assert found in (before, sorted([*before, f"{side} {method}"]))
            outcomes.append(found != before)
            table.append(f"next {side} {method}")
            assert table.unpublished() == []
    assert outcomes == [False, False, True, False, True, True]
    assert len(table.files()) == len(set(table.files()))


def test_staged_commits_are_cleaned_up(table: CatalogTable) -> None:
    """Those of versions that are in the log, proposed or not, after a day; none that the catalog gives out, and none of
    versions to come.
    """
    table.append("a")
    unpublished(table, "b")
    directory = table.log / "_staged_commits"
    directory.mkdir(exist_ok=True)
    kept = {p.name for p in directory.iterdir() if p.name.startswith(f"{2:020d}")}
    never = [proposal(table.catalog.load_table(NAME), version).file_name for version in (1, 2, 3)]
    for name in (*never, "notes.txt"):
        (directory / str(name)).write_text("never proposed")
    for path in directory.iterdir():
        os.utime(path, (1_000, 1_000))
    young = proposal(table.catalog.load_table(NAME), 1).file_name
    (directory / str(young)).write_text("of a writer at work")

    deleted = table.storage().clean_staged(1, now_ms=int((directory / str(young)).stat().st_mtime * 1000) + 1)

    left = {path.name for path in directory.iterdir()}
    assert left == kept | {never[1], never[2], young, "notes.txt"}
    assert deleted == (1 if table.catalog.max_inline_bytes else 2)
    assert table.files() == ["a", "b"]
