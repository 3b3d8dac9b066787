"""A partition value that is not of its type: the error names the table and the file that has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_pyds.errors import ProtocolError
from delta_pyds.expr.parse import parse_predicate
from delta_pyds.spark.native.files import list_files
from delta_pyds.storage.resolve import resolve_storage
from delta_pyds.table.scan.live_files import live_files
from delta_pyds.table.scan.partition_match import files_matching
from delta_pyds.table.scan.scan import Scan, plan_scan
from delta_pyds.table.snapshot import open_snapshot
from tests.support.table_builder import TableBuilder


def table(path: Path, text: str = "two") -> str:
    """A table of three files whose second has a partition value that is not a number; returns that file's path."""
    builder = TableBuilder(path, {"id": "long", "p": "integer"}, partition_columns=["p"])
    adds = [builder.write_file([{"id": i}], partition_values={"p": i}) for i in range(3)]
    wrong = adds[1]["add"]
    wrong["partitionValues"]["p"] = text
    builder.create(adds)
    if (path / "checkpoint").exists():
        builder.checkpoint(partition_values_struct=False)
    return str(wrong["path"])


def scan(path: Path, where: str | None) -> Scan:
    return plan_scan(open_snapshot(resolve_storage(str(path)), str(path)), where=where)


@pytest.mark.parametrize("checkpoint", [False, True])
def test_planning_names_the_file(tmp_path: Path, checkpoint: bool) -> None:
    if checkpoint:
        (tmp_path / "checkpoint").touch()
    wrong = table(tmp_path)
    for look in (
        lambda: list(scan(tmp_path, "p = 0").batches()),
        lambda: list(live_files(scan(tmp_path, "p = 0 AND id = 0"))),
        lambda: scan(tmp_path, "p = 0").explain(),
        lambda: list_files(scan(tmp_path, "p = 0")),
    ):
        with pytest.raises(ProtocolError, match="is not a int") as error:
            look()
        assert error.value.code == "DELTA_PARTITION_COLUMN_CAST_FAILED"
        assert wrong in error.value.message and str(tmp_path) in error.value.message
        assert error.value.parameters["file"] == wrong


def test_a_write_that_looks_for_files_by_partition_names_the_file(tmp_path: Path) -> None:
    wrong = table(tmp_path)
    read = scan(tmp_path, None)
    predicate = parse_predicate("p = 0", read.snapshot.schema, time_zone="UTC").expr
    with pytest.raises(ProtocolError, match="is not a int") as error:
        list(files_matching(live_files(read), predicate, read.snapshot.schema, table=str(tmp_path), time_zone="UTC"))
    assert error.value.parameters["file"] == wrong and str(tmp_path) in error.value.message


def test_the_layout_that_says_the_same_wrong_value_names_the_file(tmp_path: Path) -> None:
    """The text looks like a number, in the directory too, and is out of its range."""
    builder = TableBuilder(tmp_path, {"id": "long", "p": "integer"}, partition_columns=["p"])
    add = builder.write_file([{"id": 1}], partition_values={"p": 1})
    large = "99999999999"
    (tmp_path / f"p={large}").mkdir()
    moved = tmp_path / f"p={large}" / "part-0.parquet"
    builder.data_file(add).rename(moved)
    add["add"]["path"], add["add"]["partitionValues"]["p"] = f"p={large}/part-0.parquet", large
    builder.create([add])
    with pytest.raises(ProtocolError) as error:
        list_files(scan(tmp_path, None))
    assert str(moved) in error.value.message
