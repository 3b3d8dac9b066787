"""Tables in a store by credentials that this process finds, in a session of Spark.

Standard input: a JSON list of objects with ``table``, ``copy``, ``options``: URLs of two new tables, and what is given
for both. Argument: a directory for checkpoints.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from tests.support.java_options import QUICK_COMPILER
from tests.support.store_life import used_by_each_spelling


def main(directory: Path) -> None:
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.memory", "1g").config("spark.driver.extraJavaOptions", QUICK_COMPILER)
    spark = builder.getOrCreate()
    for number, life in enumerate(json.load(sys.stdin)):
        used_by_each_spelling(spark, [life["table"]], [life["copy"]], life["options"], directory / str(number))
    spark.stop()
    print("all is well")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
