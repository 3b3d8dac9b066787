"""The change feed as the expected answers have it: a version without a recorded feed is refused, not computed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from delta_pyds.spark.source.datasource import DeltaDataSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class RecordedFeedSource(DeltaDataSource):
    """The format ``deltapy_recorded``: ``deltapy`` with the option computeChanges = never where a feed is read."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)
        if "readChangeFeed" in self.options:
            self.options["computeChanges"] = "never"

    @classmethod
    def name(cls) -> str:
        return "deltapy_recorded"


def register(spark: SparkSession) -> None:
    """The setup hook of the conformance runner."""
    spark.dataSource.register(RecordedFeedSource)
