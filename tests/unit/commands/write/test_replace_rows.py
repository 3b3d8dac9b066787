"""Rows of many files are replaced by tasks: whatever their number, the table is the same; a failure leaves nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from delta_pyds.commands.row_changes import finish
from delta_pyds.commands.task_runner import LocalRunner
from delta_pyds.commands.write.request import WriteRequest
from delta_pyds.commands.write.write import commit_write, discard_write, plan_write
from delta_pyds.data.write.task import write
from delta_pyds.data.write.task_session import TaskSession
from delta_pyds.errors import ConflictError, StorageError
from delta_pyds.storage.local import LocalStorage
from delta_pyds.table.transaction.transaction import Committed
from delta_pyds.tasks.write_state import TaskOutput
from delta_pyds.verification.verify import verify
from tests.support.data_files import files
from tests.support.table_writes import batch_of, ids, read_rows, read_sorted, struct, write_rows

IDS = {"id": "long"}
CDF = {"delta.enableChangeDataFeed": "true", "delta.enableRowTracking": "true"}
VECTORS = {"delta.enableDeletionVectors": "true"}


def table(path: Path, **properties: str) -> None:
    """Ten files of ten rows."""
    parts = [ids(*range(n * 10, n * 10 + 10)) for n in range(10)]
    write_rows(path, IDS, parts, properties=properties)


def replaced(path: Path, where: str, new: list[dict[str, Any]], threads: int) -> Committed | None:
    request = WriteRequest(table_root=str(path), incoming=struct(IDS), mode="overwrite", replace_where=where)
    plan = plan_write(request)
    assert plan.state is not None
    output = write(plan.state, iter(batch_of(new, struct(IDS))), TaskSession(0))
    return commit_write(plan, [output], runner=LocalRunner(threads, discard=lambda made: discard_write(plan, made)))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("properties", [{}, VECTORS, CDF], ids=["plain", "vectors", "change feed"])
def test_many_files_are_dealt_out_to_tasks(tmp_path: Path, properties: dict[str, str], threads: int) -> None:
    table(tmp_path, **properties)
    before = {r["id"]: r for r in read_rows(tmp_path)}
    committed = replaced(tmp_path, "id % 7 = 0 OR id BETWEEN 20 AND 29", ids(21, 70), threads)
    assert committed is not None
    stay = [n for n in before if n % 7 and not 20 <= n <= 29]
    assert read_sorted(tmp_path, "id") == sorted([*stay, 21, 70])
    metrics = committed.info.operation_metrics or {}
    assert metrics["numDeletedRows"] == str(100 - len(stay))
    assert list(verify(str(tmp_path)).findings) == []
    vectors = [f for f in files(tmp_path) if f.endswith(".bin")]
    assert len(vectors) == (1 if properties == VECTORS else 0)


def test_a_task_that_fails_leaves_the_table_and_the_folder_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table(tmp_path)
    before = files(tmp_path)
    rewrite = finish.rewrite_files
    calls: list[int] = []

    def full(task: Any) -> TaskOutput:
        calls.append(1)
        if len(calls) == 3:
            raise StorageError("the disk is full")
        return rewrite(task)

    monkeypatch.setattr(finish, "rewrite_files", full)
    with pytest.raises(StorageError, match="full"):
        replaced(tmp_path, "id % 2 = 0", [], threads=3)
    assert len(calls) == 3
    assert files(tmp_path) == before
    assert read_sorted(tmp_path, "id") == list(range(100))


@pytest.mark.parametrize("properties", [{}, VECTORS, CDF], ids=["plain", "vectors", "change feed"])
def test_a_lost_race_leaves_no_file_behind(tmp_path: Path, properties: dict[str, str]) -> None:
    table(tmp_path, **properties)
    request = WriteRequest(table_root=str(tmp_path), incoming=struct(IDS), mode="overwrite", replace_where="id < 15")
    plan = plan_write(request)
    assert plan.state is not None
    output = write(plan.state, iter(batch_of(ids(3), struct(IDS))), TaskSession(0))
    write_rows(tmp_path, IDS, ids(1), mode="overwrite", replace_where="id = 1")
    before = files(tmp_path) - {file.path for file in output.files}
    with pytest.raises(ConflictError):
        commit_write(plan, [output])
    assert files(tmp_path) == before
    assert read_sorted(tmp_path, "id") == list(range(100))


def test_each_file_is_opened_once_and_its_vector_loaded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table(tmp_path, **VECTORS)
    replaced(tmp_path, "id % 10 = 3", [], 1)
    seen: list[str] = []
    opened, read = LocalStorage.parquet_source, LocalStorage.read
    monkeypatch.setattr(LocalStorage, "parquet_source", lambda self, p: (seen.append(p), opened(self, p))[1])
    monkeypatch.setattr(LocalStorage, "read", lambda self, p, *some: (seen.append(p), read(self, p, *some))[1])
    committed = replaced(tmp_path, "id % 10 = 4 OR id < 10", [], 1)
    assert committed is not None
    assert (committed.info.operation_metrics or {})["numDeletedRows"] == "18"
    assert len([p for p in seen if p.endswith(".parquet") and "_delta_log" not in p]) == 10
    assert len([p for p in seen if p.endswith(".bin")]) == 10
    monkeypatch.undo()
    assert read_sorted(tmp_path, "id") == [n for n in range(10, 100) if n % 10 not in (3, 4)]
    assert list(verify(str(tmp_path)).findings) == []
