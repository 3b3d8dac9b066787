"""The conjuncts of a statement that rule files of one table out.

Invariant: each name in such a conjunct certainly means a column of the table, and the conjunct means to ``expr.parse``
what it means to Spark. Any other conjunct is left to Spark alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, partial
from itertools import pairwise

from pyspark.sql import SparkSession

from delta_pyds.errors import ExpressionError
from delta_pyds.expr.nodes import Predicate, references
from delta_pyds.expr.parser.lexer import Token, tokenize
from delta_pyds.protocol.schema import StructType
from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.planning.pruning import Pruning
from delta_pyds.spark.row_changes.expressions import conjunct_texts, has_plain_settings, supported
from delta_pyds.statements.kinds import RowConditions


class StatementPruning:
    """The pruning of the tables of one statement. The session's settings are read once."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def by(self, conditions: RowConditions | None) -> Pruning:
        """The pruning of a table by conditions on its rows."""
        return Pruning(partial(self._conjuncts, conditions))

    @cached_property
    def _has_plain_settings(self) -> bool:
        return has_plain_settings(self._spark)

    def _conjuncts(
        self, conditions: RowConditions | None, schema: StructType, time_zone: str
    ) -> Iterator[tuple[str, Predicate]]:
        if conditions is None:
            return
        # a statement may have a conjunct twice, for ON and for WHERE
        texts = dict.fromkeys(text for condition in conditions.texts for text in conjunct_texts(condition))
        own = {plain: text for text in texts if (plain := _of_table(text, conditions, schema)) is not None}
        # Spark Connect analyses a query again when its rows are read
        later = is_remote(self._spark)
        for plain, predicate in supported(self._spark, own, schema, time_zone, later=later):
            if not self._has_plain_settings:
                return
            if not _may_be_merged(own[plain], predicate, conditions.merged):
                yield plain, predicate


def _of_table(text: str, conditions: RowConditions, schema: StructType) -> str | None:
    """The conjunct without the table's alias; None if a name in it is certainly not, or may not be, the table's.

    A name that the FROM list has is a table's before it is a column with fields. A column that two tables have is
    ambiguous, which Spark reports.
    """
    try:
        tokens = tokenize(text)
    except ExpressionError:
        return None
    alias = None if conditions.alias is None else conditions.alias.lower()
    pieces, end = [], 0
    for first, last in _chains(tokens):
        parts = [token.value.lower() for token in tokens[first : last + 1 : 2]]
        if not tokens[last + 1].is_symbol("(") and parts[0] == alias and len(parts) > 1:
            if schema.find(parts[1]) is None:
                return None
            pieces.append(text[end : tokens[first].start])
            end = tokens[first + 2].start
            parts = parts[1:]
        if not conditions.names.isdisjoint(parts[:-1]):
            return None
    return "".join([*pieces, text[end:]])


def _chains(tokens: list[Token]) -> Iterator[tuple[int, int]]:
    """The first and the last token of names with dots between them."""
    index = 0
    while index < len(tokens):
        if not tokens[index].is_name:
            index += 1
            continue
        last = index
        while tokens[last + 1].is_symbol(".") and tokens[last + 2].is_name:
            last += 2
        yield index, last
        index = last + 1


def _may_be_merged(text: str, predicate: Predicate, merged: frozenset[str] | None) -> bool:
    """Whether a column without a qualifier may be a column of both sides of a join; see ``RowConditions``."""
    used = {path[0].lower() for path in references(predicate.expr)}
    used &= used if merged is None else merged
    if not used:
        return False
    tokens = [Token("end", "", 0), *tokenize(text)]
    return any(
        token.is_name and token.value.lower() in used and not before.is_symbol(".")
        for before, token in pairwise(tokens)
    )
