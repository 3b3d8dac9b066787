"""What a table of many columns costs: a number of calls for each column, and none for each pair of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.calls import count_calls
from tests.support.table_writes import read_rows, write_rows

FEW, MANY = 500, 2_000


def calls_to_write_and_read(path: Path, columns: int) -> int:
    """The calls of Python and C functions to make a table, append to it and read a part of it."""
    schema = {f"c{i}": "long" for i in range(columns)}
    row = dict.fromkeys(schema, 1)
    found: list[dict[str, Any]] = []

    def work() -> None:
        for _ in range(2):
            write_rows(path, schema, [row])
        found.extend(read_rows(path, where=f"c{columns - 1} = 1 AND c0 < 2"))

    calls = count_calls(work)
    assert found == [row, row]
    return calls


def test_nothing_grows_faster_than_the_number_of_columns(tmp_path: Path) -> None:
    calls_to_write_and_read(tmp_path / "first", 2)  # imports, and what is made once for a process
    few = calls_to_write_and_read(tmp_path / "few", FEW)
    many = calls_to_write_and_read(tmp_path / "many", MANY)
    assert many <= 5 * few, f"{few:,} calls for {FEW} columns, {many:,} for {MANY}"
    assert few > FEW  # it counts
