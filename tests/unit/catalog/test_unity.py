"""Unity Catalog's client, with a server of our own that answers as the real one was seen to (``unity_server``)."""

from __future__ import annotations

import base64
import json
import logging
import os
import pickle
import threading
import traceback
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
import urllib3

import delta_pyds
from delta_pyds.catalog import (
    CommitOutcome,
    Conflict,
    NewTable,
    OutcomeUnknown,
    Ratified,
    Refused,
    StorageCredentials,
)
from delta_pyds.catalog.address import TableAddress, locate, reserve
from delta_pyds.catalog.managed_storage import CatalogStorage
from delta_pyds.catalog.named import forget_catalogs, open_catalog
from delta_pyds.catalog.opening import managed_storage, table_storage, task_options
from delta_pyds.catalog.unity import UnityCatalog
from delta_pyds.catalog.unity_config import CREATE, CREDENTIALS, LOAD, STAGE, UPDATE
from delta_pyds.catalog.unity_credentials import CredentialCache, credentials_for
from delta_pyds.catalog.unity_http import UnityError, UnityHttp
from delta_pyds.catalog.unity_json import LoadedTable, StorageCredential, columns_of
from delta_pyds.commands.definition.change import DefinitionOptions, commit_change
from delta_pyds.commands.definition.columns import NewColumn, add_columns
from delta_pyds.commands.definition.create import CreateRequest, create_table
from delta_pyds.commands.definition.properties import set_properties, unset_properties
from delta_pyds.commands.layout.optimize import plan_optimize
from delta_pyds.commands.maintenance.vacuum import VacuumOptions, plan_vacuum
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.row_changes.result import Place
from delta_pyds.commands.row_changes.update import run_update
from delta_pyds.errors import (
    CatalogError,
    DeltaError,
    NothingWrittenError,
    OptionError,
    TableNotFoundError,
    UnsupportedFeatureError,
    UnsupportedOperationError,
    UserError,
)
from delta_pyds.protocol.actions import Metadata
from delta_pyds.storage.local import LocalStorage
from delta_pyds.table.snapshot import Snapshot, load_snapshot
from tests.support.catalogs import METADATA, NAME, PROTOCOL, CatalogTable, proposal, registered
from tests.support.planned_changes import planned_update
from tests.support.s3_server import s3_server
from tests.support.table_writes import struct, write_rows
from tests.support.unity_server import CUT_AFTER, CUT_BEFORE, DRIP, HALF, PROPERTIES, FailureError, UnityServer, soon_ms

