"""What a table in a store costs in requests, counted on the wire: to open and plan it, to poll it, to commit to it, and
to read one column. The bounds hold for any number of commits before the checkpoint.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_pyds.commands.write.request import WriteRequest
from delta_pyds.commands.write.write import commit_write, plan_write
from delta_pyds.data.read.reader import read
from delta_pyds.data.write.task import write
from delta_pyds.data.write.task_session import TaskSession
from delta_pyds.errors import FileNotFoundInStorageError
from delta_pyds.spark.options.read import ReadOptions
from delta_pyds.spark.planning import driver
from delta_pyds.storage.resolve import resolve_storage
from delta_pyds.table.scan.scan import plan_scan
from delta_pyds.table.snapshot import load_snapshot
from delta_pyds.table.stream.commit_poller import CommitPoller
from tests.stores.requests_made import Request, requests_made
from tests.support.stores import Store
from tests.support.table_writes import batch_of, struct, write_rows

IDS = {"id": "long"}
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def table(store: Store) -> str:
    """Checkpoints at versions 5 and 10, and two commits after the last one."""
    root = store.root()
    options: dict[str, Any] = {"storage_options": store.options}
    write_rows(root, IDS, [{"id": 0}], properties={"delta.checkpointInterval": "5"}, **options)
    for number in range(1, 13):
        write_rows(root, IDS, [{"id": number}], **options)
    return root


def of(made: list[Request], ending: str) -> list[Request]:
    return [request for request in made if ending in request.url]


def test_to_open_and_plan(store: Store, table: str) -> None:
    program = (
        "import dataclasses, json\n"
        "from delta_pyds.table.scan.scan import plan_scan\n"
        "from delta_pyds.table.snapshot import load_snapshot\n"
        "from tests.stores.requests_made import requests_made\n"
        "with requests_made() as made:\n"
        f"    snapshot = load_snapshot({table!r})\n"
        "    files = list(plan_scan(snapshot).files())\n"
        "print(json.dumps([snapshot.version, len(files), [dataclasses.astuple(request) for request in made]]))\n"
    )
    # this process has seen the table before
    environment = {**os.environ, **store.environment}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, cwd=ROOT, stdout=subprocess.PIPE, check=True
    )
    version, files, told = json.loads(done.stdout)
    made = [Request(*request) for request in told]
    assert (version, files) == (12, 13)
    lists = [request for request in made if request.lists]
    assert len(lists) == 1
    # where the listing began
    assert store.name == "azure" or f"{10:020d}"[:-1] in lists[0].url
    assert len(of(made, "_last_checkpoint")) == 1
    assert len(of(made, ".checkpoint.")) == 1
    commits = [request for request in of(made, ".json") if not request.lists]
    assert len(commits) == 2  # those after the checkpoint
    assert len(made) == 1 + 1 + 1 + 2
    assert not any(request.changes for request in made)


def test_to_plan_an_equal_query_again(store: Store, table: str) -> None:
    options = ReadOptions(path=table, where="id = 3 OR id = 12", storage_options=store.options)

    def files() -> list[str]:
        return [file.path for file in driver.plan(driver.open_table(options), options).files()]

    first = files()
    with requests_made() as made:
        assert files() == first
    assert len(first) == 2
    # the checkpoint and the commits are known
    assert len(made) == 2 and all(request.lists or "_last_checkpoint" in request.url for request in made), made


def test_a_poll_that_finds_nothing(store: Store, table: str) -> None:
    poller = CommitPoller(resolve_storage(table, store.options), table)
    assert [commit.version for commit in poller.commits(12)] == [12]
    costs = []
    for _ in range(20):
        with requests_made() as made:
            assert list(poller.commits(13)) == []
        costs.append(len(made))
    # about one in ten looks by a listing
    assert sorted(costs)[:15] == [1] * 15 and max(costs) <= 3


def test_to_commit(store: Store) -> None:
    table = store.root()
    write_rows(table, IDS, [{"id": 0}], storage_options=store.options)
    incoming = struct(IDS)
    plan = plan_write(WriteRequest(table_root=table, incoming=incoming, mode="append", storage_options=store.options))
    assert plan.state is not None
    with requests_made() as made:
        output = write(plan.state, iter(batch_of([{"id": 1}], incoming)), TaskSession(0))
    # the file, and a look that it is there whole
    assert [request.changes for request in made] == [True, False]
    with requests_made() as made:
        assert commit_write(plan, [output]) is not None
    commit, checksum = f"{1:020d}.json", f"{1:020d}.crc"
    assert len([request for request in of(made, commit) if request.changes]) == 1
    assert len([request for request in of(made, checksum) if request.changes]) == 1
    # before the put: is the log still the one that was read? After it: the checksum of the version before
    assert len(made) - 2 <= 2, made


def test_to_delete_many(store: Store) -> None:
    root = store.root()
    paths = [f"{root}/p=a%20b/{number}.parquet" for number in range(100)]
    for path in paths:
        store.put(path, b"x")
    storage = resolve_storage(root, {**store.options, "use_listings_cache": False})  # of its own: it has asked nothing
    with requests_made() as made:
        assert storage.delete_all(paths, below=root) == {}
    if store.name == "azure":  # Azurite does not understand the batches of Azure's client: it is asked once
        assert len(made) == 1 + 100
        with requests_made() as made:
            assert storage.delete_all(paths, below=root) == {}
        assert len(made) == 100
    else:
        assert len(made) == 1
    with pytest.raises(FileNotFoundInStorageError):
        list(storage.list_directory(root))


def test_one_column_of_seven(store: Store) -> None:
    table = store.root()
    schema = struct({f"c{n}": "long" for n in range(7)})
    rows = 300_000
    # values that neither dictionary nor compression makes shorter
    columns = {
        f"c{n}": [(i * 6364136223846793005 + n * 1442695040888963407) % 2**62 for i in range(rows)] for n in range(7)
    }
    write_rows(table, schema, pa.table(columns), storage_options=store.options)
    scan = plan_scan(load_snapshot(table, storage_options=store.options), columns="c3", storage_options=store.options)
    [file] = scan.files()
    with requests_made() as made:
        found = sum(batch.num_rows for batch in read(scan.state, file))
    assert found == rows
    wanted = file.size_bytes / 7
    assert wanted <= sum(request.received for request in made) <= 1.1 * wanted
    assert [request.method for request in made] == ["GET", "GET"], made
