"""Programs that do not call ``install``: ``deltapy run``, spark-submit, Connect, and processes that they start."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.installed_programs import run_installed

_CLASSIC = """
import logging, sys
from delta.tables import DeltaTable
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.newSession().range(5).write.format("delta").save(sys.argv[1])
DeltaTable.forPath(spark, sys.argv[1]).delete("id = 1")
print("rows", spark.sql(f"SELECT count(*) FROM delta.`{sys.argv[1]}`").first()[0])
spark.stop()
"""
_CONNECT = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.remote("local[1]").config("spark.ui.enabled", "false").getOrCreate()
assert type(spark).__module__.startswith("pyspark.sql.connect")
spark.range(4).write.format("delta").mode("append").save(f"file://{sys.argv[1]}")
print("rows", spark.sql(f"SELECT count(*) FROM delta.`file://{sys.argv[1]}`").first()[0])
"""
# a tool starts the program in another process
_TOOL = "import subprocess, sys; sys.exit(subprocess.call([sys.executable, *sys.argv[1:]]))"


@pytest.mark.one_program_in(4)
@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(
    ("start", "program"),
    [
        (["spark-submit", "--master", "local[1]", "program.py"], _CLASSIC),
        ([sys.executable, "-c", _TOOL, "program.py"], _CONNECT),
    ],
    ids=["spark-submit", "connect"],
)
def test_a_program_for_delta_spark_runs_unchanged(tmp_path: Path, start: list[str], program: str) -> None:
    (tmp_path / "program.py").write_text(program)
    done = run_installed([*start, str(tmp_path / "t")], tmp_path, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.endswith("rows 4\n")
    assert "delta_pyds is" not in done.stderr
