"""The life of a catalog-managed table whose files only the catalog's credentials open, in a process of its own.

Run as ``python -m tests.stores.vended_table azure|google URL DIRECTORY``. The catalog is our server of Unity Catalog
(``tests.support.unity_server``), which is not the real one. Azurite looks at the signature and the time of each SAS;
fake-gcs-server takes any token, so that a gate before it looks at them.
"""

from __future__ import annotations

import datetime as dt
import http.client
import os
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import delta_pyds
from delta_pyds.catalog.address import locate, reserve
from delta_pyds.catalog.named import forget_catalogs, open_catalog
from delta_pyds.commands.row_changes.delete import run_delete
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.row_changes.result import Place
from delta_pyds.commands.write.request import WriteRequest
from delta_pyds.commands.write.write import commit_write, plan_write
from delta_pyds.data.write.task import write
from delta_pyds.data.write.task_session import TaskSession
from delta_pyds.errors import StorageError
from delta_pyds.storage.resolve import resolve_storage
from delta_pyds.table.snapshot import load_snapshot
from tests.support.planned_changes import planned_delete
from tests.support.stores import ACCOUNT, ACCOUNT_KEY
from tests.support.table_writes import batch_of, struct, write_rows
from tests.support.unity_server import UnityServer

NAME, IDS = "main.db.t", {"id": "long"}
SHORT_S, LONG_S = 4, 3600
# gives something of the store that holds for so many seconds
Vend = Callable[[int], dict[str, str]]


@contextmanager
def azure(url: str) -> Iterator[tuple[str, Mapping[str, Any], Vend]]:
    """A container's URL, what a user says of its store, and what hands out a SAS of it."""
    import adlfs
    from azure.storage.blob import ContainerSasPermissions, generate_container_sas

    container = uuid.uuid4().hex
    given = {"account_name": ACCOUNT, "account_host": f"{urlsplit(url).netloc}/{ACCOUNT}"}
    adlfs.AzureBlobFileSystem(**given, account_key=ACCOUNT_KEY).mkdir(container)

    def vend(seconds: int) -> dict[str, str]:
        until = dt.datetime.now(dt.timezone.utc) + dt.timedelta(seconds=seconds)
        everything = ContainerSasPermissions.from_string("racwdl")
        sas = generate_container_sas(ACCOUNT, container, ACCOUNT_KEY, permission=everything, expiry=until)
        return {"azure.sas-token": sas}

    yield f"abfss://{container}@{ACCOUNT}.dfs.core.windows.net", given, vend


@contextmanager
def google(url: str) -> Iterator[tuple[str, Mapping[str, Any], Vend]]:
    """The same of a bucket, through a gate that lets tokens pass until they expire."""
    import gcsfs.core

    bucket, valid = uuid.uuid4().hex, dict[str, float]()
    gcsfs.core.GCSFileSystem(endpoint_url=url, token="anon").call("POST", "b", json={"name": bucket}, project="test")

    def vend(seconds: int) -> dict[str, str]:
        token = f"ya29.{uuid.uuid4().hex}"
        valid[f"Bearer {token}"] = time.time() + seconds
        return {"gcs.oauth-token": token}

    class Gate(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if valid.get(self.headers.get("Authorization", ""), 0) < time.time():
                self.answer(401, {}, b"{}")
                return
            store = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
            store.request(self.command, self.path, body, {k: v for k, v in self.headers.items() if k != "Host"})
            found = store.getresponse()
            self.answer(found.status, dict(found.getheaders()), found.read())
            store.close()

        do_HEAD = do_PUT = do_POST = do_DELETE = do_PATCH = do_GET  # noqa: N815 - http.server's names

        def answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
            self.send_response_only(status)
            for name, value in headers.items():
                if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Not a line for each request."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Gate) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        yield f"gs://{bucket}", {"endpoint_url": f"http://127.0.0.1:{server.server_address[1]}"}, vend
        server.shutdown()


def life(server: UnityServer, given: Mapping[str, Any], vend: Vend) -> None:
    secrets: list[str] = []

    def hand_out(seconds: int) -> None:
        config = vend(seconds)
        secrets.extend(config.values())
        expires = int((time.time() + seconds) * 1000)
        server.credentials = [{"prefix": server.root, "config": config, "expiration-time-ms": expires}]
        forget_catalogs()

    def options() -> Mapping[str, Any]:
        return locate(table=NAME, catalog="prod", storage_options=given).storage_options

    def ids() -> list[int]:
        rows = delta_pyds.scan(table=NAME, catalog="prod", storage_options=given).to_table()
        return sorted(rows.column("id").to_pylist())

    hand_out(LONG_S)
    made = reserve(NAME, "prod", storage_options=given)
    root = made.table_root
    write_rows(root, IDS, [{"id": 1}, {"id": 2}], storage_options=made.storage_options)
    hand_out(LONG_S)
    write_rows(root, IDS, [{"id": 3}, {"id": 4}], storage_options=options())
    snapshot = load_snapshot(table=NAME, catalog="prod", storage_options=given)
    run_delete(planned_delete(snapshot, "id = 3", CommandOptions(options())), Place("process", "a test"))
    assert ids() == [1, 2, 4]

    # what the plan and its tasks had has expired when the write is committed
    hand_out(SHORT_S)
    plan = plan_write(WriteRequest(root, struct(IDS), "append", storage_options=options()))
    assert plan.state is not None
    output = write(plan.state, iter(batch_of([{"id": 5}], struct(IDS))), TaskSession(0))
    old = dict(plan.state.storage_options)
    assert any(secret in str(old) for secret in secrets)
    config = vend(LONG_S)
    secrets.extend(config.values())
    server.credentials = [{"prefix": server.root, "config": config, "expiration-time-ms": None}]
    time.sleep(SHORT_S + 1)
    try:
        resolve_storage(root, old).read(f"{root}/_delta_log/{0:020d}.json")
        raise AssertionError("the store takes what has expired")
    except StorageError as error:
        told = str(error)
    assert commit_write(plan, [output]) is not None
    assert ids() == [1, 2, 4, 5]
    assert delta_pyds.checkpoint(table=NAME, catalog="prod", storage_options=given) == 3
    hand_out(LONG_S)
    assert ids() == [1, 2, 4, 5]
    report = delta_pyds.verify(table=NAME, catalog="prod", storage_options=given)
    assert report.ok, str(report)
    known = open_catalog("prod").load_table(NAME)
    assert (known.latest_version, known.unpublished) == (3, ())
    assert not [secret for secret in secrets if secret in told or secret in repr(plan)]


def main(kind: str, url: str) -> None:
    for name in [name for name in os.environ if name.startswith(("AZURE_", "GOOGLE_", "FSSPEC_", "STORAGE_"))]:
        del os.environ[name]
    with (
        {"azure": azure, "google": google}[kind](url) as (place, given, vend),
        UnityServer(f"{place}/tables") as server,
    ):
        os.environ["DELTA_PYDS_CATALOG_PROD_URL"] = server.url
        life(server, given, vend)
    print("all is well")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
