"""Append, overwrite, replaceWhere and their options, from rows to the log and back."""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_pyds.commands.commit import require_visible
from delta_pyds.commands.write.request import WriteRequest
from delta_pyds.commands.write.write import commit_write, discard_write, plan_write
from delta_pyds.data.write.task import write
from delta_pyds.data.write.task_session import TaskSession
from delta_pyds.errors import ConflictError, DeltaError, OptionError, UserError
from delta_pyds.storage.local import LocalStorage
from delta_pyds.table.scan.live_files import live_files, removal
from delta_pyds.table.scan.scan import plan_scan
from delta_pyds.table.snapshot import load_snapshot
from delta_pyds.table.transaction.transaction import Operation, Transaction
from delta_pyds.verification.verify import verify
from tests.support.commits import actions, info
from tests.support.table_builder import TableBuilder
from tests.support.table_writes import batch_of, ids, read_rows, read_sorted, struct, write_rows

IDS = {"id": "long"}
PARTED = {"id": "long", "p": "string"}


def parted(*values: tuple[int, str | None]) -> list[dict[str, Any]]:
    return [{"id": i, "p": p} for i, p in values]


def data_files(path: Path) -> list[Path]:
    return [f for f in path.rglob("*.parquet") if "_delta_log" not in f.parts]


# --- append and overwrite


def test_the_first_append_creates_the_table(tmp_path: Path) -> None:
    committed = write_rows(tmp_path, IDS, ids(1, 2, None))
    assert committed is not None and committed.version == 0
    assert read_sorted(tmp_path, "id") == [1, 2, None]
    assert load_snapshot(str(tmp_path)).protocol.min_writer_version == 2


def test_appends_follow_each_other(tmp_path: Path) -> None:
    for n in range(3):
        write_rows(tmp_path, IDS, ids(n))
    assert read_sorted(tmp_path, "id") == [0, 1, 2]
    assert read_sorted(tmp_path, "id", version=1) == [0, 1]
    assert info(tmp_path, 2)["isBlindAppend"] is True
    assert info(tmp_path, 2)["operation"] == "WRITE"
    assert info(tmp_path, 2)["operationParameters"] == {"mode": "Append", "partitionBy": "[]"}
    assert info(tmp_path, 2)["operationMetrics"]["numOutputRows"] == "1"


def test_an_overwrite_replaces_rows_and_keeps_what_the_table_is(tmp_path: Path) -> None:
    write_rows(tmp_path, IDS, ids(1, 2), properties={"delta.appendOnly": "false", "delta.checkpointInterval": "7"})
    before = load_snapshot(str(tmp_path)).metadata
    write_rows(tmp_path, IDS, ids(3), mode="overwrite")
    assert read_sorted(tmp_path, "id") == [3]
    assert load_snapshot(str(tmp_path)).metadata == before
    assert info(tmp_path, 1)["operationMetrics"]["numRemovedFiles"] == "1"
    assert info(tmp_path, 1)["isBlindAppend"] is False


def test_several_tasks_commit_as_one_version(tmp_path: Path) -> None:
    write_rows(tmp_path, IDS, [ids(1), ids(2), []])
    assert load_snapshot(str(tmp_path)).version == 0
    assert len(data_files(tmp_path)) == 2
    assert read_sorted(tmp_path, "id") == [1, 2]


def test_no_rows_append_nothing_and_commit_nothing(tmp_path: Path) -> None:
    write_rows(tmp_path, IDS, ids(1))
    assert write_rows(tmp_path, IDS, []) is None
    assert load_snapshot(str(tmp_path)).version == 0


def test_no_rows_still_create_a_table_and_empty_an_overwritten_one(tmp_path: Path) -> None:
    write_rows(tmp_path / "new", IDS, [])
    assert read_rows(tmp_path / "new") == []
    write_rows(tmp_path / "old", IDS, ids(1))
    write_rows(tmp_path / "old", IDS, [], mode="overwrite")
    assert read_rows(tmp_path / "old") == []


def test_data_change_false_is_on_every_file_action(tmp_path: Path) -> None:
    write_rows(tmp_path, IDS, ids(1, 2))
    write_rows(tmp_path, IDS, ids(2, 1), mode="overwrite", data_change=False)
    changes = [a.get("add") or a.get("remove") for a in actions(tmp_path, 1)[1:]]
    assert [c["dataChange"] for c in changes if c] == [False, False]


