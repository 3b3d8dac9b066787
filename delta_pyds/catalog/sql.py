"""A catalog in two tables of an SQL database: the part that does not depend on the database.

Invariants: every change of the catalog is one transaction, which locks the row of the table that it changes. The
transaction that ratifies a version also advances the table's latest version from the one before.

Protocol: "Catalog Responsibilities".
"""

from __future__ import annotations

import re
import string
import uuid
from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import msgspec

from delta_pyds.catalog.interface import (
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
from delta_pyds.catalog.outcomes import refused_for_another, refused_version
from delta_pyds.errors import CatalogError, DeltaError, NothingWrittenError, OptionError, TableNotFoundError, UserError
from delta_pyds.protocol.properties import CATALOG_ADDRESS, CATALOG_TABLE

# as in Unity Catalog
MOST_UNPUBLISHED = 10
# up to this size, a row costs less than a staged file
MOST_INLINE_BYTES = 64 * 1024

# Runs one statement with "?" for its values, and returns its rows.
Run = Callable[..., list[tuple[Any, ...]]]

TABLES = (
    """CREATE TABLE IF NOT EXISTS delta_tables (
        table_id TEXT PRIMARY KEY, name_key TEXT NOT NULL UNIQUE, name TEXT NOT NULL, location TEXT NOT NULL,
        latest BIGINT NOT NULL, published BIGINT NOT NULL, protocol TEXT NOT NULL, metadata TEXT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS delta_commits (
        table_id TEXT NOT NULL, version BIGINT NOT NULL, timestamp_ms BIGINT NOT NULL, txn_id TEXT NOT NULL,
        file_name TEXT, size_bytes BIGINT NOT NULL, modification_time_ms BIGINT NOT NULL, content {bytes},
        PRIMARY KEY (table_id, version))""",
)
_OF_TABLE = {"name": str, "table_id": str, "location": str, "latest": int}
_OF_COMMIT = {
    "version": int,
    "timestamp_ms": int,
    "file_name": str | None,
    "size_bytes": int,
    "modification_time_ms": int,
    "content": bytes | None,
}
# makes an error from the description of invalid content
_Wrong = Callable[[str], DeltaError]
_PART = re.compile(r"[^\x00-\x1f./\\]{1,255}")
# only ASCII letters: databases fold other letters differently
_FOLDED = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


class SqlCatalog(Catalog):
    """A catalog in an SQL database.

    ``shown``: the database's name in messages. ``address``: the catalog's name in options, without secrets.
    ``root``: the directory of new tables; None if it is not set. ``max_unpublished``: the most unpublished commits of
    a table.
    """

    # appended to the SELECT of a row that the transaction will change
    _for_update = ""

    def __init__(
        self,
        *,
        shown: str,
        address: str,
        root: str | None,
        max_unpublished: int = MOST_UNPUBLISHED,
        max_inline_bytes: int = MOST_INLINE_BYTES,
    ) -> None:
        self._shown, self._address, self._root = shown, address, root
        self.max_inline_bytes = max_inline_bytes
        self._max_unpublished = max_unpublished

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._shown!r})"

    @abstractmethod
    def _reading(self) -> AbstractContextManager[Run]:
        """A context for read-only statements. Raises: CatalogError; TableNotFoundError if this is not a catalog."""

    @abstractmethod
    def _writing(self, *, lasting: bool = True) -> AbstractContextManager[Run]:
        """A transaction, committed at the end of the block. ``lasting``: it is durable then.

        Raises: NothingWrittenError if it certainly changed nothing; CatalogError if that is unknown.
        """

    @abstractmethod
    def _make_tables(self) -> None:
        """Create the catalog's tables. Readers do not, so that a wrong address creates nothing."""

    def _unreadable(self, what: str) -> CatalogError:
        return CatalogError(
            f"The catalog {self._shown} has invalid content: {what}. Nothing was changed; ask the administrator "
            "of the catalog."
        )

    def _unwritten(self, what: str) -> NothingWrittenError:
        return NothingWrittenError(self._unreadable(what).message)

    def load_table(self, name: str) -> ManagedTable:
        with self._reading() as run:
            table = _load(run, "name_key", _key(name), self._unreadable)
        if table is None:
            raise TableNotFoundError(
                f"there is no table {name} in the catalog {self._shown}. Check its name.",
                code="TABLE_OR_VIEW_NOT_FOUND",
                table=name,
            )
        return table

    def propose_commit(self, proposal: CommitProposal) -> CommitOutcome:
        with self._writing() as run:
            rows = run(
                f"SELECT latest, published FROM delta_tables WHERE table_id = ? AND name_key = ?{self._for_update}",
                proposal.table_id,
                _key(proposal.table_name),
            )
            if not rows:
                return refused_for_another(proposal)
            of_versions = {"latest": int, "published": int}
            latest, published = _typed(rows[0], of_versions, "delta_tables", self._unwritten)
            if proposal.version <= latest:
                stored = run(
                    "SELECT txn_id, file_name FROM delta_commits WHERE table_id = ? AND version = ?",
                    proposal.table_id,
                    proposal.version,
                )
                same = stored == [(proposal.txn_id, proposal.file_name)]
                return Ratified(_load(run, "table_id", proposal.table_id, self._unwritten)) if same else Conflict()
            if proposal.version > latest + 1:
                return refused_version(latest)
            if proposal.published_version is not None:
                published = _forget(run, proposal.table_id, proposal.published_version, self._unwritten)
            if latest - published >= self._max_unpublished:
                return BacklogFull()
            _ratify(run, proposal)
            return Ratified(_load(run, "table_id", proposal.table_id, self._unwritten))

    def report_published(self, name: str, table_id: str, version: int) -> None:
        # losing a report in a power failure is harmless: the version is reported again
        with self._writing(lasting=False) as run:
            if _id_of(run, name, self._for_update) == table_id:
                _forget(run, table_id, version, self._unwritten)

    def reserve_table(self, name: str) -> TableReservation:
        _check_name(name)
        if self._root is None:
            raise OptionError(
                f"the catalog {self._shown} has no directory for new tables: set its 'root' to one "
                "(DELTA_PYDS_CATALOG_<NAME>_ROOT).",
                option="catalog",
            )
        self._make_tables()
        with self._reading() as run:
            taken = _load(run, "name_key", _key(name), self._unreadable)
        if taken is not None:
            raise UserError(
                f"the table {name} already exists in the catalog {self._shown}, at {taken.location}.",
                code="TABLE_OR_VIEW_ALREADY_EXISTS",
                table=name,
            )
        table_id = str(uuid.uuid4())
        properties = {CATALOG_TABLE: name, CATALOG_ADDRESS: self._address}
        return TableReservation(name, table_id, f"{self._root.rstrip('/')}/{table_id}", properties)

    def register_table(self, table: NewTable) -> CommitOutcome:
        with self._writing() as run:
            run(
                "INSERT INTO delta_tables VALUES (?, ?, ?, ?, 0, 0, ?, ?) ON CONFLICT DO NOTHING",
                table.table_id,
                _key(table.name),
                table.name,
                table.location,
                _json(table.protocol),
                _json(table.metadata),
            )
            known = _id_of(run, table.name, self._for_update)
            if known is None:
                return Refused(f"the catalog has the table {table.table_id} under another name")
            if known != table.table_id:
                return Conflict()
            return Ratified(_load(run, "table_id", table.table_id, self._unwritten))


