"""Where a table is, by a path that may be one of a directory in it."""

from __future__ import annotations

from pathlib import Path

from delta_pyds.spark.table_commands.identifiers import partition_of_table
from tests.support.table_builder import TableBuilder


def test_a_directory_of_a_partition_is_known_by_the_table_above_it(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "a=1" / "t", {"id": "long", "day": "string", "h i": "string"})
    table.create()
    root = str(table.path)

    assert partition_of_table(f"{root}/day=2026/h%20i=1%3A2%3D", {}) == (root, {"day": "2026", "h i": "1:2="})
    for other in (root, f"{root}/x", f"{root}/x/day=2026", f"{tmp_path}/a=1", f"{tmp_path}/nothing/day=1"):
        assert partition_of_table(other, {}) is None
