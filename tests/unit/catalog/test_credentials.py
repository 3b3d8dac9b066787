"""Credentials of the store that a catalog hands out: renewed before they expire, and all that tasks get of it."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

import delta_pyds
from delta_pyds.catalog import CommitOutcome, CommitProposal, ManagedTable, Ratified, StorageCredentials
from delta_pyds.catalog.address import locate
from delta_pyds.catalog.committer import CatalogCommitter
from delta_pyds.catalog.managed_storage import CatalogStorage
from delta_pyds.catalog.named import forget_catalogs
from delta_pyds.catalog.opening import task_options
from delta_pyds.commands.row_changes.delete import run_delete
from delta_pyds.commands.row_changes.plan import CommandOptions, files_state
from delta_pyds.commands.row_changes.result import Place
from delta_pyds.commands.task_runner import LocalRunner
from delta_pyds.commands.write.request import WriteRequest
from delta_pyds.commands.write.write import commit_write, plan_write
from delta_pyds.log.committer import ProposedCommit
from delta_pyds.protocol.paths import commit_path
from delta_pyds.storage.local import LocalStorage
from delta_pyds.table.scan.scan import plan_scan
from delta_pyds.table.snapshot import load_snapshot, open_snapshot
from delta_pyds.tasks.write_state import TaskOutput
from tests.support.catalogs import NAME, CatalogTable, commit_lines
from tests.support.planned_changes import planned_delete
from tests.support.table_writes import struct, write_rows
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


@pytest.mark.parametrize("kind", ["delete", "replace"])
def test_the_second_pass_of_a_command_gets_new_ones(
    catalog: Vending, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Credentials that the command was planned with may have expired while rows were found."""
    monkeypatch.setattr("delta_pyds.catalog.named._connect", lambda _: catalog)
    forget_catalogs()
    address = locate(table=NAME, catalog="vending")
    columns, options = {"id": "long", "p": "string"}, address.storage_options
    write_rows(address.table_root, columns, [{"id": i, "p": "x"} for i in range(4)], storage_options=options)
    catalog.minutes = 1  # so that each caller is given new ones
    passes: list[tuple[str, int, set[str]]] = []

    class Runner(LocalRunner):
        def run(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> list[Any]:
            given = {task.scan.storage_options["token"] for task in tasks}
            given |= {task.write.storage_options["token"] for task in tasks if hasattr(task, "write")}
            passes.append((function.__name__, catalog.asked, given))
            return super().run(function, tasks)

    snapshot = load_snapshot(table=NAME, catalog="vending")
    if kind == "delete":
        run_delete(planned_delete(snapshot, "id = 1", CommandOptions(options)), Place("process", "a test"), Runner())
    else:
        request = WriteRequest(
            address.table_root, struct(columns), "overwrite", replace_where="id = 1", storage_options=options
        )
        plan = plan_write(request)
        commit_write(plan, [TaskOutput()], runner=Runner())
    (first, asked, _), (second, _, tokens) = passes
    assert (first, second) == ("find_rows", "rewrite_files")
    assert all(int(token.removeprefix("token-")) > asked for token in tokens)
    found = delta_pyds.scan(table=NAME, catalog="vending").to_table().column("id").to_pylist()
    assert sorted(found) == [0, 2, 3]
    forget_catalogs()


def test_a_store_is_of_the_process_that_opened_it(catalog: Vending, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fork keeps the object, and must not use what its parent has open."""
    opened = Opened(catalog)
    parents = opened.storage.store
    assert opened.storage.store is parents
    parent = os.getpid()
    monkeypatch.setattr("os.getpid", lambda: parent + 1)
    assert opened.storage.store is not parents and len(opened.with_options) == 2


def test_an_answer_to_a_proposal_need_not_hold_them(catalog: Vending) -> None:
    """Unity Catalog hands them out by a call of its own: what is held stays, and the commit is published."""

    class Apart(Vending):
        def propose_commit(self, proposal: CommitProposal) -> CommitOutcome:
            outcome = super().propose_commit(proposal)
            return Ratified(DictCatalog.load_table(self, NAME)) if isinstance(outcome, Ratified) else outcome

    catalog.__class__ = Apart
    opened = Opened(catalog)
    storage = opened.storage
    data = commit_lines(1, "a", txn_id="mine")
    assert CatalogCommitter(storage).propose(ProposedCommit(1, data, "mine", 1_001))
    assert {} not in opened.with_options
    assert storage.store.read(commit_path(storage.table_root, 1)) == data


def test_each_batch_of_a_stream_gets_new_ones(catalog: Vending, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query lasts longer than what it was started with."""
    from pyspark.sql.types import LongType, StringType, StructType

    from delta_pyds.spark.source.datasource import DeltaDataSource
    from delta_pyds.spark.source.stream_reader import DeltaStreamReader, StreamPartition

    monkeypatch.setattr("delta_pyds.catalog.named._connect", lambda _: catalog)
    forget_catalogs()
    CatalogTable(catalog).append("a")
    schema = StructType().add("id", LongType()).add("p", StringType())
    reader = DeltaDataSource({"table": NAME, "catalog": "vending"}).streamReader(schema)
    assert isinstance(reader, DeltaStreamReader)
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    tokens = []
    for minutes in (60, 60, 1, 1):
        catalog.minutes = minutes
        (partition,) = reader.partitions(start, end)
        assert isinstance(partition, StreamPartition)
        tokens.append(pickle.loads(partition.task).state.storage_options["token"])
        if minutes == 1:
            # what is held expires soon, so that each batch asks again
            assert reader._opened.storage.latest() is not None  # type: ignore[attr-defined]
    assert tokens[0] == tokens[1] == tokens[2] != tokens[3]
    forget_catalogs()
