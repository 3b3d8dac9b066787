"""What a task answers is read with care: a server of Spark Connect may be anybody's."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from delta_pyds.errors import DeltaError
from delta_pyds.spark.task_runner import OUTPUT_DDL, SparkRunner, collected
from delta_pyds.tasks.changed_rows import Action
from delta_pyds.tasks.write_state import TaskOutput

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Runs:
    """Unpickling it calls a function."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self._call = function, arguments

    def __reduce__(self) -> tuple[Any, ...]:
        return self._call


def frame_of(spark: SparkSession, *answers: tuple[int, bytes]) -> Any:
    return spark.createDataFrame(list(answers), OUTPUT_DDL)


def test_an_answer_calls_nothing(spark: SparkSession, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    for function, arguments in ((os.mkdir, (str(mark),)), (eval, ("1",)), (pickle.loads, (b"N.",))):
        answer = pickle.dumps(Runs(function, *arguments))
        with pytest.raises(DeltaError, match="which no task of delta_pyds answers with"):
            collected(frame_of(spark, (0, answer)), "a step")
    # nor what a module of delta_pyds has imported, nor by a way through it
    imported = b"cdelta_pyds.tasks.write_state\nfield\n."
    through = b"\x80\x04\x8c\x1bdelta_pyds.tasks.scan_state\x8c\x0are.compile\x93."
    for text in (imported, through):
        with pytest.raises(DeltaError, match="which no task of delta_pyds answers with"):
            collected(frame_of(spark, (0, text)), "a step")
    assert not mark.exists()
    with pytest.raises(DeltaError, match="cannot be read"):
        collected(frame_of(spark, (0, b"\x80\x04\xff")), "a step")


def test_answers_are_what_tasks_say_in_their_order(spark: SparkSession) -> None:
    outputs = [TaskOutput(counts={Action.INSERT: number}) for number in range(3)]
    answers = [(number, pickle.dumps(output)) for number, output in enumerate(outputs)]
    assert collected(frame_of(spark, *reversed(answers)), "a step") == outputs


def test_no_two_tasks_answer_under_one_number(spark: SparkSession) -> None:
    answer = pickle.dumps(TaskOutput(copied_rows=1))
    with pytest.raises(DeltaError, match="2 tasks answered under 1 numbers"):
        collected(frame_of(spark, (0, answer), (0, answer)), "a step")


def test_a_task_of_another_package_is_no_answer(spark: SparkSession) -> None:
    with pytest.raises(DeltaError, match="which no task of delta_pyds answers with"):
        SparkRunner(spark).run(complex, [1, 2])
