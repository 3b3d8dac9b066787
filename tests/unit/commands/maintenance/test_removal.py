"""A table that is deleted with all its files."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_pyds.commands.maintenance.removal import check_removable, remove_table
from delta_pyds.errors import TableNotFoundError, UnsupportedOperationError
from delta_pyds.storage.local import LocalStorage
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


def test_what_is_no_table_stays(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "x.csv").write_text("x")
    with pytest.raises(TableNotFoundError):
        remove_table(LocalStorage(), str(tmp_path / "t"))
    assert (tmp_path / "t" / "x.csv").exists()
    with pytest.raises(UnsupportedOperationError, match="whole file system"):
        check_removable(LocalStorage(), "/")
