"""Batches of a stream: each once in the table, despite repetitions, races and deaths in between."""

from __future__ import annotations

import logging
import pickle
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from delta_pyds.commands.maintain import checkpoint
from delta_pyds.commands.write.request import WriteRequest
from delta_pyds.commands.write.stream import StreamPlan, commit_batch, plan_batch
from delta_pyds.data.write.task import write
from delta_pyds.data.write.task_session import TaskSession
from delta_pyds.errors import (
    CommitOutcomeUnknownError,
    ConcurrentAppendError,
    ConcurrentTransactionError,
    DeltaError,
    MetadataChangedError,
    OptionError,
    UserError,
)
from delta_pyds.log.committer import FileSystemCommitter, ProposedCommit
from delta_pyds.table.snapshot import load_snapshot
from delta_pyds.table.transaction.transaction import Committed
from delta_pyds.tasks.write_state import StreamOrigin, TaskOutput
from delta_pyds.verification.verify import verify
from tests.support.commits import actions
from tests.support.table_builder import TableBuilder
from tests.support.table_writes import batch_of, ids, read_sorted, struct, write_rows

IDS = {"id": "long"}
QUERY = "0b5c9f0e-query"
Rows = Sequence[Mapping[str, Any]]


def plan(path: Path, schema: Any = None, mode: str = "append", application: str | None = None, **request: Any) -> bytes:
    """A plan as it travels: pickled."""
    asked = WriteRequest(str(path), struct(schema or IDS), mode, **request)
    return pickle.dumps(plan_batch(asked, application))


def tasks(planned: bytes, *parts: Rows, schema: Any = None) -> list[TaskOutput]:
    state = pickle.loads(planned).write.state
    incoming = struct(schema or IDS)
    return [write(state, iter(batch_of(part, incoming)), TaskSession(n)) for n, part in enumerate(parts)]


def commit(planned: bytes, batch: int, outputs: list[TaskOutput], query: str | None = QUERY) -> Committed | None:
    opened: StreamPlan = pickle.loads(planned)
    return commit_batch(opened, batch, [StreamOrigin(query, batch)] * len(outputs), outputs)


def run(
    path: Path, batch: int, *parts: Rows, query: str | None = QUERY, schema: Any = None, **given: Any
) -> Committed | None:
    planned = plan(path, schema, **given)
    return commit(planned, batch, tasks(planned, *parts, schema=schema), query)


def data_files(path: Path) -> set[str]:
    return {f.name for f in path.rglob("*.parquet") if "_delta_log" not in f.parts}


def version(path: Path) -> int:
    return load_snapshot(str(path)).version


# --- one batch, one commit


def test_a_batch_is_one_version_that_names_query_and_batch(tmp_path: Path) -> None:
    run(tmp_path, 0, ids(1))
    committed = run(tmp_path, 1, ids(2, 3), ids(4))
    assert committed is not None and committed.version == 1
    found = actions(tmp_path, 1)
    info = found[0]["commitInfo"]
    assert info["operation"] == "STREAMING UPDATE"
    assert info["operationParameters"] == {
        "outputMode": "Append",
        "queryId": QUERY,
        "epochId": "1",
    }
    size = sum(a["add"]["size"] for a in found if "add" in a)
    assert info["operationMetrics"] == {
        "numAddedFiles": "2",
        "numRemovedFiles": "0",
        "numOutputRows": "3",
        "numOutputBytes": str(size),
    }
    assert info["isBlindAppend"] is True
    (txn,) = [a["txn"] for a in found if "txn" in a]
    assert (txn["appId"], txn["version"]) == (QUERY, 1) and txn["lastUpdated"] > 0
    assert read_sorted(tmp_path, "id") == [1, 2, 3, 4]


def test_the_complete_mode_replaces_all_rows(tmp_path: Path) -> None:
    run(tmp_path, 0, ids(1, 2), mode="overwrite")
    run(tmp_path, 1, ids(3), mode="overwrite", user_metadata="nightly")
    info = actions(tmp_path, 1)[0]["commitInfo"]
    assert info["operationParameters"]["outputMode"] == "Complete"
    assert info["operationMetrics"]["numRemovedFiles"] == "1"
    assert info["isBlindAppend"] is False and info["userMetadata"] == "nightly"
    assert read_sorted(tmp_path, "id") == [3]


def test_the_first_batch_creates_the_table_even_without_rows(tmp_path: Path) -> None:
    committed = run(tmp_path, 0, [], partition_by=(("id",),), schema={"id": "long", "s": "string"})
    assert committed is not None and committed.version == 0
    assert load_snapshot(str(tmp_path)).configuration.partition_columns == ("id",)


