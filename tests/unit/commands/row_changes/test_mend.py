"""The cost of a mend: it reads and writes only what the winners touched. Its results: tests/property."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
import pyarrow as pa
import pytest

from delta_pyds import verify
from delta_pyds.commands.definition.change import DefinitionOptions, run_change
from delta_pyds.commands.definition.properties import set_properties
from delta_pyds.commands.maintenance.clone import CloneOptions, shallow_clone
from delta_pyds.commands.maintenance.restore import RestoreOptions, restore
from delta_pyds.commands.row_changes.delete import run_delete
from delta_pyds.commands.row_changes.mend import CommandOnRows, RowMend
from delta_pyds.commands.row_changes.merge import run_merge
from delta_pyds.commands.row_changes.plan import CommandOptions, TargetFiles
from delta_pyds.commands.row_changes.resolved import MergeClause
from delta_pyds.commands.row_changes.result import Place, RowChangeResult
from delta_pyds.commands.row_changes.update import run_update
from delta_pyds.commands.task_runner import LocalRunner
from delta_pyds.errors import ConflictError, MetadataChangedError
from delta_pyds.log.committer import FileSystemCommitter, ProposedCommit
from delta_pyds.protocol.actions import AddFile
from delta_pyds.storage.local import LocalStorage
from delta_pyds.table.scan.live_files import live_files, removal
from delta_pyds.table.scan.scan import plan_scan
from delta_pyds.table.snapshot import load_snapshot
from delta_pyds.table.transaction.commit_info import Operation
from delta_pyds.table.transaction.conflict import TransactionInfo, WinningCommit
from delta_pyds.table.transaction.mend import NetChanges
from delta_pyds.table.transaction.transaction import Transaction
from delta_pyds.tasks.changed_rows import Action
from tests.support.calls import count_calls
from tests.support.change_feed import change_rows
from tests.support.planned_changes import delete, planned_delete, planned_merge, planned_update
from tests.support.table_builder import TableBuilder
from tests.support.table_writes import batch_of, read_rows, read_sorted, struct, write_rows
from tests.unit.commands.row_changes.test_commit_rows import found, output

HERE = Place("process", "a test says so")
VECTORS = {"delta.enableDeletionVectors": "true"}
SCHEMA = {"id": "long", "p": "string"}
LOSER = TransactionInfo("UPDATE", "t", "Serializable", struct(SCHEMA))


class Opened:
    """The files that a command opens after its first lost race, by kind."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.read: list[str] = []
        self.vectors: list[str] = []
        self.commits: list[str] = []
        self.written: list[str] = []
        self._racing = False
        for name in ("open_output", "parquet_source", "read", "put_if_absent"):
            patch.setattr(LocalStorage, name, self._recorded(name, getattr(LocalStorage, name)))
        propose = FileSystemCommitter.propose

        def proposing(committer: FileSystemCommitter, commit: ProposedCommit) -> bool:
            won = propose(committer, commit)
            self._racing = not won
            return won

        patch.setattr(FileSystemCommitter, "propose", proposing)

    def _recorded(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def record(storage: LocalStorage, path: str, *args: Any, **more: Any) -> Any:
            if self._racing:
                kind = {"parquet_source": self.read, "open_output": self.written, "put_if_absent": self.written}
                read = self.commits if path.endswith(".json") else self.vectors
                kind.get(name, read).append(Path(path).name)
            return call(storage, path, *args, **more)

        return record


def _table(path: Path, files: int = 4) -> None:
    """So many files of ten rows, one for each partition of ``p``."""
    rows = [[{"id": n, "p": f"p{f}"} for n in range(f * 10, f * 10 + 10)] for f in range(files)]
    write_rows(path, SCHEMA, rows, properties=VECTORS)


def _lost(command: Callable[[], RowChangeResult], opened: Opened) -> RowChangeResult:
    result = command()
    assert result.version is not None
    assert opened.commits
    return result


@pytest.mark.parametrize("kind", ["delete", "update"])
def test_only_vectors_with_other_rows_are_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    _table(tmp_path)
    snapshot, options = load_snapshot(str(tmp_path)), CommandOptions()
    deleting = planned_delete(snapshot, "id % 10 = 3", options)
    updating = planned_update(snapshot, "id % 10 = 3", {"id": "id + 1000"}, options)
    delete(tmp_path, "id = 17")
    opened = Opened(monkeypatch)
    result = _lost(lambda: run_delete(deleting, HERE) if kind == "delete" else run_update(updating, HERE), opened)
    assert result.num_affected_rows == 4
    assert opened.read == [], "rows that no winner brought are read."
    assert len(opened.vectors) == 1, "more than the winner's vector is read."
    names = {name.split("_")[0] for name in opened.written}
    assert names <= {"deletion", f"{result.version:020d}.json", f"{result.version:020d}.crc"}
    assert len([name for name in opened.written if name.startswith("deletion")]) == 1
    added = [add for add in _adds(tmp_path, result.version) if add.deletion_vector is not None]
    # those of files without another deleted row are in the file that was written before the race
    assert len({_file_of(add) for add in added}) == 2
    left = [n for n in range(40) if n % 10 != 3 and n != 17]
    assert read_sorted(tmp_path, "id") == left + ([] if kind == "delete" else [1003, 1013, 1023, 1033])


@pytest.mark.parametrize("feed", ["false", "true"])
@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("kind", ["delete", "update", "merge"])
def test_without_vectors_only_files_that_a_winner_changed_are_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, feed: str, large: bool
) -> None:
    if large:
        monkeypatch.setattr("delta_pyds.data.row_changes.files._LARGE_BYTES", 1)
    properties = {"delta.enableChangeDataFeed": feed, "delta.enableRowTracking": "true"}
    rows = [[{"id": n, "p": f"p{f}"} for n in range(f * 10, f * 10 + 10)] for f in range(8)]
    write_rows(tmp_path, SCHEMA, rows, properties=properties)
    snapshot, options = load_snapshot(str(tmp_path)), CommandOptions()
    deleting = planned_delete(snapshot, "id % 10 = 3", options)
    updating = planned_update(snapshot, "id % 10 = 3", {"id": "id + 1000"}, options)
    source = pa.Table.from_batches(batch_of([{"id": n + 3, "p": "s"} for n in range(0, 80, 10)], struct(SCHEMA)))
    clauses: list[MergeClause[str]] = [MergeClause("matched", "update", None, {"id": "t.id + 1000"})]
    merging = planned_merge(snapshot, "t.id = s.id", clauses, source, struct(SCHEMA), options)
    before = {add.path for add in live_files(plan_scan(snapshot))}
    # one file gets another row, and the other one no row for this command
    delete(tmp_path, "id = 17 OR id = 53")
    unchanged = before & {add.path for add in live_files(plan_scan(load_snapshot(str(tmp_path))))}
    assert len(unchanged) == 6
    mine = {"delete": lambda: run_delete(deleting, HERE), "update": lambda: run_update(updating, HERE)}
    opened = Opened(monkeypatch)
    result = _lost(mine.get(kind, lambda: run_merge(merging, HERE)), opened)
    assert result.num_affected_rows == 7
    assert not unchanged & set(opened.read), "a file that no winner changed is read."
    after = {add.path for add in _adds(tmp_path, 1)} | before
    if large and kind != "merge":
        # a file that was rewritten alone is not written again without rows
        assert all(name in after or name.startswith("cdc") for name in opened.read)
    left = [n for n in range(80) if n % 10 != 3 and n != 17]
    changed = [n + 1003 for n in range(0, 80, 10) if n != 50]
    assert read_sorted(tmp_path, "id") == left + ([] if kind == "delete" else changed)
    if feed == "true":
        changes = change_rows(tmp_path, result.version, result.version)
        assert len(changes) == (7 if kind == "delete" else 14)
    assert verify(str(tmp_path)).findings == ()


