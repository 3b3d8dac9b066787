"""The sink's classes without Spark: what tasks tell the commit, and what each process may do."""

from __future__ import annotations

import importlib.machinery
import pickle
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructType

from delta_pyds.errors import DeltaError, OptionError
from delta_pyds.spark.planning import driver
from delta_pyds.spark.source import stream_writer, writer
from delta_pyds.spark.source.datasource import DeltaDataSource
from delta_pyds.spark.source.stream_writer import DeltaStreamWriter, StreamMessage, commits_batches
from tests.support.table_writes import read_sorted

SCHEMA = StructType().add("id", LongType())
PROPERTIES = {"sql.streaming.queryId": "query-1", "streaming.sql.batchId": "0"}


def entered(monkeypatch: pytest.MonkeyPatch, partition: int, properties: dict[str, str]) -> None:
    """Be a task of Spark, as far as the sink looks at it."""
    context = types.SimpleNamespace(partitionId=lambda: partition, getLocalProperty=properties.get)
    for module in (stream_writer, writer):
        monkeypatch.setattr(module, "TaskContext", types.SimpleNamespace(get=lambda: context))


def planned(path: Path, **options: str) -> DeltaStreamWriter:
    made = DeltaDataSource({"path": str(path), **options}).streamWriter(SCHEMA, False)
    assert isinstance(made, DeltaStreamWriter)
    return made


def task(
    sink: DeltaStreamWriter,
    monkeypatch: pytest.MonkeyPatch,
    *ids: int,
    partition: int = 0,
    properties: dict[str, str] | None = None,
) -> StreamMessage:
    entered(monkeypatch, partition, PROPERTIES if properties is None else properties)
    travelled: DeltaStreamWriter = pickle.loads(pickle.dumps(sink))
    message = travelled.write(iter([pa.record_batch({"id": pa.array(ids, pa.int64())})]))
    assert isinstance(message, StreamMessage)
    return message


def committing(path: Path, monkeypatch: pytest.MonkeyPatch, **options: str) -> DeltaStreamWriter:
    """The writer as the commit worker gets it."""
    monkeypatch.setitem(sys.modules, "pyspark.sql.worker.python_streaming_sink_runner", types.ModuleType("stub"))
    made = planned(path, **options)
    monkeypatch.delitem(sys.modules, "pyspark.sql.worker.python_streaming_sink_runner")
    return made


def test_the_commit_goes_by_the_plan_of_the_first_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = planned(tmp_path)
    messages = [task(sink, monkeypatch, n, partition=n) for n in range(3)]
    assert [m.plan is not None for m in messages] == [True, False, False]
    assert {m.origin.query_id for m in messages} == {"query-1"}
    committing(tmp_path, monkeypatch).commit([*messages], 0)
    assert read_sorted(tmp_path, "id") == [0, 1, 2]


def test_the_commit_worker_does_not_look_at_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("delta_pyds.commands.write.stream.plan_batch", None)
    assert committing(Path("/nowhere"), monkeypatch, mergeSchema="no boolean").state is None


@pytest.mark.parametrize("own_name", [True, False])
def test_the_commit_worker_is_known_however_it_was_started(monkeypatch: pytest.MonkeyPatch, own_name: bool) -> None:
    name = "pyspark.sql.worker.python_streaming_sink_runner"
    assert not commits_batches()
    stub = types.ModuleType(name)
    if own_name:
        monkeypatch.setitem(sys.modules, name, stub)
    else:
        stub.__spec__ = importlib.machinery.ModuleSpec(name, None)
        monkeypatch.setitem(sys.modules, "__main__", stub)
    assert commits_batches()


def test_a_task_that_knows_no_query_refuses_before_it_takes_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = planned(tmp_path)
    entered(monkeypatch, 0, {})

    def rows() -> Iterator[pa.RecordBatch]:
        yield pytest.fail("a row was taken")

    with pytest.raises(OptionError, match="txnAppId"):
        sink.write(rows())


def test_a_batch_that_is_given_up_deletes_what_its_tasks_wrote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They delete where they wrote: a table that does not exist yet has a new location at each call of its catalog."""
    catalog = f"sqlite://{tmp_path}/c.db"
    sink = DeltaDataSource({"table": "main.new", "catalog": catalog}).streamWriter(SCHEMA, False)
    assert isinstance(sink, DeltaStreamWriter)
    message = task(sink, monkeypatch, 1, 2)
    assert len(list(tmp_path.rglob("*.parquet"))) == 1
    given_up = committing(tmp_path, monkeypatch, table="main.new", catalog=catalog)
    given_up.abort([message, None], 0)
    assert list(tmp_path.rglob("*.parquet")) == []


def test_an_application_of_the_users_needs_no_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    message = task(planned(tmp_path, txnAppId="mine"), monkeypatch, 1, properties={})
    committing(tmp_path, monkeypatch, txnAppId="mine").commit([message], 0)
    committing(tmp_path, monkeypatch, txnAppId="mine").commit(
        [task(planned(tmp_path, txnAppId="mine"), monkeypatch, 1, properties={})], 0
    )
    assert read_sorted(tmp_path, "id") == [1]


def test_nothing_about_the_table_keeps_a_sink_from_travelling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: Any) -> None:
        raise ValueError("a fault of opening it to read")

    monkeypatch.setattr(driver, "open_table", fails)
    sink = DeltaDataSource({"path": str(tmp_path), "mergeSchema": "true"})
    pickle.loads(pickle.dumps(sink)).streamWriter(SCHEMA, False)
    assert not caplog.records  # of an option that is a writer's


def test_without_the_first_task_nothing_is_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    message = task(planned(tmp_path), monkeypatch, 1, partition=1)
    with pytest.raises(DeltaError, match="partition 0"):
        committing(tmp_path, monkeypatch).commit([message], 0)
    assert not (tmp_path / "_delta_log").exists()


def test_abort_deletes_files_only_while_no_commit_was_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = planned(tmp_path)
    messages: list[Any] = [task(sink, monkeypatch, n, partition=n) for n in range(3)]
    end = committing(tmp_path, monkeypatch)
    end.abort([*messages], 0)
    assert len(list(tmp_path.glob("*.parquet"))) == 3
    # the message of partition 0, and the plan with it, is missing
    end.abort([None, *messages[1:]], 0)
    assert len(list(tmp_path.glob("*.parquet"))) == 1
    end.abort([messages[0], None, None], 0)
    assert not list(tmp_path.glob("*.parquet"))
