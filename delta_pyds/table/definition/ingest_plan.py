"""Plans how incoming rows become rows of the table: the origin of each column, and the constraints on rows.

Invariant: before any byte is written, the plan refuses rows that do not fit the table and expressions that cannot be
evaluated exactly. With a Spark session, the session computes the expressions that our own evaluator does not support.

Protocol: "Column Invariants", "CHECK Constraints", "Generated Columns",
"Default Columns", "Identity Columns".
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from delta_pyds.errors import (
    UNKNOWN_EXPRESSION,
    ColumnNotFoundError,
    ConstraintViolationError,
    DeltaError,
    ExpressionError,
    ProtocolError,
    UserError,
)
from delta_pyds.expr.nodes import references, type_of
from delta_pyds.expr.types import is_comparable
from delta_pyds.protocol.char_types import text_limits
from delta_pyds.protocol.features import Feature
from delta_pyds.protocol.foreign_json import decode_json
from delta_pyds.protocol.properties import CONSTRAINT_PREFIX
from delta_pyds.protocol.schema import (
    BOOLEAN,
    COLLATIONS,
    CURRENT_DEFAULT,
    GENERATION_EXPRESSION,
    INVARIANTS,
    VOID,
    DataType,
    StructField,
    StructType,
    display,
    nullable_throughout,
)
from delta_pyds.table.definition.identity import identity_column
from delta_pyds.table.definition.session_expressions import parse_session_expression
from delta_pyds.table.definition.spark_expressions import named_columns, spark_expression
from delta_pyds.tasks.write_state import (
    Check,
    ColumnOrigin,
    ColumnSource,
    SessionExpression,
    SparkExpression,
)


@dataclass(frozen=True)
class IngestPlan:
    """The parts of ``WriteState`` that depend on the incoming rows.

    ``uses_time_zone``: the value of an expression depends on the session's time zone.
    """

    columns: tuple[ColumnSource, ...]
    checks: tuple[Check, ...]
    uses_time_zone: bool


def plan_ingest(
    schema: StructType,
    *,
    configuration: Mapping[str, str | None],
    incoming: StructType,
    time_zone: str,
    supports: Callable[[str], bool],
    replace_where: str | None = None,
    table: str = "",
    spark: bool = False,
) -> IngestPlan:
    """Plan the columns and checks for a table whose schema already accepted the incoming one.

    CHECK constraints and invariants are enforced even without their table feature, as the reference does.

    Our own evaluator computes an expression if it supports it both with and without ANSI mode. With ``spark``, the
    session computes the other expressions (``spark.row_changes.computed``). It also computes each expression that reads
    the clock, so values and checks of a row see one moment. The rows then contain the results: defaults and generated
    columns after the incoming columns, in the table's order (``ColumnSource.computed``), and whether each such check
    passes (``Check``).

    Args:
        supports: whether the table's protocol has a feature. Without ``generatedColumns``, ``identityColumns`` or
            ``allowColumnDefaults``, the metadata of such columns is ignored.
        table: its root, for messages.
        spark: a Spark session is available.
    Raises:
        UserError: the table lacks an incoming column, or two incoming columns match one of its columns
            (DELTA_METADATA_MISMATCH, DELTA_DUPLICATE_COLUMNS_FOUND); a NOT NULL column is missing
            (DELTA_MISSING_NOT_NULL_COLUMN_VALUE); the rows have values for an identity column that is always generated
            (DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED).
        ExpressionError, ColumnNotFoundError: names the constraint or column, the table, and what cannot be evaluated.
        ProtocolError: the metadata is invalid.
    """
    planner = _Planner(schema, time_zone, supports, table, spark)
    positions = planner.positions(incoming)
    columns = _with_positions([planner.column(f, positions.get(f.name)) for f in schema], len(incoming.fields))
    checks = (
        *planner.check_constraints(configuration),
        *planner.invariants(schema),
        *planner.replaced_rows(replace_where),
        *planner.generated_checks,
    )
    expressions = [c.expression for c in columns if c.expression is not None] + [c.expression for c in checks]
    return IngestPlan(columns, checks, any(isinstance(e, SessionExpression) and e.uses_time_zone for e in expressions))


def _with_positions(columns: list[ColumnSource], given: int) -> tuple[ColumnSource, ...]:
    """The columns; those that a Spark session computes get positions after the ``given`` incoming columns."""
    placed = []
    for source in columns:
        if source.computed is not None:
            source = replace(source, input=given)
            given += 1
        placed.append(source)
    return tuple(placed)


class _Planner:
    def __init__(
        self, schema: StructType, time_zone: str, supports: Callable[[str], bool], table: str, spark: bool
    ) -> None:
        self._spark = spark
        # checks that incoming values of generated columns match their expressions, computed by a session
        self.generated_checks: list[Check] = []
        self._schema = schema
        self._time_zone = time_zone
        self._supports = supports
        self._of_table = f" of table {table}" if table else " of the table"
        self._table = table
        # one moment for the whole write, as for one query in Spark
        self._now_micros = time.time_ns() // 1000

    # incoming columns

    def positions(self, incoming: StructType) -> dict[str, int]:
        """The position of each table column among the incoming columns."""
        found: dict[str, int] = {}
        for position, field in enumerate(incoming):
            column = self._schema.find(field.name)
            if column is None:
                if field.data_type == VOID:
                    continue  # all null, so no value is lost
                table = f" {self._table}" if self._table else ""
                raise UserError(
                    f"the incoming rows have a column '{field.name}', but the table{table} has only "
                    f"{', '.join(self._schema.names)}. Leave it out, or write with the option mergeSchema.",
                    code="DELTA_METADATA_MISMATCH",
                    column=field.name,
                )
            if column.name in found:
                raise UserError(
                    f"the incoming rows have the column '{column.name}' more than once "
                    f"('{incoming.fields[found[column.name]].name}' and '{field.name}'): column names are compared "
                    "without case.",
                    code="DELTA_DUPLICATE_COLUMNS_FOUND",
                    column=column.name,
                )
            found[column.name] = position
        return found

    def column(self, field: StructField, position: int | None) -> ColumnSource:
        text_limits(field)
        if (text := self._generation_expression(field)) is not None:
            return self._computed(field, "generated", position, self._generated(field, text, position))
        identity = identity_column(field, self._of_table) if self._supports(Feature.IDENTITY_COLUMNS) else None
        if position is not None:
            if identity is not None and not identity.allow_explicit_insert:
                raise UserError(
                    f"the incoming rows have values for the column '{field.name}'{self._of_table}, which is GENERATED "
                    "ALWAYS AS IDENTITY: leave the column out.",
                    code="DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED",
                    column=field.name,
                )
            # values that users give stay, null included, and do not move the high-water mark
            return ColumnSource(field, "input", position, identity=identity)
        if identity is not None:
            return ColumnSource(field, "identity", identity=identity)
        default = field.metadata.get(CURRENT_DEFAULT) if self._supports(Feature.ALLOW_COLUMN_DEFAULTS) else None
        if default is not None:
            return self._computed(field, "default", None, self._default(field, str(default)))
        if not field.nullable and field.data_type != VOID:
            raise ConstraintViolationError(
                f"the column '{field.name}'{self._of_table} is NOT NULL, has no default, and is missing from the "
                "incoming rows.",
                code="DELTA_MISSING_NOT_NULL_COLUMN_VALUE",
                column=field.name,
            )
        return ColumnSource(field, "null")

    # generated and default columns

    def _generation_expression(self, field: StructField) -> str | None:
        text = field.metadata.get(GENERATION_EXPRESSION)
        return str(text) if text is not None and self._supports(Feature.GENERATED_COLUMNS) else None

    def _computed(
        self, field: StructField, origin: ColumnOrigin, position: int | None, by: SessionExpression | SparkExpression
    ) -> ColumnSource:
        if isinstance(by, SessionExpression):
            return ColumnSource(field, origin, position, by)
        if position is None:
            return ColumnSource(field, origin, computed=by)
        self.generated_checks.append(Check("generated", field.name, by))
        return ColumnSource(field, origin, position)

    def _generated(self, field: StructField, text: str, position: int | None) -> SessionExpression | SparkExpression:
        owner = f"the generated column '{field.name}'{self._of_table}"
        expression = self._typed(text, field.data_type, self._schema, owner)
        if isinstance(expression, SparkExpression):
            return expression
        if position is not None and (COLLATIONS in field.metadata or not is_comparable(field.data_type)):
            if self._spark:
                return spark_expression(text, self._schema, owner)
            raise ExpressionError(
                f"{owner} is of type {display(field.data_type).upper()}"
                + (" with a collation" if COLLATIONS in field.metadata else "")
                + ", whose incoming values cannot be compared with its expression here: leave the column out, and it "
                "is computed.",
                column=field.name,
                unknown_expression=text,
            )
        for path in references(expression.ansi):
            other = self._schema.find(path[0])
            if other is not None and self._generation_expression(other) is not None:
                raise ExpressionError(
                    f"{owner}, {text}, uses the generated column '{other.name}': a generated column can only use "
                    "columns that are not generated.",
                    code="DELTA_INVALID_GENERATED_COLUMN_REFERENCES",
                    column=field.name,
                )
        return expression

    def _default(self, field: StructField, text: str) -> SessionExpression | SparkExpression:
        owner = f"the default of column '{field.name}'{self._of_table}"
        return self._typed(text, field.data_type, StructType(()), owner)

    # rules

    def check_constraints(self, configuration: Mapping[str, str | None]) -> list[Check]:
        checks = []
        for key, text in sorted(configuration.items()):
            if key.lower().startswith(CONSTRAINT_PREFIX) and text is not None:
                name = key[len(CONSTRAINT_PREFIX) :]
                expression = self._condition(text, f"the CHECK constraint '{name}'{self._of_table}")
                checks.append(Check("check", name, expression))
        return checks

    def invariants(self, schema: StructType, above: str = "") -> list[Check]:
        """Invariants of columns and of nested fields in structs, named by their paths from the table's columns."""
        checks = []
        for field in schema:
            column = above + field.name
            if (text := field.metadata.get(INVARIANTS)) is not None:
                owner = f"the invariant of column '{column}'{self._of_table}"
                checks.append(Check("invariant", column, self._condition(_invariant(text, owner), owner)))
            if isinstance(field.data_type, StructType):
                checks += self.invariants(field.data_type, f"{column}.")
        return checks

    def replaced_rows(self, predicate: str | None) -> list[Check]:
        if predicate is None:
            return []
        owner = "the option replaceWhere"
        try:
            condition = self._condition(predicate, owner)
        except ExpressionError:
            if not self._spark:
                raise
            # the user's own condition may be any expression that Spark supports
            condition = SparkExpression(predicate, named_columns(predicate, self._schema))
        return [Check("replace_where", "replaceWhere", condition)]

    # expressions

    def _condition(self, text: str, owner: str) -> SessionExpression | SparkExpression:
        expression = self._parse(text, self._schema, owner)
        if isinstance(expression, SparkExpression):
            return expression
        found = type_of(expression.ansi)
        if found not in (BOOLEAN, VOID):
            raise ExpressionError(
                f"{owner}, {text}, is of type {display(found).upper()}, not BOOLEAN.",
                code="DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN",
                expression=text,
            )
        return self._parse(f"CAST(({text}) AS BOOLEAN)", self._schema, owner, text) if found == VOID else expression

    def _typed(
        self, text: str, wanted: DataType, schema: StructType, owner: str
    ) -> SessionExpression | SparkExpression:
        """The expression as a value of the column's type: cast if it has another type."""
        expression = self._parse(text, schema, owner)
        if isinstance(expression, SparkExpression):
            return expression
        if nullable_throughout(type_of(expression.ansi)) == nullable_throughout(wanted):
            return expression
        return self._parse(f"CAST(({text}) AS {display(wanted)})", schema, owner, text)

    def _parse(
        self, text: str, schema: StructType, owner: str, shown: str | None = None
    ) -> SessionExpression | SparkExpression:
        """Bind an expression. ``shown``: the original expression, which ``text`` casts."""
        sql = text if shown is None else shown
        try:
            expression = parse_session_expression(text, schema, time_zone=self._time_zone, now_micros=self._now_micros)
        except DeltaError as e:
            if self._spark:
                return spark_expression(sql, schema, owner)
            raise self._unknown(sql, owner, e) from None
        if self._spark and (expression.legacy is None or expression.reads_clock):
            return spark_expression(sql, schema, owner)
        return replace(expression, sql=sql)

    @staticmethod
    def _unknown(sql: str, owner: str, e: DeltaError) -> DeltaError:
        parameters = {**e.parameters, UNKNOWN_EXPRESSION: sql}
        if isinstance(e, ColumnNotFoundError):
            message = f"nothing can be written: {owner}, {sql}, names a column that does not exist: {e.message}"
            return ColumnNotFoundError(message, code=e.code, **parameters)
        message = f"nothing can be written: {owner}, {sql}, cannot be evaluated exactly as Spark does: {e.message}"
        return ExpressionError(message, code=e.code, multiline=e.multiline, **parameters)


def _invariant(value: Any, owner: str) -> str:
    try:
        text = decode_json(value)["expression"]["expression"]
    except (ValueError, TypeError, KeyError):
        text = None
    if not isinstance(text, str):
        raise ProtocolError(
            f'{owner} is {value!r}, not of the form {{"expression": {{"expression": "x > 3"}}}}: the condition on rows '
            "is unknown.",
            code="DELTA_UNRECOGNIZED_INVARIANT",
        )
    return text
