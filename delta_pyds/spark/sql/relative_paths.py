"""Paths in SQL that are not whole: to Spark, and the reference, ``delta.`events` `` is a table of a schema ``delta``.

Invariant: what Spark finds stays; only where it finds nothing is it said what a path looks like.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.errors import AnalysisException

from delta_pyds.errors import DeltaError, TableNotFoundError

_NAME = re.compile(r"\b(delta|deltapy)`?\s*\.\s*`([^`/]+)`", re.IGNORECASE)
# the second where the schema has the name of a source that Spark knows
_CONDITIONS = ("TABLE_OR_VIEW_NOT_FOUND", "UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY")


@contextmanager
def errors_about_relative_paths(text: Any) -> Iterator[None]:
    """Raises: TableNotFoundError (TABLE_OR_VIEW_NOT_FOUND) instead of what Spark says of such a name."""
    try:
        yield
    except AnalysisException as error:
        if isinstance(error, DeltaError) or error.getCondition() not in _CONDITIONS:
            raise
        # of the second condition Spark names no place
        about_name = error.getCondition() == "TABLE_OR_VIEW_NOT_FOUND"
        about = (error.getMessageParameters() or {}).get("relationName", "") if about_name else text
        found = _NAME.search(about) if isinstance(about, str) else None
        if found is None:
            raise
        schema, name = found.groups()
        raise TableNotFoundError(
            f"there is no table {name!r:.200} in a schema {schema!r}, and as a path it is not whole: in SQL a path is "
            f"absolute, or has a scheme. Write {schema}.`{os.path.abspath(name)}`, if that is the table.",
            code="TABLE_OR_VIEW_NOT_FOUND",
            table=name,
        ) from None
