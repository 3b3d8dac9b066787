"""A command whose source was lost with an executor runs again, and keeps more copies."""

from __future__ import annotations

import pytest
from pyspark import StorageLevel
from pyspark.errors import PySparkException

from delta_pyds.spark.row_changes.merge_source import conditions_of, with_source_kept

_LOST = "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND"


def lost() -> PySparkException:
    return PySparkException(f"[{_LOST}] Checkpoint block rdd_12_0 not found!", errorClass=_LOST)


def test_a_command_runs_again_while_its_source_is_lost() -> None:
    levels: list[StorageLevel] = []

    def run(level: StorageLevel) -> str:
        levels.append(level)
        if len(levels) < 3:
            raise RuntimeError("no rows") from lost()
        return "done"

    assert with_source_kept(run) == "done"
    assert [level.replication for level in levels] == [1, 2, 3]
    assert all(level.useDisk and not level.useMemory for level in levels)


def test_another_error_and_a_fourth_loss_are_raised() -> None:
    runs: list[str] = []

    def fails(error: Exception) -> None:
        runs.append(str(error))
        raise error

    # a user's words are not a condition
    with pytest.raises(RuntimeError, match=_LOST):
        with_source_kept(lambda _: fails(RuntimeError(_LOST)))
    assert len(runs) == 1
    with pytest.raises(PySparkException, match=_LOST):
        with_source_kept(lambda _: fails(lost()))
    assert len(runs) == 5


def test_causes_may_lead_back_to_the_first() -> None:
    first, second = RuntimeError("one"), lost()
    first.__cause__, second.__cause__ = second, first
    assert list(conditions_of(first)) == [_LOST]
