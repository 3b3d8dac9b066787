"""The changes of one commit. Protocol: "Reader Requirements for AddCDCFile"."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_pyds.columnar.scan_files import to_scan_files
from delta_pyds.errors import ProtocolError, UserError
from delta_pyds.log.commit_reader import decode_commit
from delta_pyds.table.change_feed.changes import (
    FileChange,
    change_files,
    change_relation,
    changes_of,
    check_partition_values,
    selected_changes,
)
from delta_pyds.table.scan.row_selection import select_rows
from delta_pyds.table.snapshot import load_snapshot
from delta_pyds.tasks.scan_state import ScanFile
from tests.support.table_builder import TableBuilder

V1 = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 1, "sizeInBytes": 40, "cardinality": 2}
V2 = {**V1, "offset": 80, "cardinality": 3}
NOTHING = {"numTargetRowsInserted": "0", "numTargetRowsUpdated": "0", "numTargetRowsDeleted": "0"}
TIME_MS = 1_700_000_000_123
ON = {"delta.enableChangeDataFeed": "true"}


def add(path: str = "a.parquet", **fields: Any) -> dict[str, Any]:
    body = {"path": path, "partitionValues": {}, "size": 10, "modificationTime": 0, "dataChange": True}
    return {"add": body | fields}


def remove(path: str = "a.parquet", **fields: Any) -> dict[str, Any]:
    body = {"path": path, "dataChange": True, "extendedFileMetadata": True, "partitionValues": {}, "size": 10}
    return {"remove": body | fields}


def cdc(path: str = "_change_data/c.parquet", **fields: Any) -> dict[str, Any]:
    return {"cdc": {"path": path, "partitionValues": {}, "size": 5, "dataChange": False} | fields}


def merge(metrics: Any, operation: str = "MERGE") -> dict[str, Any]:
    return {"commitInfo": {"operation": operation, "operationMetrics": metrics}}


def changes(*actions: dict[str, Any]) -> list[FileChange]:
    return changes_of(decode_commit("\n".join(json.dumps(a) for a in actions).encode(), "a commit"))


def said(*actions: dict[str, Any]) -> list[tuple[str, str, Any, Any]]:
    """Kind, path, and the offsets of the vectors that select and that delete."""
    return [
        (
            c.kind,
            c.path,
            None if c.selected is None else c.selected.offset,
            None if c.deletion_vector is None else c.deletion_vector.offset,
        )
        for c in changes(*actions)
    ]


# --- which files


def test_added_files_are_inserts_and_removed_ones_deletes() -> None:
    found = said(add("new"), remove("old"))
    assert found == [("insert", "new", None, None), ("delete", "old", None, None)]


def test_rows_that_were_gone_already_are_no_deletes() -> None:
    assert said(remove("old", deletionVector=V1)) == [("delete", "old", None, 1)]


def test_an_added_file_with_a_vector_inserts_the_rows_that_live() -> None:
    assert said(add("new", deletionVector=V1)) == [("insert", "new", None, 1)]


def test_rearranged_files_change_nothing() -> None:
    assert said(add("new", dataChange=False), remove("old", dataChange=False)) == []


def test_change_files_stand_for_all_that_the_commit_did() -> None:
    assert said(add("new"), cdc("c1"), remove("old"), cdc("c2")) == [
        ("cdc", "c1", None, None),
        ("cdc", "c2", None, None),
    ]


def test_a_change_file_that_is_there_twice_counts_once() -> None:
    assert said(cdc("c 1"), cdc("c%201")) == [("cdc", "c%201", None, None)]


def test_change_files_count_in_a_merge_that_says_it_changed_nothing() -> None:
    assert said(merge(NOTHING), cdc("c"), add("new")) == [("cdc", "c", None, None)]


def test_a_merge_that_changed_no_row_has_no_changes() -> None:
    assert said(merge(NOTHING), add("new"), remove("old")) == []


@pytest.mark.parametrize(
    "info",
    [
        merge({**NOTHING, "numTargetRowsUpdated": "1"}),
        merge({k: v for k, v in NOTHING.items() if k != "numTargetRowsDeleted"}),
        merge(None),
        merge("nonsense"),
        merge(NOTHING, operation="UPDATE"),
    ],
)
def test_other_merges_count_by_their_files(info: dict[str, Any]) -> None:
    assert [kind for kind, *_ in said(info, add("new"), remove("old"))] == ["insert", "delete"]


def test_other_actions_change_no_rows() -> None:
    assert (
        said({"txn": {"appId": "a", "version": 1}}, {"protocol": {"minReaderVersion": 1, "minWriterVersion": 4}}) == []
    )


# --- deletion vectors


def test_a_first_vector_deletes_its_rows() -> None:
    assert said(remove(), add(deletionVector=V1)) == [("delete", "a.parquet", 1, None)]


def test_a_further_vector_deletes_what_the_last_one_did_not_and_brings_back_the_rest() -> None:
    assert said(remove(deletionVector=V1), add(deletionVector=V2)) == [
        ("delete", "a.parquet", 80, 1),
        ("insert", "a.parquet", 1, 80),
    ]


def test_a_vector_that_goes_brings_its_rows_back() -> None:
    assert said(add(), remove(deletionVector=V1)) == [("insert", "a.parquet", 1, None)]


@pytest.mark.parametrize("vector", [{}, {"deletionVector": V1}])
def test_the_same_file_removed_and_added_changes_nothing(vector: dict[str, Any]) -> None:
    assert said(remove(**vector), add(**vector)) == []


@pytest.mark.parametrize("said_by", [{"dataChange": True}, {"dataChange": False}])
def test_a_file_that_stays_is_no_delete_whichever_action_says_that_data_changed(said_by: dict[str, Any]) -> None:
    other = {"dataChange": not said_by["dataChange"]}
    assert said(remove(**said_by), add(**other)) == []
    assert said(remove(**said_by), add(deletionVector=V1, **other)) == [("delete", "a.parquet", 1, None)]


def test_a_vector_that_only_moves_changes_nothing() -> None:
    assert said(remove(deletionVector=V1, dataChange=False), add(dataChange=False, deletionVector=V2)) == []


@pytest.mark.parametrize("vector", [{}, {"deletionVector": V1}])
def test_a_file_that_goes_to_another_partition_changes_all_of_its_rows(vector: dict[str, Any]) -> None:
    found = changes(remove(partitionValues={"p": "x"}), add(partitionValues={"p": "y"}, **vector))
    assert [(c.kind, c.partition_values, c.selected) for c in found] == [
        ("insert", {"p": "y"}, None),
        ("delete", {"p": "x"}, None),
    ]


@pytest.mark.parametrize("values", [None, {}, {"p": None}, {"p": ""}])
def test_no_partition_and_the_null_partition_are_the_same_partition(values: dict[str, Any] | None) -> None:
    assert changes(remove(partitionValues=values), add(partitionValues={"p": None})) == []


def test_an_empty_vector_selects_no_rows() -> None:
    assert said(remove(), add(deletionVector={**V1, "cardinality": 0})) == []


def test_paths_are_the_same_once_they_are_decoded() -> None:
    assert said(remove("p=a%20b/f"), add("p=a b/f", deletionVector=V1)) == [("delete", "p=a b/f", 1, None)]


def test_each_removed_file_is_compared_with_one_added_file_of_its_path() -> None:
    third = {**V1, "offset": 200}
    found = said(remove(), remove(deletionVector=V1), add(deletionVector=V2), add(deletionVector=third), add("b"))
    assert found == [
        ("delete", "a.parquet", 80, None),
        ("delete", "a.parquet", 200, 1),
        ("insert", "a.parquet", 1, 200),
        ("insert", "b", None, None),
    ]


def test_more_removed_than_added_files_of_a_path() -> None:
    assert said(remove(), remove(deletionVector=V1), add(deletionVector=V2)) == [
        ("delete", "a.parquet", 80, None),
        ("delete", "a.parquet", None, 1),
    ]


def test_an_action_that_is_there_twice_counts_once() -> None:
    assert said(add("a"), add("a"), remove("b"), remove("b")) == [
        ("insert", "a", None, None),
        ("delete", "b", None, None),
    ]


# --- what is known of them


def stats(**fields: Any) -> str:
    return json.dumps({"numRecords": 4, "minValues": {"id": 3}, "maxValues": {"id": 9}, **fields})


def test_tight_bounds_of_the_new_file_say_nothing_about_deleted_rows() -> None:
    [found] = changes(remove(), add(deletionVector=V1, stats=stats()))
    assert found.stats is None


def test_wide_bounds_of_the_new_file_hold_for_deleted_rows() -> None:
    text = stats(tightBounds=False)
    [found] = changes(remove(), add(deletionVector=V1, stats=text))
    assert found.stats == text


def test_the_removed_files_own_bounds_hold_for_deleted_rows() -> None:
    text = stats()
    [found] = changes(remove(stats=text), add(deletionVector=V1, stats=stats(maxValues={"id": 4})))
    assert found.stats == text


@pytest.mark.parametrize(
    "text", ["", "nonsense", "[]", '{"minValues": {"tightBounds": false}}', '{"tightBounds": "no"}']
)
def test_bounds_that_do_not_say_that_they_are_wide_are_not_used(text: str) -> None:
    [found] = changes(remove(), add(deletionVector=V1, stats=text))
    assert found.stats is None


def test_partition_and_size_of_a_vector_change_are_those_of_the_added_file() -> None:
    [found] = changes(
        {"remove": {"path": "a.parquet", "dataChange": True}}, add(deletionVector=V1, partitionValues={"p": "x"})
    )
    assert (found.partition_values, found.size) == ({"p": "x"}, 10)


@pytest.mark.parametrize("said_by_writer", [{}, {"partitionValues": {}}, {"extendedFileMetadata": False}])
def test_early_writers_do_not_say_the_partition(said_by_writer: dict[str, Any]) -> None:
    [found] = changes({"remove": {"path": "a", "dataChange": True, **said_by_writer}})
    assert (found.kind, found.partition_values, found.size) == ("delete", None, None)


# --- as a relation


def table(path: Path, properties: dict[str, str] | None = None, **options: Any) -> TableBuilder:
    builder = TableBuilder(path, {"id": "long", "p": "string"}, ["p"], {**ON, **(properties or {})}, **options)
    builder.create()
    return builder


@pytest.mark.parametrize("name", ["_change_type", "_COMMIT_VERSION", "_Commit_Timestamp"])
def test_a_table_with_a_column_of_the_feed_is_refused(tmp_path: Path, name: str) -> None:
    TableBuilder(tmp_path, {"id": "long", name: "long"}, properties=ON).create()
    with pytest.raises(UserError) as caught:
        change_relation(load_snapshot(str(tmp_path)).configuration)
    assert caught.value.code == "RESERVED_CDC_COLUMNS_ON_READ"
    assert name in caught.value.message


def test_a_physical_name_of_the_feed_is_refused_too(tmp_path: Path) -> None:
    mapped = {**ON, "delta.columnMapping.mode": "name"}
    TableBuilder(tmp_path, {"kind": "long"}, properties=mapped, physical_names={"kind": "_change_type"}).create()
    with pytest.raises(UserError, match="kind"):
        change_relation(load_snapshot(str(tmp_path)).configuration)


def test_the_feed_has_the_tables_columns_and_then_its_own(tmp_path: Path) -> None:
    table(tmp_path)
    relation = change_relation(load_snapshot(str(tmp_path)).configuration)
    assert relation.schema.names == ("id", "p", "_change_type", "_commit_version", "_commit_timestamp")
    assert relation.partition_columns == ("p", "_change_type", "_commit_version", "_commit_timestamp")


ACTIONS = (
    add("ins", partitionValues={"p": "x"}, stats=stats()),
    remove("del", partitionValues={"p": None}, deletionVector=V1),
    remove("dv", partitionValues={"p": "y"}),
    add("dv", partitionValues={"p": "y"}, deletionVector=V2),
)


def batch(root: Path, *actions: dict[str, Any], **choice: Any) -> pa.RecordBatch:
    relation = change_relation(load_snapshot(str(root)).configuration)
    check_partition_values(found := changes(*actions), relation, 7)
    files = change_files(found, version=7, timestamp_ms=TIME_MS)
    return selected_changes(files, select_rows(relation, **choice))


def paths(root: Path, where: str, *actions: dict[str, Any]) -> list[str]:
    return [str(path) for path in batch(root, *(actions or ACTIONS), where=where).column("path").to_pylist()]


def test_what_a_task_gets_of_a_change(tmp_path: Path) -> None:
    table(tmp_path)
    files = list(
        to_scan_files(batch(tmp_path, *ACTIONS, cdc("ignored not", partitionValues={"p": "z"})), str(tmp_path))
    )
    assert files == [
        ScanFile(f"{tmp_path}/ignored not", 5, ("z", None, "7", "2023-11-14T22:13:20.123000Z"), change_data=True)
    ]
    inserted, by_vector, deleted = to_scan_files(batch(tmp_path, *ACTIONS), str(tmp_path))
    time = "2023-11-14T22:13:20.123000Z"
    assert (inserted.partition_values, inserted.size_bytes) == (("x", "insert", "7", time), 10)
    assert deleted.partition_values == (None, "delete", "7", time)
    assert deleted.deletion_vector is not None and deleted.deletion_vector.offset == 1
    assert by_vector.partition_values == ("y", "delete", "7", time)
    assert by_vector.selected is not None and by_vector.selected.cardinality == 3


def test_only_columns_that_are_wanted_are_handed_on(tmp_path: Path) -> None:
    table(tmp_path)
    [file, *_] = to_scan_files(batch(tmp_path, *ACTIONS, columns="_commit_version,id"), str(tmp_path))
    assert file.partition_values == ("7",)


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("id = 2", ["dv", "del"]),
        ("id = 3", ["ins", "dv", "del"]),
        ("p = 'x'", ["ins"]),
        ("p IS NULL", ["del"]),
        ("_change_type = 'delete'", ["dv", "del"]),
        ("_CHANGE_TYPE <> 'delete'", ["ins"]),
        ("_change_type LIKE 'update%'", []),
        ("_commit_version = 7", ["ins", "dv", "del"]),
        ("_commit_version > 7", []),
        ("_commit_timestamp < timestamp '2023-11-14 22:13:20.123'", []),
        ("_commit_timestamp >= timestamp '2023-11-14 22:13:20.123'", ["ins", "dv", "del"]),
        ("_commit_version = 7 AND p = 'y' AND _change_type = 'insert'", []),
        ("_change_type = 'insert' OR p = 'y'", ["ins", "dv"]),
    ],
)
def test_files_without_wanted_rows_are_left_out(tmp_path: Path, where: str, kept: list[str]) -> None:
    table(tmp_path)
    assert paths(tmp_path, where) == kept


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("_change_type = 'update_preimage'", ["x", "y"]),
        ("_change_type IS NULL", ["x", "y"]),
        ("_change_type = 'insert' AND p = 'x'", ["x"]),
        ("_change_type = 'insert' OR p = 'x'", ["x", "y"]),
        ("p = 'z'", []),
        ("_commit_version < 7 AND _change_type = 'insert'", []),
        ("id = 1000", ["x", "y"]),
    ],
)
def test_a_change_file_is_never_ruled_out_by_the_kind_of_change(tmp_path: Path, where: str, kept: list[str]) -> None:
    table(tmp_path)
    files = [cdc("x", partitionValues={"p": "x"}), cdc("y", partitionValues={"p": "y"})]
    assert paths(tmp_path, where, *files) == kept


def test_a_removed_file_of_no_known_partition_is_refused(tmp_path: Path) -> None:
    table(tmp_path)
    with pytest.raises(ProtocolError, match=r"version 7.*'old\.parquet'.*partition"):
        batch(tmp_path, {"remove": {"path": "old.parquet", "dataChange": True}})


def test_a_table_without_partitions_needs_none(tmp_path: Path) -> None:
    TableBuilder(tmp_path, {"id": "long"}, properties=ON).create()
    [file] = to_scan_files(batch(tmp_path, {"remove": {"path": "old.parquet", "dataChange": True}}), str(tmp_path))
    assert (file.size_bytes, file.partition_values[0]) == (0, "delete")


def test_rows_before_the_selection_are_those_of_the_changes() -> None:
    found = changes(*ACTIONS)
    rows = change_files(found, version=7, timestamp_ms=-1).to_pylist()
    assert [row["path"] for row in rows] == [c.path for c in found]
    assert [row["stats"] for row in rows] == [c.stats for c in found]
    assert dict(rows[0]["partitionValues"]) == {
        "p": "x",
        "_change_type": "insert",
        "_commit_version": "7",
        "_commit_timestamp": "1969-12-31T23:59:59.999000Z",
    }
    selected = [None if c.selected is None else c.selected.offset for c in found]
    assert [row["selected"] and row["selected"]["offset"] for row in rows] == selected


def test_no_changes_are_no_rows(tmp_path: Path) -> None:
    table(tmp_path)
    none, some = batch(tmp_path), batch(tmp_path, *ACTIONS)
    assert none.num_rows == 0 and none.schema.equals(some.schema)
