"""What is PostgreSQL's own: locks that last, connections that end, an outcome that nobody knows.

``make test-postgresql`` runs the contract of all catalogs with it too.
"""

from __future__ import annotations

import multiprocessing
import os
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from delta_pyds.catalog import NewTable, Ratified, Refused
from delta_pyds.catalog.address import locate, reserve
from delta_pyds.catalog.named import forget_catalogs, open_catalog
from delta_pyds.catalog.postgresql import PostgresqlCatalog
from delta_pyds.errors import CatalogError, NothingWrittenError, OptionError, TableNotFoundError
from delta_pyds.table.snapshot import load_snapshot
from tests.support.catalogs import METADATA, NAME, PROTOCOL, CatalogTable, proposal, registered
from tests.support.postgresql_server import empty_database
from tests.support.table_writes import write_rows


@pytest.fixture
def url() -> str:
    return empty_database()


@pytest.fixture
def catalog(url: str, tmp_path: Any) -> PostgresqlCatalog:
    return PostgresqlCatalog(url, root=str(tmp_path / "tables"), wait_s=0.5)


def backends(url: str) -> list[int]:
    """The server's processes for connections of this library."""
    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT pid FROM pg_stat_activity WHERE application_name = 'delta_pyds'").fetchall()
    return [row[0] for row in rows]


def ended(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'delta_pyds'"
        )


def test_a_lock_that_another_transaction_holds(catalog: PostgresqlCatalog, url: str) -> None:
    """A writer is told that nothing was written; a reader does not wait."""
    table = registered(catalog)
    with psycopg.connect(url) as other:
        other.execute("SELECT * FROM delta_tables FOR UPDATE")
        for write in (
            lambda: catalog.propose_commit(proposal(table, 1)),
            lambda: catalog.report_published(NAME, table.table_id, 1),
        ):
            with pytest.raises(NothingWrittenError, match="lock"):
                write()
        assert catalog.load_table(NAME).latest_version == 0
    assert isinstance(catalog.propose_commit(proposal(table, 1)), Ratified)


def test_a_connection_that_the_server_ends_between_two_operations(catalog: PostgresqlCatalog, url: str) -> None:
    table = registered(catalog)
    ended(url)
    assert isinstance(catalog.propose_commit(proposal(table, 1)), Ratified)
    ended(url)
    assert catalog.load_table(NAME).latest_version == 1
    assert len(backends(url)) == 1


class Ending:
    """A connection whose server goes away right before or after a statement is sent."""

    def __init__(self, connection: Any, before: Callable[[str], None], after: Callable[[str], None]) -> None:
        self.connection, self.before, self.after = connection, before, after

    def __getattr__(self, name: str) -> Any:
        return getattr(self.connection, name)

    def execute(self, statement: str, *values: Any) -> Any:
        self.before(statement)
        return self.connection.execute(statement, *values)

    def commit(self) -> None:
        self.before("COMMIT")
        self.connection.commit()
        self.after("COMMIT")


@pytest.mark.parametrize(
    ("statement", "after", "latest"),
    [("INSERT INTO delta_commits", False, 0), ("COMMIT", False, 0), ("COMMIT", True, 1)],
)
def test_a_server_that_goes_away(
    catalog: PostgresqlCatalog, url: str, monkeypatch: pytest.MonkeyPatch, statement: str, after: bool, latest: int
) -> None:
    """Before COMMIT was sent nothing was changed. From then on nobody knows, and a writer asks again."""
    table = registered(catalog)
    real, done = catalog._begun, []

    def end(text: str) -> None:
        if text.startswith(statement) and not done:
            done.append(text)
            ended(url)
            if after:
                raise psycopg.OperationalError("the connection was lost")

    nothing = lambda _: None  # noqa: E731
    monkeypatch.setattr(
        catalog, "_begun", lambda verb: Ending(real(verb), nothing if after else end, end if after else nothing)
    )
    one = proposal(table, 1)
    with pytest.raises(NothingWrittenError if statement != "COMMIT" else CatalogError):
        catalog.propose_commit(one)
    monkeypatch.undo()
    assert done and catalog.load_table(NAME).latest_version == latest
    assert isinstance(catalog.propose_commit(one), Ratified)
    assert catalog.load_table(NAME).latest_version == 1


