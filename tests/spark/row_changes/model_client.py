"""Programs of the model of rows over Spark Connect: ``model_client.py <server> <folder> <programs> <draw>``."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession

from tests.support.row_model.delta_table_engine import DeltaTableEngine
from tests.support.row_model.harness import Harness
from tests.support.row_model.programs import drawn_programs
from tests.support.row_model.steps import DELETES, LAYOUTS, MERGES, OTHERS, UPDATES


def main(server: str, folder: Path, count: int, draw: str) -> None:
    spark = SparkSession.builder.remote(server).getOrCreate()
    for engine in ("spark", "auto"):
        programs = drawn_programs(count, f"{draw} {engine}", LAYOUTS, [MERGES, OTHERS, UPDATES, MERGES, DELETES])
        for number, program in enumerate(programs):
            path = folder / f"{engine}-{number}"
            harness = Harness(path, program.layout, program.first, DeltaTableEngine(spark, engine))
            for step in program.steps:
                harness.run(step)
            harness.finish()
    print("all is well")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
