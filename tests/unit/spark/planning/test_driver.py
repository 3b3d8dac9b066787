from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from delta_pyds.errors import OptionError
from delta_pyds.spark.options.read import parse_read_options
from delta_pyds.spark.planning.driver import open_table, plan
from delta_pyds.spark.source.task_scan import task_scan
from tests.support.table_builder import TableBuilder


def build(path: Path) -> TableBuilder:
    table = TableBuilder(path, {"id": "long"})
    table.create()
    table.append([{"id": 1}])
    return table


def test_a_snapshot_is_used_again_while_the_log_is_the_same(tmp_path: Path) -> None:
    table = build(tmp_path / "t")
    options = parse_read_options({"path": str(table.path)})
    first = open_table(options).snapshot
    assert open_table(options).snapshot is first
    table.append([{"id": 2}])
    assert open_table(options).snapshot.version == 2


def test_a_table_that_was_replaced_is_noticed_though_names_sizes_and_times_are_equal(tmp_path: Path) -> None:
    options = parse_read_options({"path": str(tmp_path / "t")})
    old = build(tmp_path / "t")
    files = {f.name: (f.stat().st_size, f.stat().st_mtime_ns) for f in old.log_path.iterdir()}
    assert open_table(options).snapshot.metadata.id == old.table_id
    shutil.rmtree(tmp_path / "t")
    new = build(tmp_path / "t")
    for file in new.log_path.iterdir():
        size, time = files[file.name]
        assert file.stat().st_size == size
        os.utime(file, ns=(time, time))
    assert new.table_id != old.table_id
    assert open_table(options).snapshot.metadata.id == new.table_id


def test_an_empty_timestamp_is_refused_and_not_taken_for_none(tmp_path: Path) -> None:
    table = build(tmp_path / "t")
    with pytest.raises(OptionError) as error:
        open_table(parse_read_options({"path": str(table.path), "timestampAsOf": ""}))
    assert error.value.code == "DELTA_TIMESTAMP_INVALID"


@pytest.mark.parametrize("suffix", ["@v1", "@20240101000000000"])
def test_a_version_in_the_path_is_no_end_of_a_change_feed(tmp_path: Path, suffix: str) -> None:
    table = build(tmp_path / "t")
    given = {"path": f"{table.path}{suffix}", "readChangeFeed": "true", "startingVersion": "0"}
    with pytest.raises(OptionError, match="endingVersion") as error:
        open_table(parse_read_options({**given, "endingTimestamp": "2023-11-14"}))
    assert error.value.code == "DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS"


@pytest.mark.parametrize(
    ("partition", "where", "matters"),
    [
        ("id", "id = 1", False),
        ("id", "_change_type = 'insert'", False),
        ("at", "id = 1", True),
        ("id", "_commit_timestamp > '2024-01-01 00:00:00'", True),
    ],
)
def test_commit_times_do_not_depend_on_the_time_zone_that_planning_assumed(
    tmp_path: Path, partition: str, where: str, matters: bool
) -> None:
    on = {"delta.enableChangeDataFeed": "true"}
    TableBuilder(tmp_path, {"id": "long", "at": "timestamp", "v": "long"}, [partition], on).create()
    given = {"path": str(tmp_path), "readChangeFeed": "true", "startingVersion": "0", "where": where}
    options = parse_read_options(given)
    opened = open_table(options)
    task = task_scan(plan(opened, options).selection, opened, zone_used=False)
    assert (task.assumed_zone is not None) == matters
