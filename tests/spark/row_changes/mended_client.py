"""Lost races over Spark Connect: ``mended_client.py <server> <folder> <programs> <draw>``."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession

from tests.support.row_model.core_engine import CoreEngine
from tests.support.row_model.expressions import Column, Literal, call
from tests.support.row_model.harness import Harness
from tests.support.row_model.losing import WINNERS, check_no_file_is_left
from tests.support.row_model.losing_queries import LosingQueries
from tests.support.row_model.programs import drawn_programs
from tests.support.row_model.steps import DELETES, LAYOUTS, MERGES, UPDATES, Append, Delete, Layout


def main(server: str, folder: Path, count: int, draw: str) -> None:
    spark = SparkSession.builder.remote(server).getOrCreate()
    commands = drawn_programs(count, f"{draw} commands", LAYOUTS, [DELETES, UPDATES, MERGES])
    winners = drawn_programs(count, f"{draw} winners", LAYOUTS, [WINNERS, WINNERS, WINNERS])
    for number, (program, others) in enumerate(zip(commands, winners, strict=True)):
        harness = Harness(folder / f"t-{number}", program.layout, program.first, CoreEngine())
        for step, winner in zip(program.steps, others.steps, strict=True):
            harness.race(step, [[winner]], lambda meanwhile: LosingQueries(spark, meanwhile))
        check_no_file_is_left(harness)
        harness.finish()
    # whether a query decides on each row alone is asked of no rows
    first, second = ({"k": k, "n": k, "s": "a", "p": "x", "z": 0} for k in (1, 2))
    harness = Harness(folder / "t", Layout(deletion_vectors=True), ((first,),), CoreEngine())
    step = Delete(call("({0} > {1})", Column("k"), Literal(0)))
    assert harness.race(step, [[Append(((second,),))]], lambda meanwhile: LosingQueries(spark, meanwhile))
    harness.finish()
    print("all is well")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