def test_data_change_false_cannot_create_or_change_a_table(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="dataChange"):
        write_rows(tmp_path, IDS, ids(1), data_change=False)
    write_rows(tmp_path, IDS, ids(1))
    with pytest.raises(OptionError, match="dataChange"):
        write_rows(tmp_path, {"id": "long", "x": "long"}, [], merge_schema=True, data_change=False)


def test_user_metadata_is_kept(tmp_path: Path) -> None:
    write_rows(tmp_path, IDS, ids(1), user_metadata="from the nightly job")
    assert info(tmp_path, 0)["userMetadata"] == "from the nightly job"


def test_an_append_only_table_cannot_be_overwritten(tmp_path: Path) -> None:
    write_rows(tmp_path, IDS, ids(1), properties={"delta.appendOnly": "true"})
    with pytest.raises(UserError) as caught:
        write_rows(tmp_path, IDS, ids(2), mode="overwrite")
    assert caught.value.code == "DELTA_CANNOT_MODIFY_APPEND_ONLY"
    write_rows(tmp_path, IDS, ids(2))
    assert read_sorted(tmp_path, "id") == [1, 2]


# --- createMode


def test_create_mode_error_if_exists(tmp_path: Path) -> None:
    write_rows(tmp_path, IDS, ids(1), create_mode="errorIfExists")
    with pytest.raises(UserError) as caught:
        write_rows(tmp_path, IDS, ids(2), create_mode="errorIfExists")
    assert caught.value.code == "DELTA_PATH_EXISTS"
    assert read_sorted(tmp_path, "id") == [1]


def test_create_mode_ignore(tmp_path: Path) -> None:
    write_rows(tmp_path, IDS, ids(1), create_mode="ignore")
    assert write_rows(tmp_path, IDS, ids(2), create_mode="ignore") is None
    assert read_sorted(tmp_path, "id") == [1]
    assert len(data_files(tmp_path)) == 1


@pytest.mark.parametrize("mode", ["ignore", "errorIfExists", "createIfNotExists"])
def test_a_table_that_another_writer_creates_meanwhile(tmp_path: Path, mode: Any) -> None:
    plan = plan_write(WriteRequest(table_root=str(tmp_path), incoming=struct(IDS), mode="append", create_mode=mode))
    assert plan.state is not None
    output = write(plan.state, iter(batch_of(ids(1), struct(IDS))), TaskSession(0))
    write_rows(tmp_path, IDS, ids(2))
    if mode == "ignore":
        assert commit_write(plan, [output]) is None
    else:
        with pytest.raises(DeltaError) as caught:
            commit_write(plan, [output])
        assert caught.value.code == {"errorIfExists": "DELTA_PATH_EXISTS"}.get(mode, "DELTA_PROTOCOL_CHANGED")
    assert read_sorted(tmp_path, "id") == [2]
    assert len(data_files(tmp_path)) == 1


def test_create_mode_error_if_not_exists(tmp_path: Path) -> None:
    with pytest.raises(DeltaError) as caught:
        write_rows(tmp_path / "none", IDS, ids(1), create_mode="errorIfNotExists")
    assert caught.value.code in ("DELTA_MISSING_DELTA_TABLE", "DELTA_PATH_DOES_NOT_EXIST")
    assert not (tmp_path / "none").exists()


# --- partitions


def test_rows_go_to_partition_directories(tmp_path: Path) -> None:
    write_rows(tmp_path, PARTED, parted((1, "a"), (2, "b"), (3, None), (4, "")), partition_by=(("P",),))
    assert sorted(f.parent.name for f in data_files(tmp_path)) == ["p=__HIVE_DEFAULT_PARTITION__", "p=a", "p=b"]
    assert load_snapshot(str(tmp_path)).configuration.partition_columns == ("p",)
    rows = {r["id"]: r["p"] for r in read_rows(tmp_path)}
    assert rows == {1: "a", 2: "b", 3: None, 4: None}


