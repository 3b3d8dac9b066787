"""A whole catalog of somebody's own, in memory: what ``delta_pyds.catalog.Catalog`` asks for, and no more.

An option names it after ``DELTA_PYDS_CATALOG_MINE_FACTORY=package.module:from_settings`` in the environment.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping
from dataclasses import replace

from delta_pyds.catalog import (
    BacklogFull,
    Catalog,
    CommitOutcome,
    CommitProposal,
    Conflict,
    ManagedTable,
    NewTable,
    Ratified,
    Refused,
    TableReservation,
    UnpublishedCommit,
)
from delta_pyds.errors import TableNotFoundError, UserError


class DictCatalog(Catalog):
    def __init__(self, root: str, *, max_inline_bytes: int = 0) -> None:
        self._root, self._lock = root, threading.Lock()
        self._tables: dict[str, ManagedTable] = {}
        self.max_inline_bytes = max_inline_bytes

    def load_table(self, name: str) -> ManagedTable:
        if name not in self._tables:
            raise TableNotFoundError(f"there is no table {name}.", code="TABLE_OR_VIEW_NOT_FOUND")
        return self._tables[name]

    def propose_commit(self, proposal: CommitProposal) -> CommitOutcome:
        with self._lock:
            table = self._tables.get(proposal.table_name)
            if table is None or table.table_id != proposal.table_id or proposal.version > table.latest_version + 1:
                return Refused("this is not the table, or not its next version")
            given = proposal.version, proposal.timestamp_ms, proposal.file_name, proposal.size_bytes
            commit = UnpublishedCommit(*given, proposal.modification_time_ms, proposal.content)
            if proposal.version <= table.latest_version:
                return Ratified(table) if commit in table.unpublished else Conflict()
            if len(table.unpublished) >= 10:
                return BacklogFull()
            changed = replace(table, latest_version=proposal.version, unpublished=(*table.unpublished, commit))
            self._tables[table.name] = changed
            return Ratified(changed)

    def report_published(self, name: str, table_id: str, version: int) -> None:
        with self._lock:
            table = self._tables.get(name)
            if table is not None and table.table_id == table_id:
                left = tuple(commit for commit in table.unpublished if commit.version > version)
                self._tables[name] = replace(table, unpublished=left)

    def reserve_table(self, name: str) -> TableReservation:
        if name in self._tables:
            raise UserError(f"there is a table {name}.", code="TABLE_OR_VIEW_ALREADY_EXISTS")
        table_id = str(uuid.uuid4())
        return TableReservation(name, table_id, f"{self._root}/{table_id}")

    def register_table(self, table: NewTable) -> CommitOutcome:
        with self._lock:
            made = self._tables.setdefault(table.name, ManagedTable(table.name, table.table_id, table.location, 0))
            return Ratified(made) if made.table_id == table.table_id else Conflict()


def from_settings(settings: Mapping[str, str]) -> Catalog:
    return DictCatalog(settings["root"])
