"""A property that turns a feature on counts for nothing in a table that does not support the feature.

Protocol: "Active Features".
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from delta_pyds.commands.row_changes.delete import run_delete
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.row_changes.result import Place
from delta_pyds.commands.task_runner import LocalRunner
from delta_pyds.errors import UserError
from delta_pyds.log.cleanup import clean_log
from delta_pyds.protocol.actions import Protocol
from delta_pyds.protocol.features import Feature, active_properties
from delta_pyds.protocol.properties import TableProperties
from delta_pyds.storage.local import LocalStorage
from delta_pyds.table.history import history, version_at
from delta_pyds.table.snapshot import load_snapshot
from delta_pyds.verification.verify import verify
from tests.support.change_feed import change_rows
from tests.support.planned_changes import planned_delete
from tests.support.table_builder import BASE_TIME_MS, TableBuilder
from tests.support.table_writes import read_rows, write_rows

IDS = {"id": "long"}
STRAY = {"delta.enableInCommitTimestamps": "true", "delta.enableChangeDataFeed": "true"}
LISTED = (["columnMapping"], ["columnMapping", "invariants"])
# commits say times of their own that lie a year after those of their files
YEAR_MS = 365 * 86_400_000


def stray(path: Path, **protocol: Any) -> TableBuilder:
    table = TableBuilder(path, IDS, properties=STRAY, **protocol)
    table.create(in_commit_timestamp=BASE_TIME_MS + YEAR_MS)
    for n in (1, 2):
        when = {"in_commit_timestamp": BASE_TIME_MS + YEAR_MS + n, "timestamp_ms": BASE_TIME_MS + n * 60_000}
        table.append([{"id": n}, {"id": 10 + n}], commit=when)
    return table


@pytest.fixture(params=[{"protocol": (1, 2)}, {"features": LISTED}], ids=["legacy", "listed"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> TableBuilder:
    return stray(tmp_path / "t", **request.param)


def test_times_are_those_of_the_files(table: TableBuilder) -> None:
    properties = load_snapshot(table.path).configuration.properties
    records = history(LocalStorage(), str(table.path), properties_of_latest=properties)
    assert [record.timestamp_ms for record in records] == [BASE_TIME_MS + n * 60_000 for n in (2, 1, 0)]
    assert load_snapshot(table.path, timestamp_ms=BASE_TIME_MS + 60_000).version == 1
    at = version_at(
        LocalStorage(), str(table.path), BASE_TIME_MS + 90_000, properties_of_latest=properties, latest_version=2
    )
    assert at == 1


def test_the_change_feed_is_off(table: TableBuilder) -> None:
    with pytest.raises(UserError, match="feed is off") as caught:
        change_rows(table.path, compute="never")
    assert caught.value.code == "DELTA_MISSING_CHANGE_DATA"


def test_a_writer_leaves_no_times_and_no_change_files(table: TableBuilder) -> None:
    builders = table.checksum()
    write_rows(table.path, IDS, [{"id": 3}])
    snapshot = load_snapshot(table.path)
    run_delete(planned_delete(snapshot, "id = 1", CommandOptions()), Place("process", "a test"), LocalRunner())
    log = table.path / "_delta_log"
    for version in (3, 4):
        lines = [json.loads(line) for line in (log / f"{version:020}.json").read_text().splitlines()]
        assert "inCommitTimestamp" not in lines[0]["commitInfo"]
        assert not any("cdc" in line for line in lines)
        assert "inCommitTimestampOpt" not in json.loads((log / f"{version:020}.crc").read_text())
    assert not (table.path / "_change_data").exists()
    builders.unlink()
    assert sorted(row["id"] for row in read_rows(table.path)) == [2, 3, 11, 12]
    assert {finding.rule for finding in verify(str(table.path)).findings if finding.severity == "error"} == {
        "feature.missing"
    }


def test_clean_up_goes_by_the_times_of_files(table: TableBuilder) -> None:
    table.checkpoint()
    log = table.path / "_delta_log"
    latest = load_snapshot(table.path).configuration
    removed = clean_log(
        LocalStorage(),
        str(table.path),
        retention_ms=0,
        # all commits are old by their files, none by the times that they say
        now_ms=BASE_TIME_MS + 30 * 86_400_000,
        configuration=latest.configuration,
        protocol=latest.protocol,
    )
    assert removed
    assert sorted(file.name for file in log.glob("*.json")) == [f"{2:020}.json"]


@pytest.mark.parametrize(
    ("key", "flag", "feature"),
    [
        ("delta.appendOnly", "append_only", Feature.APPEND_ONLY),
        ("delta.enableChangeDataFeed", "change_data_feed", Feature.CHANGE_DATA_FEED),
        ("delta.enableChangeDataCapture", "change_data_feed", Feature.CHANGE_DATA_FEED),
        ("delta.enableDeletionVectors", "deletion_vectors", Feature.DELETION_VECTORS),
        ("delta.enableInCommitTimestamps", "in_commit_timestamps", Feature.IN_COMMIT_TIMESTAMP),
        ("delta.enableRowTracking", "row_tracking", Feature.ROW_TRACKING),
        ("delta.enableTypeWidening", "type_widening", Feature.TYPE_WIDENING),
        ("delta.enableTypeWidening", "type_widening", Feature.TYPE_WIDENING_PREVIEW),
        ("delta.enableIcebergCompatV1", "iceberg_compat", Feature.ICEBERG_COMPAT_V1),
        ("delta.enableIcebergCompatV2", "iceberg_compat", Feature.ICEBERG_COMPAT_V2),
    ],
)
def test_a_property_is_on_with_its_feature_alone(key: str, flag: str, feature: str) -> None:
    with_feature = active_properties(Protocol(3, 7, [feature], [feature]), {key: "true"})
    assert getattr(with_feature, flag) not in (False, None)
    assert active_properties(Protocol(3, 7, [], []), {key: "true"}) == TableProperties()
    assert active_properties(Protocol(1, 1), {key: "true"}) == TableProperties()


def test_a_writer_version_stands_for_its_features() -> None:
    assert active_properties(Protocol(1, 4), STRAY).change_data_feed
    assert not active_properties(Protocol(1, 3), STRAY).change_data_feed
