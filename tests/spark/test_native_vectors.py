"""Drawn deletion vectors by the native engine: rows, positions and errors, however the vectors reach a row."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from delta_pyds.spark.native import parts as native_parts
from delta_pyds.spark.native import scan as native_scan
from delta_pyds.spark.native.vectors import (
    ROW,
    VECTOR,
    as_lists,
    in_one_array,
    is_live_by_size,
    slots_of,
    vector_table,
)
from tests.support.frames import native, physical
from tests.support.table_builder import TableBuilder, build

# each takes seconds of Spark: a run takes a part of them, chosen by the commit
pytestmark = pytest.mark.one_test_in(4)

VECTORS = {"delta.enableDeletionVectors": "true"}
ROWS = 200
# of a file: none, all, the first, the last, or any
GONE = st.one_of(
    st.none(),
    st.sampled_from([list(range(ROWS)), [0], [ROWS - 1], [63, 64], list(range(64, 128))]),
    st.lists(st.integers(0, ROWS - 1), min_size=1, max_size=150, unique=True),
)


@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(st.lists(st.tuples(st.integers(0, 3), GONE, st.sampled_from("iu")), min_size=1, max_size=9))
def check(spark: SparkSession, files: list[tuple[int, list[int] | None, str]]) -> None:
    """``files``: how long the text of a row is, so sizes are equal for some; the deleted rows, and their storage."""
    with tempfile.TemporaryDirectory() as directory:
        table = build(Path(directory) / "t", {"id": "long", "text": "string"}, properties=VECTORS)
        wanted = []
        for number, (length, gone, storage) in enumerate(files):
            start = number * ROWS
            [add] = table.append([{"id": start + n, "text": "x" * length} for n in range(ROWS)], row_group_size=70)
            if gone:
                table.commit(table.delete_rows(add, gone, storage))
            wanted += [start + n for n in range(ROWS) if n not in (gone or ())]
        df = native(spark, table)
        assert sorted(row.id for row in df.collect()) == wanted
        assert df.filter(f"id >= {ROWS // 2}").count() == len([n for n in wanted if n >= ROWS // 2])
        assert df.count() == len(wanted)


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("large", [0, 1, ROWS * 2, 250_000])
@pytest.mark.parametrize("words", [0, 1 << 19])
def test_drawn_vectors_leave_the_rows_of_the_model(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, large: int, words: int, ansi: str
) -> None:
    monkeypatch.setattr(native_parts, "LARGE_FILE_ROWS", large)
    monkeypatch.setattr(native_parts, "FEW_SCANS", 2)
    monkeypatch.setattr(native_parts, "MAX_GROUPS", 2)
    monkeypatch.setattr(native_scan, "MAX_WORDS_IN_TASKS", words)
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        check(spark)
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


def with_sizes(path: Path, lengths: list[int]) -> TableBuilder:
    table = build(path, {"id": "long", "text": "string"}, properties=VECTORS)
    for length in lengths:
        [add] = table.append([{"id": n, "text": "x" * length} for n in range(ROWS)])
        table.commit(table.delete_rows(add, [1]))
    return table


def test_files_of_different_sizes_need_no_join_and_equal_ones_do(spark: SparkSession, tmp_path: Path) -> None:
    assert "Join" not in physical(native(spark, with_sizes(tmp_path / "a", [1, 2, 3])))
    assert "BroadcastHashJoin" in physical(native(spark, with_sizes(tmp_path / "b", [1, 2, 2])))


@pytest.mark.parametrize("rule", ["PushDownPredicates", "ColumnPruning", "CollapseProject"])
@pytest.mark.parametrize("lengths", [[1], [1, 2, 3], [1, 2, 2]])
def test_a_session_without_a_rule_of_the_optimizer_reads_the_same_rows(
    spark: SparkSession, tmp_path: Path, lengths: list[int], rule: str
) -> None:
    """Without these rules Spark reads ``_metadata`` whole."""
    session = spark.newSession()
    session.conf.set("spark.sql.optimizer.excludedRules", f"org.apache.spark.sql.catalyst.optimizer.{rule}")
    df = native(session, with_sizes(tmp_path / "t", lengths))
    wanted = [n for n in range(ROWS) if n != 1 for _ in lengths]
    assert sorted(row.id for row in df.collect()) == wanted
    assert df.filter(f"id >= {ROWS // 2}").count() == len([n for n in wanted if n >= ROWS // 2])
    assert df.count() == len(wanted)


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_a_row_of_an_unknown_file_or_position_is_an_error(spark: SparkSession, tmp_path: Path, ansi: str) -> None:
    table = with_sizes(tmp_path / "t", [1, 2, 3])
    paths = [str(table.path / add["add"]["path"]) for add in table.active()]
    sizes = [add["add"]["size"] for add in table.active()]
    slots = slots_of(sizes[:2])
    assert slots is not None
    words = [pa.array([2], pa.int64())] * 2
    array = spark.createDataFrame(vector_table(as_lists([in_one_array(slots, sizes[:2], words)])))
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        frame = spark.read.schema(f"id long, {ROW} long").parquet(*paths[:2]).withColumn(VECTOR, array.scalar())
        assert frame.filter(is_live_by_size(slots)).count() == 2 * (ROWS - 1)
        frame = spark.read.schema(f"id long, {ROW} long").parquet(*paths).withColumn(VECTOR, array.scalar())
        with pytest.raises(PySparkException, match=f"does not know the data file of {sizes[2]} bytes"):
            frame.filter(is_live_by_size(slots)).count()
        frame = spark.read.schema("id long").parquet(*paths[:2]).withColumn(VECTOR, array.scalar())
        with pytest.raises(PySparkException, match="gave no position"):
            frame.withColumn(ROW, F.lit(None).cast("long")).filter(is_live_by_size(slots)).count()
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
