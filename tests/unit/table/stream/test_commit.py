"""Which files of a commit a stream reads, and which commits it refuses. The table is the reference's."""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

from delta_pyds.columnar.scan_files import to_scan_files
from delta_pyds.errors import UserError
from delta_pyds.log.commit_reader import decode_commit
from delta_pyds.log.committer import LoggedCommit
from delta_pyds.log.file_table import file_schema
from delta_pyds.log.listing import LogFile
from delta_pyds.protocol.paths import LogFileKind, LogFileName, commit_path
from delta_pyds.table.stream.commit import STREAM_FIELDS, StreamRules, data_files

ROOT = "/tables/t"
VECTOR = {"storageType": "i", "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", "sizeInBytes": 40}
CHANGES, DELETE = "DELTA_SOURCE_TABLE_IGNORE_CHANGES", "DELTA_SOURCE_IGNORE_DELETE"


def commit(*actions: dict[str, Any], operation: str | None = "WRITE", version: int = 7) -> LoggedCommit:
    lines: list[dict[str, Any]] = list(actions)
    if operation is not None:
        lines.insert(0, {"commitInfo": {"operation": operation}})
    path = commit_path(ROOT, version)
    data = "\n".join(json.dumps(line) for line in lines).encode()
    file = LogFile(path, version, len(data), 0, LogFileName(LogFileKind.COMMIT, version))
    return LoggedCommit(version, file, decode_commit(data, path))


def add(path: str, data_change: bool = True, **fields: Any) -> dict[str, Any]:
    body = {"path": path, "partitionValues": {}, "size": 10, "modificationTime": 5, "dataChange": data_change}
    return {"add": body | fields}


def remove(path: str, data_change: bool = True, **fields: Any) -> dict[str, Any]:
    return {"remove": {"path": path, "deletionTimestamp": 5, "dataChange": data_change} | fields}


def paths(one: LoggedCommit, rules: StreamRules | None = None) -> list[str]:
    found = data_files(one, rules or StreamRules(), ROOT)
    return [str(path) for path in found.column("path").to_pylist()]


# --- the rows


def test_rows_are_the_files_in_the_order_of_the_commit() -> None:
    one = commit(add("z"), {"txn": {"appId": "a", "version": 1}}, add("a"), add("m"))
    assert paths(one) == ["z", "a", "m"]


def test_a_file_that_is_added_twice_is_read_once_as_it_is_in_the_table() -> None:
    one = commit(add("a"), add("b"), add("a", size=20), add("b", deletionVector=VECTOR | {"cardinality": 6}))
    assert paths(one) == ["a", "b", "b"]  # a deletion vector makes another file of it
    assert data_files(one, StreamRules(), ROOT).column("size").to_pylist() == [20, 10, 10]


def test_a_row_says_all_that_planning_and_tasks_need() -> None:
    full = add(
        "p=1/a%20b",
        partitionValues={"p": "1", "q": None},
        size=123,
        modificationTime=456,
        stats='{"numRecords":3}',
        deletionVector=VECTOR | {"cardinality": 6},
        baseRowId=40,
        defaultRowCommitVersion=7,
    )
    batch = data_files(commit(full, add("bare")), StreamRules(), ROOT)
    assert (
        *("path", "size", "deletionVector", "baseRowId", "defaultRowCommitVersion"),
        *("partitionValues", "stats", "modificationTime"),
    ) == STREAM_FIELDS
    assert batch.schema.equals(file_schema(STREAM_FIELDS))
    first, second = batch.to_pylist()
    vector = {**VECTOR, "offset": None, "cardinality": 6, "maxRowIndex": None}
    assert first == {
        "path": "p=1/a%20b",
        "size": 123,
        "deletionVector": vector,
        "baseRowId": 40,
        "defaultRowCommitVersion": 7,
        "partitionValues": [("p", "1"), ("q", None)],
        "stats": '{"numRecords":3}',
        "modificationTime": 456,
    }
    assert second["deletionVector"] is second["baseRowId"] is second["stats"] is None
    [scanned, _] = to_scan_files(batch, ROOT)
    assert scanned.path == f"{ROOT}/p=1/a b"
    assert scanned.deletion_vector is not None
    assert scanned.deletion_vector.cardinality == 6


@pytest.mark.parametrize(
    "actions",
    [
        [],
        [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}],
        [{"metaData": {"id": "x", "schemaString": "{}", "partitionColumns": [], "format": {"provider": "parquet"}}}],
        [{"txn": {"appId": "a", "version": 1}}],
        [{"domainMetadata": {"domain": "d", "configuration": "{}", "removed": False}}],
        [{"cdc": {"path": "_change_data/c", "partitionValues": {}, "size": 1, "dataChange": False}}],
        [{"somethingOfLater": {}}],
    ],
)
def test_a_commit_without_files_gives_no_rows_of_the_same_schema(actions: Sequence[dict[str, Any]]) -> None:
    batch = data_files(commit(*actions), StreamRules(), ROOT)
    assert batch.num_rows == 0
    assert batch.schema.equals(file_schema(STREAM_FIELDS))


