"""A source that executors kept, and that is gone: known by Spark's condition, and by nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from delta_pyds.spark.row_changes.merge_source import with_materialized_source

_LOST = "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND"


def test_a_command_runs_again_where_kept_rows_are_gone_and_for_no_other_error(spark: SparkSession) -> None:
    levels: list[StorageLevel] = []

    def run(action: Callable[[], Any]) -> Any:
        def once(level: StorageLevel) -> str:
            levels.append(level)
            if len(levels) == 1:
                action()
            return "done"

        levels.clear()
        return with_materialized_source(once)

    gone = _gone(spark)
    for action in (gone.collect, gone.toArrow, gone.write.format("noop").mode("overwrite").save):
        assert run(action) == "done"
        assert [level.replication for level in levels] == [1, 2]
    with pytest.raises(Exception, match=_LOST):
        run(spark.sql(f"SELECT raise_error('[{_LOST}]')").collect)
    assert len(levels) == 1


def _gone(spark: SparkSession) -> DataFrame:
    """Rows of a local checkpoint that nobody has any more."""
    context: Any = spark.sparkContext._jsc
    before = set(context.getPersistentRDDs().keySet())
    frame = spark.range(100, numPartitions=2).localCheckpoint()
    kept = context.getPersistentRDDs()
    for number in set(kept.keySet()) - before:
        kept.get(number).unpersist(True)
    return frame
