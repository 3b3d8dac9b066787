"""A name of Spark's session catalog to the table that has it.

Invariant: a name is ours only if its view carries our mark and has, letter by letter, the text that we write. Where a
table lies stands in that text alone: never in the metadata of a frame, which wanders with its columns.

On Spark Connect each question to the catalog is one to the server. There one tells what several names are, and a second
where those are that may be ours; none ends in an error, which PySpark would log.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from delta_pyds.errors import TableNotFoundError, UnsupportedOperationError
from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.named_tables.texts import MARK, SESSION_CATALOG, NamedTable, holder_and_location, quoted
from delta_pyds.spark.plain_calls import plain_calls
from delta_pyds.statements.spark_statements import name_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Name = str | tuple[str, ...]
# between two questions a name may go
_GONE = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND")
# what the session catalog can hold
_PLAIN = re.compile(r"\w+", re.ASCII)
_TEMPORARY = "a temporary view of this session"
_VIEW = "a view of somebody's"
_TABLE = "a table that Spark knows by itself"


@dataclass(frozen=True)
class Foreign:
    """What has a name and is not ours. ``kind``: in words."""

    kind: str


def find(spark: SparkSession, name: Name) -> NamedTable | None:
    """The table of that name; None where there is none, and where something else has it."""
    found = look_up(spark, name)
    return found if isinstance(found, NamedTable) else None


def require(spark: SparkSession, name: Name) -> NamedTable:
    """The table of that name.

    Raises: TableNotFoundError; UnsupportedOperationError for what is not ours; Spark's ParseException for what is no
        name.
    """
    found = look_up(spark, name)
    shown = name if isinstance(name, str) else ".".join(name)
    if found is None:
        raise TableNotFoundError(
            f"{shown!r:.200} is not a Delta table: the session's catalog has no table of that name. "
            "delta_pyds.create_table(spark, name, path) gives the table at a path a name; the name "
            "delta.`/data/events` holds the path itself.",
            code="DELTA_MISSING_DELTA_TABLE",
            table=shown,
        )
    if isinstance(found, Foreign):
        raise UnsupportedOperationError(
            f"the name {shown!r:.200} is {found.kind}, and not one that delta_pyds.create_table gave to a Delta table. "
            "Use Spark for it; for a Delta table, give its path, or another name by delta_pyds.create_table(spark, "
            "name, path).",
            name=shown,
        )
    return found


def look_up(spark: SparkSession, name: Name) -> NamedTable | Foreign | None:
    """What has the name, as a query of this session would find it: a temporary view goes first.

    Raises: Spark's ParseException for what is no name.
    """
    parts = name_of(name) if isinstance(name, str) else name
    with plain_calls():
        if parts is None:
            spark.catalog.tableExists(str(name))  # Spark says what is wrong with it
            return None
        if is_remote(spark):
            return _of_server(spark, [parts])[0] if _may_be_name(parts) else None
        text = quoted(parts)
        try:
            if not spark.catalog.tableExists(text):
                return None
            kind = _kind(spark, text)
            if kind != "VIEW":
                return Foreign(_TEMPORARY if kind == "TEMPORARY" else _TABLE)
            (row,) = spark.sql(f"DESCRIBE TABLE EXTENDED {text} AS JSON").collect()
        except PySparkException as error:
            if (error.getCondition() or "").startswith(_GONE):
                return None
            raise
    return _table_of(json.loads(row[0])) or Foreign(_VIEW)


def find_all(spark: SparkSession, names: Sequence[tuple[str, ...]]) -> list[NamedTable | None]:
    """``find`` of each name; on Spark Connect by one question to the server, or two. What Spark refuses is None."""
    if not is_remote(spark):
        return [_find_quietly(spark, name) for name in names]
    asked = [name for name in dict.fromkeys(names) if _may_be_name(name)]
    known: dict[tuple[str, ...], NamedTable | Foreign | None] = {}
    if asked:
        with plain_calls():
            try:
                known = dict(zip(asked, _of_server(spark, asked), strict=True))
            except PySparkException:
                known = {name: _find_quietly(spark, name) for name in asked}
    found = [known.get(name) for name in names]
    return [table if isinstance(table, NamedTable) else None for table in found]


def _find_quietly(spark: SparkSession, name: tuple[str, ...]) -> NamedTable | None:
    try:
        return find(spark, name)
    except PySparkException:
        return None


def _may_be_name(parts: tuple[str, ...]) -> bool:
    """Whether the session catalog may have it. Of one in another catalog nothing is asked."""
    if len(parts) == 3 and parts[0].lower() != SESSION_CATALOG:
        return False
    return len(parts) <= 3 and all(map(_PLAIN.fullmatch, parts))


def _of_server(spark: Any, names: Sequence[tuple[str, ...]]) -> list[NamedTable | Foreign | None]:
    """What the names are. Raises: Spark's exceptions; of several names, where the schema of one is not there."""
    from pyspark.sql.connect.plan import SQL, ListTables

    plans = [ListTables(db_name=quoted(name[:-1]) or None, pattern=name[-1]) for name in names]
    columns = ("name", "catalog", "tableType", "isTemporary")
    try:
        rows = _answers(spark, plans, columns)
    except PySparkException as error:
        if len(names) == 1 and (error.getCondition() or "").startswith(_GONE):
            return [None]
        raise
    found: list[NamedTable | Foreign | None] = [None] * len(names)
    views: list[int] = []
    for number, table, catalog, kind, is_temporary in rows:
        parts = names[number]
        if table.lower() != parts[-1].lower() or (is_temporary and len(parts) > 1):
            continue
        if is_temporary or found[number] is None:
            found[number] = Foreign(_TEMPORARY if is_temporary else _VIEW if kind == "VIEW" else _TABLE)
        if kind == "VIEW" and catalog == SESSION_CATALOG and not is_temporary:
            views.append(number)
    views = [number for number in views if found[number] == Foreign(_VIEW)]
    if views:
        # ``spark.sql`` would run it at once, and answer at the second question
        texts = [f"DESCRIBE TABLE EXTENDED {quoted(names[number])} AS JSON" for number in views]
        for number, text in _answers(spark, [SQL(text) for text in texts], ("json_metadata",)):
            found[views[number]] = _table_of(json.loads(text)) or Foreign(_VIEW)
    return found


def _answers(spark: Any, plans: Sequence[Any], columns: tuple[str, ...]) -> list[Any]:
    """The rows of all plans from one question, each behind the number of its plan."""
    from pyspark.sql.connect.dataframe import DataFrame
    from pyspark.sql.functions import lit

    frames = [DataFrame(plan, spark).select(lit(number), *columns) for number, plan in enumerate(plans)]
    return list(reduce(lambda one, other: one.unionAll(other), frames).collect())


def _kind(spark: SparkSession, text: str) -> str:
    # PySpark's own getTable asks the JVM once for each field of what it finds
    return str(spark.catalog._jcatalog.getTable(text).tableType())


def _table_of(described: dict[str, Any]) -> NamedTable | None:
    mark = (described.get("table_properties") or {}).get(MARK)
    found = holder_and_location(described.get("view_text") or "")
    namespace = described.get("namespace") or []
    if mark not in ("external", "managed") or found is None or len(namespace) != 1:
        return None
    if described.get("catalog_name", SESSION_CATALOG) != SESSION_CATALOG:
        return None
    table = NamedTable(namespace[0], described["table_name"], found[1], found[0], mark == "managed")
    return table if table.select == described["view_text"] else None
