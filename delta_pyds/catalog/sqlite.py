"""A catalog in one SQLite file: for any number of processes on one machine, with nothing to install.

Invariants: whatever changes what the catalog says is one transaction that holds SQLite's write lock from its beginning,
and is on the disk before it is answered; readers never wait for it. The file is on a disk of this machine (see
``sqlite_file``).

    sqlite:///data/catalog.db                       # tables beside it, in /data/catalog-tables
    sqlite:///data/catalog.db?root=s3://bucket/dir  # tables elsewhere

Protocol: "Catalog Responsibilities".
"""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
import uuid
from collections.abc import Generator
from urllib.parse import parse_qsl

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
from delta_pyds.catalog.sqlite_file import SqliteFile
from delta_pyds.errors import CatalogError, NothingWrittenError, OptionError, TableNotFoundError, UserError
from delta_pyds.protocol.properties import CATALOG_ADDRESS, CATALOG_TABLE
from delta_pyds.storage.resolve import normalize_table_root

_PREFIX = "sqlite://"
_WAIT_S = 60.0
# as in Unity Catalog
_MOST_UNPUBLISHED = 10
# a row of this size costs less than a file beside it
_MOST_INLINE_BYTES = 64 * 1024

_SCHEMA = (
    """CREATE TABLE IF NOT EXISTS delta_tables (
        table_id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE COLLATE NOCASE, location TEXT NOT NULL,
        latest INTEGER NOT NULL, published INTEGER NOT NULL, protocol TEXT NOT NULL, metadata TEXT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS delta_commits (
        table_id TEXT NOT NULL, version INTEGER NOT NULL, timestamp_ms INTEGER NOT NULL, txn_id TEXT NOT NULL,
        file_name TEXT, size_bytes INTEGER NOT NULL, modification_time_ms INTEGER NOT NULL, content BLOB,
        PRIMARY KEY (table_id, version))""",
)
_PART = re.compile(r"[^\x00-\x1f./\\]{1,255}")


