from __future__ import annotations

import gc
import json
import logging
import re
from pathlib import Path
from typing import Any

import pytest

from delta_pyds.errors import DeltaError, MissingLogFilesError, TimeTravelError, UserError
from delta_pyds.protocol.stream_offset import METADATA_CHANGE_INDEX, StreamOffset
from delta_pyds.storage.local import LocalStorage
from delta_pyds.table.configuration import TableConfiguration
from delta_pyds.table.stream.commit import StreamRules
from delta_pyds.table.stream.schema_log import Allowed
from delta_pyds.table.stream.source import StreamOptions
from tests.support.stream_query import Query
from tests.support.table_builder import BASE_TIME_MS, TableBuilder

CDF = {"delta.enableChangeDataFeed": "true"}
MAPPED = {"delta.columnMapping.mode": "name"}


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    table = TableBuilder(tmp_path / "t", {"id": "long"})
    table.create()
    return table


def append(table: TableBuilder, *names: str, **fields: Any) -> int:
    """A commit that adds files which are only named."""
    return table.commit([table.add(name, **fields) for name in names])


def offset(table: TableBuilder, version: int, index: int = -1, initial: bool = False) -> StreamOffset:
    return StreamOffset(table.table_id, version, index, initial)


def position(version: int, index: int = -1, initial: bool = False) -> dict[str, Any]:
    return {"reservoirVersion": version, "index": index, "isStartingVersion": initial}


def remove_commits(table: TableBuilder, before: int) -> None:
    for version in range(before):
        table.commit_file(version).unlink(missing_ok=True)


# ---- the beginning


def test_a_stream_reads_the_table_first_and_then_every_commit(table: TableBuilder) -> None:
    append(table, "b", "a")
    append(table, "c")
    query = Query(table.path)
    query.run()
    assert query.paths() == ["a", "b", "c"]
    assert query.last() == position(3)
    append(table, "e", "d")
    query.run()
    assert query.paths() == ["a", "b", "c", "e", "d"]


def test_an_empty_table_gives_an_empty_batch_and_then_what_comes(table: TableBuilder) -> None:
    query = Query(table.path)
    assert query.run() == 1
    append(table, "a")
    query.run()
    assert query.paths() == ["a"]


def test_a_snapshot_is_read_within_the_limits_by_time_and_path(table: TableBuilder) -> None:
    table.commit([table.add("z", modificationTime=1), table.add("b", modificationTime=2)])
    table.commit([table.add("a", modificationTime=2), table.add("y", modificationTime=1)])
    query = Query(table.path, StreamOptions(max_files=3))
    query.trigger()
    assert query.last() == position(2, 2, True)
    append(table, "c")
    query.run()
    assert query.paths() == ["y", "z", "a", "b", "c"]
    # the end of the snapshot ends a batch, even below the limits
    assert query.sizes_of_batches() == [3, 1, 1]


def test_a_starting_version_begins_with_its_commit(table: TableBuilder) -> None:
    append(table, "a")
    append(table, "b")
    query = Query(table.path, StreamOptions(starting_version=2))
    query.run()
    assert query.paths() == ["b"]


def test_a_starting_version_may_be_the_next_one(table: TableBuilder) -> None:
    query = Query(table.path, StreamOptions(starting_version=1))
    query.run()
    append(table, "a")
    query.run()
    assert query.paths() == ["a"]


@pytest.mark.parametrize("version", [0, 1, 6])
def test_a_starting_version_that_is_not_there_is_refused(table: TableBuilder, version: int) -> None:
    for name in "abcd":
        append(table, name)
    table.checkpoint()
    remove_commits(table, 2)
    with pytest.raises(TimeTravelError, match=r"versions 2 to 4") as error:
        Query(table.path, StreamOptions(starting_version=version)).start_offset()
    assert error.value.code == "DELTA_VERSION_NOT_FOUND"
    assert error.value.parameters["earliest"] == 2
    assert error.value.parameters["latest"] == 4


@pytest.mark.parametrize(
    ("time_ms", "version"),
    [(BASE_TIME_MS + 60_000, 1), (BASE_TIME_MS + 60_001, 2), (BASE_TIME_MS - 1, 0), (BASE_TIME_MS + 120_000, 2)],
)
def test_a_starting_time_is_that_of_the_first_commit_not_before_it(
    table: TableBuilder, time_ms: int, version: int
) -> None:
    append(table, "a")
    append(table, "b")
    found = Query(table.path, StreamOptions(starting_timestamp_ms=time_ms)).start_offset()
    assert found == offset(table, version)


