"""Delete by our own evaluator: rows, files, what the log says, and what others see of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from delta_pyds.commands.row_changes.commit_rows import run_again
from delta_pyds.commands.row_changes.delete import plan_truncate, run_delete
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.row_changes.result import Place, RowChangeResult
from delta_pyds.errors import ConflictError, ExpressionError, StorageError, UserError
from delta_pyds.storage.local import LocalStorage
from delta_pyds.table.snapshot import load_snapshot
from tests.support.change_feed import applied, bag, change_rows
from tests.support.commits import check_metrics, last
from tests.support.data_files import files
from tests.support.planned_changes import delete, planned_delete
from tests.support.table_builder import TableBuilder
from tests.support.table_writes import read_rows, read_sorted, ten_files, write_rows
from tests.support.verification import clean

SCHEMA = {"id": "long", "v": "string", "p": "long"}
VECTORS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}
IDS = {"delta.enableRowTracking": "true"}
MAPPED = {"delta.columnMapping.mode": "name"}
PROPERTIES: dict[str, dict[str, str]] = {
    "plain": {},
    "vectors": VECTORS,
    "feed": FEED,
    "vectors and feed": VECTORS | FEED,
    "ids": IDS,
    "mapped": MAPPED | VECTORS,
    "all rewritten": FEED | IDS | MAPPED,
    "all marked": VECTORS | FEED | IDS | MAPPED,
}
HERE = Place("process", "a test says so")
# a lost race is a conflict
ALONE = CommandOptions(row_level_concurrency=False)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("properties", PROPERTIES.values(), ids=list(PROPERTIES))
def test_the_rows_for_which_it_is_true_leave(tmp_path: Path, properties: Mapping[str, str], threads: int) -> None:
    ten_files(tmp_path, SCHEMA, properties)
    ids = properties.get("delta.enableRowTracking")
    before = {r["id"]: r for r in read_rows(tmp_path, row_ids=bool(ids))}

    result = delete(tmp_path, "id % 7 = 0 OR id BETWEEN 20 AND 29", threads=threads)
    stay = [n for n in range(100) if n % 7 and not 20 <= n <= 29]
    assert {r["id"]: r for r in read_rows(tmp_path, row_ids=bool(ids))} == {n: before[n] for n in stay}
    assert result.num_affected_rows == result.num_deleted_rows == 100 - len(stay)
    clean(tmp_path)

    delete(tmp_path, "id % 5 = 0", threads=threads)
    stay = [n for n in stay if n % 5]
    assert {r["id"]: r for r in read_rows(tmp_path, row_ids=bool(ids))} == {n: before[n] for n in stay}
    clean(tmp_path)


@pytest.mark.parametrize("properties", [{}, VECTORS, FEED, IDS], ids=["plain", "vectors", "feed", "ids"])
@pytest.mark.parametrize("condition", [None, "true", "p = 1 OR p = 0"])
def test_whole_files_leave_unread(
    tmp_path: Path, properties: dict[str, str], condition: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    ten_files(tmp_path, SCHEMA, properties, partition_by=(("p",),))
    delete(tmp_path, "id = 4")
    opened: list[str] = []
    monkeypatch.setattr(LocalStorage, "parquet_source", lambda _self, path: opened.append(path))
    result = delete(tmp_path, condition)

    assert (result.num_deleted_rows, result.num_files_read, opened) == (99, 0, [])
    monkeypatch.undo()
    assert read_rows(tmp_path) == []
    assert last(tmp_path).operation_parameters == {"predicate": f'["{condition or "true"}"]'}
    clean(tmp_path)
    assert delete(tmp_path, condition).version is None


def test_a_partition_leaves_and_the_others_stay(tmp_path: Path) -> None:
    ten_files(tmp_path, SCHEMA, {}, partition_by=(("p",),))
    delete(tmp_path, "p = 1")
    assert read_sorted(tmp_path, "id") == list(range(0, 100, 2))


def test_rows_that_nobody_has_counted_are_not_told(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path, {"id": "long"})
    builder.create()
    builder.append([{"id": 1}], stats=False)
    result = delete(tmp_path, None)
    assert (result.num_affected_rows, result.num_deleted_rows) == (-1, -1)
    assert "numDeletedRows" not in (last(tmp_path).operation_metrics or {})


def test_nothing_found_is_no_version(tmp_path: Path) -> None:
    ten_files(tmp_path, SCHEMA, VECTORS)
    for condition in ("id > 1000", "id = 5 AND v = 'v6'", "false", "null"):
        result = delete(tmp_path, condition)
        assert (result.version, result.num_affected_rows) == (None, 0)
    assert load_snapshot(str(tmp_path)).version == 0


def test_only_files_that_may_hold_rows_are_read(tmp_path: Path) -> None:
    ten_files(tmp_path, SCHEMA, VECTORS)
    result = delete(tmp_path, "id = 55")
    assert (result.num_files_read, result.num_affected_rows) == (1, 1)


def test_an_expression_is_asked_for_live_rows_alone(tmp_path: Path) -> None:
    write_rows(tmp_path, {"id": "long", "d": "long"}, [{"id": n, "d": n % 4} for n in range(20)], properties=VECTORS)
    delete(tmp_path, "d = 0")
    # of a row that was deleted it would be a division by zero
    assert delete(tmp_path, "id / d > 5").num_affected_rows == 6
    assert read_sorted(tmp_path, "id") == [1, 2, 3, 5, 6, 7, 10, 11, 15]


METRICS = {
    # as the reference has counted them of the same commands on the same rows, but for bytes and times
    "vectors": (
        VECTORS,
        [
            ("id = 3", "0 0 0 1 0 0 0 1"),
            ("id < 5", "0 0 0 1 1 1 0 4"),
            ("id < 12 AND v >= 'v'", "0 1 0 1 0 1 0 7"),
            (None, "0 2 0 0 0 1 0 18"),
        ],
    ),
    "rewritten": (
        {},
        [
            ("id = 3", "1 1 9 0 0 0 0 1"),
            ("id < 5", "1 1 5 0 0 0 0 4"),
            ("id < 12 AND v >= 'v'", "1 2 8 0 0 0 0 7"),
            (None, "0 2 0 0 0 0 0 18"),
        ],
    ),
    "feed": (FEED, [("id = 3", "1 1 9 0 0 0 1 1"), ("id < 10", "0 1 0 0 0 0 0 9"), (None, "0 2 0 0 0 0 0 20")]),
}


@pytest.mark.parametrize(("properties", "commands"), METRICS.values(), ids=list(METRICS))
def test_history_has_the_metrics_of_the_reference(
    tmp_path: Path, properties: dict[str, str], commands: list[tuple[str | None, str]]
) -> None:
    rows = [[{"id": n, "v": f"v{n}", "p": 0} for n in range(f * 10, f * 10 + 10)] for f in range(3)]
    write_rows(tmp_path, SCHEMA, rows, properties=properties)
    for condition, expected in commands:
        delete(tmp_path, condition)
        check_metrics(tmp_path, "DELETE", "numDeletedRows", expected)


@pytest.mark.parametrize(
    ("properties", "kinds"), [(FEED, ["delete"]), (FEED | VECTORS, []), ({}, [])], ids=["rewritten", "marked", "off"]
)
def test_change_files_are_written_where_the_protocol_wants_them(
    tmp_path: Path, properties: dict[str, str], kinds: list[str]
) -> None:
    ten_files(tmp_path, SCHEMA, properties)
    delete(tmp_path, "id IN (3, 4) OR id BETWEEN 10 AND 19")
    written = [row for file in tmp_path.glob("_change_data/*.parquet") for row in pq.read_table(file).to_pylist()]
    assert sorted({row["_change_type"] for row in written}) == kinds
    assert len(written) == (12 if kinds else 0)
    if "delta.enableChangeDataFeed" in properties:
        before = read_rows(tmp_path, version=0)
        assert applied(before, change_rows(tmp_path, 1)) == bag(read_rows(tmp_path))


def test_an_append_only_table_keeps_its_rows(tmp_path: Path) -> None:
    ten_files(tmp_path, SCHEMA, {"delta.appendOnly": "true"})
    with pytest.raises(UserError) as caught:
        delete(tmp_path, "id = 3")
    assert caught.value.code == "DELTA_CANNOT_MODIFY_APPEND_ONLY"


def test_what_we_cannot_evaluate_exactly_is_refused(tmp_path: Path) -> None:
    ten_files(tmp_path, SCHEMA, {})
    for condition in ("rand() > 0.5", "id IN (SELECT 1)", "no_such_function(id)", "id"):
        with pytest.raises(ExpressionError):
            planned_delete(load_snapshot(str(tmp_path)), condition, CommandOptions())


@pytest.mark.parametrize("properties", [{}, VECTORS, FEED], ids=["plain", "vectors", "feed"])
def test_a_lost_race_leaves_no_file_behind_and_may_be_run_again(tmp_path: Path, properties: dict[str, str]) -> None:
    ten_files(tmp_path, SCHEMA, properties)
    racers = ["id < 5"]
    before: set[str] = set()

    def run() -> RowChangeResult:
        plan = planned_delete(load_snapshot(str(tmp_path)), "id % 10 = 3", ALONE)
        if racers:
            delete(tmp_path, racers.pop())
            before.update(files(tmp_path))
        return run_delete(plan, HERE)

    with pytest.raises(ConflictError):
        run()
    assert files(tmp_path) == before
    racers.append("id = 77")
    assert run_again(2, run).num_affected_rows == 9
    assert racers == []
    clean(tmp_path)


def test_rows_of_other_partitions_may_change_meanwhile(tmp_path: Path) -> None:
    ten_files(tmp_path, SCHEMA, {}, partition_by=(("p",),))
    plan = planned_delete(load_snapshot(str(tmp_path)), "p = 1 AND id < 50", ALONE)
    write_rows(tmp_path, SCHEMA, [{"id": 1000, "v": "w", "p": 0}])
    assert run_delete(plan, HERE).num_deleted_rows == 25
    plan = planned_delete(load_snapshot(str(tmp_path)), "p = 1 AND id < 60", ALONE)
    write_rows(tmp_path, SCHEMA, [{"id": 1001, "v": "w", "p": 1}])
    with pytest.raises(ConflictError):
        run_delete(plan, HERE)


@pytest.mark.parametrize("properties", [VECTORS, {}], ids=["vectors", "rewritten"])
def test_a_storage_that_fails_leaves_the_table_and_the_folder_as_they_were(
    tmp_path: Path, properties: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ten_files(tmp_path, SCHEMA, properties)
    before = files(tmp_path)
    suffix = ".bin" if properties else ".parquet"
    opened, calls = LocalStorage.open_output, []

    def full(self: LocalStorage, path: str) -> Any:
        stream = opened(self, path)
        calls.append(path)
        if len(calls) == 1 and path.endswith(suffix):
            stream.close()
            raise StorageError("the disk is full")
        return stream

    monkeypatch.setattr(LocalStorage, "open_output", full)
    with pytest.raises(StorageError, match="full"):
        delete(tmp_path, "id % 10 = 3", threads=2)
    monkeypatch.undo()
    assert calls
    assert files(tmp_path) == before
    assert read_sorted(tmp_path, "id") == list(range(100))


def test_statistics_that_lie_do_not_take_rows_away(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path, {"id": "long"}, properties=VECTORS)
    builder.create()
    builder.append([{"id": n} for n in range(10)], stats={"numRecords": 2})
    delete(tmp_path, "id < 2")
    assert read_sorted(tmp_path, "id") == list(range(2, 10))


def test_truncate_is_called_so_in_the_history(tmp_path: Path) -> None:
    """It removes files, and counts no rows, as the reference."""
    write_rows(tmp_path, {"id": "long"}, [{"id": 1}, {"id": 2}])
    for committed in (True, False):
        result = run_delete(plan_truncate(load_snapshot(str(tmp_path)), CommandOptions()), HERE)
        assert (result.version is not None) is committed
    said = last(tmp_path)
    assert (said.operation, said.operation_parameters) == ("TRUNCATE", {})
    assert set(said.operation_metrics or {}) == {"numRemovedFiles", "executionTimeMs"}
    assert read_rows(tmp_path) == []
