"""The catalog-managed tables among the reference's, read through a catalog that was told of their staged commits.

    python -m tests.conformance.managed ../shared/golden

For each list of staged commits that the set has: a copy of the table is registered in an SQLite catalog, which ratifies
these commits and no others that lie beside them. The table then reads as the set says, and so do its older versions;
the same once the commits are published. By its path it is refused. Exit status: 0 if all of it is so.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import delta_pyds
from delta_pyds.catalog import CommitProposal, NewTable, Ratified
from delta_pyds.catalog.address import locate
from delta_pyds.catalog.committer import CatalogCommitter
from delta_pyds.catalog.managed_storage import CatalogStorage
from delta_pyds.catalog.named import forget_catalogs
from delta_pyds.catalog.opening import table_storage
from delta_pyds.catalog.sqlite import SqliteCatalog
from delta_pyds.errors import UnsupportedFeatureError
from delta_pyds.log.commit_reader import decode_commit

NAME = "main.db.t"
ID = "12345678-1234-1234-1234-123456789abc"


def main(golden: Path) -> int:
    tables = [table for table in json.loads((golden / "expected.json").read_text())["tables"] if table.get("staged")]
    failed = []
    passed = 0
    for table in tables:
        for staged in table["staged"]:
            with tempfile.TemporaryDirectory() as scratch:
                try:
                    _check(golden, table, staged, Path(scratch))
                    passed += 1
                except Exception as error:
                    failed.append(f"{table['name']}, {staged['version']}: {type(error).__name__}: {error}")
                forget_catalogs()
    print("\n".join(failed) or f"Read through a catalog: {', '.join(table['name'] for table in tables)}.")
    print(f"{passed} passed, {len(failed)} failed")
    # a set without any such table shows nothing
    return 1 if failed or not passed else 0


def _check(golden: Path, table: dict[str, Any], staged: dict[str, Any], scratch: Path) -> None:
    root = shutil.copytree(golden / table["path"], scratch / "table")
    catalog = SqliteCatalog(str(scratch / "c.db"))
    url = f"sqlite://{scratch}/c.db"
    _register(catalog, root, staged["commits"], first=staged["version"] - len(staged["commits"]) + 1)
    try:
        delta_pyds.scan(root)
        raise AssertionError("it was read by its path")
    except UnsupportedFeatureError:
        pass
    for published in (False, True):
        if published:
            address = locate(table=NAME, catalog=url)
            storage = table_storage(address.table_root, address.storage_options)
            assert isinstance(storage, CatalogStorage)
            assert CatalogCommitter(storage).publish(staged["version"]), "its commits were not published"
            assert catalog.load_table(NAME).unpublished == ()
        snapshot = delta_pyds.load_snapshot(table=NAME, catalog=url)
        assert snapshot.version == staged["version"], f"version {snapshot.version}"
        _same(delta_pyds.scan(table=NAME, catalog=url).to_table(), golden / staged["rows"])
        for older in table["expectations"]:
            if older["version"] is not None:
                found = delta_pyds.scan(table=NAME, catalog=url, version=older["version"]).to_table()
                _same(found, golden / older["rows"])


def _register(catalog: SqliteCatalog, root: Path, commits: list[str], *, first: int) -> None:
    log = root / "_delta_log"
    actions = decode_commit((log / f"{0:020d}.json").read_bytes(), "version 0")
    (protocol,) = [action.protocol for action in actions if action.protocol is not None]
    (metadata,) = [action.meta_data for action in actions if action.meta_data is not None]
    catalog.reserve_table(NAME)
    assert isinstance(catalog.register_table(NewTable(NAME, ID, str(root), 1, protocol, metadata)), Ratified)
    names = [f"{version:020d}.json" for version in range(1, first)]
    for version, name in enumerate([*names, *commits], start=1):
        path = log / name if version < first else log / "_staged_commits" / name
        given = {"content": path.read_bytes()} if version < first else {"file_name": name}
        one = CommitProposal(NAME, ID, version, version, name, size_bytes=path.stat().st_size, **given)
        assert isinstance(catalog.propose_commit(one), Ratified), name
        if version < first:
            catalog.report_published(NAME, ID, version)


def _same(found: pa.Table, expected: Path) -> None:
    wanted = pq.read_table(expected)
    assert found.column_names == wanted.column_names, f"columns {found.column_names}"
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, wanted.to_pylist())), f"not the rows of {expected}"


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
