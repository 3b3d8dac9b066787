"""Files of Spark's tasks are durable before the driver commits them: see ``tests/unit/commands/test_power_cut.py``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from delta_pyds.table.snapshot import load_snapshot
from delta_pyds.verification.verify import verify
from tests.support.change_feed import change_rows
from tests.support.power_cut import Disk
from tests.support.table_writes import read_rows

ROOT = Path(__file__).parents[2]


@pytest.mark.one_program_in(4)
def test_what_tasks_wrote_lasts_when_a_command_returns(tmp_path: Path) -> None:
    base, record, cuts = (tmp_path / name for name in ("disk", "record", "cuts"))
    base.mkdir()
    Disk(base, record).keep_all()
    path = os.pathsep.join([str(ROOT / "tests/support/power_cut_site"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.power_cut_program", str(base), str(record), str(cuts)],
        cwd=ROOT,
        env=os.environ
        | {"PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
        | {"POWER_CUT_BASE": str(base), "POWER_CUT_RECORD": str(record)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    table = base / "a" / "t"
    assert done.stdout.split() == ["0", "1", "2", "3", "4"]
    for version in range(5):
        left = cuts / str(version) / "a" / "t"
        assert load_snapshot(str(left)).version == version
        assert sorted(map(str, read_rows(left))) == sorted(map(str, read_rows(table, version)))
        assert not verify(str(left)).findings
    assert len(change_rows(cuts / "4" / "a" / "t", 2, 3)) == len(change_rows(table, 2, 3)) > 0
