"""Partitions of floating point numbers: spelled as Spark spells them, and replaced however they are spelled."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_pyds.columnar.older_arrow import rows_with_dicts
from delta_pyds.log.adds import AddRequest
from delta_pyds.protocol.floating_text import to_float
from delta_pyds.table.snapshot import load_snapshot
from tests.support.table_builder import TableBuilder
from tests.support.table_writes import read_rows, write_rows


def partitions(path: Path) -> dict[str, str]:
    """The directory of each partition by its value as the log has it; it ends before the file's name."""
    found: dict[str, str] = {}
    for batch in load_snapshot(str(path)).adds(AddRequest(columns=("path", "partitionValues"))):
        for row in rows_with_dicts(batch.files):
            found[row["partitionValues"]["p"]] = row["path"].rpartition("/")[0]
    return found


@pytest.mark.parametrize("kind", ["double", "float"])
def test_log_and_directories_spell_them_as_spark_does(tmp_path: Path, kind: str) -> None:
    values = [1e10, 1e-5, 0.5, 1e7, 9999999.0, -0.0, float("nan"), float("-inf")]
    rows = [{"id": i, "p": value} for i, value in enumerate(values)]
    write_rows(tmp_path / "t", {"id": "long", "p": kind}, rows, partition_by=(("p",),))
    texts = ["1.0E10", "1.0E-5", "0.5", "1.0E7", "9999999.0", "-0.0", "NaN", "-Infinity"]
    assert partitions(tmp_path / "t") == {text: f"p={text}" for text in texts}
    read = {row["id"]: row["p"] for row in read_rows(tmp_path / "t")}
    assert str(read) == str({i: to_float(value) if kind == "float" else value for i, value in enumerate(values)})


@pytest.mark.parametrize("kind", ["double", "float"])
def test_partitions_of_older_files_are_replaced_by_value(tmp_path: Path, kind: str) -> None:
    table = TableBuilder(tmp_path / "t", {"id": "long", "p": kind}, ["p"])
    table.create()
    old = ("1e+10", "1e-05", "10000000.0", "0.10")
    table.commit([table.write_file([{"id": i}], {"p": text}) for i, text in enumerate(old)])
    assert [row["id"] for row in read_rows(table.path, where="p = 1.0E10")] == [0]
    rows = [{"id": 10 + i, "p": value} for i, value in enumerate((1e10, 1e-5, 0.1))]
    write_rows(table.path, {"id": "long", "p": kind}, rows, "overwrite", partition_overwrite="dynamic")
    assert sorted(row["id"] for row in read_rows(table.path)) == [2, 10, 11, 12]