def test_a_starting_time_before_a_cleaned_log_is_its_first_commit(table: TableBuilder) -> None:
    append(table, "a")
    append(table, "b")
    table.checkpoint()
    remove_commits(table, 2)
    found = Query(table.path, StreamOptions(starting_timestamp_ms=BASE_TIME_MS)).start_offset()
    assert found == offset(table, 2)


def test_a_starting_time_after_the_last_commit_is_refused(table: TableBuilder) -> None:
    with pytest.raises(TimeTravelError) as error:
        Query(table.path, StreamOptions(starting_timestamp_ms=BASE_TIME_MS + 1)).start_offset()
    assert error.value.code == "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"


# ---- the beginning, after a crash


@pytest.mark.parametrize("crash", ["logged", "delivered"])
def test_a_first_batch_is_repeated_on_the_same_snapshot(table: TableBuilder, crash: str) -> None:
    append(table, "a", "b", "c")
    query = Query(table.path, StreamOptions(max_files=2))
    query.trigger(crash)
    table.commit([table.add("0", modificationTime=1)])  # would be first in the snapshot of a newer version
    query.run()
    assert query.paths() == ["a", "b", "c", "0"]
    assert query.sizes_of_batches() == [2, 1, 1]


@pytest.mark.parametrize("crash", ["logged", "delivered"])
def test_a_first_batch_that_ended_the_snapshot_is_repeated_on_it(table: TableBuilder, crash: str) -> None:
    append(table, "a", "b")
    query = Query(table.path)
    query.trigger(crash)
    append(table, "c")
    query.run()
    assert query.paths() == ["a", "b", "c"]


@pytest.mark.parametrize("crash", [None, "logged", "delivered"])
def test_starting_with_the_latest_loses_no_commit_after_the_first_batch(table: TableBuilder, crash: str | None) -> None:
    append(table, "old")
    query = Query(table.path, StreamOptions(starting_version="latest"))
    assert query.trigger(crash)
    assert query.last() == position(2)
    assert query.paths() == []
    append(table, "a")
    append(table, "b")
    query.run()
    assert query.paths() == ["a", "b"]


def test_starting_with_the_latest_logs_its_position_before_anything_is_read(table: TableBuilder) -> None:
    """A commit that the first batch had read would be lost if that batch were repeated from a later beginning."""
    query = Query(table.path, StreamOptions(starting_version="latest"))
    query.start()
    assert query.source is not None
    query.source.initial_offset()
    append(table, "a")
    query.trigger("logged")
    append(table, "b")
    query.run()
    assert query.paths() == ["a", "b"]


def test_starting_with_the_latest_again_at_an_unchanged_table(table: TableBuilder) -> None:
    query = Query(table.path, StreamOptions(starting_version="latest"))
    query.trigger("logged")
    query.start()
    assert not query.trigger()
    append(table, "a")
    query.run()
    assert query.paths() == ["a"]


def test_a_start_that_was_changed_before_the_first_batch_was_done_is_refused(table: TableBuilder) -> None:
    append(table, "a", "b")
    query = Query(table.path, StreamOptions(max_files=1))
    query.trigger("logged")
    query.options = StreamOptions(starting_version="latest")
    with pytest.raises(UserError, match="for the start of the stream were changed"):
        query.start()


def test_offsets_that_go_backwards_are_refused(table: TableBuilder) -> None:
    append(table, "a")
    query = Query(table.path)
    with pytest.raises(UserError, match="has an invalid end offset"):
        query.plan(offset(table, 2), offset(table, 1))
    assert query.plan(offset(table, 2), offset(table, 2)) == []


def test_a_first_batch_beyond_its_snapshot_is_refused(table: TableBuilder) -> None:
    append(table, "a")
    with pytest.raises(UserError, match="first batch ends in the snapshot"):
        Query(table.path).plan(offset(table, 0, initial=True), offset(table, 1, 0))


# ---- limits


def test_a_commit_is_split_by_files(table: TableBuilder) -> None:
    append(table, "a", "b", "c", "d")
    append(table, "e", "f")
    query = Query(table.path, StreamOptions(starting_version=0, max_files=3))
    query.trigger()
    assert query.last() == position(1, 2)
    query.run()
    assert query.paths() == list("abcdef")
    assert query.sizes_of_batches() == [3, 3]


def test_bytes_are_a_soft_limit_with_at_least_one_file(table: TableBuilder) -> None:
    table.commit([table.add("a", size=100), table.add("b", size=1), table.add("c", size=8), table.add("d", size=8)])
    query = Query(table.path, StreamOptions(starting_version=0, max_files=None, max_bytes=9))
    query.run()
    assert query.sizes_of_batches() == [1, 2, 1]


