"""The tools above Spark that are tried, with the packages of each, pinned, and the program that tries it.

A program gets an empty working directory, and the environment variable ``DELTA_PYDS_INSTALL=delta``. It neither
imports nor names delta_pyds, and fails if the tool does not work.
"""

from __future__ import annotations

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
        return self.packages[0].partition("[")[0].replace("==", " ")


TOOLS = {
    "dbt": Tool(
        ("dbt-spark==1.9.3", "dbt-core==1.9.11", _SPARK),
        "seeds, tables, views, incremental models that merge, snapshots, tests, in two runs",
    ),
    "notebook": Tool(("nbconvert==7.17.2", "ipykernel==7.4.0", _SPARK), "a notebook that imports `delta.tables`"),
    "sqlframe": Tool(("sqlframe==4.10.0", _SPARK), "its DataFrames over a named table, with Spark as its engine"),
}
