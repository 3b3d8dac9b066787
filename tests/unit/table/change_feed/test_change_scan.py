"""The change feed of a range of versions, from options to rows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from delta_pyds.errors import (
    DeltaError,
    MissingLogFilesError,
    ProtocolError,
    TimeTravelError,
    UnsupportedFeatureError,
    UserError,
)
from delta_pyds.table.change_feed.change_scan import ChangeRange, change_range, plan_changes
from delta_pyds.table.scan.packing import Packing, pack
from delta_pyds.table.snapshot import load_snapshot
from tests.support.change_feed import ENABLED, applied, bag, cdc_file, change_rows, plan, rows_of
from tests.support.table_builder import BASE_TIME_MS, TableBuilder
from tests.support.table_writes import ids

EARLY, LATE = "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION", "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"
MAPPED = {**ENABLED, "delta.columnMapping.mode": "name"}
Do = Callable[[TableBuilder], object]


def table(path: Path, schema: Any = None, partition_columns: Any = (), **properties: str) -> TableBuilder:
    builder = TableBuilder(path, schema or {"id": "long"}, partition_columns, {**ENABLED, **properties})
    builder.create()
    return builder


def code_of(do: Callable[[], object]) -> str:
    with pytest.raises(DeltaError) as caught:
        do()
    return caught.value.code


def seen(path: Path, first: int = 0, last: int | None = None, **choice: Any) -> list[tuple[Any, ...]]:
    rows = change_rows(path, first, last, **choice)
    return sorted((r["_commit_version"], r["_change_type"], r["id"]) for r in rows)


# --- which versions


def ranged(path: Path, **ends: int | None) -> tuple[int, int] | str:
    try:
        found = change_range(load_snapshot(str(path)), **ends)
    except DeltaError as error:
        return error.code
    return found.first, found.last


@pytest.fixture
def five(tmp_path: Path) -> Path:
    """Versions 0 to 4, at 1000, 2000 ... 5000 ms."""
    builder = TableBuilder(tmp_path, {"id": "long"}, properties=ENABLED)
    builder.create(timestamp_ms=1000)
    for time in (2000, 3000, 4000, 5000):
        builder.commit(timestamp_ms=time)
    return tmp_path


def test_a_range_by_versions(five: Path) -> None:
    assert ranged(five, starting_version=1) == (1, 4)
    assert ranged(five, starting_version=1, ending_version=3) == (1, 3)
    assert ranged(five, starting_version=4, ending_version=4) == (4, 4)
    assert ranged(five, starting_version=2, ending_version=99) == (2, 4)


def test_a_range_by_times_lies_within_them(five: Path) -> None:
    starts = [ranged(five, starting_timestamp_ms=time) for time in (0, 1000, 1001, 2000, 4001, 5000, 5001)]
    assert starts == [(0, 4), (0, 4), (1, 4), (1, 4), (4, 4), (4, 4), LATE]
    ends = [ranged(five, starting_version=0, ending_timestamp_ms=time) for time in (999, 1000, 1999, 2000, 5000, 9000)]
    assert ends == [EARLY, (0, 0), (0, 0), (0, 1), (0, 4), (0, 4)]


def test_no_commit_between_two_times_is_no_range(five: Path) -> None:
    assert ranged(five, starting_timestamp_ms=2001, ending_timestamp_ms=2999) == "DELTA_INVALID_CDC_RANGE"


def test_a_version_wins_over_a_time(five: Path) -> None:
    assert ranged(five, starting_version=3, starting_timestamp_ms=99_000) == (3, 4)
    assert ranged(five, starting_version=0, ending_version=2, ending_timestamp_ms=0) == (0, 2)


@pytest.mark.parametrize(
    ("ends", "code"),
    [
        ({}, "DELTA_NO_START_FOR_CDC_READ"),
        ({"ending_version": 3}, "DELTA_NO_START_FOR_CDC_READ"),
        ({"starting_version": 5}, "DELTA_CDC_START_VERSION_AFTER_LATEST"),
        ({"starting_version": 5, "ending_version": 4}, "DELTA_CDC_START_VERSION_AFTER_LATEST"),
        ({"starting_version": 3, "ending_version": 2}, "DELTA_INVALID_CDC_RANGE"),
        ({"starting_version": 1, "ending_timestamp_ms": 1500}, "DELTA_INVALID_CDC_RANGE"),
        ({"starting_version": -1}, "DELTA_VERSION_NOT_FOUND"),
    ],
)
def test_ranges_that_are_none(five: Path, ends: dict[str, int], code: str) -> None:
    assert ranged(five, **ends) == code


def test_a_start_that_was_cleaned_up_is_refused_with_what_is_there(tmp_path: Path) -> None:
    builder = table(tmp_path)
    for value in range(5):
        builder.append(ids(value))
    builder.checkpoint(3)
    builder.cleanup_log(before=3)
    with pytest.raises(UserError, match="versions 3 to 5") as caught:
        change_range(load_snapshot(str(tmp_path)), starting_version=2)
    assert caught.value.code == "DELTA_VERSION_NOT_FOUND"
    assert seen(tmp_path, 3) == [(3, "insert", 2), (4, "insert", 3), (5, "insert", 4)]
    assert ranged(tmp_path, starting_timestamp_ms=0) == (3, 5)


def test_a_start_whose_previous_version_was_cleaned_up(tmp_path: Path) -> None:
    """Net changes need it after a compaction: only it shows which files were there."""
    builder = table(tmp_path)
    adds = [add for value in range(4) for add in builder.append(ids(value))]
    builder.checkpoint(3)
    removes = [builder.remove(add, dataChange=False) for add in adds[:2]]
    builder.commit([*removes, builder.add("compacted", dataChange=False)])
    builder.cleanup_log(before=3)
    latest = load_snapshot(str(tmp_path))
    versions = change_range(latest, starting_version=3)
    assert len(list(plan_changes(latest, versions).files())) == 2
    with pytest.raises(TimeTravelError, match=r"net changes .* from version 3 on need version 2 too"):
        list(plan_changes(latest, versions, net=True).files())


def test_times_of_two_clocks(tmp_path: Path) -> None:
    features = ([], ["changeDataFeed", "inCommitTimestamp"])
    builder = TableBuilder(tmp_path, {"id": "long"}, properties=ENABLED, features=features)
    builder.create(timestamp_ms=1000)
    builder.commit(timestamp_ms=2000)
    own = {
        **ENABLED,
        "delta.enableInCommitTimestamps": "true",
        "delta.inCommitTimestampEnablementVersion": "2",
        "delta.inCommitTimestampEnablementTimestamp": "5000",
    }
    builder.commit([builder.metadata(properties=own)], timestamp_ms=100_000, in_commit_timestamp=5000)
    builder.commit(timestamp_ms=200_000, in_commit_timestamp=6000)
    starts = [ranged(tmp_path, starting_timestamp_ms=t) for t in (500, 1500, 2000, 2001, 4999, 5000, 5001, 6000, 6001)]
    assert starts == [(0, 3), (1, 3), (1, 3), (2, 3), (2, 3), (2, 3), (3, 3), (3, 3), LATE]
    ends = [ranged(tmp_path, starting_version=0, ending_timestamp_ms=t) for t in (2000, 4999, 5000, 100_000)]
    assert ends == [(0, 1), (0, 1), (0, 2), (0, 3)]


# --- which rows


def test_inserts_deletes_and_updates(tmp_path: Path) -> None:
    builder = table(tmp_path, {"id": "long", "v": "string"})
    [first] = builder.append([{"id": i, "v": f"v{i}"} for i in range(4)])
    builder.commit(gone := builder.delete_rows(first, [1]))
    builder.commit(builder.delete_rows(gone[1], [3]))
    pre, post = {"id": 2, "v": "v2"}, {"id": 2, "v": "new"}
    changed = cdc_file(
        builder, [{**pre, "_change_type": "update_preimage"}, {**post, "_change_type": "update_postimage"}]
    )
    live = builder.active()[0]
    builder.commit([builder.remove(live), builder.write_file([{"id": 0, "v": "v0"}, post]), changed])
    rows = change_rows(tmp_path)
    assert sorted((r["_commit_version"], r["_change_type"], r["id"], r["v"]) for r in rows) == [
        (1, "insert", 0, "v0"),
        (1, "insert", 1, "v1"),
        (1, "insert", 2, "v2"),
        (1, "insert", 3, "v3"),
        (2, "delete", 1, "v1"),
        (3, "delete", 3, "v3"),
        (4, "update_postimage", 2, "new"),
        (4, "update_preimage", 2, "v2"),
    ]
    times = {r["_commit_version"]: r["_commit_timestamp"] for r in rows}
    assert times[2] == dt.datetime.fromtimestamp((BASE_TIME_MS + 120_000) / 1000, dt.timezone.utc)
    assert applied([], rows) == bag(builder.expected_rows())


def test_only_the_range_is_read(tmp_path: Path) -> None:
    builder = table(tmp_path)
    for value in range(4):
        builder.append(ids(value))
    builder.commit_file(0).write_text(builder.commit_file(0).read_text() + "\n")
    assert seen(tmp_path, 2, 3) == [(2, "insert", 1), (3, "insert", 2)]


def test_vectors_that_shrink_bring_rows_back(tmp_path: Path) -> None:
    builder = table(tmp_path)
    [whole] = builder.append(ids(0, 1, 2, 3))
    _, some = builder.delete_rows(whole, [0])
    _, more = builder.delete_rows(some, [1, 2], storage="i")
    builder.commit([builder.remove(whole), more])
    builder.commit([builder.remove(more), some])
    builder.commit([builder.remove(some), whole])
    assert seen(tmp_path, 2) == [
        (2, "delete", 0),
        (2, "delete", 1),
        (2, "delete", 2),
        (3, "insert", 1),
        (3, "insert", 2),
        (4, "insert", 0),
    ]


def test_partition_values_come_with_every_kind_of_change(tmp_path: Path) -> None:
    builder = table(tmp_path, {"id": "long", "p": "date"}, ["p"])
    day, none = dt.date(2024, 2, 29), None
    adds = builder.append([{"id": 1, "p": day}, {"id": 2, "p": day}, {"id": 3, "p": none}])
    builder.commit([*builder.delete_rows(adds[0], [1]), builder.remove(adds[1])])
    builder.commit([cdc_file(builder, [{"id": 9, "_change_type": "insert"}], partition_values={"p": day})])
    rows = change_rows(tmp_path, 2)
    assert sorted((r["id"], r["p"], r["_change_type"]) for r in rows) == [
        (2, day, "delete"),
        (3, none, "delete"),
        (9, day, "insert"),
    ]


def where_table(path: Path) -> TableBuilder:
    builder = table(path, {"id": "long", "p": "string"}, ["p"])
    adds = builder.append([{"id": i, "p": "ab"[i % 2]} for i in range(6)])
    builder.commit([*builder.delete_rows(adds[0], [0, 1]), builder.remove(adds[1])])
    changed = [{"id": 4, "_change_type": "update_preimage"}, {"id": 5, "_change_type": "update_postimage"}]
    builder.commit([cdc_file(builder, changed, partition_values={"p": "a"})])
    return builder


@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        ("_change_type = 'delete'", lambda r: r["_change_type"] == "delete"),
        ("_change_type LIKE 'update%'", lambda r: r["_change_type"].startswith("update")),
        ("_change_type = 'update_postimage' AND id = 5", lambda r: r["_change_type"] == "update_postimage"),
        ("_change_type IN ('insert', 'delete') AND id > 3", lambda r: r["_change_type"][0] in "id" and r["id"] > 3),
        ("_change_type <> 'insert' OR p = 'b'", lambda r: r["_change_type"] != "insert" or r["p"] == "b"),
        ("_change_type IS NULL", lambda r: r["_change_type"] is None),
        ("id < 2", lambda r: r["id"] < 2),
        ("p = 'b'", lambda r: r["p"] == "b"),
        ("_commit_version = 2", lambda r: r["_commit_version"] == 2),
        ("_commit_version BETWEEN 2 AND 3 AND id <= 4", lambda r: r["_commit_version"] >= 2 and r["id"] <= 4),
        ("_commit_timestamp > timestamp '2023-11-14 22:16:00'", lambda r: r["_commit_version"] == 3),
    ],
)
def test_where_applies_to_every_column_of_the_feed(
    tmp_path: Path, where: str, wanted: Callable[[dict[str, Any]], bool]
) -> None:
    where_table(tmp_path)
    every = change_rows(tmp_path)
    assert len(every) == 13
    assert bag(change_rows(tmp_path, where=where)) == bag(r for r in every if wanted(r))


def test_columns_choose_among_those_of_the_feed(tmp_path: Path) -> None:
    where_table(tmp_path)
    rows = change_rows(tmp_path, 3, columns="_commit_version, id", where="_change_type = 'update_preimage'")
    assert rows == [{"_commit_version": 3, "id": 4}]
    rows = change_rows(tmp_path, 3, columns="_CHANGE_TYPE")
    assert sorted(r["_change_type"] for r in rows) == ["update_postimage", "update_preimage"]


def test_tight_bounds_of_a_file_do_not_hide_its_deleted_rows(tmp_path: Path) -> None:
    builder = table(tmp_path)
    [whole] = builder.append(ids(1, 2, 3))
    gone, left = builder.delete_rows(whole, [0])
    left["add"]["stats"] = '{"numRecords":3,"minValues":{"id":2},"maxValues":{"id":3},"nullCount":{"id":0}}'
    builder.commit([gone, left])
    assert seen(tmp_path, 2, where="id = 1") == [(2, "delete", 1)]


def test_a_data_file_that_is_a_change_file_too_is_read_as_one(tmp_path: Path) -> None:
    builder = table(tmp_path)
    file = builder.write_file(ids(7), extra_columns={"_change_type": ["insert"]})
    same = {"cdc": {k: file["add"][k] for k in ("path", "partitionValues", "size")} | {"dataChange": False}}
    builder.commit([file, same])
    builder.commit([builder.remove(file)])
    assert seen(tmp_path) == [(1, "insert", 7), (2, "delete", 7)]


def test_batches_of_all_commits_are_packed_together(tmp_path: Path) -> None:
    where_table(tmp_path)
    partitions = pack(plan(tmp_path).batches(), Packing(min_partitions=2))
    assert sum(batch.num_rows for batch in partitions) == 5


def test_files_of_many_commits_are_chosen_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    builder = table(tmp_path)
    for i in range(5):
        builder.append(ids(i))
    assert [batch.num_rows for batch in plan(tmp_path).batches()] == [5]
    assert [batch.num_rows for batch in plan(tmp_path, where="id in (1, 4)").batches()] == [2]
    monkeypatch.setattr("delta_pyds.table.change_feed.change_scan._FILES_AT_ONCE", 2)
    assert [batch.num_rows for batch in plan(tmp_path).batches()] == [2, 2, 1]
    assert seen(tmp_path) == [(i + 1, "insert", i) for i in range(5)]


# --- early writers


def early_remove(add: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"remove": {"path": add["add"]["path"], "deletionTimestamp": 1, "dataChange": True, **fields}}


@pytest.mark.parametrize("fields", [{}, {"extendedFileMetadata": False, "partitionValues": {}}])
@pytest.mark.parametrize("checkpoint", [False, True])
def test_the_partition_of_a_removed_file_is_found_in_the_version_before(
    tmp_path: Path, fields: dict[str, Any], checkpoint: bool
) -> None:
    builder = table(tmp_path, {"id": "long", "p": "string"}, ["p"])
    adds = builder.append([{"id": 1, "p": "a"}, {"id": 2, "p": None}, {"id": 3, "p": "c"}])
    if checkpoint:
        builder.checkpoint()
    builder.commit([early_remove(adds[0], **fields), early_remove(adds[1], **fields)])
    rows = change_rows(tmp_path, 2)
    assert sorted((r["id"], r["p"], r["_change_type"]) for r in rows) == [(1, "a", "delete"), (2, None, "delete")]
    assert seen(tmp_path, 2, where="p = 'a'") == [(2, "delete", 1)]


@pytest.mark.parametrize(("fields", "said"), [({}, None), ({"size": None}, None), ({"size": 7}, 7), ({"size": 0}, 0)])
def test_the_size_of_a_removed_file_is_its_own_or_that_of_the_version_before(
    tmp_path: Path, fields: dict[str, Any], said: int | None
) -> None:
    builder = table(tmp_path, {"id": "long", "p": "string"}, ["p"])
    [add] = builder.append([{"id": 1, "p": "a"}])
    builder.commit([early_remove(add, **fields)])
    [file] = plan(tmp_path, 2).files()
    assert file.size_bytes == (add["add"]["size"] if said is None else said)


def test_a_removed_file_whose_partition_nobody_knows_is_refused(tmp_path: Path) -> None:
    builder = table(tmp_path, {"id": "long", "p": "string"}, ["p"])
    builder.append([{"id": 1, "p": "a"}])
    builder.commit([{"remove": {"path": "p=x/unknown.parquet", "dataChange": True}}])
    with pytest.raises(ProtocolError, match=r"version 2.*unknown\.parquet"):
        change_rows(tmp_path, 2)


def test_a_removed_file_whose_version_before_is_gone_is_refused(tmp_path: Path) -> None:
    builder = table(tmp_path, {"id": "long", "p": "string"}, ["p"])
    [one] = builder.append([{"id": 1, "p": "a"}])
    builder.commit([early_remove(one)])
    builder.checkpoint(2)
    builder.cleanup_log(before=2)
    builder.commit_file(2).touch()
    with pytest.raises(ProtocolError, match="version 3 on"):
        change_rows(tmp_path, 2)


# --- where the feed is off


def test_a_table_without_a_change_feed_is_refused(tmp_path: Path) -> None:
    TableBuilder(tmp_path, {"id": "long"}).create()
    with pytest.raises(UserError, match=r"version 0.*delta\.enableChangeDataFeed=true") as caught:
        plan(tmp_path, compute="never")
    assert caught.value.code == "DELTA_MISSING_CHANGE_DATA"


def test_versions_before_the_feed_was_on_are_refused(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path, {"id": "long"}, protocol=(1, 4))
    builder.create()
    builder.append(ids(1))
    builder.commit([builder.metadata(properties=ENABLED)])
    builder.append(ids(2))
    assert code_of(lambda: plan(tmp_path, 1, compute="never")) == "DELTA_MISSING_CHANGE_DATA"
    assert seen(tmp_path, 2) == [(3, "insert", 2)]
    assert seen(tmp_path, 1) == [(1, "insert", 1), (3, "insert", 2)]


def test_the_first_version_without_the_feed_is_named(tmp_path: Path) -> None:
    builder = table(tmp_path)
    builder.append(ids(1))
    builder.commit([builder.metadata(properties={})])
    builder.append(ids(2))
    builder.commit([builder.metadata(properties=ENABLED)])
    with pytest.raises(UserError, match="version 2") as caught:
        change_rows(tmp_path, 0, compute="never")
    assert (caught.value.code, caught.value.parameters["version"]) == ("DELTA_MISSING_CHANGE_DATA", 2)
    assert seen(tmp_path, 0, 1) == [(1, "insert", 1)]
    assert seen(tmp_path, 4) == []


# --- what changed of the table in between


def test_columns_that_were_added_are_null_before(tmp_path: Path) -> None:
    builder = table(tmp_path)
    builder.append(ids(1))
    builder.commit([builder.metadata({"id": "long", "v": "string"})])
    builder.append([{"id": 2, "v": "x"}])
    assert [(r["id"], r["v"]) for r in change_rows(tmp_path)] == [(1, None), (2, "x")]
    assert [(r["id"], r["v"]) for r in change_rows(tmp_path, 0, 1)] == [(1, None)]


def test_a_column_mapped_table_is_read_with_the_columns_of_the_ranges_end(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path, {"id": "long"}, properties=MAPPED)
    builder.create()
    builder.append(ids(1))
    builder.commit([builder.metadata({"id": "long", "v": "string"})])
    assert plan(tmp_path, 0, 1).state.output.names[0:2] == ("id", "_change_type")
    assert plan(tmp_path, 0, 2).state.output.names[0:2] == ("id", "v")
    assert change_rows(tmp_path)[0]["v"] is None


def renamed(builder: TableBuilder) -> None:
    schema = builder.schema
    schema["fields"][0]["name"] = "number"
    builder.commit([builder.metadata(schema)])


def test_versions_before_and_after_a_rename_are_read_apart(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path, {"id": "long"}, properties=MAPPED)
    builder.create()
    builder.append(ids(1))
    renamed(builder)
    builder.append([{"number": 2}])
    with pytest.raises(UserError, match=r"renamed to 'number'.*separately") as caught:
        plan(tmp_path)
    assert caught.value.code == "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA"
    assert [r["id"] for r in change_rows(tmp_path, 0, 1)] == [1]
    assert [r["number"] for r in change_rows(tmp_path, 2)] == [2]


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.commit([t.metadata({"id": "long"})]),
        lambda t: t.commit([t.metadata({"id": "string", "v": "string"})]),
        lambda t: t.commit([t.metadata({"id": "integer", "v": "string"})]),
        lambda t: t.commit([t.metadata(partition_columns=["v"])]),
    ],
)
def test_a_schema_that_the_columns_cannot_hold_is_refused(tmp_path: Path, change: Do) -> None:
    builder = table(tmp_path, {"id": "long", "v": "string"})
    builder.append([{"id": 1, "v": "x"}])
    change(builder)
    assert code_of(lambda: plan(tmp_path)) == "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA"
    assert code_of(lambda: plan(tmp_path, 0, 1)) == "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA"
    assert seen(tmp_path, 2) == []


def test_a_schema_that_was_there_for_a_while_is_refused(tmp_path: Path) -> None:
    builder = table(tmp_path)
    builder.append(ids(1))
    builder.commit([builder.metadata({"id": "long", "v": "string"})])
    builder.append([{"id": 2, "v": "lost"}])
    builder.commit([builder.metadata({"id": "long"})])
    with pytest.raises(UserError, match=r"version 2.*'v' was dropped") as caught:
        change_rows(tmp_path)
    assert caught.value.code == "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE"


def test_rows_that_leave_with_the_commit_that_changes_their_columns_are_shown_in_the_new_ones(tmp_path: Path) -> None:
    """As the reference shows them, where the range begins there; what the columns were called says nothing."""
    builder = table(tmp_path, {"id": "long", "v": "string"}, **MAPPED)
    [old] = builder.append([{"id": 1, "v": "gone"}])
    schema = builder.schema
    schema["fields"] = [{**schema["fields"][0], "name": "number"}]
    builder.commit([builder.metadata(schema), builder.remove(old)])
    [row] = change_rows(tmp_path, 2)
    assert (row["number"], row["_change_type"]) == (1, "delete") and "v" not in row
    assert code_of(lambda: change_rows(tmp_path)) == "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA"


@pytest.mark.parametrize(
    ("schema", "partitions"), [({"id": "string"}, []), ({"id": "integer"}, []), ({"id": "long", "v": "string"}, ["v"])]
)
def test_rows_that_left_and_that_the_new_columns_cannot_hold_are_refused(
    tmp_path: Path, schema: dict[str, str], partitions: list[str]
) -> None:
    """The reference shows nulls, or fails."""
    builder = table(tmp_path, {"id": "long", "v": "string"})
    [old] = builder.append([{"id": 1, "v": "x"}])
    builder.commit([builder.metadata(schema, partition_columns=partitions), builder.remove(old)])
    assert code_of(lambda: change_rows(tmp_path, 2)) == "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA"


def test_a_type_that_was_widened_holds_the_older_rows(tmp_path: Path) -> None:
    builder = table(tmp_path, {"id": "integer"}, **{"delta.enableTypeWidening": "true"})
    [old] = builder.append(ids(1))
    changes = [{"fromType": "integer", "toType": "long"}]
    field = {"name": "id", "type": "long", "nullable": True, "metadata": {"delta.typeChanges": changes}}
    builder.commit([builder.metadata({"type": "struct", "fields": [field]})])
    builder.append(ids(1 << 40))
    builder.commit([builder.remove(old)])
    assert seen(tmp_path) == [(1, "insert", 1), (3, "insert", 1 << 40), (4, "delete", 1)]


def test_another_table_in_the_range_is_refused(tmp_path: Path) -> None:
    builder = table(tmp_path)
    builder.append(ids(1))
    builder.commit([builder.metadata(id="another")])
    builder.append(ids(2))
    assert code_of(lambda: plan(tmp_path)) == "DELTA_TABLE_ID_MISMATCH"
    assert seen(tmp_path, 2) == [(3, "insert", 2)]


def test_a_protocol_in_between_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    builder = table(tmp_path)
    latest = load_snapshot(str(tmp_path))
    builder.append(ids(1))
    unknown = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["later"], "writerFeatures": ["later"]}
    builder.commit([{"protocol": unknown}])
    builder.commit([{"protocol": latest_protocol(latest.protocol)}])
    builder.append(ids(2))
    with pytest.raises(UnsupportedFeatureError, match=r"version 2\b.*later"):
        change_rows(tmp_path)
    assert seen(tmp_path, 3) == [(4, "insert", 2)]


def latest_protocol(protocol: Any) -> dict[str, Any]:
    return {"minReaderVersion": protocol.min_reader_version, "minWriterVersion": protocol.min_writer_version}


# --- what goes missing


def test_a_commit_that_is_missing_in_the_range_is_refused(tmp_path: Path) -> None:
    builder = table(tmp_path)
    for value in range(5):
        builder.append(ids(value))
    builder.checkpoint(4)
    builder.commit_file(2).unlink()
    with pytest.raises(MissingLogFilesError, match="version 2") as caught:
        change_rows(tmp_path, 1)
    assert caught.value.parameters["missing_version"] == 2
    assert seen(tmp_path, 4) == [(4, "insert", 3), (5, "insert", 4)]


def test_a_log_cleaned_up_after_planning_is_refused(tmp_path: Path) -> None:
    builder = table(tmp_path)
    for value in range(3):
        builder.append(ids(value))
    scan = plan(tmp_path, 1)
    builder.checkpoint()
    builder.cleanup_log(before=3)
    with pytest.raises(MissingLogFilesError, match="version 1"):
        list(scan.batches())


def test_commits_after_planning_do_not_join(tmp_path: Path) -> None:
    builder = table(tmp_path)
    builder.append(ids(1))
    scan = plan(tmp_path)
    builder.append(ids(2))
    assert [r["id"] for r in rows_of(scan)] == [1]


def test_a_range_is_what_it_was_given(tmp_path: Path) -> None:
    table(tmp_path).append(ids(1))
    latest = load_snapshot(str(tmp_path))
    scan = plan_changes(latest, ChangeRange(1, 1), time_zone="Asia/Tokyo")
    assert (scan.range, scan.state.time_zone, scan.selection.uses_time_zone) == (ChangeRange(1, 1), "Asia/Tokyo", False)


# --- what deltalake reads


def peers(path: Path, first: int, last: int | None = None) -> list[dict[str, Any]]:
    reader = DeltaTable(str(path)).load_cdf(starting_version=first, ending_version=last)
    rows: list[dict[str, Any]] = pa.table(reader.read_all()).to_pylist()
    return rows


def compare(path: Path, first: int, last: int | None = None) -> None:
    ours, theirs = change_rows(path, first, last), peers(path, first, last)
    assert ours
    names = ["id", "p", "_change_type", "_commit_version"]
    assert bag(ours, names) == bag(theirs, names)
    # theirs are those of the commit infos, taken just before the file was written
    times = {row["_commit_version"]: row["_commit_timestamp"].replace(tzinfo=dt.timezone.utc) for row in theirs}
    for row in ours:
        assert abs(row["_commit_timestamp"] - times[row["_commit_version"]]) < dt.timedelta(seconds=10)


@pytest.mark.parametrize("partition_by", [None, ["p"]])
def test_tables_that_deltalake_wrote(tmp_path: Path, partition_by: list[str] | None) -> None:
    path = tmp_path / "t"
    rows = pa.table({"id": pa.array(range(20), pa.int64()), "p": ["a", "b", None, "c"] * 5})
    write_deltalake(path, rows, partition_by=partition_by, configuration=ENABLED)
    DeltaTable(str(path)).update(updates={"id": "id + 100"}, predicate="id < 3")
    DeltaTable(str(path)).delete("id >= 15 and id < 18")
    write_deltalake(path, rows.slice(0, 4), mode="append")
    source = pa.table({"id": pa.array([4, 5, 500], pa.int64()), "p": ["a", "z", "new"]})
    (
        DeltaTable(str(path))
        .merge(source, predicate="t.id = s.id", source_alias="s", target_alias="t")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute()
    )
    DeltaTable(str(path)).optimize.compact()
    write_deltalake(path, rows.slice(3, 6), mode="overwrite")
    last = DeltaTable(str(path)).version()
    compare(path, 0)
    for version in (0, 1, 2, 3, 4, last):
        compare(path, version, version)
    assert applied([], change_rows(path)) == bag(rows.slice(3, 6).to_pylist())


def test_a_file_whose_partition_nobody_knows_any_more_is_refused(tmp_path: Path) -> None:
    """Early writers left partition values out of removes, and the version before, which knows them, was cleaned up."""
    builder = table(tmp_path, {"id": "long", "p": "string"}, ["p"])
    [add] = builder.append([{"id": 1, "p": "x"}])
    remove = builder.remove(add)
    del remove["remove"]["partitionValues"]
    builder.commit([remove])
    assert [row["p"] for row in change_rows(tmp_path, 2)] == ["x"]
    builder.checkpoint()
    builder.cleanup_log(2)
    assert code_of(lambda: change_rows(tmp_path, 2)) == "DELTA_CHANGE_DATA_FILE_WITHOUT_PARTITION_VALUES"
