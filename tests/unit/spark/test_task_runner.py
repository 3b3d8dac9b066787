"""Outputs of tasks that cannot be committed."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import pytest

from delta_pyds.errors import UnsupportedOperationError
from delta_pyds.protocol.schema import LONG, StructField, StructType
from delta_pyds.spark.task_runner import require_numbers
from delta_pyds.tasks.write_state import TaskOutput, WrittenFile
from tests.support.writes import write_state


def test_files_with_the_same_identity_values_are_deleted(tmp_path: Path) -> None:
    outputs = []
    for name in ("a.parquet", "b.parquet"):
        (tmp_path / name).write_bytes(b"data")
        outputs.append(TaskOutput((WrittenFile(name, {}, 4, 0, 1, "{}"),), {"id": 1}))
    engine = mock.patch("delta_pyds.spark.task_runner.other_engine", return_value="Sail")
    with engine, pytest.raises(UnsupportedOperationError):
        require_numbers(mock.Mock(), outputs, write_state(tmp_path, StructType((StructField("id", LONG),))))
    assert list(tmp_path.glob("*.parquet")) == []
