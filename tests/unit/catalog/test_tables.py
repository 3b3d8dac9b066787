"""The life of a table of a catalog, without Spark: all verbs, by the same commands as of a table at a path."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import delta_pyds
from delta_pyds.catalog.address import TableAddress, locate, locate_or_reserve, reserve
from delta_pyds.catalog.named import forget_catalogs, open_catalog
from delta_pyds.catalog.opening import table_storage
from delta_pyds.commands.definition.change import DefinitionOptions, commit_change
from delta_pyds.commands.definition.columns import NewColumn, add_columns
from delta_pyds.commands.definition.create import CreateMode, CreateRequest, create_table
from delta_pyds.commands.definition.drop_feature import drop_feature
from delta_pyds.commands.definition.feature_artifacts import Dropping
from delta_pyds.commands.definition.properties import set_properties, unset_properties
from delta_pyds.commands.layout.optimize import plan_optimize
from delta_pyds.commands.layout.run import run_layout
from delta_pyds.commands.maintenance.clone import CloneOptions, shallow_clone
from delta_pyds.commands.maintenance.restore import RestoreOptions, restore
from delta_pyds.commands.maintenance.vacuum import VacuumOptions, plan_vacuum, run_vacuum
from delta_pyds.commands.row_changes.delete import run_delete
from delta_pyds.commands.row_changes.merge import run_merge
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.row_changes.resolved import MergeClause
from delta_pyds.commands.row_changes.result import Place
from delta_pyds.commands.row_changes.update import run_update
from delta_pyds.errors import (
    CatalogError,
    DeltaError,
    MetadataChangedError,
    OptionError,
    TableNotFoundError,
    UnsupportedFeatureError,
    UnsupportedOperationError,
    UserError,
)
from delta_pyds.storage.local import LocalStorage
from delta_pyds.table.history import history
from delta_pyds.table.snapshot import Snapshot, load_snapshot
from tests.support.planned_changes import planned_delete, planned_merge, planned_update
from tests.support.table_writes import struct, write_rows
from tests.support.unity_server import UnityServer

NAME = "main.db.orders"
IDS = {"id": "long"}
HERE = Place("process", "a test says so")


class Orders:
    """A table of the catalog in ``tmp_path``. It has the rows 1 and 2."""

    def __init__(self, tmp_path: Path) -> None:
        self.catalog = f"sqlite://{tmp_path}/catalog.db"

    @property
    def address(self) -> TableAddress:
        return locate(table=NAME, catalog=self.catalog)

    @property
    def options(self) -> CommandOptions:
        return CommandOptions(self.address.storage_options)

    def create(self, rows: list[dict[str, Any]], **given: Any) -> None:
        address = reserve(NAME, self.catalog)
        write_rows(address.table_root, IDS, rows, storage_options=address.storage_options, **given)

    def write(self, *ids: int, mode: str = "append", **given: Any) -> None:
        address = self.address
        rows = [{"id": i} for i in ids]
        write_rows(address.table_root, IDS, rows, mode, storage_options=address.storage_options, **given)

    def snapshot(self, **given: Any) -> Snapshot:
        return load_snapshot(table=NAME, catalog=self.catalog, **given)

    def ids(self, **given: Any) -> list[int]:
        rows = delta_pyds.scan(table=NAME, catalog=self.catalog, **given).to_table().column("id").to_pylist()
        return sorted(rows)

    def operations(self) -> list[str]:
        snapshot = self.snapshot()
        records = history(
            snapshot.storage,
            snapshot.table_root,
            properties_of_latest=snapshot.configuration.properties,
        )
        return [str(record.commit_info and record.commit_info.operation) for record in records]


@pytest.fixture(params=["sqlite", "unity"])
def orders(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Orders]:
    """In SQLite; and in Unity Catalog, with a server of our own that answers as the real one (``unity_server``)."""
    with ExitStack() as until_the_end:
        made = Orders(tmp_path)
        if request.param == "unity":
            server = until_the_end.enter_context(UnityServer(str(tmp_path / "tables")))
            monkeypatch.setenv("DELTA_PYDS_CATALOG_PROD_URL", server.url)
            made.catalog = "prod"
        forget_catalogs()
        made.create([{"id": 1}, {"id": 2}])
        yield made
        forget_catalogs()


def test_a_table_that_is_created_is_its_catalogs(orders: Orders) -> None:
    snapshot = orders.snapshot()
    assert snapshot.version == 0 and orders.ids() == [1, 2]
    protocol = snapshot.protocol
    assert {"catalogManaged", "vacuumProtocolCheck"} <= set(protocol.reader_features or ())
    assert {"catalogManaged", "inCommitTimestamp"} <= set(protocol.writer_features or ())
    assert snapshot.configuration.configuration["delta.enableInCommitTimestamps"] == "true"
    assert delta_pyds.verify(table=NAME, catalog=orders.catalog).ok


def test_created_by_a_definition(tmp_path: Path) -> None:
    catalog = f"sqlite://{tmp_path}/c.db"
    address = locate_or_reserve(NAME, catalog)
    request = CreateRequest(
        address.table_root,
        "create",
        struct({"id": "long", "p": "string"}),
        partition_columns=("p",),
        storage_options=address.storage_options,
        properties={"delta.enableChangeDataFeed": "true"},
    )
    made = create_table(request)
    assert made is not None and made.version == 0
    assert locate_or_reserve(NAME, catalog) == locate(table=NAME, catalog=catalog)
    snapshot = load_snapshot(table=NAME, catalog=catalog)
    assert snapshot.configuration.properties.change_data_feed and snapshot.configuration.partition_columns == ("p",)
    # the same place again: another process that was told of it
    with pytest.raises(UserError) as error:
        create_table(request)
    assert error.value.code == "TABLE_OR_VIEW_ALREADY_EXISTS"


def test_what_the_catalog_wants_cannot_be_left_off(tmp_path: Path) -> None:
    address = reserve(NAME, f"sqlite://{tmp_path}/c.db")
    for properties in ({"delta.enableInCommitTimestamps": "false"}, {"delta.feature.catalogManaged": "supported"}):
        with pytest.raises(OptionError):
            write_rows(
                address.table_root, IDS, [{"id": 1}], storage_options=address.storage_options, properties=properties
            )


def test_a_table_at_a_path_is_not_made_a_catalogs(tmp_path: Path) -> None:
    with pytest.raises(OptionError):
        write_rows(tmp_path / "t", IDS, [{"id": 1}], properties={"delta.feature.catalogManaged": "supported"})


def test_opened_by_path_the_catalog_to_ask_is_named(orders: Orders) -> None:
    root = orders.address.table_root
    for attempt in (
        lambda: load_snapshot(root),
        lambda: delta_pyds.scan(root),
        lambda: write_rows(root, IDS, [{"id": 9}]),
        lambda: write_rows(root, IDS, [{"id": 9}], "overwrite"),
        lambda: delta_pyds.checkpoint(root),
        lambda: plan_vacuum(LocalStorage(), root, VacuumOptions()),
    ):
        with pytest.raises(UnsupportedFeatureError) as error:
            attempt()
        assert error.value.code == "DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED"
        named = "in Unity Catalog, which has it under the id" if orders.catalog == "prod" else f"{orders.catalog!r}"
        assert named in error.value.message
    assert orders.ids() == [1, 2]


def test_a_log_that_does_not_say_that_it_is_managed(orders: Orders, tmp_path: Path) -> None:
    write_rows(tmp_path / "plain", IDS, [{"id": 1}])
    shutil.rmtree(orders.address.table_root)
    shutil.copytree(tmp_path / "plain", orders.address.table_root)
    with pytest.raises(DeltaError) as error:
        orders.snapshot()
    assert error.value.code == "DELTA_CATALOG_MANAGED_FEATURE_MISSING"


def test_append_overwrite_and_time_travel(orders: Orders) -> None:
    orders.write(3)
    orders.write(7, 8, mode="overwrite")
    orders.write(8, 9, mode="overwrite", replace_where="id > 7")
    assert orders.ids() == [7, 8, 9]
    assert [orders.ids(version=v) for v in range(3)] == [[1, 2], [1, 2, 3], [7, 8]]
    times = [
        json.loads(Path(orders.address.table_root, "_delta_log", f"{v:020d}.json").read_text().splitlines()[0])
        for v in range(4)
    ]
    own = [line["commitInfo"]["inCommitTimestamp"] for line in times]
    assert [orders.ids(timestamp_ms=time) for time in own[1:3]] == [[1, 2, 3], [7, 8]]
    assert delta_pyds.verify(table=NAME, catalog=orders.catalog).ok


def test_rows_change(orders: Orders) -> None:
    orders.write(3, 4)
    assert run_delete(planned_delete(orders.snapshot(), "id = 2", orders.options), HERE).version == 2
    assert run_update(planned_update(orders.snapshot(), "id = 3", {"id": "id + 10"}, orders.options), HERE).version == 3
    clauses = [MergeClause("matched", "delete", None, None), MergeClause("not_matched", "insert", None, None)]
    rows = pa.table({"id": [4, 20]})
    plan = planned_merge(orders.snapshot(), "t.id = s.id", clauses, rows, struct(IDS), orders.options)
    assert run_merge(plan, HERE).version == 4
    assert orders.ids() == [1, 13, 20]
    assert orders.operations() == ["MERGE", "UPDATE", "DELETE", "WRITE", "WRITE"]
    assert delta_pyds.verify(table=NAME, catalog=orders.catalog).ok


def test_checkpoints_and_checksums(orders: Orders) -> None:
    for n in range(3, 13):
        orders.write(n)
    snapshot = orders.snapshot()
    assert snapshot.version == 10 and snapshot.segment.checkpoint is not None
    assert snapshot.verify_checksum()
    assert delta_pyds.checkpoint(table=NAME, catalog=orders.catalog) == 10
    assert delta_pyds.compact_log(None, 1, 4, table=NAME, catalog=orders.catalog).endswith(".compacted.json")
    assert orders.ids() == list(range(1, 13)) and orders.ids(version=5) == list(range(1, 8))
    assert delta_pyds.verify(table=NAME, catalog=orders.catalog).ok


def test_definitions_change(orders: Orders) -> None:
    options = DefinitionOptions()
    commit_change(orders.snapshot(), set_properties(orders.snapshot(), {"owner": "me"}), options)
    commit_change(orders.snapshot(), unset_properties(orders.snapshot(), ["owner"], if_exists=False), options)
    added = struct({"note": "string"}).fields[0]
    commit_change(orders.snapshot(), add_columns(orders.snapshot(), [NewColumn(added)]), options)
    assert [f.name for f in orders.snapshot().schema] == ["id", "note"]
    assert orders.snapshot().version == 3


@pytest.mark.parametrize(
    "properties",
    [
        {"delta.enableInCommitTimestamps": "false"},
        {"io.unitycatalog.tableId": "another"},
        {"io.deltapyds.table": "another"},
    ],
)
def test_what_makes_it_a_catalogs_table_stays(orders: Orders, properties: dict[str, str]) -> None:
    with pytest.raises(DeltaError) as error:
        commit_change(orders.snapshot(), set_properties(orders.snapshot(), properties), DefinitionOptions())
    assert error.value.code == "DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION"
    for feature in ("catalogManaged", "inCommitTimestamp", "appendOnly", "none at all"):
        with pytest.raises(UnsupportedOperationError, match="managed by a catalog"):
            drop_feature(Dropping(orders.snapshot), feature)
    assert orders.snapshot().version == 0


@pytest.mark.parametrize("orders", ["sqlite"], indirect=True)
def test_the_catalog_hears_of_schema_and_properties(orders: Orders) -> None:
    """In the same proposal, so that it cannot lag behind."""
    import sqlite3

    commit_change(orders.snapshot(), set_properties(orders.snapshot(), {"owner": "me"}), DefinitionOptions())
    connection = sqlite3.connect(orders.catalog.removeprefix("sqlite://"))
    protocol, metadata = connection.execute("SELECT protocol, metadata FROM delta_tables").fetchone()
    connection.close()
    assert json.loads(metadata)["configuration"]["owner"] == "me"
    assert "catalogManaged" in protocol


@pytest.mark.parametrize("orders", ["sqlite"], indirect=True)
def test_optimize_vacuum_and_restore(orders: Orders) -> None:
    for n in range(3, 6):
        orders.write(n)
    assert run_layout(plan_optimize(orders.snapshot(), [], orders.options), HERE).version == 4
    address = orders.address
    storage = table_storage(address.table_root, address.storage_options)
    plan = plan_vacuum(storage, address.table_root, VacuumOptions(retention_hours=0, check_retention=False))
    assert run_vacuum(plan).num_deleted_files == 4
    assert orders.ids() == [1, 2, 3, 4, 5]
    orders.write(6)
    restore(orders.snapshot(), RestoreOptions(version=4))
    assert orders.ids() == [1, 2, 3, 4, 5]
    assert delta_pyds.verify(table=NAME, catalog=orders.catalog).ok


def test_what_the_catalog_forbids_is_refused(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = open_catalog(orders.catalog)
    real = catalog.load_table
    forbidden = frozenset({"VACUUM START", "OPTIMIZE", "DELETE"})
    monkeypatch.setattr(catalog, "load_table", lambda name: replace(real(name), forbids=forbidden))
    address = orders.address
    storage = table_storage(address.table_root, address.storage_options)
    for attempt in (
        lambda: plan_vacuum(storage, address.table_root, VacuumOptions()),
        lambda: plan_optimize(orders.snapshot(), [], orders.options),
        lambda: run_delete(planned_delete(orders.snapshot(), "id = 1", orders.options), HERE),
    ):
        with pytest.raises(UnsupportedOperationError, match="only its catalog may do that"):
            attempt()
    orders.write(3)
    assert orders.ids() == [1, 2, 3]


def test_a_shallow_clone_is_refused(orders: Orders, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedOperationError, match="managed by a catalog"):
        shallow_clone(orders.snapshot(), LocalStorage(), str(tmp_path / "clone"), CloneOptions())
    write_rows(tmp_path / "plain", IDS, [{"id": 1}])
    address = reserve("main.db.clone", orders.catalog)
    storage = table_storage(address.table_root, address.storage_options)
    with pytest.raises(UnsupportedOperationError, match="managed by a catalog"):
        shallow_clone(load_snapshot(tmp_path / "plain"), storage, address.table_root, CloneOptions())


def test_a_conflict_is_the_same_as_at_a_path(orders: Orders) -> None:
    snapshot = orders.snapshot()
    change = set_properties(snapshot, {"owner": "me"})
    commit_change(orders.snapshot(), set_properties(orders.snapshot(), {"owner": "them"}), DefinitionOptions())
    with pytest.raises(MetadataChangedError):
        commit_change(snapshot, change, DefinitionOptions())


def test_there_is_no_such_table(orders: Orders) -> None:
    with pytest.raises(TableNotFoundError) as error:
        load_snapshot(table="main.db.other", catalog=orders.catalog)
    assert error.value.code == "TABLE_OR_VIEW_NOT_FOUND"


def test_tables_at_paths_load_nothing_of_a_catalog() -> None:
    """Spark starts a process for each plan, and each would pay for it."""
    program = (
        "import sys, delta_pyds.table.transaction.transaction, delta_pyds.commands.write.write\n"
        "print(sorted(name.rpartition('.')[2] for name in sys.modules if name.startswith('delta_pyds.catalog.')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['address', 'managed', 'opening']"


@pytest.mark.parametrize("orders", ["sqlite"], indirect=True)
@pytest.mark.parametrize("mode", ["replace", "create_or_replace"])
def test_a_table_that_is_replaced_stays_its_catalogs(orders: Orders, mode: CreateMode) -> None:
    wanted = {"delta.checkpoint.writeStatsAsStruct": "false", "delta.checkpointPolicy": "v2", "owner": "me"}
    commit_change(orders.snapshot(), set_properties(orders.snapshot(), wanted), DefinitionOptions())
    before = orders.snapshot().configuration.configuration
    address = locate_or_reserve(NAME, orders.catalog)
    asked = {"delta.checkpointPolicy": "classic"}
    made = create_table(
        CreateRequest(
            address.table_root,
            mode,
            struct({"id": "long", "more": "string"}),
            properties=asked,
            storage_options=address.storage_options,
        )
    )
    assert made is not None and made.version == 2
    snapshot = orders.snapshot()
    after = snapshot.configuration.configuration
    assert snapshot.schema.names == ("id", "more") and orders.ids() == []
    catalogs = {key for key in before if key.startswith("io.deltapyds.")}
    assert len(catalogs) == 2 and {key: after.get(key) for key in catalogs} == {key: before[key] for key in catalogs}
    assert after["delta.enableInCommitTimestamps"] == "true" and "owner" not in after
    assert after["delta.checkpoint.writeStatsAsStruct"] == "false" and after["delta.checkpointPolicy"] == "classic"
    assert delta_pyds.verify(table=NAME, catalog=orders.catalog).ok


def test_upkeep_that_the_catalog_keeps_to_itself(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = open_catalog(orders.catalog)
    real = catalog.load_table
    forbidden = frozenset({"CHECKPOINT", "COMPACT LOG", "CHECKSUM"})
    monkeypatch.setattr(catalog, "load_table", lambda name: replace(real(name), forbids=forbidden))
    change = set_properties(orders.snapshot(), {"delta.checkpointInterval": "2"})
    commit_change(orders.snapshot(), change, DefinitionOptions())
    for n in range(3, 7):
        orders.write(n)
    log = Path(orders.address.table_root, "_delta_log")
    assert not list(log.glob("*.checkpoint*")) and len(list(log.glob("*.crc"))) == 1
    for attempt in (
        lambda: delta_pyds.checkpoint(table=NAME, catalog=orders.catalog),
        lambda: delta_pyds.compact_log(None, 1, 2, table=NAME, catalog=orders.catalog),
    ):
        with pytest.raises(UnsupportedOperationError, match="only its catalog may do that"):
            attempt()
    monkeypatch.setattr(catalog, "load_table", lambda name: replace(real(name), forbids=frozenset({"CLEAN UP"})))
    monkeypatch.setattr("delta_pyds.table.transaction.maintenance.clean_log", None)
    assert delta_pyds.checkpoint(table=NAME, catalog=orders.catalog) == 5


@pytest.mark.parametrize("place", ["tables/x", "./x", "~/x", "c:x", ""])
@pytest.mark.parametrize("orders", ["sqlite"], indirect=True)
def test_a_place_that_depends_on_who_looks_is_refused(
    orders: Orders, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, place: str
) -> None:
    """Each process would look below its own working directory."""
    monkeypatch.chdir(tmp_path)
    catalog, before = open_catalog(orders.catalog), orders.address
    load, make = catalog.load_table, catalog.reserve_table
    monkeypatch.setattr(catalog, "load_table", lambda name: replace(load(name), location=place))
    monkeypatch.setattr(catalog, "reserve_table", lambda name: replace(make(name), location=place))
    storage = table_storage(before.table_root, before.storage_options)
    for attempt in (
        lambda: orders.address,
        lambda: reserve("main.db.new", orders.catalog),
        lambda: list(storage.list_from(f"{before.table_root}/_delta_log", "")),
    ):
        with pytest.raises(CatalogError, match="neither a URL nor an absolute path"):
            attempt()


def test_a_look_reserves_no_place(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    from delta_pyds.spark.options.values import table_address

    monkeypatch.setattr(open_catalog(orders.catalog), "reserve_table", None)
    with pytest.raises(TableNotFoundError):
        table_address({"table": "main.db.new", "catalog": orders.catalog}, "", "")
