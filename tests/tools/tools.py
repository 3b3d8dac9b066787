"""The tools above Spark that are tried, with the packages of each, pinned, and the program that tries it.

A program gets an empty working directory, and the environment variable ``DELTA_PYDS_INSTALL=delta``. It neither
imports nor names delta_pyds, and fails if the tool does not work.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_SPARK = "pyspark==4.3.0"


@dataclass(frozen=True)
class Tool:
    """``packages``: what pip installs. ``tried``: a sentence of the page."""

    packages: tuple[str, ...]
    tried: str

    @property
    def version(self) -> str:
        """The first package with its version."""
        return re.sub(r"\[.*\]", "", self.packages[0]).replace("==", " ")


# ibis asks for PySpark before 4.1
_IBIS_SPARK = "pyspark==4.0.5"

TOOLS = {
    "dbt": Tool(
        ("dbt-spark==1.9.3", "dbt-core==1.9.11", _SPARK),
        "seeds, tables, views, incremental models that merge, snapshots, tests, in two runs",
    ),
    "great_expectations": Tool(
        ("great_expectations==1.24.1", "pandas==3.1.1", _SPARK),
        "suites over a Delta asset, at a version of it, and over a DataFrame",
    ),
    # sqlglot 30 prints no name in ibis' DROP VIEW
    "ibis": Tool(
        ("ibis-framework[pyspark]==12.0.0", "sqlglot==28.6.0", "pandas==3.1.1", _IBIS_SPARK),
        "`read_delta`, `to_delta`, tables by name: create, insert, upsert, replace, drop, with PySpark 4.0.5",
    ),
    "jvm_shells": Tool(
        (_SPARK, "PyHive==0.7.0", "thrift==0.22.0", "thrift_sasl==0.4.3", "pure-sasl==0.6.2"),
        "`spark-sql`, and the Thrift server with PyHive 0.7.0: names of a Python session, temporary views of paths",
    ),
    "kedro": Tool(
        ("kedro==1.7.0", "kedro-datasets[spark]==9.6.0", "hdfs==2.7.3", "pandas==2.3.3", _SPARK),
        "a pipeline, run twice, with SparkDataset, SparkDatasetV2, DeltaTableDataset, SparkHiveDataset",
    ),
    "koheesio": Tool(
        ("koheesio==0.11.1", _SPARK),
        "its Delta reader and writers: batches, change feed, merges, slowly changing dimensions, streams",
    ),
    "mack": Tool(("mack==0.5.0", _SPARK), "the functions that read or change tables, by path and name"),
    "notebook": Tool(("nbconvert==7.17.2", "ipykernel==7.4.0", _SPARK), "a notebook that imports `delta.tables`"),
    "pandas_on_spark": Tool(
        ("pyspark[sql]==4.3.0", "pandas==2.3.3"),
        "`pyspark.pandas`: `to_delta`, `read_delta`, `to_spark_io`, tables by name",
    ),
    "sqlframe": Tool(("sqlframe==4.10.0", _SPARK), "its DataFrames over a named table, with Spark as its engine"),
}