def test_an_append_may_leave_out_the_partitioning_but_not_contradict_it(tmp_path: Path) -> None:
    write_rows(tmp_path, PARTED, parted((1, "a")), partition_by=(("p",),))
    write_rows(tmp_path, PARTED, parted((2, "a")))
    write_rows(tmp_path, PARTED, parted((3, "b")), partition_by=(("p",),))
    with pytest.raises(UserError) as caught:
        write_rows(tmp_path, PARTED, parted((4, "b")), partition_by=(("id",),))
    assert caught.value.code == "DELTA_METADATA_MISMATCH"
    assert read_sorted(tmp_path, "id") == [1, 2, 3]


def test_dynamic_overwrite_replaces_only_the_partitions_that_get_rows(tmp_path: Path) -> None:
    write_rows(tmp_path, PARTED, parted((1, "a"), (2, "b"), (3, None)), partition_by=(("p",),))
    write_rows(tmp_path, PARTED, parted((9, "a"), (8, None)), mode="overwrite", partition_overwrite="dynamic")
    assert {(r["id"], r["p"]) for r in read_rows(tmp_path)} == {(9, "a"), (2, "b"), (8, None)}


def test_dynamic_overwrite_by_value_not_by_spelling(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path, {"id": "long", "t": "timestamp"}, partition_columns=["t"])
    table.create()
    [add] = table.append([{"id": 1, "t": "2024-01-01 00:00:00"}])
    assert add["add"]["partitionValues"]["t"].startswith("2024-01-01 00:00:00")
    new = [{"id": 2, "t": 1_704_067_200_000_000}]
    write_rows(tmp_path, {"id": "long", "t": "timestamp"}, new, mode="overwrite", partition_overwrite="dynamic")
    assert read_sorted(tmp_path, "id") == [2]


def test_dynamic_overwrite_of_an_unpartitioned_table_replaces_all(tmp_path: Path) -> None:
    write_rows(tmp_path, IDS, ids(1))
    write_rows(tmp_path, IDS, ids(2), mode="overwrite", partition_overwrite="dynamic")
    assert read_sorted(tmp_path, "id") == [2]


# --- replaceWhere


def test_replace_where_on_partitions(tmp_path: Path) -> None:
    write_rows(tmp_path, PARTED, parted((1, "a"), (2, "b"), (3, "c")), partition_by=(("p",),))
    write_rows(tmp_path, PARTED, parted((9, "b")), mode="overwrite", replace_where="p IN ('a', 'b')")
    assert {(r["id"], r["p"]) for r in read_rows(tmp_path)} == {(9, "b"), (3, "c")}
    assert info(tmp_path, 1)["operationParameters"]["predicate"] == "p IN ('a', 'b')"


def test_of_a_long_predicate_the_log_has_the_beginning(tmp_path: Path) -> None:
    write_rows(tmp_path, PARTED, parted((1, "a"), (3, "c")))
    predicate = "p IN (" + ", ".join(f"'x{i}'" for i in range(20_000)) + ", 'a')"
    write_rows(tmp_path, PARTED, [], mode="overwrite", replace_where=predicate)
    assert [r["id"] for r in read_rows(tmp_path)] == [3]
    logged = info(tmp_path, 1)["operationParameters"]["predicate"]
    assert logged == f"{predicate[:10_000]}... (cut: {len(predicate)} characters)"
    longest = f"p = 'c' OR p = '{'x' * 9_983}'"
    assert len(longest) == 10_000
    write_rows(tmp_path, PARTED, [], mode="overwrite", replace_where=longest)
    assert info(tmp_path, 2)["operationParameters"]["predicate"] == longest


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_replace_where_on_data_keeps_the_other_rows_of_a_file(tmp_path: Path, vectors: str) -> None:
    properties = {"delta.enableDeletionVectors": vectors}
    write_rows(tmp_path, IDS, [ids(1, 2, 3, None), ids(10, 11), ids(20)], properties=properties)
    write_rows(tmp_path, IDS, ids(2, 12), mode="overwrite", replace_where="id BETWEEN 2 AND 15")
    assert read_sorted(tmp_path, "id") == [1, 2, 12, 20, None]
    adds = [a["add"] for a in actions(tmp_path, 1) if "add" in a]
    assert any("deletionVector" in a for a in adds) == (vectors == "true")
    metrics = info(tmp_path, 1)["operationMetrics"]
    assert metrics["numDeletedRows"] == "4"
    # once more over files that have vectors already
    write_rows(tmp_path, IDS, ids(1), mode="overwrite", replace_where="id <= 2")
    assert read_sorted(tmp_path, "id") == [1, 12, 20, None]


