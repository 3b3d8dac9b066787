"""Relative paths in SQL: to Spark, and the reference, ``delta.`events` `` is a table of a schema ``delta``.

Invariant: a table that Spark finds is used. If Spark finds no table, the error explains paths.
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
# Spark raises the second condition if the schema is called like one of its data sources
_CONDITIONS = ("TABLE_OR_VIEW_NOT_FOUND", "UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY")


@contextmanager
def errors_about_relative_paths(text: Any) -> Iterator[None]:
    """Raises: TableNotFoundError (TABLE_OR_VIEW_NOT_FOUND) instead of Spark's error about such a name."""
    try:
        yield
    except AnalysisException as error:
        if isinstance(error, DeltaError) or error.getCondition() not in _CONDITIONS:
            raise
        # the second condition of Spark names no table
        about_name = error.getCondition() == "TABLE_OR_VIEW_NOT_FOUND"
        about = (error.getMessageParameters() or {}).get("relationName", "") if about_name else text
        found = _NAME.search(about) if isinstance(about, str) else None
        if found is None:
            raise
        schema, name = found.groups()
        raise TableNotFoundError(
            f"the schema {schema!r} has no table {name!r:.200}. If it is a path: in SQL paths are absolute, or have "
            f"a scheme. Write {schema}.`{os.path.abspath(name)}`, if that is the table.",
            code="TABLE_OR_VIEW_NOT_FOUND",
            table=name,
        ) from None