@pytest.mark.parametrize("after", [False, True])
def test_a_writer_whose_server_goes_away_at_the_end(
    catalog: PostgresqlCatalog, url: str, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    table = CatalogTable(catalog)
    table.create()
    real, done = catalog._begun, []

    def end(text: str) -> None:
        if text == "COMMIT" and not done and any("INSERT" in one for one in seen):
            done.append(text)
            ended(url)
            if after:
                raise psycopg.OperationalError("the connection was lost")

    seen: list[str] = []

    def begun(verb: str) -> Any:
        if after:
            return Ending(real(verb), seen.append, end)

        def before(text: str) -> None:
            seen.append(text)
            end(text)

        return Ending(real(verb), before, seen.append)

    monkeypatch.setattr(catalog, "_begun", begun)
    assert table.append("a").version == 1
    monkeypatch.undo()
    assert done and table.files() == ["a"] and table.published() == [0, 1]


def test_a_forked_process_has_connections_of_its_own(catalog: PostgresqlCatalog, url: str) -> None:
    table = CatalogTable(catalog)
    table.create()
    before = backends(url)
    process = multiprocessing.get_context("fork").Process(target=table.append, args=("theirs",))
    process.start()
    process.join()
    assert process.exitcode == 0
    assert backends(url) == before
    table.append("ours")
    assert table.files() == ["ours", "theirs"]


def test_a_server_that_is_not_there(tmp_path: Any) -> None:
    secret = "sesame-0123"
    catalog = PostgresqlCatalog(f"postgresql://etl:{secret}@/x?host={tmp_path}", password=secret, root=str(tmp_path))
    with pytest.raises(CatalogError, match="could not be read") as error:
        catalog.load_table(NAME)
    with pytest.raises(NothingWrittenError, match="could not be written"):
        catalog.register_table(NewTable(NAME, "id", "/t", 1, PROTOCOL, METADATA))
    assert secret not in "".join(traceback.format_exception(error.value)) + repr(catalog)


def test_a_database_that_is_no_catalog(catalog: PostgresqlCatalog) -> None:
    with pytest.raises(TableNotFoundError, match="is not a catalog"):
        catalog.load_table(NAME)
    catalog.reserve_table(NAME)
    with pytest.raises(TableNotFoundError, match=r"no table main\.db\.t"):
        catalog.load_table(NAME)


def test_who_may_not_create_tables_needs_not(catalog: PostgresqlCatalog, url: str) -> None:
    registered(catalog)
    with psycopg.connect(url) as connection:
        schema = connection.execute("SELECT current_schema()").fetchone()
        assert schema is not None
        connection.execute("DROP ROLE IF EXISTS writer")
        connection.execute("CREATE ROLE writer LOGIN")
        connection.execute(f'GRANT USAGE ON SCHEMA "{schema[0]}" TO writer')
        connection.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON delta_tables, delta_commits TO writer")
    writer = PostgresqlCatalog(url.replace("user=test", "user=writer"), root="/t")
    assert isinstance(writer.propose_commit(proposal(registered(writer, "b.t"), 1)), Ratified)
    with psycopg.connect(url) as connection:
        connection.execute("DROP OWNED BY writer")
        connection.execute("DROP ROLE writer")


def test_names_are_found_in_any_case(catalog: PostgresqlCatalog) -> None:
    table = registered(catalog, "Main.DB.Größe")
    assert catalog.load_table("main.db.Größe") == table
    with pytest.raises(TableNotFoundError):
        catalog.load_table("main.db.GRÖSSE")


def test_a_table_under_two_names(catalog: PostgresqlCatalog) -> None:
    table = registered(catalog)
    again = NewTable("other", table.table_id, table.location, 1, PROTOCOL, METADATA)
    assert isinstance(catalog.register_table(again), Refused)


@pytest.fixture
def named(url: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("DELTA_PYDS_CATALOG_PG_URL", url)
    monkeypatch.setenv("DELTA_PYDS_CATALOG_PG_ROOT", str(tmp_path / "tables"))
    monkeypatch.setenv("DELTA_PYDS_CATALOG_PG_PASSWORD", "not-needed")
    forget_catalogs()
    yield "pg"
    forget_catalogs()


def test_a_table_by_its_name(named: str) -> None:
    made = reserve(NAME, named)
    write_rows(made.table_root, {"id": "long"}, [{"id": 1}], storage_options=made.storage_options)
    there = locate(table=NAME, catalog=named)
    write_rows(there.table_root, {"id": "long"}, [{"id": 2}], storage_options=there.storage_options)
    snapshot = load_snapshot(table=NAME, catalog=named)
    assert (snapshot.version, snapshot.totals.num_files) == (1, 2)
    properties = snapshot.configuration.configuration
    assert str(properties["io.deltapyds.catalog"]).startswith("postgresql://")
    assert "user" not in str(properties["io.deltapyds.catalog"])


def test_new_tables_need_a_place(named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DELTA_PYDS_CATALOG_PG_ROOT")
    with pytest.raises(OptionError, match="_ROOT"):
        open_catalog(named).reserve_table(NAME)
    assert os.environ["DELTA_PYDS_CATALOG_PG_URL"]
