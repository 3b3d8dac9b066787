"""SHOW TABLES, SHOW TABLE EXTENDED and SHOW VIEWS: named tables appear as tables, without their column entries.
Temporary views that hold file indexes are left out.

Invariant: other rows are exactly Spark's, in Spark's order. No table is opened for a list.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from delta_pyds.spark.catalog_names.lookup import find, is_session_catalog
from delta_pyds.spark.catalog_names.texts import ENTRY_PREFIX, MARK, SESSION_CATALOG, NamedTable, is_entry
from delta_pyds.spark.incoming import frame_of_table
from delta_pyds.spark.native.eligibility import FILES_VIEW_PREFIX

_LISTS = re.compile(r"SHOW (?:TABLES|TABLE EXTENDED|VIEWS)\b")
_JSON = "json_metadata"
_SCHEMA = "\nSchema: root"
# the lines about the view that also hold for the table
_LINES_OF_TABLE = ("Catalog", "Database", "Table", "Owner", "Created Time", "Last Access", "Created By")


def lists_tables(verb: str) -> bool:
    """Whether a statement with these first words returns a row for each table or view."""
    return _LISTS.match(verb) is not None


def shown(spark: SparkSession, namespace: tuple[str, ...] | None, answer: DataFrame) -> DataFrame:
    """The statement's answer. ``namespace``: the one in the statement, if any. ``answer``: Spark's answer."""
    if not is_session_catalog(spark, namespace[0] if namespace is not None and len(namespace) > 1 else None):
        return answer
    rows = [tuple(row) for row in answer.collect()]
    kept = (
        [(_as_json(spark, text),) for (text,) in rows] if _JSON in answer.columns else _rows_shown(spark, answer, rows)
    )
    return answer if kept == rows else _frame(spark, answer, kept)


def _rows_shown(spark: SparkSession, answer: DataFrame, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    of_views = "viewName" in answer.columns  # SHOW VIEWS shows no view texts
    if not of_views and not any(ENTRY_PREFIX in str(value) for row in rows for value in row):
        return rows
    kept = [row for row in rows if not (is_index(row[1]) if row[2] else _is_hidden(spark, row, of_views=of_views))]
    return [_with_information(spark, row) for row in kept] if "information" in answer.columns else kept


def is_index(name: str) -> bool:
    """Whether a temporary view is one that holds the file index of a read."""
    return name.lower().startswith(FILES_VIEW_PREFIX)


def _is_hidden(spark: SparkSession, row: tuple[Any, ...], *, of_views: bool) -> bool:
    """Whether a row names an entry with columns, or, in a list of views, a table."""
    if not of_views:
        return is_entry(row[1])
    return find(spark, (SESSION_CATALOG, row[0], row[1])) is not None


def _as_json(spark: SparkSession, text: str) -> str:
    """The answer of SHOW TABLES ... AS JSON. With EXTENDED it has a type for each entry."""
    found = json.loads(text)
    found["tables"] = [
        one for one in found["tables"] if not (is_index if one["isTemporary"] else is_entry)(one["name"])
    ]
    for one in found["tables"]:
        if one.get("type") == "VIEW" and not one["isTemporary"]:
            named = find(spark, (SESSION_CATALOG, *one["namespace"], one["name"]))
            if named is not None:
                one["type"] = "MANAGED" if named.managed else "EXTERNAL"
    return text if found == json.loads(text) else json.dumps(found, ensure_ascii=False, separators=(",", ":"))


def _with_information(spark: SparkSession, row: tuple[Any, ...]) -> tuple[Any, ...]:
    namespace, name, is_temporary, information = row
    if is_temporary or f"{MARK}=" not in information:
        return row
    named = find(spark, (SESSION_CATALOG, namespace, name))
    if named is None or named.select not in information:
        return row
    return namespace, name, is_temporary, _information(named, information)


def _information(named: NamedTable, information: str) -> str:
    """The reference's lines. Programs search them for ``Type: VIEW`` and ``Provider: delta``."""
    head, schema, columns = information.partition(_SCHEMA)
    lines = [line for line in head.splitlines() if line.split(": ", 1)[0] in _LINES_OF_TABLE]
    lines += [
        f"Type: {'MANAGED' if named.managed else 'EXTERNAL'}",
        "Provider: delta",
        f"Location: {named.location}",
    ]
    return "\n".join(lines) + schema + columns


def _frame(spark: SparkSession, answer: DataFrame, rows: list[tuple[Any, ...]]) -> DataFrame:
    columns = list(zip(*rows, strict=True)) or [()] * len(answer.columns)
    types = (pa.bool_() if name == "isTemporary" else pa.string() for name in answer.columns)
    table = pa.table(
        {name: pa.array(values, kind) for name, values, kind in zip(answer.columns, columns, types, strict=True)}
    )
    return frame_of_table(spark, table).coalesce(1)
