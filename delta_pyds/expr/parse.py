"""Spark SQL text to bound predicates and expressions: one grammar, two ways to bind it."""

from __future__ import annotations

import time
from dataclasses import dataclass

from delta_pyds.expr.binder.build import Builder
from delta_pyds.expr.binder.predicate_binding import PredicateBinder
from delta_pyds.expr.logic import as_filter
from delta_pyds.expr.nodes import Expr, Predicate, require_moderate_depth
from delta_pyds.expr.parser.grammar import PREDICATE, read_expression
from delta_pyds.protocol.schema import StructType


def parse_predicate(text: str, schema: StructType, *, time_zone: str) -> Predicate:
    """Parse and bind a Spark SQL predicate.

    Names resolve against ``schema`` without case; ``a.b`` is a nested
    field, a name with dots goes in backticks. ``time_zone`` is the session's,
    for timestamps written without a zone.

    Raises: ExpressionError (PARSE_SYNTAX_ERROR with the position,
        CAST_INVALID_INPUT, DATATYPE_MISMATCH, WRONG_NUM_ARGS, or DELTA_UNSUPPORTED_EXPRESSION
        naming the construct that cannot be evaluated exactly), ColumnNotFoundError.
    """
    builder = Builder(time_zone)
    expr = PredicateBinder(text, schema, builder).whole(read_expression(text, PREDICATE))
    require_moderate_depth(expr)
    return Predicate(as_filter(expr), builder.zone.used)


@dataclass(frozen=True)
class Bound:
    """A bound expression of any type.

    ``uses_time_zone``: its meaning depends on the session's time zone. ``deterministic``: it does not read the clock.
    One that does has the time of its binding.
    """

    expr: Expr
    uses_time_zone: bool = False
    deterministic: bool = True


def parse_expression(
    text: str, schema: StructType, *, time_zone: str, ansi: bool, now_micros: int | None = None
) -> Bound:
    """Parse and bind a Spark SQL expression of any type, for constraints, defaults and generated columns.

    ``ansi``: the session's ``spark.sql.ansi.enabled``. ``now_micros``: the value of ``current_timestamp()``
    in microseconds since 1970; by default the time of the call.

    Raises: ExpressionError (PARSE_SYNTAX_ERROR with the position, DATATYPE_MISMATCH, or
        DELTA_UNSUPPORTED_EXPRESSION naming a function that is not supported), ColumnNotFoundError.
    """
    # imported here: predicates need none of the functions
    from delta_pyds.expr.binder.binding import Binder
    from delta_pyds.expr.functions.session_context import SessionContext

    now = time.time_ns() // 1000 if now_micros is None else now_micros
    context = SessionContext(time_zone=time_zone, ansi=ansi, now_micros=now)
    expr = Binder(schema, context).bind(read_expression(text))
    require_moderate_depth(expr)
    return Bound(expr, context.zone.used, not context.clock_read)
