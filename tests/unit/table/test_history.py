"""Commit times, time travel by time, history. Protocol: "In-Commit Timestamps"."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_pyds.errors import CorruptLogError, ProtocolError, TimeTravelError
from delta_pyds.log.commit_times import monotonic_file_times
from delta_pyds.log.listing import list_log
from delta_pyds.protocol.properties import TableProperties, parse_properties
from delta_pyds.storage.local import LocalStorage
from delta_pyds.table.history import CommitTimes, history, version_at
from tests.support.commits import table_at
from tests.support.memory_storage import MemoryStorage
from tests.support.table_builder import TableBuilder

STORAGE = LocalStorage()
ENABLED = {"delta.enableInCommitTimestamps": "true"}
EARLY, LATE = "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION", "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"


def times_of(table: TableBuilder) -> CommitTimes:
    return CommitTimes(
        STORAGE, str(table.path), properties=parse_properties(table.properties), latest_version=table.version
    )


def at(table: TableBuilder, timestamp_ms: int) -> int | str:
    """The version, or the code of the error."""
    try:
        return version_at(
            STORAGE,
            str(table.path),
            timestamp_ms,
            properties_of_latest=parse_properties(table.properties),
            latest_version=table.version,
        )
    except TimeTravelError as error:
        return error.code


# --- by file times


def test_the_last_commit_not_after_the_time_is_found(tmp_path: Path) -> None:
    table = table_at(tmp_path, 1000, 2000, 3000)
    asked = [999, 1000, 1001, 1999, 2000, 2999, 3000, 3001]
    assert [at(table, time) for time in asked] == [EARLY, 0, 0, 0, 1, 1, 2, LATE]


def test_file_times_are_made_to_ascend(tmp_path: Path) -> None:
    table = table_at(tmp_path, 1000, 1000, 500, 1002, 5000)
    times = times_of(table)
    assert [times.commit_timestamp(version) for version in range(5)] == [1000, 1001, 1002, 1003, 5000]
    assert [at(table, time) for time in (1000, 1001, 1002, 1003, 4999, 5000)] == [0, 1, 2, 3, 3, 4]


def test_later_versions_than_the_snapshots_do_not_exist(tmp_path: Path) -> None:
    table = table_at(tmp_path, 1000, 2000, 3000)
    times = CommitTimes(STORAGE, str(tmp_path), properties=TableProperties(), latest_version=1)
    with pytest.raises(TimeTravelError) as caught:
        times.version_at(2500)
    assert caught.value.code == LATE
    assert at(table, 2500) == 1


def test_only_versions_that_can_be_recreated_count(tmp_path: Path) -> None:
    table = table_at(tmp_path, 1000, 2000, 3000, 4000, 5000)
    table.checkpoint(3)
    table.cleanup_log(before=2)
    assert [at(table, time) for time in (1500, 3500, 4000, 4500, 5000, 5001)] == [EARLY, EARLY, 3, 3, 4, LATE]


def test_a_stray_older_commit_does_not_move_the_times(tmp_path: Path) -> None:
    table = table_at(tmp_path, 1000, 9000, 3000, 4000)
    table.checkpoint(2)
    table.commit_file(0).unlink()
    assert [at(table, time) for time in (3000, 4000)] == [2, 3]
    assert [record.timestamp_ms for record in history(STORAGE, str(tmp_path))] == [4000, 3000, 9000]


def test_a_log_of_checkpoints_only_has_no_times(tmp_path: Path) -> None:
    table = table_at(tmp_path, 1000)
    table.checkpoint()
    table.commit_file(0).unlink()
    assert at(table, 1000) == EARLY
    with pytest.raises(TimeTravelError, match=r"version 0 .* is unknown"):
        times_of(table).commit_timestamp(0)


def test_errors_say_both_times(tmp_path: Path) -> None:
    table = table_at(tmp_path, 1_700_000_000_000, 1_700_000_060_000)
    with pytest.raises(TimeTravelError) as early:
        times_of(table).version_at(1_699_999_999_999)
    assert "2023-11-14 22:13:19.999 UTC" in early.value.message
    assert "version 0 of 2023-11-14 22:13:20.000 UTC" in early.value.message
    with pytest.raises(TimeTravelError) as late:
        times_of(table).version_at(10**18)
    assert f"{10**18} ms" in late.value.message
    assert "version 1 of 2023-11-14 22:14:20.000 UTC" in late.value.message


@given(st.lists(st.integers(0, 8), min_size=1, max_size=8))
def test_monotonic_times_ascend_and_change_as_little_as_that_needs(file_times: list[int]) -> None:
    storage = MemoryStorage()
    for version, time in enumerate(file_times):
        storage.put(f"/t/_delta_log/{version:020d}.json", b"", modification_time_ms=time)
    times = monotonic_file_times(list_log(storage, "/t").commits, 0)
    previous = -1
    for version, time in enumerate(file_times):
        assert times[version] == max(time, previous + 1)
        previous = times[version]


# --- by in-commit timestamps


def test_in_commit_timestamps_outrank_file_times(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path, {"id": "long"}, properties=ENABLED)
    table.create(timestamp_ms=90_000, in_commit_timestamp=1000)
    table.commit(timestamp_ms=80_000, in_commit_timestamp=2000)
    table.commit(timestamp_ms=70_000, in_commit_timestamp=3000)
    asked = [999, 1000, 1999, 2000, 3000, 3001, 80_000]
    assert [at(table, time) for time in asked] == [EARLY, 0, 0, 1, 2, LATE, LATE]
    assert times_of(table).commit_timestamp(1) == 2000


@pytest.fixture
def enabled_later(tmp_path: Path) -> TableBuilder:
    """File times until version 1 (whose files were touched much later), in-commit timestamps from version 2."""
    table = table_at(tmp_path, 1000, 2000)
    properties = {
        **ENABLED,
        "delta.inCommitTimestampEnablementVersion": "2",
        "delta.inCommitTimestampEnablementTimestamp": "5000",
    }
    table.commit([table.metadata(properties=properties)], timestamp_ms=100_000, in_commit_timestamp=5000)
    table.commit(timestamp_ms=200_000, in_commit_timestamp=6000)
    return table


def test_the_enablement_splits_the_two_clocks(enabled_later: TableBuilder) -> None:
    asked = [999, 1000, 1999, 2000, 4999, 5000, 5999, 6000, 6001, 100_000]
    assert [at(enabled_later, time) for time in asked] == [EARLY, 0, 0, 1, 1, 2, 2, 3, LATE, LATE]
    times = times_of(enabled_later)
    assert [times.commit_timestamp(version) for version in range(4)] == [1000, 2000, 5000, 6000]


def test_file_times_beyond_the_enablement_do_not_win(enabled_later: TableBuilder) -> None:
    enabled_later.set_mtime(1, 500_000)  # the log was copied
    assert [at(enabled_later, time) for time in (4999, 5000, 6000)] == [0, 2, 3]


def test_before_the_enablement_is_gone(enabled_later: TableBuilder) -> None:
    enabled_later.checkpoint(2)
    enabled_later.cleanup_log(before=2)
    assert [at(enabled_later, time) for time in (2000, 4999, 5000, 6000)] == [EARLY, EARLY, 2, 3]


def test_disabled_again_means_file_times(enabled_later: TableBuilder) -> None:
    enabled_later.commit([enabled_later.metadata(properties={})], timestamp_ms=300_000)
    assert [at(enabled_later, time) for time in (5000, 100_000, 250_000, 300_000)] == [1, 2, 3, 4]


def test_few_commits_are_read(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path, {"id": "long"}, properties=ENABLED)
    table.create(in_commit_timestamp=0)
    for version in range(1, 200):
        table.commit(in_commit_timestamp=version * 10)
    reads: list[str] = []

    class Counting(LocalStorage):
        def read(self, path: str, offset: int | None = None, length: int | None = None) -> bytes:
            reads.append(path)
            return super().read(path, offset, length)

    times = CommitTimes(Counting(), str(tmp_path), properties=parse_properties(table.properties), latest_version=199)
    assert times.version_at(1234) == 123
    assert len(reads) <= 10


@pytest.mark.parametrize(
    ("info", "code"), [(True, "DELTA_MISSING_COMMIT_TIMESTAMP"), (False, "DELTA_MISSING_COMMIT_INFO")]
)
def test_a_commit_that_lacks_its_time_is_named(tmp_path: Path, info: bool, code: str) -> None:
    table = TableBuilder(tmp_path, {"id": "long"}, properties=ENABLED)
    table.create(in_commit_timestamp=1000)
    file = table.commit_file(0)
    file.write_text(re.sub('"inCommitTimestamp":1000,' if info else ".*commitInfo.*\n", "", file.read_text(), count=1))
    with pytest.raises(CorruptLogError) as caught:
        times_of(table).version_at(1000)
    assert caught.value.code == code
    assert str(file) in caught.value.message


@pytest.mark.parametrize("key", ["Version", "Timestamp"])
def test_a_property_that_is_no_number_is_refused(tmp_path: Path, key: str) -> None:
    table = table_at(tmp_path, 1000)
    configuration = {**ENABLED, f"delta.inCommitTimestampEnablement{key}": "soon"}
    with pytest.raises(ProtocolError, match="soon"):
        CommitTimes(STORAGE, str(table.path), properties=parse_properties(configuration), latest_version=0)


# --- history


def test_history_is_newest_first(tmp_path: Path) -> None:
    table = table_at(tmp_path, 1000, 900)
    table.commit(timestamp_ms=5000, operation="DELETE")
    records = list(history(STORAGE, str(tmp_path)))
    assert [(record.version, record.timestamp_ms) for record in records] == [(2, 5000), (1, 1001), (0, 1000)]
    assert [record.commit_info.operation for record in records if record.commit_info] == [
        "DELETE",
        "WRITE",
        "CREATE TABLE",
    ]
    assert [record.version for record in history(STORAGE, str(tmp_path), 2)] == [2, 1]
    assert list(history(STORAGE, str(tmp_path), 0)) == []


def test_history_of_a_commit_without_info(tmp_path: Path) -> None:
    table = table_at(tmp_path, 1000)
    table.commit(timestamp_ms=2000, commit_info=False)
    assert [record.commit_info is None for record in history(STORAGE, str(tmp_path))] == [True, False]


def test_history_begins_where_the_log_does(tmp_path: Path) -> None:
    table = table_at(tmp_path, 1000, 2000, 3000, 4000)
    table.checkpoint(2)
    table.cleanup_log(before=2)
    assert [record.version for record in history(STORAGE, str(tmp_path))] == [3, 2]


@pytest.mark.parametrize("told", [True, False])
def test_history_by_in_commit_timestamps(enabled_later: TableBuilder, told: bool) -> None:
    properties = parse_properties(enabled_later.properties) if told else None
    records = history(STORAGE, str(enabled_later.path), properties_of_latest=properties)
    assert [record.timestamp_ms for record in records] == [6000, 5000, 2000, 1000]


def test_history_of_a_remote_table_is_the_same(tmp_path: Path) -> None:
    table = table_at(tmp_path, *range(1000, 41_000, 1000))
    memory = MemoryStorage()
    for file in list_log(STORAGE, str(tmp_path)).commits:
        memory.put(file.path, STORAGE.read(file.path), file.modification_time_ms)
    assert list(history(memory, str(table.path))) == list(history(STORAGE, str(table.path)))