def test_a_winner_of_other_files_costs_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _table(tmp_path)
    plan = planned_delete(load_snapshot(str(tmp_path)), "id IN (3, 14)", CommandOptions())
    delete(tmp_path, "id = 35")
    write_rows(tmp_path, SCHEMA, [{"id": 70, "p": "p7"}])
    opened = Opened(monkeypatch)
    result = _lost(lambda: run_delete(plan, HERE), opened)
    assert (opened.read, opened.vectors) == ([], [])
    assert opened.commits == [f"{version:020d}.json" for version in (1, 2)]
    assert all(name.startswith("0000") for name in opened.written), opened.written
    assert result.num_affected_rows == 2


def test_a_merge_reads_no_new_file_of_other_partitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = struct(SCHEMA)
    rows = [[{"id": n, "p": f"p{f}"} for n in range(f * 10, f * 10 + 10)] for f in range(3)]
    write_rows(tmp_path, SCHEMA, rows, properties=VECTORS, partition_by=(("p",),))
    clauses: list[MergeClause[str]] = [
        MergeClause("matched", "update", None, None),
        MergeClause("not_matched", "insert", None, None),
    ]
    source = batch_of([{"id": 5, "p": "p0"}, {"id": 99, "p": "p1"}], schema)
    plan = planned_merge(
        load_snapshot(str(tmp_path)), "t.id = s.id AND t.p = s.p", clauses, pa.Table.from_batches(source), schema,
        CommandOptions(isolation_level="Serializable"),
    )  # fmt: skip
    write_rows(tmp_path, SCHEMA, [[{"id": 99, "p": "p1"}], [{"id": 99, "p": "p2"}], [{"id": 5, "p": "p7"}]])
    opened = Opened(monkeypatch)
    result = _lost(lambda: run_merge(plan, HERE), opened)
    read = {name for name in opened.read if not name.startswith("_")}
    assert len(read) == 1, "a file that the log's partition values rule out is read."
    assert (result.num_updated_rows, result.num_inserted_rows) == (2, 0)


