"""Merges over Spark Connect, as a client of its own process: ``merge_client.py <server> <folder>``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

import delta_pyds
from delta_pyds.commands.row_changes.resolved import MergeClause
from delta_pyds.spark.row_changes import merge_source
from delta_pyds.spark.row_changes.handle import TableHandle
from delta_pyds.spark.row_changes.merge import merge_rows

COLUMNS = "id int, v string, n int"
PROPERTIES = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}
UPDATE_ALL = MergeClause("matched", "update")
DELETE = MergeClause("matched", "delete")
INSERT_ALL = MergeClause("not_matched", "insert")


class Tables:
    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self._folder = folder
        self._number = 0

    def make(self) -> str:
        self._number += 1
        path = f"file://{self._folder}/{self._number}"
        rows = self.spark.createDataFrame([(i, f"v{i}", i * 10) for i in range(6)], COLUMNS)
        delta_pyds.write(rows.coalesce(1), path, properties=PROPERTIES)
        return path

    def merged(
        self,
        source: DataFrame,
        clauses: Sequence[MergeClause],
        on: Any = "t.id = s.id",
        path: str | None = None,
        **options: Any,
    ) -> list[tuple[Any, ...]]:
        path = path or self.make()
        handle = TableHandle(self.spark, path, **{"alias": "t", "engine": "spark", **options})
        merge_rows(handle, source, on, clauses)
        delta_pyds.verify(path).raise_for_errors()
        return sorted(tuple(row) for row in delta_pyds.read(self.spark, path).collect())


def check(tables: Tables) -> None:
    raw = tables.spark.createDataFrame([(1, "a", 100), (2, "b", 200), (7, "c", 700)], COLUMNS)
    source = raw.alias("s")
    others = [(3, "v3", 30), (4, "v4", 40), (5, "v5", 50)]
    upserted = [(0, "v0", 0), (1, "a", 100), (2, "b", 200), *others, (7, "c", 700)]

    assert tables.merged(source, [UPDATE_ALL, INSERT_ALL]) == upserted
    # an alias below other columns
    below = raw.alias("s").withColumn("q", F.lit(1)).drop("q")
    assert tables.merged(below, [UPDATE_ALL, INSERT_ALL]) == upserted
    # names without an alias mean the only table that a clause can see
    clauses = [
        MergeClause("matched", "update", "s.n > 150", {"v": "s.v || t.v"}),
        DELETE,
        MergeClause("not_matched", "insert", "n > 1", {"id": "id", "v": "v"}),
        MergeClause("not_matched_by_source", "update", "n > 40", {"n": "n + 1"}),
        MergeClause("not_matched_by_source", "delete", "id = 0"),
    ]
    expected = [(2, "bv2", 20), (3, "v3", 30), (4, "v4", 40), (5, "v5", 51), (7, "c", None)]
    assert tables.merged(source, clauses) == expected

    path = tables.make()
    known = delta_pyds.read(tables.spark, path)
    clauses = [
        MergeClause("matched", "update", raw.n > 150, {"v": raw["v"], "n": known.n + raw.n}),
        MergeClause("not_matched", "insert", None, {"id": raw["id"], "v": F.col("v")}),
    ]
    found = tables.merged(raw, clauses, known["id"] == raw["id"], path, alias=None, known_frames=(known,))
    assert found == [(0, "v0", 0), (1, "v1", 10), (2, "b", 220), *others, (7, "c", None)]

    joined = raw.alias("a").join(raw.alias("b"), F.expr("a.id = b.id")).select("a.id", "b.v", "a.n")
    clauses = [
        MergeClause("matched", "update", None, {"v": "b.v"}),
        MergeClause("not_matched", "insert", None, {"id": "a.id"}),
    ]
    found = tables.merged(joined, clauses, "t.id = a.id")
    assert found == [(0, "v0", 0), (1, "a", 10), (2, "b", 20), *others, (7, None, None)]

    twice = source.union(source).alias("s")
    assert tables.merged(twice, [DELETE, INSERT_ALL]) == [(0, "v0", 0), *others, (7, "c", 700), (7, "c", 700)]
    try:
        tables.merged(twice, [UPDATE_ALL])
    except delta_pyds.DeltaError as e:
        assert e.code == "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE", e
    else:
        raise AssertionError("two rows of the source changed one row")


def main() -> None:
    server, folder = sys.argv[1:]
    spark = SparkSession.builder.remote(server).getOrCreate()
    check(Tables(spark, Path(folder) / "small"))
    merge_source.__dict__["_small"] = lambda *_: None
    check(Tables(spark, Path(folder) / "large"))
    print("all is well")


if __name__ == "__main__":
    main()
