"""A table in each store by Spark: written, read, streamed, changed, laid out and cleaned up."""

from __future__ import annotations

import json
from pathlib import Path

from pyspark.sql import SparkSession

import delta_pyds
from delta_pyds import DeltaTable, verify
from tests.spark.conftest import spark as spark_session
from tests.support.store_life import used_by_each_spelling
from tests.support.stores import Store
from tests.support.streams import copy_as_stream

spark = spark_session  # the fixture


def test_a_life_of_a_table(spark: SparkSession, store: Store, tmp_path: Path) -> None:
    path, copy, given = store.root(), store.root(), store.options
    options = {"storageOptions": json.dumps(given)}

    def rows(at: str) -> list[int]:
        return sorted(row.id for row in spark.read.format("deltapy").options(**options).load(at).collect())

    spark.range(4, numPartitions=2).write.format("deltapy").options(**options).mode("append").save(path)
    assert delta_pyds.write(spark.range(4, 8), path, mode="append", storage_options=given).version == 1
    assert rows(path) == list(range(8))
    frame = delta_pyds.read(spark, path, where="id >= 6", storage_options=given)
    assert sorted(row.id for row in frame.collect()) == [6, 7]
    # Spark's own reader has no connector for the store here, and explain says why ours reads
    assert "Spark has no connector" in str(delta_pyds.explain(frame))

    copy_as_stream(spark, path, copy, tmp_path / "checkpoint", options)
    assert rows(copy) == list(range(8))

    table = DeltaTable.forPath(spark, path, storage_options=given)
    table.delete("id = 7")
    table.update("id = 6", {"id": "60"})
    source = spark.range(5, 9).alias("s")
    table.alias("t").merge(source, "t.id = s.id").whenMatchedDelete().whenNotMatchedInsertAll().execute()
    assert rows(path) == [0, 1, 2, 3, 4, 6, 7, 8, 60]
    table.optimize().executeCompaction()
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    try:
        table.vacuum(0)
    finally:
        spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    assert rows(path) == [0, 1, 2, 3, 4, 6, 7, 8, 60]
    assert verify(path, storage_options=given).ok


def test_each_spelling_is_the_same_table(spark: SparkSession, store: Store, tmp_path: Path) -> None:
    spellings, copies = store.spellings(store.root()), store.spellings(store.root())
    used_by_each_spelling(spark, spellings, copies, store.options, tmp_path)
