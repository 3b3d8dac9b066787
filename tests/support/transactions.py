"""Helpers of tests of commits: a small table in memory, and views of its log."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from delta_pyds.expr.parse import parse_predicate
from delta_pyds.protocol.actions import AddFile, Metadata, Protocol, RemoveFile
from delta_pyds.protocol.schema import LONG, STRING, StructField, StructType, schema_to_string
from delta_pyds.storage.base import Storage
from delta_pyds.table.snapshot import Snapshot, open_snapshot
from delta_pyds.table.transaction.transaction import CommitPolicy, Committed, Operation, TableToCreate, Transaction

ROOT = "memory://bucket/t"
SCHEMA = StructType((StructField("id", LONG), StructField("p", STRING)))
WRITE = Operation("WRITE", {"mode": "Append", "partitionBy": "[]"})
QUIET = CommitPolicy(post_commit=False)


class Crash(BaseException):
    """The process ends here: nothing catches it."""


class Table:
    """A table at ``root`` of a storage, changed by transactions only."""

    def __init__(self, storage: Storage, root: str = ROOT, *, clock: Callable[[], int] | None = None) -> None:
        self.storage, self.root, self.clock = storage, root, clock
        self.pauses: list[float] = []

    def start(self, snapshot: Snapshot | None = None) -> Transaction:
        """A transaction on the newest version, or on the given one."""
        return self._transaction(snapshot or self.snapshot())

    def _transaction(self, snapshot: Snapshot | None) -> Transaction:
        more: dict[str, Any] = {"clock": self.clock} if self.clock is not None else {}
        return Transaction(snapshot or TableToCreate(self.storage, self.root), sleep=self.pauses.append, **more)

    def creation(
        self,
        *,
        partitioned: bool = False,
        properties: Mapping[str, str] | None = None,
        protocol: Protocol | None = None,
        schema: StructType = SCHEMA,
        table_id: str = "table-id",
    ) -> Transaction:
        transaction = self._transaction(None)
        transaction.set_metadata(
            Metadata(
                id=table_id,
                schema_string=schema_to_string(schema),
                partition_columns=["p"] if partitioned else [],
                configuration=dict(properties or {}),
                created_time=1,
            )
        )
        transaction.set_protocol(protocol or Protocol(1, 2))
        return transaction

    def create(self, **given: Any) -> Committed:
        return self.creation(**given).commit(Operation("CREATE TABLE"), policy=QUIET)

    def append(self, *paths: str, policy: CommitPolicy = QUIET, **partition: str) -> Committed:
        transaction = self.start()
        transaction.add(file(path, **partition) for path in paths)
        return transaction.commit(WRITE, policy=policy)

    def set_properties(self, protocol: Protocol | None = None, **properties: str) -> Committed:
        """``delta_x=...`` sets ``delta.x``."""
        transaction = self.start()
        given = {k.replace("_", "."): v for k, v in properties.items()}
        old = self.snapshot().metadata
        transaction.set_metadata(
            Metadata(
                id=old.id,
                format=old.format,
                schema_string=old.schema_string,
                partition_columns=old.partition_columns,
                configuration={**(old.configuration or {}), **given},
                created_time=old.created_time,
            )
        )
        if protocol is not None:
            transaction.set_protocol(protocol)
        return transaction.commit(Operation("SET TBLPROPERTIES"), policy=QUIET)

    def snapshot(self, version: int | None = None) -> Snapshot:
        return open_snapshot(self.storage, self.root, version)

    def lines(self, version: int) -> list[dict[str, Any]]:
        data = self.storage.read(f"{self.root}/_delta_log/{version:020d}.json")
        return [json.loads(line) for line in data.splitlines()]

    def info(self, version: int) -> dict[str, Any]:
        found: dict[str, Any] = self.lines(version)[0]["commitInfo"]
        return found

    def actions(self, version: int, kind: str) -> list[dict[str, Any]]:
        return [line[kind] for line in self.lines(version) if kind in line]

    def kinds(self, version: int) -> list[str]:
        return [next(iter(line)) for line in self.lines(version)]

    def names(self) -> list[str]:
        return [s.name for s in self.storage.list_from(f"{self.root}/_delta_log", "")]

    def live(self) -> list[str]:
        """Paths of the files in the table, sorted, as often as they are there."""
        snapshot = self.snapshot()
        gone: set[str] = set()
        paths: list[str] = []
        for version in range(snapshot.version, -1, -1):
            for line in self.lines(version):
                if "add" in line and line["add"]["path"] not in gone:
                    paths.append(line["add"]["path"])
            gone |= {line["remove"]["path"] for line in self.lines(version) if "remove" in line}
        return sorted(paths)


def file(path: str, records: int | None = 1, **given: Any) -> AddFile:
    """A file of the table; ``p`` is its partition."""
    partition: dict[str, str | None] = {"p": given.pop("p")} if "p" in given else {}
    stats = None if records is None else json.dumps({"numRecords": records})
    return AddFile(path, partition, 10, 1, **{"stats": stats, **given})


def removed(paths: str | Iterable[str], **given: Any) -> list[RemoveFile]:
    """Tombstones with all that a checksum needs."""
    return [
        RemoveFile(path, **{"deletion_timestamp": 5, "partition_values": {}, "size": 10, **given})
        for path in ([paths] if isinstance(paths, str) else paths)
    ]


def where(text: str) -> Any:
    """A predicate over ``SCHEMA``."""
    return parse_predicate(text, SCHEMA, time_zone="UTC").expr
