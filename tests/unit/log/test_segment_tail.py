"""A segment out of a listing and a tail that somebody hands in. Protocol: "Catalog-managed tables"."""

from __future__ import annotations

import pytest

from delta_pyds.errors import MissingLogFilesError, TimeTravelError
from delta_pyds.log.listing import LogFile, list_log
from delta_pyds.log.segment import segment_of
from delta_pyds.protocol.paths import LogFileKind, LogFileName
from delta_pyds.table.snapshot import open_snapshot
from tests.support.memory_storage import MemoryStorage
from tests.support.transactions import ROOT, Table

STAGED = "_delta_log/_staged_commits"


def staged(version: int) -> LogFile:
    path = f"{ROOT}/{STAGED}/{version:020d}.{version:08x}-4056-49b8-937b-95f9e3ee90e5.json"
    return LogFile(path, version, 2, 1, LogFileName(LogFileKind.COMMIT, version))


@pytest.fixture
def table() -> Table:
    """Versions 0 to 2 are published, 3 and 4 are staged, and a rogue commit stands in the log as 4."""
    made = Table(MemoryStorage())
    made.create()
    for name in "abcd":
        made.append(name)
    for version in (3, 4):
        made.storage.put(staged(version).path, made.storage.read(f"{ROOT}/_delta_log/{version:020d}.json"))
        made.storage.delete(f"{ROOT}/_delta_log/{version:020d}.json")
    made.storage.put(f"{ROOT}/_delta_log/{4:020d}.json", b'{"add":{"path":"rogue"}}\n')
    return made


def test_the_tail_follows_the_listing_and_stands_for_what_is_in_the_log(table: Table) -> None:
    segment = segment_of(list_log(table.storage, ROOT), 4, tail=[staged(3), staged(4)])
    assert [file.path for file in segment.commits[3:]] == [staged(3).path, staged(4).path]
    assert segment.last_commit == staged(4)
    snapshot = open_snapshot(table.storage, ROOT, 4, segment)
    assert (snapshot.version, snapshot.totals.num_files) == (4, 4)


@pytest.mark.parametrize("version", [2, 3])
def test_nothing_beyond_the_version_takes_part(table: Table, version: int) -> None:
    segment = segment_of(list_log(table.storage, ROOT), version, tail=[staged(3), staged(4)])
    assert (segment.version, [file.version for file in segment.commits]) == (version, list(range(version + 1)))
    assert open_snapshot(table.storage, ROOT, version, segment).totals.num_files == version


def test_the_newest_of_both_is_the_version_that_is_not_given(table: Table) -> None:
    table.storage.delete(f"{ROOT}/_delta_log/{4:020d}.json")
    listing = list_log(table.storage, ROOT)
    assert segment_of(listing).version == 2
    assert segment_of(listing, tail=[staged(3)]).version == 3


def test_a_gap_and_a_version_that_nobody_knows_are_errors(table: Table) -> None:
    listing = list_log(table.storage, ROOT)
    with pytest.raises(MissingLogFilesError) as gap:
        segment_of(listing, 4, tail=[staged(4)])
    assert gap.value.parameters["missing_version"] == 3
    with pytest.raises(TimeTravelError):
        segment_of(listing, 9, tail=[staged(3), staged(4)])
