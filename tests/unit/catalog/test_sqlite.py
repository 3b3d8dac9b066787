"""SQLite's own rules: locks that last, processes, files that are not a catalog."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sqlite3
import threading
from pathlib import Path

import pytest

from delta_pyds.catalog import NewTable, Ratified, Refused
from delta_pyds.catalog.sqlite import SqliteCatalog
from delta_pyds.catalog.sqlite_file import remote_disk
from delta_pyds.errors import CatalogError, DeltaError, NothingWrittenError, OptionError
from delta_pyds.table.snapshot import open_snapshot
from tests.support.catalogs import METADATA, NAME, PROTOCOL, CatalogTable, proposal, registered
from tests.support.transactions import QUIET, WRITE, Table
from tests.support.transactions import file as file_of


def test_a_lock_that_another_process_holds(tmp_path: Path) -> None:
    """A writer is told that nothing was written; a reader does not wait."""
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
        patch.setattr("delta_pyds.catalog.sql._ratify", lambda run, _: modes.append(run("PRAGMA synchronous")[0][0]))
        modes: list[int] = []
        catalog.propose_commit(proposal(table, 1))
        # FULL, although the last that was tried before was a report, which may be lost
        assert modes == [2]
    assert isinstance(catalog.propose_commit(proposal(table, 1)), Ratified)
    other.close()


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
    with pytest.raises(OptionError, match="is not the name of a table"):
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


def test_a_thread_of_the_parent_ends_after_a_fork(tmp_path: Path) -> None:
    """SQLite would take away the log that the child writes to, had the child inherited anything of the parent's."""
    catalog = SqliteCatalog(str(tmp_path / "c.db"))
    table = CatalogTable(catalog)
    started, ends, context = threading.Event(), threading.Event(), multiprocessing.get_context("fork")

    def of_parent() -> None:
        table.create()
        started.set()
        ends.wait()

    thread = threading.Thread(target=of_parent)
    thread.start()
    started.wait()
    first, goes_on = context.Event(), context.Event()

    def of_child() -> None:
        table.append("child 1")
        first.set()
        goes_on.wait()
        table.append("child 2")

    process = context.Process(target=of_child)
    process.start()
    assert first.wait(60)
    ends.set()
    thread.join()
    gc.collect()
    table.append("parent")
    goes_on.set()
    process.join()
    assert process.exitcode == 0
    assert table.append("parent again").version == 4
    assert table.files() == ["child 1", "child 2", "parent", "parent again"]


def test_a_fork_while_another_thread_writes(tmp_path: Path) -> None:
    """It waits for the thread: the child would believe for ever that a lock is held."""
    catalog = SqliteCatalog(str(tmp_path / "c.db"), wait_s=5.0)
    table = registered(catalog)
    writes, ends = threading.Event(), threading.Event()

    def of_thread() -> None:
        with catalog._writing():
            writes.set()
            ends.wait()

    thread = threading.Thread(target=of_thread)
    thread.start()
    writes.wait()
    timer = threading.Timer(0.05, ends.set)
    timer.start()
    process = multiprocessing.get_context("fork").Process(target=catalog.propose_commit, args=(proposal(table, 1),))
    process.start()
    process.join()
    thread.join()
    assert process.exitcode == 0
    assert catalog.load_table(NAME).latest_version == 1


def test_a_signal_handler_that_forks_amid_an_operation(tmp_path: Path) -> None:
    catalog = SqliteCatalog(str(tmp_path / "c.db"))
    registered(catalog)
    outcomes: list[int] = []

    def handler(*_: object) -> None:
        child = os.fork()
        if child == 0:
            try:
                catalog.load_table(NAME)
            except CatalogError:
                os._exit(7)
            os._exit(0)
        outcomes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with catalog._writing():
            signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert outcomes == [7]
    assert catalog.load_table(NAME).latest_version == 0


def test_a_file_that_is_replaced_is_opened_anew(tmp_path: Path) -> None:
    """As after a restore from a backup: nobody goes on with the file that has no name any more."""
    catalog = SqliteCatalog(str(tmp_path / "c.db"))
    table = registered(catalog)
    SqliteCatalog(str(tmp_path / "other.db")).reserve_table("x")
    assert isinstance(catalog.propose_commit(proposal(table, 1)), Ratified)
    for path in tmp_path.glob("c.db*"):
        path.unlink()
    (tmp_path / "other.db").rename(tmp_path / "c.db")
    assert catalog.propose_commit(proposal(table, 2)) == Refused(
        f"the catalog no longer has a table {NAME} with the id {table.table_id}: it was dropped, renamed or replaced"
    )


