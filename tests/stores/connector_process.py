"""Reads tables through one of Spark's own connectors, in a session that has it.

Standard input: JSON with ``jars``; ``java_options``; ``settings`` of the session's start; or ``remote``, the address
of a server of Spark Connect, in place of these; ``steps``. Each step sets
what it has under ``set``, and then reads ``table`` by ``options`` and ``where``, or with ``delete`` deletes rows.
With ``marks``, the URL of a server, a read makes a HEAD request for ``/mark/NAME/loaded`` there after it has loaded the
table, and one for ``/mark/NAME/collected`` at its end.

Prints what each read said of itself, and its rows, by the step's name, as JSON.
"""

from __future__ import annotations

import contextlib
import json
import sys
import urllib.error
import urllib.request
from typing import Any

from pyspark.sql import SparkSession

import delta_pyds
from delta_pyds import DeltaTable
from tests.support.java_options import QUICK_COMPILER


def main(plan: dict[str, Any]) -> None:
    spark = SparkSession.builder.remote(plan["remote"]).getOrCreate() if "remote" in plan else classic(plan)
    told: dict[str, Any] = {}
    for step in plan["steps"]:
        for name, value in step.get("set", {}).items():
            spark.conf.set(name, value)
        if "delete" in step:
            DeltaTable.forPath(spark, step["table"], storage_options=step["options"]).delete(step["delete"])
            continue
        more = {"where": step["where"]} if "where" in step else {}
        frame = delta_pyds.read(spark, step["table"], storage_options=step["options"], **more)
        _mark(step, "loaded")
        rows = sorted(([row.id, row.p] for row in frame.collect()), key=str)
        _mark(step, "collected")
        told[step["name"]] = [str(delta_pyds.explain(frame)), rows]
    spark.stop()
    print(json.dumps(told))


def _mark(step: dict[str, Any], what: str) -> None:
    if "marks" in step:
        request = urllib.request.Request(f"{step['marks']}/mark/{step['name']}/{what}", method="HEAD")
        # no store has such an object
        with contextlib.suppress(urllib.error.HTTPError):
            urllib.request.urlopen(request).close()


def classic(plan: dict[str, Any]) -> SparkSession:
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.jars", plan["jars"]).config("spark.driver.memory", "1g")
    builder = builder.config("spark.driver.extraJavaOptions", f"{QUICK_COMPILER} {plan['java_options']}")
    for name, value in plan["settings"].items():
        builder = builder.config(f"spark.hadoop.{name}", value)
    return builder.getOrCreate()


if __name__ == "__main__":
    main(json.load(sys.stdin))
