"""The cost of a layout's mend. Its results: tests/property/test_mended_commands.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from delta_pyds.commands.layout import mend
from delta_pyds.commands.layout.optimize import plan_optimize
from delta_pyds.commands.layout.run import run_layout
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.row_changes.result import Place
from delta_pyds.log.committer import FileSystemCommitter, ProposedCommit
from delta_pyds.table.snapshot import load_snapshot
from tests.support.planned_changes import delete
from tests.support.table_writes import read_sorted, write_rows


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
    assert run_layout(plan, Place("process", "a test says so")).version == 4
    assert len(loaded) == len(set(loaded)) == 3
    assert read_sorted(tmp_path, "id") == [n for n in range(30) if n not in (3, 4, 25)]
