"""Checkpoints and log compactions on request."""

from __future__ import annotations

from pathlib import Path

import pytest

import delta_pyds
from delta_pyds.errors import UserError
from delta_pyds.table.snapshot import load_snapshot
from tests.support.table_writes import read_sorted, write_rows

IDS = {"id": "long"}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    for n in range(6):
        write_rows(tmp_path, IDS, [{"id": n}])
    return tmp_path


def test_a_checkpoint_replaces_the_commits_before_it(table: Path) -> None:
    assert delta_pyds.checkpoint(str(table)) == 5
    for version in range(5):
        (table / "_delta_log" / f"{version:020d}.json").unlink()
    assert read_sorted(table, "id") == list(range(6))
    assert delta_pyds.verify(str(table)).ok
    assert delta_pyds.checkpoint(str(table)) == 5


def test_a_compaction_stands_for_its_commits(table: Path) -> None:
    path = delta_pyds.compact_log(str(table), 1, 4)
    assert Path(path).exists()
    segment = load_snapshot(str(table)).segment
    assert len(segment.commits) == 3
    assert read_sorted(table, "id") == list(range(6))
    assert delta_pyds.verify(str(table)).ok


@pytest.mark.parametrize(("first", "last"), [(3, 3), (4, 2), (-1, 2), (0, 6)])
def test_versions_that_are_no_range_are_refused(table: Path, first: int, last: int) -> None:
    with pytest.raises(UserError, match="0 to 5"):
        delta_pyds.compact_log(str(table), first, last)
