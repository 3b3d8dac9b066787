"""Groups of compared files: what footers split, and what stays together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_pyds.data.read import related_files
from delta_pyds.table.change_feed.change_scan import ChangeScan
from tests.support.change_feed import change_rows, plan
from tests.support.table_builder import TableBuilder

_SCHEMA = {"id": "long", "name": "string"}


@pytest.fixture(autouse=True)
def _files_of_any_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(related_files, "_LEAST_BYTES", 0)
    monkeypatch.setattr(related_files, "_LEAST_FILE_BYTES", 0)


def _rows(*ids: int | None) -> list[dict[str, Any]]:
    return [{"id": number, "name": "n"} for number in ids]


def _rewritten(path: Path, *files: tuple[list[dict[str, Any]], list[dict[str, Any]]]) -> TableBuilder:
    """A table whose second commit replaces files by others."""
    table = TableBuilder(path, _SCHEMA)
    table.create()
    old = [table.write_file(before) for before, _ in files]
    table.commit(old)
    table.commit([*(table.remove(add) for add in old), *(table.write_file(after) for _, after in files if after)])
    return table


def _groups(scan: ChangeScan) -> list[list[str]]:
    """The change types of the files of each group; of the files that are not compared, those of each alone."""
    found: dict[Any, list[str]] = {}
    for batch in related_files.in_related_groups(scan.state, list(scan.batches())):
        at = scan.state.partition_columns.index("_change_type")
        kinds = batch.column(f"partition:{at}").to_pylist()
        for row, (one, kind) in enumerate(zip(batch.column("compared").to_pylist(), kinds, strict=True)):
            found.setdefault(("alone", row) if one is None else one["group"], []).append(kind)
    return sorted(map(sorted, found.values()))


def test_files_of_other_values_are_compared_apart(tmp_path: Path) -> None:
    _rewritten(tmp_path, (_rows(1, 2), _rows(1, 3)), (_rows(10, 12), _rows(10, 11)), (_rows(None, 20), _rows(None)))
    assert _groups(plan(tmp_path, 2)) == [["delete", "insert"]] * 3
    changed = [(row["id"], row["_change_type"]) for row in change_rows(tmp_path, 2)]
    assert sorted(changed) == [(2, "delete"), (3, "insert"), (11, "insert"), (12, "delete"), (20, "delete")]


def test_a_file_without_relation_is_not_compared(tmp_path: Path) -> None:
    _rewritten(tmp_path, (_rows(1, 2), _rows(1)), (_rows(10, 11), []))
    assert _groups(plan(tmp_path, 2)) == [["delete"], ["delete", "insert"]]


def test_files_of_the_same_values_stay_together(tmp_path: Path) -> None:
    _rewritten(tmp_path, (_rows(1, 20), _rows(1, 19)), (_rows(5, 10), _rows(5, 9)))
    assert _groups(plan(tmp_path, 2)) == [["delete", "delete", "insert", "insert"]]


def test_a_file_that_cannot_be_opened_is_left_to_the_task(tmp_path: Path) -> None:
    table = _rewritten(tmp_path, (_rows(1, 2), _rows(1, 3)), (_rows(10, 12), _rows(10, 11)))
    for file in table.path.glob("*.parquet"):
        file.write_bytes(b"damaged")
    assert len(_groups(plan(tmp_path, 2))) == 1


def test_short_files_are_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(related_files, "_LEAST_BYTES", 1 << 20)
    _rewritten(tmp_path, (_rows(1, 2), _rows(1, 3)), (_rows(10, 12), _rows(10, 11)))
    assert len(_groups(plan(tmp_path, 2))) == 1


def test_unknown_times_of_python_have_an_order() -> None:
    far = pa.array([2**62], pa.int64()).view(pa.timestamp("us", "UTC"))
    assert related_files._plain(far, 1) == [2**62]
