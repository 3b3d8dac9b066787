"""Tables by a catalog of delta_pyds and their name in it: ``prod.main.db.t``.

Invariant: a name that Spark can resolve stays Spark's. Two parts are a schema and a table of Spark's own catalog. A
catalog of the session (``spark.sql.catalog.prod``) comes before one of delta_pyds.
"""

from __future__ import annotations

import re

from pyspark.sql import SparkSession

from delta_pyds.catalog.settings import any_configured, is_configured
from delta_pyds.errors import OptionError, UnsupportedOperationError
from delta_pyds.spark.settings import CATALOG_PREFIX
from delta_pyds.statements.tables import may_be_managed

_PART = r"(?:\w+|`(?:[^`]|``)+`)"
# the first of at least three parts
_FIRST = re.compile(rf"(?<![\w`.])`?([A-Za-z][\w-]{{0,99}})`?\s*\.\s*{_PART}\s*\.\s*[\w`]")


def name_in_catalog(spark: SparkSession, parts: tuple[str, ...]) -> tuple[str, str] | None:
    """The catalog of delta_pyds and the table's name in it; None for any other name.

    Raises: OptionError for a file of catalogs that cannot be read; UnsupportedOperationError for a part with a dot.
    """
    if not may_be_managed(parts) or spark.conf.get(f"{CATALOG_PREFIX}{parts[0]}", None) is not None:
        return None
    catalog, *name = parts
    dotted = next((part for part in name if "." in part), None)
    if dotted is not None:
        raise UnsupportedOperationError(
            f"the part {dotted!r:.200} of a name holds a dot, but in the catalog {catalog} a dot separates parts.",
            code="INVALID_SCHEMA_OR_RELATION_NAME",
            name=".".join(parts),
        )
    return catalog, ".".join(name)


def may_name_managed(text: str) -> bool:
    """Whether a text may hold such a name. Without catalogs the answer takes microseconds."""
    try:
        return any_configured() and any(is_configured(name) for name in {match[1] for match in _FIRST.finditer(text)})
    except OptionError:
        return True  # a field of a struct looks the same; the running statement reports the error of the file
