"""The rows that a merge changes, as a query of Spark: each with its action and its new values.

Invariants: a condition is evaluated once for each row, in the clauses' order. A value is evaluated only for rows that
get it. Each row of the target occurs once for each source row that it matches, so the tasks find duplicate
source matches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql.types import DataType

from delta_pyds.spark.row_changes.merge_columns import MergeColumns
from delta_pyds.tasks.changed_rows import (
    ACTION_COLUMN,
    FILE_COLUMN,
    NEW_PREFIX,
    OLD_PREFIX,
    POSITION_COLUMN,
    ROW_ID_COLUMN,
    SOURCE_ROW_COLUMN,
    Action,
)
from delta_pyds.tasks.merge import Clause, ClauseKind

# the number of the clause of the merge that takes a row; negative if none does
CLAUSE_COLUMN = "_deltapy_clause"
_NONE = -1
_ALL_KINDS: tuple[ClauseKind, ...] = ("matched", "not_matched", "not_matched_by_source")


@dataclass(frozen=True)
class MergeRows:
    """``types``: the columns' after the merge. ``with_old``: rows have their old values. ``with_source_rows``: rows
    have the number of the source's row that they match. ``with_inserted_rows``: inserted rows have the number of their
    row of the source. ``row_ids``: the target's frame has ``ROW_ID_COLUMN``.
    ``matches_counted``: rows that match and do not change are included.
    """

    merge: MergeColumns
    types: Sequence[DataType]
    with_old: bool = False
    with_source_rows: bool = False
    with_inserted_rows: bool = False
    row_ids: bool = False
    matches_counted: bool = True

    def matched(self, target: DataFrame, source: DataFrame) -> DataFrame:
        """Rows of the target that match a row of the source."""
        if not self.matches_counted and not self.with_source_rows:
            # no need to count duplicate source matches
            met = target.join(source, self.merge.on.column, "inner" if self.merge.on.calls_python else "left_semi")
            if self.merge.on.calls_python:
                met = met.dropDuplicates([FILE_COLUMN, POSITION_COLUMN])
        else:
            met = target.join(source, self.merge.on.column, "inner")
        return self._changes(self._chosen(met, "matched"), "matched")

    def inserted(self, source: DataFrame) -> DataFrame:
        """New rows from a source none of whose rows matches the target."""
        chosen = self._chosen(source, "not_matched")
        return self._changes(chosen.filter(F.col(CLAUSE_COLUMN) >= 0), "not_matched")

    def unmatched(self, target: DataFrame, source: DataFrame) -> DataFrame:
        """New rows from the source rows that match no row of the target."""
        return self.inserted(source.join(target, self.merge.on.column, "left_anti"))

    def not_matched_by_source(self, target: DataFrame, source: DataFrame) -> DataFrame:
        """Rows of the target that match no row of the source, and that a clause changes."""
        chosen = self._chosen(target.join(source, self.merge.on.column, "left_anti"), "not_matched_by_source")
        return self._changes(chosen.filter(F.col(CLAUSE_COLUMN) >= 0), "not_matched_by_source")

    def all_in_one(self, target: DataFrame, source: DataFrame, how: str) -> DataFrame:
        """Rows of all kinds, by one outer join. Only for resolved expressions that keep their meaning in it."""
        joined = target.join(source, self.merge.on.column, how)
        no_target, no_source = F.col(POSITION_COLUMN).isNull(), F.col(SOURCE_ROW_COLUMN).isNull()
        choice = F.when(no_target, self._choice("not_matched"))
        choice = choice.when(no_source, self._choice("not_matched_by_source")).otherwise(self._choice("matched"))
        chosen = joined.withColumn(CLAUSE_COLUMN, choice)
        wanted = F.col(CLAUSE_COLUMN) >= 0
        if self.matches_counted:
            wanted = wanted | (F.col(POSITION_COLUMN).isNotNull() & F.col(SOURCE_ROW_COLUMN).isNotNull())
        return self._changes(chosen.filter(wanted), *_ALL_KINDS)

    # --- parts

    def _chosen(self, rows: DataFrame, kind: ClauseKind) -> DataFrame:
        """The rows with the number of the first satisfied clause of a kind."""
        return rows.withColumn(CLAUSE_COLUMN, self._choice(kind))

    def _choice(self, kind: ClauseKind) -> Column:
        choice = F.lit(_NONE)
        for number, clause in reversed(list(enumerate(self.merge.clauses))):
            if clause.kind == kind:
                found = F.lit(number)
                choice = found if clause.condition is None else F.when(clause.condition, found).otherwise(choice)
        return choice

    def _changes(self, chosen: DataFrame, *kinds: ClauseKind) -> DataFrame:
        """The columns that tasks take. ``kinds``: those of the rows, which have the columns of these clauses."""
        number = F.col(CLAUSE_COLUMN)
        of_target = kinds != ("not_matched",)
        clauses = [(n, c) for n, c in enumerate(self.merge.clauses) if c.kind in kinds]
        action = F.lit(int(Action.KEEP))
        for n, clause in clauses:
            action = F.when(number == n, F.lit(int(clause.action))).otherwise(action)
        columns = [number]
        for name, data_type, wanted, there in (
            (FILE_COLUMN, "string", True, of_target),
            (POSITION_COLUMN, "long", True, of_target),
            (ROW_ID_COLUMN, "long", self.row_ids, of_target),
        ):
            if wanted:
                columns.append(F.col(name) if there else F.lit(None).cast(data_type).alias(name))
        if self.with_source_rows or self.with_inserted_rows:
            columns.append(self._source_row(kinds).alias(SOURCE_ROW_COLUMN))
        columns.append(action.cast("tinyint").alias(ACTION_COLUMN))
        columns += self._new([(n, c) for n, c in clauses if c.values], number)
        if self.with_old:
            for i, old in enumerate(self.merge.old):
                value = old if of_target else F.lit(None)
                columns.append(value.cast(self.types[i]).alias(f"{OLD_PREFIX}{i}"))
        return chosen.select(*columns)

    def _source_row(self, kinds: Sequence[ClauseKind]) -> Column:
        row, none = F.col(SOURCE_ROW_COLUMN), F.lit(None).cast("long")
        if kinds == ("not_matched",):
            return row if self.with_inserted_rows else none
        if "matched" not in kinds:
            return none
        if self.with_source_rows:
            return row
        return F.when(F.col(POSITION_COLUMN).isNull(), row) if "not_matched" in kinds else none

    def _new(self, clauses: Sequence[tuple[int, Clause[Column]]], number: Column) -> list[Column]:
        """The new values of rows, for the columns that any clause of the merge sets."""
        columns = []
        for i, data_type in enumerate(self.types):
            if not any(clause.values and clause.values[i] is not None for clause in self.merge.clauses):
                continue
            value = F.lit(None).cast(data_type)
            for n, clause in clauses:
                new = clause.values[i]
                if new is not None:
                    value = F.when(number == n, new).otherwise(value)
            columns.append(value.alias(f"{NEW_PREFIX}{i}"))
        return columns


def union(frames: Sequence[DataFrame]) -> DataFrame:
    """All rows of the frames, whose columns are the same."""
    return reduce(lambda one, other: one.unionAll(other), frames)
