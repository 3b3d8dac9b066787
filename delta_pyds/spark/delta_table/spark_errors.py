"""Errors that a program catches as it did with the reference: a DeltaError that is also an exception of PySpark.

``except AnalysisException`` around ``DeltaTable.forPath`` works, and so does ``except delta_pyds.TableNotFoundError``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
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

from delta_pyds.errors import (
    ConflictError,
    ConstraintViolationError,
    DeltaError,
    ExpressionError,
    OptionError,
    SqlSyntaxError,
    StorageError,
    UnsupportedOperationError,
    WorkerPythonError,
)
from delta_pyds.spark.source.error_transport import error_of

# the reference's exceptions for conflicts and broken rules are plain ones of Spark
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
# what a value of a row makes fail, where our own evaluator meets it, is no matter of analysis
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
_classes: dict[tuple[type[DeltaError], type[PySparkException]], type[Any]] = {}


@contextmanager
def errors_of_spark() -> Iterator[None]:
    """What was a DeltaError, here or in a worker of Spark, leaves as one that Spark's classes catch too."""
    try:
        yield
    except Exception as e:
        error = e if isinstance(e, DeltaError) else error_of(e)
        if error is None or isinstance(error, PySparkException):
            raise
        same = as_spark_error(error)
        raise same.with_traceback(error.__traceback__) from (error.__cause__ if error is e else None)


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
    """One class for each pair, so that two errors of one kind are of one class."""
    if (ours, kind) not in _classes:
        about = {"__module__": ours.__module__, "__doc__": ours.__doc__}
        _classes[ours, kind] = type(ours.__name__, (_BothKinds, ours, kind), about)
    return _classes[ours, kind]


class _BothKinds:
    """What PySpark's callers ask of an exception, answered from what the DeltaError knows."""

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
        """The sentence under the name that exceptions of Spark's JVM have for it."""
        return str(self)

    def getCondition(self) -> str | None:
        return self.code

    def getErrorClass(self) -> str | None:
        return self.code

    def getMessageParameters(self) -> dict[str, str]:
        return {name: str(value) for name, value in self.parameters.items()}

    def getSqlState(self) -> str | None:
        return None

    def getMessage(self) -> str:
        return str(self)
