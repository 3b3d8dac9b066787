"""PySpark's own log of errors, while a call of this package runs.

PySpark logs a record whenever it makes an exception of an error of the JVM or of a server. A command may ask Spark more
than once, of frames with columns that the user never sees.

Invariant: a call that raises an error of Spark logs one record, as a call of Spark does, and a call that succeeds none.
No record shows a column that only a frame of this package has. Other threads log as usual.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger

from delta_pyds.errors import DeltaError

# PySpark's own loggers, as its exceptions name them
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
OWN_COLUMNS = "_deltapy_"

_held: ContextVar[list[logging.LogRecord] | None] = ContextVar("delta_pyds_held_records", default=None)


@contextmanager
def one_record_of_an_error() -> Iterator[None]:
    """Hold PySpark's records until the call ends; if it raises an error of Spark, the last one is logged."""
    if _held.get() is not None:
        yield
        return
    for name in _LOGGERS:
        PySparkLogger.getLogger(name).addFilter(_hold)  # adds it once
    records: list[logging.LogRecord] = []
    token = _held.set(records)
    try:
        yield
    except Exception as error:
        _held.set(None)  # what is logged now is not held
        if records and _came_of_spark(error):
            _log(records[-1], error)
        raise
    finally:
        _held.reset(token)


def _hold(record: logging.LogRecord) -> bool:
    records = _held.get()
    if records is None:
        return True
    records.append(record)
    return False


def _log(record: logging.LogRecord, error: Exception) -> None:
    raised = record.exc_info[1] if record.exc_info else None
    if OWN_COLUMNS in record.getMessage() or OWN_COLUMNS in str(raised):
        record.msg, record.args = str(error), ()
        record.exc_info = (type(error), error, error.__traceback__)
    logging.getLogger(record.name).handle(record)


def _came_of_spark(error: BaseException | None) -> bool:
    """Whether an error is one of Spark, or was raised while one was handled."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, PySparkException) and not isinstance(error, DeltaError):
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False
