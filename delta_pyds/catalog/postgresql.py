"""A catalog in a PostgreSQL database: for processes on any number of machines. Needs ``psycopg``.

Invariants: a transaction that changes a table in the catalog locks the table's row in its first statement, and is on
the server's disk before the call returns. After an error before COMMIT was sent, nothing was changed; after a later
error, the outcome is unknown. A connection is used by one thread at a time, and only by the process that opened it.

    DELTA_PYDS_CATALOG_PROD_URL=postgresql://etl@db.example/catalogs
    DELTA_PYDS_CATALOG_PROD_PASSWORD=...
    DELTA_PYDS_CATALOG_PROD_ROOT=s3://bucket/tables

Protocol: "Catalog Responsibilities".
"""

from __future__ import annotations

import contextlib
import importlib
import os
import threading
from collections.abc import Generator, Mapping
from typing import Any, cast
from urllib.parse import urlsplit

from delta_pyds.catalog.sql import TABLES, Run, SqlCatalog
from delta_pyds.errors import CatalogError, NothingWrittenError, OptionError, TableNotFoundError
from delta_pyds.storage.resolve import normalize_table_root

_MOST_IDLE = 8
_CONNECT_S = 20
_WAIT_S = 60.0
# A commit is on the disk before it returns, even on a server with synchronous_commit off.
_BEGIN = (
    "SELECT set_config('lock_timeout', %s, true), set_config('idle_in_transaction_session_timeout', %s, true), "
    "set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' "
    "ELSE current_setting('synchronous_commit') END, true)"
)
# attempts to create the tables: if two processes do so at once, one gets an error
_CREATIONS = 5


class PostgresqlCatalog(SqlCatalog):
    """``url``: libpq's, which also reads ``PGPASSFILE`` and similar variables. ``password``: not part of the URL.

    >>> PostgresqlCatalog("postgresql://db.example/catalogs", root="s3://bucket/t").load_table("main.sales.orders")
    """

    _for_update = " FOR UPDATE"

    def __init__(
        self, url: str, *, password: str | None = None, root: str | None = None, wait_s: float = _WAIT_S, **limits: int
    ) -> None:
        self._psycopg = _driver()
        self._url, self._password, self._wait_s = url, password, wait_s
        parts = urlsplit(url)
        # messages and options show neither user nor parameters
        shown = f"postgresql://{parts.netloc.rpartition('@')[2]}{parts.path}"
        super().__init__(
            shown=shown, address=shown, root=None if root is None else normalize_table_root(root), **limits
        )
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._idle: list[Any] = []

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> PostgresqlCatalog:
        """The catalog of these settings: ``url``, ``password``, ``root``."""
        return cls(settings["url"], password=settings.get("password"), root=settings.get("root"))

    # --- statements

    @contextlib.contextmanager
    def _reading(self) -> Generator[Run, None, None]:
        connection = self._begun("read")
        try:
            yield _run_of(connection)
            connection.commit()
        except self._psycopg.errors.UndefinedTable as error:
            raise TableNotFoundError(
                f"The database {self._shown} is not a catalog: check its address. Creating the first table makes it "
                "one.",
                code="TABLE_OR_VIEW_NOT_FOUND",
            ) from error
        except self._psycopg.Error as error:
            raise CatalogError(self._sentence("read", error)) from None
        finally:
            self._put_back(connection)

    @contextlib.contextmanager
    def _writing(self, *, lasting: bool = True) -> Generator[Run, None, None]:
        # every transaction is durable here, even if it need not be: the server syncs many at once
        del lasting
        try:
            connection = self._begun("written")
        except CatalogError as error:
            raise NothingWrittenError(error.message) from None
        try:
            try:
                yield _run_of(connection)
            except self._psycopg.Error as error:
                # the server rolls back a transaction without COMMIT
                raise NothingWrittenError(self._sentence("written", error)) from None
            try:
                connection.commit()
            except self._psycopg.Error as error:
                raise CatalogError(self._sentence("written", error)) from None
        finally:
            self._put_back(connection)

    def _make_tables(self) -> None:
        for attempt in range(1, _CREATIONS + 1):
            try:
                with self._writing() as run:
                    # if the tables exist, the user needs no right to create tables
                    there = run(
                        "SELECT to_regclass('delta_tables') IS NOT NULL, to_regclass('delta_commits') IS NOT NULL"
                    )
                    if not all(there[0]):
                        for statement in TABLES:
                            run(statement.format(bytes="BYTEA"))
                return
            except NothingWrittenError as error:
                if attempt == _CREATIONS:
                    raise CatalogError(error.message) from None

    def _sentence(self, verb: str, error: Exception) -> str:
        reason = str(error).strip().rstrip(".") or type(error).__name__
        return f"The catalog {self._shown} could not be {verb}: {reason}."

    # --- connections

    def _begun(self, verb: str) -> Any:
        """A connection in a transaction. Connections that the server has closed meanwhile are dropped.

        Raises: CatalogError.
        """
        while True:
            connection = self._taken()
            fresh = connection is None
            try:
                if connection is None:
                    connection = self._connected()
                wait = f"{max(int(self._wait_s * 1000), 1)}ms"
                # begins the transaction and applies only to it: a pooler may give the connection to other clients
                connection.execute(_BEGIN, (wait, wait))
                return connection
            except self._psycopg.Error as error:
                if connection is not None:
                    connection.close()
                if fresh:
                    raise CatalogError(self._sentence(verb, error)) from None

    def _connected(self) -> Any:
        more: dict[str, Any] = {} if self._password is None else {"password": self._password}
        connection = self._psycopg.connect(
            self._url,
            connect_timeout=_CONNECT_S,
            application_name="delta_pyds",
            **more,
        )
        connection.isolation_level = self._psycopg.IsolationLevel.READ_COMMITTED
        # no prepared statements: they belong to a server connection, which a pooler may exchange
        connection.prepare_threshold = None
        return connection

    def _taken(self) -> Any:
        if self._process != os.getpid():
            # psycopg does not close connections that another process has opened
            self._lock, self._idle, self._process = threading.Lock(), [], os.getpid()
        with self._lock:
            return self._idle.pop() if self._idle else None

    def _put_back(self, connection: Any) -> None:
        with contextlib.suppress(self._psycopg.Error):
            connection.rollback()
        with self._lock:
            keep = not connection.closed and self._process == os.getpid() and len(self._idle) < _MOST_IDLE
            if keep:
                self._idle.append(connection)
        if not keep:
            connection.close()


def _driver() -> Any:
    try:
        return importlib.import_module("psycopg")
    except ImportError as error:
        raise OptionError(
            "a catalog in PostgreSQL needs the package psycopg: install delta_pyds[postgresql].", option="catalog"
        ) from error


def _run_of(connection: Any) -> Run:
    def run(statement: str, *values: Any) -> list[tuple[Any, ...]]:
        cursor = connection.execute(statement.replace("?", "%s"), values)
        return cast("list[tuple[Any, ...]]", cursor.fetchall()) if cursor.description is not None else []

    return run