def test_replace_where_refuses_rows_outside_it(tmp_path: Path) -> None:
    write_rows(tmp_path, IDS, ids(1))
    for rows in (ids(5), ids(2, None)):
        with pytest.raises(DeltaError) as caught:
            write_rows(tmp_path, IDS, rows, mode="overwrite", replace_where="id < 5")
        assert caught.value.code == "DELTA_REPLACE_WHERE_MISMATCH"
    assert read_sorted(tmp_path, "id") == [1]
    assert len(data_files(tmp_path)) == 1


def test_replace_where_keeps_row_ids_of_the_rows_that_stay(tmp_path: Path) -> None:
    write_rows(tmp_path, IDS, ids(1, 2, 3), properties={"delta.enableRowTracking": "true"})
    before = {r["id"]: (r["_row_id"], r["_row_commit_version"]) for r in read_rows(tmp_path, row_ids=True)}
    write_rows(tmp_path, IDS, ids(2), mode="overwrite", replace_where="id = 2")
    after = {r["id"]: (r["_row_id"], r["_row_commit_version"]) for r in read_rows(tmp_path, row_ids=True)}
    assert after[1] == before[1] and after[3] == before[3]
    assert after[2][0] not in {row_id for row_id, _ in before.values()} and after[2][1] == 1


@pytest.mark.parametrize("mode", ["none", "name", "id"])
@pytest.mark.parametrize("name", ["_row_id", "_row_commit_version"])
def test_replace_where_keeps_row_ids_of_a_table_with_a_column_of_such_a_name(
    tmp_path: Path, name: str, mode: str
) -> None:
    columns = {"id": "long", name: "string"}
    rows: list[dict[str, Any]] = [{"id": i, name: str(i)} for i in range(3)]
    properties = {"delta.enableRowTracking": "true", "delta.columnMapping.mode": mode}
    write_rows(tmp_path, columns, rows, properties=properties)
    write_rows(tmp_path, columns, [], mode="overwrite", replace_where="id = 0")
    assert sorted((r["id"], r[name]) for r in read_rows(tmp_path)) == [(1, "1"), (2, "2")]
    found = read_rows(tmp_path, columns="id", row_ids=True)
    assert sorted(tuple(r.values()) for r in found) == [(1, 1, 0), (2, 2, 0)]
    assert verify(str(tmp_path)).ok


@pytest.mark.parametrize("properties", [{}, {"delta.columnMapping.mode": "name"}], ids=["plain", "mapped"])
@pytest.mark.parametrize("partition_by", [None, (("p",),)], ids=["whole", "partitioned"])
def test_replace_where_tells_the_change_data_feed_of_rows_in_rewritten_files(
    tmp_path: Path, partition_by: Any, properties: dict[str, str]
) -> None:
    properties = {"delta.enableChangeDataFeed": "true", **properties}
    write_rows(tmp_path, PARTED, [parted((1, "a"), (2, "a")), parted((3, "b"))], properties=properties,
               partition_by=partition_by)  # fmt: skip
    write_rows(tmp_path, PARTED, parted((2, "a"), (4, "c")), mode="overwrite", replace_where="id >= 2")
    assert read_sorted(tmp_path, "id") == [1, 2, 4]
    cdc = [a["cdc"] for a in actions(tmp_path, 1) if "cdc" in a]
    changes = [row for file in cdc for row in pq.read_table(tmp_path / unquote(file["path"])).to_pylist()]
    names = {f.physical_name: f.name for f in load_snapshot(str(tmp_path)).schema}
    found = sorted((r["_change_type"], next(v for k, v in r.items() if names.get(k) == "id")) for r in changes)
    assert found == [("delete", 2), ("delete", 3), ("insert", 2), ("insert", 4)]
    assert all(file["dataChange"] is False for file in cdc)
    assert info(tmp_path, 1)["operationMetrics"]["numAddedChangeFiles"] == str(len(cdc))
    if len(properties) == 1:
        from deltalake import DeltaTable

        feed = pa.table(DeltaTable(str(tmp_path)).load_cdf(starting_version=1).read_all()).to_pylist()
        assert sorted((r["_change_type"], r["id"], r["p"]) for r in feed) == [
            ("delete", 2, "a"), ("delete", 3, "b"), ("insert", 2, "a"), ("insert", 4, "c"),
        ]  # fmt: skip


