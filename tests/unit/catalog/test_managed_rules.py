"""The protocol's rules for a catalog's table, its log and its streams, with errors where they are broken."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import LongType, StructType

import tests.support.catalogs
from delta_pyds.catalog import ManagedTable
from delta_pyds.catalog.address import locate, reserve
from delta_pyds.catalog.named import forget_catalogs, open_catalog
from delta_pyds.catalog.publishing import publish
from delta_pyds.catalog.unity_json import LoadedTable, managed_table
from delta_pyds.errors import ProtocolError, UserError
from delta_pyds.protocol.actions import Protocol
from delta_pyds.protocol.foreign_json import decode_json
from delta_pyds.spark.source.datasource import DeltaDataSource
from delta_pyds.table.snapshot import open_snapshot
from delta_pyds.table.transaction.maintenance import checkpoint_and_clean
from tests.support.catalogs import METADATA, NAME, CatalogTable, commit_lines
from tests.support.table_writes import write_rows
from tests.unit.catalog.fifty_lines import DictCatalog
from tests.unit.catalog.test_managed_storage import Log, checkpoint_of

DAY_MS = 24 * 3_600_000


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path)


# --- staged commits go with the log


def test_staged_commits_go_up_to_the_checkpoint_that_history_begins_with(log: Log) -> None:
    """Not up to the newest checkpoint: what is staged of versions that stay is left, as the log is."""
    for version in range(6):
        time_ms = 1_000 + version if version < 4 else 400 * DAY_MS + version
        lines = commit_lines(version, f"published-{version}", time_ms=time_ms)
        (log.log / f"{version:020d}.json").write_bytes(lines)
        staged = log.stage(version)
        os.utime(log.log / "_staged_commits" / str(staged.file_name), (1_000, 1_000))
    checkpoint_of(log, 2)
    log.says(5)
    storage = log.storage
    checkpoint_and_clean(storage, open_snapshot(storage, str(log.root)).replay, now_ms=401 * DAY_MS)
    assert sorted(int(path.stem) for path in log.log.glob("*.json")) == [2, 3, 4, 5]
    staged_left = sorted(int(path.name[:20]) for path in (log.log / "_staged_commits").iterdir())
    assert staged_left == [3, 4, 5]


# --- the size of a staged commit


def test_a_catalog_that_does_not_keep_sizes(log: Log) -> None:
    log.publish(0)
    log.says(2, *(replace(log.stage(version), size_bytes=None) for version in (1, 2)))
    assert log.files() == ["published-0", "staged-1", "staged-2"]
    assert log.rules() == []
    storage = log.storage
    table = storage.latest()
    assert table is not None and publish(storage, table).version == 2
    for path in (log.log / "_staged_commits").iterdir():
        path.unlink()
    assert log.files() == ["published-0", "staged-1", "staged-2"]
    assert publish(storage, table).version == 2


def test_unity_catalog_may_leave_the_size_out() -> None:
    name = f"{1:020d}.016ae953-37a9-438e-8683-9a9a4a79a395.json"
    text = {
        "metadata": {"table-uuid": "id", "location": "file:/t"},
        "commits": [{"version": 1, "timestamp": 5, "file-name": name}],
        "latest-table-version": 1,
    }
    loaded = decode_json(msgspec.json.encode(text), LoadedTable)
    assert managed_table("a.b.c", loaded, frozenset()).unpublished[0].size_bytes is None


# --- what the table must say of itself


def managed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: Protocol, **properties: str) -> CatalogTable:
    """A table that another engine made and registered."""
    monkeypatch.setattr(tests.support.catalogs, "PROTOCOL", protocol)
    metadata = msgspec.structs.replace(METADATA, configuration=properties)
    monkeypatch.setattr(tests.support.catalogs, "METADATA", metadata)
    root = tmp_path / "t"
    (root / "_delta_log" / "_staged_commits").mkdir(parents=True)
    (root / "_delta_log" / f"{0:020d}.json").write_bytes(commit_lines(0, "a"))
    catalog = DictCatalog(str(tmp_path))
    catalog._tables[NAME] = ManagedTable(NAME, "id", str(root), 0)
    return CatalogTable(catalog)


OWN_TIMES = {"delta.enableInCommitTimestamps": "true"}
WRITER = ["catalogManaged", "inCommitTimestamp", "vacuumProtocolCheck"]


@pytest.mark.parametrize(
    ("reader", "writer", "named"),
    [
        (["vacuumProtocolCheck"], WRITER, "is missing in readerFeatures"),
        (["catalogManaged", "vacuumProtocolCheck"], WRITER[1:], "is missing in writerFeatures"),
        ([], WRITER[1:], "is missing in readerFeatures and writerFeatures"),
    ],
)
def test_both_lists_have_the_feature(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reader: list[str], writer: list[str], named: str
) -> None:
    table = managed(tmp_path, monkeypatch, Protocol(3, 7, reader, writer), **OWN_TIMES)
    with pytest.raises(ProtocolError, match=named) as error:
        table.files()
    assert error.value.code == "DELTA_CATALOG_MANAGED_FEATURE_MISSING"


@pytest.mark.parametrize(
    ("writer", "properties"), [(WRITER, {}), (["catalogManaged", "vacuumProtocolCheck"], OWN_TIMES)]
)
def test_a_table_without_in_commit_timestamps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writer: list[str], properties: dict[str, str]
) -> None:
    protocol = Protocol(3, 7, ["catalogManaged", "vacuumProtocolCheck"], writer)
    table = managed(tmp_path, monkeypatch, protocol, **properties)
    assert table.files() == ["a"]
    with pytest.raises(ProtocolError, match="needs in-commit timestamps") as error:
        table.append("b")
    assert error.value.code == "DELTA_CATALOG_MANAGED_FEATURE_MISSING"
    assert error.value.parameters["feature"] == "inCommitTimestamp"
    assert table.published() == [0]


# --- a stream on a catalog whose answers lag


@pytest.fixture
def lagging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """A table of four versions, and what lets its catalog say that an older one is the latest."""
    catalog = DictCatalog(str(tmp_path))
    monkeypatch.setattr(f"{__name__}.made", lambda _: catalog)
    monkeypatch.setenv("DELTA_PYDS_CATALOG_LAGS_FACTORY", f"{__name__}:made")
    forget_catalogs()
    place = reserve(NAME, "lags")
    write_rows(place.table_root, {"id": "long"}, [{"id": 0}], storage_options=place.storage_options)
    for value in (1, 2, 3):
        address = locate(table=NAME, catalog="lags")
        write_rows(address.table_root, {"id": "long"}, [{"id": value}], storage_options=address.storage_options)

    def says(version: int) -> None:
        forget_catalogs()
        assert open_catalog("lags") is catalog
        catalog._tables[NAME] = replace(catalog._tables[NAME], latest_version=version)

    yield says
    forget_catalogs()


def made(_: Any) -> DictCatalog:
    raise NotImplementedError


def stream(**options: str) -> Any:
    reader = DeltaDataSource({"table": NAME, "catalog": "lags", **options})
    return reader.streamReader(StructType().add("id", LongType()))


def rows(reader: Any, start: Any, end: Any) -> list[int]:
    found: list[int] = []
    for partition in reader.partitions(start, end):
        found += pa.Table.from_batches(reader.read(partition)).column("id").to_pylist()
    return sorted(found)


@pytest.mark.parametrize("options", [{"startingVersion": "0"}, {}], ids=["from a version", "from the table"])
def test_a_restarted_stream_is_told_to_try_again(lagging: Callable[[int], None], options: dict[str, str]) -> None:
    first = stream(**options)
    start = first.initialOffset()
    end = first.latestOffset(start, ReadAllAvailable())
    assert rows(first, start, end) == [0, 1, 2, 3]

    lagging(1)
    for what in (
        lambda: rows(stream(**options), start, end),
        lambda: stream(**options).latestOffset(end, ReadAllAvailable()),
    ):
        with pytest.raises(UserError, match="start the query again, with the same checkpoint") as error:
            what()
        assert "new checkpoint location" not in error.value.message

    lagging(3)
    assert rows(stream(**options), start, end) == [0, 1, 2, 3]
