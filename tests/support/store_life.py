"""A table in a store by each of its spellings, through Spark: as if each were the only one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import delta_pyds
from delta_pyds import DeltaTable
from tests.support.streams import copy_as_stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def used_by_each_spelling(
    spark: SparkSession, spellings: Sequence[str], copies: Sequence[str], options: Mapping[str, Any], checkpoint: Path
) -> None:
    """Rows are appended, read and changed by each, and one stream goes on from one to the other, in and out.

    ``spellings``: of a new table. ``copies``: of another one. ``options``: none where the environment says all.
    """
    given = {"storageOptions": json.dumps(options)} if options else {}
    told: dict[str, Any] = {"storage_options": options} if options else {}

    def rows(path: str, *, by_format: bool = False) -> list[int]:
        by_reader = spark.read.format("deltapy").options(**given).load
        frame = by_reader(path) if by_format else delta_pyds.read(spark, path, **told)
        return sorted(row.id for row in frame.collect())

    for number, path in enumerate(spellings):
        row = spark.range(number, number + 1, numPartitions=1)
        row.write.format("deltapy").options(**given).mode("append").save(path)
        assert rows(path, by_format=True) == list(range(number + 1)), path
        # a stream of before goes on, and what it has written is not written again
        copy_as_stream(spark, path, copies[(number + 1) % len(copies)], checkpoint, given)
        assert rows(copies[number % len(copies)]) == list(range(number + 1)), path
    for number, path in enumerate(copies):
        DeltaTable.forPath(spark, path, **told).update(f"id = {number}", {"id": str(100 + number)})
    assert rows(copies[0]) == list(range(100, 100 + len(copies)))
