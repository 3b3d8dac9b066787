"""The bound condition of a command, and the files that may hold rows for which it is true."""

from __future__ import annotations

from dataclasses import replace

from delta_pyds.commands.row_changes.plan import BATCH_ROWS, CommandOptions, scan_of
from delta_pyds.errors import ExpressionError
from delta_pyds.expr.nodes import FALSE, TRUE, Expr, type_of
from delta_pyds.expr.parse import parse_expression, parse_predicate
from delta_pyds.protocol.schema import BOOLEAN, VOID, StructType, display
from delta_pyds.table.scan.scan import Scan
from delta_pyds.table.snapshot import Snapshot


def bind_condition(condition: str | None, schema: StructType, options: CommandOptions) -> Expr:
    """Bind the condition exactly as the session understands it; TRUE if it is None.

    Raises: ExpressionError for expressions that our evaluator does not support exactly; ColumnNotFoundError.
    """
    if condition is None or not condition.strip():
        return TRUE
    try:
        return parse_predicate(condition, schema, time_zone=options.time_zone).expr
    except ExpressionError as refused:
        if refused.code != ExpressionError.default_code:
            raise
    # our evaluator supports more expressions than skipping does
    bound = parse_expression(
        condition, schema, time_zone=options.time_zone, ansi=options.ansi, now_micros=options.now_micros
    )
    found = type_of(bound.expr)
    if found == VOID:
        return FALSE
    if found != BOOLEAN:
        raise ExpressionError(
            f"the condition {condition} is of type {display(found).upper()}, not BOOLEAN.",
            code="DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN",
            expression=condition,
        )
    return bound.expr


def scan_where(snapshot: Snapshot, predicate: Expr, options: CommandOptions) -> Scan:
    """A scan of all columns, and of row ids if the table has them, for the rows that satisfy the predicate."""
    scan = scan_of(snapshot, options, (predicate,))
    configuration = snapshot.configuration
    state = replace(
        scan.state,
        predicate=None if predicate == TRUE else predicate,
        # a user's scan names the row id columns differently, and the table may have columns with those names
        row_ids=configuration.row_id_columns() if configuration.has_row_tracking else None,
        batch_rows=BATCH_ROWS,
    )
    return replace(scan, selection=replace(scan.selection, state=state))
