"""Compaction after a write: in partitions that the write touched, where enough files are small, and never failing."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import Any

import pytest

from delta_pyds.commands.layout import auto_compact
from delta_pyds.commands.layout.auto_compact import AutoCompaction, compact_after, compact_in_separate_process
from delta_pyds.errors import StorageError
from delta_pyds.storage.local import LocalStorage
from delta_pyds.table.history import history
from delta_pyds.table.snapshot import load_snapshot
from delta_pyds.verification.verify import verify
from tests.support.table_builder import TableBuilder
from tests.support.table_writes import read_rows, read_sorted, write_rows

SCHEMA = {"id": "long", "p": "long"}
WANTED = {"delta.autoOptimize.autoCompact": "true"}


def operations(path: Path) -> list[Any]:
    return [record.commit_info.operation for record in history(LocalStorage(), str(path))][::-1]


@pytest.fixture
def three(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three small files of a partition are enough."""
    monkeypatch.setattr(auto_compact, "AutoCompaction", lambda: AutoCompaction(min_files=3))


@pytest.mark.usefixtures("three")
def test_the_write_that_makes_enough_files_has_them_compacted(tmp_path: Path) -> None:
    for n in range(4):
        write_rows(tmp_path, SCHEMA, [{"id": n, "p": 0}], properties=WANTED)

    assert operations(tmp_path) == ["CREATE TABLE AS SELECT", "WRITE", "WRITE", "OPTIMIZE", "WRITE"] or operations(
        tmp_path
    ) == ["WRITE", "WRITE", "WRITE", "OPTIMIZE", "WRITE"]
    [record] = [r for r in history(LocalStorage(), str(tmp_path)) if r.commit_info.operation == "OPTIMIZE"]
    assert record.commit_info.operation_parameters == {
        "predicate": "[]", "zOrderBy": "[]", "clusterBy": "[]", "auto": True,
    }  # fmt: skip
    assert record.commit_info.operation_metrics["numRemovedFiles"] == "3"
    assert read_sorted(tmp_path, "id") == [0, 1, 2, 3]
    assert list(verify(str(tmp_path)).findings) == []


@pytest.mark.usefixtures("three")
def test_partitions_that_the_write_did_not_touch_stay(tmp_path: Path) -> None:
    for p in (0, 0, 1, 1, None, None):
        write_rows(tmp_path, SCHEMA, [{"id": 1, "p": p}], properties=WANTED, partition_by=(("p",),))
    version = load_snapshot(str(tmp_path)).version
    write_rows(tmp_path, SCHEMA, [{"id": 2, "p": None}])
    assert operations(tmp_path)[version + 1 :] == ["WRITE", "OPTIMIZE"]
    assert load_snapshot(str(tmp_path)).totals.num_files == 5


def test_a_table_that_does_not_want_it_is_left_alone(tmp_path: Path) -> None:
    for n in range(4):
        write_rows(tmp_path, SCHEMA, [{"id": n, "p": 0}])
    assert compact_after(str(tmp_path), 3, {}, rule=AutoCompaction(min_files=2)) is None
    assert load_snapshot(str(tmp_path)).version == 3


@pytest.mark.usefixtures("three")
def test_what_goes_wrong_does_not_fail_the_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any) -> Any:
        raise StorageError("the disk is full.")

    monkeypatch.setattr(auto_compact, "run_layout", broken)
    for n in range(3):
        write_rows(tmp_path, SCHEMA, [{"id": n, "p": 0}], properties=WANTED)
    assert read_sorted(tmp_path, "id") == [0, 1, 2]
    assert load_snapshot(str(tmp_path)).version == 2
    assert "the disk is full" in caplog.text


@pytest.mark.parametrize(("session", "wanted"), [(True, False), (False, True), (None, True), (None, False)])
def test_the_session_has_the_last_word(session: bool | None, wanted: bool, tmp_path: Path) -> None:
    for n in range(3):
        write_rows(tmp_path, SCHEMA, [{"id": n, "p": 0}], properties=WANTED if wanted else {})
    done = compact_after(str(tmp_path), 2, {}, rule=AutoCompaction(enabled=session, min_files=3))
    assert (done is not None) == (wanted if session is None else session)


