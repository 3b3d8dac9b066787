"""A small Unity Catalog of our own for tests, with the real one's answers.

It is not the real server, which needs a build and Java: it answers as version 0.6.0 of that one was seen to, down to
what its messages say, for the calls that this library makes, on local files. What it does not do: users, other kinds of
tables, storage of its own. ``fault`` cuts a connection, or answers something else, before or after the call has its
effect.

Invariants: it listens on a free port of the loopback, and ends with the block that started it; a call has its effect
wholly or not at all, and no two at once.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

BASE = "/api/2.1/unity-catalog/delta/v1/"
MOST_COMMITS = 10
READER_FEATURES = ["catalogManaged", "v2Checkpoint", "vacuumProtocolCheck", "deletionVectors"]
WRITER_FEATURES = [*READER_FEATURES, "inCommitTimestamp"]
PROPERTIES = {
    "delta.enableInCommitTimestamps": "true",
    "delta.checkpoint.writeStatsAsJson": "true",
    "delta.checkpointPolicy": "v2",
    "delta.checkpoint.writeStatsAsStruct": "true",
    "delta.enableDeletionVectors": "true",
}
TABLE_ID = "io.unitycatalog.tableId"
_OF_SCHEMA = "/v1/catalogs/{catalog}/schemas/{schema}"
ENDPOINTS = (
    f"POST {_OF_SCHEMA}/staging-tables",
    f"POST {_OF_SCHEMA}/tables",
    f"GET {_OF_SCHEMA}/tables",
    *(f"{method} {_OF_SCHEMA}/tables/{{table}}" for method in ("GET", "POST", "DELETE", "HEAD")),
    f"POST {_OF_SCHEMA}/tables/{{table}}/rename",
    f"GET {_OF_SCHEMA}/tables/{{table}}/credentials",
    f"POST {_OF_SCHEMA}/tables/{{table}}/metrics",
    "GET /v1/staging-tables/{table_id}/credentials",
    "GET /v1/temporary-path-credentials",
)
# what a fault does; or an answer of its own: status, kind, message
CUT_BEFORE, CUT_AFTER, HALF, DRIP = "cut before", "cut after", "half an answer", "a byte now and then"
Fault = Callable[[str, str], "str | tuple[int, str, str] | None"]


class FailureError(Exception):
    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status, self.kind, self.message = status, kind, message


@dataclass
class Table:
    table_id: str
    location: str
    columns: Any
    partition_columns: list[str]
    properties: dict[str, str]
    timestamp_ms: int
    comment: str | None = None
    changed: int = 0
    # newest first; of those that are published the server keeps the latest one alone
    commits: list[dict[str, Any]] = field(default_factory=list)
    published: bool = False  # the latest one is

    def answer(self) -> dict[str, Any]:
        latest = self.commits[0]["version"] if self.commits else 0
        waiting = [] if self.published else self.commits
        return {
            "metadata": {
                "etag": f"etag-{self.changed}",
                "table-type": "MANAGED",
                "table-uuid": self.table_id,
                "location": self.location,
                "created-time": 1,
                "updated-time": self.changed,
                "columns": self.columns,
                "partition-columns": self.partition_columns,
                "properties": self.properties,
                "last-commit-version": 0,
                "last-commit-timestamp-ms": self.timestamp_ms,
            },
            "commits": waiting,
            "latest-table-version": latest,
        }


class UnityServer:
    """``root``: below which new tables lie. ``token``: that calls must carry, if any; then some errors have the shape
    of the older interface. ``credentials``: see ``_vended``. ``requests``: method, path, token and body of each call.

    >>> with UnityServer("/tmp/t") as server:
    ...     UnityCatalog.of({"url": server.url})
    """

    def __init__(self, root: str, *, token: str | None = None, schemas: tuple[str, ...] = ("main.db",)) -> None:
        self.root, self.token, self.schemas = root, token, schemas
        self.staging: dict[str, dict[str, str]] = {}
        self.tables: dict[str, Table] = {}
        self.requests: list[tuple[str, str, str | None, Any]] = []
        self.fault: Fault | None = None
        self.credentials: list[dict[str, Any]] = []
        self.endpoints, self.version = ENDPOINTS, "1.0"
        self._lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"unity": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def start(self) -> UnityServer:
        self._thread.start()
        return self

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> UnityServer:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def called(self, method: str, ending: str = "") -> int:
        """The number of calls whose path ends so."""
        return sum(one == method and path.endswith(ending) for one, path, _, _ in self.requests)

    # --- calls

    def act(self, method: str, path: list[str], query: dict[str, list[str]], body: Any) -> Any:
        with self._lock:
            match method, path:
                case "GET", ["config"]:
                    return self._configured(query)
                case "GET", ["catalogs", catalog, "schemas", schema, "tables", table]:
                    return self._found(catalog, schema, table).answer()
                case "GET", ["catalogs", catalog, "schemas", schema, "tables", table, "credentials"]:
                    return self._vended(self._found(catalog, schema, table).location, query["operation"][0])
                case "GET", ["staging-tables", table_id, "credentials"]:
                    return self._vended(self.staging[table_id]["location"], "READ_WRITE")
                case "POST", ["catalogs", catalog, "schemas", schema, "staging-tables"]:
                    return self._stage(catalog, schema, body)
                case "POST", ["catalogs", catalog, "schemas", schema, "tables"]:
                    return self._create(catalog, schema, body)
                case "POST", ["catalogs", catalog, "schemas", schema, "tables", table]:
                    return self._update(self._found(catalog, schema, table), body)
        raise FailureError(404, "NotFoundException", "no such endpoint")

    def _configured(self, query: dict[str, list[str]]) -> Any:
        """The real one ignores which versions are asked for."""
        catalog, _ = query["catalog"][0], query["protocol-versions"][0]
        if not any(schema.startswith(f"{catalog}.") for schema in self.schemas):
            raise FailureError(404, "NoSuchCatalogException", f"Catalog not found: {catalog}")
        return {"endpoints": list(self.endpoints), "protocol-version": self.version}

    def _found(self, catalog: str, schema: str, table: str) -> Table:
        name = f"{catalog}.{schema}.{table}"
        if f"{catalog}.{schema}" not in self.schemas:
            raise FailureError(404, "NoSuchSchemaException", f"Schema not found: {catalog}.{schema}")
        if name not in self.tables:
            raise FailureError(404, "NoSuchTableException", f"Table not found: {name}")
        return self.tables[name]

    def _vended(self, location: str, operation: str) -> dict[str, Any]:
        """``credentials`` of this server; of local files the real one gives an empty one that never expires."""
        made = [{**one, "operation": operation} for one in self.credentials]
        local = {"prefix": location, "operation": operation, "config": {}, "expiration-time-ms": None}
        return {"storage-credentials": made or [local]}

    def _stage(self, catalog: str, schema: str, body: Any) -> Any:
        if f"{catalog}.{schema}" not in self.schemas:
            raise FailureError(404, "NoSuchSchemaException", f"Schema not found: {catalog}.{schema}")
        if f"{catalog}.{schema}.{body['name']}" in self.tables:
            raise FailureError(409, "AlreadyExistsException", f"Table already exists: {body['name']}")
        table_id = str(uuid.uuid4())
        location = f"{self.root}/{table_id}" if "://" in self.root else f"file://{self.root}/{table_id}"
        self.staging[table_id] = {"location": location, "state": "staged"}
        return {
            "table-id": table_id,
            "table-type": "MANAGED",
            "location": location,
            **self._vended(location, "READ_WRITE"),
            "required-protocol": {
                "min-reader-version": 3,
                "min-writer-version": 7,
                "reader-features": READER_FEATURES,
                "writer-features": WRITER_FEATURES,
            },
            "required-properties": {**PROPERTIES, TABLE_ID: table_id},
            "suggested-properties": {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": None},
        }

    def _create(self, catalog: str, schema: str, body: Any) -> Any:
        _check_contract(body["protocol"], body["properties"])
        name = f"{catalog}.{schema}.{body['name']}"
        plain = _plain(body["location"])
        found = [key for key, one in self.staging.items() if _plain(one["location"]) == plain]
        if name in self.tables:
            raise FailureError(409, "AlreadyExistsException", f"Table already exists: {body['name']}")
        if not found:
            raise FailureError(404, "NoSuchTableException", f"Staging table not found: {body['location']}")
        staged = self.staging[found[0]]
        if staged["state"] != "staged":
            raise FailureError(400, "InvalidParameterValueException", "Staging table is already committed")
        if body["properties"].get(TABLE_ID) != found[0]:
            raise _invalid(f"the table id ({found[0]}) does not match the properties")
        staged["state"] = "committed"
        table = Table(
            found[0],
            staged["location"],
            body["columns"],
            body["partition-columns"],
            {},
            body["last-commit-timestamp-ms"],
            body.get("comment"),
        )
        _apply_protocol(table, body["protocol"])
        table.properties.update(body["properties"])
        _apply_domains(table, body.get("domain-metadata", {}))
        self.tables[name] = table
        return table.answer()

    def _update(self, table: Table, body: Any) -> Any:
        needs = {one["type"]: one for one in body["requirements"]}
        if "assert-table-uuid" not in needs:
            raise _invalid("assert-table-uuid requirement is required.")
        try:
            wanted = str(uuid.UUID(needs["assert-table-uuid"]["uuid"]))
        except ValueError:
            raise FailureError(400, "BadRequestException", "Invalid UUID string") from None
        if wanted != table.table_id:
            raise _unmet(f"assert-table-uuid failed: expected {wanted} but table has {table.table_id}")
        updates = {one["action"]: one for one in body["updates"]}
        if len(updates) != len(body["updates"]) or not updates:
            raise _invalid("At most one of each action is allowed per request.")
        commit = updates.pop("add-commit", {}).get("commit")
        published = updates.pop("set-latest-backfilled-version", {}).get("latest-published-version")
        if commit is not None or published is not None:
            commits, backfilled = _committed(table, commit, published)
            if commits is None:
                return table.answer()  # the same commit again, and nothing else of the call
        else:
            commits, backfilled = table.commits, table.published
        changed = _changed(table, updates)
        table.__dict__.update(changed.__dict__)
        table.commits, table.published = commits, backfilled
        return table.answer()


def _committed(table: Table, commit: Any, published: int | None) -> tuple[list[dict[str, Any]] | None, bool]:
    """The commits afterwards, and whether the latest one is published; None where the commit is there already."""
    known = table.commits
    last = known[0]["version"] if known else 0
    if commit is None:
        if not known:
            raise _invalid("Backfill request requires a prior commit; the table's commit log is empty.")
        assert published is not None
        if published > last:
            raise _invalid(f"Should not backfill version {published} while the last version committed is {last}")
        kept = [one for one in known if one["version"] > min(published, last - 1)]
        return kept, table.published or published == last
    for name in ("version", "timestamp", "file-size", "file-modification-timestamp"):
        if commit[name] <= 0:
            raise _invalid(f"Field must be positive: {name}")
    if not known:
        return [commit], False  # whatever its version is
    if commit["version"] <= last:
        if any(one["version"] == commit["version"] and one["file-name"] == commit["file-name"] for one in known):
            return None, table.published
        raise FailureError(
            409,
            "CommitVersionConflictException",
            f"Commit version already accepted. Current table version is {last}",
        )
    if commit["version"] > last + 1:
        raise _invalid(
            f"Commit version must be the next version after the latest commit {last}, but got {commit['version']}"
        )
    if published is not None and published > last:
        raise _invalid(f"Latest backfilled version {published} cannot be greater than the last {last}")
    done = last if table.published else max(published or 0, known[-1]["version"] - 1)
    if commit["version"] - done > MOST_COMMITS:
        raise FailureError(429, "ResourceExhaustedException", f"Max number of commits per table: {MOST_COMMITS}")
    return [commit, *(one for one in known if one["version"] > done)], False


def _changed(table: Table, updates: dict[str, Any]) -> Table:
    """The table with the other updates, which leave it as it is where one of them is wrong."""
    new = Table(**{**table.__dict__, "properties": dict(table.properties)})
    for action, update in updates.items():
        if action == "set-columns":
            new.columns = update["columns"]
        elif action == "set-partition-columns":
            new.partition_columns = update["partition-columns"]
        elif action == "set-table-comment":
            new.comment = update["comment"]
        elif action == "set-properties":
            new.properties.update(update["updates"])
        elif action == "remove-properties":
            for key in update["removals"]:
                new.properties.pop(key, None)
        elif action == "set-protocol":
            _apply_protocol(new, update["protocol"])
            _check_contract(update["protocol"], new.properties)
        elif action == "set-domain-metadata":
            _apply_domains(new, update["updates"])
        elif action == "remove-domain-metadata":
            if "delta.clustering" in update["domains"]:
                new.properties.pop("clusteringColumns", None)
        else:
            raise _invalid(f"Unknown update action: {action}")
    if updates:
        new.changed += 1
    return new


def _apply_protocol(table: Table, protocol: Any) -> None:
    kept = {key: value for key, value in table.properties.items() if not key.startswith("delta.feature.")}
    features = {f"delta.feature.{name}": "supported" for name in protocol["writer-features"]}
    table.properties = {
        **kept,
        **features,
        "delta.minReaderVersion": str(protocol["min-reader-version"]),
        "delta.minWriterVersion": str(protocol["min-writer-version"]),
    }


def _apply_domains(table: Table, domains: Any) -> None:
    for domain, feature, key in (
        ("delta.clustering", "clustering", "clusteringColumns"),
        ("delta.rowTracking", "rowTracking", "rowIdHighWaterMark"),
    ):
        if domain in domains:
            if f"delta.feature.{feature}" not in table.properties:
                raise _invalid(f"domain-metadata.{domain} requires the '{feature}' writer feature.")
            table.properties[key] = json.dumps(domains[domain][key])


def _check_contract(protocol: Any, properties: dict[str, str]) -> None:
    for required in WRITER_FEATURES:
        if required not in protocol["writer-features"]:
            raise _invalid(f"MANAGED table missing required writer-feature '{required}'.")
        if required in READER_FEATURES and required not in protocol["reader-features"]:
            raise _invalid(f"MANAGED table missing required reader-feature '{required}'.")
    for key, value in PROPERTIES.items():
        if properties.get(key) != value:
            raise _invalid(f"MANAGED table required property '{key}' must be '{value}' (got '{properties.get(key)}').")


# what is found out before the call reaches the interface for Delta, where users are asked for
_OLDER = {
    "NotAuthorizedException": "UNAUTHENTICATED",
    "NoSuchTableException": "TABLE_NOT_FOUND",
    "NoSuchSchemaException": "SCHEMA_NOT_FOUND",
}


def _error(failure: FailureError, *, older: bool) -> Any:
    if older and failure.kind in _OLDER:
        code = _OLDER[failure.kind]
        details = [{"reason": code, "@type": "google.rpc.ErrorInfo"}]
        return {"error_code": code, "details": details, "message": failure.message}
    return {"error": {"message": failure.message, "type": failure.kind, "code": failure.status, "stack": None}}


def _invalid(message: str) -> FailureError:
    return FailureError(400, "InvalidParameterValueException", message)


def _unmet(message: str) -> FailureError:
    return FailureError(409, "UpdateRequirementConflictException", message)


def _plain(location: str) -> str:
    return location.removeprefix("file://").rstrip("/")


class _Handler(BaseHTTPRequestHandler):
    unity: UnityServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._answer("GET")

    def do_POST(self) -> None:
        self._answer("POST")

    def _answer(self, method: str) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        data = self.rfile.read(length)
        body = json.loads(data) if data else None
        parts = urlsplit(self.path)
        path = parts.path.removeprefix(BASE)
        token = self.headers.get("Authorization")
        self.unity.requests.append((method, path, token, body))
        wrong = None if self.unity.fault is None else self.unity.fault(method, path)
        if wrong == CUT_BEFORE:
            self._cut()
            return
        try:
            if isinstance(wrong, tuple):
                raise FailureError(*wrong)
            if self.unity.token is not None and token != f"Bearer {self.unity.token}":
                raise FailureError(401, "NotAuthorizedException", "Invalid access token.")
            status, answer = (
                200,
                self.unity.act(method, list(map(unquote, path.split("/"))), parse_qs(parts.query), body),
            )
        except FailureError as failure:
            status, answer = failure.status, _error(failure, older=self.unity.token is not None)
        if wrong == CUT_AFTER:
            self._cut()
            return
        text = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if wrong == HALF:
            self.wfile.write(text[: len(text) // 2])
            self._cut()
            return
        if wrong == DRIP:
            for place in range(len(text)):
                self.wfile.write(text[place : place + 1])
                time.sleep(0.02)
            return
        self.wfile.write(text)

    def _cut(self) -> None:
        self.close_connection = True

    def log_message(self, *_: Any) -> None:
        """Tests look at ``requests``."""


def soon_ms(minutes: float) -> int:
    """That many minutes from now, since the epoch."""
    return int((time.time() + minutes * 60) * 1000)
