"""What a table of many columns costs: a number of calls for each column, and none for each pair of them."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

from tests.support.table_writes import read_rows, write_rows

FEW, MANY = 500, 2_000


def calls_to_write_and_read(path: Path, columns: int) -> int:
    """The calls of Python and C functions to make a table, append to it and read a part of it."""
    schema = {f"c{i}": "long" for i in range(columns)}
    row = dict.fromkeys(schema, 1)
    count = 0

    def counting(_frame: FrameType, event: str, _arg: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counting)
    try:
        for _ in range(2):
            write_rows(path, schema, [row])
        found = read_rows(path, where=f"c{columns - 1} = 1 AND c0 < 2")
    finally:
        sys.setprofile(None)
    assert found == [row, row]
    return count


def test_nothing_grows_faster_than_the_number_of_columns(tmp_path: Path) -> None:
    calls_to_write_and_read(tmp_path / "first", 2)  # imports, and what is made once for a process
    few = calls_to_write_and_read(tmp_path / "few", FEW)
    many = calls_to_write_and_read(tmp_path / "many", MANY)
    assert many <= 5 * few, f"{few:,} calls for {FEW} columns, {many:,} for {MANY}"
    assert few > FEW  # it counts
