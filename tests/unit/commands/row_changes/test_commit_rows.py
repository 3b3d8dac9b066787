"""The end of a command: outputs that contradict each other, lost answers, and what stays behind."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
from msgspec import structs
from pyroaring import BitMap64

from delta_pyds.columnar.roaring import serialize
from delta_pyds.commands.row_changes.commit_rows import commit_rows, local_runner, run_again
from delta_pyds.commands.row_changes.delete import run_delete
from delta_pyds.commands.row_changes.plan import (
    CommandKind,
    CommandOptions,
    RowChangePlan,
    change_state,
    file_names,
    files_state,
    is_done,
    target_files,
    with_files,
)
from delta_pyds.commands.row_changes.result import Place, RowChangeResult
from delta_pyds.commands.row_changes.update import run_update
from delta_pyds.commands.task_runner import LocalRunner
from delta_pyds.errors import CommitOutcomeUnknownError, ConflictError, DeltaError, UserError
from delta_pyds.log.committer import FileSystemCommitter
from delta_pyds.storage.local import LocalStorage
from delta_pyds.table.history import history
from delta_pyds.table.scan.live_files import LiveFiles, live_files
from delta_pyds.table.scan.scan import plan_scan
from delta_pyds.table.snapshot import load_snapshot
from delta_pyds.tasks.changed_rows import Action
from delta_pyds.tasks.write_state import FoundRows, TaskOutput
from delta_pyds.verification.verify import verify
from tests.support.data_files import files
from tests.support.planned_changes import planned_delete, planned_update
from tests.support.table_writes import read_rows, read_sorted, write_rows

T = TypeVar("T")
VECTORS = {"delta.enableDeletionVectors": "true"}
BOTH = pytest.mark.parametrize("properties", [{}, VECTORS], ids=["rewritten", "marked"])
HERE = Place("process", "a test says so")
DELETE, KEEP = int(Action.DELETE), int(Action.KEEP)


def table(path: Path, properties: dict[str, str] | None = None) -> None:
    """Three files of ten rows."""
    rows = [[{"id": n} for n in range(f * 10, f * 10 + 10)] for f in range(3)]
    write_rows(path, {"id": "long"}, rows, properties=properties or {})


def planned(path: Path, kind: CommandKind, **state: Any) -> RowChangePlan:
    snapshot, options = load_snapshot(str(path)), CommandOptions()
    candidates = sorted(live_files(plan_scan(snapshot)), key=lambda f: f.stats or "")
    names = {f"file:/{n}": n for n in range(len(candidates))}
    target = target_files(snapshot, candidates, options, names)
    return RowChangePlan(kind, target, change_state(target, files_state(snapshot, options), **state), options)


def found(file: int | str, positions: Sequence[int], kept: Sequence[int] | None = None, **more: Any) -> FoundRows:
    return FoundRows(file, serialize(BitMap64(positions)), None if kept is None else serialize(BitMap64(kept)), **more)


def output(*some: FoundRows, **counts: int) -> TaskOutput:
    return TaskOutput(found=some, counts={int(Action[name.upper()]): count for name, count in counts.items()})


def commit(plan: RowChangePlan, *outputs: TaskOutput, **more: Any) -> RowChangeResult:
    return commit_rows(plan, outputs, runner=local_runner(plan, 1), place=HERE, **more)


@BOTH
def test_rows_of_several_tasks_are_united(tmp_path: Path, properties: dict[str, str]) -> None:
    table(tmp_path, properties)
    plan = planned(tmp_path, "DELETE")
    result = commit(
        plan,
        output(found("file:/0", [1, 2]), found("file:/1", range(5)), delete=7),
        output(found(0, [4]), found("file:/1", range(5, 10)), delete=6),
    )
    assert result.num_deleted_rows == 13
    assert read_sorted(tmp_path, "id") == [0, 3, 5, 6, 7, 8, 9, *range(20, 30)]
    assert list(verify(str(tmp_path)).findings) == []
    if properties:
        assert len([f for f in files(tmp_path) if f.endswith(".bin")]) == 1


def test_rows_that_are_copied_keep_their_ids_whoever_found_the_others(tmp_path: Path) -> None:
    table(tmp_path, {"delta.enableRowTracking": "true"})
    plan = planned(tmp_path, "DELETE")
    # a query of Spark that only finds rows needs no ids of them
    plan = replace(plan, state=replace(plan.state, row_id_columns=None))

    version = commit(plan, output(found(0, [1]), delete=1)).version

    info = json.loads((tmp_path / "_delta_log" / f"{version:020}.json").read_text().splitlines()[0])["commitInfo"]
    assert info["tags"]["delta.rowTracking.preserved"] == "true"
    rows = read_rows(tmp_path, row_ids=True)
    assert {row["id"]: row["_row_id"] for row in rows} == {n: n for n in range(30) if n != 1}


CONTRADICTIONS = {
    "a row that two tasks found": [output(found(0, [1, 2]), delete=2), output(found(0, [2]), delete=1)],
    "a row that was deleted before": [output(found(1, [0]), delete=1)],
    "a row after the end of the file": [output(found(0, [10]), delete=1)],
    "a file that was not handed out": [output(found("file:/7", [1]), delete=1)],
    "a number of no file": [output(found(3, [1]), delete=1)],
    "fewer rows than were counted": [output(found(0, [1]), delete=2)],
    "more rows than were counted": [output(found(0, [1, 2]), delete=1)],
    "an update without its rows": [output(found(0, [1]), update=1)],
}


@pytest.mark.parametrize("outputs", CONTRADICTIONS.values(), ids=list(CONTRADICTIONS))
def test_what_contradicts_itself_is_not_committed(tmp_path: Path, outputs: list[TaskOutput]) -> None:
    table(tmp_path, VECTORS)
    run_delete(planned_delete(load_snapshot(str(tmp_path)), "id = 10", CommandOptions()), HERE)
    _check_refused(tmp_path, outputs, [n for n in range(30) if n != 10])


@pytest.mark.parametrize("name", [name for name in CONTRADICTIONS if "before" not in name])
def test_nor_is_it_where_files_are_rewritten(tmp_path: Path, name: str) -> None:
    table(tmp_path)
    _check_refused(tmp_path, CONTRADICTIONS[name], list(range(30)))


def _check_refused(path: Path, outputs: list[TaskOutput], rows: list[int]) -> None:
    before = files(path)
    with pytest.raises(DeltaError) as caught:
        commit(planned(path, "DELETE"), *outputs)
    assert caught.value.code in ("DELTA_ERROR", "DELTA_NUM_RECORDS_MISMATCH", "DELTA_DELETION_VECTOR_INVALID_ROW_INDEX")
    assert files(path) == before
    assert read_sorted(path, "id") == rows


@pytest.mark.parametrize(
    "outputs",
    [
        [output(found(0, [1]), delete=1), output(found(0, [1]), delete=1)],
        [output(found(0, [1]), delete=1), output(found(0, [], [1]), keep=1)],
        [output(found(0, [], [1]), keep=1), output(found(0, [], [1]), keep=1)],
    ],
    ids=["changed twice", "changed and kept", "kept twice"],
)
def test_two_tasks_may_not_match_one_row(tmp_path: Path, outputs: list[TaskOutput]) -> None:
    table(tmp_path, VECTORS)
    with pytest.raises(UserError) as caught:
        commit(planned(tmp_path, "MERGE", one_match=True), *outputs)
    assert caught.value.code == "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"


def test_a_merge_that_only_deletes_may_match_a_row_often(tmp_path: Path) -> None:
    table(tmp_path, VECTORS)
    once = output(found(0, [1, 2]), delete=2)
    result = commit(planned(tmp_path, "MERGE"), once, output(found(0, [2, 3]), delete=2), source_rows=4)
    assert result.num_deleted_rows == result.num_affected_rows == 3
    assert read_sorted(tmp_path, "id") == [0, *range(4, 30)]
    [record] = history(LocalStorage(), str(tmp_path), limit=1)
    assert record.commit_info is not None
    metrics = record.commit_info.operation_metrics or {}
    counted = ("numSourceRows", "numTargetRowsDeleted", "numTargetRowsMatchedDeleted", "numTargetRowsCopied")
    assert [metrics[name] for name in counted] == ["4", "3", "3", "0"]


def test_a_file_without_statistics_is_counted(tmp_path: Path) -> None:
    table(tmp_path, VECTORS | {"delta.dataSkippingNumIndexedCols": "0"})
    commit(planned(tmp_path, "DELETE"), output(found(0, range(10)), found(1, [3]), delete=11))
    assert len(read_sorted(tmp_path, "id")) == 19
    assert list(verify(str(tmp_path)).findings) == []


@BOTH
def test_a_put_that_answers_late_is_a_commit(
    tmp_path: Path, properties: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table(tmp_path, properties)
    put, lost = LocalStorage.put_if_absent, []

    def late(self: LocalStorage, path: str, data: bytes) -> bool:
        done = put(self, path, data)
        if path.endswith("1.json") and not lost:
            lost.append(path)
            raise TimeoutError("no answer")
        return done

    monkeypatch.setattr(LocalStorage, "put_if_absent", late)
    result = run_delete(planned_delete(load_snapshot(str(tmp_path)), "id % 10 = 3", CommandOptions()), HERE)
    assert (result.version, result.num_deleted_rows, len(lost)) == (1, 3, 1)
    assert len(read_sorted(tmp_path, "id")) == 27
    assert list(verify(str(tmp_path)).findings) == []


@BOTH
def test_files_of_an_unknown_outcome_stay(
    tmp_path: Path, properties: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table(tmp_path, properties)
    before, propose = files(tmp_path), FileSystemCommitter.propose

    def unknown(self: FileSystemCommitter, commit: Any) -> bool:
        propose(self, commit)
        raise CommitOutcomeUnknownError("the answer was lost", table=str(tmp_path))

    monkeypatch.setattr(FileSystemCommitter, "propose", unknown)
    plan = planned_update(load_snapshot(str(tmp_path)), "id % 10 = 3", {"id": "id + 100"}, CommandOptions())
    with pytest.raises(CommitOutcomeUnknownError):
        run_update(plan, HERE)
    monkeypatch.undo()
    assert files(tmp_path) > before
    # it was committed, and all is there
    assert len(read_sorted(tmp_path, "id")) == 30
    assert list(verify(str(tmp_path)).findings) == []


class PicklingRunner(LocalRunner):
    """Tasks travel to executors, and answers back, as bytes."""

    def run(self, function: Callable[[T], TaskOutput], tasks: Sequence[T]) -> list[TaskOutput]:
        travelled = [pickle.loads(pickle.dumps((function, task))) for task in tasks]
        return [pickle.loads(pickle.dumps(f(task))) for f, task in travelled]


@pytest.mark.parametrize("feed", [False, True])
@BOTH
def test_tasks_travel(tmp_path: Path, properties: dict[str, str], feed: bool) -> None:
    table(tmp_path, properties | ({"delta.enableChangeDataFeed": "true"} if feed else {}))
    plan = planned_update(load_snapshot(str(tmp_path)), "id % 10 = 3", {"id": "id + 100"}, CommandOptions())
    assert run_update(plan, HERE, PicklingRunner(2)).num_updated_rows == 3
    delete = planned_delete(load_snapshot(str(tmp_path)), "id % 10 = 4", CommandOptions())
    assert run_delete(delete, HERE, PicklingRunner(2)).num_deleted_rows == 3
    assert read_sorted(tmp_path, "id") == sorted([103, 113, 123, *(n for n in range(30) if n % 10 not in (3, 4))])
    assert list(verify(str(tmp_path)).findings) == []


def test_a_command_of_an_application_is_done_once(tmp_path: Path) -> None:
    table(tmp_path, VECTORS)
    options = CommandOptions(application=("job", 7), user_metadata="why")
    assert not is_done(load_snapshot(str(tmp_path)), options)
    run_delete(planned_delete(load_snapshot(str(tmp_path)), "id = 3", options), HERE)
    assert is_done(load_snapshot(str(tmp_path)), options)
    assert not is_done(load_snapshot(str(tmp_path)), CommandOptions(application=("job", 8)))
    [record] = history(LocalStorage(), str(tmp_path), limit=1)
    assert record.commit_info is not None
    assert record.commit_info.user_metadata == "why"


def test_a_command_runs_again_as_often_as_it_may() -> None:
    runs: list[int] = []

    def losing() -> None:
        runs.append(1)
        raise ConflictError("lost")

    with pytest.raises(ConflictError):
        run_again(3, losing)
    assert len(runs) == 3

    def broken() -> None:
        runs.append(1)
        raise UserError("wrong")

    with pytest.raises(UserError):
        run_again(3, broken)
    assert len(runs) == 4


@BOTH
def test_an_append_meanwhile_counts_as_the_isolation_level_says(tmp_path: Path, properties: dict[str, str]) -> None:
    table(tmp_path, properties)

    def delete_beside_an_append(condition: str, level: str) -> RowChangeResult:
        options = CommandOptions(isolation_level=level, row_level_concurrency=False)
        plan = planned_delete(load_snapshot(str(tmp_path)), condition, options)
        write_rows(tmp_path, {"id": "long"}, [{"id": 1000}])
        return run_delete(plan, HERE)

    # the append may have come after the delete, which is one order of the two
    assert delete_beside_an_append("id % 10 = 3", "WriteSerializable").num_deleted_rows == 3
    with pytest.raises(ConflictError):
        delete_beside_an_append("id % 10 = 4", "Serializable")


def test_the_files_of_a_plan_at_a_later_version(tmp_path: Path) -> None:
    """Files keep their numbers, and those that Spark names keep their names."""
    for k in range(3):
        write_rows(tmp_path, {"k": "long"}, [{"k": k}])
    snapshot, options = load_snapshot(str(tmp_path)), CommandOptions()
    scan = plan_scan(snapshot)
    found = LiveFiles(scan)
    names = {name: n for n, name in enumerate(file_names(str(tmp_path), found.rows.column("path")))}
    target = target_files(snapshot, found, options, names)
    plan = RowChangePlan("DELETE", target, change_state(target, files_state(snapshot, options)), options)

    other, new = structs.replace(found[1], size=7), structs.replace(found[2], path="p%20q.parquet", size=8)
    once = with_files(plan, {0: None, 1: other}, [new], 5)
    again = with_files(once, {3: structs.replace(new, size=9)}, [structs.replace(new, path="last.parquet", size=10)], 6)
    for later, sizes in ((once, [7, found[2].size, 8]), (again, [7, found[2].size, 9, 10])):
        assert [file.size for file in later.target.files[1:]] == sizes
        assert later.target.values("size") == [found[0].size, *sizes]
        assert later.target.values("path") == [file.path for file in later.target.files]
    assert again.target.number_of(f"{tmp_path}/p q.parquet") == 3
    assert again.target.number_of(f"{tmp_path}/last.parquet") == 4
    assert (plan.target.version, once.target.version, again.target.version) == (None, 5, 6)
    with pytest.raises(DeltaError):
        once.target.number_of(f"{tmp_path}/last.parquet")
