"""Rows that delta_pyds computed from the log of a table. Spark sees only rows of the program.

A scan without files, an aggregate that the log answers, and DESCRIBE HISTORY are such rows. They depend on the table,
so their DataFrames have an alias, by which ``row_sources`` finds them. It changes no column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FROM_LOG = "_deltapy_from_log"


def from_log(frame: DataFrame) -> DataFrame:
    """The same rows with the alias."""
    return frame.alias(FROM_LOG)
