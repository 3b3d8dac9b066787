"""A table whose newest commits only the catalog has: every answer is the one that it gives once they are published."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import LongType, StructType

import delta_pyds
from delta_pyds.catalog import UnpublishedCommit
from delta_pyds.catalog.address import locate, reserve
from delta_pyds.catalog.named import forget_catalogs, open_catalog
from delta_pyds.commands.definition.change import DefinitionOptions, commit_change
from delta_pyds.commands.definition.properties import set_properties
from delta_pyds.commands.row_changes.delete import run_delete
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.row_changes.result import Place
from delta_pyds.commands.row_changes.update import run_update
from delta_pyds.spark.source.datasource import DeltaDataSource
from delta_pyds.table.change_feed.change_scan import change_range, plan_changes
from delta_pyds.table.detail import table_detail
from delta_pyds.table.history import history
from delta_pyds.table.snapshot import Snapshot, load_snapshot
from tests.support.change_feed import rows_of
from tests.support.planned_changes import planned_delete, planned_update
from tests.support.table_writes import write_rows
from tests.unit.catalog.fifty_lines import DictCatalog

NAME, IDS, HERE = "main.db.orders", {"id": "long"}, Place("process", "a test says so")
LATEST = 6


def made(settings: Any) -> DictCatalog:
    return DictCatalog(settings["root"])


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DictCatalog]:
    """With a table of seven versions, all published."""
    monkeypatch.setenv("DELTA_PYDS_CATALOG_MINE_FACTORY", f"{__name__}:made")
    monkeypatch.setenv("DELTA_PYDS_CATALOG_MINE_ROOT", str(tmp_path))
    forget_catalogs()
    place = reserve(NAME, "mine")
    properties = {"delta.enableChangeDataFeed": "true"}
    rows = [{"id": 1}, {"id": 2}]
    write_rows(place.table_root, IDS, rows, storage_options=place.storage_options, properties=properties)
    address = locate(table=NAME, catalog="mine")
    options = CommandOptions(address.storage_options)
    write_rows(address.table_root, IDS, [{"id": 3}], storage_options=address.storage_options)
    write_rows(address.table_root, IDS, [{"id": 4}], storage_options=address.storage_options)
    run_delete(planned_delete(snapshot(), "id = 2", options), HERE)
    run_update(planned_update(snapshot(), "id = 3", {"id": "id + 10"}, options), HERE)
    commit_change(snapshot(), set_properties(snapshot(), {"owner": "me"}), DefinitionOptions())
    write_rows(address.table_root, IDS, [{"id": 7}], storage_options=address.storage_options)
    found = open_catalog("mine")
    assert isinstance(found, DictCatalog)
    yield found
    forget_catalogs()


def snapshot(version: int | None = None) -> Snapshot:
    return load_snapshot(table=NAME, catalog="mine", version=version)


def answers() -> dict[str, Any]:
    """All that a table is asked, but for what Spark alone asks."""
    latest = snapshot()
    records = history(latest.storage, latest.table_root, properties_of_latest=latest.configuration.properties)
    times = [record.timestamp_ms for record in records]
    changes = plan_changes(latest, change_range(latest, starting_version=1))

    def ids(**at: Any) -> list[int]:
        return sorted(delta_pyds.scan(table=NAME, catalog="mine", **at).to_table().column("id").to_pylist())

    return {
        "versions": [ids(version=version) for version in range(LATEST + 1)],
        "times": [ids(timestamp_ms=time) for time in times],
        "history": [(record.version, record.timestamp_ms, record.commit_info.operation) for record in records],  # type: ignore[union-attr]
        "changes": sorted(map(repr, rows_of(changes))),
        "stream": streamed(),
        "detail": replace(table_detail(latest), last_modified_ms=0),
        "properties": latest.configuration.configuration,
        "checksum": latest.verify_checksum(),
    }


def streamed() -> list[int]:
    reader = DeltaDataSource({"table": NAME, "catalog": "mine", "ignoreChanges": "true", "startingVersion": "2"})
    stream: Any = reader.streamReader(StructType().add("id", LongType()))
    start = stream.initialOffset()
    end = stream.latestOffset(start, ReadAllAvailable())
    found: list[int] = []
    for partition in stream.partitions(start, end):
        found += pa.Table.from_batches(stream.read(partition)).column("id").to_pylist()
    return sorted(found)


def take_back(catalog: DictCatalog, first: int) -> None:
    """As it was before anybody published these commits: staged ones, and every other one inline."""
    table = catalog.load_table(NAME)
    log = Path(table.location, "_delta_log")
    commits = []
    for version in range(first, LATEST + 1):
        file = log / f"{version:020d}.json"
        data = file.read_bytes()
        time_ms = json.loads(data.splitlines()[0])["commitInfo"]["inCommitTimestamp"]
        commit = UnpublishedCommit(version, time_ms, content=data)
        if version % 2:
            name = f"{version:020d}.{uuid.uuid4()}.json"
            (log / "_staged_commits" / name).write_bytes(data)
            commit = replace(commit, file_name=name, size_bytes=len(data), modification_time_ms=5, content=None)
        commits.append(commit)
        file.unlink()
    catalog._tables[NAME] = replace(table, unpublished=tuple(commits))


@pytest.mark.parametrize("first", [1, 4, LATEST])
def test_who_published_what_makes_no_difference(catalog: DictCatalog, first: int) -> None:
    published = answers()
    assert published["versions"][-1] == [1, 4, 7, 13] and published["stream"] == [1, 4, 7, 13]
    take_back(catalog, first)
    assert answers() == published
    report = delta_pyds.verify(table=NAME, catalog="mine")
    assert report.ok, str(report)
    log = Path(catalog.load_table(NAME).location, "_delta_log")
    assert len(list(log.glob("*.json"))) == first

    # the next writer publishes them before its own
    address = locate(table=NAME, catalog="mine")
    write_rows(address.table_root, IDS, [{"id": 8}], storage_options=address.storage_options)
    assert catalog.load_table(NAME).unpublished == ()
    assert len(list(log.glob("*.json"))) == LATEST + 2
    assert answers()["versions"] == published["versions"]
    assert delta_pyds.verify(table=NAME, catalog="mine").ok
