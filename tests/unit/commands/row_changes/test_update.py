"""Update by our own evaluator: rows, rules, files, what the log says, and what others see of it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from delta_pyds.commands.row_changes.commit_rows import local_runner
from delta_pyds.commands.row_changes.delete import run_delete
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.row_changes.result import Place, RowChangeResult
from delta_pyds.commands.row_changes.update import run_update
from delta_pyds.errors import (
    ColumnNotFoundError,
    ConflictError,
    ConstraintViolationError,
    DeltaError,
    ExpressionError,
    StorageError,
    UserError,
)
from delta_pyds.storage.local import LocalStorage
from delta_pyds.table.history import history
from delta_pyds.table.snapshot import load_snapshot
from tests.support.change_feed import applied, bag, change_rows
from tests.support.commits import check_metrics, last
from tests.support.data_files import files
from tests.support.planned_changes import planned_delete, planned_update
from tests.support.table_builder import TableBuilder
from tests.support.table_writes import read_rows, ten_files, write_rows
from tests.support.verification import clean

SCHEMA = {"id": "long", "v": "string", "p": "long"}
VECTORS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}
IDS = {"delta.enableRowTracking": "true"}
MAPPED = {"delta.columnMapping.mode": "name"}
PROPERTIES: dict[str, dict[str, str]] = {
    "rewritten": {},
    "marked": VECTORS,
    "all rewritten": FEED | IDS | MAPPED,
    "all marked": VECTORS | FEED | IDS | MAPPED,
}
BOTH = pytest.mark.parametrize("properties", [{}, VECTORS], ids=["rewritten", "marked"])
HERE = Place("process", "a test says so")
# a lost race is a conflict
ALONE = CommandOptions(row_level_concurrency=False)


def update(
    path: Path, condition: str | None, values: Mapping[str, str], *, threads: int = 1, **options: Any
) -> RowChangeResult:
    plan = planned_update(load_snapshot(str(path)), condition, values, CommandOptions(**options))
    return run_update(plan, HERE, local_runner(plan.change, threads))


def by_id(path: Path, **scan: Any) -> dict[int, dict[str, Any]]:
    return {row["id"]: row for row in read_rows(path, **scan)}


@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("properties", PROPERTIES.values(), ids=list(PROPERTIES))
def test_rows_for_which_it_is_true_get_the_values(
    tmp_path: Path, properties: Mapping[str, str], threads: int, partitioned: bool
) -> None:
    ten_files(tmp_path, SCHEMA, properties, partition_by=(("p",),) if partitioned else None)
    ids = "delta.enableRowTracking" in properties
    for round_, condition in enumerate(["id % 7 = 0 OR id BETWEEN 20 AND 29", "p = 1", "id % 5 = 0 AND p < 50"]):
        before = by_id(tmp_path, row_ids=ids)
        hit = {
            0: lambda r: r["id"] % 7 == 0 or 20 <= r["id"] <= 29,
            1: lambda r: r["p"] == 1,
            2: lambda r: r["id"] % 5 == 0 and r["p"] < 50,
        }[round_]
        result = update(tmp_path, condition, {"v": f"concat(v, '-{round_}')", "P": "p + 1"}, threads=threads)
        expected = {n: r | ({"v": f"{r['v']}-{round_}", "p": r["p"] + 1} if hit(r) else {}) for n, r in before.items()}
        changed = {n for n, r in before.items() if hit(r)}
        if ids:
            for n in changed:
                expected[n]["_row_commit_version"] = result.version
        assert by_id(tmp_path, row_ids=ids) == expected
        assert (result.num_updated_rows, result.num_deleted_rows) == (len(changed), 0)
        assert result.num_affected_rows == len(changed)
        clean(tmp_path)
    if "delta.enableChangeDataFeed" in properties:
        assert applied(read_rows(tmp_path, version=0), change_rows(tmp_path, 1)) == bag(read_rows(tmp_path))
        [first] = [c for c in change_rows(tmp_path, 1, 1) if c["id"] == 7 and c["_change_type"] == "update_preimage"]
        assert first["v"] == "v7"


@BOTH
def test_all_rows_change_without_a_condition(tmp_path: Path, properties: dict[str, str]) -> None:
    ten_files(tmp_path, SCHEMA, properties)
    assert update(tmp_path, None, {"v": "NULL"}).num_updated_rows == 100
    assert {r["v"] for r in read_rows(tmp_path)} == {None}
    assert last(tmp_path).operation_parameters == {"predicate": "[]"}
    # nothing stays in the old files, so that nothing is marked
    assert [f for f in files(tmp_path) if f.endswith(".bin")] == []


@BOTH
def test_values_see_the_old_row(tmp_path: Path, properties: dict[str, str]) -> None:
    write_rows(tmp_path, {"a": "long", "b": "long"}, [{"a": 1, "b": 2}, {"a": 5, "b": 6}], properties=properties)
    update(tmp_path, "a = 1", {"a": "b", "b": "a"})
    assert sorted((r["a"], r["b"]) for r in read_rows(tmp_path)) == [(2, 1), (5, 6)]


@BOTH
def test_a_value_is_computed_of_rows_that_change_alone(tmp_path: Path, properties: dict[str, str]) -> None:
    write_rows(tmp_path, {"a": "long", "b": "double"}, [{"a": n, "b": 0.0} for n in range(4)], properties=properties)
    update(tmp_path, "a > 0", {"b": "6 / a"})
    assert sorted((r["a"], r["b"]) for r in read_rows(tmp_path)) == [(0, 0.0), (1, 6.0), (2, 3.0), (3, 2.0)]
    with pytest.raises(ExpressionError, match="column 'b'"):
        update(tmp_path, None, {"b": "6 / a"})


@BOTH
def test_a_command_knows_one_moment(tmp_path: Path, properties: dict[str, str]) -> None:
    rows = [[{"id": n, "a": None, "b": None}] for n in range(3)]
    write_rows(tmp_path, {"id": "long", "a": "timestamp", "b": "timestamp"}, rows, properties=properties)
    values = {"a": "current_timestamp()", "b": "current_timestamp()"}
    update(tmp_path, "id < 2 AND current_timestamp() > DATE'2020-01-01'", values, threads=2)
    changed = [r for r in read_rows(tmp_path) if r["id"] < 2]
    assert len({r["a"] for r in changed} | {r["b"] for r in changed}) == 1


NESTED = {"id": "long", "s": {"type": "struct", "fields": [
    {"name": "x", "type": "long", "nullable": True, "metadata": {}}]},
    "l": {"type": "array", "elementType": "long", "containsNull": True}}  # fmt: skip


@BOTH
def test_columns_with_parts_go_through(tmp_path: Path, properties: dict[str, str]) -> None:
    rows = [{"id": n, "s": {"x": n} if n % 3 else None, "l": [n, None] if n % 2 else None} for n in range(20)]
    write_rows(tmp_path, NESTED, rows, properties=properties)
    update(tmp_path, "id IN (4, 5, 6)", {"s": "NULL", "id": "id + 100"})
    expected = [r | ({"id": r["id"] + 100, "s": None} if r["id"] in (4, 5, 6) else {}) for r in rows]
    assert sorted(read_rows(tmp_path), key=lambda r: r["id"]) == sorted(expected, key=lambda r: r["id"])


@BOTH
def test_numbers_are_stored_as_the_column_has_them_or_not_at_all(tmp_path: Path, properties: dict[str, str]) -> None:
    write_rows(tmp_path, {"id": "long", "n": "integer"}, [{"id": 1, "n": 1}, {"id": 2, "n": 2}], properties=properties)
    update(tmp_path, "id = 1", {"n": "id + 5"})
    assert by_id(tmp_path)[1]["n"] == 6
    with pytest.raises(DeltaError, match="'n'"):
        update(tmp_path, "id = 2", {"n": "id + 3000000000"})
    update(tmp_path, "id = 1", {"n": "'7'"})
    assert by_id(tmp_path)[1]["n"] == 7
    with pytest.raises(ExpressionError) as caught:
        update(tmp_path, "id = 2", {"n": "'seven'"})
    assert caught.value.code == "CAST_INVALID_INPUT"
    for text in ("DATE'2020-01-01'", "array(1)"):
        with pytest.raises(ExpressionError):
            update(tmp_path, "id = 2", {"n": text})
    # what is stored is cast by ANSI rules in any session
    with pytest.raises(DeltaError, match="'n'"):
        update(tmp_path, "id = 2", {"n": "id + 3000000000"}, ansi=False)
    assert by_id(tmp_path)[2]["n"] == 2
    update(tmp_path, "id = 2", {"n": "id + 7"}, ansi=False)
    assert by_id(tmp_path)[2]["n"] == 9


@BOTH
def test_the_rules_of_the_table_hold_for_changed_rows(tmp_path: Path, properties: dict[str, str]) -> None:
    builder = TableBuilder(
        tmp_path,
        {"id": "long", "v": "long"},
        properties=properties | {"delta.constraints.small": "v < 100"},
        features=(["deletionVectors"], ["deletionVectors", "checkConstraints"]),
    )
    builder.create()
    # a row that breaks the rule was there before
    builder.append([{"id": 1, "v": 1}, {"id": 2, "v": 500}])
    update(tmp_path, "id = 1", {"v": "99"})
    before = files(tmp_path)
    with pytest.raises(ConstraintViolationError, match="small"):
        update(tmp_path, "id = 1", {"v": "100"})
    assert files(tmp_path) == before
    assert {n: r["v"] for n, r in by_id(tmp_path).items()} == {1: 99, 2: 500}


def generated(path: Path, properties: Mapping[str, str]) -> None:
    fields = [
        {"name": "id", "type": "long", "nullable": True, "metadata": {}},
        {"name": "twice", "type": "long", "nullable": True, "metadata": {"delta.generationExpression": "id * 2"}},
        {"name": "v", "type": "string", "nullable": False, "metadata": {}},
    ]
    features = ["deletionVectors"] if properties else []
    builder = TableBuilder(
        path,
        {"type": "struct", "fields": fields},
        properties=properties,
        features=(features, [*features, "generatedColumns", "invariants"]),
    )
    builder.create()
    builder.append([{"id": n, "twice": 2 * n, "v": "x"} for n in range(5)])


@BOTH
def test_a_generated_column_follows_what_it_is_made_of(tmp_path: Path, properties: dict[str, str]) -> None:
    generated(tmp_path, properties)
    update(tmp_path, "id = 3", {"id": "id + 10"})
    update(tmp_path, "id = 2", {"v": "'y'"})
    update(tmp_path, "id = 4", {"id": "40", "twice": "80"})
    assert sorted((r["id"], r["twice"], r["v"]) for r in read_rows(tmp_path)) == [
        (0, 0, "x"), (1, 2, "x"), (2, 4, "y"), (13, 26, "x"), (40, 80, "x"),
    ]  # fmt: skip
    with pytest.raises(ConstraintViolationError, match="twice"):
        update(tmp_path, "id = 0", {"twice": "7"})
    with pytest.raises(ConstraintViolationError, match="NOT NULL"):
        update(tmp_path, "id = 0", {"v": "NULL"})


def test_identity_values_stay_and_cannot_be_updated(tmp_path: Path) -> None:
    identity = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": False}
    fields = [
        {"name": "n", "type": "long", "nullable": True, "metadata": identity},
        {"name": "v", "type": "long", "nullable": True, "metadata": {}},
    ]
    builder = TableBuilder(tmp_path, {"type": "struct", "fields": fields}, features=([], ["identityColumns"]))
    builder.create()
    builder.append([{"n": 1, "v": 1}, {"n": 2, "v": 2}])
    update(tmp_path, "v = 2", {"v": "20"})
    assert sorted((r["n"], r["v"]) for r in read_rows(tmp_path)) == [(1, 1), (2, 20)]
    with pytest.raises(UserError) as caught:
        update(tmp_path, None, {"n": "7"})
    assert caught.value.code == "DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED"


def test_columns_to_assign_to_are_found_or_refused(tmp_path: Path) -> None:
    write_rows(tmp_path, NESTED, [{"id": 1, "s": {"x": 1}, "l": None}])
    with pytest.raises(ColumnNotFoundError):
        update(tmp_path, None, {"nope": "1"})
    with pytest.raises(UserError, match=r"conflict from these SET columns: \[id, id\]"):
        update(tmp_path, None, {"id": "1", "ID": "2"})
    with pytest.raises(ExpressionError, match="left to Spark"):
        update(tmp_path, None, {"s.x": "1"})
    update(tmp_path, None, {"`id`": "5"})
    assert list(by_id(tmp_path)) == [5]


def test_nothing_found_is_no_version_and_no_file(tmp_path: Path) -> None:
    for n, properties in enumerate([{}, VECTORS]):
        path = tmp_path / str(n)
        ten_files(path, SCHEMA, properties)
        before = files(path)
        for condition in ("id > 1000", "id = 5 AND v = 'v6'", "false"):
            assert update(path, condition, {"v": "'x'"}).version is None
        assert files(path) == before
        assert load_snapshot(str(path)).version == 0


METRICS = {
    # as the reference has counted them of the same commands on the same rows, but for bytes and times
    "marked": (
        VECTORS,
        [
            ("id = 3", "1 1 0 1 0 0 0 1"),
            ("id IN (13, 14, 25)", "1 2 0 2 0 0 0 3"),
            ("id < 3", "1 1 0 1 1 1 0 3"),
            ("id < 10 AND v <> 'y'", "1 3 0 0 0 1 0 10"),
            (None, "1 4 0 0 0 0 0 30"),
        ],
    ),
    "rewritten": ({}, [("id = 3", "1 1 9 0 0 0 0 1"), (None, "1 3 0 0 0 0 0 30")]),
    "feed": (FEED, [("id = 3", "1 1 9 0 0 0 1 1"), (None, "1 3 0 0 0 0 1 30")]),
}


@pytest.mark.parametrize(("properties", "commands"), METRICS.values(), ids=list(METRICS))
def test_history_has_the_metrics_of_the_reference(
    tmp_path: Path, properties: dict[str, str], commands: list[tuple[str | None, str]]
) -> None:
    rows = [[{"id": n, "v": f"v{n}", "p": 0} for n in range(f * 10, f * 10 + 10)] for f in range(3)]
    write_rows(tmp_path, SCHEMA, rows, properties=properties)
    for condition, expected in commands:
        update(tmp_path, condition, {"v": "'x'"})
        check_metrics(tmp_path, "UPDATE", "numUpdatedRows", expected)


@pytest.mark.parametrize("feed", [False, True])
def test_vectors_that_a_table_has_no_more_use_for_still_hold(tmp_path: Path, feed: bool) -> None:
    builder = TableBuilder(
        tmp_path,
        {"id": "long", "v": "long"},
        properties=VECTORS,
        features=(["deletionVectors"], ["deletionVectors", "changeDataFeed"]),
    )
    builder.create()
    [first] = builder.append([{"id": n, "v": 0} for n in range(10)])
    builder.append([{"id": n, "v": 0} for n in range(10, 20)])
    builder.commit(builder.delete_rows(first, [0, 5]))
    builder.commit([builder.metadata(properties=FEED if feed else {})])
    update(tmp_path, "id IN (1, 12)", {"v": "1"})
    plan = planned_delete(load_snapshot(str(tmp_path)), "id IN (2, 13)", CommandOptions())
    assert run_delete(plan, HERE).num_deleted_rows == 2
    rows = {n: int(n in (1, 12)) for n in range(20) if n not in (0, 5, 2, 13)}
    assert {n: r["v"] for n, r in by_id(tmp_path).items()} == rows
    clean(tmp_path)


def test_an_append_only_table_keeps_its_rows(tmp_path: Path) -> None:
    ten_files(tmp_path, SCHEMA, {"delta.appendOnly": "true"})
    with pytest.raises(UserError) as caught:
        update(tmp_path, "id = 3", {"v": "'x'"})
    assert caught.value.code == "DELTA_CANNOT_MODIFY_APPEND_ONLY"


@pytest.mark.parametrize("properties", [{}, VECTORS, FEED], ids=["rewritten", "marked", "feed"])
def test_a_lost_race_leaves_no_file_behind(tmp_path: Path, properties: dict[str, str]) -> None:
    ten_files(tmp_path, SCHEMA, properties)
    plan = planned_update(load_snapshot(str(tmp_path)), "id % 10 = 3", {"v": "'x'"}, ALONE)
    update(tmp_path, "id = 5", {"v": "'y'"})
    before = files(tmp_path)
    with pytest.raises(ConflictError):
        run_update(plan, HERE)
    assert files(tmp_path) == before
    clean(tmp_path)


@pytest.mark.parametrize("properties", [FEED, VECTORS], ids=["rewritten", "marked"])
@pytest.mark.parametrize("fails", range(4))
def test_a_storage_that_fails_leaves_the_table_and_the_folder_as_they_were(
    tmp_path: Path, properties: dict[str, str], fails: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ten_files(tmp_path, SCHEMA, properties)
    before, rows = files(tmp_path), bag(read_rows(tmp_path))
    # Two threads open files: a number is drawn once, so exactly one of them meets the disk that is full.
    opened, calls = LocalStorage.open_output, itertools.count()

    def full(self: LocalStorage, path: str) -> Any:
        call = next(calls)
        stream = opened(self, path)
        if call == fails:
            stream.close()
            raise StorageError("the disk is full")
        return stream

    monkeypatch.setattr(LocalStorage, "open_output", full)
    if fails < 3 or properties == FEED:
        with pytest.raises(StorageError, match="full"):
            update(tmp_path, "id % 10 = 3", {"v": "'x'"}, threads=2)
        monkeypatch.undo()
        assert files(tmp_path) == before
        assert bag(read_rows(tmp_path)) == rows


def test_statistics_that_lie_are_noticed(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path, {"id": "long"})
    builder.create()
    builder.append([{"id": n} for n in range(10)], stats={"numRecords": 2})
    with pytest.raises(DeltaError) as caught:
        update(tmp_path, "id < 2", {"id": "5"})
    assert caught.value.code == "DELTA_NUM_RECORDS_MISMATCH"


def test_change_files_of_an_update_have_both_images(tmp_path: Path) -> None:
    for n, properties in enumerate([FEED, FEED | VECTORS]):
        path = tmp_path / str(n)
        ten_files(path, SCHEMA, properties)
        update(path, "id IN (3, 14)", {"v": "'x'"})
        told = [row for file in path.glob("_change_data/*.parquet") for row in pq.read_table(file).to_pylist()]
        assert sorted((r["id"], r["v"], r["_change_type"]) for r in told) == [
            (3, "v3", "update_preimage"),
            (3, "x", "update_postimage"),
            (14, "v14", "update_preimage"),
            (14, "x", "update_postimage"),
        ]


@BOTH
def test_the_log_says_that_rows_keep_their_ids(tmp_path: Path, properties: dict[str, str]) -> None:
    """The reference says it of its deletes, updates and merges; an engine that reads otherwise would forget the ids."""
    ten_files(tmp_path, SCHEMA, properties | IDS)
    update(tmp_path, "id = 3", {"v": "'new'"})
    change = planned_delete(load_snapshot(str(tmp_path)), "id = 4", CommandOptions())
    run_delete(change, HERE, local_runner(change.change, 1))
    latest = history(LocalStorage(), str(tmp_path), 2)
    tags = [record.commit_info.tags for record in latest if record.commit_info is not None]
    assert tags == [{"delta.rowTracking.preserved": "true"}] * 2


@BOTH
@pytest.mark.parametrize(
    ("column", "value"),
    [("n", "3000000000"), ("n", "id * 1e18D"), ("d", "12345.6BD"), ("d", "id * 1000"), ("n", "1e12BD")],
)
def test_a_value_that_does_not_fit_is_an_overflow_of_the_write(
    tmp_path: Path, properties: Mapping[str, str], column: str, value: str
) -> None:
    write_rows(tmp_path, {"id": "long", "n": "integer", "d": "decimal(5,2)"}, [{"id": 1}], properties=dict(properties))
    with pytest.raises(DeltaError) as caught:
        update(tmp_path, None, {column: value})
    assert (caught.value.code, caught.value.parameters["column"]) == ("DELTA_CAST_OVERFLOW_IN_TABLE_WRITE", column)
    with pytest.raises(DeltaError) as caught:
        update(tmp_path, None, {"n": "cast(id * 3000000000 AS int)"})
    assert caught.value.code == "CAST_OVERFLOW"  # a cast of the user's own
