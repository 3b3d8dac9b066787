"""Many writers of one table of a catalog, and writers that are killed: nothing lost, nothing doubled."""

from __future__ import annotations

import copy
import json
import multiprocessing
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Any

import pytest

import delta_pyds
from delta_pyds.catalog.address import locate, reserve
from delta_pyds.catalog.named import forget_catalogs, open_catalog
from tests.concurrency.killed_commit import IDS, run
from tests.concurrency.killed_process import steps_of
from tests.concurrency.test_writers import WRITERS, reports_of_processes
from tests.concurrency.workload import create, replay
from tests.support.postgresql_server import URL, empty_database
from tests.support.sampling import exhaustive, sampled
from tests.support.table_writes import write_rows
from tests.support.unity_server import UnityServer

COMMITS = 50 if exhaustive() else 4
NAME = "main.db.t"


KINDS = ["postgresql"] if URL in os.environ else ["inline", "staged", "unity"]  # make test-postgresql: the first


class Place:
    """A catalog that other processes find by the name ``catalog`` in their environment, with the files of its tables
    in ``home``. It can be put back as it was.
    """

    catalog = "race"

    def __init__(self, home: Path) -> None:
        self.home = home

    def keep(self) -> None:
        shutil.copytree(self.home, f"{self.home}-kept")

    def put_back(self) -> None:
        forget_catalogs()
        shutil.rmtree(self.home)
        shutil.copytree(f"{self.home}-kept", self.home)


class PostgresqlPlace(Place):
    def __init__(self, home: Path, url: str) -> None:
        super().__init__(home)
        self.url = url
        self.kept: dict[str, list[tuple[Any, ...]]] = {}

    def _connection(self) -> Any:
        import psycopg

        return psycopg.connect(self.url)

    def keep(self) -> None:
        super().keep()
        with self._connection() as connection:
            for table in ("delta_tables", "delta_commits"):
                self.kept[table] = connection.execute(f"SELECT * FROM {table}").fetchall()

    def put_back(self) -> None:
        super().put_back()
        with self._connection() as connection:
            for table, rows in self.kept.items():
                connection.execute(f"DELETE FROM {table}")
                for row in rows:
                    connection.execute(f"INSERT INTO {table} VALUES ({', '.join(['%s'] * len(row))})", row)


class UnityPlace(Place):
    """The server is a thread of this process: see ``tests.support.unity_server``, which is not the real one."""

    def __init__(self, home: Path, server: UnityServer) -> None:
        super().__init__(home)
        self.server = server

    def keep(self) -> None:
        super().keep()
        self.kept = copy.deepcopy((self.server.staging, self.server.tables))

    def put_back(self) -> None:
        super().put_back()
        self.server.staging, self.server.tables = copy.deepcopy(self.kept)


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    home = tmp_path / "home"
    home.mkdir()
    settings = {}
    with ExitStack() as until_the_end:
        made = Place(home)
        if request.param == "postgresql":
            url = empty_database()
            made, settings = PostgresqlPlace(home, url), {"URL": url, "ROOT": str(home)}
        elif request.param == "unity":
            server = until_the_end.enter_context(UnityServer(str(home)))
            made, settings = UnityPlace(home, server), {"URL": server.url}
        elif request.param == "inline":
            settings = {"URL": f"sqlite://{home}/c.db"}
        else:
            settings = {"FACTORY": "tests.support.catalogs:staging_sqlite", "FILE": f"{home}/c.db"}
        for key, value in settings.items():
            monkeypatch.setenv(f"DELTA_PYDS_CATALOG_RACE_{key}", value)
        forget_catalogs()
        yield made
        forget_catalogs()


def test_processes_that_commit_through_a_catalog(place: Place) -> None:
    catalog = place.catalog
    made = reserve(NAME, catalog)
    create(made.table_root, made.storage_options)
    address = locate(table=NAME, catalog=catalog)
    reports = reports_of_processes(address.table_root, COMMITS, json.dumps(address.storage_options))

    assert [text for report in reports for text in report.unexpected] == []
    committed = sorted(version for report in reports for version in report.committed)
    assert committed == list(range(1, WRITERS * COMMITS + 1)), "a commit was lost, or told of twice"
    log = Path(address.table_root, "_delta_log")
    infos = [
        json.loads((log / f"{version:020d}.json").read_text().splitlines()[0])["commitInfo"]
        for version in range(WRITERS * COMMITS + 1)
    ]
    done = [json.loads(info["userMetadata"]) for info in infos]
    assert len({d.get("row") for d in done}) == len({info["txnId"] for info in infos}) == len(done)
    rows = delta_pyds.scan(table=NAME, catalog=catalog).to_table().to_pylist()
    assert sorted((r["p"], r["id"]) for r in rows) == replay(done)
    times = [info["inCommitTimestamp"] for info in infos]
    assert times == sorted(set(times))
    known = open_catalog(catalog).load_table(NAME)
    assert (known.latest_version, known.unpublished) == (WRITERS * COMMITS, ())
    report = delta_pyds.verify(table=NAME, catalog=catalog)
    assert report.ok, str(report)


@pytest.fixture(scope="module")
def processes() -> Iterator[BaseContext]:
    """New processes that have imported all that a write needs, so that one takes milliseconds."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.concurrency.killed_commit", "tests.concurrency.preloaded"])
    yield context


def written(processes: BaseContext, catalog: str, kill_at: int) -> tuple[int | None, list[str]]:
    environment = {key: value for key, value in os.environ.items() if key.startswith("DELTA_PYDS_CATALOG")}
    return steps_of(processes, run, NAME, catalog, environment, kill_at)


def test_a_writer_killed_at_each_step(processes: BaseContext, place: Place) -> None:
    """With a checkpoint after each commit, so that there is more to be killed in."""
    catalog = place.catalog
    made = reserve(NAME, catalog)
    properties = {"delta.checkpointInterval": "1"}
    rows = [{"id": 1}, {"id": 2}]
    write_rows(made.table_root, IDS, rows, storage_options=made.storage_options, properties=properties)
    forget_catalogs()
    place.keep()

    def ids() -> list[int]:
        found = delta_pyds.scan(table=NAME, catalog=catalog).to_table().column("id").to_pylist()
        return sorted(found)

    exit_code, steps = written(processes, catalog, 0)
    assert exit_code == 0 and len(steps) > 10
    forget_catalogs()
    assert ids() == [1, 2, 10, 11]
    outcomes = []
    for number, step in sampled(list(enumerate(steps, start=1)), one_in=3):
        place.put_back()
        exit_code, _ = written(processes, catalog, number)
        assert exit_code == -9, step
        found = ids()
        assert found in ([1, 2], [1, 2, 10, 11]), step
        outcomes.append(len(found) == 4)
        address = locate(table=NAME, catalog=catalog)
        write_rows(address.table_root, IDS, [{"id": 99}], storage_options=address.storage_options)
        assert ids() == sorted([*found, 99]), step
        assert open_catalog(catalog).load_table(NAME).unpublished == (), step
        report = delta_pyds.verify(table=NAME, catalog=catalog)
        assert report.ok, f"{step}\n{report}"
    # the version appears at one step, and never goes again
    assert outcomes == sorted(outcomes)
