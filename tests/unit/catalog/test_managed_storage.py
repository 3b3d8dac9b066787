"""Logs made by hand after the figures of the RFC: what is read is what the catalog says."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from delta_pyds.catalog import Catalog, CommitOutcome, CommitProposal, ManagedTable, NewTable, TableReservation
from delta_pyds.catalog import UnpublishedCommit as Unpublished
from delta_pyds.catalog.managed_storage import CatalogStorage
from delta_pyds.errors import (
    CatalogError,
    CorruptLogError,
    FileNotFoundInStorageError,
    MissingLogFilesError,
    NothingWrittenError,
    ProtocolError,
    TimeTravelError,
    UserError,
)
from delta_pyds.log.listing import list_log
from delta_pyds.log.segment import latest_version
from delta_pyds.protocol.paths import commit_path
from delta_pyds.storage.local import LocalStorage
from delta_pyds.table.history import history
from delta_pyds.table.snapshot import open_snapshot
from delta_pyds.table.transaction.maintenance import checkpoint_and_clean
from delta_pyds.verification.catalog import check_catalog
from delta_pyds.verification.report import Findings
from tests.support.catalogs import commit_lines, live_paths

UUIDS = ["016ae953-37a9-438e-8683-9a9a4a79a395", "7d17ac10-5cc3-401b-bd1a-9c82dd2ea032"]


class Says(Catalog):
    """A catalog that says what a test wants."""

    def __init__(self, table: ManagedTable) -> None:
        self.table = table
        self.reported: list[int] = []

    def load_table(self, name: str) -> ManagedTable:
        assert name == self.table.name
        return self.table

    def propose_commit(self, proposal: CommitProposal) -> CommitOutcome:
        raise NotImplementedError

    def report_published(self, name: str, table_id: str, version: int) -> None:
        del name, table_id
        self.reported.append(version)

    def reserve_table(self, name: str) -> TableReservation:
        raise NotImplementedError

    def register_table(self, table: NewTable) -> CommitOutcome:
        raise NotImplementedError


class Log:
    """A log on the disk, and what a catalog says of it. A commit of version ``v`` adds the file ``<label>-v``."""

    def __init__(self, tmp_path: Path) -> None:
        self.root = tmp_path / "t"
        self.log = self.root / "_delta_log"
        (self.log / "_staged_commits").mkdir(parents=True)
        self.catalog = Says(ManagedTable("main.t", "id", str(self.root), 0))

    def publish(self, *versions: int, label: str = "published") -> None:
        for version in versions:
            (self.log / f"{version:020d}.json").write_bytes(commit_lines(version, f"{label}-{version}"))

    def stage(self, version: int, label: str = "staged", uuid: str = UUIDS[0]) -> Unpublished:
        name = f"{version:020d}.{uuid}.json"
        data = commit_lines(version, f"{label}-{version}")
        (self.log / "_staged_commits" / name).write_bytes(data)
        return Unpublished(version, 1_000 + version, name, len(data), 77)

    def inline(self, version: int) -> Unpublished:
        return Unpublished(version, 1_000 + version, content=commit_lines(version, f"inline-{version}"))

    def says(self, latest: int, *commits: Unpublished) -> None:
        self.catalog.table = replace(self.catalog.table, latest_version=latest, unpublished=commits)

    @property
    def storage(self) -> CatalogStorage:
        return CatalogStorage(self.catalog, "main.t", str(self.root), lambda _: LocalStorage(), table_id="id")

    def files(self, version: int | None = None) -> list[str]:
        return live_paths(open_snapshot(self.storage, str(self.root), version))

    def rules(self) -> list[str]:
        findings = Findings(100)
        check_catalog(self.storage, findings)
        return [finding.rule for finding in findings.all()]


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path)


def the_figure(log: Log) -> None:
    """ "Reading Catalog-managed Tables": 7 is published and the catalog does not know, 8 is staged, 9 inline, and two
    staged commits for 10 are not ratified, one of them a part of a file.
    """
    log.publish(*range(8))
    checkpoint_of(log, 2)
    (log.log / f"{3:020d}.{5:020d}.compacted.json").write_bytes(
        commit_lines(3, "published-3", "published-4", "published-5")
    )
    seven = replace(log.stage(7), file_name=f"{7:020d}.{UUIDS[0]}.json")
    (log.log / "_staged_commits" / str(seven.file_name)).write_bytes((log.log / f"{7:020d}.json").read_bytes())
    seven = replace(seven, size_bytes=(log.log / f"{7:020d}.json").stat().st_size)
    log.stage(8, "rejected", UUIDS[1])
    log.stage(10, "proposed")
    (log.log / "_staged_commits" / f"{10:020d}.{UUIDS[1]}.json").write_bytes(commit_lines(10, "part")[:40])
    log.says(9, seven, log.stage(8), log.inline(9))


def checkpoint_of(log: Log, version: int) -> None:
    before = log.catalog.table
    log.says(version)
    storage = log.storage
    checkpoint_and_clean(storage, open_snapshot(storage, str(log.root)).replay, now_ms=2_000)
    log.catalog.table = before


def test_the_figure_of_the_specification(log: Log) -> None:
    the_figure(log)
    published = [f"published-{v}" for v in range(8)]

    assert log.files() == sorted([*published, "staged-8", "inline-9"])
    assert log.files(8) == sorted([*published, "staged-8"])
    assert log.files(7) == published
    assert log.files(6) == published[:-1]
    assert log.files(1) == published[:2]
    with pytest.raises(TimeTravelError, match="10"):
        log.files(10)
    assert latest_version(log.storage, str(log.root)) == 9
    assert log.rules() == []


def test_the_history_of_the_figure(log: Log) -> None:
    the_figure(log)
    snapshot = open_snapshot(log.storage, str(log.root))
    records = history(
        log.storage,
        str(log.root),
        properties_of_latest=snapshot.configuration.properties,
    )
    assert [(r.version, r.timestamp_ms) for r in records] == [(v, 1_000 + v) for v in range(9, -1, -1)]


def test_what_the_catalog_ratified_wins_over_what_lies_in_the_log(log: Log) -> None:
    log.publish(0, 1)
    log.publish(2, label="rogue")
    log.says(2, log.stage(2))
    assert log.files() == ["published-0", "published-1", "staged-2"]
    assert log.rules() == ["catalog.other-commit"]


def test_versions_beyond_the_catalogs_are_not_read(log: Log) -> None:
    log.publish(0, 1, 2, 3)
    checkpoint_of(log, 3)
    (log.log / f"{1:020d}.{3:020d}.compacted.json").write_bytes(commit_lines(3, "compacted"))
    log.says(1)

    assert log.files() == ["published-0", "published-1"]
    listed = list_log(log.storage, str(log.root))
    names = [
        f.path for kind in (listed.commits, listed.checkpoints, listed.compactions, listed.checksums) for f in kind
    ]
    assert [name.rsplit("/", 1)[-1] for name in names] == [f"{v:020d}.json" for v in (0, 1)]
    storage = log.storage
    assert not storage.exists(commit_path(str(log.root), 2))
    for look in (storage.status, storage.read):
        with pytest.raises(FileNotFoundInStorageError):
            look(commit_path(str(log.root), 2))
    assert set(log.rules()) == {"catalog.not-ratified"}


def test_nothing_but_the_catalog_has_the_commits(log: Log) -> None:
    log.says(2, log.stage(0), log.inline(1), log.stage(2))
    assert log.files() == ["inline-1", "staged-0", "staged-2"]


def test_published_out_of_order(log: Log) -> None:
    log.publish(0, 2)
    log.says(3, log.inline(1), replace(log.inline(2), content=(log.log / f"{2:020d}.json").read_bytes()), log.stage(3))
    assert log.files() == ["inline-1", "published-0", "published-2", "staged-3"]
    assert log.rules() == ["catalog.published-order"]


def test_a_version_that_nobody_has(log: Log) -> None:
    """A catalog that says other things than the log must not give an older table in silence."""
    log.publish(0, 1)
    log.says(2)
    with pytest.raises(MissingLogFilesError, match=r"The latest version of table main\.t is 2"):
        log.files()


def test_a_gap_between_the_log_and_the_catalog(log: Log) -> None:
    log.publish(0)
    log.says(3, log.stage(2), log.stage(3))
    with pytest.raises(MissingLogFilesError):
        log.files()


def test_a_staged_commit_that_was_published_and_cleaned_up_meanwhile(log: Log) -> None:
    log.publish(0)
    log.says(1, log.stage(1))
    storage = log.storage
    listed = list_log(storage, str(log.root))
    assert [file.version for file in listed.commits] == [0, 1]
    (log.log / "_staged_commits" / f"{1:020d}.{UUIDS[0]}.json").rename(log.log / f"{1:020d}.json")
    assert b"staged-1" in storage.read(commit_path(str(log.root), 1))


def test_a_listing_that_lags_behind(log: Log) -> None:
    """A commit that the catalog has forgotten is published: it is looked up where a listing does not show it yet."""
    log.publish(0, 1)
    log.says(1)

    class Stale(LocalStorage):
        def list_from(self, directory: str, start_name: str):  # type: ignore[no-untyped-def]
            return (s for s in super().list_from(directory, start_name) if s.name != f"{1:020d}.json")

    storage = CatalogStorage(log.catalog, "main.t", str(log.root), lambda _: Stale())
    assert live_paths(open_snapshot(storage, str(log.root))) == ["published-0", "published-1"]


def test_an_answer_that_lags_behind(log: Log) -> None:
    log.publish(0, 1)
    storage = log.storage
    log.says(1)
    assert storage.latest() == log.catalog.table
    log.says(0)
    found = storage.latest()
    assert found is not None and found.latest_version == 1


@pytest.mark.parametrize("offset", [None, 0, 5])
def test_parts_of_a_commit(log: Log, offset: int | None) -> None:
    log.publish(0)
    log.says(2, log.stage(1), log.inline(2))
    storage = log.storage
    for version in (0, 1, 2):
        path = commit_path(str(log.root), version)
        whole = storage.read(path)
        assert storage.read(path, offset, 20) == whole[offset or 0 :][:20]
        assert storage.status(path).size_bytes == len(whole)


def test_commits_are_not_put(log: Log) -> None:
    log.publish(0)
    for put in (log.storage.put, log.storage.put_if_absent):
        with pytest.raises(NothingWrittenError, match="through its catalog"):
            put(commit_path(str(log.root), 1), b"")


@pytest.mark.parametrize(
    "commits",
    [
        (Unpublished(1, 1, f"{1:020d}.{UUIDS[0]}.json"),),
        (Unpublished(1, 1, content=b""), Unpublished(3, 1, content=b"")),
        (Unpublished(3, 1),),
        (Unpublished(3, 1, "../../3.json"),),
        (Unpublished(3, 1, f"{2:020d}.{UUIDS[0]}.json"),),
    ],
)
def test_a_catalog_that_contradicts_itself(log: Log, commits: tuple[Unpublished, ...]) -> None:
    log.publish(0, 1, 2, 3)
    log.says(3, *commits)
    with pytest.raises(CatalogError):
        log.files()


def test_another_table_of_the_same_name(log: Log) -> None:
    log.publish(0)
    log.catalog.table = replace(log.catalog.table, table_id="another")
    with pytest.raises(UserError) as error:
        log.files()
    assert error.value.code == "DELTA_TABLE_ID_MISMATCH"


def test_a_checkpoint_of_commits_that_the_catalog_stores_is_none(log: Log) -> None:
    """It was made of a rogue's commits, or of those of a time before the catalog was restored from a backup: what lies
    in the log as its version is not what the catalog ratified.
    """
    log.publish(0, 1)
    log.publish(2, 3, label="rogue")
    checkpoint_of(log, 3)
    (log.log / f"{2:020d}.{3:020d}.compacted.json").write_bytes(commit_lines(3, "rogue-2", "rogue-3"))
    commits: list[Unpublished] = []
    for latest in (2, 3, 4):
        commits.append(log.inline(latest))
        log.says(latest, *commits)
        assert log.files() == sorted(["published-0", "published-1", *(f"inline-{v}" for v in range(2, latest + 1))])
    assert not list_log(log.storage, str(log.root)).checkpoints


def test_a_checkpoint_below_what_the_catalog_stores_counts(log: Log) -> None:
    log.publish(0, 1, 2)
    checkpoint_of(log, 1)
    log.says(2, log.inline(2))
    snapshot = open_snapshot(log.storage, str(log.root))
    assert snapshot.segment.checkpoint is not None and snapshot.segment.checkpoint.version == 1


@pytest.mark.parametrize("gone", [False, True])
def test_a_commit_that_is_not_whole(log: Log, gone: bool) -> None:
    """Cut short in the store, or another writer's where the staged one is gone."""
    log.publish(0)
    staged = log.stage(1)
    log.says(1, staged)
    path = log.log / "_staged_commits" / str(staged.file_name)
    whole = path.read_bytes()
    if gone:
        path.unlink()
        log.publish(1, label="somebody-elses")
    else:
        path.write_bytes(whole[:-9])
    storage, where = log.storage, commit_path(str(log.root), 1)
    for read in (lambda: storage.read(where), lambda: storage.read(where, 0, len(whole)), log.files):
        with pytest.raises(CorruptLogError, match="is not the commit of version 1 that the catalog ratified") as caught:
            read()
        assert caught.value.code == "DELTA_CORRUPT_LOG_FILE"


