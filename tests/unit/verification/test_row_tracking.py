"""Each rule of row tracking, broken alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.support.table_builder import Action, TableBuilder
from tests.support.verification import messages, rules

PROPERTIES = {
    "delta.enableRowTracking": "true",
    "delta.rowTracking.materializedRowIdColumnName": "_row-id",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-version",
}


def mark(value: int, key: str = "rowIdHighWaterMark") -> Action:
    text = json.dumps({key: value})
    return {"domainMetadata": {"domain": "delta.rowTracking", "configuration": text, "removed": False}}


def file(t: TableBuilder, base: int | None, version: int | None, rows: int = 5, **options: Any) -> Action:
    ids = {"baseRowId": base, "defaultRowCommitVersion": version}
    given = {k: v for k, v in ids.items() if v is not None}
    return t.write_file([{"id": i} for i in range(rows)], **given, **options)


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    """Version 1 has the ids 0 to 4."""
    t = TableBuilder(tmp_path, {"id": "long"}, properties=PROPERTIES)
    t.create()
    t.commit([mark(4), file(t, 0, 1)])
    return t


@pytest.mark.parametrize("key", ["rowIdHighWaterMark", "highWaterMark"])
def test_fresh_ids_above_the_mark_are_clean(table: TableBuilder, key: str) -> None:
    table.commit([mark(14, key), file(table, 5, 2), file(table, 10, 2)])
    table.checkpoint()
    assert messages(table) == ""


def test_ids_kept_by_deletes_and_moves_are_clean(tmp_path: Path) -> None:
    properties = {**PROPERTIES, "delta.enableDeletionVectors": "true"}
    t = TableBuilder(tmp_path, {"id": "long"}, properties=properties)
    t.create()
    t.commit([mark(4), file(t, 0, 1)])
    t.delete(t.active()[0], [1])
    stable = {"_row-id": pa.array([0, None, 3], pa.int64())}
    new = t.write_file([{"id": 0}, {"id": 2}, {"id": 3}], baseRowId=5, defaultRowCommitVersion=3, extra_columns=stable)
    t.commit([mark(7), t.remove(t.active()[0]), new])
    assert messages(t) == ""


@pytest.mark.parametrize(
    ("base", "version", "high", "expected"),
    [
        (None, 2, 9, "error row-tracking.missing"),
        (5, None, 9, "error row-tracking.missing"),
        (5, 1, 9, "error row-tracking.commit-version"),
        (5, 2, 8, "error row-tracking.high-water-mark"),
        (5, 2, None, "error row-tracking.high-water-mark"),
    ],
)
def test_adds_that_break_a_rule(
    table: TableBuilder, base: int | None, version: int | None, high: int | None, expected: str
) -> None:
    table.commit([*([] if high is None else [mark(high)]), file(table, base, version)])
    assert rules(table) == [expected]


# version 2: the ids 10 to 14; then another file with the ids ``base`` to ``base + rows - 1``
@pytest.mark.parametrize(
    ("base", "rows", "overlaps"),
    [
        (12, 5, True),
        (14, 1, True),
        (14, 3, True),
        (6, 5, True),
        (10, 5, True),
        (11, 1, True),
        (8, 9, True),
        (15, 3, False),
        (7, 3, False),
        (5, 1, False),
    ],
)
@pytest.mark.parametrize("together", [False, True])
def test_overlapping_ids(table: TableBuilder, base: int, rows: int, overlaps: bool, together: bool) -> None:
    first = file(table, 10, 2)
    if together:
        second = file(table, base, 2, rows)
        table.commit([mark(99), first, second])
    else:
        table.commit([mark(99), first])
        second = file(table, base, 3, rows)
        table.commit([second])
    # rows of files are compared too, under the same rule: what is asked for is the finding of the commit
    told = [line for line in messages(table).splitlines() if "row ids" in line and "overlap" in line]
    path = second["add"]["path"]
    assert [f"the row ids {base} to {base + rows - 1} of {path} overlap" in line for line in told] == [True] * overlaps
    assert ("error row-tracking.duplicate" in rules(table)) is overlaps


def test_ids_given_before(table: TableBuilder) -> None:
    table.commit([mark(8), file(table, 3, 2)])
    assert rules(table) == ["error row-tracking.duplicate", "warning row-tracking.base"]


def test_reserved_ids_may_be_given_later(table: TableBuilder) -> None:
    table.commit([mark(100)])
    table.commit([file(table, 50, 3)])
    assert rules(table) == ["warning row-tracking.base"]


def test_a_negative_id(table: TableBuilder) -> None:
    table.commit([mark(4), file(table, -9, 2)])
    assert rules(table) == ["error row-tracking.base", "warning row-tracking.base"]


def test_a_mark_that_goes_back(table: TableBuilder) -> None:
    table.commit([mark(50)])
    table.commit([mark(49)])
    assert rules(table) == ["error row-tracking.high-water-mark"]


@pytest.mark.parametrize("text", ["{}", "x", '{"rowIdHighWaterMark":"4"}'])
def test_a_mark_that_cannot_be_read(tmp_path: Path, text: str) -> None:
    t = TableBuilder(tmp_path, {"id": "long"}, properties=PROPERTIES)
    t.create([{"domainMetadata": {"domain": "delta.rowTracking", "configuration": text, "removed": False}}])
    assert rules(t) == ["error row-tracking.high-water-mark"]


@pytest.mark.parametrize("change", [{"baseRowId": 5}, {"defaultRowCommitVersion": 2}])
def test_a_file_keeps_its_ids_when_it_is_committed_again(table: TableBuilder, change: dict[str, int]) -> None:
    body = {**table.active()[0]["add"], "dataChange": False}
    table.commit([mark(9), {"add": body}])
    assert rules(table) == []
    table.commit([{"add": {**body, **change}}])
    assert rules(table) == ["error row-tracking.changed"]


def test_a_remove_says_the_ids_of_its_file(table: TableBuilder) -> None:
    table.commit([table.remove(table.active()[0], baseRowId=77)])
    assert rules(table) == ["error row-tracking.changed"]


def test_row_ids_without_num_records_cannot_be_compared(table: TableBuilder) -> None:
    table.commit([mark(9), file(table, 5, 2, stats=False)])
    assert rules(table) == ["warning row-tracking.rows"]


def test_row_ids_without_the_feature(tmp_path: Path) -> None:
    t = TableBuilder(tmp_path, {"id": "long"})
    t.create()
    t.commit([file(t, 0, 1)])
    assert rules(t) == ["warning row-tracking.not-supported"]


def enable(path: Path, *, backfilled: bool) -> TableBuilder:
    t = TableBuilder(path, {"id": "long"}, features=([], ["rowTracking", "domainMetadata"]))
    t.commit([t.metadata(), {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}])
    [add] = t.append([{"id": 1}])
    old = TableBuilder(path / "unused", {"id": "long"}, features=([], ["rowTracking", "domainMetadata"]))
    t.commit([old.protocol()])
    if backfilled:
        t.commit([mark(0), {"add": {**add["add"], "dataChange": False, "baseRowId": 0, "defaultRowCommitVersion": 3}}])
    t.commit([t.metadata(properties=PROPERTIES)])
    return t


def test_row_tracking_is_switched_on_when_all_files_have_ids(tmp_path: Path) -> None:
    assert rules(enable(tmp_path / "full", backfilled=True)) == []
    assert rules(enable(tmp_path / "bare", backfilled=False)) == ["error row-tracking.missing"]


def test_rows_that_share_an_id(table: TableBuilder) -> None:
    stored = {"_row-id": pa.array([2, None, None, None, None], pa.int64())}
    table.commit([mark(9), file(table, 5, 2, extra_columns=stored)])
    assert rules(table) == ["error row-tracking.duplicate"]
    assert "1 rows share a row id" in messages(table)


def test_after_a_cleanup_the_checkpoint_says_which_ids_were_given(table: TableBuilder) -> None:
    table.checkpoint()
    table.commit([mark(7), file(table, 3, 2)])
    table.cleanup_log(1)
    assert rules(table) == ["error row-tracking.duplicate", "warning row-tracking.base"]
