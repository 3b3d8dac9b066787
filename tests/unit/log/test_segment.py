"""Which files make up a version. Protocol: "Checkpoints", "Log Compaction Files", "Last Checkpoint File"."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_pyds.errors import DeltaError, MissingLogFilesError, TableNotFoundError, TimeTravelError
from delta_pyds.log import segment as segment_module
from delta_pyds.log.segment import LogSegment, latest_version, load_segment
from delta_pyds.storage.local import LocalStorage
from tests.support.memory_storage import MemoryStorage
from tests.support.table_builder import TableBuilder

UUIDS = [f"{digit * 8}-4056-49b8-937b-95f9e3ee90e5" for digit in "123"]


def v(version: int) -> str:
    return f"{version:020d}"


class Log:
    """A log of empty files in memory; only names count here."""

    def __init__(self, commits: int = 0, *names: str) -> None:
        self.storage = MemoryStorage()
        self.put(*(f"{v(version)}.json" for version in range(commits)), *names)

    def put(self, *names: str, content: bytes = b"{}") -> Log:
        for name in names:
            self.storage.put(f"/t/_delta_log/{name}", content)
        return self

    def hint(self, version: int) -> Log:
        return self.put("_last_checkpoint", content=json.dumps({"version": version, "size": 1}).encode())

    def drop(self, *names: str) -> Log:
        for name in names:
            self.storage.delete(f"/t/_delta_log/{name}")
        return self

    def load(self, version: int | None = None, ignoring: frozenset[str] = frozenset()) -> LogSegment:
        return load_segment(self.storage, "/t", version, ignoring=ignoring)

    def fails(self, version: int | None = None) -> DeltaError:
        with pytest.raises(DeltaError) as caught:
            self.load(version)
        return caught.value

    def watch(self) -> list[str]:
        """The start names of listings from now on."""
        looks: list[str] = []
        inner = self.storage.list_from

        def watched(directory: str, start_name: str):
            looks.append(start_name)
            return inner(directory, start_name)

        self.storage.list_from = watched
        return looks


def classic(version: int) -> str:
    return f"{v(version)}.checkpoint.parquet"


def part(version: int, number: int, of: int) -> str:
    return f"{v(version)}.checkpoint.{number:010d}.{of:010d}.parquet"


def uuid_named(version: int, number: int = 0, suffix: str = "json") -> str:
    return f"{v(version)}.checkpoint.{UUIDS[number]}.{suffix}"


def compacted(first: int, last: int) -> str:
    return f"{v(first)}.{v(last)}.compacted.json"


def names(segment: LogSegment) -> list[str]:
    checkpoint = segment.checkpoint.files if segment.checkpoint else ()
    return [file.path.rsplit("/", 1)[1] for file in (*checkpoint, *segment.commits)]


# --- a real table


@pytest.mark.parametrize("kind", ["classic", "multipart", "v2-json", "v2-parquet", "v2-classic"])
@pytest.mark.parametrize("hint", [True, False])
def test_every_kind_of_checkpoint_is_found(tmp_path: Path, kind: str, hint: bool) -> None:
    table = TableBuilder(tmp_path, {"id": "long"})
    table.create()
    table.append([{"id": 1}])
    files = table.checkpoint(kind=kind, parts=3, write_hint=hint)
    table.append([{"id": 2}])
    table.checksum()
    segment = load_segment(LocalStorage(), str(tmp_path))
    assert segment.version == 2
    assert segment.checkpoint is not None
    assert (segment.checkpoint.version, segment.checkpoint.kind) == (1, kind.replace("v2-classic", "classic"))
    assert [file.path for file in segment.checkpoint.files] == sorted(map(str, files))
    assert [file.path for file in segment.commits] == [str(table.commit_file(2))]
    assert segment.last_commit == segment.commits[0]
    assert segment.checksum is not None
    assert segment.checksum.path == str(tmp_path / "_delta_log" / f"{v(2)}.crc")
    assert load_segment(LocalStorage(), str(tmp_path), 1).checksum is None


def test_commits_alone_make_a_table() -> None:
    segment = Log(3).load()
    assert (segment.version, segment.checkpoint, segment.checksum) == (2, None, None)
    assert names(segment) == [f"{v(0)}.json", f"{v(1)}.json", f"{v(2)}.json"]


def test_a_checkpoint_alone_makes_a_table() -> None:
    segment = Log(0, classic(7)).load()
    assert (segment.version, segment.commits, segment.last_commit) == (7, (), None)
    assert names(Log(0, classic(7), f"{v(8)}.json").load()) == [classic(7), f"{v(8)}.json"]


# --- hints


def test_a_hint_spares_the_files_before_it() -> None:
    log = Log(10, classic(2), classic(6)).hint(6)
    looks = log.watch()
    assert names(log.load()) == [classic(6), *(f"{v(version)}.json" for version in (7, 8, 9))]
    assert looks == [v(6)]


def test_a_stale_hint_gives_way_to_a_newer_checkpoint() -> None:
    assert names(Log(6, classic(2), classic(4)).hint(2).load()) == [classic(4), f"{v(5)}.json"]


@pytest.mark.parametrize("version", [3, 5, 50])
def test_a_hint_to_no_checkpoint_falls_back_to_an_older_one(version: int) -> None:
    log = Log(6, classic(1)).hint(version)
    assert names(log.load()) == [classic(1), *(f"{v(version)}.json" for version in (2, 3, 4, 5))]
    assert latest_version(log.storage, "/t") == 5


def test_a_damaged_hint_changes_nothing() -> None:
    log = Log(4, classic(2)).put("_last_checkpoint", content=b"{")
    assert names(log.load()) == [classic(2), f"{v(3)}.json"]


def test_a_version_before_the_hint_uses_an_older_checkpoint() -> None:
    log = Log(9, classic(2), classic(5), classic(8)).hint(8)
    assert names(log.load(7)) == [classic(5), f"{v(6)}.json", f"{v(7)}.json"]
    assert names(log.load(5)) == [classic(5)]
    assert names(log.load(4)) == [classic(2), f"{v(3)}.json", f"{v(4)}.json"]
    assert names(log.load(1)) == [f"{v(0)}.json", f"{v(1)}.json"]


@pytest.mark.parametrize(
    ("checkpoint", "looked_from"), [(0, [36, 30, 12, 0]), (3, [36, 30, 12, 0]), (17, [36, 30, 12]), (37, [36])]
)
def test_looking_backwards_goes_as_far_as_it_must(
    checkpoint: int, looked_from: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_module, "_FIRST_WINDOW", 2)
    monkeypatch.setattr(segment_module, "_WINDOW_GROWTH", 3)
    log = Log(40, classic(checkpoint), classic(39)).hint(39)
    looks = log.watch()
    assert names(log.load(37)) == [
        classic(checkpoint),
        *(f"{v(version)}.json" for version in range(checkpoint + 1, 38)),
    ]
    assert looks == [v(version) for version in looked_from]


# --- checkpoints that do not count


def test_a_set_with_a_missing_part_is_ignored() -> None:
    log = Log(8, classic(2), part(6, 1, 3), part(6, 3, 3)).hint(6)
    assert names(log.load()) == [classic(2), *(f"{v(version)}.json" for version in range(3, 8))]
    log.put(part(6, 2, 3))
    assert names(log.load()) == [part(6, 1, 3), part(6, 2, 3), part(6, 3, 3), f"{v(7)}.json"]


def test_parts_of_different_sets_are_not_mixed() -> None:
    log = Log(4, part(2, 1, 2), part(2, 2, 3), part(2, 3, 3))
    assert log.load().checkpoint is None
    assert names(log.put(part(2, 1, 3)).load())[:3] == [part(2, 1, 3), part(2, 2, 3), part(2, 3, 3)]


def test_an_empty_checkpoint_file_is_ignored() -> None:
    log = Log(4, classic(1)).put(classic(2), content=b"")
    assert names(log.load())[0] == classic(1)


@pytest.mark.parametrize(
    ("present", "chosen"),
    [
        ([classic(2), uuid_named(2), part(2, 1, 1)], uuid_named(2)),
        ([uuid_named(2), uuid_named(2, 1, "parquet")], uuid_named(2, 1, "parquet")),
        ([uuid_named(2, 0), uuid_named(2, 2), uuid_named(2, 1)], uuid_named(2, 2)),
        ([classic(2), part(2, 1, 1)], classic(2)),
    ],
)
def test_of_several_checkpoints_of_a_version_the_choice_is_fixed(present: list[str], chosen: str) -> None:
    assert names(Log(4, *present).load())[0] == chosen
    assert names(Log(4, *reversed(present)).load())[0] == chosen


def test_the_caller_can_do_without_damaged_files() -> None:
    log = Log(5, classic(1), uuid_named(3), part(3, 1, 2), part(3, 2, 2)).hint(3)
    root = "/t/_delta_log/"
    assert names(log.load())[0] == uuid_named(3)
    assert names(log.load(ignoring=frozenset({root + uuid_named(3)})))[:2] == [part(3, 1, 2), part(3, 2, 2)]
    damaged = frozenset({root + uuid_named(3), root + part(3, 2, 2)})
    assert names(log.load(ignoring=damaged)) == [classic(1), *(f"{v(version)}.json" for version in (2, 3, 4))]


# --- compactions


def test_a_compaction_replaces_its_commits() -> None:
    log = Log(8, compacted(2, 5))
    assert names(log.load()) == [f"{v(0)}.json", f"{v(1)}.json", compacted(2, 5), f"{v(6)}.json", f"{v(7)}.json"]
    assert log.load(5).last_commit is not None
    assert names(log.load(5)) == [f"{v(0)}.json", f"{v(1)}.json", compacted(2, 5)]


def test_the_fewest_files_are_read() -> None:
    log = Log(11, compacted(1, 3), compacted(2, 10), compacted(4, 6), compacted(7, 8))
    assert names(log.load()) == [f"{v(0)}.json", f"{v(1)}.json", compacted(2, 10)]
    assert names(log.load(9)) == [f"{v(0)}.json", compacted(1, 3), compacted(4, 6), compacted(7, 8), f"{v(9)}.json"]


def test_an_empty_compaction_stands_for_nothing() -> None:
    log = Log(4).put(compacted(1, 2), content=b"")
    assert names(log.load()) == [f"{v(n)}.json" for n in range(4)]
    log.drop(f"{v(1)}.json")
    assert "version 1 is missing" in log.fails().message


def test_a_compaction_beyond_the_version_or_into_the_checkpoint_is_ignored() -> None:
    log = Log(8, classic(2), compacted(1, 4), compacted(2, 3), compacted(4, 7))
    assert names(log.load(6)) == [classic(2), *(f"{v(version)}.json" for version in (3, 4, 5, 6))]
    assert names(log.load(7)) == [classic(2), f"{v(3)}.json", compacted(4, 7)]


def test_a_compaction_fills_a_gap_and_can_be_done_without() -> None:
    log = Log(6, compacted(2, 4))
    assert compacted(2, 4) not in names(log.load(ignoring=frozenset({"/t/_delta_log/" + compacted(2, 4)})))
    log.drop(f"{v(3)}.json")
    assert names(log.load()) == [f"{v(0)}.json", f"{v(1)}.json", compacted(2, 4), f"{v(5)}.json"]
    assert log.fails(3).parameters["missing_version"] == 3


def test_a_compaction_of_one_commit_does_not_replace_it() -> None:
    assert names(Log(2, compacted(1, 1)).load()) == [f"{v(0)}.json", f"{v(1)}.json"]


_ranges = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)).map(sorted), max_size=6)


@given(st.sets(st.integers(0, 9)), _ranges, st.none() | st.integers(0, 9), st.integers(0, 9))
def test_a_segment_holds_each_version_once_and_no_fewer_files_would_do(
    commits: set[int], ranges: list[list[int]], checkpoint: int | None, version: int
) -> None:
    log = Log(0, *(f"{v(number)}.json" for number in commits), *(compacted(*pair) for pair in ranges))
    log.put("_last")  # a directory that exists
    if checkpoint is not None:
        log.put(classic(checkpoint))
    first = checkpoint + 1 if checkpoint is not None and checkpoint <= version else 0
    runs = [(number, number) for number in commits] + [(low, high) for low, high in ranges]
    fewest = {first: 0}  # next version to cover: how few files
    for start in range(first, version + 1):
        for low, high in runs:
            if low == start and high <= version and start in fewest:
                fewest[high + 1] = min(fewest.get(high + 1, 99), fewest[start] + 1)
    try:
        segment = log.load(version)
    except DeltaError:
        assert version + 1 not in fewest
        return
    covered = [
        number
        for file in segment.commits
        for number in range(file.version, (file.name.end_version or file.version) + 1)
    ]
    assert covered == list(range(first, version + 1))
    assert len(segment.commits) == fewest[version + 1]


# --- what is not a table, or not a version


def test_no_directory(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError) as caught:
        load_segment(LocalStorage(), str(tmp_path / "nowhere"))
    assert caught.value.code == "DELTA_PATH_DOES_NOT_EXIST"
    assert str(tmp_path / "nowhere") in caught.value.message


def test_a_directory_without_a_log(tmp_path: Path) -> None:
    (tmp_path / "data.parquet").write_bytes(b"x")
    with pytest.raises(TableNotFoundError) as caught:
        load_segment(LocalStorage(), str(tmp_path))
    assert caught.value.code == "DELTA_MISSING_DELTA_TABLE"
    with pytest.raises(TableNotFoundError):
        latest_version(LocalStorage(), str(tmp_path))


def test_an_empty_log(tmp_path: Path) -> None:
    (tmp_path / "_delta_log" / "_staged_commits").mkdir(parents=True)
    (tmp_path / "_delta_log" / "_staged_commits" / f"{v(0)}.{UUIDS[0]}.json").write_text("{}")
    (tmp_path / "_delta_log" / f"{v(0)}.crc").write_text("{}")
    for version in (None, 0, 3):
        with pytest.raises(TableNotFoundError) as caught:
            load_segment(LocalStorage(), str(tmp_path), version)
        assert caught.value.code == "DELTA_MISSING_DELTA_TABLE"


@pytest.mark.parametrize("version", [None, 3])
def test_a_gap_names_the_missing_version(version: int | None) -> None:
    error = Log(4).drop(f"{v(1)}.json").fails(version)
    assert isinstance(error, MissingLogFilesError)
    assert (error.code, error.parameters["missing_version"]) == ("DELTA_VERSIONS_NOT_CONTIGUOUS", 1)
    assert "version 1 is missing" in error.message


def test_a_gap_after_the_checkpoint() -> None:
    log = Log(9, classic(4)).hint(4).drop(f"{v(5)}.json", f"{v(6)}.json")
    assert log.fails().parameters["missing_version"] == 5
    assert names(log.load(4)) == [classic(4)]
    assert log.fails(7).parameters["missing_version"] == 5


def test_a_gap_before_the_version_asked_for_does_not_matter_behind_a_checkpoint() -> None:
    log = Log(6, classic(4)).drop(f"{v(2)}.json")
    assert names(log.load()) == [classic(4), f"{v(5)}.json"]
    assert log.fails(3).code == "DELTA_VERSIONS_NOT_CONTIGUOUS"


def test_a_truncated_log_starts_at_its_checkpoint() -> None:
    log = Log(8, classic(5)).drop(*(f"{v(version)}.json" for version in range(5)))
    assert names(log.load()) == [classic(5), f"{v(6)}.json", f"{v(7)}.json"]
    for version in (0, 4):
        error = log.fails(version)
        assert isinstance(error, TimeTravelError)
        assert error.code == "DELTA_VERSION_NOT_FOUND"
        assert "5 to 7" in error.message
        assert (error.parameters["earliest"], error.parameters["latest"]) == (5, 7)


@pytest.mark.parametrize("version", [None, 3, 5])
def test_a_truncated_log_without_a_checkpoint_cannot_be_read(version: int | None) -> None:
    log = Log(6, part(4, 1, 2)).drop(f"{v(0)}.json", f"{v(1)}.json")
    error = log.fails(version)
    assert isinstance(error, MissingLogFilesError)
    assert error.code == "DELTA_TRUNCATED_TRANSACTION_LOG"
    assert "starts at version 2" in error.message


def test_an_incomplete_checkpoint_alone_is_a_truncated_log() -> None:
    assert Log(0, part(4, 1, 2)).fails().code == "DELTA_TRUNCATED_TRANSACTION_LOG"


@pytest.mark.parametrize("hint", [None, 2])
def test_a_version_after_the_latest(hint: int | None) -> None:
    log = Log(5, classic(2))
    if hint is not None:
        log.hint(hint)
    error = log.fails(5)
    assert isinstance(error, TimeTravelError)
    assert error.code == "DELTA_VERSION_NOT_FOUND"
    assert "0 to 4" in error.message


def test_a_negative_version() -> None:
    assert Log(5).fails(-1).code == "DELTA_VERSION_NOT_FOUND"


def test_a_listing_that_missed_a_commit_is_repeated() -> None:
    log = Log(3)
    inner, looks = log.storage.list_from, 0

    def torn(directory: str, start_name: str):
        nonlocal looks
        looks += 1
        return (status for status in inner(directory, start_name) if looks > 1 or status.name != f"{v(1)}.json")

    log.storage.list_from = torn
    assert len(log.load().commits) == 3


@pytest.mark.parametrize("hint", [None, 2, 4, 9])
def test_latest_version(hint: int | None) -> None:
    log = Log(5, classic(2))
    if hint is not None:
        log.hint(hint)
    assert latest_version(log.storage, "/t") == 4
    assert latest_version(log.put(classic(6)).storage, "/t") == 6


def test_a_version_that_a_stale_listing_does_not_show_is_found_by_name() -> None:
    storage = MemoryStorage()
    for version in range(4):
        storage.put(f"/t/_delta_log/{version:020d}.json", b"{}")
    storage.listed = lambda _, names: names[:2]
    assert load_segment(storage, "/t").version == 1
    assert [f.version for f in load_segment(storage, "/t", 3).commits] == [0, 1, 2, 3]
    with pytest.raises(TimeTravelError, match="Version 4 "):
        load_segment(storage, "/t", 4)
