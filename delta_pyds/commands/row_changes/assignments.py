"""The values that an update assigns to columns: bound, and cast to the columns' types.

Reference: if ``spark.sql.storeAssignmentPolicy`` is ANSI, a value is cast to the column's type by ANSI rules, even if
the session has no ANSI mode. This includes casts that Spark's store assignment refuses (text to a number).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.row_changes.resolved import Assignment, MadeColumns
from delta_pyds.errors import ExpressionError
from delta_pyds.expr.functions.session_context import SessionContext
from delta_pyds.expr.nodes import Expr, references, type_of
from delta_pyds.protocol.features import Feature
from delta_pyds.protocol.schema import (
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
    snapshot: Snapshot, assignments: Sequence[Assignment[str]], options: CommandOptions
) -> tuple[Assigned, IngestPlan]:
    """The assigned columns by position, and the plan that turns rows with new values into rows of the table.

    Raises: ExpressionError for expressions that our evaluator does not support exactly; ColumnNotFoundError.
    """
    schema = snapshot.schema
    assigned: dict[int, ColumnSource] = {}
    for one in assignments:
        name = one.path[0]
        if len(one.path) > 1:
            raise ExpressionError(
                f"an assignment to '{'.'.join(one.path)}', a field inside a column, is left to Spark.", column=name
            )
        position = schema.names.index(name)
        field = schema.fields[position]
        assigned[position] = ColumnSource(field, "generated", expression=_value(one.value, field, schema, options))
    return tuple(sorted(assigned.items())), _ingest_plan(snapshot, {f.field.name for f in assigned.values()}, options)


def plan_updated_columns(
    snapshot: Snapshot, incoming: Sequence[StructField], options: CommandOptions, *, spark: bool = False
) -> IngestPlan:
    """The plan that turns updated rows into rows of the table. ``incoming``, ``spark``: as in ``plan_ingest``."""
    configuration = snapshot.configuration

    def supports(feature: str) -> bool:
        # an updated row keeps its identity values, like those of any other column
        return feature != Feature.IDENTITY_COLUMNS and configuration.supports(feature)

    return plan_ingest(
        configuration.schema,
        configuration=configuration.configuration,
        incoming=StructType(tuple(incoming)),
        time_zone=options.time_zone,
        supports=supports,
        table=snapshot.table_root,
        spark=spark,
    )


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


def _ingest_plan(snapshot: Snapshot, assigned: set[str], options: CommandOptions) -> IngestPlan:
    """The plan. It recomputes generated columns that depend on an assigned column; all others come with the rows."""
    schema = snapshot.schema
    generated = MadeColumns.of(snapshot.configuration).generated
    if not generated:
        return plan_updated_columns(snapshot, schema.fields, options)
    without = plan_updated_columns(snapshot, [f for f in schema if f.name not in generated], options)
    recomputed = {
        source.field.name
        for source in without.columns
        if source.expression is not None
        and source.source == "generated"
        and any(path[0] in assigned for path in references(source.expression.ansi))
    }
    return plan_updated_columns(
        snapshot, [f for f in schema if f.name in assigned or f.name not in recomputed], options
    )