@pytest.mark.parametrize("condition", [None, "s.id < 50"])
def test_a_merge_reads_lost_rows_only_if_it_may_have_left_a_match_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, condition: str | None
) -> None:
    schema = struct(SCHEMA)
    _table(tmp_path)
    clauses: list[MergeClause[str]] = [
        MergeClause("matched", "update", condition, None),
        MergeClause("not_matched", "insert", None, None),
    ]
    source = pa.Table.from_batches(batch_of([{"id": 5, "p": "new"}, {"id": 99, "p": "new"}], schema))
    plan = planned_merge(load_snapshot(str(tmp_path)), "t.id = s.id", clauses, source, schema, CommandOptions())
    delete(tmp_path, "id = 7")
    opened = Opened(monkeypatch)
    result = _lost(lambda: run_merge(plan, HERE), opened)
    assert len(opened.read) == (0 if condition is None else 1)
    assert (result.num_updated_rows, result.num_inserted_rows) == (1, 1)
    assert read_sorted(tmp_path, "id") == [*(n for n in range(40) if n != 7), 99]


@pytest.mark.parametrize("tracking", [False, True])
def test_a_mend_costs_the_same_for_any_number_of_candidates(tmp_path: Path, tracking: bool) -> None:
    properties = VECTORS if not tracking else VECTORS | {
        "delta.enableRowTracking": "true",
        "delta.rowTracking.materializedRowIdColumnName": "_id",
        "delta.rowTracking.materializedRowCommitVersionColumnName": "_version",
    }  # fmt: skip

    def calls(files: int) -> int:
        table = TableBuilder(tmp_path / str(files), {"id": "long"}, properties=properties)
        table.create()
        ids = [{"baseRowId": 10 * n, "defaultRowCommitVersion": 1} if tracking else {} for n in range(files)]
        stats = '{"numRecords":10}'
        table.commit([table.add(f"{n}.parquet", size=10, stats=stats, **more) for n, more in enumerate(ids)])
        plan = planned_delete(load_snapshot(str(table.path)), "id = 5", CommandOptions())
        assert len(plan.change.target.files) == files
        first = output(found(0, [3]), found(1, [4]), delete=2)
        mend = RowMend(plan.change, [first], CommandOnRows(lambda _, __: [], plan.scan, Action.DELETE), LocalRunner(1))
        statistics = '{"numRecords":1,"minValues":{"id":7},"maxValues":{"id":9},"nullCount":{"id":0}}'

        def winner(version: int) -> NetChanges:
            net = NetChanges()
            other = AddFile(f"new{version}.parquet", {}, 10, 0, data_change=True, stats=statistics)
            net.take(WinningCommit(version, adds=(other,)), LOSER)
            return net

        # the first one numbers the files
        mended = mend.after(winner(2))
        assert mended is not None
        assert len(mended.read_files) == files
        return count_calls(lambda: mend.after(winner(3)))

    read = TargetFiles.values
    with mock.patch.object(TargetFiles, "values", autospec=True, side_effect=read) as values:
        assert calls(20) == calls(2_000)
    # once for each table, to number the files, and once for its plan
    assert values.call_count == 2 * (1 + tracking)


def test_what_a_mend_found_is_confirmed_after_its_queries(tmp_path: Path) -> None:
    """Only if it ran one: a row that is gone needs none."""
    _table(tmp_path, 1)
    plan = planned_delete(load_snapshot(str(tmp_path)), "id = 3", CommandOptions())
    calls: list[str] = []

    def run_on(*_: Any) -> list[Any]:
        calls.append("query")
        return []

    on_rows = CommandOnRows(run_on, plan.scan, Action.DELETE, confirm=lambda: calls.append("confirm"))
    mend = RowMend(plan.change, [], on_rows, LocalRunner(1))
    (old,) = _adds(tmp_path, load_snapshot(str(tmp_path)).version)
    removed = NetChanges()
    removed.take(WinningCommit(2, removes=(removal(old, deletion_timestamp_ms=0, data_change=True),)), LOSER)
    assert mend.after(removed) is not None and calls == []
    added = NetChanges()
    added.take(WinningCommit(3, adds=(AddFile("new.parquet", {"p": "p0"}, 10, 0, data_change=True),)), LOSER)
    assert mend.after(added) is not None and calls == ["query", "confirm"]


