"""A DeltaError is told from the text that Spark keeps of it."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Iterator
from typing import Any

import pytest

import delta_pyds
from delta_pyds import errors
from delta_pyds.errors import ConcurrentAppendError, DeltaError, TimeTravelError, WorkerPythonError
from delta_pyds.spark.source.error_transport import error_of, leaves_worker

CLASSES = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, DeltaError)]


class SparkError(Exception):
    """Stands for what Spark makes of an exception: its traceback, as text among other text."""


@leaves_worker
def work(error: Exception) -> None:
    raise error


@leaves_worker
def work_by_rows(error: Exception) -> Iterator[int]:
    yield 1
    raise error


def through_spark(error: Exception, call: Any = work) -> SparkError:
    try:
        list(call(error) or ())
    except Exception:
        text = traceback.format_exc()
        return SparkError(f"[PYTHON_EXCEPTION] Failed: {text}\n SQLSTATE: 38000\n\nJVM stacktrace:\n{text}\tat a.b.C")
    raise AssertionError("nothing was raised")


@pytest.mark.parametrize("call", [work, work_by_rows])
@pytest.mark.parametrize("kind", CLASSES)
def test_every_error_comes_back_as_it_was(kind: type[DeltaError], call: Any) -> None:
    parameters = {"table": "/a b/ü", "version": 3, "columns": ["x", None], "message": "yes", "code": True}
    error = kind('two\nlines: é \U0001f600 {"delta_pyds": 1}', code="DELTA_X.Y", multiline=True)
    error.parameters = dict(parameters)
    back = error_of(through_spark(error, call))
    assert back is not None and type(back) is kind and back.multiline
    assert (back.code, back.message, back.parameters) == ("DELTA_X.Y", error.message, parameters)
    assert str(back) == f"[DELTA_X.Y] {error.message}"


def test_the_text_above_the_mark_is_the_sentence() -> None:
    text = str(through_spark(TimeTravelError("Version 7 is not there.", version=7)))
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if "Version 7" in line)
    assert lines[at].endswith("TimeTravelError: [DELTA_VERSION_NOT_FOUND] Version 7 is not there.")
    assert len(lines[at + 1]) < 200 and '"delta_pyds.error"' in lines[at + 1]


def test_the_error_that_left_is_taken_and_not_what_it_came_of() -> None:
    @leaves_worker
    def inner() -> None:
        raise TimeTravelError("first", version=1)

    @leaves_worker
    def outer() -> None:
        try:
            inner()
        except DeltaError:
            raise ConcurrentAppendError("second") from None

    try:
        outer()
    except DeltaError as e:
        assert type(error_of(SparkError(str(e)))) is ConcurrentAppendError

    @leaves_worker
    def passing_on() -> None:
        inner()

    with pytest.raises(TimeTravelError) as error:
        passing_on()
    assert str(error.value).count("delta_pyds.error") == 1


def test_a_cause_is_looked_at_and_an_error_of_others_is_none() -> None:
    outer = SparkError("Writing job failed.")
    outer.__cause__ = through_spark(TimeTravelError("gone"))
    assert isinstance(delta_pyds.error_of(outer), TimeTravelError)
    assert error_of(through_spark(ValueError("x"))) is None
    assert error_of(KeyboardInterrupt()) is None
    own = TimeTravelError("here")
    assert error_of(own) is own
    outer.__cause__ = outer
    assert error_of(outer) is None


@pytest.mark.parametrize("end", [1, 20, 60, 100])
def test_a_mark_that_was_cut_off_is_none(end: int) -> None:
    text = str(through_spark(TimeTravelError("gone", version=7))).split("\n SQLSTATE")[0]
    start = text.index('{"delta_pyds.error"')
    assert error_of(SparkError(text[: start + end])) is None


def test_a_long_parameter_stays_behind_and_what_json_cannot_say_becomes_text() -> None:
    back = error_of(through_spark(DeltaError("m", findings=["x" * 9000], path=b"\xff", n=1)))
    assert back is not None and back.parameters == {"path": "b'\\xff'", "n": 1}


def test_a_class_that_this_version_lacks_is_a_delta_error() -> None:
    text = str(through_spark(TimeTravelError("gone"))).replace('"TimeTravelError"', '"json"')
    back = error_of(SparkError(text))
    assert type(back) is DeltaError and back.code == "DELTA_VERSION_NOT_FOUND"


def test_workers_without_the_package_are_named() -> None:
    text = (
        "Failed to create Python data source instance: Traceback ...\nModuleNotFoundError: No module named 'delta_pyds'"
    )
    error = error_of(SparkError(text))
    assert isinstance(error, WorkerPythonError) and "PYSPARK_PYTHON" in error.message
    assert error.code == "DELTA_PYDS_NOT_INSTALLED_ON_WORKERS"
    assert error_of(SparkError("ModuleNotFoundError: No module named 'sklearn'")) is None


def test_conflict_errors_are_public() -> None:
    for kind in CLASSES:
        if issubclass(kind, errors.ConflictError):
            assert getattr(delta_pyds, kind.__name__) is kind and kind.__name__ in delta_pyds.__all__
