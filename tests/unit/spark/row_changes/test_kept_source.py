"""A command whose source was lost with an executor runs again, and keeps more copies."""

from __future__ import annotations

import pytest
from pyspark import StorageLevel

from delta_pyds.spark.row_changes.merge_source import with_source_kept

_LOST = "Job aborted: [CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND] Checkpoint block rdd_12_0 not found!"


def test_a_command_runs_again_while_its_source_is_lost() -> None:
    levels: list[StorageLevel] = []

    def run(level: StorageLevel) -> str:
        levels.append(level)
        if len(levels) < 3:
            raise RuntimeError(_LOST)  # py4j's error, or one of PySpark
        return "done"

    assert with_source_kept(run) == "done"
    assert [level.replication for level in levels] == [1, 2, 3]
    assert all(level.useDisk and not level.useMemory for level in levels)


def test_another_error_and_a_fourth_loss_are_raised() -> None:
    runs: list[str] = []

    def fails(text: str) -> None:
        runs.append(text)
        raise RuntimeError(text)

    with pytest.raises(RuntimeError, match="division by zero"):
        with_source_kept(lambda _: fails("division by zero"))
    assert len(runs) == 1
    with pytest.raises(RuntimeError, match="CHECKPOINT"):
        with_source_kept(lambda _: fails(_LOST))
    assert len(runs) == 5
