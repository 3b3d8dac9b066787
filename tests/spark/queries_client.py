"""Drawn tables and queries through Spark Connect, by an index of files in the server. The argument: a server."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from delta_pyds.spark.native import parts, relations
from tests.support.drawn_queries import one_answer


def main(server: str, *_: str) -> None:
    spark = SparkSession.builder.remote(server).getOrCreate()
    relations.FEW_LISTED_FILES = 0
    for large in (0, parts.LARGE_FILE_ROWS):
        parts.LARGE_FILE_ROWS = large
        one_answer(spark, "file://")
    print("all is well")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