def test_replace_where_of_whole_files_needs_no_change_files(tmp_path: Path) -> None:
    write_rows(tmp_path, IDS, ids(1, 2), properties={"delta.enableChangeDataFeed": "true"})
    write_rows(tmp_path, IDS, ids(7), mode="overwrite", replace_where="id >= 1")
    assert read_sorted(tmp_path, "id") == [7]
    assert not [a for a in actions(tmp_path, 1) if "cdc" in a]


@pytest.mark.parametrize(
    ("request_", "word", "code"),
    [
        ({"mode": "append", "replace_where": "id = 1"}, "replaceWhere", "DELTA_ILLEGAL_OPTION"),
        (
            {"mode": "overwrite", "replace_where": "id = 1", "partition_overwrite": "dynamic"},
            "replaceWhere",
            "DELTA_REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE",
        ),
        (
            {"mode": "overwrite", "replace_where": "id = 1", "overwrite_schema": True},
            "overwriteSchema",
            "DELTA_OVERWRITE_SCHEMA_WITH_REPLACE_WHERE",
        ),
        (
            {"mode": "overwrite", "partition_overwrite": "dynamic", "overwrite_schema": True},
            "overwriteSchema",
            "DELTA_OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE",
        ),
        ({"mode": "append", "overwrite_schema": True}, "overwriteSchema", "DELTA_ILLEGAL_OPTION"),
        (
            {"mode": "overwrite", "replace_where": "id = 1", "data_change": False},
            "dataChange",
            "DELTA_REPLACE_WHERE_WITH_FILTER_DATA_CHANGE_UNSET",
        ),
        (
            {"mode": "overwrite", "replace_where": "id = 1", "replace_using": ("id",)},
            "replaceUsing",
            "DELTA_OVERWRITE_BY_FILTER_INCOMPATIBLE_REPLACE_ON_OR_USING",
        ),
        (
            {"mode": "overwrite", "partition_overwrite": "dynamic", "replace_using": ("id",)},
            "replaceUsing",
            "DELTA_DYNAMIC_PARTITION_OVERWRITE_INCOMPATIBLE_REPLACE_ON_OR_USING",
        ),
        (
            {"mode": "append", "partition_by": (("id",),), "cluster_by": (("id",),)},
            "clusterBy",
            "DELTA_CLUSTER_BY_WITH_PARTITIONED_BY",
        ),
    ],
)
def test_options_that_contradict_each_other(tmp_path: Path, request_: dict[str, Any], word: str, code: str) -> None:
    write_rows(tmp_path, IDS, ids(1))
    with pytest.raises(OptionError, match=word) as caught:
        write_rows(tmp_path, IDS, ids(1), **request_)
    assert caught.value.code == code


@pytest.mark.parametrize("where", ["id = ${limit}", "id = 1 OR note = '${env:HOME}'"])
def test_replace_where_with_a_variable_is_refused(tmp_path: Path, where: str) -> None:
    """Spark would replace it, and we would not: check and deletion would mean different rows."""
    write_rows(tmp_path, IDS, ids(1))
    with pytest.raises(OptionError, match="variable"):
        write_rows(tmp_path, IDS, ids(1), mode="overwrite", replace_where=where)
    assert read_sorted(tmp_path, "id") == [1]


# --- schema


def test_merge_schema_adds_columns(tmp_path: Path) -> None:
    write_rows(tmp_path, IDS, ids(1))
    wider = {"ID": "long", "note": "string"}
    with pytest.raises(DeltaError) as caught:
        write_rows(tmp_path, wider, [{"ID": 2, "note": "x"}])
    assert caught.value.code == "DELTA_METADATA_MISMATCH" and "mergeSchema" in caught.value.message
    write_rows(tmp_path, wider, [{"ID": 2, "note": "x"}], merge_schema=True)
    assert sorted(read_rows(tmp_path), key=lambda r: r["id"]) == [{"id": 1, "note": None}, {"id": 2, "note": "x"}]


