"""``df.mergeInto("delta.`/data/events`", condition)``: Spark's own merge, as ``DeltaTable.merge`` does it.

Invariant: nothing is looked at before ``merge()``. Until then a writer keeps what it was told.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from delta_pyds.errors import ExpressionError, UserError
from delta_pyds.expr.parser.lexer import Token, tokenize
from delta_pyds.spark.delta_table.spark_errors import errors_of_spark
from delta_pyds.spark.delta_table.table import DeltaTable
from delta_pyds.spark.install.batch_reads import path_if_ours
from delta_pyds.spark.install.formats import prepare
from delta_pyds.spark.install.names import named_if_ours
from delta_pyds.spark.install.patches import Method, Replacement
from delta_pyds.spark.row_changes.column_text import text_of_column

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from delta_pyds.spark.delta_table.merge_builder import DeltaMergeBuilder

_FORMATS = ("delta", "deltapy")
_CATALOG = "spark_catalog"


class MergeIntoWriter:
    """What ``df.mergeInto`` gives for a table of ours: PySpark's writer of that name, with its methods.

    Names in conditions and values are as Spark has them: those of the source, and those of the table, bare or behind
    ``/data/events`` or ``delta.`/data/events``` in backquotes. Raises, by ``merge``: what ``DeltaTable.merge`` raises.
    """

    def __init__(self, frame: DataFrame, path: str, condition: Any, named: str | None = None) -> None:
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
            table = DeltaTable.forPath(spark, self._path) if named is None else DeltaTable.forName(spark, named)
            table = table.alias(self._path)
            builder = table.merge(self._frame, self._named(self._condition))
            if self._evolves:
                builder = builder.withSchemaEvolution()
            for clause in self._clauses:
                builder = self._with(builder, clause)
        builder.execute()

    def _with(self, builder: DeltaMergeBuilder, clause: _Clause) -> DeltaMergeBuilder:
        condition = None if clause.condition is None else self._named(clause.condition)
        method: Callable[..., DeltaMergeBuilder] = getattr(builder, clause.method)
        if clause.values is None:
            return method(condition)
        values = {bare_names(key, self._path): self._named(value) for key, value in clause.values.items()}
        argument = "values" if "Insert" in clause.method else "set"
        return method(condition=condition, **{argument: values})

    def _named(self, given: Any) -> Any:
        """A Column as ``DeltaTable`` takes it: of three parts of the table's name Spark would find none."""
        column: Column = F.col(given) if isinstance(given, str) else given
        text = text_of_column(column) if hasattr(column, "_jc") or hasattr(column, "_expr") else None
        renamed = None if text is None else bare_names(text, self._path, keep=True)
        return column if renamed == text else renamed


@dataclass(frozen=True)
class _Clause:
    """``method``: of ``DeltaMergeBuilder``. ``values``: columns to values; None for all of them, or for a delete."""

    method: str
    condition: Any
    values: dict[str, Any] | None = None


@dataclass(frozen=True)
class _Actions:
    writer: MergeIntoWriter
    condition: Any

    def _add(self, method: str, values: Any = None) -> MergeIntoWriter:
        # as Spark has it: no values are those of the source's columns of the same names
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
        """Raises: UserError, for there is no row of the source to take values from."""
        with errors_of_spark():
            raise UserError(
                "whenNotMatchedBySource() takes update(...) and delete(): a row that no row of the source matches "
                "cannot be updated from one."
            )

    def update(self, assignments: dict[str, Column]) -> MergeIntoWriter:
        return self._add("whenNotMatchedBySourceUpdate", assignments) if assignments else self.updateAll()

    def delete(self) -> MergeIntoWriter:
        return self._add("whenNotMatchedBySourceDelete")


def bare_names(text: str, path: str, *, keep: bool = False) -> str:
    """The text with ``spark_catalog.delta.`/path`.x`` as ``x``; with ``keep`` as ```/path`.x``, which an alias has.

    A text that is none of SQL is as it was.
    """
    try:
        tokens = tokenize(text)
    except ExpressionError:
        return text
    cuts: list[tuple[int, int]] = []
    for number, token in enumerate(tokens[:-2]):
        if token.kind != "name" or token.value != path or not tokens[number + 1].is_symbol("."):
            continue
        first = number
        for part in (*_FORMATS, _CATALOG):
            if _is_before(tokens, first, part) and (part == _CATALOG) == (first != number):
                first -= 2
        if first and tokens[first - 1].is_symbol("."):
            continue
        cuts.append((tokens[first].start, token.start if keep else tokens[number + 2].start))
    for start, end in reversed(cuts):
        text = text[:start] + text[end:]
    return text


def _is_before(tokens: list[Token], number: int, word: str) -> bool:
    """Whether ``word.`` stands before the token."""
    if number < 2 or not tokens[number - 1].is_symbol("."):
        return False
    found = tokens[number - 2]
    return found.kind in ("word", "name") and found.value.lower() == word


def _merge_into_method(original: Method) -> Method:
    def merge_into(self: Any, table: str, condition: Any) -> Any:
        spark = self.sparkSession
        prepare(spark)
        path = path_if_ours(spark, table)
        if path is not None:
            return MergeIntoWriter(self, path, condition)
        named = named_if_ours(spark, table)
        # columns of the table may be called by its name
        return (
            original(self, table, condition) if named is None else MergeIntoWriter(self, named.table, condition, table)
        )

    return merge_into


FRAME: dict[str, Replacement] = {"mergeInto": _merge_into_method}
