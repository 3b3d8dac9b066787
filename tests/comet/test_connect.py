"""Comet in the server of Spark Connect."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.comet.test_plans import table_of
from tests.support.connect import ROOT, connect_server
from tests.support.limits import ONLY_A_HANG_S

_CLIENT = """
import sys
from pyspark.sql import SparkSession
import delta_pyds

spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
frame = delta_pyds.read(spark, f"file://{sys.argv[2]}", engine="native")
print("sum", frame.groupBy().sum("id").collect()[0][0])
print(delta_pyds.explain(frame))
plan = frame.groupBy("text").sum("id")._explain_string()
print("joins", "CometBroadcastHashJoin" in plan, "aggregates", plan.count(" HashAggregate"))
"""


def test_reads_through_connect_stay_in_comet(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t", [1, 2, 3])
    # the server's own plugin takes the place of Comet's, which only adds these
    extensions = "--conf spark.sql.extensions=org.apache.comet.CometSparkSessionExtensions"
    with connect_server(tmp_path, submit=extensions) as server:
        done = subprocess.run(
            [sys.executable, "-c", _CLIENT, server, str(table.path)],
            capture_output=True, text=True, timeout=ONLY_A_HANG_S, env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    assert f"sum {sum(r['id'] for r in table.expected_rows())}" in done.stdout
    assert "Comet takes 1 of 2 scans" in done.stdout
    assert "joins True aggregates 0" in done.stdout
