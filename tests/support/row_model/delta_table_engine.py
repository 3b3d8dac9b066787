"""Delete, update and merge by ``DeltaTable``, on any session."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import delta_pyds
from delta_pyds.columnar.schema import arrow_schema
from tests.support.row_model.expressions import Expression
from tests.support.row_model.harness import Counts
from tests.support.row_model.steps import (
    SQL_TYPES,
    Assignments,
    Clause,
    Delete,
    Merge,
    Update,
    schema_of,
    type_of,
    with_columns,
)
from tests.support.table_writes import struct

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class DeltaTableEngine:
    """Conditions and values are given as text and as Columns, in turn.

    ``engine``: as ``DeltaTable.forPath`` takes it; but for ``auto``, it is seen that commands ran there.
    """

    counts_source = True

    def __init__(self, spark: SparkSession, engine: str = "auto", **options: Any) -> None:
        self.spark, self.engine, self.options = spark, engine, options
        self._as_columns = False

    def delete(self, path: Path, step: Delete) -> Counts:
        told = self._table(path).delete(self._given(step.condition))
        (row,) = self._rows(told)
        return None, row["num_affected_rows"], None

    def update(self, path: Path, step: Update) -> Counts:
        told = self._table(path).update(condition=self._given(step.condition), set=self._set(step.assignments))
        (row,) = self._rows(told)
        return row["num_affected_rows"], None, None

    def merge(self, path: Path, step: Merge, columns: Sequence[str]) -> Counts:
        source = source_of(self.spark, step, columns).alias("s")
        builder = self._table(path).alias("t").merge(source, self._given(step.condition))
        if step.evolve:
            builder = builder.withSchemaEvolution()
        for name, clauses in (
            ("whenMatched", step.matched),
            ("whenNotMatched", step.not_matched),
            ("whenNotMatchedBySource", step.not_matched_by_source),
        ):
            for clause in clauses:
                builder = self._with_clause(builder, name, clause)
        (row,) = self._rows(builder.execute())
        counts = row["num_updated_rows"], row["num_deleted_rows"], row["num_inserted_rows"]
        assert row["num_affected_rows"] == sum(counts)
        return counts

    def _table(self, path: Path) -> Any:
        self._as_columns = not self._as_columns
        return delta_pyds.DeltaTable.forPath(self.spark, str(path), engine=self.engine, **self.options)

    def _rows(self, told: DataFrame) -> list[Any]:
        if self.engine != "auto":
            assert delta_pyds.explain(told).place.where_run == self.engine
        return told.collect()

    def _given(self, expression: Expression | None) -> Any:
        if expression is None or not self._as_columns:
            return None if expression is None else expression.sql()
        from pyspark.sql.functions import expr

        return expr(expression.sql())

    def _set(self, assignments: Assignments) -> dict[str, Any]:
        return {name: self._given(value) for name, value in assignments}

    def _with_clause(self, builder: Any, name: str, clause: Clause) -> Any:
        condition = self._given(clause.condition)
        if clause.action == "delete":
            return getattr(builder, f"{name}Delete")(condition=condition)
        if clause.assignments is None:
            return getattr(builder, f"{name}{clause.action.title()}All")(condition=condition)
        given = {"set" if clause.action == "update" else "values": self._set(clause.assignments)}
        return getattr(builder, f"{name}{clause.action.title()}")(condition=condition, **given)


def source_of(spark: SparkSession, step: Merge, columns: Sequence[str]) -> DataFrame:
    """The source of a merge into a table with these columns."""
    names = step.source_columns(columns)
    rows = pa.Table.from_pylist(with_columns(step.rows, names), schema=arrow_schema(struct(schema_of(names))))
    # Spark Connect takes no empty table without a schema
    return spark.createDataFrame(rows, ", ".join(f"{name} {SQL_TYPES[type_of(name)]}" for name in names))
