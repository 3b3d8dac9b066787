"""The findings of ``verify`` on change data files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_pyds import verify
from tests.support.table_builder import TableBuilder


def _table(path: Path, change_types: pa.Array) -> Path:
    """A table whose version 1 has a change data file with these types of change."""
    table = TableBuilder(path, {"id": "long"}, [], {"delta.enableChangeDataFeed": "true"})
    table.create()
    table.append([{"id": 1}])
    file = path / "_change_data" / "cdc-0.parquet"
    file.parent.mkdir()
    pq.write_table(pa.table({"id": pa.array(range(len(change_types)), pa.int64()), "_change_type": change_types}), file)
    cdc = {"path": "_change_data/cdc-0.parquet", "partitionValues": {}, "size": file.stat().st_size}
    table.commit([{"cdc": {**cdc, "dataChange": False}}])
    return file


def _found(path: Path) -> list[tuple[str, str]]:
    return [(f.severity, f.rule) for f in verify(str(path)).findings if f.rule.startswith("cdc.")]


def test_known_types_of_change_are_in_order(tmp_path: Path) -> None:
    _table(tmp_path, pa.array(["insert", "delete", "update_preimage", "update_postimage"]))
    assert _found(tmp_path) == []


def test_unknown_type_of_change_is_a_warning_that_names_it(tmp_path: Path) -> None:
    _table(tmp_path, pa.array(["insert", "upsert"]))
    assert _found(tmp_path) == [("warning", "cdc.change-type")]
    assert "'upsert'" in str(verify(str(tmp_path))) and "cdc-0.parquet" in str(verify(str(tmp_path)))


@pytest.mark.parametrize("damage", ["null", "cut"])
def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path, damage: str) -> None:
    file = _table(tmp_path, pa.array(["insert", None if damage == "null" else "delete"]))
    if damage == "cut":
        file.write_bytes(file.read_bytes()[:100])
    assert _found(tmp_path) == [("error", "cdc.unreadable")]


def test_a_file_that_was_vacuumed_is_no_finding(tmp_path: Path) -> None:
    _table(tmp_path, pa.array(["upsert"])).unlink()
    assert _found(tmp_path) == []
