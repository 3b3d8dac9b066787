"""The cost of a layout's mend. Its results: tests/property/test_mended_commands.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from delta_pyds.commands.layout import mend
from delta_pyds.commands.layout.optimize import plan_optimize, plan_zorder
from delta_pyds.commands.layout.run import run_layout
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.row_changes.result import Place
from delta_pyds.commands.row_changes.update import run_update
from delta_pyds.errors import ConflictError
from delta_pyds.log.committer import FileSystemCommitter, ProposedCommit
from delta_pyds.table.snapshot import load_snapshot
from delta_pyds.verification.verify import verify
from tests.support.planned_changes import delete, planned_update
from tests.support.table_writes import read_rows, read_sorted, write_rows

HERE = Place("process", "a test says so")


def test_a_compaction_reads_each_vector_of_a_winner_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [[{"id": n} for n in range(f * 10, f * 10 + 10)] for f in range(3)]
    write_rows(tmp_path, {"id": "long"}, rows, properties={"delta.enableDeletionVectors": "true"})
    plan = plan_optimize(load_snapshot(str(tmp_path)), (), CommandOptions())
    loaded: list[str] = []
    load, propose = mend.load_deletion_vector, FileSystemCommitter.propose

    def loading(storage: Any, root: str, vector: Any) -> Any:
        loaded.append(vector.unique_id)
        return load(storage, root, vector)

    winners = iter([3, 4, 25])

    def losing(committer: FileSystemCommitter, commit: ProposedCommit) -> bool:
        if b'"OPTIMIZE"' in commit.data and (row := next(winners, None)) is not None:
            delete(tmp_path, f"id = {row}")
        return propose(committer, commit)

    monkeypatch.setattr(mend, "load_deletion_vector", loading)
    monkeypatch.setattr(FileSystemCommitter, "propose", losing)
    assert run_layout(plan, HERE).version == 4
    assert len(loaded) == len(set(loaded)) == 3
    assert read_sorted(tmp_path, "id") == [n for n in range(30) if n not in (3, 4, 25)]


@pytest.mark.parametrize("vectors", ["false", "true"])
@pytest.mark.parametrize("changed", ["baseRowId", "defaultRowCommitVersion"])
@pytest.mark.parametrize("command", ["OPTIMIZE", "UPDATE"])
def test_rows_whose_ids_a_winner_changed_stay_where_they_are(
    tmp_path: Path, command: str, changed: str, vectors: str
) -> None:
    """The rows that the command wrote have the old ids. The winner also removes the other file."""
    properties = {"delta.enableRowTracking": "true", "delta.enableDeletionVectors": vectors}
    rows = [[{"id": n} for n in range(f * 10, f * 10 + 10)] for f in range(2)]
    write_rows(tmp_path, {"id": "long"}, rows, properties=properties)
    snapshot = load_snapshot(str(tmp_path))
    compaction = plan_optimize(snapshot, (), CommandOptions())
    update = planned_update(snapshot, "id = 3", {"id": "100"}, CommandOptions())
    log = tmp_path / "_delta_log"
    actions = [json.loads(line) for line in (log / f"{0:020d}.json").read_text().splitlines()]
    first, other = sorted((action["add"] for action in actions if "add" in action), key=lambda add: add["stats"])
    again = {**first, changed: first[changed] + 1000}
    gone = {"path": other["path"], "deletionTimestamp": 1, "dataChange": True}
    (log / f"{1:020d}.json").write_text(json.dumps({"add": again}) + "\n" + json.dumps({"remove": gone}) + "\n")
    before = read_rows(tmp_path, row_ids=True)
    if command == "OPTIMIZE":
        assert run_layout(compaction, HERE).version is None
    else:
        with pytest.raises(ConflictError):
            run_update(update, HERE)
    assert read_rows(tmp_path, row_ids=True) == before


@pytest.mark.parametrize("by", [(), ("id",)])
def test_a_bin_whose_files_are_all_gone_is_not_written(
    tmp_path: Path, by: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new files would have no row. Which rows they lost is not asked."""
    rows = [[{"p": p, "id": n} for n in range(f * 10, f * 10 + 10)] for p in range(2) for f in range(2)]
    properties = {"delta.enableDeletionVectors": "true"}
    write_rows(tmp_path, {"p": "long", "id": "long"}, rows, partition_by=("p",), properties=properties)
    snapshot = load_snapshot(str(tmp_path))
    plan = plan_zorder(snapshot, by, (), CommandOptions()) if by else plan_optimize(snapshot, (), CommandOptions())
    asked: list[int] = []
    deleted_rows = mend._deleted_rows

    def asking(some: Any) -> Any:
        asked.append(some.num_rows)
        return deleted_rows(some)

    monkeypatch.setattr(mend, "_deleted_rows", asking)
    propose = FileSystemCommitter.propose
    winners = iter(["p = 0", "p = 1 AND id IN (3, 14)"])

    def losing(committer: FileSystemCommitter, commit: ProposedCommit) -> bool:
        if b'"OPTIMIZE"' in commit.data and (where := next(winners, None)) is not None:
            delete(tmp_path, where)
        return propose(committer, commit)

    monkeypatch.setattr(FileSystemCommitter, "propose", losing)
    assert run_layout(plan, HERE).version == 3
    assert read_sorted(tmp_path, "id") == [n for n in range(20) if n not in (3, 14)]
    assert asked == [20, 20]  # one bin, for the second mend and for the third
    assert len(list((tmp_path / "p=0").glob("*.parquet"))) == 2 and list(verify(str(tmp_path)).findings) == []
