"""Columns with a collation: no read leaves a row out because statistics or partitions compare bytes."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import delta_pyds
from delta_pyds.errors import DeltaError
from tests.support.schema_json import field, struct
from tests.support.table_builder import TableBuilder

COLLATIONS = {"UTF8_LCASE": "spark", "UNICODE_CI": "icu"}
TEXTS = ["a", "A", "b", "B", "É", "é", "z", "ab", "AB", " ", None]
CONDITIONS = [
    "c = 'A'",
    "c = 'a'",
    "c <=> 'É'",
    "c IN ('B', 'Z')",
    "c <> 'a'",
    "c NOT IN ('A', 'B')",
    "c < 'B'",
    "c >= 'z'",
    "c BETWEEN 'A' AND 'AB'",
    "c IS NULL",
    "startswith(c, 'A')",
    "endswith(c, 'B')",
    "contains(c, 'B')",
    "upper(c) = 'a'",
    "c || 'x' = 'AX'",
    "substring(c, 1, 1) = 'A'",
    "NOT (c = 'A' OR c = 'b')",
    "c = 'A' AND id < 5",
    "c COLLATE UTF8_BINARY = 'A'",
]


@pytest.fixture(scope="module", params=COLLATIONS)
def collation(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module", params=[False, True], ids=["with statistics", "in partitions"])
def table(request: pytest.FixtureRequest, collation: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file for each text, so that statistics or partition values can rule each of them out."""
    path: Path = tmp_path_factory.mktemp("collated") / "t"
    collated = field("c", "string", __COLLATIONS={"c": f"{COLLATIONS[collation]}.{collation}"})
    made = TableBuilder(path, struct(field("id"), collated), partition_columns=["c"] if request.param else [])
    made.create()
    for n, text in enumerate(TEXTS):
        made.append([{"id": n, "c": text}])
    return path


def ids(frame: DataFrame) -> list[int]:
    return sorted(row.id for row in frame.select("id").collect())


@pytest.mark.one_case_in(3)
def test_conditions_have_the_answers_of_spark(spark: SparkSession, table: Path, collation: str) -> None:
    local = spark.createDataFrame(list(enumerate(TEXTS)), f"id LONG, c STRING COLLATE {collation}").coalesce(1)
    assert ids(local.where("c = 'A'")) == [0, 1]
    read = delta_pyds.read(spark, str(table))
    assert read.schema["c"].dataType == local.schema["c"].dataType
    for condition in CONDITIONS:
        wanted = ids(local.where(condition))
        assert ids(read.where(condition)) == wanted, condition
        assert ids(delta_pyds.sql(spark, f"SELECT id FROM delta.`{table}` WHERE {condition}")) == wanted, condition
        assert ids(delta_pyds.sql(spark, f"SELECT t.id FROM delta.`{table}` t WHERE {condition}")) == wanted, condition
    pairs = f"SELECT x.id FROM delta.`{table}` x JOIN delta.`{table}` y ON x.c = y.c WHERE y.id = 1"
    assert ids(delta_pyds.sql(spark, pairs)) == [0, 1]


def test_a_condition_of_read_that_compares_by_bytes_is_refused(spark: SparkSession, table: Path) -> None:
    with pytest.raises(DeltaError, match="collation"):
        delta_pyds.read(spark, str(table), where="c = 'A'")


def test_the_engine_native_is_refused(spark: SparkSession, table: Path) -> None:
    # its files and partitions have no collation
    with pytest.raises(DeltaError, match="'c' has a collation"):
        delta_pyds.read(spark, str(table), engine="native")
    assert delta_pyds.explain(delta_pyds.read(spark, str(table))).engine == "arrow"
