"""A catalog in one SQLite file: for any number of processes on one machine, with nothing to install.

Invariants: every change of the catalog is one transaction that holds SQLite's write lock from its beginning, and is on
the disk before the call returns; readers never wait for it. The file is on a disk of this machine (see
``sqlite_file``).

    sqlite:///data/catalog.db                       # tables beside it, in /data/catalog-tables
    sqlite:///data/catalog.db?root=s3://bucket/dir  # tables elsewhere

Protocol: "Catalog Responsibilities".
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Generator
from typing import Any
from urllib.parse import parse_qsl

from delta_pyds.catalog.sql import TABLES, Run, SqlCatalog
from delta_pyds.catalog.sqlite_file import SqliteFile
from delta_pyds.errors import CatalogError, NothingWrittenError, OptionError, TableNotFoundError
from delta_pyds.storage.resolve import normalize_table_root

_PREFIX = "sqlite://"
_WAIT_S = 60.0


class SqliteCatalog(SqlCatalog):
    """``file``: the database file. ``root``: the directory of new tables, by default beside the file.

    >>> SqliteCatalog.at("sqlite:///data/catalog.db").load_table("main.sales.orders").latest_version
    """

    def __init__(self, file: str, *, root: str | None = None, wait_s: float = _WAIT_S, **limits: int) -> None:
        self._sql = SqliteFile(file, wait_s)
        path = self._sql.path
        super().__init__(
            shown=path,
            address=f"{_PREFIX}{path}",
            root=normalize_table_root(root or f"{os.path.splitext(path)[0]}-tables"),
            **limits,
        )

    @classmethod
    def at(cls, url: str, *, root: str | None = None) -> SqliteCatalog:
        """The catalog of a ``sqlite:///path`` URL. ``root``: the directory of new tables, unless the URL has one.

        Raises: OptionError for an invalid URL.
        """
        path, _, query = url.removeprefix(_PREFIX).partition("?")
        options = dict(parse_qsl(query))
        if not url.startswith(f"{_PREFIX}/") or len(path) < 2 or options.keys() - {"root"}:
            raise OptionError(
                f"'{url.partition('?')[0]}' is not a catalog in SQLite: write sqlite:///path/of/catalog.db. The "
                "only parameter is ?root=directory, for the directory of new tables.",
                option="catalog",
            )
        return cls(path, root=options.get("root", root))

    @contextlib.contextmanager
    def _reading(self) -> Generator[Run, None, None]:
        with self._failures("read"), self._sql.connection() as connection:
            yield _run_of(connection)

    @contextlib.contextmanager
    def _writing(self, *, lasting: bool = True) -> Generator[Run, None, None]:
        with self._failures("written"), contextlib.ExitStack() as held:
            try:
                connection = held.enter_context(self._sql.connection())
                connection.execute(f"PRAGMA synchronous = {'FULL' if lasting else 'NORMAL'}")
                connection.execute("BEGIN IMMEDIATE")
            except CatalogError as error:
                raise NothingWrittenError(error.message) from error
            except (sqlite3.Error, OSError) as error:
                raise NothingWrittenError(self._sentence("written", error)) from error
            try:
                yield _run_of(connection)
                connection.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise

    def _make_tables(self) -> None:
        with self._failures("created"):
            self._sql.create([statement.format(bytes="BLOB") for statement in TABLES])

    @contextlib.contextmanager
    def _failures(self, verb: str) -> Generator[None, None, None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            sentence = self._sentence(verb, error)
            if not os.path.exists(self._sql.path) or "no such table" in str(error):
                # the first reservation of a table creates the catalog
                raise TableNotFoundError(sentence, code="TABLE_OR_VIEW_NOT_FOUND") from error
            raise CatalogError(sentence) from error

    def _sentence(self, verb: str, error: Exception) -> str:
        path = self._sql.path
        if not os.path.exists(path):
            return f"There is no catalog {path}: check its path. Creating the first table creates it."
        if "locked" in str(error) or "busy" in str(error):
            return (
                f"The catalog {path} could not be {verb}: another process has held its lock for "
                f"{self._sql.wait_s:g} s. Find that process, and run the operation again."
            )
        if "no such table" in str(error):
            return f"The file {path} is not a catalog: check its path. Creating the first table makes it one."
        return f"The catalog {path} could not be {verb}: {error}."


def _run_of(connection: sqlite3.Connection) -> Run:
    def run(statement: str, *values: Any) -> list[tuple[Any, ...]]:
        return connection.execute(statement, values).fetchall()

    return run
