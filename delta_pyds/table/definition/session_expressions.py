"""Expressions of a table, bound with and without ANSI mode."""

from __future__ import annotations

import time

from delta_pyds.errors import ExpressionError
from delta_pyds.expr.parse import Bound, parse_expression
from delta_pyds.protocol.schema import StructType
from delta_pyds.tasks.write_state import SessionExpression


def parse_session_expression(
    text: str, schema: StructType, *, time_zone: str, now_micros: int | None = None
) -> SessionExpression:
    """Bind a Spark SQL expression with and without ANSI mode: only a task knows its session's setting.

    Args:
        now_micros: the value of ``current_timestamp()`` and the base of ``current_date()``, in microseconds since
            1970; by default the time of the call. Both bindings get the same.
    Raises:
        ExpressionError: it cannot be bound in ANSI mode; names the function or the construct. If only binding without
            ANSI mode fails, the result has a ``legacy_refusal`` instead.
        ColumnNotFoundError: it names a column that does not exist.
    """
    now = time.time_ns() // 1000 if now_micros is None else now_micros
    ansi = parse_expression(text, schema, time_zone=time_zone, ansi=True, now_micros=now)
    legacy: Bound | None = None
    refusal = ""
    try:
        legacy = parse_expression(text, schema, time_zone=time_zone, ansi=False, now_micros=now)
    except ExpressionError as e:
        refusal = str(e)
    return SessionExpression(
        sql=text,
        ansi=ansi.expr,
        legacy=None if legacy is None else legacy.expr,
        legacy_refusal=refusal,
        uses_time_zone=ansi.uses_time_zone or (legacy is not None and legacy.uses_time_zone),
        reads_clock=not ansi.deterministic or (legacy is not None and not legacy.deterministic),
    )
