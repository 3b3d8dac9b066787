"""Rows of a frame as rows of the table, over which Spark computes the table's expressions.

Invariants: a step sees the table's columns by their names, converted as they will be stored. Other columns of the frame
have names that no expression can have. The order is that of ``data.write.ingest``: given columns and defaults,
generated columns, null for empty texts of partition columns, then the rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as spark_types

from delta_pyds.errors import ExpressionError
from delta_pyds.protocol.quoting import quote_name
from delta_pyds.protocol.schema import BINARY, STRING
from delta_pyds.spark.row_changes.stored_values import spark_field, stored
from delta_pyds.spark.row_changes.table_expression import Trial, try_expressions
from delta_pyds.table.definition.spark_expressions import named_columns
from delta_pyds.tasks.changed_rows import CHECK_PREFIX
from delta_pyds.tasks.write_state import Check, SparkExpression, WriteState

_WHAT = {
    "check": "the CHECK constraint '{}'",
    "invariant": "the invariant of column '{}'",
    "replace_where": "the option {}",
    "generated": "the generated column '{}'",
    "default": "the default of column '{}'",
}


@dataclass(frozen=True)
class Brought:
    """The values of a column in a frame: position and type. ``when``: the position of a boolean column that marks
    the rows with a value; None for all rows.
    """

    position: int
    data_type: spark_types.DataType
    when: int | None = None


class ComputedRows:
    """The rows of ``frame``, to compute expressions of the table over them.

    ``write``: how missing columns are made. ``brought``: by position in its schema. ``written``: the position of a
    boolean column that marks the rows to compute; None for all.
    """

    def __init__(
        self, frame: DataFrame, write: WriteState, brought: dict[int, Brought], *, written: int | None = None
    ) -> None:
        self._spark = frame.sparkSession
        self._write = write
        self._brought = brought
        self._written = written
        self._prefix = "_deltapy_in_"
        while any(name.lower().startswith(self._prefix) for name in write.schema.names):
            self._prefix += "_"
        self._width = len(frame.columns)
        self._frame = frame.toDF(*(f"{self._prefix}{n}" for n in range(self._width)))
        self._types = [spark_field(field) for field in write.schema]
        # the type that Spark gives an expression, by kind and name
        self._found: dict[tuple[str, str], spark_types.DataType] = {}

    @staticmethod
    def names_of(checks: Sequence[Check]) -> list[str]:
        """The names of the columns of the checks that Spark evaluates, in their order."""
        return [f"{CHECK_PREFIX}{n}" for n, c in enumerate(checks) if isinstance(c.expression, SparkExpression)]

    def with_columns(self, made: Sequence[int], checks: Sequence[Check]) -> DataFrame:
        """The frame's columns, then the values of the columns ``made``, then whether the rows satisfy the checks.

        The names of the result have no meaning.
        """
        rules = [check for check in checks if isinstance(check.expression, SparkExpression)]
        needed = self._needed(made, rules)
        generated = [i for i in needed if self._is_generated(i)]
        self._try(needed, rules)
        first = [self._first(i) for i in needed if i not in generated]
        rows = self._frame.select(*self._unchanged(), *(c for c in first if c is not None))
        if generated:
            rows = rows.select("*", *(self._generated(i).alias(self._name(i)) for i in generated))
        present = set(rows.columns)
        rows = rows.select(*self._unchanged(), *(self._stored_in_file(i) for i in needed if self._name(i) in present))
        return rows.select(
            *self._unchanged(),
            *(F.col(quote_name(self._name(i))) for i in made),
            *(self._verdict(check) for check in rules),
        )

    # --- which columns

    def _needed(self, made: Iterable[int], rules: Sequence[Check]) -> list[int]:
        """The columns to make, those that an expression may name, and those on which these depend."""
        schema = self._write.schema
        wanted = {name for rule in rules for name in (*named_columns(rule.expression.sql, schema), rule.name)}
        waiting = {i for i, name in enumerate(schema.names) if name in wanted} | set(made)
        needed: set[int] = set()
        while waiting:
            i = waiting.pop()
            needed.add(i)
            sql = None if self._is_brought(i) else self._sql(i)
            if sql is not None:
                named = named_columns(sql, schema)
                waiting |= {j for j, name in enumerate(schema.names) if name in named} - needed
        return sorted(needed)

    def _is_brought(self, i: int) -> bool:
        """Whether all rows bring the column."""
        return i in self._brought and self._brought[i].when is None

    def _is_generated(self, i: int) -> bool:
        return self._write.columns[i].source == "generated" and not self._is_brought(i)

    def _sql(self, i: int) -> str | None:
        """The expression of a column for rows that do not bring it."""
        source = self._write.columns[i]
        expression = source.computed or source.expression
        return None if expression is None else expression.sql

    def _name(self, i: int) -> str:
        return self._write.schema.names[i]

    # --- their values

    def _unchanged(self) -> list[Column]:
        return [F.col(f"{self._prefix}{n}") for n in range(self._width)]

    def _first(self, i: int) -> Column | None:
        """A column that is brought, null, or a default; None for identity values, which tasks make."""
        source = self._write.columns[i]
        if source.source == "identity" and i not in self._brought:
            return None
        if self._is_brought(i):
            value = self._given(i)
        else:
            sql = self._sql(i)
            value = F.lit(None) if sql is None else self._value(i, sql, "default")
            value = self._unless_given(i, value.cast(self._types[i].dataType))
        return value.alias(self._name(i))

    def _generated(self, i: int) -> Column:
        sql = self._sql(i)
        assert sql is not None
        return self._unless_given(i, self._value(i, sql, "generated"))

    def _given(self, i: int) -> Column:
        brought = self._brought[i]
        value = F.col(f"{self._prefix}{brought.position}")
        return stored(value, brought.data_type, self._write.schema.fields[i])

    def _unless_given(self, i: int, value: Column) -> Column:
        brought = self._brought.get(i)
        if brought is None or brought.when is None:
            return value
        return F.when(F.col(f"{self._prefix}{brought.when}"), self._given(i)).otherwise(value)

    def _value(self, i: int, sql: str, kind: str) -> Column:
        """An expression of the table, as a value of the column ``i``."""
        value = self._typed(i, sql, kind)
        return self._where_written(stored(value, self._types[i].dataType, self._write.schema.fields[i]))

    def _typed(self, i: int, sql: str, kind: str) -> Column:
        wanted = self._types[i].dataType
        same = self._found[kind, self._name(i)].simpleString() == wanted.simpleString()
        return F.expr(sql) if same else F.expr(sql).cast(wanted)

    def _where_written(self, value: Column) -> Column:
        return value if self._written is None else F.when(F.col(f"{self._prefix}{self._written}"), value)

    def _stored_in_file(self, i: int) -> Column:
        """The column with null for an empty text of a partition: the log has the same value for both."""
        name, field = self._name(i), self._write.schema.fields[i]
        value = F.col(quote_name(name))
        if name in self._write.partition_columns and field.data_type in (STRING, BINARY):
            value = F.when(F.octet_length(value) > 0, value)
        return value.alias(name)

    # --- the rules

    def _verdict(self, check: Check) -> Column:
        sql = check.expression.sql
        if check.kind != "generated":
            return self._where_written(F.expr(sql).cast("boolean"))
        i = self._write.schema.names.index(check.name)
        verdict = F.col(quote_name(check.name)).eqNullSafe(self._typed(i, sql, "generated"))
        when = self._brought[i].when
        if when is not None:
            verdict = ~F.coalesce(F.col(f"{self._prefix}{when}"), F.lit(False)) | verdict
        return self._where_written(verdict)

    # --- the trial of all expressions

    def _try(self, needed: Sequence[int], rules: Sequence[Check]) -> None:
        """Try all expressions, those over the same columns together. Raises: see ``table_expression``."""
        numbered = self._numbered()
        sources = list(enumerate(self._write.columns))
        defaults = [(i, sql) for i in needed if not self._is_brought(i) and (sql := self._sql(i)) is not None]
        made = {("generated" if self._is_generated(i) else "default", self._name(i)): (i, sql) for i, sql in defaults}
        compared = {
            ("generated", r.name): (self._write.schema.names.index(r.name), r.expression.sql)
            for r in rules
            if r.kind == "generated"
        }
        self._try_over([], {k: self._trial(k, *v, False) for k, v in made.items() if k[0] == "default"})
        plain = [i for i, s in sources if s.source != "generated" and i not in numbered]
        of_columns = {k: self._trial(k, *v, False) for k, v in made.items() if k[0] == "generated"}
        of_columns |= {k: self._trial(k, *v, True) for k, v in compared.items()}
        self._try_over(plain, of_columns)
        conditions = [rule for rule in rules if rule.kind != "generated"]
        visible = [i for i, _ in sources if i not in numbered]
        for of_user in (False, True):
            some = [r for r in conditions if (r.kind == "replace_where") == of_user]
            self._try_over(visible, {(r.kind, r.name): self._condition(r, of_user) for r in some})
        for rule in conditions:
            self._check_boolean(rule, self._found[rule.kind, rule.name])

    def _condition(self, check: Check, of_user: bool) -> Trial:
        return Trial(check.expression.sql, self._what(check.kind, check.name), lambda value: value, of_user)

    def _trial(self, key: tuple[str, str], i: int, sql: str, compared: bool) -> Trial:
        """``compared``: the value is compared with those that rows bring, which not every type allows."""
        wanted = self._types[i].dataType

        def use(value: Column) -> Column:
            value = value.cast(wanted)
            return F.lit(None).cast(wanted).eqNullSafe(value) if compared else value

        return Trial(sql, self._what(*key), use)

    def _try_over(self, visible: Sequence[int], trials: dict[tuple[str, str], Trial]) -> None:
        if trials:
            schema = spark_types.StructType([self._types[i] for i in visible])
            found = try_expressions(self._spark, schema, list(trials.values()))
            self._found |= zip(trials, found, strict=True)

    def _check_boolean(self, check: Check, found: spark_types.DataType) -> None:
        if not isinstance(found, (spark_types.BooleanType, spark_types.NullType)):
            raise ExpressionError(
                f"{self._what(check.kind, check.name)}, {check.expression.sql}, is of type "
                f"{found.simpleString().upper()}, not BOOLEAN.",
                code="DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN",
                expression=check.expression.sql,
            )

    def _numbered(self) -> set[int]:
        """The identity columns whose values the tasks make: Spark does not know them."""
        columns = enumerate(self._write.columns)
        return {i for i, source in columns if source.source == "identity" and not self._is_brought(i)}

    def _what(self, kind: str, name: str) -> str:
        return f"{_WHAT[kind].format(name)} of table {self._write.table_root}"
