"""What is SQLite's own: locks that last, processes, files that are no catalog."""

from __future__ import annotations

import multiprocessing
import sqlite3
from pathlib import Path

import pytest

from delta_pyds.catalog import NewTable, Ratified
from delta_pyds.catalog.sqlite import SqliteCatalog
from delta_pyds.errors import CatalogError, DeltaError, NothingWrittenError, OptionError
from tests.support.catalogs import METADATA, NAME, PROTOCOL, CatalogTable, proposal, registered


def test_a_lock_that_another_process_holds(tmp_path: Path) -> None:
    """Who writes is told that nothing was; who reads does not wait."""
    file = str(tmp_path / "c.db")
    catalog = SqliteCatalog(file, wait_s=0.05)
    table = registered(catalog)
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    for write in (
        lambda: catalog.propose_commit(proposal(table, 1)),
        lambda: catalog.register_table(NewTable("other", "id", "/t", 1, PROTOCOL, METADATA)),
        lambda: catalog.report_published(NAME, table.table_id, 1),
    ):
        with pytest.raises(NothingWrittenError, match=r"another process has held its lock for 0\.05 s"):
            write()
    assert catalog.load_table(NAME).latest_version == 0
    other.execute("ROLLBACK")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("delta_pyds.catalog.sqlite._ratify", lambda connection, _: modes.append(_durability(connection)))
        modes: list[int] = []
        catalog.propose_commit(proposal(table, 1))
        # FULL, although the last that was tried before was a report, which may be lost
        assert modes == [2]
    assert isinstance(catalog.propose_commit(proposal(table, 1)), Ratified)
    other.close()


def _durability(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA synchronous").fetchone()[0])


def test_a_transaction_that_fails_leaves_nothing(tmp_path: Path) -> None:
    catalog = SqliteCatalog(str(tmp_path / "c.db"))
    table = registered(catalog)
    wrong = proposal(table, 1, size_bytes=None)
    with pytest.raises(CatalogError, match="could not be written"):
        catalog.propose_commit(wrong)
    assert catalog.load_table(NAME).latest_version == 0
    assert isinstance(catalog.propose_commit(proposal(table, 1)), Ratified)


def test_a_file_that_is_no_catalog(tmp_path: Path) -> None:
    file = tmp_path / "c.db"
    file.write_bytes(b"no database at all, but text" * 100)
    with pytest.raises(DeltaError, match=r"c\.db could not be") as error:
        SqliteCatalog(str(file)).load_table(NAME)
    assert "no database at all" not in str(error.value)


@pytest.mark.parametrize("name", ["", ".", "a..b", "a.b.c.d", "a/b", "x\n"])
def test_names_that_are_none(tmp_path: Path, name: str) -> None:
    with pytest.raises(OptionError, match="is no name of a table"):
        SqliteCatalog(str(tmp_path / "c.db")).reserve_table(name)


def test_names_are_found_in_any_case(tmp_path: Path) -> None:
    catalog = SqliteCatalog(str(tmp_path / "c.db"))
    table = registered(catalog, "Main.DB.Größe")
    assert catalog.load_table("main.db.Größe") == table


def test_where_tables_lie(tmp_path: Path) -> None:
    beside = SqliteCatalog.at(f"sqlite://{tmp_path}/c.db").reserve_table(NAME)
    assert beside.location == f"{tmp_path}/c-tables/{beside.table_id}"
    elsewhere = SqliteCatalog.at(f"sqlite://{tmp_path}/c.db?root=s3://bucket/tables/").reserve_table(NAME)
    assert elsewhere.location == f"s3://bucket/tables/{elsewhere.table_id}"


def test_a_forked_process_has_a_connection_of_its_own(tmp_path: Path) -> None:
    catalog = SqliteCatalog(str(tmp_path / "c.db"))
    table = CatalogTable(catalog)
    table.create()
    process = multiprocessing.get_context("fork").Process(target=table.append, args=("theirs",))
    process.start()
    process.join()
    assert process.exitcode == 0
    table.append("ours")
    assert table.files() == ["ours", "theirs"]
