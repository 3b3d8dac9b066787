"""The places of the tables of drawn histories: a disk, a store with faults, catalogs."""

from __future__ import annotations

import contextlib
import os
import random
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from delta_pyds.catalog.address import locate, reserve
from delta_pyds.catalog.named import forget_catalogs
from tests.concurrency.history_check import TableAt
from tests.support.faulty_proxy import proxy
from tests.support.postgresql_server import URL, empty_database
from tests.support.s3_server import s3_server
from tests.support.stores import s3_store

CATALOG, NAME = "race", "main.db.t"
# with weights; `make test-histories` has a PostgreSQL server
PLACES = {
    "disk": 6,
    "store": 1,
    "sqlite inline": 2,
    "sqlite staged": 2,
    **({"postgresql": 2} if URL in os.environ else {}),
}


@dataclass(frozen=True)
class Place:
    """``new``: the table that is to be created. ``options``: of writers. ``environment``: names the catalog."""

    new: TableAt
    options: Mapping[str, object] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def catalog(self) -> str | None:
        return CATALOG if self.environment else None

    def created(self) -> tuple[TableAt, TableAt]:
        """The table for the check, and for writers."""
        if self.catalog is None:
            return self.new, TableAt(self.new.root, self.options)
        address = locate(table=NAME, catalog=self.catalog)
        table = TableAt(address.table_root, address.storage_options)
        return table, table


@contextlib.contextmanager
def place(kind: str, folder: Path, seed: int) -> Iterator[Place]:
    """A place for one table."""
    if kind == "disk":
        yield Place(TableAt(str(folder / "table")))
    elif kind == "store":
        with _store(seed) as found:
            yield found
    else:
        settings = {
            "sqlite inline": lambda: {"URL": f"sqlite://{folder}/c.db"},
            "sqlite staged": lambda: {"FACTORY": "tests.support.catalogs:staging_sqlite", "FILE": f"{folder}/c.db"},
            "postgresql": lambda: {"URL": empty_database(), "ROOT": str(folder)},
        }[kind]()
        environment = {f"DELTA_PYDS_CATALOG_{CATALOG.upper()}_{key}": value for key, value in settings.items()}
        with pytest.MonkeyPatch.context() as patch:
            for key, value in environment.items():
                patch.setenv(key, value)
            forget_catalogs()
            made = reserve(NAME, CATALOG)
            yield Place(TableAt(made.table_root, made.storage_options), {}, environment)
        forget_catalogs()


@contextlib.contextmanager
def _store(seed: int) -> Iterator[Place]:
    """One request in twelve fails: before the store is asked, after it, or in the middle of the answer."""
    drawn, lock = random.Random(seed), threading.Lock()

    def choose(*_: str) -> str | int | None:
        with lock:
            return drawn.choice([503, 500, "reset", "lost", "half"]) if drawn.random() < 1 / 12 else None

    with s3_server() as url, proxy(url) as (faulty_url, faults):
        store = s3_store(url)
        faults.choose = choose
        yield Place(TableAt(store.root(), store.options), store.options_by(faulty_url))
        assert faults.injected