def _adds(path: Path, version: int | None) -> list[AddFile]:
    assert version is not None
    commits = FileSystemCommitter(LocalStorage(), str(path)).commits_after(version - 1)
    return [action.add for action in commits[0].actions if action.add is not None]


def _file_of(add: AddFile) -> str:
    assert add.deletion_vector is not None
    return add.deletion_vector.path_or_inline_dv


def test_a_file_to_which_rows_come_back_is_rewritten_as_a_whole(tmp_path: Path) -> None:
    """The file still has a vector, although the table takes no new ones."""
    write_rows(tmp_path, {"id": "long", "v": "long"}, [{"id": n, "v": n} for n in range(10)], properties=VECTORS)
    [first] = live_files(plan_scan(load_snapshot(str(tmp_path))))
    delete(tmp_path, "id >= 2 AND id <= 4")
    no_vectors = {"delta.enableDeletionVectors": "false"}
    run_change(lambda: load_snapshot(str(tmp_path)), lambda s: set_properties(s, no_vectors), DefinitionOptions())
    write_rows(tmp_path, {"id": "long", "v": "long"}, [{"id": 3, "v": 100}])
    before = load_snapshot(str(tmp_path))
    plan = planned_update(before, "id = 3", {"v": "v + 1000"}, CommandOptions())
    [marked] = [file for file in live_files(plan_scan(before)) if file.path == first.path]
    winner = Transaction(before)
    winner.record_files([marked.path])
    winner.remove(removal(marked, deletion_timestamp_ms=1, data_change=True))
    winner.add(msgspec.structs.replace(first, data_change=True))
    winner.commit(Operation("RESTORE"))
    result = run_update(plan, HERE)
    assert result.num_updated_rows == 2
    assert read_sorted(tmp_path, "id") == sorted([*range(10), 3])
    assert read_sorted(tmp_path, "v") == [*(n for n in range(10) if n != 3), 1003, 1100]
    assert verify(str(tmp_path)).findings == ()


def test_a_merge_of_rows_of_its_table_is_a_conflict_after_a_change_of_rows(tmp_path: Path) -> None:
    _table(tmp_path)
    source, schema = batch_of([{"id": 3, "p": "x"}], struct(SCHEMA)), struct(SCHEMA)
    clauses: list[MergeClause[str]] = [MergeClause("matched", "update", None, None)]
    plan = planned_merge(
        load_snapshot(str(tmp_path)), "t.id = s.id", clauses, pa.Table.from_batches(source), schema,
        CommandOptions(reads_table=True),
    )  # fmt: skip
    delete(tmp_path, "id = 5")
    with pytest.raises(ConflictError):
        run_merge(plan, HERE)


@pytest.mark.parametrize("reads", [False, None, True])
def test_a_command_runs_again_only_if_its_rows_come_from_elsewhere_for_certain(
    tmp_path: Path, reads: bool | None
) -> None:
    _table(tmp_path)
    options = CommandOptions(row_level_concurrency=False, reads_table=reads)
    plan = planned_update(load_snapshot(str(tmp_path)), "id = 3", {"id": "4"}, options)
    delete(tmp_path, "id = 3")
    with pytest.raises(ConflictError) as error:
        run_update(plan, HERE)
    assert error.value.may_run_again is (reads is False)


@pytest.mark.parametrize("vectors", ["false", "true"])
@pytest.mark.parametrize("winner", ["clone", "restore"])
def test_a_winner_that_renames_the_columns_of_row_ids_is_a_conflict(tmp_path: Path, winner: str, vectors: str) -> None:
    """The command has written row ids to columns that the table has no more."""
    table, source = tmp_path / "t", tmp_path / "s"
    properties = {"delta.enableRowTracking": "true", "delta.enableDeletionVectors": vectors}
    for path in (source, table):
        write_rows(path, {"id": "long"}, [{"id": n} for n in range(6)], properties=properties)

    def replaced() -> None:
        shallow_clone(load_snapshot(str(source)), LocalStorage(), str(table), CloneOptions(replace=True))

    if winner == "restore":
        replaced()
    plan = planned_update(load_snapshot(str(table)), "id > 2", {"id": "id + 10"}, CommandOptions())
    if winner == "clone":
        replaced()
    else:
        restore(load_snapshot(str(table)), RestoreOptions(version=0))
    before = read_rows(table, row_ids=True)
    with pytest.raises(MetadataChangedError):
        run_update(plan, HERE)
    assert read_rows(table, row_ids=True) == before
    assert verify(str(table)).findings == ()
