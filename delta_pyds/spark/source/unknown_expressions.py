"""Refusals of expressions that only a session can compute. They name a call that has a session."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from delta_pyds.errors import UNKNOWN_EXPRESSION, ExpressionError

BY_WRITE = "delta_pyds.write(df, path) lets the session compute it."
BY_BATCH = "Write each batch with delta_pyds.write(df, path) in foreachBatch: there the session computes it."


@contextmanager
def naming_what_computes(way: str) -> Iterator[None]:
    """Plan a write without a session. The error for an expression that only Spark supports names another way to write.

    Raises: ExpressionError, which keeps code and parameters.
    """
    try:
        yield
    except ExpressionError as e:
        if UNKNOWN_EXPRESSION not in e.parameters:
            raise
        message = f"{e.message} {way}"
        raise ExpressionError(message, code=e.code, multiline=e.multiline, **e.parameters) from None
