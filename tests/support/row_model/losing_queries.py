"""Commands that a query of Spark runs, and that lose races after their tasks have run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.support.row_model.delta_table_engine import DeltaTableEngine
from tests.support.row_model.losing import Losing, Races

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODULES = [f"delta_pyds.spark.row_changes.{name}" for name in ("delete", "update", "merge")]


class LosingQueries(Losing, DeltaTableEngine):
    """Commands by queries that lose races after their tasks have run. ``meanwhile``: lets others commit."""

    def __init__(self, spark: SparkSession, meanwhile: Callable[[], None]) -> None:
        # the table's own level lets appends through that nobody read, as the reference does
        super().__init__(spark, "spark", isolation_level="Serializable")
        self._races = Races(meanwhile, MODULES)
