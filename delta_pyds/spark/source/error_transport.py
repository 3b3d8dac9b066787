"""DeltaErrors of Spark's workers, restored from their text, with class, code and parameters.

Spark keeps only the text of an exception in a worker. So a DeltaError that
leaves a worker gets a last line, in JSON, with the rest. The text above it is for people.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar, cast

from delta_pyds import errors
from delta_pyds.errors import DeltaError, WorkerPythonError

_Method = TypeVar("_Method", bound=Callable[..., Any])

_KEY = "delta_pyds.error"
_START = f'\n{{"{_KEY}": '
_MARKED = "_marked_for_transport"
# a parameter is a name or a number; longer ones, such as lists of findings, stay in their process
_MAX_PARAMETER = 2_000
_NOT_INSTALLED = re.compile(r"ModuleNotFoundError: No module named '(delta_pyds|pyspark_deltapy)\b")


def leaves_worker(method: _Method) -> _Method:
    """Decorate a method that Spark calls in its workers: ``error_of`` restores its DeltaErrors from their text."""
    if inspect.isgeneratorfunction(method):

        @wraps(method)
        def iterate(*args: Any, **kwargs: Any) -> Iterator[Any]:
            try:
                yield from method(*args, **kwargs)
            except DeltaError as e:
                _mark(e)
                raise

        return cast(_Method, iterate)

    @wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return method(*args, **kwargs)
        except DeltaError as e:
            _mark(e)
            raise

    return cast(_Method, call)


def error_of(exception: BaseException) -> DeltaError | None:
    """Return the DeltaError that made Spark raise an exception, with class, ``code``, ``message`` and ``parameters``.

    Use it for errors of an action on a DataFrame, of a write through ``df.write`` and of a stream
    (``query.exception()``), on Spark Connect too. ``delta_pyds.read`` and ``delta_pyds.write`` raise the DeltaError
    themselves.

    Args:
        exception: The exception, of Spark or any other.

    Returns:
        The error, without parameters of more than 2,000 characters; None if the exception had another cause.

    >>> try:
    ...     df.write.format("deltapy").mode("overwrite").save(path)
    ... except PySparkException as e:
    ...     if isinstance(delta_pyds.error_of(e), delta_pyds.ConflictError):
    ...         ...  # another writer was first
    """
    seen: set[int] = set()
    current: BaseException | None = exception
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        if isinstance(current, DeltaError):
            return current
        text = str(current)
        found = _marked_in(text) or _missing_package(text)
        if found is not None:
            return found
        current = getattr(current, "_cause", None) or current.__cause__
    return None


@contextmanager
def errors_as_they_were() -> Iterator[None]:
    """Raise a Spark worker's DeltaError itself, without Spark's traceback of the worker."""
    try:
        yield
    except DeltaError:
        raise
    except Exception as e:
        error = error_of(e)
        if error is None:
            raise
        raise error from None


def _mark(error: DeltaError) -> None:
    if getattr(error, _MARKED, False):
        return
    setattr(error, _MARKED, True)
    fields = {
        "class": type(error).__name__,
        "code": error.code,
        "multiline": error.multiline,
        "characters": len(error.message),
        "parameters": {
            name: json.loads(text) for name, value in error.parameters.items() if (text := _json(value)) is not None
        },
    }
    error.args = (f"{error}{_START}{json.dumps(fields)}}}",)


def _json(value: Any) -> str | None:
    text = json.dumps(value, default=str)
    return text if len(text) <= _MAX_PARAMETER else None


def _marked_in(text: str) -> DeltaError | None:
    """The error of the last mark: earlier marks are its causes."""
    start = text.rfind(_START)
    if start < 0:
        return None
    try:
        fields, _ = json.JSONDecoder().raw_decode(text, start + len(_START))
        characters, code, parameters = fields["characters"], fields["code"], dict(fields["parameters"])
        multiline = bool(fields.get("multiline"))
        kind = getattr(errors, fields["class"], DeltaError)
    except (ValueError, TypeError, KeyError):
        return None  # cut off, or not ours
    if not (isinstance(kind, type) and issubclass(kind, DeltaError)):
        kind = DeltaError  # a newer worker's
    error: DeltaError = kind(text[max(start - characters, 0) : start], code=code, multiline=multiline)
    error.parameters = parameters
    return error


def _missing_package(text: str) -> WorkerPythonError | None:
    found = _NOT_INSTALLED.search(text)
    if found is None:
        return None
    return WorkerPythonError(
        f"the Python of Spark's workers has no module '{found[1]}'. Install delta_pyds in that environment (on a "
        "cluster and with Spark Connect: where the driver and the executors run), or set PYSPARK_PYTHON, before the "
        "session starts, to a Python that has it.",
        module=found[1],
    )
