"""What a server of Spark Connect is asked before it is believed; here Spark itself is asked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException

from delta_pyds.spark.native.server_proof import reason_against_server, wrong_answer
from delta_pyds.table.scan.scan import plan_scan
from delta_pyds.table.snapshot import load_snapshot
from delta_pyds.tasks.scan_state import ScanFile
from tests.support.table_builder import TableBuilder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("rows", [1, 2, 3, 100])
def test_spark_tells_of_a_file_what_its_footer_says(spark: SparkSession, tmp_path: Path, rows: int) -> None:
    file = file_of(tmp_path, rows)
    assert wrong_answer(spark, file, rows) == ""
    assert f"rows {rows}, not {rows + 1}" in wrong_answer(spark, file, rows + 1)
    other = ScanFile(file.path, file.size_bytes + 1, file.partition_values)
    assert f"bytes {file.size_bytes}, not {file.size_bytes + 1}" in wrong_answer(spark, other, rows)


def test_a_file_that_the_server_does_not_see_is_no_answer(spark: SparkSession, tmp_path: Path) -> None:
    file = file_of(tmp_path, 1)
    Path(file.path).unlink()
    with pytest.raises(AnalysisException):
        wrong_answer(spark, file, 1)


def test_a_classic_session_is_not_asked(spark: SparkSession, tmp_path: Path) -> None:
    made(tmp_path, 1)
    assert reason_against_server(spark, plan_scan(load_snapshot(str(tmp_path / "a b")))) is None


def made(path: Path, rows: int) -> Mapping[str, object]:
    table = TableBuilder(path / "a b", {"id": "long"})
    table.create()
    (add,) = table.append([{"id": i} for i in range(rows)])
    found: Mapping[str, object] = add["add"]
    return found


def file_of(path: Path, rows: int) -> ScanFile:
    add = made(path, rows)
    return ScanFile(str(path / "a b" / str(add["path"])), int(str(add["size"])), ())