def test_overwrite_schema_replaces_columns_and_partitioning_and_keeps_the_id(tmp_path: Path) -> None:
    write_rows(tmp_path, PARTED, parted((1, "a")), partition_by=(("p",),))
    before = load_snapshot(str(tmp_path)).metadata
    other = {"when": "date", "id": "string"}
    write_rows(tmp_path, other, [{"when": None, "id": "x"}], mode="overwrite", overwrite_schema=True,
               partition_by=(("id",),))  # fmt: skip
    after = load_snapshot(str(tmp_path))
    assert after.metadata.id == before.id
    assert after.schema.names == ("when", "id") and after.configuration.partition_columns == ("id",)
    assert read_rows(tmp_path) == [{"when": None, "id": "x"}]
    assert len(read_rows(tmp_path, version=0)) == 1


def test_missing_nullable_columns_become_null(tmp_path: Path) -> None:
    write_rows(tmp_path, PARTED, parted((1, "a")))
    write_rows(tmp_path, {"P": "string"}, [{"P": "b"}])
    assert {(r["id"], r["p"]) for r in read_rows(tmp_path)} == {(1, "a"), (None, "b")}


# --- idempotent writes


def test_a_version_of_an_application_is_written_once(tmp_path: Path) -> None:
    for _ in range(2):
        write_rows(tmp_path, IDS, ids(1), application=("job", 4))
    write_rows(tmp_path, IDS, ids(0), application=("job", 3))
    write_rows(tmp_path, IDS, ids(2), application=("job", 5))
    write_rows(tmp_path, IDS, ids(3), application=("other", 0))
    assert read_sorted(tmp_path, "id") == [1, 2, 3]
    assert len(data_files(tmp_path)) == 3


def test_two_writers_of_one_application_version_cannot_both_win(tmp_path: Path) -> None:
    write_rows(tmp_path, IDS, ids(0))
    request = WriteRequest(table_root=str(tmp_path), incoming=struct(IDS), mode="append", application=("job", 1))
    plans = [plan_write(request), plan_write(request)]
    outputs = [[write(p.state, iter(batch_of(ids(7), struct(IDS))), TaskSession(0))] for p in plans if p.state]
    commit_write(plans[0], outputs[0])
    with pytest.raises(ConflictError) as caught:
        commit_write(plans[1], outputs[1])
    assert caught.value.code == "DELTA_CONCURRENT_TRANSACTION"
    assert read_sorted(tmp_path, "id") == [0, 7]


# --- leftovers


def test_a_discarded_write_leaves_the_table_as_it_was(tmp_path: Path) -> None:
    write_rows(tmp_path, IDS, ids(0))
    request = WriteRequest(table_root=str(tmp_path), incoming=struct(IDS), mode="append")
    plan = plan_write(request)
    assert plan.state is not None
    output = write(plan.state, iter(batch_of(ids(1), struct(IDS))), TaskSession(0))
    assert len(data_files(tmp_path)) == 2
    discard_write(plan, [output, None])
    assert len(data_files(tmp_path)) == 1
    assert read_sorted(tmp_path, "id") == [0]


def test_a_conflict_deletes_the_files_that_it_made_useless(tmp_path: Path) -> None:
    write_rows(tmp_path, IDS, ids(0))
    request = WriteRequest(table_root=str(tmp_path), incoming=struct(IDS), mode="overwrite")
    plan = plan_write(request)
    assert plan.state is not None
    output = write(plan.state, iter(batch_of(ids(1), struct(IDS))), TaskSession(0))
    write_rows(tmp_path, IDS, ids(2))
    with pytest.raises(ConflictError) as caught:
        commit_write(plan, [output])
    assert caught.value.code == "DELTA_CONCURRENT_APPEND"
    assert read_sorted(tmp_path, "id") == [0, 2]
    assert len(data_files(tmp_path)) == 2