def test_a_batch_that_changes_nothing_makes_no_commit(tmp_path: Path) -> None:
    run(tmp_path, 0, ids(1))
    assert run(tmp_path, 1, [], []) is None
    assert run(tmp_path, 1, []) is None
    assert run(tmp_path, 2, ids(), mode="overwrite") is not None  # rows leave
    assert run(tmp_path, 3, ids(), mode="overwrite") is None
    assert version(tmp_path) == 1


def test_a_batch_without_rows_still_brings_its_new_column(tmp_path: Path) -> None:
    run(tmp_path, 0, ids(1))
    run(tmp_path, 1, [], schema={"id": "long", "x": "string"}, merge_schema=True)
    assert load_snapshot(str(tmp_path)).schema.names == ("id", "x")


def test_identity_values_go_on_from_batch_to_batch(tmp_path: Path) -> None:
    identity = {
        "name": "n",
        "type": "long",
        "nullable": True,
        "metadata": {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": False},
    }
    schema = {"type": "struct", "fields": [identity, {"name": "id", "type": "long", "nullable": True, "metadata": {}}]}
    TableBuilder(tmp_path, schema, protocol=(1, 6)).create()
    for batch in range(3):
        run(tmp_path, batch, ids(batch), ids(batch))
    values = read_sorted(tmp_path, "n")
    assert len(set(values)) == 6 and None not in values
    with pytest.raises(DeltaError) as error:
        plan(tmp_path, {"n": "long", "id": "long"})
    assert error.value.code == "DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED"


# --- what is repeated


def test_a_repeated_batch_is_not_written_again_and_leaves_no_files(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    run(tmp_path, 0, ids(1))
    run(tmp_path, 1, ids(2))
    before = data_files(tmp_path)
    assert run(tmp_path, 1, ids(2), ids(2)) is None
    assert version(tmp_path) == 1 and data_files(tmp_path) == before
    assert "Batch 1" in caplog.text and caplog.records[-1].levelno == logging.INFO
    assert read_sorted(tmp_path, "id") == [1, 2]


def test_a_repeated_batch_is_known_after_a_checkpoint_too(tmp_path: Path) -> None:
    for batch in range(3):
        run(tmp_path, batch, ids(batch))
    checkpoint(str(tmp_path))
    assert run(tmp_path, 2, ids(2)) is None
    assert run(tmp_path, 3, ids(3)) is not None
    assert read_sorted(tmp_path, "id") == [0, 1, 2, 3]


def test_a_repeated_complete_batch_removes_nothing(tmp_path: Path) -> None:
    run(tmp_path, 0, ids(1), mode="overwrite")
    write_rows(tmp_path, IDS, ids(7))
    assert run(tmp_path, 0, ids(1), mode="overwrite") is None
    assert read_sorted(tmp_path, "id") == [1, 7]


def test_an_old_checkpoint_is_told_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for batch in range(3):
        run(tmp_path, batch, ids(batch))
    assert run(tmp_path, 1, ids(1)) is None
    assert "already has its batch 2" in caplog.text and "checkpoint" in caplog.text


def test_two_queries_do_not_know_each_other(tmp_path: Path) -> None:
    run(tmp_path, 0, ids(1))
    run(tmp_path, 0, ids(2), query="other")
    run(tmp_path, 1, ids(3), query="other")
    run(tmp_path, 1, ids(4))
    assert read_sorted(tmp_path, "id") == [1, 2, 3, 4]


def test_an_application_of_the_users_counts_in_place_of_the_query(tmp_path: Path) -> None:
    run(tmp_path, 0, ids(1), application="mine")
    assert run(tmp_path, 0, ids(1), application="mine", query="after a restart") is None
    run(tmp_path, 1, ids(2), application="mine", query=None)
    assert load_snapshot(str(tmp_path)).transactions.keys() == {"mine"}
    assert actions(tmp_path, 0)[0]["commitInfo"]["operationParameters"]["queryId"] == QUERY
    assert actions(tmp_path, 1)[0]["commitInfo"]["operationParameters"]["queryId"] == "mine"


def test_an_application_that_another_checkpoint_used_is_refused(tmp_path: Path) -> None:
    for batch in range(3):
        run(tmp_path, batch, ids(batch), application="mine")
    before = data_files(tmp_path)
    with pytest.raises(OptionError, match="txnAppId") as error:
        run(tmp_path, 0, ids(100), application="mine", query="a new checkpoint")
    assert "batch 0" in error.value.message and "batch 2" in error.value.message
    assert data_files(tmp_path) == before


# --- what cannot be told


def test_without_any_id_nothing_is_committed(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="txnAppId") as error:
        run(tmp_path, 0, ids(1), query=None)
    assert "stay the same when the query is restarted" in error.value.message
    assert not data_files(tmp_path) and not (tmp_path / "_delta_log").exists()


@pytest.mark.parametrize(
    "origins",
    [
        [StreamOrigin(QUERY, 4), StreamOrigin(QUERY, 5)],
        [StreamOrigin(QUERY, 4), StreamOrigin(QUERY, 4)],
        [StreamOrigin(QUERY, 5), StreamOrigin("other", 5)],
    ],
)
def test_tasks_of_another_batch_are_refused(tmp_path: Path, origins: list[StreamOrigin]) -> None:
    planned = plan(tmp_path)
    outputs = tasks(planned, ids(1), ids(2))
    with pytest.raises(DeltaError, match="batch 5") as error:
        commit_batch(pickle.loads(planned), 5, origins, outputs)
    assert error.value.code == "DELTA_STREAMING_BATCH_MISMATCH"
    assert not data_files(tmp_path)


def test_a_task_that_knows_no_batch_takes_that_of_the_commit(tmp_path: Path) -> None:
    planned = plan(tmp_path)
    commit_batch(pickle.loads(planned), 5, [StreamOrigin(QUERY, None)], tasks(planned, ids(1)))
    assert load_snapshot(str(tmp_path)).transactions[QUERY].version == 5


# --- what happens between plan and commit


def test_an_append_follows_others(tmp_path: Path) -> None:
    run(tmp_path, 0, ids(1))
    planned = plan(tmp_path)
    outputs = tasks(planned, ids(2))
    write_rows(tmp_path, IDS, ids(10))
    run(tmp_path, 0, ids(11), query="other")
    committed = commit(planned, 1, outputs)
    assert committed is not None and committed.version == 3 and committed.winners == (1, 2)
    assert read_sorted(tmp_path, "id") == [1, 2, 10, 11]


def test_another_run_of_the_same_query_that_was_first_is_a_conflict_and_then_known(tmp_path: Path) -> None:
    run(tmp_path, 0, ids(1))
    planned = plan(tmp_path)
    outputs = tasks(planned, ids(2))
    run(tmp_path, 1, ids(2))
    with pytest.raises(ConcurrentTransactionError) as error:
        commit(planned, 1, outputs)
    assert error.value.code == "DELTA_CONCURRENT_TRANSACTION" and QUERY in error.value.message
    assert run(tmp_path, 1, ids(2)) is None  # the restart
    assert read_sorted(tmp_path, "id") == [1, 2]


def test_two_runs_that_create_the_table_make_one(tmp_path: Path) -> None:
    first, second = plan(tmp_path), plan(tmp_path)
    outputs = tasks(first, ids(1)), tasks(second, ids(1))
    commit(first, 0, outputs[0])
    with pytest.raises(DeltaError) as error:
        commit(second, 0, outputs[1])
    assert error.value.code == "DELTA_PROTOCOL_CHANGED"
    assert run(tmp_path, 0, ids(1)) is None
    assert read_sorted(tmp_path, "id") == [1]


@pytest.mark.parametrize("exists", [True, False])
def test_an_attempt_that_is_told_twice_to_commit_keeps_its_files(tmp_path: Path, exists: bool) -> None:
    if exists:
        run(tmp_path, 0, ids(1))
    planned = plan(tmp_path)
    outputs = tasks(planned, ids(2))
    commit(planned, 1, outputs)
    with pytest.raises(DeltaError):
        commit(planned, 1, outputs)
    assert read_sorted(tmp_path, "id") == ([1, 2] if exists else [2])


def test_the_complete_mode_does_not_replace_rows_that_it_did_not_see(tmp_path: Path) -> None:
    run(tmp_path, 0, ids(1), mode="overwrite")
    planned = plan(tmp_path, mode="overwrite")
    outputs = tasks(planned, ids(2))
    write_rows(tmp_path, IDS, ids(10))
    with pytest.raises(ConcurrentAppendError):
        commit(planned, 1, outputs)
    assert len(data_files(tmp_path)) == 2
    run(tmp_path, 1, ids(2), mode="overwrite")
    assert read_sorted(tmp_path, "id") == [2]


def test_a_schema_that_others_changed_is_a_conflict(tmp_path: Path) -> None:
    run(tmp_path, 0, ids(1))
    planned = plan(tmp_path)
    outputs = tasks(planned, ids(2))
    write_rows(tmp_path, {"id": "long", "x": "long"}, [], merge_schema=True)
    with pytest.raises(MetadataChangedError):
        commit(planned, 1, outputs)
    run(tmp_path, 1, ids(2))
    assert read_sorted(tmp_path, "id") == [1, 2]


def test_a_table_that_was_replaced_by_another_gets_nothing(tmp_path: Path) -> None:
    run(tmp_path, 0, ids(1))
    planned = plan(tmp_path)
    shutil.rmtree(tmp_path / "_delta_log")
    outputs = tasks(planned, ids(2))
    write_rows(tmp_path, IDS, ids(10))
    with pytest.raises(UserError) as error:
        commit(planned, 1, outputs)
    assert error.value.code == "DELTA_TABLE_ID_MISMATCH"
    assert read_sorted(tmp_path, "id") == [10] and version(tmp_path) == 0


def test_a_table_that_was_deleted_does_not_come_back(tmp_path: Path) -> None:
    run(tmp_path, 0, ids(1))
    planned = plan(tmp_path)
    outputs = tasks(planned, ids(2))
    shutil.rmtree(tmp_path / "_delta_log")
    with pytest.raises(DeltaError):
        commit(planned, 1, outputs)
    assert not (tmp_path / "_delta_log").exists()


def test_files_of_the_log_that_went_since_the_plan_are_replaced_by_others(tmp_path: Path) -> None:
    for batch in range(4):
        run(tmp_path, batch, ids(batch))
    planned = plan(tmp_path)
    outputs = tasks(planned, ids(4))
    checkpoint(str(tmp_path))
    for gone in range(3):
        (tmp_path / "_delta_log" / f"{gone:020d}.json").unlink()
    committed = commit(planned, 4, outputs)
    assert committed is not None and committed.version == 4
    assert read_sorted(tmp_path, "id") == [0, 1, 2, 3, 4]


def test_an_unknown_outcome_keeps_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path, 0, ids(1))
    propose = FileSystemCommitter.propose

    def lost(self: FileSystemCommitter, commit: ProposedCommit) -> bool:
        propose(self, commit)
        raise CommitOutcomeUnknownError("the answer was lost", table=str(tmp_path))

    monkeypatch.setattr(FileSystemCommitter, "propose", lost)
    with pytest.raises(CommitOutcomeUnknownError):
        run(tmp_path, 1, ids(2))
    monkeypatch.undo()
    assert run(tmp_path, 1, ids(2)) is None
    assert read_sorted(tmp_path, "id") == [1, 2]


# --- refused before a task starts


def test_the_complete_mode_and_an_append_only_table_exclude_each_other(tmp_path: Path) -> None:
    run(tmp_path, 0, ids(1), properties={"delta.appendOnly": "true"})
    with pytest.raises(UserError, match=r"delta\.appendOnly") as error:
        plan(tmp_path, mode="overwrite")
    assert error.value.code == "DELTA_CANNOT_MODIFY_APPEND_ONLY"


@pytest.mark.parametrize(
    "data_type",
    [
        "void",
        {"type": "array", "elementType": "void", "containsNull": True},
        {"type": "map", "keyType": "string", "valueType": "void", "valueContainsNull": True},
        {"type": "struct", "fields": [{"name": "v", "type": "void", "nullable": True, "metadata": {}}]},
    ],
)
def test_a_column_of_no_type_is_refused(tmp_path: Path, data_type: Any) -> None:
    with pytest.raises(UserError, match="'nothing'") as error:
        plan(tmp_path, {"id": "long", "nothing": data_type})
    assert error.value.code == "DELTA_NULL_SCHEMA_IN_STREAMING_WRITE"


def test_a_column_that_the_table_lacks_is_refused(tmp_path: Path) -> None:
    run(tmp_path, 0, ids(1))
    with pytest.raises(UserError, match="mergeSchema") as error:
        plan(tmp_path, {"id": "long", "x": "string"})
    assert error.value.code == "DELTA_METADATA_MISMATCH"


def test_what_many_batches_leave_is_a_sound_table(tmp_path: Path) -> None:
    for batch in range(25):
        run(tmp_path, batch, ids(batch))
        if batch % 5 == 0:
            run(tmp_path, batch, ids(batch))
    log = tmp_path / "_delta_log"
    assert sorted(int(f.name[:20]) for f in log.glob("*.checkpoint*.parquet")) == [10, 20]
    assert len(list(log.glob("*.crc"))) == 25
    report = verify(str(tmp_path))
    assert report.ok and not report.findings, str(report)
    assert read_sorted(tmp_path, "id") == list(range(25))