def test_files_that_are_only_rearranged_are_no_rows_and_no_change() -> None:
    one = commit(add("big", False), remove("a", False), remove("b", False), operation="OPTIMIZE")
    assert paths(one) == []


def test_new_data_beside_rearranged_files_is_read_and_alone_is_counted() -> None:
    assert paths(commit(add("big", False), remove("a", False), add("new"), add("newer"))) == ["new", "newer"]


def test_a_file_without_data_change_said_counts() -> None:
    """Old writers leave it out; what is not said must not be lost."""
    assert paths(commit({"add": {"path": "a", "partitionValues": {}, "size": 1, "modificationTime": 1}})) == ["a"]


# --- the rules

ALL_RULES = [StreamRules(*given) for given in product((False, True), repeat=3)]


@pytest.mark.parametrize("rules", ALL_RULES, ids=str)
def test_of_deletes_alone(rules: StreamRules) -> None:
    one = commit(remove("a"), remove("b"), operation="DELETE")
    if rules.ignore_deletes or rules.ignore_changes or rules.skip_change_commits:
        assert paths(one, rules) == []
    else:
        assert refused(one, rules).code == DELETE


@pytest.mark.parametrize("rules", ALL_RULES, ids=str)
@pytest.mark.parametrize(
    "actions",
    [
        [remove("a"), add("b"), add("c")],
        [add("b"), add("c"), remove("a")],
        [add("b"), add("c"), remove("a"), remove("x", False), add("y", False)],
    ],
    ids=["removed first", "added first", "with rearranged files"],
)
def test_of_changes(rules: StreamRules, actions: Sequence[dict[str, Any]]) -> None:
    one = commit(*actions, operation="UPDATE")
    if rules.skip_change_commits:
        assert paths(one, rules) == []
    elif rules.ignore_changes:
        assert paths(one, rules) == ["b", "c"]
    else:
        assert refused(one, rules).code == CHANGES


@pytest.mark.parametrize("rules", ALL_RULES, ids=str)
def test_of_rows_deleted_by_a_deletion_vector(rules: StreamRules) -> None:
    one = commit(remove("a"), add("a", deletionVector=VECTOR | {"cardinality": 6}), operation="DELETE")
    if rules.skip_change_commits:
        assert paths(one, rules) == []
    elif rules.ignore_changes:
        assert paths(one, rules) == ["a"]
    else:
        assert refused(one, rules).code == CHANGES


@pytest.mark.parametrize("rules", ALL_RULES, ids=str)
def test_of_appends_all_is_read_whatever_the_rules(rules: StreamRules) -> None:
    assert paths(commit(add("a"), remove("x", False), add("b")), rules) == ["a", "b"]


def test_deletes_beside_rearranged_files_are_deletes() -> None:
    one = commit(remove("a"), add("b", False))
    assert refused(one, StreamRules()).code == DELETE
    assert paths(one, StreamRules(ignore_deletes=True)) == []


def test_a_remove_without_data_change_said_is_a_change() -> None:
    assert refused(commit({"remove": {"path": "a"}}), StreamRules()).code == DELETE


# --- the errors


def refused(one: LoggedCommit, rules: StreamRules) -> UserError:
    with pytest.raises(UserError) as caught:
        data_files(one, rules, ROOT)
    return caught.value


@pytest.mark.parametrize(
    ("actions", "code"), [([remove("p=1/gone")], DELETE), ([add("new"), remove("p=1/gone"), remove("other")], CHANGES)]
)
def test_the_error_says_what_happened_and_what_to_do(actions: Sequence[dict[str, Any]], code: str) -> None:
    error = refused(commit(*actions, operation="MERGE", version=42), StreamRules())
    assert error.code == code
    assert error.parameters == {"version": 42, "operation": "MERGE", "table": ROOT}
    said = ("MERGE", "p=1/gone", "42", ROOT, "ignoreDeletes=true", "skipChangeCommits=true", "ignoreChanges=true")
    for part in (*said, "new checkpoint location", "full refresh"):
        assert part in error.message
    restored = pickle.loads(pickle.dumps(error))
    assert (restored.code, restored.message, restored.parameters) == (error.code, error.message, error.parameters)


@pytest.mark.parametrize("info", [None, {}, {"operation": ""}, {"operation": 3}])
def test_an_operation_that_nobody_named_is_unknown(info: dict[str, Any] | None) -> None:
    lines = [] if info is None else [{"commitInfo": info}]
    error = refused(commit(*lines, remove("a"), operation=None), StreamRules())
    assert error.parameters["operation"] == "unknown"
    assert "unknown" in error.message


def test_an_operation_is_found_wherever_the_commit_names_it() -> None:
    last = {"commitInfo": {"operation": "DELETE"}}
    assert refused(commit(remove("a"), last, operation=None), StreamRules()).parameters["operation"] == "DELETE"


def test_a_large_commit_is_rows_of_arrow() -> None:
    one = commit(*(add(f"f{number}", number % 3 != 0) for number in range(3000)))
    batch = data_files(one, StreamRules(), ROOT)
    assert isinstance(batch, pa.RecordBatch)
    assert batch.column("path").to_pylist() == [f"f{number}" for number in range(3000) if number % 3]
