"""A table that is deleted with all its files."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_pyds.catalog.address import reserve
from delta_pyds.catalog.named import forget_catalogs
from delta_pyds.commands.maintenance.removal import check_removable, remove_table
from delta_pyds.errors import TableNotFoundError, UnsupportedFeatureError, UnsupportedOperationError
from delta_pyds.storage.local import LocalStorage
from delta_pyds.table.snapshot import load_snapshot
from tests.support.table_writes import read_rows, write_rows

ID = {"id": "long"}


def test_all_of_a_table_goes_and_nothing_else(tmp_path: Path) -> None:
    beside = tmp_path / "beside.csv"
    beside.write_text("x")
    write_rows(tmp_path / "t", {"id": "long", "p": "long"}, [{"id": 1, "p": 2}], partition_by=(("p",),))
    (tmp_path / "t" / "link").symlink_to(tmp_path)
    remove_table(LocalStorage(), str(tmp_path / "t"))
    assert [path.name for path in tmp_path.iterdir()] == ["beside.csv"]


def test_another_table_below_is_not_deleted(tmp_path: Path) -> None:
    write_rows(tmp_path / "t", ID, [{"id": 1}])
    write_rows(tmp_path / "t" / "a" / "b", ID, [{"id": 2}])
    with pytest.raises(UnsupportedOperationError, match=r"another table lies at .*a/b"):
        remove_table(LocalStorage(), str(tmp_path / "t"))
    assert read_rows(tmp_path / "t") == [{"id": 1}] and read_rows(tmp_path / "t" / "a" / "b") == [{"id": 2}]


def test_a_catalogs_table_is_not_deleted_by_its_path(tmp_path: Path) -> None:
    address = reserve("main.t", f"sqlite://{tmp_path}/c.db")
    write_rows(address.table_root, ID, [{"id": 1}], storage_options=address.storage_options)
    with pytest.raises(UnsupportedFeatureError, match=r"managed by a catalog.*'main\.t'"):
        remove_table(LocalStorage(), address.table_root)
    forget_catalogs()
    assert load_snapshot(table="main.t", catalog=f"sqlite://{tmp_path}/c.db").version == 0


def test_a_damaged_table_may_go(tmp_path: Path) -> None:
    write_rows(tmp_path / "t", ID, [{"id": 1}])
    (tmp_path / "t" / "_delta_log" / f"{0:020d}.json").write_text("{")
    remove_table(LocalStorage(), str(tmp_path / "t"))
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_table_stays(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "x.csv").write_text("x")
    with pytest.raises(TableNotFoundError):
        remove_table(LocalStorage(), str(tmp_path / "t"))
    assert (tmp_path / "t" / "x.csv").exists()
    with pytest.raises(UnsupportedOperationError, match="the root of a file system"):
        check_removable(LocalStorage(), "/")
