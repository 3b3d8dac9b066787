from __future__ import annotations

import json
import sys
from types import SimpleNamespace
from typing import Any

import pytest

import delta_pyds
from delta_pyds.log.commit_writer import encode_commit
from delta_pyds.protocol.actions import CommitInfo
from delta_pyds.table.transaction.commit_info import Operation, commit_info, engine_info, parameter_value
from tests.support.memory_storage import MemoryStorage
from tests.support.transactions import QUIET, Table, file


def made(operation: Operation, **given: Any) -> CommitInfo:
    values: dict[str, Any] = {
        "timestamp_ms": 5,
        "in_commit_timestamp": None,
        "read_version": 3,
        "isolation_level": "Serializable",
        "is_blind_append": True,
        "data_change": True,
        "txn_id": "t",
    }
    return commit_info(operation, **{**values, **given})


def written(info: CommitInfo) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(encode_commit([info]))["commitInfo"]
    return found


def test_it_reads_like_the_references() -> None:
    operation = Operation(
        "WRITE",
        {"mode": "Append", "partitionBy": ["a", "b c"], "predicate": ["(x = 1)"], "canMergeSchema": True},
        {"numFiles": 2, "numOutputRows": 10, "numOutputBytes": "1006"},
    )
    info = made(operation, user_metadata="u", tags={"k": "v"}, in_commit_timestamp=6)
    assert written(info) == {
        "inCommitTimestamp": 6,
        "timestamp": 5,
        "operation": "WRITE",
        "operationParameters": {
            "mode": "Append",
            "partitionBy": '["a","b c"]',
            "predicate": '["(x = 1)"]',
            "canMergeSchema": True,
        },
        "operationMetrics": {"numFiles": "2", "numOutputRows": "10", "numOutputBytes": "1006"},
        "readVersion": 3,
        "isolationLevel": "Serializable",
        "isBlindAppend": True,
        "dataChange": True,
        "userMetadata": "u",
        "tags": {"k": "v"},
        "engineInfo": engine_info(),
        "txnId": "t",
    }


def test_what_is_not_known_is_left_out_and_empty_maps_stay() -> None:
    line = written(made(Operation("CREATE TABLE"), read_version=None, is_blind_append=False, data_change=False))
    assert not {"readVersion", "userMetadata", "tags", "inCommitTimestamp"} & line.keys()
    assert line["operationParameters"] == line["operationMetrics"] == {}
    assert line["isBlindAppend"] is line["dataChange"] is False


def test_version_zero_can_be_the_version_that_was_read() -> None:
    assert written(made(Operation("WRITE"), read_version=0))["readVersion"] == 0


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("Append", "Append"),
        ('["a"]', '["a"]'),
        (True, True),
        (7, 7),
        (None, None),
        ([], "[]"),
        (("a", "ü"), '["a","ü"]'),
        ([["a", 1], None], '[["a",1],null]'),
        ({"delta.appendOnly": "true"}, '{"delta.appendOnly":"true"}'),
        ([{"actionType": "update"}], '[{"actionType":"update"}]'),
        (1.5, "1.5"),
    ],
)
def test_parameters_with_parts_become_text(value: object, expected: object) -> None:
    assert parameter_value(value) == expected


def test_metrics_are_text() -> None:
    info = made(Operation("WRITE", metrics={"a": 1, "b": "2", "c": True}))
    assert info.operation_metrics == {"a": "1", "b": "2", "c": "true"}


def test_the_engine_is_this_library_and_spark_where_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = f"delta_pyds/{delta_pyds.__version__}"
    monkeypatch.delitem(sys.modules, "pyspark", raising=False)
    assert engine_info() == ours
    monkeypatch.setitem(sys.modules, "pyspark", SimpleNamespace(__version__="4.3.0"))
    assert engine_info() == f"Apache-Spark/4.3.0 {ours}"


def test_the_history_shows_it() -> None:
    from delta_pyds.table.history import history

    table = Table(MemoryStorage())
    table.create()
    transaction = table.start()
    transaction.add(file("a"))
    done = transaction.commit(
        Operation("WRITE", {"partitionBy": ["p"]}, {"numFiles": 1}), user_metadata="mine", policy=QUIET
    )
    newest = next(iter(history(table.storage, table.root)))
    assert newest.commit_info == done.info
    assert newest.commit_info is not None
    assert newest.commit_info.operation_parameters == {"partitionBy": '["p"]'}
    assert newest.commit_info.user_metadata == "mine"


def test_every_transaction_has_an_id_of_its_own() -> None:
    table = Table(MemoryStorage())
    ids = {table.create().info.txn_id, *(table.append(f"f{i}").info.txn_id for i in range(3))}
    assert len(ids) == 4 and all(len(str(i)) == 36 for i in ids)
