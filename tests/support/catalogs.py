"""Tables of catalogs for tests: opened with a catalog's client at hand, and catalogs that misbehave."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from delta_pyds.catalog import Catalog, CommitOutcome, CommitProposal, ManagedTable, NewTable, TableReservation
from delta_pyds.catalog.contract import METADATA, NAME, PROTOCOL, defined
from delta_pyds.catalog.contract import new_table as new_table
from delta_pyds.catalog.contract import proposal as proposal
from delta_pyds.catalog.contract import registered as registered
from delta_pyds.catalog.managed_storage import CatalogStorage
from delta_pyds.catalog.sqlite import SqliteCatalog
from delta_pyds.storage.local import LocalStorage
from delta_pyds.storage.resolve import normalize_table_root
from delta_pyds.table.snapshot import Snapshot, open_snapshot
from delta_pyds.table.transaction.commit_info import Operation
from delta_pyds.table.transaction.transaction import CommitPolicy, Committed, TableToCreate, Transaction
from tests.support.transactions import QUIET, WRITE, file


class CatalogTable:
    """A table of a catalog on the local disk, changed by transactions only. No pause is waited for."""

    def __init__(self, catalog: Catalog, name: str = NAME) -> None:
        self.catalog, self.name = catalog, name
        self.pauses: list[float] = []

    def storage(self) -> CatalogStorage:
        table = self.catalog.load_table(self.name)
        root, table_id = normalize_table_root(table.location), table.table_id
        return CatalogStorage(self.catalog, self.name, root, lambda _: LocalStorage(), table_id=table_id)

    def new_storage(self) -> CatalogStorage:
        made = self.catalog.reserve_table(self.name)
        root = normalize_table_root(made.location)
        return CatalogStorage(self.catalog, self.name, root, lambda _: LocalStorage(), reservation=made)

    def create(self, storage: CatalogStorage | None = None, policy: CommitPolicy = QUIET) -> Committed:
        storage = storage or self.new_storage()
        transaction = Transaction(TableToCreate(storage, storage.table_root), sleep=self.pauses.append)
        protocol, metadata = defined(storage.wanted_properties, storage.wanted_features)
        transaction.set_metadata(metadata)
        transaction.set_protocol(protocol)
        return transaction.commit(Operation("CREATE TABLE"), policy=policy)

    def snapshot(self, version: int | None = None) -> Snapshot:
        storage = self.storage()
        return open_snapshot(storage, storage.table_root, version)

    def append(self, *paths: str, storage: CatalogStorage | None = None, **given: Any) -> Committed:
        storage = storage or self.storage()
        snapshot = open_snapshot(storage, storage.table_root)
        transaction = Transaction(snapshot, sleep=self.pauses.append)
        transaction.add(file(path) for path in paths)
        return transaction.commit(WRITE, **{"policy": QUIET, **given})

    @property
    def root(self) -> Path:
        return Path(normalize_table_root(self.catalog.load_table(self.name).location))

    @property
    def log(self) -> Path:
        return self.root / "_delta_log"

    def published(self) -> list[int]:
        return sorted(int(path.stem) for path in self.log.glob("*.json"))

    def staged(self) -> list[str]:
        return sorted(path.name for path in (self.log / "_staged_commits").glob("*.json"))

    def unpublished(self) -> list[int]:
        return [commit.version for commit in self.catalog.load_table(self.name).unpublished]

    def files(self, version: int | None = None) -> list[str]:
        """The paths of the live files, sorted, as often as the log has them."""
        return live_paths(self.snapshot(version))


def live_paths(snapshot: Snapshot) -> list[str]:
    from delta_pyds.log.adds import AddRequest

    found = [path for batch in snapshot.adds(AddRequest(columns=("path",))) for path in batch.files.column("path")]
    return sorted(path.as_py() for path in found)


def commit_lines(
    version: int, *paths: str, txn_id: str | None = None, time_ms: int | None = None, managed: bool | None = None
) -> bytes:
    """A commit as another engine would write it. ``managed``: the protocol that it sets has the feature, or not; by
    default version 0 sets it.
    """
    info = {
        "inCommitTimestamp": 1_000 + version if time_ms is None else time_ms,
        "timestamp": 1_000 + version,
        "operation": "WRITE",
        "operationParameters": {},
        "txnId": txn_id or str(uuid.uuid4()),
    }
    lines: list[dict[str, Any]] = [{"commitInfo": info}]
    if version == 0 or managed:
        without = {"catalogManaged"} if managed is False else set()
        lines.append(
            {
                "protocol": {
                    "minReaderVersion": PROTOCOL.min_reader_version,
                    "minWriterVersion": PROTOCOL.min_writer_version,
                    "readerFeatures": sorted(set(PROTOCOL.reader_features or ()) - without),
                    "writerFeatures": sorted(set(PROTOCOL.writer_features or ()) - without),
                }
            }
        )
    if version == 0:
        lines.append(
            {
                "metaData": {
                    "id": METADATA.id,
                    "format": {"provider": "parquet", "options": {}},
                    "schemaString": METADATA.schema_string,
                    "partitionColumns": [],
                    "configuration": METADATA.configuration,
                    "createdTime": 1,
                }
            }
        )
    for path in paths:
        stats = json.dumps({"numRecords": 1})
        add = {
            "path": path,
            "partitionValues": {},
            "size": 10,
            "modificationTime": 1,
            "dataChange": True,
            "stats": stats,
        }
        lines.append({"add": add})
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


class FaultyCatalog(Catalog):
    """Another catalog, through a connection that may fail. ``before`` and ``after`` are called with a method's name and
    the number of the call (from 1), and raise what shall go wrong before or after its effect.
    """

    def __init__(
        self,
        catalog: Catalog,
        *,
        before: Callable[[str, int], None] | None = None,
        after: Callable[[str, int], None] | None = None,
    ) -> None:
        self.catalog = catalog
        self.before, self.after = before, after
        self.max_inline_bytes = catalog.max_inline_bytes
        self.calls: list[str] = []

    def _call(self, name: str, real: Callable[..., Any], *args: Any) -> Any:
        self.calls.append(name)
        number = self.calls.count(name)
        if self.before is not None:
            self.before(name, number)
        result = real(*args)
        if self.after is not None:
            self.after(name, number)
        return result

    def load_table(self, name: str) -> ManagedTable:
        found: ManagedTable = self._call("load_table", self.catalog.load_table, name)
        return found

    def propose_commit(self, proposal: CommitProposal) -> CommitOutcome:
        outcome: CommitOutcome = self._call("propose_commit", self.catalog.propose_commit, proposal)
        return outcome

    def report_published(self, name: str, table_id: str, version: int) -> None:
        self._call("report_published", self.catalog.report_published, name, table_id, version)

    def reserve_table(self, name: str) -> TableReservation:
        made: TableReservation = self._call("reserve_table", self.catalog.reserve_table, name)
        return made

    def register_table(self, table: NewTable) -> CommitOutcome:
        outcome: CommitOutcome = self._call("register_table", self.catalog.register_table, table)
        return outcome


def staging_sqlite(settings: Mapping[str, str]) -> Catalog:
    """A catalog in SQLite that takes no commit inline, as a factory of a named catalog."""
    return SqliteCatalog(settings["file"], max_inline_bytes=0)


def raising(error: BaseException, at: str, *numbers: int) -> Callable[[str, int], None]:
    """Raise at these calls of a method; without numbers at each."""

    def fault(name: str, number: int) -> None:
        if name == at and (not numbers or number in numbers):
            raise error

    return fault


def faulty(table: CatalogTable, **faults: Any) -> CatalogTable:
    """The same table through a connection that fails."""
    return CatalogTable(FaultyCatalog(table.catalog, **faults), table.name)