def _load(run: Run, key: str, value: str, wrong: _Wrong) -> ManagedTable | None:
    """Load the table in one statement, so that the answer is consistent."""
    rows = run(
        "SELECT t.name, t.table_id, t.location, t.latest, c.version, c.timestamp_ms, c.file_name, c.size_bytes, "
        "c.modification_time_ms, c.content FROM delta_tables t LEFT JOIN delta_commits c ON c.table_id = t.table_id "
        f"WHERE t.{key} = ? ORDER BY c.version",
        value,
    )
    if not rows:
        return None
    stored = (row[4:] for row in rows if any(value is not None for value in row[4:]))
    commits = tuple(UnpublishedCommit(*_typed(row, _OF_COMMIT, "delta_commits", wrong)) for row in stored)
    name, table_id, location, latest = _typed(rows[0][:4], _OF_TABLE, "delta_tables", wrong)
    return ManagedTable(name, table_id, location, latest, commits)


def _id_of(run: Run, name: str, for_update: str) -> str | None:
    rows = run(f"SELECT table_id FROM delta_tables WHERE name_key = ?{for_update}", _key(name))
    return str(rows[0][0]) if rows else None


def _forget(run: Run, table_id: str, version: int, wrong: _Wrong) -> int:
    """Delete the published commits up to a version. Returns: the newest published version afterwards."""
    run(
        "UPDATE delta_tables SET published = ? WHERE table_id = ? AND published < ? AND latest >= ?",
        version,
        table_id,
        version,
        version,
    )
    rows = run("SELECT published FROM delta_tables WHERE table_id = ?", table_id)
    (published,) = _typed(rows[0], {"published": int}, "delta_tables", wrong) if rows else (-1,)
    run("DELETE FROM delta_commits WHERE table_id = ? AND version <= ?", table_id, published)
    return int(published)


def _typed(row: tuple[Any, ...], columns: Mapping[str, Any], table: str, wrong: _Wrong) -> tuple[Any, ...]:
    """The values with checked types: another program may have written them, and SQLite accepts text for a number.

    Raises: the error that ``wrong`` makes from a message.
    """
    for value, (column, expected) in zip(row, columns.items(), strict=True):
        if not isinstance(value, expected):
            found = "NULL" if value is None else f"a value of the type {type(value).__name__}"
            raise wrong(f"its table {table} has {found} in the column {column}")
    return row


def _ratify(run: Run, proposal: CommitProposal) -> None:
    run(
        "UPDATE delta_tables SET latest = ?, protocol = coalesce(?, protocol), metadata = coalesce(?, metadata) "
        "WHERE table_id = ?",
        proposal.version,
        _json(proposal.protocol),
        _json(proposal.metadata),
        proposal.table_id,
    )
    run(
        "INSERT INTO delta_commits VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        proposal.table_id,
        proposal.version,
        proposal.timestamp_ms,
        proposal.txn_id,
        proposal.file_name,
        proposal.size_bytes,
        proposal.modification_time_ms,
        proposal.content,
    )


def _json(value: object) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()


def _key(name: str) -> str:
    """The key of a name: names are compared without the case of the letters a to z."""
    return name.translate(_FOLDED)


def _check_name(name: str) -> None:
    parts = name.split(".")
    if len(parts) > 3 or not all(_PART.fullmatch(part) for part in parts):
        raise OptionError(
            f"'{name}' is not the name of a table in a catalog: write table, schema.table or catalog.schema.table.",
            option="table",
        )
