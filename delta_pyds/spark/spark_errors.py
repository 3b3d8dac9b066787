"""Errors that a program catches as with the reference: a DeltaError that is also an exception of PySpark.

``except AnalysisException`` around ``DeltaTable.forPath`` works, and so does ``except delta_pyds.TableNotFoundError``.

PySpark logs a record whenever it makes an exception of an error of the JVM or of a server. A command may ask Spark more
than once, of frames with columns that the user never sees. Invariant: a call that raises an error of Spark logs one
record, as a call of Spark does, and a call that succeeds none. No record shows a column that only a frame of this
package has. Other threads log as usual.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from pyspark.errors import (
    AnalysisException,
    ArithmeticException,
    IllegalArgumentException,
    NumberFormatException,
    ParseException,
    PySparkException,
    UnsupportedOperationException,
)
from pyspark.logger import PySparkLogger

from delta_pyds.errors import (
    ColumnNotFoundError,
    ConflictError,
    ConstraintViolationError,
    DeltaError,
    ExpressionError,
    OptionError,
    SqlSyntaxError,
    StorageError,
    UnsupportedOperationError,
    UserError,
    WorkerPythonError,
)
from delta_pyds.spark.source.error_transport import error_of

# the reference raises Spark's plain exception for conflicts and broken constraints
_KINDS: tuple[tuple[type[DeltaError], type[PySparkException]], ...] = (
    (StorageError, PySparkException),
    (ConflictError, PySparkException),
    (ConstraintViolationError, PySparkException),
    (WorkerPythonError, PySparkException),
    (UnsupportedOperationError, UnsupportedOperationException),
    (OptionError, IllegalArgumentException),
    (SqlSyntaxError, ParseException),
    (DeltaError, AnalysisException),
)
_UNSUPPORTED = frozenset(
    {
        "DELTA_CANNOT_MODIFY_APPEND_ONLY",
        "DELTA_IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE",
        "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE",
    }
)
# errors that our evaluator raises about a value of a row are not errors of analysis
_OF_VALUES: dict[str, type[PySparkException]] = {
    **dict.fromkeys(
        (
            "ARITHMETIC_OVERFLOW",
            "CAST_OVERFLOW",
            "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE",
            "DIVIDE_BY_ZERO",
            "NUMERIC_VALUE_OUT_OF_RANGE",
            "REMAINDER_BY_ZERO",
        ),
        ArithmeticException,
    ),
    "CAST_INVALID_INPUT": NumberFormatException,
}
_CODE = re.compile(r"\[[A-Z0-9_.]+\]\s*")
# after the sentence come the position in the text that Spark was given, and a plan
_AFTER_SENTENCE = re.compile(r"\s*SQLSTATE: \w{5}.*|; line \d+ pos \d+.*", re.DOTALL)
_NO_PROPOSALS = re.compile(r" Did you mean one of the following\? \[\]\.")
OWN_COLUMNS = "_deltapy_"
# our own column in a list, with the comma on one side of it, or alone in its brackets
_OWN_COLUMN = r"(?:`[^`]*`\.)*[`\"]" + OWN_COLUMNS + r"\w*[`\"]"
_OWN_OF_LIST = re.compile(rf"{_OWN_COLUMN}, |, {_OWN_COLUMN}|(?<=\[){_OWN_COLUMN}(?=\])|\A{_OWN_COLUMN}\Z")
# arguments of a DeltaError
_TAKEN = ("message", "code", "multiline")
# PySpark's own loggers, as its exceptions name them
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_held: ContextVar[list[logging.LogRecord] | None] = ContextVar("delta_pyds_held_records", default=None)
_classes: dict[tuple[type[DeltaError], type[PySparkException]], type[Any]] = {}


@contextmanager
def errors_of_spark() -> Iterator[None]:
    """Raise a DeltaError, from here or from a worker of Spark, as an error that PySpark's exception classes catch too.

    Spark's errors about an internal DataFrame lose its plan and columns, and are logged once.
    """
    with one_record_of_an_error():
        try:
            yield
        except Exception as e:
            error = e if isinstance(e, DeltaError) else error_of(e)
            if error is None and isinstance(e, AnalysisException) and OWN_COLUMNS in str(e):
                error = explained(e)
            if error is None or isinstance(error, PySparkException):
                raise
            same = as_spark_error(error)
            raise same.with_traceback(error.__traceback__) from (error.__cause__ if error is e else None)


def explained(error: AnalysisException, place: str = "") -> UserError:
    """The sentence of an error of Spark's analysis, with its condition and parameters.

    Invariant: it contains neither the plan of an internal DataFrame nor a column that only such a DataFrame has.
    ``place``: the position of the error in the user's text, as ``marked_position`` shows it.
    """
    sentence = _AFTER_SENTENCE.sub("", _CODE.sub("", str(error), count=1), count=1)
    named = error.getMessageParameters() or {}
    named = {key: _OWN_OF_LIST.sub("", value) for key, value in named.items()}
    sentence = _NO_PROPOSALS.sub("", _OWN_OF_LIST.sub("", sentence))
    parameters: dict[str, Any] = {
        key: value for key, value in named.items() if key.isidentifier() and key not in _TAKEN
    }
    code = error.getCondition()
    parameters["sqlState"] = error.getSqlState()
    if not place:
        parameters["fragment"] = fragment_of(error)
    kind = ColumnNotFoundError if (code or "").startswith("UNRESOLVED_COLUMN") else UserError
    return kind(f"{sentence} {place}".rstrip(), code=code, multiline=True, **parameters)


def as_spark_error(error: DeltaError) -> DeltaError:
    """The same error, also of the class of PySpark that the reference would raise."""
    kind = next(kind for ours, kind in _KINDS if isinstance(error, ours))
    if error.code in _UNSUPPORTED:
        kind = UnsupportedOperationException
    elif isinstance(error, ExpressionError):
        kind = _OF_VALUES.get(error.code.split(".")[0], kind)
    made: DeltaError = _class_of(type(error), kind)(error.message, code=error.code, multiline=error.multiline)
    made.parameters = error.parameters
    return made


def _class_of(ours: type[DeltaError], kind: type[PySparkException]) -> type[Any]:
    """The class for both; it is made once, so errors of one kind have one class."""
    if (ours, kind) not in _classes:
        about = {"__module__": ours.__module__, "__doc__": ours.__doc__}
        _classes[ours, kind] = type(ours.__name__, (_BothKinds, ours, kind), about)
    return _classes[ours, kind]


class _BothKinds:
    """The methods of PySpark's exceptions, answered from the DeltaError."""

    code: str
    message: str
    multiline: bool
    parameters: dict[str, Any]

    def __str__(self) -> str:
        return f"[{self.code}] {self.message}"

    def __reduce__(self) -> tuple[Any, ...]:
        # the pair's class is made at run time: another process gets the DeltaError alone
        ours = next(base for base in type(self).__mro__[1:] if issubclass(base, DeltaError))
        return ours(self.message, code=self.code, multiline=self.multiline, **self.parameters).__reduce__()

    @property
    def desc(self) -> str:
        """The sentence, under the name that exceptions of Spark's JVM use."""
        return str(self)

    def getCondition(self) -> str | None:
        return self.code

    def getErrorClass(self) -> str | None:
        return self.code

    def getMessageParameters(self) -> dict[str, str]:
        return {name: str(value) for name, value in self.parameters.items()}

    def getSqlState(self) -> str | None:
        state: str | None = self.parameters.get("sqlState")
        return state

    def getMessage(self) -> str:
        return str(self)


# --- PySpark's own log of errors, while a call of this package runs


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


# --- the piece of SQL that an error of Spark quotes


def fragment_of(error: PySparkException) -> tuple[str, int] | None:
    """The piece of SQL that an error is about, and where it begins in the text that Spark was given; None if unknown.

    It is the same on classic sessions and on Spark Connect. Raises nothing: it runs while another error is handled.
    """
    try:
        contexts: list[Any] = list(error.getQueryContext() or ())
        for context in contexts:
            if context.contextType().name == "SQL" and context.fragment():
                return str(context.fragment()), int(context.startIndex())
    except Exception:  # a server that does not answer, or a context without these
        return None
    return None
