"""Rows that delta_pyds computed from the log of a table. Spark sees only rows of the program.

A scan without files, an aggregate that the log answers, and DESCRIBE HISTORY are such rows. They depend on the table,
so their DataFrames have an alias, by which ``row_sources`` finds them. It changes no column.
"""

from __future__ import annotations

import hashlib

from pyspark.sql import DataFrame

from delta_pyds.storage.resolve import normalize_table_root
from delta_pyds.storage.table_path import without_links

FROM_LOG = "_deltapy_from_log"


def from_log(frame: DataFrame, table_root: str | None = None) -> DataFrame:
    """The same rows with the alias. ``table_root``: of the table, if a command must know which one it is."""
    return frame.alias(FROM_LOG if table_root is None else log_alias(table_root))


def log_alias(table_root: str) -> str:
    """The alias of rows from the log of this table."""
    root = without_links(normalize_table_root(table_root))
    digest = hashlib.sha256(root.encode()).hexdigest()
    return f"{FROM_LOG}_{digest[:16]}"