def test_a_table_that_was_replaced_meanwhile_gets_nothing(tmp_path: Path) -> None:
    table = tmp_path / "t"
    write_rows(table, IDS, ids(0))
    plan = plan_write(WriteRequest(table_root=str(table), incoming=struct(IDS), mode="append"))
    assert plan.state is not None
    output = write(plan.state, iter(batch_of(ids(1), struct(IDS))), TaskSession(0))
    shutil.rmtree(table / "_delta_log")
    write_rows(table, IDS, ids(5))
    with pytest.raises(UserError) as caught:
        commit_write(plan, [output])
    assert caught.value.code == "DELTA_TABLE_ID_MISMATCH"
    assert read_sorted(table, "id") == [5]


def test_a_store_without_an_atomic_create_is_refused_before_a_byte_is_written() -> None:
    with pytest.raises(DeltaError, match="atomic create"):
        write_rows("memory://nowhere/table", IDS, ids(1))


# --- what came first


def raced(path: Path, between: Any, schema: Any, rows: list[dict[str, Any]], **request: Any) -> str:
    """The code of the conflict of an overwrite that was planned before ``between``; empty without a conflict."""
    plan = plan_write(WriteRequest(table_root=str(path), incoming=struct(schema), mode="overwrite", **request))
    assert plan.state is not None
    output = write(plan.state, iter(batch_of(rows, struct(schema))), TaskSession(0))
    between()
    before = read_rows(path)
    try:
        commit_write(plan, [output])
    except ConflictError as error:
        assert read_rows(path) == before
        return error.code
    return ""


def test_an_overwrite_of_a_partitioned_table_does_not_pass_new_rows(tmp_path: Path) -> None:
    write_rows(tmp_path, PARTED, parted((1, "a")), partition_by=(("p",),))
    added = raced(tmp_path, lambda: write_rows(tmp_path, PARTED, parted((2, "b"))), PARTED, parted((3, "c")))
    assert added == "DELTA_CONCURRENT_APPEND"


@pytest.mark.parametrize("where", ["p = 'a'", "p = 'a' AND id < 9", "id < 9"])
def test_replace_where_does_not_pass_new_rows_where_it_looked(tmp_path: Path, where: str) -> None:
    write_rows(tmp_path, PARTED, parted((1, "a"), (2, "b")), partition_by=(("p",),))
    elsewhere = "" if "p =" in where else "DELTA_CONCURRENT_APPEND"

    def against(partition: str) -> str:
        more = parted((5, partition))
        return raced(
            tmp_path, lambda: write_rows(tmp_path, PARTED, more), PARTED, parted((3, "a")), replace_where=where
        )

    assert against("a") == "DELTA_CONCURRENT_APPEND"
    assert against("b") == elsewhere


def test_rows_of_a_file_that_another_writer_removed_are_not_kept(tmp_path: Path) -> None:
    write_rows(tmp_path, PARTED, parted((1, "a"), (2, "a")), partition_by=(("p",),))

    def remove() -> None:
        snapshot = load_snapshot(str(tmp_path))
        transaction = Transaction(snapshot)
        for file in live_files(plan_scan(snapshot)):
            transaction.remove(removal(file, deletion_timestamp_ms=1, data_change=True))
        transaction.commit(Operation("DELETE"))

    # the rows that stay were read from it
    assert raced(tmp_path, remove, PARTED, parted((1, "a")), replace_where="id = 1") == "DELTA_CONCURRENT_DELETE_READ"


# --- which files a replacement touches


def test_replace_where_on_partitions_and_data_takes_the_rows_of_both(tmp_path: Path) -> None:
    write_rows(tmp_path, PARTED, parted((1, "a"), (5, "a"), (1, "b")), partition_by=(("p",),))
    write_rows(tmp_path, PARTED, parted((0, "a")), mode="overwrite", replace_where="p = 'a' AND id < 2")
    assert sorted((r["p"], r["id"]) for r in read_rows(tmp_path)) == [("a", 0), ("a", 5), ("b", 1)]


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_a_file_without_a_row_to_replace_stays_as_it_is(tmp_path: Path, vectors: str) -> None:
    write_rows(tmp_path, IDS, ids(1, 3), properties={"delta.enableDeletionVectors": vectors})
    write_rows(tmp_path, IDS, ids(2, 4))
    # the bounds of both files allow it
    write_rows(tmp_path, IDS, [], mode="overwrite", replace_where="id = 2")
    removed = [a["remove"]["path"] for a in actions(tmp_path, 2) if "remove" in a]
    assert removed == [a["add"]["path"] for a in actions(tmp_path, 1) if "add" in a]
    assert read_sorted(tmp_path, "id") == [1, 3, 4]


