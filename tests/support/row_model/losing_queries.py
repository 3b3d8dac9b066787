"""Commands that a query of Spark runs, and that lose races after their tasks have run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.row_model.delta_table_engine import DeltaTableEngine
from tests.support.row_model.harness import Counts
from tests.support.row_model.losing import Races
from tests.support.row_model.steps import Delete, Merge, Update

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODULES = [f"delta_pyds.spark.row_changes.{name}" for name in ("delete", "update", "merge")]


class LosingQueries(DeltaTableEngine):
    """Commands by queries that lose races after their tasks have run. ``meanwhile``: lets others commit."""

    def __init__(self, spark: SparkSession, meanwhile: Callable[[], None]) -> None:
        # the table's own level lets appends through that nobody read, as the reference does
        super().__init__(spark, "spark", isolation_level="Serializable")
        self._races = Races(meanwhile, MODULES)

    def delete(self, path: Path, step: Delete) -> Counts:
        with self._races.lost():
            return super().delete(path, step)

    def update(self, path: Path, step: Update) -> Counts:
        with self._races.lost():
            return super().update(path, step)

    def merge(self, path: Path, step: Merge, columns: Sequence[str]) -> Counts:
        with self._races.lost():
            return super().merge(path, step, columns)