def test_the_size_of_a_staged_commit_is_said(log: Log) -> None:
    log.publish(0)
    log.says(1, replace(log.stage(1), size_bytes=0))
    with pytest.raises(CatalogError, match="staged commit of version 1 has 0 bytes") as caught:
        log.files()
    assert caught.value.code == "DELTA_CATALOG_ERROR"


def test_a_clean_up_waits_until_the_catalog_has_forgotten(log: Log) -> None:
    """Readers would then depend on commits that they do not take yet."""
    log.publish(*range(4))
    log.says(3, *(replace(log.inline(v), content=(log.log / f"{v:020d}.json").read_bytes()) for v in (2, 3)))
    storage = log.storage
    year_ms = 400 * 24 * 3_600_000
    for path in log.log.glob("*.json"):
        os.utime(path, (1_000, 1_000))
    replay = open_snapshot(storage, str(log.root)).replay
    checkpoint_and_clean(storage, replay, now_ms=year_ms)
    assert len(list(log.log.glob("*.json"))) == 4
    assert len(log.files()) == 4


def test_versions_from_before_the_table_was_managed(log: Log) -> None:
    """A catalog may take over a table: its history is read through the catalog too."""
    for version in range(3):
        lines = commit_lines(version, f"file-{version}", managed=version == 2)
        (log.log / f"{version:020d}.json").write_bytes(lines)
    log.says(2)
    assert log.files() == ["file-0", "file-1", "file-2"]
    assert log.files(1) == ["file-0", "file-1"]
    log.says(1)
    with pytest.raises(ProtocolError) as error:
        log.files()
    assert error.value.code == "DELTA_CATALOG_MANAGED_FEATURE_MISSING"