def test_rows_that_were_deleted_before_are_not_counted_again(tmp_path: Path) -> None:
    write_rows(tmp_path, IDS, ids(1, 2, 3, 4), properties={"delta.enableDeletionVectors": "true"})
    for where in ("id = 1", "id <= 2"):
        write_rows(tmp_path, IDS, [], mode="overwrite", replace_where=where)
    told = [info(tmp_path, version)["operationMetrics"]["numDeletedRows"] for version in (1, 2)]
    assert told == ["1", "1"]
    assert read_sorted(tmp_path, "id") == [3, 4]


def test_a_marked_file_without_statistics_gets_its_count(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path, IDS, properties={"delta.enableDeletionVectors": "true"})
    table.create()
    table.append(ids(1, 2, 3), stats=False)
    write_rows(tmp_path, IDS, [], mode="overwrite", replace_where="id = 2")
    [add] = [a["add"] for a in actions(tmp_path, 2) if "add" in a]
    assert json.loads(add["stats"]) == {"numRecords": 3, "tightBounds": False}
    assert read_sorted(tmp_path, "id") == [1, 3]


def test_vectors_that_the_protocol_does_not_support_are_not_written(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path, IDS, properties={"delta.enableDeletionVectors": "true"}, protocol=(1, 2))
    table.create()
    table.append(ids(1, 2, 3))
    write_rows(tmp_path, IDS, [], mode="overwrite", replace_where="id = 2")
    assert [a for a in actions(tmp_path, 2) if "add" in a and "deletionVector" in a["add"]] == []
    assert read_sorted(tmp_path, "id") == [1, 3]


def test_many_files_are_looked_at_several_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shared file system takes its time for each."""
    paths = [f"{number}.parquet" for number in range(40)]
    for path in paths:
        (tmp_path / path).touch()
    together, exists = threading.Barrier(5), LocalStorage.exists

    def slow(self: LocalStorage, path: str) -> bool:
        together.wait(20)
        return exists(self, path)

    monkeypatch.setattr(LocalStorage, "exists", slow)
    require_visible(LocalStorage(), str(tmp_path), paths)
    (tmp_path / paths[27]).unlink()
    together = threading.Barrier(1)
    with pytest.raises(UserError, match=r"the file '27\.parquet' of the table"):
        require_visible(LocalStorage(), str(tmp_path), paths)


def test_files_on_the_disk_of_another_machine_are_not_committed(tmp_path: Path) -> None:
    write_rows(tmp_path, IDS, ids(1))
    plan = plan_write(WriteRequest(table_root=str(tmp_path), incoming=struct(IDS), mode="append"))
    assert plan.state is not None
    outputs = [write(plan.state, iter(batch_of(ids(number), struct(IDS))), TaskSession(number)) for number in (2, 3)]
    # one of the two tasks had another directory under this name
    (tmp_path / outputs[1].files[0].path).rename(tmp_path.parent / f"{tmp_path.name}-elsewhere")
    with pytest.raises(
        UserError, match=r"does not have it: on the task's machine the path is another directory.*Nothing was committed"
    ):
        commit_write(plan, outputs)
    assert load_snapshot(str(tmp_path)).version == 0 and len(data_files(tmp_path)) == 1


@pytest.mark.parametrize(("where", "rows", "deleted"), [("p = 1", 1, "2"), ("p = 7", 1, "0"), ("p = 1", 0, None)])
def test_rows_of_replaced_partitions_are_counted(tmp_path: Path, where: str, rows: int, deleted: str | None) -> None:
    """By the log; the reference counts none where nothing is written."""
    columns = {"id": "long", "p": "long"}
    write_rows(tmp_path, columns, [{"id": n, "p": n % 2} for n in range(4)], partition_by=(("p",),))
    new = [{"id": 9, "p": int(where[-1])}] * rows
    write_rows(tmp_path, columns, new, mode="overwrite", replace_where=where)
    metrics = info(tmp_path, 1)["operationMetrics"]
    assert (metrics.get("numDeletedRows"), metrics.get("numCopiedRows")) == (deleted, deleted and "0")
    assert ("numOutputRows" in metrics) is bool(rows)
