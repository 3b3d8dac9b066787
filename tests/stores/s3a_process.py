"""Reads a table through Spark's own S3A, in a session that has it.

Arguments: paths of JARs, joined by commas; the URLs of two servers; a table that both have the name of, with other rows
on the second; the storage options of the first, as JSON.

Prints what each read said of itself, and its rows, as JSON.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.sql import SparkSession

import delta_pyds


def main(jars: str, first: str, second: str, table: str, given: str) -> None:
    options: dict[str, Any] = json.loads(given)
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.jars", jars)
    builder = builder.config("spark.hadoop.fs.s3a.path.style.access", "true")
    # an attempt to ask a place where nobody is should not take minutes
    builder = builder.config("spark.hadoop.fs.s3a.attempts.maximum", "1")
    spark = builder.config("spark.driver.extraClassPath", jars.replace(",", ":")).getOrCreate()
    told: dict[str, Any] = {}

    def read(name: str, storage_options: dict[str, Any], **more: Any) -> None:
        frame = delta_pyds.read(spark, table, storage_options=storage_options, **more)
        rows = sorted(([row.id, row.p] for row in frame.collect()), key=str)
        told[name] = [str(delta_pyds.explain(frame)), rows]

    read("no settings", options)
    spark.conf.set("fs.s3a.endpoint", first)
    read("no credentials", options)
    spark.conf.set("fs.s3a.access.key", options["key"])
    spark.conf.set("fs.s3a.secret.key", options["secret"])
    read("all settings", options)
    read("where", options, where="p = 'a b%20/ü'")
    # the session says the second server now, and keeps its connection to the first one
    spark.conf.set("fs.s3a.endpoint", second)
    read("another server", options)
    read("kept connection", {**options, "endpoint_url": second})
    spark.stop()
    print(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
