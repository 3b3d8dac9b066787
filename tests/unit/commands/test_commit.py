"""The one end of commands whose tasks write files: which files are deleted, and which must stay."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import delta_pyds.commands
from delta_pyds.commands.commit import commit_or_discard
from delta_pyds.commands.definition.change import DefinitionOptions
from delta_pyds.commands.definition.unmapping import remove_mapping
from delta_pyds.commands.layout.optimize import plan_compaction, plan_zorder
from delta_pyds.commands.layout.run import run_layout
from delta_pyds.commands.row_changes.delete import run_delete
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.row_changes.result import Place
from delta_pyds.commands.row_changes.update import run_update
from delta_pyds.commands.task_runner import LocalRunner
from delta_pyds.commands.write.request import WriteRequest
from delta_pyds.commands.write.stream import commit_batch, plan_batch
from delta_pyds.commands.write.write import WritePlan, commit_write, plan_write
from delta_pyds.data.write.task import write
from delta_pyds.data.write.task_session import TaskSession
from delta_pyds.errors import (
    CommitOutcomeUnknownError,
    ConflictError,
    DeltaError,
    MetadataChangedError,
    NothingWrittenError,
    StorageError,
)
from delta_pyds.log.committer import FileSystemCommitter, ProposedCommit
from delta_pyds.storage.local import LocalStorage
from delta_pyds.table.snapshot import load_snapshot
from delta_pyds.table.transaction.commit_info import Operation
from delta_pyds.table.transaction.transaction import Transaction
from delta_pyds.tasks.write_state import StreamOrigin, TaskOutput
from delta_pyds.verification.verify import verify
from tests.support.planned_changes import planned_delete, planned_update
from tests.support.table_writes import batch_of, ids, read_sorted, struct, write_rows

SCHEMA = {"id": "long"}
VECTORS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}
MAPPING = {"delta.columnMapping.mode": "name"}
OPTIONS = CommandOptions()
HERE = Place("process", "a test says so.")
ROWS = list(range(20))


def planned(path: Path, mode: Any = "append", **request: Any) -> tuple[WritePlan, TaskOutput]:
    plan = plan_write(WriteRequest(str(path), struct(SCHEMA), mode, **request))
    assert plan.state is not None
    return plan, write(plan.state, iter(batch_of(ids(100), struct(SCHEMA))), TaskSession(0))


def batch(path: Path) -> None:
    plan = plan_batch(WriteRequest(str(path), struct(SCHEMA), "append"))
    assert plan.write.state is not None
    output = write(plan.write.state, iter(batch_of(ids(100), struct(SCHEMA))), TaskSession(0))
    commit_batch(plan, 7, [StreamOrigin("query", 7)], [output])


def update(path: Path) -> None:
    run_update(planned_update(load_snapshot(str(path)), "id % 5 = 3", {"id": "id + 100"}, OPTIONS), HERE)


def delete(path: Path) -> None:
    run_delete(planned_delete(load_snapshot(str(path)), "id % 5 = 3", OPTIONS), HERE)


# each command with the properties of its table
ENDS: dict[str, tuple[Callable[[Path], object], dict[str, str]]] = {
    "append": (lambda path: write_rows(path, SCHEMA, ids(100)), {}),
    "idempotent append": (lambda path: write_rows(path, SCHEMA, ids(100), application=("job", 1)), {}),
    "overwrite": (lambda path: write_rows(path, SCHEMA, ids(100), "overwrite"), {}),
    "replaceWhere": (lambda path: write_rows(path, SCHEMA, ids(3), "overwrite", replace_where="id = 3"), FEED),
    "replaceWhere, vectors": (lambda path: write_rows(path, SCHEMA, [], "overwrite", replace_where="id = 3"), VECTORS),
    "batch": (batch, {}),
    "update": (update, FEED),
    "delete, vectors": (delete, VECTORS),
    "compaction": (lambda path: run_layout(plan_compaction(load_snapshot(str(path)), (), OPTIONS), HERE), {}),
    "z-order": (lambda path: run_layout(plan_zorder(load_snapshot(str(path)), ["id"], (), OPTIONS), HERE), {}),
    "unmapping": (
        lambda path: remove_mapping(load_snapshot(str(path)), LocalRunner(), DefinitionOptions(), OPTIONS),
        MAPPING,
    ),
}


@pytest.fixture(params=ENDS)
def command(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], object]:
    """A command on a table of two files and twenty rows."""
    run, properties = ENDS[request.param]
    write_rows(tmp_path, SCHEMA, [ids(*ROWS[:10]), ids(*ROWS[10:])], properties=properties)
    return lambda: run(tmp_path)


def files(path: Path) -> set[str]:
    return {
        str(f.relative_to(path))
        for f in path.rglob("*")
        if f.suffix in (".parquet", ".bin") and "_delta_log" not in f.parts
    }


def failing(monkeypatch: pytest.MonkeyPatch, error: BaseException, *, after_commit: bool = False) -> None:
    propose = FileSystemCommitter.propose

    def fail(self: FileSystemCommitter, commit: ProposedCommit) -> bool:
        if after_commit:
            propose(self, commit)
        raise error

    monkeypatch.setattr(FileSystemCommitter, "propose", fail)


def unsound(path: Path) -> list[Any]:
    return list(verify(str(path)).findings)


@pytest.mark.parametrize("error", [NothingWrittenError("the store refuses"), StorageError("the store is away")])
def test_a_commit_that_fails_deletes_the_files(
    command: Callable[[], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: DeltaError
) -> None:
    before = files(tmp_path)
    failing(monkeypatch, error)
    with pytest.raises(StorageError):
        command()
    assert files(tmp_path) == before
    assert read_sorted(tmp_path, "id") == ROWS


def test_a_failure_before_the_commit_deletes_the_files(
    command: Callable[[], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files(tmp_path)

    def refuse(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Transaction, "add", refuse)
    with pytest.raises(KeyboardInterrupt):
        command()
    assert files(tmp_path) == before


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("error", [CommitOutcomeUnknownError("the answer was lost"), KeyboardInterrupt()])
def test_an_unknown_outcome_deletes_nothing(
    command: Callable[[], object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    committed: bool,
) -> None:
    before = files(tmp_path)
    failing(monkeypatch, error, after_commit=committed)
    with pytest.raises(type(error)):
        command()
    assert files(tmp_path) > before
    assert load_snapshot(str(tmp_path)).version == int(committed)
    assert not unsound(tmp_path)


def test_a_lost_race_deletes_the_files(
    command: Callable[[], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, propose = files(tmp_path), FileSystemCommitter.propose

    def lose(self: FileSystemCommitter, commit: ProposedCommit) -> bool:
        monkeypatch.setattr(FileSystemCommitter, "propose", propose)
        snapshot = load_snapshot(str(tmp_path))
        other = Transaction(snapshot)
        other.set_metadata(msgspec.structs.replace(snapshot.metadata, description="another's"))
        other.commit(Operation("SET TBLPROPERTIES"))
        return propose(self, commit)

    monkeypatch.setattr(FileSystemCommitter, "propose", lose)
    with pytest.raises(MetadataChangedError):
        command()
    assert files(tmp_path) == before
    assert read_sorted(tmp_path, "id") == ROWS
    assert not unsound(tmp_path)


# --- nothing to commit


def test_a_block_that_commits_nothing_deletes_the_files(tmp_path: Path) -> None:
    write_rows(tmp_path, SCHEMA, ids(1))
    before = files(tmp_path)
    _, output = planned(tmp_path)
    assert files(tmp_path) > before
    with commit_or_discard(str(tmp_path), {}, [output, None]):
        pass
    assert files(tmp_path) == before


def test_a_write_that_finds_nothing_to_commit_deletes_its_files(tmp_path: Path) -> None:
    write_rows(tmp_path, SCHEMA, ids(1))
    before = files(tmp_path)
    plan, output = planned(tmp_path)
    # files of change rows alone make no commit
    assert commit_write(plan, [TaskOutput(change_files=output.files)]) is None
    assert files(tmp_path) == before


def test_a_row_change_that_finds_nothing_to_commit_deletes_its_files(tmp_path: Path) -> None:
    write_rows(tmp_path, SCHEMA, ids(1), properties=FEED)
    before = files(tmp_path)
    assert (
        run_update(planned_update(load_snapshot(str(tmp_path)), "id = 7", {"id": "8"}, OPTIONS), HERE).version is None
    )
    assert files(tmp_path) == before


# --- a commit that Spark asks for twice


@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.parametrize("widens", [True, False], ids=["new column", "same columns"])
@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_batch_whose_commit_is_asked_for_twice_keeps_its_files(
    tmp_path: Path, exists: bool, widens: bool, mode: Any
) -> None:
    if exists:
        write_rows(tmp_path, SCHEMA, ids(1))
    schema = {"id": "long", "x": "long"} if widens else SCHEMA
    plan = plan_batch(WriteRequest(str(tmp_path), struct(schema), mode, merge_schema=True))
    assert plan.write.state is not None
    output = write(plan.write.state, iter(batch_of(ids(2), struct(schema))), TaskSession(0))
    travelled = pickle.dumps(plan)
    commit_batch(plan, 1, [StreamOrigin("query", 1)], [output])
    with pytest.raises(ConflictError):
        commit_batch(pickle.loads(travelled), 1, [StreamOrigin("query", 1)], [output])
    assert read_sorted(tmp_path, "id") == ([1, 2] if exists and mode == "append" else [2])
    assert not unsound(tmp_path)


def test_a_second_call_that_fails_before_its_commit_keeps_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_rows(tmp_path, SCHEMA, ids(1))
    plan, output = planned(tmp_path)
    commit_write(plan, [output])

    def away(*_: Any) -> bool:
        raise StorageError("the store is away")

    monkeypatch.setattr(LocalStorage, "exists", away)
    with pytest.raises(StorageError):
        commit_write(plan, [output])
    monkeypatch.undo()
    assert read_sorted(tmp_path, "id") == [1, 100]


def test_files_stay_where_the_log_does_not_say_whether_it_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write_rows(tmp_path, SCHEMA, ids(1))
    plan, output = planned(tmp_path, "overwrite")
    before = files(tmp_path)
    write_rows(tmp_path, SCHEMA, ids(2))

    def unreadable(*_: Any, **__: Any) -> Any:
        raise StorageError("the store is away")

    failing(monkeypatch, ConflictError("lost"))
    monkeypatch.setattr(FileSystemCommitter, "commits_after", unreadable)
    with pytest.raises(ConflictError):
        commit_write(plan, [output])
    assert files(tmp_path) > before
    assert "remain until vacuum" in caplog.text


def test_of_two_writers_of_one_application_version_the_loser_deletes_its_files(tmp_path: Path) -> None:
    write_rows(tmp_path, SCHEMA, ids(1))
    first, second = (planned(tmp_path, application=("job", 1)) for _ in range(2))
    commit_write(first[0], [first[1]])
    with pytest.raises(ConflictError):
        commit_write(second[0], [second[1]])
    assert second[1].files[0].path not in files(tmp_path)
    assert read_sorted(tmp_path, "id") == [1, 100]


# --- one policy


def test_nothing_but_the_end_decides_by_the_outcome_of_a_commit() -> None:
    root = Path(delta_pyds.commands.__path__[0])
    deciding = [
        str(file.relative_to(root))
        for file in root.rglob("*.py")
        if re.search(r"except[^\n]*CommitOutcomeUnknownError", file.read_text())
    ]
    assert deciding == ["commit.py"]