class SqliteCatalog(Catalog):
    """``file``: of the database. ``root``: below which new tables lie. ``max_unpublished``: commits that may wait.

    >>> SqliteCatalog.at("sqlite:///data/catalog.db").load_table("main.sales.orders").latest_version
    """

    def __init__(
        self,
        file: str,
        *,
        root: str | None = None,
        max_unpublished: int = _MOST_UNPUBLISHED,
        max_inline_bytes: int = _MOST_INLINE_BYTES,
        wait_s: float = _WAIT_S,
    ) -> None:
        self._sql = SqliteFile(file, wait_s)
        self._file = self._sql.path
        self._root = normalize_table_root(root or f"{os.path.splitext(self._file)[0]}-tables")
        self.max_inline_bytes = max_inline_bytes
        self._max_unpublished = max_unpublished

    @classmethod
    def at(cls, url: str) -> SqliteCatalog:
        """The catalog of a ``sqlite:///path`` URL. Raises: OptionError for what is none."""
        path, _, query = url.removeprefix(_PREFIX).partition("?")
        options = dict(parse_qsl(query))
        if not url.startswith(f"{_PREFIX}/") or len(path) < 2 or options.keys() - {"root"}:
            raise OptionError(
                f"'{url.partition('?')[0]}' is no catalog in SQLite: write sqlite:///path/of/catalog.db, or "
                "with ?root=directory, and no other parameter, where new tables shall lie elsewhere.",
                option="catalog",
            )
        return cls(path, root=options.get("root"))

    def __repr__(self) -> str:
        return f"SqliteCatalog({self._file!r})"

    def load_table(self, name: str) -> ManagedTable:
        with self._failures("read"), self._sql.connection() as connection:
            table = _load(connection, "name", name)
        if table is None:
            raise _not_found(name, self._file)
        return table

    def propose_commit(self, proposal: CommitProposal) -> CommitOutcome:
        with self._failures("written"), self._writing() as connection:
            row = connection.execute(
                "SELECT latest, published FROM delta_tables WHERE table_id = ? AND name = ?",
                (proposal.table_id, proposal.table_name),
            ).fetchone()
            if row is None:
                return Refused(f"the catalog has no table {proposal.table_name} with the id {proposal.table_id} now")
            latest, published = row
            if proposal.version <= latest:
                stored = connection.execute(
                    "SELECT txn_id, file_name FROM delta_commits WHERE table_id = ? AND version = ?",
                    (proposal.table_id, proposal.version),
                ).fetchone()
                same = stored == (proposal.txn_id, proposal.file_name)
                return Ratified(_load(connection, "table_id", proposal.table_id)) if same else Conflict()
            if proposal.version > latest + 1:
                return Refused(f"version {latest + 1} is the next one, and {proposal.version} was proposed")
            if proposal.published_version is not None:
                published = _forget(connection, proposal.table_id, proposal.published_version)
            if latest - published >= self._max_unpublished:
                return BacklogFull()
            _ratify(connection, proposal)
            return Ratified(_load(connection, "table_id", proposal.table_id))

    def report_published(self, name: str, table_id: str, version: int) -> None:
        # that it is lost with the machine's power harms nothing: it is reported again
        with self._failures("written"), self._writing(lasting=False) as connection:
            if _id_of(connection, name) == table_id:
                _forget(connection, table_id, version)

    def reserve_table(self, name: str) -> TableReservation:
        _check_name(name)
        with self._failures("created"):
            self._sql.create(_SCHEMA)
            with self._sql.connection() as connection:
                taken = _load(connection, "name", name)
        if taken is not None:
            raise UserError(
                f"there is a table {name} in the catalog {self._file} already, at {taken.location}.",
                code="TABLE_OR_VIEW_ALREADY_EXISTS",
                table=name,
            )
        table_id = str(uuid.uuid4())
        properties = {CATALOG_TABLE: name, CATALOG_ADDRESS: f"{_PREFIX}{self._file}"}
        return TableReservation(name, table_id, f"{self._root.rstrip('/')}/{table_id}", properties)

    def register_table(self, table: NewTable) -> CommitOutcome:
        with self._failures("written"), self._writing() as connection:
            known = _id_of(connection, table.name)
            if known is None:
                connection.execute(
                    "INSERT INTO delta_tables VALUES (?, ?, ?, 0, 0, ?, ?)",
                    (table.table_id, table.name, table.location, _json(table.protocol), _json(table.metadata)),
                )
            elif known != table.table_id:
                return Conflict()
            return Ratified(_load(connection, "table_id", table.table_id))

    # --- the file

    @contextlib.contextmanager
    def _writing(self, *, lasting: bool = True) -> Generator[sqlite3.Connection, None, None]:
        """A transaction that no other writer is in. ``lasting``: on the disk at its end.

        Raises: NothingWrittenError where it could not begin; whatever SQLite raises.
        """
        with contextlib.ExitStack() as held:
            try:
                connection = held.enter_context(self._sql.connection())
                connection.execute(f"PRAGMA synchronous = {'FULL' if lasting else 'NORMAL'}")
                connection.execute("BEGIN IMMEDIATE")
            except CatalogError as error:
                raise NothingWrittenError(error.message) from error
            except (sqlite3.Error, OSError) as error:
                raise NothingWrittenError(self._sentence("written", error)) from error
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise

    @contextlib.contextmanager
    def _failures(self, verb: str) -> Generator[None, None, None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            sentence = self._sentence(verb, error)
            if not os.path.exists(self._file) or "no such table" in str(error):
                # whoever creates tables makes it one
                raise TableNotFoundError(sentence, code="TABLE_OR_VIEW_NOT_FOUND") from error
            raise CatalogError(sentence) from error

    def _sentence(self, verb: str, error: Exception) -> str:
        if not os.path.exists(self._file):
            return f"There is no catalog {self._file}: check its path. The first table that is created in it makes it."
        if "locked" in str(error) or "busy" in str(error):
            return (
                f"The catalog {self._file} could not be {verb}: another process has held its lock for "
                f"{self._sql.wait_s:g} s. See what holds it, and run the operation again."
            )
        if "no such table" in str(error):
            return f"The file {self._file} is no catalog: check its path. The first table that is created makes it one."
        return f"The catalog {self._file} could not be {verb}: {error}."


def _load(connection: sqlite3.Connection, key: str, value: str) -> ManagedTable | None:
    """All in one statement, so that it is of one moment."""
    rows = connection.execute(
        "SELECT t.name, t.table_id, t.location, t.latest, c.version, c.timestamp_ms, c.file_name, c.size_bytes, "
        "c.modification_time_ms, c.content FROM delta_tables t LEFT JOIN delta_commits c ON c.table_id = t.table_id "
        f"WHERE t.{key} = ? ORDER BY c.version",
        (value,),
    ).fetchall()
    if not rows:
        return None
    commits = tuple(UnpublishedCommit(*row[4:]) for row in rows if row[4] is not None)
    name, table_id, location, latest = rows[0][:4]
    return ManagedTable(name, table_id, location, latest, commits)


def _id_of(connection: sqlite3.Connection, name: str) -> str | None:
    row = connection.execute("SELECT table_id FROM delta_tables WHERE name = ?", (name,)).fetchone()
    return None if row is None else str(row[0])


def _forget(connection: sqlite3.Connection, table_id: str, version: int) -> int:
    """The version up to which all is published, afterwards."""
    connection.execute(
        "UPDATE delta_tables SET published = ? WHERE table_id = ? AND published < ? AND latest >= ?",
        (version, table_id, version, version),
    )
    row = connection.execute("SELECT published FROM delta_tables WHERE table_id = ?", (table_id,)).fetchone()
    published = -1 if row is None else int(row[0])
    connection.execute("DELETE FROM delta_commits WHERE table_id = ? AND version <= ?", (table_id, published))
    return published


def _ratify(connection: sqlite3.Connection, proposal: CommitProposal) -> None:
    connection.execute(
        "UPDATE delta_tables SET latest = ?, protocol = coalesce(?, protocol), metadata = coalesce(?, metadata) "
        "WHERE table_id = ?",
        (proposal.version, _json(proposal.protocol), _json(proposal.metadata), proposal.table_id),
    )
    connection.execute(
        "INSERT INTO delta_commits VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            proposal.table_id,
            proposal.version,
            proposal.timestamp_ms,
            proposal.txn_id,
            proposal.file_name,
            proposal.size_bytes,
            proposal.modification_time_ms,
            proposal.content,
        ),
    )


def _json(value: object) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()


def _check_name(name: str) -> None:
    parts = name.split(".")
    if len(parts) > 3 or not all(_PART.fullmatch(part) for part in parts):
        raise OptionError(
            f"'{name}' is no name of a table in a catalog: it is like table, schema.table or catalog.schema.table.",
            option="table",
        )


def _not_found(name: str, file: str) -> TableNotFoundError:
    return TableNotFoundError(
        f"there is no table {name} in the catalog {file}. Check its name.",
        code="TABLE_OR_VIEW_NOT_FOUND",
        table=name,
    )
