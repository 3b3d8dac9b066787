"""Programs for delta-spark, run by the reference itself; and ``install`` beside its JAR leaves ``delta`` to it.

What such a program expects of us (``tests/spark/test_install.py``) is what the reference does.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import delta_pyds
from tests.support.delta_programs import PROGRAMS, Program

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.cell("programs of delta-spark", "reference -> us")


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_the_reference_does_what_the_program_expects(spark: SparkSession, tmp_path: Path, program: Program) -> None:
    program(spark, str(tmp_path))


def test_delta_stays_the_references_where_its_jar_is(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    installed = delta_pyds.install(spark, delta=True)
    try:
        assert installed.formats == ("deltapy",) and not installed.modules
        assert "stays with delta-spark" in repr(installed)
        spark.range(3).write.format("delta").save(path)
        commit = (tmp_path / "t" / "_delta_log" / f"{0:020}.json").read_text()
        assert "Apache-Spark" in commit
        spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 0")
        found = spark.read.format("deltapy").load(path)
        assert delta_pyds.explain(found).engine == "native" and found.count() == 2
        found.limit(1).write.format("deltapy").mode("append").save(path)
        assert spark.read.format("delta").load(path).count() == 3
    finally:
        delta_pyds.uninstall()