@pytest.mark.parametrize(
    ("kind", "point", "refused"),
    [
        ("nfs4", "/", "nfs4"), ("cifs", "/mnt/a\\040b", "cifs"), ("fuse.s3fs", "/mnt", "fuse.s3fs"),
        ("fuse.fuse-overlayfs", "/mnt", None), ("9p", "/", None), ("9p", "/mnt", "9p"), ("ext4", "/mnt", None),
        ("nfs", "/mnt/a", None), ("overlay", "/mnt", None),
    ],
)  # fmt: skip
def test_disks_of_other_machines(tmp_path: Path, kind: str, point: str, refused: str | None) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"20 1 254:0 / / rw - ext4 /dev/a rw\nnot a line\n33 20 0:44 / {point} rw - {kind} x rw\n")
    assert remote_disk("/mnt/a b/c", str(mounts)) == refused
    assert remote_disk("/mnt", str(tmp_path / "none")) is None


def test_a_network_disk_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the file is a catalog already: another machine made it."""
    registered(SqliteCatalog(str(tmp_path / "c.db")))
    monkeypatch.setattr("delta_pyds.catalog.sqlite_file.remote_disk", lambda _: "nfs4")
    there = SqliteCatalog(str(tmp_path / "c.db"), wait_s=1.0)
    for call in (lambda: there.load_table(NAME), lambda: there.reserve_table("new")):
        with pytest.raises(CatalogError, match="of the kind nfs4: locks between two machines do not work there"):
            call()
    with pytest.raises(NothingWrittenError, match="nfs4"):
        there.report_published(NAME, "id", 1)


def test_the_spelling_with_four_slashes(tmp_path: Path) -> None:
    catalog = SqliteCatalog.at(f"sqlite:///{tmp_path}/c.db")
    assert catalog.load_table(registered(catalog).name).latest_version == 0
    assert SqliteCatalog.at(f"sqlite://{tmp_path}/c.db").load_table(NAME).latest_version == 0


def test_a_wrong_address_is_shown_without_its_parameters() -> None:
    with pytest.raises(OptionError) as error:
        SqliteCatalog.at("sqlite:///data/c.db?pw=abc123secret")
    assert "abc123secret" not in str(error.value)


# --- values of another type, which SQLite keeps as they are


def mistyped(file: str, table: str, column: str, value: object) -> None:
    """As a person who changes the file by hand may leave it."""
    with sqlite3.connect(file) as other:
        other.execute(f"ALTER TABLE {table} RENAME TO before")
        other.execute(f"CREATE TABLE {table} AS SELECT * FROM before")
        other.execute("DROP TABLE before")
        other.execute(f"UPDATE {table} SET {column} = ?", (value,))
    other.close()


BLOB = b"\x00\xff"
NO_NUMBERS, NO_TEXTS = ("many", BLOB, None), (BLOB, None)


@pytest.mark.parametrize("column", ["location", "name", "table_id", "latest"])
@pytest.mark.parametrize("value", NO_TEXTS, ids=["blob", "null"])
def test_mistyped_values_of_a_table(tmp_path: Path, column: str, value: object) -> None:
    file = str(tmp_path / "c.db")
    catalog = SqliteCatalog(file)
    registered(catalog)
    mistyped(file, "delta_tables", column, value)
    with pytest.raises(CatalogError, match=rf"delta_tables has .* in the column {column}") as error:
        catalog.load_table(NAME)
    assert file in error.value.message


@pytest.mark.parametrize("column", ["latest", "published"])
@pytest.mark.parametrize("value", [*NO_NUMBERS, 1.5], ids=["text", "blob", "null", "real"])
def test_mistyped_versions(tmp_path: Path, column: str, value: object) -> None:
    """Whoever writes is told that nothing was."""
    file = str(tmp_path / "c.db")
    catalog = SqliteCatalog(file)
    table = CatalogTable(catalog)
    table.create()
    known, storage = catalog.load_table(NAME), table.storage()
    snapshot = open_snapshot(storage, storage.table_root)
    mistyped(file, "delta_tables", column, value)
    with pytest.raises(NothingWrittenError, match=f"the column {column}"):
        catalog.propose_commit(proposal(known, 1))
    with pytest.raises(NothingWrittenError, match=f"the column {column}"):
        catalog.report_published(NAME, known.table_id, 0) if column == "published" else catalog.register_table(
            NewTable(NAME, known.table_id, "/t", 1, PROTOCOL, METADATA)
        )
    transaction = Table(storage, storage.table_root).start(snapshot)
    transaction.add(file_of("a"))
    with pytest.raises(NothingWrittenError, match=f"the column {column}"):
        transaction.commit(WRITE, policy=QUIET)
    assert [path.stem for path in Path(storage.table_root).rglob("*.json")] == [f"{0:020d}"]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        *((column, value) for column in ("version", "timestamp_ms", "size_bytes") for value in NO_NUMBERS),
        ("file_name", BLOB),
        ("content", "text"),
    ],
)
def test_mistyped_values_of_a_commit(tmp_path: Path, column: str, value: object) -> None:
    file = str(tmp_path / "c.db")
    catalog = SqliteCatalog(file)
    catalog.propose_commit(proposal(registered(catalog), 1))
    mistyped(file, "delta_commits", column, value)
    with pytest.raises(CatalogError, match=rf"delta_commits has .* in the column {column}"):
        catalog.load_table(NAME)
