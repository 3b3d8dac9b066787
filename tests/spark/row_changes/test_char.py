"""Columns of type ``char``: files may have their values with trailing spaces or without, and Spark sees them with.

The reference's UPDATE and MERGE do the same to such a table; its DELETE refuses one.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

import delta_pyds
from tests.support.delta_types import field
from tests.support.table_builder import TableBuilder

# each takes seconds of Spark: a run takes a part of them, chosen by the commit
pytestmark = pytest.mark.one_test_in(6)


@pytest.fixture
def path(spark: SparkSession, tmp_path: Path) -> str:
    """A file with bare values, and one with padded ones."""
    delta_pyds.register(spark)
    char = field("c", "string", metadata={"__CHAR_VARCHAR_TYPE_STRING": "char(3)"})
    table = TableBuilder(tmp_path / "t", {"type": "struct", "fields": [field("id", "long"), char]})
    table.create()
    table.append([{"id": 1, "c": "a"}, {"id": 2, "c": "bb"}])
    table.append([{"id": 3, "c": "a  "}, {"id": 4, "c": "bbb"}, {"id": 5, "c": None}])
    return str(table.path)


def ids(frame: DataFrame) -> list[int]:
    return sorted(row.id for row in frame.select("id").collect())


def test_a_condition_takes_bare_and_padded_values_alike(spark: SparkSession, path: str) -> None:
    table = delta_pyds.DeltaTable.forPath(spark, path)
    table.update("c = 'a'", {"id": "id + 10"})
    assert ids(table.toDF()) == [2, 4, 5, 11, 13]
    table.delete((F.col("c") > "a") & (F.col("id") < 4))
    assert ids(table.toDF()) == [4, 5, 11, 13]
    table.delete("c IN ('a', 'zz')")
    assert ids(table.toDF()) == [4, 5]


def test_a_merge_meets_padded_values(spark: SparkSession, path: str) -> None:
    table = delta_pyds.DeltaTable.forPath(spark, path).alias("t")
    source = spark.createDataFrame([(7, "a"), (8, "bbb"), (9, "a  ")], "id long, c string").coalesce(1).alias("s")
    merge = table.merge(source, "t.c = s.c").whenMatchedUpdate("s.c <> 'q'", {"id": "t.id * 100 + s.id"})
    merge.whenNotMatchedInsertAll().execute()
    # a text of the source is as long as it is
    assert ids(table.toDF()) == [2, 5, 7, 109, 309, 408]