TOKEN = "dapi-0123456789abcdef"
IDS = {"id": "long"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[UnityServer]:
    with UnityServer(str(tmp_path / "tables"), token=TOKEN) as started:
        yield started


@pytest.fixture
def catalog(server: UnityServer) -> UnityCatalog:
    # no pause is waited for
    return UnityCatalog(UnityHttp(server.url, TOKEN, sleep=lambda _: None))


@pytest.fixture
def prod(server: UnityServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of the catalog, as an option has it."""
    monkeypatch.setenv("DELTA_PYDS_CATALOG_PROD_URL", server.url)
    monkeypatch.setenv("DELTA_PYDS_CATALOG_PROD_TOKEN", TOKEN)
    forget_catalogs()
    yield "prod"
    forget_catalogs()


def created(prod: str, rows: list[dict[str, Any]], **given: Any) -> TableAddress:
    made = reserve(NAME, prod)
    write_rows(made.table_root, IDS, rows, storage_options=made.storage_options, **given)
    return locate(table=NAME, catalog=prod)


def ids(prod: str) -> list[int]:
    return sorted(delta_pyds.scan(table=NAME, catalog=prod).to_table().column("id").to_pylist())


# --- a table's life


def test_a_table_by_its_name(prod: str, server: UnityServer) -> None:
    address = created(prod, [{"id": 1}, {"id": 2}])
    for n in range(3, 14):
        write_rows(address.table_root, IDS, [{"id": n}], storage_options=address.storage_options)
    assert ids(prod) == list(range(1, 14))
    snapshot = load_snapshot(table=NAME, catalog=prod)
    assert snapshot.version == 11 and snapshot.segment.checkpoint is not None
    table = server.tables[NAME]
    assert (table.commits[0]["version"], table.published, len(table.commits)) == (11, True, 1)
    assert snapshot.configuration.configuration["io.unitycatalog.tableId"] == table.table_id
    report = delta_pyds.verify(table=NAME, catalog=prod)
    assert report.ok, str(report)
    with pytest.raises(DeltaError) as error:
        load_snapshot(address.table_root)
    assert error.value.code == "DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED"


def test_the_catalog_hears_of_each_change_with_its_commit(prod: str, server: UnityServer) -> None:
    made = reserve(NAME, prod)
    columns = struct({"id": "long", "p": "string"})
    request = CreateRequest(
        made.table_root,
        "create",
        columns,
        clustering_columns=(("id",),),
        storage_options=made.storage_options,
        properties={"owner": "me", "delta.enableRowTracking": "true"},
        description="orders",
    )
    create_table(request)
    table = server.tables[NAME]
    assert table.comment == "orders" and table.properties["owner"] == "me"
    assert json.loads(table.properties["clusteringColumns"]) == [["id"]]
    table.properties["only.in.the.catalog"] = "stays"

    def snapshot() -> Snapshot:
        return load_snapshot(table=NAME, catalog=prod)

    options = DefinitionOptions()
    commit_change(snapshot(), set_properties(snapshot(), {"color": "red"}), options)
    commit_change(snapshot(), unset_properties(snapshot(), ["owner"], if_exists=False), options)
    note = struct({"notes": {"type": "array", "elementType": "string", "containsNull": True}}).fields[0]
    commit_change(snapshot(), add_columns(snapshot(), [NewColumn(note)]), options)
    rows = [{"id": 1, "p": "a", "notes": None}]
    write_rows(
        made.table_root, snapshot().schema, rows, storage_options=locate(table=NAME, catalog=prod).storage_options
    )

    table = server.tables[NAME]
    assert table.properties["color"] == "red" and "owner" not in table.properties
    assert table.properties["only.in.the.catalog"] == "stays"
    assert table.columns["fields"][2]["type"] == {"type": "array", "element-type": "string", "contains-null": True}
    assert int(table.properties["rowIdHighWaterMark"]) == 0
    bodies = [body for method, path, _, body in server.requests if method == "POST" and path.endswith("tables/t")]
    proposals = [[one["action"] for one in body["updates"]] for body in bodies]
    commits = [actions for actions in proposals if "add-commit" in actions]
    assert [set(one) - {"add-commit", "set-latest-backfilled-version"} for one in commits] == [
        {"set-properties"},
        {"remove-properties"},
        {"set-columns"},
        {"set-domain-metadata"},
    ]
    assert delta_pyds.verify(table=NAME, catalog=prod).ok


@pytest.mark.parametrize("unset", [False, True])
def test_what_the_catalog_requires_stays(prod: str, server: UnityServer, unset: bool) -> None:
    """The server of 0.6.0 takes a commit that loses it."""
    created(prod, [{"id": 1}])
    for key, value in PROPERTIES.items():
        snapshot = load_snapshot(table=NAME, catalog=prod)
        if unset:
            change = unset_properties(snapshot, [key], if_exists=False)
        else:
            change = set_properties(snapshot, {key: "classic" if value == "v2" else "false"})
        with pytest.raises(DeltaError) as error:
            commit_change(snapshot, change, DefinitionOptions())
        assert error.value.code == "DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION"
    assert PROPERTIES.items() <= server.tables[NAME].properties.items()
    assert load_snapshot(table=NAME, catalog=prod).version == 0


def test_a_table_that_is_replaced_keeps_what_the_catalog_requires(prod: str, server: UnityServer) -> None:
    address = created(prod, [{"id": 1}], properties={"owner": "me"})
    columns = struct({"name": "string", "p": "long"})
    create_table(
        CreateRequest(
            address.table_root,
            "replace",
            columns,
            partition_columns=("p",),
            storage_options=address.storage_options,
            description="another",
        )
    )
    table = server.tables[NAME]
    assert table.commits[0]["version"] == 1 and PROPERTIES.items() <= table.properties.items()
    assert "owner" not in table.properties and table.properties["io.unitycatalog.tableId"] == table.table_id
    assert [field["name"] for field in table.columns["fields"]] == ["name", "p"]
    assert table.partition_columns == ["p"] and table.comment == "another"
    assert delta_pyds.verify(table=NAME, catalog=prod).ok


def test_upkeep_is_the_catalogs(prod: str) -> None:
    address = created(prod, [{"id": 1}], properties={"delta.autoOptimize.autoCompact": "true"})
    storage = table_storage(address.table_root, address.storage_options)
    snapshot = load_snapshot(table=NAME, catalog=prod)
    for attempt in (
        lambda: plan_vacuum(storage, address.table_root, VacuumOptions()),
        lambda: plan_optimize(snapshot, [], CommandOptions(address.storage_options)),
    ):
        with pytest.raises(UnsupportedOperationError, match="only its catalog may do that"):
            attempt()
    assert delta_pyds.checkpoint(table=NAME, catalog=prod) == 0


def test_types_in_the_catalogs_spelling() -> None:
    nested = {
        "type": "map",
        "keyType": "string",
        "valueType": {"type": "struct", "fields": [{"name": "a", "type": "decimal(10,2)", "nullable": True}]},
        "valueContainsNull": False,
    }
    field = {"name": "m", "type": nested, "nullable": True, "metadata": {"elementType": "a comment's own"}}
    schema = json.dumps({"type": "struct", "fields": [field]})
    (found,) = columns_of(Metadata(schema_string=schema))["fields"]
    assert found["metadata"] == field["metadata"]
    assert found["type"] == {
        "type": "map",
        "key-type": "string",
        "value-type": {
            "type": "struct",
            "fields": [{"name": "a", "type": "decimal(10,2)", "nullable": True, "metadata": {}}],
        },
        "value-contains-null": False,
    }


# --- calls that fail


def once(server: UnityServer, wrong: Any, method: str, ending: str, *, times: int = 1) -> None:
    """Let that many of such calls go wrong."""
    left = [times]

    def fault(called: str, path: str) -> Any:
        if called == method and path.endswith(ending) and left[0] > 0:
            left[0] -= 1
            return wrong
        return None

    server.fault = fault


BUSY = (503, "", "")
WRONGS = [CUT_BEFORE, CUT_AFTER, HALF, BUSY, (429, "TooManyRequestsException", "slow down")]
UNKNOWN = (500, "CommitStateUnknownException", "timed out")


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("wrong", [*WRONGS, UNKNOWN], ids=str)
def test_a_proposal_that_goes_wrong(server: UnityServer, catalog: UnityCatalog, wrong: Any, times: int) -> None:
    table = CatalogTable(catalog)
    table.create()
    once(server, wrong, "POST", "tables/t", times=times)
    assert table.append("a").version == 1
    assert table.append("b").version == 2
    assert table.files() == ["a", "b"] and table.published() == [0, 1, 2] and table.unpublished() == []


@pytest.mark.parametrize("of_another_table", [False, True])
def test_an_answer_without_the_commit_says_nothing(
    catalog: UnityCatalog, monkeypatch: pytest.MonkeyPatch, of_another_table: bool
) -> None:
    """A gateway may answer from a cache; the call reaches the server the next time, or has reached it."""
    table = CatalogTable(catalog)
    table.create()
    table.append("a")
    http, real = catalog._http, catalog._http.post

    def post(path: str, body: Any, answer: Any) -> Any:
        monkeypatch.setattr(http, "post", real)
        if not of_another_table:
            return http.get(path, answer)
        loaded = real(path, body, answer)
        metadata = msgspec.structs.replace(loaded.metadata, table_uuid="another", location="/another")
        return msgspec.structs.replace(loaded, metadata=metadata)

    monkeypatch.setattr(http, "post", post)
    assert table.append("b").version == 2
    assert table.files() == ["a", "b"] and table.published() == [0, 1, 2]


def test_a_registration_whose_answer_is_another_tables(catalog: UnityCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    real = catalog._http.post

    def post(path: str, body: Any, answer: Any) -> Any:
        loaded = real(path, body, answer)
        if not path.endswith("/tables"):
            return loaded
        return msgspec.structs.replace(loaded, metadata=msgspec.structs.replace(loaded.metadata, table_uuid="another"))

    monkeypatch.setattr(catalog._http, "post", post)
    outcomes: list[CommitOutcome] = []
    register = catalog.register_table
    monkeypatch.setattr(catalog, "register_table", lambda new: outcomes.append(register(new)) or outcomes[-1])
    table = CatalogTable(catalog)
    table.create()
    assert isinstance(outcomes[0], OutcomeUnknown)
    assert table.append("a").version == 1


@pytest.mark.parametrize("wrong", WRONGS, ids=str)
def test_a_report_that_goes_wrong_is_made_again_by_the_next_commit(
    server: UnityServer, catalog: UnityCatalog, wrong: Any
) -> None:
    table = CatalogTable(catalog)
    table.create()
    posts = []

    def fault(method: str, path: str) -> Any:
        if method == "POST" and path.endswith("tables/t"):
            posts.append(path)
            return wrong if len(posts) == 2 else None
        return None

    server.fault = fault
    assert [table.append(name).version for name in "ab"] == [1, 2]
    assert table.files() == ["a", "b"] and table.unpublished() == []


@pytest.mark.parametrize("wrong", WRONGS, ids=str)
@pytest.mark.parametrize("ending", ["/tables", "/tables/t"])
def test_a_creation_that_goes_wrong(server: UnityServer, catalog: UnityCatalog, wrong: Any, ending: str) -> None:
    """The registration, or a look at the table between its tries."""
    table = CatalogTable(catalog)
    storage = table.new_storage()
    once(server, wrong, "POST" if ending == "/tables" else "GET", ending)
    assert table.create(storage).version == 0
    assert table.append("a").version == 1
    assert table.files() == ["a"]


@pytest.mark.parametrize("wrong", WRONGS, ids=str)
def test_questions_are_asked_again(server: UnityServer, catalog: UnityCatalog, wrong: Any) -> None:
    table = registered(catalog)
    once(server, wrong, "GET", "tables/t", times=3)
    assert catalog.load_table(NAME) == table
    once(server, wrong, "GET", "tables/t", times=9)
    with pytest.raises(CatalogError):
        catalog.load_table(NAME)


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ((400, "InvalidParameterValueException", "no"), Refused),
        ((401, "NotAuthorizedException", "expired"), Refused),
        ((403, "PermissionDeniedException", "not you"), Refused),
        ((404, "NoSuchTableException", "gone"), Refused),
        ((409, "CommitVersionConflictException", "taken"), Conflict),
        ((501, "NotImplementedException", "no such thing"), Refused),
        ((500, "InternalServerErrorException", "?"), OutcomeUnknown),
        (UNKNOWN, OutcomeUnknown),
        (BUSY, OutcomeUnknown),
        # of a proxy in between
        ((403, "", ""), Refused),
        ((302, "", ""), Refused),
        ((408, "", ""), OutcomeUnknown),
        ((409, "", ""), OutcomeUnknown),
    ],
    ids=str,
)
def test_what_an_answer_says(
    server: UnityServer, catalog: UnityCatalog, answer: tuple[int, str, str], outcome: type[CommitOutcome]
) -> None:
    one = proposal(registered(catalog), 1)
    server.fault = lambda method, _: answer if method == "POST" else None
    found = catalog.propose_commit(one)
    assert isinstance(found, outcome)
    if isinstance(found, Refused | OutcomeUnknown):
        assert str(answer[0]) in found.reason and answer[2] in found.reason
    server.fault = None
    assert isinstance(catalog.propose_commit(one), Ratified)


@pytest.mark.parametrize(
    "answer",
    [
        (429, "TooManyRequestsException", "slow down"),
        # another writer holds the lock of the table
        (409, "UpdateRequirementConflictException", "Concurrent commit in progress; retry the request"),
    ],
)
def test_what_surely_was_not_done_may_be_tried_again(
    server: UnityServer, catalog: UnityCatalog, answer: tuple[int, str, str]
) -> None:
    one = proposal(registered(catalog), 1)
    server.fault = lambda method, _: answer if method == "POST" else None
    with pytest.raises(NothingWrittenError, match=answer[2][:10]):
        catalog.propose_commit(one)
    server.fault = None
    assert isinstance(catalog.propose_commit(one), Ratified)


@pytest.mark.parametrize(
    "text", ["[]", "{", '{"metadata": 5}', "<html>", '{"metadata":{"location":"/t"}}', "[" * 9_999]
)
def test_an_answer_that_is_none(catalog: UnityCatalog, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    one = proposal(registered(catalog), 1)
    monkeypatch.setattr(UnityHttp, "_answered", lambda *_: (200, text.encode()))
    for call in (lambda: catalog.load_table(NAME), lambda: catalog.propose_commit(one)):
        with pytest.raises(CatalogError, match="invalid answer"):
            call()


@pytest.mark.parametrize(
    "change",
    [
        {"commits": [{"version": 5, "timestamp": 1, "file-name": f"{5:020d}.x.json", "file-size": 1}]},
        {"commits": [{"version": 1, "timestamp": 1, "file-name": "../../../x.json", "file-size": 1}]},
        {"latest-table-version": -1},
    ],
)
def test_an_answer_that_contradicts_itself(
    catalog: UnityCatalog, server: UnityServer, monkeypatch: pytest.MonkeyPatch, change: Any
) -> None:
    table = CatalogTable(catalog)
    table.create()
    table.append("a")
    real = type(server.tables[NAME]).answer
    monkeypatch.setattr(type(server.tables[NAME]), "answer", lambda table: {**real(table), **change})
    with pytest.raises(CatalogError, match="the catalog says"):
        table.files()


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    stopped = UnityServer(str(tmp_path))
    url = stopped.url
    stopped._server.server_close()
    catalog = UnityCatalog(UnityHttp(url, TOKEN, sleep=lambda _: None))
    with pytest.raises(CatalogError, match="cannot be reached"):
        catalog.load_table(NAME)
    with pytest.raises(NothingWrittenError, match="cannot be reached"):
        catalog.register_table(NewTable(NAME, "id", "/t", 1, PROTOCOL, METADATA))


def test_a_server_that_gives_no_answer(server: UnityServer, catalog: UnityCatalog) -> None:
    """Nobody waits for ever, nor knows what became of the commit."""
    one = proposal(registered(catalog), 1)
    impatient = UnityCatalog(UnityHttp(server.url, TOKEN, read_s=2))
    impatient.load_table(NAME)
    with server._lock, pytest.raises(CatalogError, match="gave no answer"):
        impatient.propose_commit(one)
    while not server.tables[NAME].commits:
        pass  # it arrives after all
    assert isinstance(impatient.propose_commit(one), Ratified)


def test_a_server_whose_answer_takes_for_ever(server: UnityServer, catalog: UnityCatalog) -> None:
    """Each byte comes in time."""
    registered(catalog)
    server.fault = lambda *_: DRIP
    with pytest.raises(CatalogError, match="an incomplete answer"):
        UnityHttp(server.url, TOKEN, read_s=0.1)._call("GET", "catalogs/main/schemas/db/tables/t", None, LoadedTable)


def test_a_table_that_is_dropped_and_made_again(server: UnityServer, catalog: UnityCatalog) -> None:
    table = CatalogTable(catalog)
    table.create()
    storage = table.storage()
    old = proposal(catalog.load_table(NAME), 1)
    server.tables.clear()
    table.create()
    assert isinstance(catalog.propose_commit(old), Refused)
    with pytest.raises(UserError) as error:
        storage.latest()
    assert error.value.code == "DELTA_TABLE_ID_MISMATCH"
    assert table.files() == []


def test_what_the_catalog_does_not_manage_is_opened_by_its_path(server: UnityServer, catalog: UnityCatalog) -> None:
    table = registered(catalog)
    del server.tables[NAME].properties["delta.feature.catalogManaged"]
    with pytest.raises(UnsupportedOperationError, match="open it by its path") as error:
        catalog.load_table(NAME)
    assert table.location in error.value.message


@pytest.mark.parametrize("name", ["t", "db.t", "a.b.c.d", "a..t", "a. .t"])
def test_names_have_three_parts(catalog: UnityCatalog, name: str) -> None:
    with pytest.raises(OptionError, match=r"catalog\.schema\.table"):
        catalog.load_table(name)


def test_a_name_leads_nowhere_else(catalog: UnityCatalog, server: UnityServer) -> None:
    with pytest.raises(TableNotFoundError, match="Schema not found"):
        catalog.load_table("main.db/tables.t?x#y")
    assert server.requests[-1][1] == "catalogs/main/schemas/db%2Ftables/tables/t%3Fx%23y"
    with pytest.raises(UserError) as error:
        catalog.reserve_table("main.other.t")
    assert error.value.code == "SCHEMA_NOT_FOUND"


# --- secrets


@pytest.mark.parametrize(
    "url", ["https://user:secret@host", "https://host/?token=x", "https:///x", "http://", "https://host:x"]
)
def test_urls_that_are_none(url: str) -> None:
    with pytest.raises(OptionError) as error:
        UnityHttp(url)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("path", ["", "/", "/api/2.1/unity-catalog", "/api/2.1/unity-catalog/"])
def test_urls_with_or_without_the_path_of_the_interface(server: UnityServer, path: str) -> None:
    catalog = UnityCatalog(UnityHttp(server.url + path, TOKEN))
    assert registered(catalog).name == NAME
    elsewhere = UnityCatalog(UnityHttp(f"{server.url}/elsewhere", TOKEN))
    server.fault = lambda *_: (404, "", "")
    with pytest.raises(CatalogError, match="no Unity Catalog with version 1 of the Delta interface"):
        elsewhere.load_table(NAME)


def test_a_proxy_of_the_environment(server: UnityServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", server.url)
    monkeypatch.setenv("no_proxy", "")
    server.token = None
    assert registered(UnityCatalog(UnityHttp("http://unity.invalid"))).name == NAME
    monkeypatch.setenv("http_proxy", "http://nowhere.invalid")
    assert UnityCatalog(UnityHttp(server.url, TOKEN)).load_table(NAME).name == NAME


# --- what the server offers, and what it cannot have of us


def test_what_the_server_offers_is_asked_for_once_and_first(server: UnityServer, catalog: UnityCatalog) -> None:
    assert registered(catalog).name == NAME
    catalog.load_table(NAME)
    paths = [path for _, path, _, _ in server.requests]
    assert paths[0] == "config" and server.called("GET", "config") == 1


def test_what_the_server_does_not_offer_is_not_called(server: UnityServer) -> None:
    offered = server.endpoints

    def without(*left_out: str) -> UnityCatalog:
        server.endpoints = tuple(one for one in offered if one not in left_out)
        server.requests.clear()
        return UnityCatalog(UnityHttp(server.url, TOKEN))

    table = registered(without())
    with pytest.raises(UnsupportedOperationError, match="does not offer the call 'GET /v1/catalogs"):
        without(LOAD).load_table(NAME)
    with pytest.raises(UnsupportedOperationError, match="staging-tables"):
        without(STAGE).reserve_table("main.db.u")
    with pytest.raises(NothingWrittenError, match="does not offer the call 'POST /v1/catalogs"):
        without(UPDATE).propose_commit(proposal(table, 1))
    assert server.called("POST") == 0
    made = without().reserve_table("main.db.u")
    with pytest.raises(NothingWrittenError, match=r"/tables' \(Unity"):
        without(CREATE).register_table(NewTable("main.db.u", made.table_id, made.location, 1, PROTOCOL, METADATA))
    assert server.called("POST") == 0
    assert without(CREDENTIALS).load_table(NAME).credentials is None and server.called("GET", "credentials") == 0


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ((400, "InvalidParameterValueException", "this server speaks 2.0"), "this server speaks 2.0"),
        ("2.1", "it answers in version '2.1'"),
    ],
)
def test_a_server_of_another_version(server: UnityServer, said: Any, text: str) -> None:
    if isinstance(said, str):
        server.version = said
    else:
        server.fault = lambda _, path: said if path == "config" else None
    with pytest.raises(UnsupportedOperationError, match=text):
        UnityCatalog(UnityHttp(server.url, TOKEN)).load_table(NAME)
    assert [path for _, path, _, _ in server.requests] == ["config"]


def test_a_catalog_that_is_not_there_is_named_by_the_call_for_its_table(catalog: UnityCatalog) -> None:
    with pytest.raises(TableNotFoundError):
        catalog.load_table("none.db.t")


def test_a_table_for_readers_of_iceberg_is_only_read(prod: str, server: UnityServer) -> None:
    """Each of its commits would have to bring what it was converted to."""
    key = "delta.universalFormat.enabledFormats"
    made = reserve(NAME, prod)
    with pytest.raises(OptionError, match="does not support it"):
        write_rows(made.table_root, IDS, [{"id": 1}], storage_options=made.storage_options, properties={key: "iceberg"})
    assert server.tables == {}
    address = created(prod, [{"id": 1}])
    configuration = load_snapshot(table=NAME, catalog=prod).configuration
    for value, refused in (("iceberg", True), ("hudi, ICEBERG", True), ("hudi", False), ("", False)):
        # as another engine leaves it
        properties = {**configuration.configuration, key: value}
        metadata = msgspec.structs.replace(configuration.metadata, configuration=properties)
        with pytest.raises(UnsupportedFeatureError, match="UniForm") if refused else nullcontext():
            replace(configuration, metadata=metadata).check_writable()
        at_path = msgspec.structs.replace(metadata, configuration={key: value})
        replace(configuration, metadata=at_path).check_writable()
    # the server says so before the log does
    table = server.tables[NAME]
    real = table.answer
    table.answer = lambda: {**real(), "uniform": {"iceberg": {}}}  # type: ignore[method-assign]
    with pytest.raises(DeltaError, match="Iceberg metadata for the table"):
        write_rows(address.table_root, IDS, [{"id": 2}], storage_options=address.storage_options)
    assert delta_pyds.scan(table=NAME, catalog=prod).to_table().column("id").to_pylist() == [1]
    assert table.commits == [] and not list(Path(address.table_root, "_delta_log").glob(f"{1:020d}.json"))
    # it was turned off again
    del table.answer
    write_rows(address.table_root, IDS, [{"id": 2}], storage_options=address.storage_options)
    assert server.tables[NAME].commits[0]["version"] == 1


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_is_told_who_asks(
    scheme: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """With the request, or with CONNECT, and no other server is told."""
    password = "p:ss w@rd"
    seen: list[tuple[str, str | None, str | None]] = []
    caplog.set_level(logging.DEBUG)

    class Proxy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append((self.command, self.headers["Proxy-Authorization"], self.headers["Authorization"]))
            self.send_error(407)

        def do_CONNECT(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as proxy:
        thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        monkeypatch.setenv(f"{scheme}_proxy", f"http://me:{quote(password)}@127.0.0.1:{proxy.server_address[1]}")
        monkeypatch.setenv("no_proxy", "")
        http = UnityHttp(f"{scheme}://unity.invalid", TOKEN if scheme == "https" else None, sleep=lambda _: None)
        with pytest.raises((CatalogError, UnityError)) as error:
            http.get("catalogs/main", LoadedTable)
        proxy.shutdown()
        thread.join()
    basic = base64.b64encode(f"me:{password}".encode()).decode()
    assert set(seen) == {("GET" if scheme == "http" else "CONNECT", f"Basic {basic}", None)}
    told = "".join(traceback.format_exception(error.value)) + caplog.text
    assert password not in told and basic not in told and quote(password) not in told


def test_an_older_urllib3_is_refused_before_any_call(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (urllib3.HTTPResponse, urllib3.BaseHTTPResponse):
        monkeypatch.delattr(kind, "read1")
    with pytest.raises(OptionError, match=r"urllib3, 2\.2 or later"):
        UnityHttp("https://unity.example")


def test_a_token_does_not_travel_in_clear() -> None:
    for given in ({"token": TOKEN}, {"renewed": lambda: TOKEN}):
        with pytest.raises(OptionError, match="Give an https://") as error:
            UnityHttp("http://unity.example:8080/x", **given)._renewed_headers({})  # type: ignore[arg-type]
        assert TOKEN not in str(error.value)
    for url in ("http://localhost:8080", "http://[::1]", "https://unity.example"):
        assert UnityHttp(url, TOKEN).shown == url


def test_the_token_is_seen_nowhere(
    server: UnityServer, catalog: UnityCatalog, prod: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    table = CatalogTable(catalog)
    table.create()
    told = []
    server.token = "another-token"
    for call in (
        lambda: catalog.load_table(NAME),
        lambda: catalog.reserve_table("main.db.u"),
        lambda: table.append("a"),
        lambda: load_snapshot(table=NAME, catalog=prod),
        lambda: UnityHttp(server.url, f"{TOKEN} {TOKEN}"),
    ):
        with pytest.raises(DeltaError) as error:
            call()
        told.append("".join(traceback.format_exception(error.value)))
    assert "401" in told[0] and "check the catalog's token setting" in told[0]
    server.fault = lambda *_: (400, "BadRequestException", f"not with {TOKEN}")
    with pytest.raises(CatalogError) as refused:
        catalog.load_table(NAME)
    told.append(str(refused.value))
    shown = "".join([*told, repr(catalog), repr(catalog._http), caplog.text])
    assert TOKEN not in shown
    assert {token for _, _, token, _ in server.requests} == {f"Bearer {TOKEN}"}
    for secretive in (catalog, catalog._http):
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(secretive)


def test_a_token_that_was_changed_in_the_file(
    server: UnityServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream lasts longer than a token. What is secret about the new one is known as of the old one."""
    file = tmp_path / "catalogs.json"
    monkeypatch.setenv("DELTA_PYDS_CATALOGS", str(file))

    def say(token: str) -> None:
        file.write_text(json.dumps({"prod": {"url": server.url, "token": token}}))

    say(TOKEN)
    forget_catalogs()
    catalog = open_catalog("prod")
    table = CatalogTable(catalog)
    table.create()
    server.token = "dapi-another-one"
    with pytest.raises(CatalogError, match="401"):
        catalog.load_table(NAME)
    say(server.token)
    assert table.append("a").version == 1 and table.files() == ["a"]
    assert "dapi-another-one" not in str(CatalogError("it is dapi-another-one"))
    forget_catalogs()


def test_a_token_for_another_address_stays(
    server: UnityServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "catalogs.json"
    monkeypatch.setenv("DELTA_PYDS_CATALOGS", str(file))
    file.write_text(json.dumps({"prod": {"url": server.url, "token": TOKEN}}))
    forget_catalogs()
    catalog = open_catalog("prod")
    server.token = "dapi-of-the-other"
    file.write_text(json.dumps({"prod": {"url": "https://unity.example", "token": server.token}}))
    with pytest.raises(CatalogError, match="401"):
        catalog.load_table(NAME)
    assert [token for _, _, token, _ in server.requests] == [f"Bearer {TOKEN}"]
    forget_catalogs()


def test_a_token_that_another_thread_renewed_is_taken(server: UnityServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both were refused with the old one, and the file of catalogs is asked once."""
    asked: list[str] = []
    http = UnityHttp(server.url, TOKEN, renewed=lambda: asked.append("") or "dapi-another-one")  # type: ignore[func-returns-value]
    registered(UnityCatalog(http))
    real, other = http._answered, UnityCatalog(http)

    def answered(*call: Any) -> tuple[int, bytes]:
        monkeypatch.setattr(http, "_answered", real)
        answer = real(*call)
        thread = threading.Thread(target=other.load_table, args=(NAME,))
        thread.start()
        thread.join()
        return answer

    server.token = "dapi-another-one"
    monkeypatch.setattr(http, "_answered", answered)
    assert UnityCatalog(http).load_table(NAME).name == NAME
    assert asked == [""]


def test_a_redirect_gets_no_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another server would get it."""
    with UnityServer(str(tmp_path)) as other, UnityServer(str(tmp_path)) as asked:
        handler = asked._server.RequestHandlerClass
        real = handler.end_headers

        def end_headers(self: Any) -> None:
            self.send_header("Location", f"{other.url}{self.path}")
            real(self)

        monkeypatch.setattr(handler, "end_headers", end_headers)
        asked.fault = lambda *_: (307, "", "")
        with pytest.raises(CatalogError, match="307"):
            UnityCatalog(UnityHttp(asked.url, TOKEN)).load_table(NAME)
        assert other.requests == [] and len(asked.requests) == 1


# --- storage credentials


def vended(minutes: float, secret: str, prefix: str = "s3://bucket/tables") -> dict[str, Any]:
    config = {"s3.access-key-id": "AKIA1", "s3.secret-access-key": secret, "s3.session-token": f"session-{secret}"}
    return {"prefix": prefix, "config": config, "expiration-time-ms": soon_ms(minutes)}


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[UnityServer]:
    with UnityServer("s3://bucket/tables") as started:
        started.credentials = [vended(60, "first-secret")]
        monkeypatch.setenv("DELTA_PYDS_CATALOG_PROD_URL", started.url)
        forget_catalogs()
        yield started
        forget_catalogs()


def test_credentials_are_kept_and_renewed_before_they_expire(bucket: UnityServer) -> None:
    catalog = open_catalog("prod")
    registered(catalog)
    asked = bucket.called("GET", "credentials")
    for _ in range(3):
        found = catalog.load_table(NAME).credentials
        assert found is not None
        assert found.storage_options == {
            "key": "AKIA1",
            "secret": "first-secret",
            "token": "session-first-secret",
        }
    assert bucket.called("GET", "credentials") == asked
    for name, minutes in (("second-secret", 4.0), ("third-secret", 60.0), ("fourth-secret", 60.0)):
        bucket.credentials = [vended(minutes, name)]
        if name == "second-secret":
            catalog = UnityCatalog.of({"url": bucket.url})
        found = catalog.load_table(NAME).credentials
        # what expires soon is asked for again each time, and what lasts is not
        assert found is not None
        assert found.storage_options["secret"] == ("third-secret" if name == "fourth-secret" else name)


def test_credentials_that_do_not_say_when_they_expire_are_kept_for_minutes(bucket: UnityServer) -> None:
    registered(open_catalog("prod"))
    now_ms = [0.0]
    cache = CredentialCache(UnityHttp(bucket.url), now_ms=lambda: now_ms[0])
    secrets = []
    for minute in (0, 1, 10):
        now_ms[0] = minute * 60_000
        bucket.credentials = [{**vended(60, f"secret-{minute}"), "expiration-time-ms": None}]
        found = cache.of_table("catalogs/main/schemas/db/tables/t", "id", "s3://bucket/tables/t")
        assert found is not None
        secrets.append(found.storage_options["secret"])
    assert secrets == ["secret-0", "secret-0", "secret-10"]


@pytest.mark.usefixtures("bucket")
def test_the_storage_of_a_table_has_them_and_tasks_too() -> None:
    registered(open_catalog("prod"))
    address = locate(table=NAME, catalog="prod", storage_options={"endpoint_url": "http://127.0.0.1:9"})
    storage = table_storage(address.table_root, address.storage_options)
    options = task_options(storage, address.storage_options)
    assert options["secret"] == "first-secret" and options["endpoint_url"] == "http://127.0.0.1:9"
    assert TOKEN not in str(options) and "first-secret" not in str(address.storage_options) + repr(storage)
    assert "first-secret" not in str(DeltaError("the store says first-secret"))


def test_another_process_that_creates_a_table_asks_for_its_credentials(bucket: UnityServer) -> None:
    """The options that travel to it name the location, and hold no secret."""
    made = reserve(NAME, "prod")
    assert "secret" not in str(made.storage_options)
    forget_catalogs()
    opened: list[StorageCredentials | None] = []
    catalog = open_catalog("prod")
    storage = managed_storage(catalog, made.table_root, made.storage_options)
    assert isinstance(storage, CatalogStorage)

    def open_store(credentials: StorageCredentials | None) -> LocalStorage:
        opened.append(credentials)
        return LocalStorage()

    storage._open_store = open_store
    for _ in range(2):
        assert storage.store is not None
    (found,) = opened
    assert found is not None and found.storage_options["secret"] == "first-secret"
    assert storage.credential_options["key"] == "AKIA1"
    assert bucket.called("GET", "/credentials") == 1


def test_who_may_only_read_gets_what_reads(bucket: UnityServer) -> None:
    catalog = open_catalog("prod")
    registered(catalog)
    reader = UnityCatalog.of({"url": bucket.url})
    real = bucket.act

    def act(method: str, path: list[str], query: dict[str, list[str]], body: Any) -> Any:
        answer = real(method, path, query, body)
        if query.get("operation") == ["READ_WRITE"]:
            raise FailureError(403, "PermissionDeniedException", "MODIFY is missing")
        return answer

    bucket.act = act  # type: ignore[method-assign]
    found = reader.load_table(NAME).credentials
    assert found is not None and found.storage_options["secret"] == "first-secret"


@pytest.mark.parametrize(
    ("config", "options"),
    [
        ({"azure.sas-token": "sv=1&sig=abcdef"}, {"sas_token": "sv=1&sig=abcdef"}),
        ({"gcs.oauth-token": "ya29.token", "s3.session-token": None}, {"token": "ya29.token"}),
        ({"something.new": "x"}, None),
        ({}, None),
    ],
)
def test_options_of_each_store(config: dict[str, str | None], options: dict[str, str] | None) -> None:
    found = credentials_for("gs://bucket/t", [StorageCredential("gs://bucket/", 5, config)])
    assert (None if found is None else found.storage_options) == options
    assert found is None or found.expires_at_ms == 5


def test_the_longest_prefix_is_taken() -> None:
    def one(prefix: str) -> StorageCredential:
        return StorageCredential(prefix, 1, {"azure.sas-token": prefix})

    prefixes = ["s3://bucket", "s3://bucket/tables/", "s3://bucket/tab", "s3://bucket/tables/other"]
    found = credentials_for("s3a://bucket/tables/t", [one(prefix) for prefix in prefixes])
    assert found is not None and found.storage_options == {"sas_token": "s3://bucket/tables/"}
    assert credentials_for("s3://elsewhere/t", [one(prefix) for prefix in prefixes]) is None


def test_a_catalog_that_hands_out_none(bucket: UnityServer) -> None:
    catalog = open_catalog("prod")
    registered(catalog)
    other = UnityCatalog.of({"url": bucket.url})
    bucket.fault = lambda _, path: (403, "PermissionDeniedException", "no") if path.endswith("credentials") else None
    with pytest.raises(CatalogError, match="no credentials for the files"):
        other.load_table(NAME)


def test_a_table_in_a_bucket_that_only_the_catalog_opens(bucket: UnityServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Created, written by tasks and read with what the catalog hands out; the machine itself has no credentials."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, os.devnull)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with s3_server() as url:
        store = {"endpoint_url": url, "client_kwargs": {"region_name": "us-east-1"}}
        made = reserve(NAME, "prod", storage_options=store)
        write_rows(made.table_root, IDS, [{"id": 1}], storage_options=made.storage_options)
        for n, secret in ((2, "second-secret"), (3, "third-secret")):
            # they expire, and each process asks again
            bucket.credentials = [vended(60, secret)]
            forget_catalogs()
            address = locate(table=NAME, catalog="prod", storage_options=store)
            write_rows(address.table_root, IDS, [{"id": n}], storage_options=address.storage_options)
        snapshot = load_snapshot(table=NAME, catalog="prod", storage_options=store)
        update = planned_update(snapshot, "id > 1", {"id": "id + 10"}, CommandOptions(address.storage_options))
        assert run_update(update, Place("process", "a test says so")).version == 3
        rows = delta_pyds.scan(table=NAME, catalog="prod", storage_options=store).to_table()
        assert sorted(rows.column("id").to_pylist()) == [1, 12, 13]
        assert delta_pyds.verify(table=NAME, catalog="prod", storage_options=store).ok
        with pytest.raises(DeltaError, match=r"[Cc]redentials"):
            load_snapshot(made.table_root, storage_options=store)
