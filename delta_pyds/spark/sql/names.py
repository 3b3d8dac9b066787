"""Tables by name, and what is refused of them.

Today a name is Spark's: what Spark cannot do with a table of ours is refused before Spark does half of it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from delta_pyds.errors import UnsupportedOperationError
from delta_pyds.statements.kinds import TableReference

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OURS = "deltapy"
# a name that is a pattern of itself alone
_PATTERN = re.compile(r"[\w ]+")
_PROVIDER = re.compile(r"^Provider: (\w+)", re.MULTILINE)


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
    if _provider(spark, reference) == _OURS:
        raise UnsupportedOperationError(
            f"the table {reference.text!r:.200} is one of the format {_OURS} in Spark's catalog, and Spark would "
            "change its entry there and not the table. Name the table by its path: delta.`/data/events`.",
            name=reference.text,
        )


def _provider(spark: SparkSession, reference: TableReference) -> str | None:
    """The format of a table of the catalog, in lower case; None where nothing says it.

    Of a table of a Python source DESCRIBE and SHOW CREATE TABLE say none.
    """
    *namespace, name = reference.parts
    if not _PATTERN.fullmatch(name):
        return None
    of_namespace = " IN " + ".".join("`" + part.replace("`", "``") + "`" for part in namespace) if namespace else ""
    try:
        rows = spark.sql(f"SHOW TABLE EXTENDED{of_namespace} LIKE '{name}'").collect()
    except PySparkException:
        return None  # whatever is wrong with the name, Spark says
    found = [_PROVIDER.search(str(row["information"])) for row in rows]
    return next((match[1].lower() for match in found if match is not None), None)
