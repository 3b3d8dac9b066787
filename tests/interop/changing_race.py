"""Writers of either engine that delete, update, merge, overwrite and append on one table, each a process.

The steps are those of ``tests.concurrency.changing_workload``. Each writer notes every step that is in
(``NAME.steps``), and in the end what it was told (``NAME.json``).

Run as ``python -m tests.interop.changing_race ours|reference FOLDER NUMBER STEPS SEED``; the number is the writer's.
"""

from __future__ import annotations

import json
import logging
import random
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from pyspark.sql import SparkSession

from tests.concurrency.changing_process import Changer
from tests.concurrency.changing_queries import querying
from tests.concurrency.changing_workload import Change, RefusedError, Workload, run
from tests.interop.changing_engines import ReferenceEngine
from tests.interop.racing import OURS, REFERENCE, racing_reference, wait_for_start
from tests.interop.two_engines import conflict
from tests.support.row_model.steps import BASE, Append, Delete, Overwrite, Update

# steps of each of our writers for one of the reference's, which takes so much longer
OURS_FOR_ONE = 2
_LONGEST_PAUSE_S = 1.5
# our writer whose commands are queries of Spark
BY_QUERIES = 0


def change_as_reference(folder: Path, number: int) -> Callable[[Change, str], int | None]:
    """It does not tell which version it made."""
    spark = racing_reference(folder, number)
    engine, table = ReferenceEngine(spark), folder / "table"

    def change(step: Change, told: str) -> int | None:
        spark.conf.set("spark.databricks.delta.commitInfo.userMetadata", told)
        try:
            if isinstance(step, Append):
                engine.append(table, list(BASE), step.tasks)
            elif isinstance(step, Overwrite):
                engine.overwrite(table, step, list(BASE), step.tasks)
            elif isinstance(step, Delete):
                engine.delete(table, step)
            elif isinstance(step, Update):
                engine.update(table, step)
            else:
                engine.merge(table, step, list(BASE))
        except Exception as error:
            refused = conflict(str(error))
            if refused is None:
                raise
            raise RefusedError(refused.code, refused.winner.get("version")) from error
        return None

    return change


def small_session(folder: Path, number: int) -> SparkSession:
    """A Spark of its own, without the reference."""
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "700m",
        "spark.sql.shuffle.partitions": "1",
        "spark.local.dir": str(folder / f"spark-{number}"),
    }
    spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def steps_in(folder: Path, engine: str) -> int:
    """The number of steps that an engine's writers have committed."""
    return sum(file.read_text().count("\n") for file in folder.glob(f"{engine}*.steps"))


def main(engine: str, folder: Path, number: int, steps: int, seed: int) -> None:
    """``steps``: of each writer of the reference; ours make more of them."""
    name = f"{engine}{number}"
    rng = random.Random(name)
    change: Callable[[Change, str], int | None]
    if engine == REFERENCE:
        change = change_as_reference(folder, number)
    elif number == BY_QUERIES:
        # slow enough to be overtaken
        change = querying(small_session(folder, number), folder / "table")
    else:
        # so that we are overtaken, too
        change = Changer(str(folder / "table"), pause=lambda: time.sleep(rng.uniform(0, _LONGEST_PAUSE_S)))
    wait_for_start(folder, name)

    def take(step: Change, told: str) -> int | None:
        # each of our writers makes as many steps as the reference's two together, and must not end before them
        while engine == OURS and steps_in(folder, REFERENCE) < json.loads(told)["n"]:
            time.sleep(0.05)
        version = change(step, told)
        with open(folder / f"{name}.steps", "a") as file:
            file.write(told + "\n")
        return version

    all_steps = range(steps if engine == REFERENCE else OURS_FOR_ONE * steps)
    report = run(Workload(seed), number, all_steps, take)
    (folder / f"{name}.json").write_text(json.dumps(asdict(report)))


if __name__ == "__main__":
    logging.disable(logging.INFO)
    main(sys.argv[1], Path(sys.argv[2]), *map(int, sys.argv[3:6]))
