"""Tables by name, and what is refused of them.

Today a name is Spark's: what Spark cannot do with a table of ours is refused before Spark does half of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from delta_pyds.errors import UnsupportedOperationError
from delta_pyds.statements.kinds import TableReference

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OURS = "deltapy"


def require_path(reference: TableReference) -> str:
    """Raises: UnsupportedOperationError for a name of a catalog."""
    if reference.path is None:
        raise UnsupportedOperationError(
            f"the statement is about the table named {reference.text!r:.200}, and this version of delta_pyds looks no "
            "names of a catalog up. Name the table by its path: delta.`/data/events`.",
            name=reference.text,
        )
    return reference.path


def refuse_if_ours(spark: SparkSession, reference: TableReference) -> None:
    """Raises: UnsupportedOperationError for a table that the catalog knows as one of this format."""
    try:
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {reference.text}").collect()
    except PySparkException:
        return  # whatever is wrong with the name, Spark says
    if any(row[0] == "Provider" and str(row[1]).lower() == _OURS for row in rows):
        raise UnsupportedOperationError(
            f"the table {reference.text!r:.200} is one of the format {_OURS} in Spark's catalog, and Spark would "
            "change its entry there and not the table. Name the table by its path: delta.`/data/events`.",
            name=reference.text,
        )