def test_both_limits_hold_together(table: TableBuilder) -> None:
    append(table, *"abcdef", size=10)
    files = Query(table.path, StreamOptions(starting_version=0, max_files=2, max_bytes=1000))
    bytes_ = Query(table.path, StreamOptions(starting_version=0, max_files=5, max_bytes=20))
    files.run(), bytes_.run()
    assert files.sizes_of_batches() == bytes_.sizes_of_batches() == [2, 2, 2]


def test_a_batch_without_limits_takes_all(table: TableBuilder) -> None:
    append(table, *"abc")
    append(table, *"def")
    query = Query(table.path, StreamOptions(starting_version=0, max_files=1))
    query.trigger(unlimited=True)
    assert query.sizes_of_batches() == [6]


def test_a_batch_without_limits_takes_more_commits_than_a_limited_one(table: TableBuilder) -> None:
    for version in range(1, 1_200):
        table.commit_file(version).write_text('{"txn":{"appId":"x","version":1}}\n')
    table.version = 1_199
    append(table, "a")
    query = Query(table.path, StreamOptions(starting_version=0, max_files=1))
    query.trigger(unlimited=True)
    assert query.sizes_of_batches() == [1]


def test_a_batch_that_ends_with_a_commit_ends_before_the_next(table: TableBuilder) -> None:
    append(table, "a", "b")
    query = Query(table.path, StreamOptions(starting_version=0, max_files=2))
    query.trigger()
    assert query.last() == position(2)
    assert not query.trigger()


def test_commits_without_data_do_not_end_a_batch_but_are_bounded(table: TableBuilder) -> None:
    for version in range(1, 1_200):
        table.commit_file(version).write_text('{"txn":{"appId":"x","version":1}}\n')
    table.version = 1_199
    append(table, "a")
    query = Query(table.path, StreamOptions(starting_version=0, max_files=1))
    assert query.run() == 2
    assert query.sizes_of_batches() == [0, 1]


def test_a_rewrite_without_new_data_gives_nothing(table: TableBuilder) -> None:
    [add] = [table.add("a")]
    table.commit([add])
    table.commit([table.remove(add, dataChange=False), table.add("b", dataChange=False)], operation="OPTIMIZE")
    append(table, "c")
    query = Query(table.path, StreamOptions(starting_version=0))
    query.run()
    assert query.paths() == ["a", "c"]


# ---- what is left out


def test_excluded_files_are_counted_but_neither_read_nor_limited(table: TableBuilder) -> None:
    append(table, "a", "x1", "x2", "b", "c", "x3")
    query = Query(table.path, StreamOptions(starting_version=0, max_files=2, exclude=re.compile("^x")))
    query.trigger()
    assert query.last() == position(1, 3)
    query.run()
    assert query.paths() == ["a", "b", "c"]
    assert query.last() == position(2)


def test_the_pattern_sees_the_path_of_the_log(table: TableBuilder) -> None:
    append(table, "a%20b", "c a b")
    query = Query(table.path, StreamOptions(exclude=re.compile(r"a\sb")))
    query.run()
    assert query.paths() == ["a%20b"]


def test_options_may_change_between_runs(table: TableBuilder) -> None:
    append(table, "a", "x1", "b", "x2", "c")
    query = Query(table.path, StreamOptions(max_files=2, exclude=re.compile("x")))
    query.trigger()
    query.crash()
    query.options = StreamOptions(max_files=10)
    query.run()
    # the snapshot in order is a, b, c, x1, x2: the first two were read before
    assert query.paths() == ["a", "b", "c", "x1", "x2"]
    assert query.sizes_of_batches() == [2, 3]


