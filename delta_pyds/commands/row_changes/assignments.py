"""The values that an update assigns to columns, bound and of the columns' types.

Reference: a value is cast to the column's type by ANSI rules, whatever Spark's store assignment would allow (a text
to a number too) and in every session, where ``spark.sql.storeAssignmentPolicy`` is ANSI.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.errors import ColumnNotFoundError, ExpressionError, UserError
from delta_pyds.expr.functions.session_context import SessionContext
from delta_pyds.expr.nodes import Expr, references, type_of
from delta_pyds.protocol.features import Feature
from delta_pyds.protocol.schema import (
    GENERATION_EXPRESSION,
    IDENTITY_START,
    VARIANT,
    VOID,
    ArrayType,
    MapType,
    StructField,
    StructType,
    display,
    nullable_throughout,
)
from delta_pyds.table.definition.ingest_plan import IngestPlan, plan_ingest
from delta_pyds.table.definition.session_expressions import parse_session_expression
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.tasks.write_state import ColumnSource, SessionExpression

Assigned = tuple[tuple[int, ColumnSource], ...]


def plan_assignments(
    snapshot: Snapshot, assignments: Mapping[str, str], options: CommandOptions
) -> tuple[Assigned, IngestPlan]:
    """The assigned columns by position, and how rows with their new values become rows of the table.

    Raises: ExpressionError for what our evaluator does not know exactly; ColumnNotFoundError; UserError for a column
        that is assigned twice, or that takes no values (DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED).
    """
    schema = snapshot.schema
    assigned: dict[int, ColumnSource] = {}
    for name, text in assignments.items():
        field = _column(name, schema)
        position = schema.names.index(field.name)
        if position in assigned:
            raise UserError(
                f"the update assigns to the column '{field.name}' twice: leave one of the values.",
                code="DELTA_CONFLICT_SET_COLUMN",
                column=field.name,
            )
        if IDENTITY_START in field.metadata and snapshot.configuration.supports(Feature.IDENTITY_COLUMNS):
            raise UserError(
                f"the column '{field.name}' of table {snapshot.table_root} is an identity column, whose values cannot "
                "be updated.",
                code="DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED",
                column=field.name,
            )
        assigned[position] = ColumnSource(field, "generated", expression=_value(text, field, schema, options))
    return tuple(sorted(assigned.items())), _ingest(snapshot, {f.field.name for f in assigned.values()}, options)


def _column(name: str, schema: StructType) -> StructField:
    plain = name[1:-1].replace("``", "`") if len(name) > 2 and name[0] == name[-1] == "`" else name
    field = schema.find(plain)
    if field is None or ("." in plain and plain == name):
        if "." in name or "`" in plain:
            raise ExpressionError(f"an assignment to '{name}', a field inside a column, is left to Spark.", column=name)
        raise ColumnNotFoundError(
            f"the update assigns to the column '{name}', and the table has only {', '.join(schema.names)}.", column=name
        )
    return field


def _value(text: str, field: StructField, schema: StructType, options: CommandOptions) -> SessionExpression:
    now = options.now_micros
    expression = parse_session_expression(text, schema, time_zone=options.time_zone, now_micros=now)
    tree: Expr | None = expression.ansi if options.ansi else expression.legacy
    if tree is None:
        raise ExpressionError(expression.legacy_refusal, expression=text)
    given, wanted = type_of(tree), field.data_type
    if given == VOID or nullable_throughout(given) == nullable_throughout(wanted):
        return expression
    if any(isinstance(t, (StructType, ArrayType, MapType)) or t == VARIANT for t in (given, wanted)):
        raise ExpressionError(
            f"a value of type {display(given).upper()} for the column '{field.name}' of type "
            f"{display(wanted).upper()} is left to Spark.",
            column=field.name,
        )
    storing = SessionContext(time_zone=options.time_zone, ansi=True, now_micros=now)
    stored = storing.store(tree, wanted, field.name)
    zoned = expression.uses_time_zone or storing.zone.used
    return replace(expression, ansi=stored, legacy=stored, uses_time_zone=zoned)


def _ingest(snapshot: Snapshot, assigned: set[str], options: CommandOptions) -> IngestPlan:
    """All columns come with the rows, but generated ones of which an assigned column is a part: those are made anew."""
    configuration = snapshot.configuration

    def supports(feature: str) -> bool:
        # an updated row keeps its identity values: to it these are columns like others
        return feature != Feature.IDENTITY_COLUMNS and configuration.supports(feature)

    def plan(incoming: tuple[StructField, ...]) -> IngestPlan:
        return plan_ingest(
            configuration.schema,
            configuration=configuration.configuration,
            incoming=StructType(incoming),
            time_zone=options.time_zone,
            supports=supports,
            table=snapshot.table_root,
        )

    schema = configuration.schema
    generated = [f for f in schema if GENERATION_EXPRESSION in f.metadata]
    if not generated or not configuration.supports(Feature.GENERATED_COLUMNS):
        return plan(schema.fields)
    without = plan(tuple(f for f in schema if f not in generated))
    depends = {
        source.field.name
        for source in without.columns
        if source.expression is not None
        and source.source == "generated"
        and any(path[0] in assigned for path in references(source.expression.ansi))
    }
    return plan(tuple(f for f in schema if f.name in assigned or f.name not in depends))
