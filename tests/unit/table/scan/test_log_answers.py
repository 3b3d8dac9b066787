"""Numbers of rows and bounds out of the log: exact, or none."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from delta_pyds.table.scan.log_answers import log_answers
from delta_pyds.table.snapshot import load_snapshot
from tests.support.table_builder import TableBuilder

COUNT = ("count", None)
DAY = (dt.date(2026, 1, 31) - dt.date(1970, 1, 1)).days


def table_in(path: Path) -> TableBuilder:
    """Three files, in the last of which ``id`` is null throughout."""
    table = TableBuilder(
        path,
        {"id": "long", "day": "date", "name": "string", "x": "double", "p": "integer"},
        partition_columns=["p"],
        properties={"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"},
    )
    table.create()
    day = dt.date(2026, 1, 31)
    table.append(
        [{"id": 5, "day": day, "name": "a", "x": 1.0, "p": 1}, {"id": -7, "day": None, "name": "b", "x": 2.0, "p": 1}]
    )
    table.append([{"id": 3, "day": day + dt.timedelta(1), "name": "c", "x": 3.0, "p": 2}])
    table.append([{"id": None, "day": None, "name": "d", "x": 4.0, "p": None}])
    return table


def answers(table: TableBuilder, *asked: tuple[str, str | None]) -> list[int | None] | None:
    return log_answers(load_snapshot(str(table.path)), asked)


@pytest.mark.parametrize("checkpoint", [False, True])
def test_rows_and_bounds_are_those_of_the_table(tmp_path: Path, checkpoint: bool) -> None:
    table = table_in(tmp_path)
    if checkpoint:
        table.checkpoint()
    asked = [COUNT, ("min", "id"), ("max", "ID"), ("min", "day"), ("max", "day"), ("min", "p"), ("max", "p")]
    assert answers(table, *asked) == [4, -7, 5, DAY, DAY + 1, 1, 2]


def test_deleted_rows_do_not_count(tmp_path: Path) -> None:
    table = table_in(tmp_path)
    table.commit(table.delete_rows(table.active()[1], [0]))
    # no row of partition 2 is left
    assert answers(table, COUNT, ("max", "p")) == [3, 1]
    # and none of that file bounds anything
    assert answers(table, ("max", "day")) == [DAY]
    table.commit(table.delete_rows(table.active()[0], [1]))
    assert answers(table, COUNT) == [2]
    assert answers(table, ("min", "id")) is None  # it may have been the one that is gone


def test_an_empty_table_has_no_rows_and_no_bounds(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path, {"id": "long"})
    table.create()
    assert answers(table, COUNT, ("min", "id")) == [0, None]


@pytest.mark.parametrize("column", ["name", "x", "nothing"])
def test_bounds_that_may_be_others_are_not_given(tmp_path: Path, column: str) -> None:
    assert answers(table_in(tmp_path), ("max", column)) is None


@pytest.mark.parametrize(
    "stats",
    [
        None,
        "{",
        "[]",
        '{"numRecords": "1"}',
        '{"numRecords": -1}',
        '{"numRecords": 1, "minValues": {"id": 1}}',
        '{"numRecords": 1, "minValues": {"id": 1}, "maxValues": {"id": 9.5}}',
        '{"numRecords": 1, "minValues": {"id": 1}, "maxValues": {"id": 9223372036854775808}}',
        '{"numRecords": 1, "minValues": {"id": 1}, "maxValues": {"id": 1}, "tightBounds": false}',
        '{"numRecords": 1, "nullCount": {"id": 0}}',
        # writers that do not know the number say 0
        '{"numRecords": 0}',
        '{"numRecords": 0, "minValues": {"id": 1}, "maxValues": {"id": 1}, "nullCount": {"id": 0}}',
        '{"numRecords": 1, "minValues": {"id": 1}, "maxValues": {"id": 1}, "nullCount": {"id": 1}}',
        '{"numRecords": 1, "minValues": {"id": 2}, "maxValues": {"id": 1}, "nullCount": {"id": 0}}',
    ],
)
def test_what_a_file_does_not_say_is_not_known(tmp_path: Path, stats: str | None) -> None:
    table = TableBuilder(tmp_path, {"id": "long"})
    table.create()
    table.append([{"id": 1}])
    table.append([{"id": 1}], stats=stats)
    assert answers(table, ("max", "id")) is None
