"""Scripts of SQL by name after ``install(spark, delta=True)``, in a session without the reference.

A process of its own: in one session a name belongs to one of the two engines. Each script has a schema of its name,
whose tables lie in a folder of its name. What every text came to is written as JSON.

Run as ``python -m tests.interop.by_name FOLDER ANSWERS SCRIPT...``.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

import delta_pyds
from tests.interop.reference_session import WITHOUT_REFERENCE, for_few_rows
from tests.support.documented_scripts import DOCUMENTED
from tests.support.sql_scripts import SCRIPTS, outcome

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# a page of the documentation by its name, the others as ``script: NAME``
TEXTS = {**{f"script: {name}": texts for name, texts in SCRIPTS.items()}, **DOCUMENTED}


def schema_of(script: str) -> str:
    return f"s{list(TEXTS).index(script)}"


def outcomes(spark: SparkSession, run: Callable[[str], DataFrame], script: str, folder: Path) -> list[Any]:
    """The value of each text, as JSON has it. The script's tables lie below ``folder`` when this returns."""
    schema = schema_of(script)
    root = folder / schema
    spark.sql(f"CREATE SCHEMA {schema} LOCATION 'file://{root}'")
    return [json.loads(json.dumps(outcome(run, text, root, schema))) for text in TEXTS[script]]


def main(folder: Path, answers: Path, *scripts: str) -> None:
    # as many tasks, and so as many files, as in the session of the tests
    builder = SparkSession.builder.master("local[2]").config(map=WITHOUT_REFERENCE)
    builder = builder.config("spark.sql.warehouse.dir", str(folder / "warehouse")).config("spark.driver.memory", "700m")
    spark = for_few_rows(builder).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    delta_pyds.install(spark, delta=True)
    found = {script: outcomes(spark, spark.sql, script, folder) for script in scripts}
    answers.write_text(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    logging.disable(logging.INFO)
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
