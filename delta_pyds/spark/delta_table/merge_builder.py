"""``DeltaMergeBuilder``: a merge, clause by clause.

Invariant: a builder never changes. Each method returns a new one with one clause more. So two merges can start from one
builder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import overload

from pyspark.sql import Column, DataFrame

from delta_pyds.commands.row_changes.resolved import ClauseAction, MergeClause
from delta_pyds.spark.delta_table.called_by_name import apart_from_source, renamed, renamed_clauses
from delta_pyds.spark.delta_table.private_hooks import WithoutJvm
from delta_pyds.spark.row_changes.handle import TableHandle
from delta_pyds.spark.spark_errors import errors_of_spark
from delta_pyds.spark.table_commands import argument_checks as checks
from delta_pyds.spark.table_commands import rows
from delta_pyds.spark.table_commands.argument_checks import ColumnMapping, ExpressionOrColumn
from delta_pyds.statements.qualified_names import QualifiedTable
from delta_pyds.tasks.merge import ClauseKind


@dataclass(frozen=True, eq=False)
class DeltaMergeBuilder(WithoutJvm):
    """The clauses of a merge. ``DeltaTable.merge`` begins one, ``execute`` runs it. A builder never changes.

    Clauses of one kind are tried in the order given. The first one with a true condition decides. Only the last clause
    of a kind may lack a condition. A row without a true condition stays as it is, or is not inserted. Conditions and
    values are SQL text or Columns, over the aliases of table and source.

    >>> (
    ...     table.alias("t")
    ...     .merge(updates.alias("u"), "t.id = u.id")
    ...     .whenMatchedDelete("u.deleted")
    ...     .whenMatchedUpdate(set={"name": "u.name", "version": "t.version + 1"})
    ...     .whenNotMatchedInsertAll("NOT u.deleted")
    ...     .execute()
    ... )
    """

    _table: Callable[[], TableHandle]
    _source: DataFrame
    _condition: Column | str
    _clauses: tuple[MergeClause[Column | str], ...] = ()
    _evolves: bool = False
    _called: QualifiedTable | None = None

    @overload
    def whenMatchedUpdate(self, condition: ExpressionOrColumn | None, set: ColumnMapping) -> DeltaMergeBuilder: ...

    @overload
    def whenMatchedUpdate(self, *, set: ColumnMapping) -> DeltaMergeBuilder: ...

    def whenMatchedUpdate(
        self,
        condition: ExpressionOrColumn | None = None,
        set: ColumnMapping | None = None,  # noqa: A002 - the reference's name
    ) -> DeltaMergeBuilder:
        """Update a row that matched.

        Args:
            condition: SQL text or a Column over both tables; by default true.
            set: Column names of the table, nested ones with dots, to new values over both tables.

        Returns:
            A new builder with the clause.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: ``set`` is missing.

        >>> merge.whenMatchedUpdate("u.at > t.at", {"name": "u.name", "at": "u.at"})
        """
        return self._with("matched", "update", condition, checks.assignments(set, "'set' in whenMatchedUpdate"))

    def whenMatchedUpdateAll(self, condition: ExpressionOrColumn | None = None) -> DeltaMergeBuilder:
        """Update a row that matched: every column from the source's column of that name.

        Args:
            condition: SQL text or a Column over both tables; by default true.

        Returns:
            A new builder with the clause.

        Raises:
            TypeError: ``condition`` has the wrong type.

        >>> merge.whenMatchedUpdateAll("u.at > t.at")
        """
        return self._with("matched", "update", condition)

    def whenMatchedDelete(self, condition: ExpressionOrColumn | None = None) -> DeltaMergeBuilder:
        """Delete a row that matched.

        Args:
            condition: SQL text or a Column over both tables; by default true.

        Returns:
            A new builder with the clause.

        Raises:
            TypeError: ``condition`` has the wrong type.

        >>> merge.whenMatchedDelete("u.deleted")
        """
        return self._with("matched", "delete", condition)

    @overload
    def whenNotMatchedInsert(self, condition: ExpressionOrColumn, values: ColumnMapping) -> DeltaMergeBuilder: ...

    @overload
    def whenNotMatchedInsert(self, *, values: ColumnMapping = ...) -> DeltaMergeBuilder: ...

    def whenNotMatchedInsert(
        self, condition: ExpressionOrColumn | None = None, values: ColumnMapping | None = None
    ) -> DeltaMergeBuilder:
        """Insert a row of the source that matched no row.

        Args:
            condition: SQL text or a Column over the source; by default true.
            values: Column names of the table to values over the source. Other columns get their default, or null.

        Returns:
            A new builder with the clause.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: ``values`` is missing.

        >>> merge.whenNotMatchedInsert(values={"id": "u.id", "name": "u.name"})
        """
        return self._with(
            "not_matched", "insert", condition, checks.assignments(values, "'values' in whenNotMatchedInsert")
        )

    def whenNotMatchedInsertAll(self, condition: ExpressionOrColumn | None = None) -> DeltaMergeBuilder:
        """Insert a row of the source that matched no row: every column from the source's column of that name.

        Args:
            condition: SQL text or a Column over the source; by default true.

        Returns:
            A new builder with the clause.

        Raises:
            TypeError: ``condition`` has the wrong type.

        >>> merge.whenNotMatchedInsertAll("NOT u.deleted")
        """
        return self._with("not_matched", "insert", condition)

    @overload
    def whenNotMatchedBySourceUpdate(
        self, condition: ExpressionOrColumn | None, set: ColumnMapping
    ) -> DeltaMergeBuilder: ...

    @overload
    def whenNotMatchedBySourceUpdate(self, *, set: ColumnMapping) -> DeltaMergeBuilder: ...

    def whenNotMatchedBySourceUpdate(
        self,
        condition: ExpressionOrColumn | None = None,
        set: ColumnMapping | None = None,  # noqa: A002 - the reference's name
    ) -> DeltaMergeBuilder:
        """Update a row of the table that no row of the source matched.

        Args:
            condition: SQL text or a Column over the table; by default true.
            set: Column names of the table, nested ones with dots, to new values over the table alone.

        Returns:
            A new builder with the clause.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: ``set`` is missing.

        >>> merge.whenNotMatchedBySourceUpdate(set={"active": "false"})
        """
        return self._with(
            "not_matched_by_source",
            "update",
            condition,
            checks.assignments(set, "'set' in whenNotMatchedBySourceUpdate"),
        )

    def whenNotMatchedBySourceDelete(self, condition: ExpressionOrColumn | None = None) -> DeltaMergeBuilder:
        """Delete a row of the table that no row of the source matched.

        Args:
            condition: SQL text or a Column over the table; by default true.

        Returns:
            A new builder with the clause.

        Raises:
            TypeError: ``condition`` has the wrong type.

        >>> merge.whenNotMatchedBySourceDelete("t.day < '2026-01-01'")
        """
        return self._with("not_matched_by_source", "delete", condition)

    def withSchemaEvolution(self) -> DeltaMergeBuilder:
        """Let the merge add to the table the columns that the clauses assign from the source.

        Returns:
            A new builder.

        >>> merge.withSchemaEvolution().whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
        """
        return replace(self, _evolves=True)

    def execute(self) -> DataFrame:
        """Run the merge as one commit, or without one if nothing changes.

        Returns:
            One row with ``num_affected_rows``, ``num_updated_rows``, ``num_deleted_rows`` and ``num_inserted_rows``;
            ``delta_pyds.explain`` of it says where the merge ran, and why there.

        Raises:
            UserError: The clauses are invalid.
            UnsupportedOperationError: Several rows of the source match one row
                (DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE).
            ConstraintViolationError: A new row breaks a constraint of the table.
            ConflictError: A conflicting commit came first.
            AnalysisException: A name is unknown or ambiguous.

        >>> merge.whenMatchedUpdateAll().execute().collect()[0].num_updated_rows
        """
        with errors_of_spark():
            handle = self._table()
            condition, clauses = self._condition, self._clauses
            if self._called is not None:
                called = apart_from_source(self._called, condition, clauses)
                condition, clauses = renamed(condition, called), renamed_clauses(clauses, called)
                handle = replace(handle, alias=called.alias)
            return rows.merge(handle, self._source, condition, clauses, evolves=self._evolves)

    def _with(
        self,
        kind: ClauseKind,
        action: ClauseAction,
        condition: ExpressionOrColumn | None,
        assignments: Mapping[str, ExpressionOrColumn] | None = None,
    ) -> DeltaMergeBuilder:
        clause = MergeClause(kind, action, checks.optional_condition(condition), assignments)
        return replace(self, _clauses=(*self._clauses, clause))
