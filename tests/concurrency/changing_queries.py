"""Changes of the workload that a query of Spark runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import delta_pyds
from delta_pyds.errors import ConflictError
from tests.concurrency.changing_process import Changer
from tests.concurrency.changing_workload import Change, RefusedError
from tests.support.row_model.delta_table_engine import DeltaTableEngine
from tests.support.row_model.steps import BASE, Delete, Merge, Update

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class _Queries(DeltaTableEngine):
    """``version``: of the last command's commit."""

    version: int | None = None

    def _rows(self, told: DataFrame) -> list[Any]:
        self.version = delta_pyds.explain(told).version
        return super()._rows(told)


def querying(spark: SparkSession, path: Path) -> Callable[[Change, str], int | None]:
    """Makes one change by a query; appends and layouts by the core."""
    others = Changer(str(path))

    def change(step: Change, told: str) -> int | None:
        engine = _Queries(spark, "spark", user_metadata=told)
        try:
            if isinstance(step, Delete):
                engine.delete(path, step)
            elif isinstance(step, Update):
                engine.update(path, step)
            elif isinstance(step, Merge):
                engine.merge(path, step, list(BASE))
            else:
                return others(step, told)
        except ConflictError as error:
            raise RefusedError(error.code, error.parameters.get("version")) from error
        return engine.version

    return change
