"""Credentials of the store that a catalog hands out: renewed before they expire, and all that tasks get of it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from delta_pyds.catalog import ManagedTable, StorageCredentials
from delta_pyds.catalog.managed_storage import CatalogStorage
from delta_pyds.catalog.opening import task_options
from delta_pyds.commands.row_changes.plan import CommandOptions, files_state
from delta_pyds.storage.local import LocalStorage
from delta_pyds.table.scan.scan import plan_scan
from delta_pyds.table.snapshot import open_snapshot
from tests.support.catalogs import NAME, CatalogTable
from tests.unit.catalog.fifty_lines import DictCatalog

MINUTE_MS = 60_000


class Vending(DictCatalog):
    """Hands out another token whenever it is asked, for ``minutes``."""

    minutes = 60

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.asked = 0

    def load_table(self, name: str) -> ManagedTable:
        found = super().load_table(name)
        self.asked += 1
        expires_at_ms = int(time.time() * 1000) + self.minutes * MINUTE_MS
        return replace(found, credentials=StorageCredentials({"token": f"token-{self.asked}"}, expires_at_ms))


class Opened:
    """A storage, and the credentials that its store was opened with."""

    def __init__(self, catalog: Vending) -> None:
        self.with_options: list[Mapping[str, Any]] = []
        root = DictCatalog.load_table(catalog, NAME).location
        self.storage = CatalogStorage(catalog, NAME, root, self._open)

    def _open(self, credentials: StorageCredentials | None) -> LocalStorage:
        self.with_options.append({} if credentials is None else credentials.storage_options)
        return LocalStorage()


@pytest.fixture
def catalog(tmp_path: Path) -> Vending:
    made = Vending(str(tmp_path))
    CatalogTable(made).create()
    made.asked = 0
    return made


def test_a_store_is_never_opened_without_credentials(catalog: Vending) -> None:
    opened = Opened(catalog)
    opened.storage.require_put_if_absent(opened.storage.table_root)
    assert opened.with_options == [{"token": "token-1"}]


def test_they_are_kept_as_long_as_they_hold_and_then_renewed(catalog: Vending) -> None:
    opened = Opened(catalog)
    for _ in range(3):
        assert not opened.storage.exists(f"{opened.storage.table_root}/none")
    assert (catalog.asked, len(opened.with_options)) == (1, 1)
    catalog.minutes = 1
    assert opened.storage.latest() is not None
    for number in range(3, 6):
        opened.storage.exists(f"{opened.storage.table_root}/none")
        assert opened.with_options[-1] == {"token": f"token-{number}"}


def test_tasks_get_them_and_nothing_that_opens_the_catalog(catalog: Vending) -> None:
    storage = Opened(catalog).storage
    snapshot = open_snapshot(storage, storage.table_root)
    states = [
        plan_scan(snapshot, storage_options={"endpoint": "e"}).state,
        files_state(snapshot, CommandOptions({"endpoint": "e"})),
    ]
    for state in states:
        assert state.storage_options == {"endpoint": "e", "token": f"token-{catalog.asked}"}
        assert "token-" not in repr(state)
    assert task_options(LocalStorage(), {"endpoint": "e"}) == {"endpoint": "e"}
    assert "token-" not in repr(catalog.load_table(NAME))
