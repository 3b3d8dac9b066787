"""Streaming queries of tests: from a deltapy table into Parquet files or another table, until all there is is read."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tests.support.limits import ONLY_A_HANG_S


def stream(spark: SparkSession, path: Any, **options: Any) -> DataFrame:
    return spark.readStream.format("deltapy").options(**options).load(str(path))


def copy_as_stream(
    spark: SparkSession, path: str, copy: str, checkpoint: Path, given: Mapping[str, Any] | None = None, **options: Any
) -> None:
    """All that is in a table, by a stream, into another one. ``given``: options of both; ``options``: of the reader."""
    query = (
        stream(spark, path, **(given or {}), **options)
        .writeStream.format("deltapy")
        .options(**(given or {}))
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start(copy)
    )
    try:
        assert query.awaitTermination(ONLY_A_HANG_S), f"the query did not end: {query.status}"
    finally:
        query.stop()


class Sink:
    """A folder of Parquet files and the checkpoint of the query that writes it."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "rows"
        self.checkpoint = folder / "checkpoint"

    def run(self, df: DataFrame, **trigger: Any) -> list[dict[str, Any]]:
        """Run to the end of what is there; the progress of each batch that it took."""
        query = (
            df.writeStream.format("parquet")
            .option("checkpointLocation", str(self.checkpoint))
            .trigger(**(trigger or {"availableNow": True}))
            .start(str(self.data))
        )
        try:
            assert query.awaitTermination(ONLY_A_HANG_S), f"the query did not end: {query.status}"
        finally:
            query.stop()
        return [json.loads(p.json) if hasattr(p, "json") else dict(p) for p in query.recentProgress]

    def run_on(self, df: DataFrame) -> list[int]:
        """Run with a trigger that does not end by itself, to the end of what is there; the rows of each batch."""
        query = (
            df.writeStream.format("parquet")
            .option("checkpointLocation", str(self.checkpoint))
            .trigger(processingTime="0 seconds")
            .start(str(self.data))
        )
        try:
            query.processAllAvailable()
        finally:
            query.stop()
        return [rows for progress in query.recentProgress if (rows := progress["numInputRows"])]

    def refusal(self, df: DataFrame, **trigger: Any) -> str:
        """Why the query failed."""
        with pytest.raises(PySparkException) as error:
            self.run(df, **trigger)
        return str(error.value)

    def rows(self, spark: SparkSession, *columns: str) -> list[tuple[Any, ...]]:
        """The rows that arrived, sorted."""
        if not any(name.endswith(".parquet") for name in os.listdir(self.data)):
            return []
        df = spark.read.option("mergeSchema", "true").parquet(str(self.data))
        return sorted((tuple(r) for r in (df.select(*columns) if columns else df).collect()), key=repr)

    def ids(self, spark: SparkSession) -> list[int]:
        return sorted(r[0] for r in self.rows(spark, "id"))

    def last_offset(self) -> dict[str, Any]:
        """The stream's position, by the checkpoint."""
        folder = self.checkpoint / "offsets"
        newest = max((p for p in folder.iterdir() if p.name.isdigit()), key=lambda p: int(p.name))
        return dict(json.loads(newest.read_text().splitlines()[2]))

    def forget_last_commit(self) -> int:
        """Put the query back to where Spark had not yet noted that the last batch is done."""
        folder = self.checkpoint / "commits"
        newest = max((p for p in folder.iterdir() if p.name.isdigit()), key=lambda p: int(p.name))
        newest.unlink()
        (folder / f".{newest.name}.crc").unlink(missing_ok=True)
        return int(newest.name)
