"""Checkpoints beside commits that the catalog still gives out, and listings that lag behind what is published."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from delta_pyds.catalog import UnpublishedCommit as Unpublished
from delta_pyds.catalog.managed_storage import CatalogStorage
from delta_pyds.catalog.publishing import publish
from delta_pyds.errors import MissingLogFilesError
from delta_pyds.storage.base import FileStatus
from delta_pyds.storage.local import LocalStorage
from delta_pyds.table.snapshot import open_snapshot
from tests.support.catalogs import commit_lines, live_paths
from tests.unit.catalog.test_managed_storage import UUIDS, Log, checkpoint_of

LATEST, CHECKPOINT = 47, 40


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path)


def given_out(log: Log, version: int, *, inline: bool = False) -> Unpublished:
    """A commit that is published, and that the catalog has not forgotten."""
    data = (log.log / f"{version:020d}.json").read_bytes()
    if inline:
        return Unpublished(version, 1_000 + version, content=data)
    name = f"{version:020d}.{UUIDS[0]}.json"
    (log.log / "_staged_commits" / name).write_bytes(data)
    return Unpublished(version, 1_000 + version, name, len(data), 77)


def never_forgotten(log: Log, *, inline: bool = False) -> tuple[Unpublished, ...]:
    """All published, with a checkpoint, and a catalog that gives every commit out for ever."""
    log.publish(*range(LATEST + 1))
    checkpoint_of(log, CHECKPOINT)
    commits = tuple(given_out(log, version, inline=inline) for version in range(1, LATEST + 1))
    log.says(LATEST, *commits)
    return commits


class Reads(LocalStorage):
    """Notes what is read of the log."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def read(self, path: str, offset: int | None = None, length: int | None = None) -> bytes:
        self.names.append(path.rsplit("/", 1)[-1])
        return super().read(path, offset, length)


def through(log: Log, store: LocalStorage) -> CatalogStorage:
    return CatalogStorage(log.catalog, "main.t", str(log.root), lambda _: store, table_id="id")


ALL = sorted(f"published-{version}" for version in range(LATEST + 1))


@pytest.mark.parametrize("inline", [False, True])
def test_a_catalog_that_never_forgets(log: Log, inline: bool) -> None:
    """Commits that the checkpoint covers are not read. Two files are, to see that its version is the same."""
    never_forgotten(log, inline=inline)
    store = Reads()
    snapshot = open_snapshot(through(log, store), str(log.root))
    assert live_paths(snapshot) == ALL
    assert snapshot.segment.checkpoint is not None and snapshot.segment.checkpoint.version == CHECKPOINT
    commits = [name for name in store.names if name.endswith(".json")]
    assert len([name for name in commits if int(name[:20]) < CHECKPOINT]) == 0
    assert len([name for name in commits if int(name[:20]) == CHECKPOINT]) == (1 if inline else 2)
    assert log.files(CHECKPOINT - 1) == sorted(f"published-{version}" for version in range(CHECKPOINT))


def test_a_log_that_was_cleaned_before_the_checkpoint(log: Log) -> None:
    never_forgotten(log)
    kept = log.catalog.table.unpublished[4:]
    for version in range(CHECKPOINT):
        (log.log / f"{version:020d}.json").unlink()
        if version:
            (log.log / "_staged_commits" / f"{version:020d}.{UUIDS[0]}.json").unlink()
    log.says(LATEST, *kept)
    assert log.files() == ALL


def test_the_staged_commit_of_the_checkpoint_is_gone(log: Log) -> None:
    never_forgotten(log)
    (log.log / "_staged_commits" / f"{CHECKPOINT:020d}.{UUIDS[0]}.json").unlink()
    snapshot = open_snapshot(log.storage, str(log.root))
    assert snapshot.segment.checkpoint is not None and live_paths(snapshot) == ALL


def test_a_checkpoint_whose_own_commit_is_not_in_the_log(log: Log) -> None:
    """Whoever made it was not allowed to: it may stand for what was never ratified."""
    never_forgotten(log)
    (log.log / f"{CHECKPOINT:020d}.json").unlink()
    snapshot = open_snapshot(log.storage, str(log.root))
    assert snapshot.segment.checkpoint is None and live_paths(snapshot) == ALL


@pytest.mark.parametrize("length", ["the same length", "another length"])
def test_a_checkpoint_of_a_rogue_among_commits_that_are_given_out(log: Log, length: str) -> None:
    log.publish(*range(3))
    log.publish(3, 4, label="rogue_____" if length == "the same length" else "rogue")
    checkpoint_of(log, 4)
    ratified = [commit_lines(v, f"published_-{v}") for v in (3, 4)]
    log.says(4, *(Unpublished(v, 1_000 + v, content=data) for v, data in zip((3, 4), ratified, strict=True)))
    assert log.files() == ["published-0", "published-1", "published-2", "published_-3", "published_-4"]


def test_publishing_goes_on_where_the_log_was_cleaned(log: Log) -> None:
    """Commits that the checkpoint covers are neither missing nor in the way of the versions after it."""
    never_forgotten(log)
    for version in range(CHECKPOINT):
        (log.log / f"{version:020d}.json").unlink()
        if version:
            (log.log / "_staged_commits" / f"{version:020d}.{UUIDS[0]}.json").unlink()
    (log.log / f"{LATEST:020d}.json").unlink()
    log.says(LATEST, *log.catalog.table.unpublished[4:])
    storage = log.storage
    table = storage.latest()
    assert table is not None

    assert publish(storage, table).version == LATEST

    assert (log.log / f"{LATEST:020d}.json").exists() and log.catalog.reported == [LATEST]
    assert log.files() == ALL


# --- listings that lag


class Lagging(LocalStorage):
    """Lists nothing of versions from one on."""

    def __init__(self, first_hidden: int) -> None:
        super().__init__()
        self.first_hidden = first_hidden

    def list_from(self, directory: str, start_name: str) -> Iterator[FileStatus]:
        listed = super().list_from(directory, start_name)
        return (s for s in listed if not s.name[:20].isdecimal() or int(s.name[:20]) < self.first_hidden)


@pytest.mark.parametrize("first_hidden", [0, 1, 2, 5])
@pytest.mark.parametrize("stored", [0, 2])
def test_a_listing_that_lags_by_several_versions(log: Log, first_hidden: int, stored: int) -> None:
    log.publish(*range(6))
    log.says(5, *(given_out(log, version) for version in range(6 - stored, 6)))
    storage = through(log, Lagging(first_hidden))
    assert live_paths(open_snapshot(storage, str(log.root))) == [f"published-{v}" for v in range(6)]
    assert live_paths(open_snapshot(storage, str(log.root), 3)) == [f"published-{v}" for v in range(4)]


def test_a_listing_that_lags_is_no_reason_to_look_for_ever(log: Log) -> None:
    """A version that a catalog names is a promise: names are looked up only as long as there are files."""
    log.publish(0, 1, 2)
    log.says(1 << 60)
    with pytest.raises(MissingLogFilesError, match="according to its catalog"):
        live_paths(open_snapshot(through(log, Lagging(1)), str(log.root)))


def test_a_whole_listing_is_believed(log: Log) -> None:
    log.publish(*range(4))
    log.says(3)
    looked_up: list[str] = []

    class Looks(LocalStorage):
        def status(self, path: str) -> FileStatus:
            looked_up.append(path)
            return super().status(path)

    assert live_paths(open_snapshot(through(log, Looks()), str(log.root))) == [f"published-{v}" for v in range(4)]
    log.catalog.table = replace(log.catalog.table, latest_version=2)
    assert len(log.files()) == 3 and looked_up == []
