"""Ratified commits become files of the log: in order, once, by the next process. What staging leaves is deleted."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from delta_pyds.catalog import Catalog
from delta_pyds.catalog.committer import CatalogCommitter
from delta_pyds.catalog.publishing import publish
from delta_pyds.errors import NothingWrittenError, StorageError
from delta_pyds.storage.local import LocalStorage
from delta_pyds.table.transaction.transaction import CommitPolicy, Transaction
from tests.support.catalogs import NAME, CatalogTable, faulty, proposal, raising
from tests.support.transactions import QUIET, WRITE, Crash, file
from tests.unit.catalog.fifty_lines import DictCatalog


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


def test_a_commit_that_is_published_late_is_still_the_one_that_a_writer_read(table: CatalogTable) -> None:
    """Its file in the log then has another time than the commit in the catalog."""
    unpublished(table, "read")
    mine = Transaction(table.snapshot(), sleep=table.pauses.append)
    mine.add([file("mine")])
    table.append("winner")
    os.utime(table.log / f"{1:020d}.json", (4_000_000_000, 4_000_000_000))

    assert mine.commit(WRITE, policy=QUIET).version == 3
    assert table.files() == ["mine", "read", "winner"]


def test_there_is_no_checkpoint_of_what_is_not_published(table: CatalogTable) -> None:
    real = LocalStorage.put_if_absent

    def no_commit(self: LocalStorage, path: str, data: bytes) -> None:
        # a staged one may end in any way
        if path.endswith(f"/{1:020d}.json"):
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


def test_what_another_publisher_has_linked_lasts_before_it_is_reported(
    table: CatalogTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The catalog forgets the commit then: after a power cut the name must still be there."""
    unpublished(table, "a")
    storage = table.storage()
    waiting = storage.latest()
    assert waiting is not None
    CatalogCommitter(table.storage()).publish(1)
    synced: list[str] = []
    monkeypatch.setattr("delta_pyds.catalog.publishing.sync_directory", synced.append)
    assert publish(storage, waiting).version == 1
    assert synced == [str(table.log)]
    table.append("b")
    assert synced == [str(table.log)]


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
    """Those of versions that are in the log, proposed or not, after a day; not those that the catalog gives out, and
    not those of versions to come.
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

    table.storage().clean_staged(1, now_ms=int((directory / str(young)).stat().st_mtime * 1000) + 1)

    left = {path.name for path in directory.iterdir()}
    assert left == kept | {never[1], never[2], young, "notes.txt"}
    assert table.files() == ["a", "b"]


def test_a_writer_that_died_while_it_staged_leaves_nothing_for_ever(table: CatalogTable) -> None:
    directory = table.log / "_staged_commits"
    directory.mkdir(exist_ok=True)
    for name, time_s in ((f".{'0' * 32}.tmp", 1_000), (f".{'1' * 32}.tmp", 10**9), (".other.tmp", 1_000)):
        (directory / name).write_text("a part")
        os.utime(directory / name, (time_s, time_s))
    table.storage().clean_staged(0, now_ms=10**12)
    assert sorted(path.name for path in directory.iterdir()) == [f".{'1' * 32}.tmp", ".other.tmp"]


@pytest.mark.parametrize("gone", [False, True])
def test_a_staged_commit_that_is_not_whole_is_not_published(tmp_path: Path, gone: bool) -> None:
    table = CatalogTable(DictCatalog(str(tmp_path)))
    table.create()
    unpublished(table, "a")
    staged = table.log / "_staged_commits" / table.staged()[0]
    whole = staged.read_bytes()
    if gone:
        staged.unlink()
        (table.log / f"{1:020d}.json").write_bytes(whole + b"\n")
    else:
        staged.write_bytes(whole[:-5])
    storage = table.storage()
    found = storage.latest()
    assert found is not None
    published = publish(storage, found)
    assert published.version == 0
    assert ("is missing" if gone else "is not the commit of version 1") in published.obstacle
    assert table.unpublished() == [1]
    if not gone:
        staged.write_bytes(whole)
        assert publish(storage, found).version == 1 and table.files() == ["a"]


def test_what_a_rogue_left_is_named_before_the_catalog_forgets(table: CatalogTable) -> None:
    """A checkpoint of versions that are not published would be the table once the catalog stores them no longer."""
    unpublished(table, "a", "b")
    rogue = table.log / f"{2:020d}.checkpoint.parquet"
    rogue.write_bytes(b"PAR1")
    assert not CatalogCommitter(table.storage()).publish(2)
    assert table.published() == [0] and table.files() == ["a", "b"]
    rogue.unlink()
    assert CatalogCommitter(table.storage()).publish(2)
    assert table.published() == [0, 1, 2] and table.files() == ["a", "b"]


def test_a_checksum_of_a_rogue_is_not_gone_on_from(catalog: Catalog) -> None:
    table = CatalogTable(catalog)
    table.create(policy=CommitPolicy())
    table.append("a", policy=CommitPolicy())
    table.append("b", policy=CommitPolicy())
    first, second = (table.log / f"{v:020d}.crc" for v in (1, 2))
    good = json.loads(second.read_text())
    second.write_text(json.dumps({**good, "txnId": "a rogue's", "numFiles": 77}))
    # and one that lies there before its version is committed
    (table.log / f"{3:020d}.crc").write_text(json.dumps({**good, "txnId": "a rogue's", "numFiles": 99}))
    table.append("c", policy=CommitPolicy())
    assert json.loads((table.log / f"{3:020d}.crc").read_text())["numFiles"] == 3
    assert table.snapshot().verify_checksum()
    assert first.exists()