def test_a_predicate_leaves_files_out_of_batches_and_limits(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", {"id": "long", "p": "string"}, partition_columns=["p"])
    table.create()
    for n in range(4):
        table.commit([table.add(f"{n}{p}", partitionValues={"p": p}) for p in "ab"])
    for options in (StreamOptions(max_files=2), StreamOptions(max_files=2, starting_version=0)):
        query = Query(table.path, options, where="p = 'b'")
        query.run()
        assert query.paths() == ["0b", "1b", "2b", "3b"]
        assert query.sizes_of_batches() == [2, 2]
        assert {row["partition:0"] for row in query.files()} <= {"b"}


def test_statistics_leave_files_out(table: TableBuilder) -> None:
    for n in range(3):
        table.append([{"id": n}])
    query = Query(table.path, StreamOptions(starting_version=0), where="id = 1")
    query.run()
    assert len(query.paths()) == 1


# ---- deletes and updates


def test_a_delete_stops_the_stream_and_the_offset_stays_before_it(table: TableBuilder) -> None:
    append(table, "a")
    query = Query(table.path)
    query.run()
    table.commit([table.remove(table.add("a"))], operation="DELETE")
    with pytest.raises(UserError) as error:
        query.trigger()
    assert error.value.code == "DELTA_SOURCE_IGNORE_DELETE"
    query.crash()
    query.options = StreamOptions(rules=StreamRules(ignore_deletes=True))
    append(table, "b")
    query.run()
    assert query.paths() == ["a", "b"]


def test_change_commits_are_skipped_wholly(table: TableBuilder) -> None:
    append(table, "a")
    table.commit([table.remove(table.add("a")), table.add("a2")], operation="UPDATE")
    append(table, "b")
    query = Query(table.path, StreamOptions(starting_version=0, rules=StreamRules(skip_change_commits=True)))
    query.run()
    assert query.paths() == ["a", "b"]


# ---- the log under the stream


def test_commits_that_were_cleaned_up_are_missed(table: TableBuilder) -> None:
    for name in "abcd":
        append(table, name)
    query = Query(table.path, StreamOptions(starting_version=1, max_files=1))
    query.trigger()
    query.crash()
    table.checkpoint()
    remove_commits(table, 4)
    with pytest.raises(MissingLogFilesError, match="failOnDataLoss") as error:
        query.trigger()
    assert error.value.code == "DELTA_MISSING_FILES_UNEXPECTED_VERSION"
    assert error.value.parameters["version"] == 2
    assert error.value.parameters["earliest"] == 4


def test_commits_that_were_cleaned_up_can_be_passed_over(table: TableBuilder, caplog: pytest.LogCaptureFixture) -> None:
    for name in "abcd":
        append(table, name)
    query = Query(table.path, StreamOptions(starting_version=1, max_files=1, fail_on_data_loss=False))
    query.trigger()
    query.crash()
    table.checkpoint()
    remove_commits(table, 4)
    with caplog.at_level(logging.WARNING):
        query.run()
    assert query.paths() == ["a", "d"]
    assert "Versions 2 to 3" in caplog.text
    assert query.last() == position(5)


def test_a_log_that_has_only_a_checkpoint_left_is_passed_over_once(
    table: TableBuilder, caplog: pytest.LogCaptureFixture
) -> None:
    for name in "abc":
        append(table, name)
    query = Query(table.path, StreamOptions(starting_version=1, max_files=1, fail_on_data_loss=False))
    query.trigger()
    query.crash()
    table.checkpoint()
    remove_commits(table, 4)
    with caplog.at_level(logging.WARNING):
        query.run()
        query.trigger()
    assert caplog.text.count("were removed from its log") == 1
    assert query.last() == position(4)
    append(table, "d")
    query.run()
    assert query.paths() == ["a", "d"]


def test_a_schema_that_changed_in_a_commit_that_was_lost_is_not_read_past(table: TableBuilder) -> None:
    append(table, "a")
    query = Query(table.path, StreamOptions(starting_version=1, fail_on_data_loss=False))
    query.run()
    query.start()
    table.commit([table.metadata({"id": "long", "more": "string"}), table.add("b")])
    append(table, "c")
    table.checkpoint()
    remove_commits(table, 3)
    with pytest.raises(UserError, match="restart") as error:
        query.trigger()
    assert error.value.code == "DELTA_SCHEMA_CHANGED_WITH_VERSION"
    query.crash()
    query.run()
    assert query.paths() == ["a", "c"]


def test_a_snapshot_that_cannot_be_recreated_any_more_is_refused(table: TableBuilder) -> None:
    append(table, "a", "b")
    query = Query(table.path, StreamOptions(max_files=1, fail_on_data_loss=False))
    query.trigger()
    query.crash()
    append(table, "c")
    table.checkpoint()
    remove_commits(table, 2)
    with pytest.raises(MissingLogFilesError, match="at version 1, and that version can no longer") as error:
        query.trigger()
    assert error.value.code == "DELTA_MISSING_FILES_UNEXPECTED_VERSION"


def test_a_log_that_became_shorter_is_refused(table: TableBuilder) -> None:
    for name in "abc":
        append(table, name)
    query = Query(table.path, StreamOptions(starting_version=1))
    query.trigger("logged")
    for version in (2, 3):
        table.commit_file(version).unlink()
    with pytest.raises(UserError) as error:
        query.start()
    assert error.value.code == "DELTA_STREAMING_TRAILING_COMMIT_MISSING"


def test_another_table_is_refused_by_its_id(table: TableBuilder) -> None:
    query = Query(table.path)
    other = StreamOffset("other", 0)
    for ask in (lambda: query.open().latest_offset(other), lambda: query.plan(other, offset(table, 1))):
        with pytest.raises(UserError, match="new checkpoint location") as error:
            ask()
        assert error.value.code == "DELTA_DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"
        assert {"other", table.table_id} == {error.value.parameters[k] for k in ("old_table_id", "new_table_id")}


def test_a_commit_of_another_table_is_refused(table: TableBuilder) -> None:
    query = Query(table.path)
    query.run()
    metadata = table.metadata()
    metadata["metaData"]["id"] = "other"
    table.commit([metadata, table.add("a")])
    with pytest.raises(UserError) as error:
        query.trigger()
    assert error.value.code == "DELTA_DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"


# ---- Trigger.AvailableNow and progress


def test_a_fixed_end_is_not_passed_and_limits_hold(table: TableBuilder) -> None:
    append(table, *"abc")
    query = Query(table.path, StreamOptions(max_files=2))
    query.start(available_now=True)
    query.trigger()
    append(table, "d")
    query.run()
    assert query.paths() == ["a", "b", "c"]
    assert query.last() == position(2)
    assert query.run_available_now() == 1
    assert query.paths() == ["a", "b", "c", "d"]
    assert query.run_available_now() == 0


def test_a_fixed_end_reads_the_table_as_it_was_then(table: TableBuilder) -> None:
    append(table, "a")
    query = Query(table.path)
    query.start(available_now=True)
    append(table, "b")
    query.run()
    assert query.paths() == ["a"]
    assert query.run_available_now() == 1
    assert query.paths() == ["a", "b"]


def test_an_end_fixed_after_the_beginning_was_found_reads_the_whole_snapshot(
    table: TableBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(table, "a")
    append(table, "b")
    source = Query(table.path).open()
    start = source.initial_offset()
    assert start == offset(table, 2, initial=True)
    listed = LocalStorage.list_from

    def stale(self: LocalStorage, directory: str, name: str) -> Any:
        return (status for status in listed(self, directory, name) if status.name < f"{2:020d}.json")

    with monkeypatch.context() as patched:
        patched.setattr(LocalStorage, "list_from", stale)
        source.fix_end()
    append(table, "c")
    end = source.latest_offset(start)
    # not less than the snapshot, and nothing that came after it
    assert end == offset(table, 3)
    assert [row["path"] for batch in source.batches(start, end) for row in batch.to_pylist()] == ["a", "b"]
    assert source.latest_offset(end) == end


def test_a_start_beyond_the_fixed_end_stays(table: TableBuilder) -> None:
    source = Query(table.path).open()
    source.fix_end()
    append(table, "a")
    append(table, "b")
    assert source.latest_offset(offset(table, 2)) == offset(table, 2)


def test_the_newest_offset_is_known_without_a_look(table: TableBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    append(table, *"abc")
    append(table, "d")
    source = Query(table.path, StreamOptions(starting_version=0, max_files=1)).open()
    assert source.newest_offset() is None
    source.latest_offset(source.initial_offset())
    looks: list[str] = []
    monkeypatch.setattr(LocalStorage, "status", lambda _, path: looks.append(path))
    monkeypatch.setattr(LocalStorage, "list_from", lambda _, path, __: looks.append(path))
    assert source.newest_offset() == offset(table, 3)
    assert looks == []


def test_nothing_is_kept_of_what_was_read(table: TableBuilder) -> None:
    append(table, *"abc")
    query = Query(table.path, StreamOptions(max_files=2))
    query.trigger()
    source: Any = query.source
    assert source._snapshot_files is not None
    append(table, "d")
    query.run()
    assert source._snapshot is None
    assert source._snapshot_files is None
    assert set(source._commit_files) <= {3}


# ---- schemas


def test_metadata_of_versions_that_were_read_is_not_kept(table: TableBuilder) -> None:
    query = Query(table.path)
    query.run()

    def run_on(first: int, last: int) -> int:
        for number in range(first, last):
            table.commit([table.metadata(properties={"note": str(number)}), table.add(f"f{number}")])
            query.run()
        gc.collect()
        return sum(isinstance(o, TableConfiguration) for o in gc.get_objects())

    few = run_on(0, 3)
    assert run_on(3, 20) <= few
    table.commit([table.protocol(), table.add("last")])  # what was in force before is still known
    query.run()
    assert len(query.paths()) == 21


def test_an_added_column_stops_the_stream_until_it_is_restarted(table: TableBuilder) -> None:
    append(table, "a")
    query = Query(table.path)
    query.run()
    append(table, "b")
    table.commit([table.metadata({"id": "long", "more": "string"}), table.add("c")])
    with pytest.raises(UserError, match="restart") as error:
        query.run()
    assert error.value.parameters["retryable"]
    query.crash()
    query.run()
    assert query.paths() == ["a", "b", "c"]


def test_a_change_of_properties_does_not_stop_the_stream(table: TableBuilder) -> None:
    query = Query(table.path)
    query.run()
    table.commit([table.metadata(properties={"note": "x"}), table.add("a")])
    query.run()
    assert query.paths() == ["a"]


def test_a_start_under_a_schema_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", {"id": "long", "gone": "long"}, properties=MAPPED)
    table.create()
    append(table, "a")
    append(table, "b")
    table.commit([table.metadata({"id": "long"})])
    with pytest.raises(UserError) as error:
        Query(table.path, StreamOptions(starting_version=1)).run()
    assert error.value.code == "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG"
    with pytest.raises(UserError) as error:
        Query(table.path).plan(offset(table, 1), offset(table, 3))
    assert error.value.code == "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG"


def test_a_start_with_the_commit_that_changed_the_schema_is_fine(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", {"id": "long", "gone": "long"}, properties=MAPPED)
    table.create()
    table.commit([table.metadata({"id": "long"}), table.add("a")])
    append(table, "b")
    query = Query(table.path, StreamOptions(starting_version=1))
    query.run()
    assert query.paths() == ["a", "b"]


class TestSchemaTracking:
    @pytest.fixture
    def table(self, tmp_path: Path) -> TableBuilder:
        table = TableBuilder(tmp_path / "t", {"id": "long", "old": "string"}, properties=MAPPED)
        table.create()
        return table

    @staticmethod
    def query(table: TableBuilder, **options: Any) -> Query:
        return Query(table.path, StreamOptions(**options), schema_log=table.path.parent / "log", allow=Allowed(drop=4))

    @staticmethod
    def columns(query: Query) -> list[str]:
        query.start()
        return list(query.selection.state.output.names)

    @staticmethod
    def evolves(query: Query) -> int:
        with pytest.raises(UserError) as error:
            query.run()
        assert error.value.code == "DELTA_STREAMING_METADATA_EVOLUTION"
        assert error.value.parameters["retryable"]
        query.crash()
        return int(error.value.parameters["version"])

    def test_a_stream_goes_through_a_dropped_column(self, table: TableBuilder) -> None:
        append(table, "a")
        query = self.query(table)
        query.run()
        append(table, "b")
        append(table, "c")
        table.commit([table.metadata({"id": "long"}), table.add("d")])
        append(table, "e")
        assert self.evolves(query) == 4
        assert query.paths() == ["a", "b", "c"]
        assert query.last() == position(4, METADATA_CHANGE_INDEX)
        assert json.loads(query.offsets[-1])["sourceVersion"] == 3
        query.allow = Allowed()
        with pytest.raises(UserError, match="allowSourceColumnDrop"):
            query.trigger()
        query.crash()
        query.allow = Allowed(drop=4)
        assert self.columns(query) == ["id"]
        query.run()
        assert query.paths() == ["a", "b", "c", "d", "e"]

    @pytest.mark.parametrize("crash", ["logged", "delivered"])
    def test_a_batch_before_the_change_is_repeated_with_the_old_schema(self, table: TableBuilder, crash: str) -> None:
        append(table, "a")
        query = self.query(table, starting_version=0)
        query.run()
        append(table, "b")
        table.commit([table.metadata({"id": "long"})])
        query.trigger(crash)
        assert query.last() == position(3, METADATA_CHANGE_INDEX)
        assert self.columns(query) == ["id", "old"]
        assert query.paths() == ["a", "b"]
        query.allow = Allowed(drop="always")
        assert self.evolves(query) == 3
        query.run()
        assert query.paths() == ["a", "b"]
        assert query.last() == position(4)

    def test_the_schema_at_the_start_is_recorded_and_read_with(self, table: TableBuilder) -> None:
        append(table, "a")
        append(table, "b")
        append(table, "c")
        table.commit([table.metadata({"id": "long"})])
        append(table, "d")
        query = self.query(table, starting_version=2)
        assert self.evolves(query) == 1
        assert query.offsets == []
        assert self.columns(query) == ["id", "old"]
        assert self.evolves(query) == 4
        query.run()
        assert query.paths() == ["b", "c", "d"]

    def test_a_schema_that_came_back_is_gone_through_too(self, table: TableBuilder) -> None:
        schema = table.schema
        append(table, "a")
        table.commit([table.metadata({"id": "long"}), table.add("b")])
        table.commit([{"metaData": {**table.metadata()["metaData"], "schemaString": json.dumps(schema)}}])
        append(table, "c")
        query = self.query(table, starting_version=1)
        query.allow = Allowed(drop="always")
        assert self.evolves(query) == 2
        assert self.evolves(query) == 3
        query.run()
        assert query.paths() == ["a", "b", "c"]

    def test_a_change_within_two_commits_stops_twice(self, table: TableBuilder) -> None:
        query = self.query(table)
        query.run()
        table.commit([table.metadata({"id": "long", "old": "string", "x": "long"}), table.add("a")])
        table.commit([table.metadata({"id": "long", "old": "string", "x": "long", "y": "long"}), table.add("b")])
        assert self.evolves(query) == 1
        assert self.evolves(query) == 2
        query.run()
        assert query.paths() == ["a", "b"]

    def test_an_offset_before_the_recorded_schema_is_refused(self, table: TableBuilder) -> None:
        """A restored checkpoint: rows would be read with a schema that they were not written with."""
        append(table, "a")
        query = self.query(table)
        query.run()
        append(table, "b")
        table.commit([table.metadata({"id": "long"})])
        assert self.evolves(query) == 3
        query.allow = Allowed(drop="always")
        del query.offsets[1:]
        query.done = 1
        with pytest.raises(UserError) as error:
            query.trigger()
        assert error.value.code == "DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT"


# ---- the change feed


class TestChangeFeed:
    @pytest.fixture
    def table(self, tmp_path: Path) -> TableBuilder:
        table = TableBuilder(tmp_path / "t", {"id": "long", "p": "string"}, ["p"], properties=CDF)
        table.create()
        return table

    @staticmethod
    def query(table: TableBuilder, where: str | None = None, **options: Any) -> Query:
        return Query(table.path, StreamOptions(read_change_feed=True, **options), where=where)

    def test_the_snapshot_is_inserts_of_its_version(self, table: TableBuilder) -> None:
        table.append([{"id": 1, "p": "a"}])
        table.append([{"id": 2, "p": "b"}])
        query = self.query(table)
        query.run()
        rows = query.rows(offset(table, 2, initial=True), offset(table, 3))
        assert [(r["id"], r["p"], r["_change_type"], r["_commit_version"]) for r in rows] == [
            *sorted(
                [(1, "a", "insert", 2), (2, "b", "insert", 2)], key=lambda r: query.paths().index(path_of(table, r[0]))
            )
        ]
        assert {int(r["_commit_timestamp"].timestamp() * 1000) for r in rows} == {BASE_TIME_MS + 120_000}

    def test_a_predicate_on_change_columns_applies_to_the_snapshot(self, table: TableBuilder) -> None:
        table.append([{"id": 1, "p": "a"}, {"id": 2, "p": "b"}])
        for where, files in {
            "_change_type = 'delete'": 0,
            "_change_type = 'insert' AND p = 'a'": 1,
            "_commit_version = 1": 2,
            "_commit_version > 1 OR id = 2": 1,
        }.items():
            query = self.query(table, where)
            query.run()
            assert len(query.paths()) == files, where

    def test_changes_of_commits_come_with_their_version_and_time(self, table: TableBuilder) -> None:
        [add] = table.append([{"id": 1, "p": "a"}, {"id": 2, "p": "a"}])
        table.delete(add, [0])
        query = self.query(table, starting_version=0)
        query.run()
        rows = query.rows(offset(table, 0), offset(table, 3))
        found = [(r["id"], r["_change_type"], r["_commit_version"]) for r in rows]
        assert found == [(1, "insert", 1), (2, "insert", 1), (1, "delete", 2)]
        assert [int(r["_commit_timestamp"].timestamp() * 1000) - BASE_TIME_MS for r in rows] == [
            60_000,
            60_000,
            120_000,
        ]

    def test_the_partition_of_a_removed_file_is_found_in_the_version_before(self, table: TableBuilder) -> None:
        """Early writers' removes do not say it."""
        adds = table.append([{"id": 1, "p": "a"}, {"id": 2, "p": None}])
        early = [{"remove": {"path": a["add"]["path"], "deletionTimestamp": 1, "dataChange": True}} for a in adds]
        table.commit(early)
        query = self.query(table, starting_version=2)
        query.run()
        rows = query.rows(offset(table, 2), offset(table, 3))
        found = [(r["id"], r["p"], r["_change_type"]) for r in rows]
        assert sorted(found) == [(1, "a", "delete"), (2, None, "delete")]

    def test_a_commit_is_never_split_and_another_one_must_fit(self, table: TableBuilder) -> None:
        for names in ("abc", "d", "e", "fgh", "i"):
            append(table, *names, partitionValues={"p": "x"}, size=10)
        query = self.query(table, starting_version=0, max_files=2)
        query.run()
        assert query.sizes_of_batches() == [3, 2, 3, 1]
        query = self.query(table, starting_version=0, max_files=None, max_bytes=25)
        query.run()
        assert query.sizes_of_batches() == [3, 2, 3, 1]

    def test_an_offset_within_a_commit_is_refused(self, table: TableBuilder) -> None:
        append(table, "a", "b", partitionValues={"p": "x"})
        with pytest.raises(UserError, match="whole commits"):
            self.query(table).plan(offset(table, 1), offset(table, 1, 0))

    def test_a_table_without_change_data_is_refused(self, tmp_path: Path) -> None:
        table = TableBuilder(tmp_path / "u", {"id": "long"})
        table.create()
        append(table, "a")
        for options in ({}, {"starting_version": 1}, {"starting_version": 0}):
            with pytest.raises(DeltaError) as error:
                self.query(table, compute_changes="never", **options).run()
            assert error.value.code == "DELTA_MISSING_CHANGE_DATA"
            query = self.query(table, **options)
            query.run()
            assert query.paths() == ["a"]

    def test_a_start_before_change_data_was_recorded_is_refused(self, tmp_path: Path) -> None:
        table = TableBuilder(tmp_path / "u", {"id": "long"}, protocol=(1, 4))
        table.create()
        append(table, "a")
        table.commit([table.metadata(properties=CDF)])
        append(table, "b")
        with pytest.raises(DeltaError) as error:
            self.query(table, starting_version=1, compute_changes="never").run()
        assert error.value.code == "DELTA_MISSING_CHANGE_DATA"
        for first, paths in ((2, ["b"]), (1, ["a", "b"])):
            query = self.query(table, starting_version=first)
            query.run()
            assert query.paths() == paths

    def test_a_commit_that_stops_recording_is_refused(self, table: TableBuilder) -> None:
        query = self.query(table, compute_changes="never")
        query.run()
        table.commit([table.metadata(properties={})])
        with pytest.raises(DeltaError) as error:
            query.trigger()
        assert error.value.code == "DELTA_MISSING_CHANGE_DATA"

    def test_excluded_files_give_no_changes(self, table: TableBuilder) -> None:
        append(table, "a", "x", partitionValues={"p": "x"})
        append(table, "b", "y", partitionValues={"p": "x"})
        query = self.query(table, starting_version=0, exclude=re.compile("[xy]"))
        query.run()
        assert query.paths() == ["a", "b"]

    @pytest.mark.parametrize("excluded", ["old", "new", "a"])
    def test_a_row_is_compared_with_those_of_excluded_files(self, tmp_path: Path, excluded: str) -> None:
        """Without them, a row that only moved would look deleted, or inserted."""
        table = TableBuilder(tmp_path / "u", {"id": "long"})
        table.create()
        old = table.add("old")
        table.commit([old])
        table.commit([table.remove(old), table.add("new"), table.add("a")])
        query = self.query(table, starting_version=2, exclude=re.compile(excluded))
        with pytest.raises(UserError, match=f"excludes the file '{excluded}'") as error:
            query.run()
        assert error.value.code == "DELTA_MISSING_CHANGE_DATA"

    def test_in_commit_timestamps_are_the_times_of_changes(self, tmp_path: Path) -> None:
        properties = {**CDF, "delta.enableInCommitTimestamps": "true"}
        table = TableBuilder(tmp_path / "u", {"id": "long"}, properties=properties)
        table.create()
        table.append([{"id": 1}], commit={"in_commit_timestamp": BASE_TIME_MS + 77_000})
        for options, start in (({}, offset(table, 1, initial=True)), ({"starting_version": 1}, offset(table, 1))):
            query = self.query(table, **options)
            [row] = query.rows(start, offset(table, 2))
            assert int(row["_commit_timestamp"].timestamp() * 1000) == BASE_TIME_MS + 77_000


def path_of(table: TableBuilder, identifier: int) -> str:
    """The file of version ``identifier``, in these tests the one with the row of that id."""
    lines = [json.loads(line) for line in table.commit_file(identifier).read_text().splitlines()]
    return next(str(line["add"]["path"]) for line in lines if "add" in line)
