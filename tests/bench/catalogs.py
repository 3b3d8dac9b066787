"""What a catalog costs: (q) appends through SQLite, and opening a table whose commits are not published."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable
from pathlib import Path

from delta_pyds.catalog import CommitProposal, NewTable, Ratified
from delta_pyds.catalog.address import TableAddress, locate, reserve
from delta_pyds.catalog.sqlite import SqliteCatalog
from delta_pyds.table.scan.scan import plan_scan
from delta_pyds.table.snapshot import load_snapshot
from tests.bench.measure import Line, in_turn, ratio_line, say
from tests.bench.settings import Settings
from tests.support.table_writes import struct, write_rows

NAME = "main.db.t"
WAITING = 100
ROW = [{"id": 1}]


def through_sqlite(settings: Settings) -> list[Line]:
    """(q): an append of one row through SQLite and at a path; 100 commits that wait beside the same ones published."""
    say("(q) appends through SQLite")
    home = settings.data / "catalogs"
    shutil.rmtree(home, ignore_errors=True)
    sides = {"sqlite": _appends(settings, home, managed=True), "path": _appends(settings, home, managed=False)}
    took = in_turn(sides, settings.rounds)
    what = f"{settings.write_commits} appends of one row through SQLite, vs at a path"
    lines = [ratio_line("q", what, took["sqlite"], took["path"], 1.3)]

    say(f"(q) a table with {WAITING} commits that are not published")
    published = _published_table(home / "published")
    tables = {
        "published": published,
        "staged": _waiting_table(published, home / "staged", inline=False),
        "inline": _waiting_table(published, home / "inline", inline=True),
    }
    opened = in_turn({name: _open(address) for name, address in tables.items()}, settings.short_rounds, most=100)
    for name in ("staged", "inline"):
        what = f"open and plan a table with {WAITING} commits {name}, vs all published"
        lines.append(ratio_line("q", what, opened[name], opened["published"], 1.2))
    return lines


def _appends(settings: Settings, home: Path, *, managed: bool) -> Callable[[], None]:
    schema = struct({"id": "long"})

    def run() -> None:
        place = home / uuid.uuid4().hex
        address = TableAddress(str(place))
        if managed:
            catalog = f"sqlite://{place}.db"
            made = reserve(NAME, catalog)
            write_rows(made.table_root, schema, ROW, storage_options=made.storage_options)
            address = locate(table=NAME, catalog=catalog)
        else:
            write_rows(place, schema, ROW)
        for _ in range(settings.write_commits):
            write_rows(address.table_root, schema, ROW, storage_options=address.storage_options)

    return run


def _published_table(home: Path) -> TableAddress:
    catalog = f"sqlite://{home}/c.db"
    made = reserve(NAME, catalog)
    # without a checkpoint, which only published commits can have
    properties = {"delta.checkpointInterval": "1000"}
    schema = struct({"id": "long"})
    write_rows(made.table_root, schema, ROW, storage_options=made.storage_options, properties=properties)
    address = locate(table=NAME, catalog=catalog)
    for _ in range(WAITING):
        write_rows(address.table_root, schema, ROW, storage_options=address.storage_options)
    return address


def _waiting_table(published: TableAddress, home: Path, *, inline: bool) -> TableAddress:
    """The same table, of which a catalog stores all commits but the first, and the log has none of them."""
    root = home / "table"
    shutil.copytree(published.table_root, root)
    log = root / "_delta_log"
    for file in (*log.glob("*.crc"), *log.glob("_staged_commits/*")):
        file.unlink()
    snapshot = load_snapshot(published.table_root, version=0, storage_options=published.storage_options)
    catalog = SqliteCatalog(str(home / "c.db"), max_unpublished=2 * WAITING, max_inline_bytes=1 << 20)
    table_id = catalog.reserve_table(NAME).table_id
    catalog.register_table(NewTable(NAME, table_id, str(root), 1, snapshot.protocol, snapshot.metadata))
    (log / "_staged_commits").mkdir(exist_ok=True)
    for version in range(1, WAITING + 1):
        file = log / f"{version:020d}.json"
        data = file.read_bytes()
        staged = f"{version:020d}.{uuid.uuid4()}.json"
        given = {"content": data} if inline else {"file_name": staged}
        one = CommitProposal(NAME, table_id, version, version, staged, size_bytes=len(data), **given)
        assert isinstance(catalog.propose_commit(one), Ratified)
        if inline:
            file.unlink()
        else:
            file.rename(log / "_staged_commits" / staged)
    return locate(table=NAME, catalog=f"sqlite://{home}/c.db")


def _open(address: TableAddress) -> Callable[[], None]:
    def run() -> None:
        snapshot = load_snapshot(address.table_root, storage_options=address.storage_options)
        assert plan_scan(snapshot).explain().num_files == WAITING + 1

    return run