def test_only_what_is_small_by_the_rule_counts(tmp_path: Path) -> None:
    for n in range(3):
        write_rows(tmp_path, SCHEMA, [{"id": n, "p": 0}])
    rule = AutoCompaction(enabled=True, min_files=3, small_file_bytes=10)
    assert compact_after(str(tmp_path), 2, {}, rule=rule) is None


def test_a_process_of_its_own_compacts(tmp_path: Path) -> None:
    for n in range(3):
        write_rows(tmp_path, SCHEMA, [{"id": n, "p": 0}], properties=WANTED)
    compact_in_separate_process(str(tmp_path), 2, {}, rule=AutoCompaction(min_files=3))
    assert operations(tmp_path)[-1] == "OPTIMIZE"
    assert read_sorted(tmp_path, "id") == [0, 1, 2]


def test_a_process_that_is_killed_fails_no_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As a system does that has no memory left. The one that committed goes on."""
    for n in range(3):
        write_rows(tmp_path, SCHEMA, [{"id": n, "p": 0}], properties=WANTED)
    monkeypatch.setattr(auto_compact, "_MAIN", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    compact_in_separate_process(str(tmp_path), 2, {}, rule=AutoCompaction(min_files=3))
    assert load_snapshot(str(tmp_path)).version == 2
    assert "ended with the code -9" in caplog.text


def test_a_process_that_hangs_holds_no_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for n in range(3):
        write_rows(tmp_path, SCHEMA, [{"id": n, "p": 0}], properties=WANTED)
    monkeypatch.setattr(auto_compact, "_MOST_SECONDS", 0.5)
    monkeypatch.setattr(auto_compact, "_MAIN", "import time; time.sleep(600)")
    compact_in_separate_process(str(tmp_path), 2, {}, rule=AutoCompaction(min_files=3))
    assert load_snapshot(str(tmp_path)).version == 2
    assert "timed out" in caplog.text


def test_times_that_only_a_session_explains_do_not_move(tmp_path: Path) -> None:
    """Partition timestamps without a zone are those of a session, which nobody names after a commit."""
    builder = TableBuilder(tmp_path, {"id": "long", "ts": "timestamp"}, partition_columns=["ts"], properties=WANTED)
    builder.create()
    moment = dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc)
    for n in range(6):
        builder.append([{"id": n, "ts": moment}])
    for version in range(1, 4):
        log = tmp_path / "_delta_log" / f"{version:020}.json"
        log.write_text(re.sub(r'("partitionValues": ?\{"ts": ?)"[^"]*"', r'\1"2024-01-01 00:00:00"', log.read_text()))
    before = sorted((row["id"], row["ts"]) for row in read_rows(tmp_path, time_zone="America/New_York"))
    assert before[0][1] != before[-1][1] == moment

    # in UTC, the commit's partition is that of the others too
    assert compact_after(str(tmp_path), 1, {}, rule=AutoCompaction(min_files=4)) is None
    result = compact_after(str(tmp_path), 6, {}, rule=AutoCompaction(min_files=2))

    assert result is not None and result.metrics["numFilesRemoved"] == 3
    assert sorted((row["id"], row["ts"]) for row in read_rows(tmp_path, time_zone="America/New_York")) == before


def test_one_run_reads_so_much_and_the_next_goes_on(tmp_path: Path) -> None:
    for n in range(6):
        write_rows(tmp_path, SCHEMA, [{"id": n, "p": 0}], properties=WANTED)
    size = load_snapshot(str(tmp_path)).totals.size_bytes
    result = compact_after(str(tmp_path), 5, {}, rule=AutoCompaction(min_files=2, max_bytes=size * 2 // 3))
    assert result is not None and result.metrics["numFilesRemoved"] in (3, 4)
    assert read_sorted(tmp_path, "id") == list(range(6))
