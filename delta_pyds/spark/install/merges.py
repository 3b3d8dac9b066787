"""``df.mergeInto("delta.`/data/events`", condition)``: Spark's method of a merge, run like ``DeltaTable.merge``.

Invariant: nothing is read before ``merge()``. Until then a writer only records its calls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from delta_pyds.errors import UserError
from delta_pyds.spark.catalog_names.opening import OpenTable, open_named
from delta_pyds.spark.catalog_names.texts import NamedTable
from delta_pyds.spark.delta_table.called_by_name import renamed
from delta_pyds.spark.delta_table.merge_builder import DeltaMergeBuilder
from delta_pyds.spark.delta_table.table import DeltaTable
from delta_pyds.spark.install.batch_reads import path_if_ours
from delta_pyds.spark.install.formats import prepare
from delta_pyds.spark.install.names import named_if_ours
from delta_pyds.spark.install.patches import Method, Replacement
from delta_pyds.spark.spark_errors import errors_of_spark
from delta_pyds.spark.table_commands.opening import open_path
from delta_pyds.statements.qualified_names import QualifiedTable, by_alias


class MergeIntoWriter:
    """The result of ``df.mergeInto`` for our table, with the name and the methods of PySpark's class.

    Names in conditions and values are those of the source and of the table, as in Spark: unqualified, or qualified by
    ``/data/events`` or ``delta.`/data/events``` in backquotes. ``merge`` raises what ``DeltaTable.merge`` raises.
    """

    def __init__(self, frame: DataFrame, path: str, condition: Any, named: NamedTable | None = None) -> None:
        self._named_as = named
        self._frame = frame
        self._path = path
        self._condition = condition
        self._clauses: list[_Clause] = []
        self._evolves = False

    def whenMatched(self, condition: Any = None) -> _Matched:
        return _Matched(self, condition)

    def whenNotMatched(self, condition: Any = None) -> _NotMatched:
        return _NotMatched(self, condition)

    def whenNotMatchedBySource(self, condition: Any = None) -> _NotMatchedBySource:
        return _NotMatchedBySource(self, condition)

    def withSchemaEvolution(self) -> MergeIntoWriter:
        self._evolves = True
        return self

    def merge(self) -> None:
        """Run the merge as one commit. Raises: UserError (NO_MERGE_ACTION_SPECIFIED) without an action."""
        with errors_of_spark():
            if not self._clauses:
                raise UserError(
                    "df.mergeInto needs to be followed by at least one of whenMatched, whenNotMatched and "
                    "whenNotMatchedBySource.",
                    code="NO_MERGE_ACTION_SPECIFIED",
                )
            spark, named = self._frame.sparkSession, self._named_as
            opened = OpenTable(open_path(spark, self._path)) if named is None else open_named(spark, named)
            called = opened.called or QualifiedTable.at_path(self._path, lambda: opened.handle.open().schema.names)
            builder = DeltaTable(opened.handle).alias(self._path).merge(self._frame, _by_alias(self._condition, called))
            if self._evolves:
                builder = builder.withSchemaEvolution()
            for clause in self._clauses:
                builder = _with(builder, clause, called)
        builder.execute()


def _with(builder: DeltaMergeBuilder, clause: _Clause, called: QualifiedTable) -> DeltaMergeBuilder:
    condition = None if clause.condition is None else _by_alias(clause.condition, called)
    method: Callable[..., DeltaMergeBuilder] = getattr(builder, clause.method)
    if clause.values is None:
        return method(condition)
    values = {by_alias(key, [called], is_target=True): _by_alias(value, called) for key, value in clause.values.items()}
    argument = "values" if "Insert" in clause.method else "set"
    return method(condition=condition, **{argument: values})


def _by_alias(given: Any, called: QualifiedTable) -> Any:
    """A Column as ``DeltaTable`` takes it."""
    column: Column = F.col(given) if isinstance(given, str) else given
    return renamed(column, called) if hasattr(column, "_jc") or hasattr(column, "_expr") else column


@dataclass(frozen=True)
class _Clause:
    """``method``: a method of ``DeltaMergeBuilder``. ``values``: columns to values; None for all columns, or for a
    delete."""

    method: str
    condition: Any
    values: dict[str, Any] | None = None


@dataclass(frozen=True)
class _Actions:
    writer: MergeIntoWriter
    condition: Any

    def _add(self, method: str, values: Any = None) -> MergeIntoWriter:
        # without values, the source's columns of the same names are taken, as in Spark
        self.writer._clauses.append(_Clause(method, self.condition, dict(values) if values else None))
        return self.writer


class _Matched(_Actions):
    def updateAll(self) -> MergeIntoWriter:
        return self._add("whenMatchedUpdateAll")

    def update(self, assignments: dict[str, Column]) -> MergeIntoWriter:
        return self._add("whenMatchedUpdate", assignments) if assignments else self.updateAll()

    def delete(self) -> MergeIntoWriter:
        return self._add("whenMatchedDelete")


class _NotMatched(_Actions):
    def insertAll(self) -> MergeIntoWriter:
        return self._add("whenNotMatchedInsertAll")

    def insert(self, assignments: dict[str, Column]) -> MergeIntoWriter:
        return self._add("whenNotMatchedInsert", assignments) if assignments else self.insertAll()


class _NotMatchedBySource(_Actions):
    def updateAll(self) -> MergeIntoWriter:
        """Raises: UserError, because no row of the source has the values."""
        with errors_of_spark():
            raise UserError(
                "whenNotMatchedBySource() takes only update(...) and delete(): its rows match no row of the source, so "
                "there are no source values for updateAll()."
            )

    def update(self, assignments: dict[str, Column]) -> MergeIntoWriter:
        return self._add("whenNotMatchedBySourceUpdate", assignments) if assignments else self.updateAll()

    def delete(self) -> MergeIntoWriter:
        return self._add("whenNotMatchedBySourceDelete")


def _merge_into(original: Method, /, self: Any, table: str, condition: Any) -> Any:
    spark = self.sparkSession
    prepare(spark)
    path = path_if_ours(spark, table)
    if path is not None:
        return MergeIntoWriter(self, path, condition)
    named = named_if_ours(spark, table)
    # the table's name may qualify its columns
    return original(self, table, condition) if named is None else MergeIntoWriter(self, named.table, condition, named)


FRAME: dict[str, Replacement] = {"mergeInto": _merge_into}
