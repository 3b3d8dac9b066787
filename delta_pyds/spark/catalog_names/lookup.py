"""The lookup of a name in Spark's session catalog.

Invariant: a name is ours only if its view carries our mark and has exactly the text that we write. That text alone
holds the location of the table. The metadata of columns cannot hold it: a DataFrame carries it to other tables.

On Spark Connect a lookup sends requests to the server. One request finds the entry of the name. If it may be ours, a
second one finds the table's location. No request names a missing table: PySpark would log the error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from pyspark.errors import ParseException, PySparkException
from pyspark.sql import SparkSession

from delta_pyds.errors import CatalogError, TableNotFoundError, UnsupportedOperationError, first_line
from delta_pyds.protocol.quoting import quote_name
from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.catalog_names.texts import MARK, SESSION_CATALOG, NamedTable, entry_and_location
from delta_pyds.spark.plain_calls import plain_calls
from delta_pyds.statements.spark_statements import name_of

Name = str | tuple[str, ...]
# a name may be dropped between two lookups
_GONE = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND")
# further error conditions of Spark for a name that no table of its session catalog can have
_NO_NAME = (
    "CATALOG_NOT_FOUND", "FORBIDDEN_OPERATION", "IDENTIFIER_TOO_MANY_NAME_PARTS", "INVALID_IDENTIFIER",
    "INVALID_SCHEMA_OR_RELATION_NAME", "MISSING_CATALOG_ABILITY", "MISSING_DATABASE_FOR_V1_SESSION_CATALOG", "PARSE_",
    "REQUIRES_SINGLE_PART_NAMESPACE", "UNSUPPORTED_",
)  # fmt: skip
# names that the session catalog can hold
_PLAIN = re.compile(r"\w+", re.ASCII)
_AT_ONCE = 8
_TEMPORARY = "a temporary view of this session"
_VIEW = "a view that delta_pyds did not create"
_TABLE = "a Spark table"


@dataclass(frozen=True)
class Foreign:
    """A table or view that is not ours. ``kind``: its kind, for messages."""

    kind: str


def find(spark: SparkSession, name: Name) -> NamedTable | None:
    """The table of that name; None for a free name, and for another table or view."""
    found = look_up(spark, name)
    return found if isinstance(found, NamedTable) else None


def require(spark: SparkSession, name: Name) -> NamedTable:
    """The table of that name.

    Raises: TableNotFoundError; UnsupportedOperationError for a table or view that is not ours; Spark's ParseException
        for an invalid name.
    """
    found = look_up(spark, name)
    shown = name if isinstance(name, str) else ".".join(name)
    if found is None:
        raise TableNotFoundError(
            f"{shown!r:.200} is not a Delta table: the session's catalog has no table of that name. To name the table "
            "at a path, call delta_pyds.create_table(spark, name, path). To use a path as the name, write "
            "delta.`/data/events`.",
            code="DELTA_MISSING_DELTA_TABLE",
            table=shown,
        )
    if isinstance(found, Foreign):
        raise UnsupportedOperationError(
            f"the name {shown!r:.200} belongs to {found.kind}, not to a table that delta_pyds.create_table named. "
            "Use Spark for it. For a Delta table, give its path, or another name by delta_pyds.create_table(spark, "
            "name, path).",
            name=shown,
        )
    return found


def look_up(spark: SparkSession, name: Name) -> NamedTable | Foreign | None:
    """The table or view that has the name, as a query of this session finds it: a temporary view comes first.

    Raises: Spark's ParseException for an invalid name.
    """
    parts = name_of(name) if isinstance(name, str) else name
    with plain_calls():
        if parts is None:
            spark.catalog.tableExists(str(name))  # raises Spark's own error
            return None
        text = quote_name(*parts)
        try:
            if is_remote(spark):
                return _look_up_on_server(spark, parts) if _is_possible_name(parts) else None
            if not spark.catalog.tableExists(text):
                return None
            # PySpark's own getTable asks the JVM once for each field of what it finds
            found = spark.catalog._jcatalog.getTable(text)
            kind = str(found.tableType())
            if kind != "VIEW":
                return Foreign(_TEMPORARY if kind == "TEMPORARY" else _TABLE)
            return _of_entry(spark, found) or Foreign(_VIEW)
        except PySparkException as error:
            if (error.getCondition() or "").startswith(_GONE):
                return None
            raise


def find_all(spark: SparkSession, names: Sequence[tuple[str, ...]], *, views: bool = False) -> list[NamedTable | None]:
    """``find_quietly`` of each name, in parallel on Spark Connect."""
    if len(names) > 1 and is_remote(spark):
        with ThreadPoolExecutor(min(len(names), _AT_ONCE)) as pool:
            return list(pool.map(lambda name: find_quietly(spark, name, view=views), names))
    return [find_quietly(spark, name, view=views) for name in names]


def find_quietly(spark: SparkSession, name: Name, *, view: bool = False) -> NamedTable | None:
    """``find``, but None for a name that the session catalog cannot have. Spark reports the error of such a name.

    ``view``: the name certainly is a view of that catalog. Then one request is enough.
    Raises: CatalogError if Spark did not answer: the name may be ours.
    """
    try:
        if not view or isinstance(name, str):
            return find(spark, name)
        with plain_calls():
            return _of_view(spark, quote_name(*name))
    except PySparkException as error:
        if is_about_name(error) or not _may_be_in_session_catalog(spark, name):
            return None
        raise _unknown_name(name, error) from error


def is_about_name(error: PySparkException) -> bool:
    """Whether the error means that no table has, or can have, a name. Other errors leave this open."""
    return isinstance(error, ParseException) or (error.getCondition() or "").startswith((*_GONE, *_NO_NAME))


def _may_be_in_session_catalog(spark: SparkSession, name: Name) -> bool:
    """Whether the name may belong to the session catalog. Other catalogs have their own errors, not our tables."""
    parts = (name_of(name) if isinstance(name, str) else name) or ()
    if len(parts) > 3:
        return False
    try:
        return is_session_catalog(spark, parts[0] if len(parts) == 3 else None)
    except PySparkException:
        return True  # the catalog does not answer


def is_session_catalog(spark: SparkSession, catalog: str | None) -> bool:
    """Whether a catalog, by default the current one, is the session catalog. Others have formats of their own."""
    return (spark.catalog.currentCatalog() if catalog is None else catalog).lower() == SESSION_CATALOG


def _unknown_name(name: Name, error: PySparkException) -> CatalogError:
    shown = name if isinstance(name, str) else ".".join(name)
    return CatalogError(
        f"the catalog of the Spark session did not say what {shown!r:.200} is, so delta_pyds cannot know "
        f"whether it is a Delta table. Nothing was run. Try again when Spark answers. {first_line(error):.500}",
        table=shown,
    )


def _is_possible_name(parts: tuple[str, ...]) -> bool:
    """Whether the session catalog may have the name. Names of other catalogs need no request."""
    if len(parts) == 3 and parts[0].lower() != SESSION_CATALOG:
        return False
    return len(parts) <= 3 and all(map(_PLAIN.fullmatch, parts))


def _look_up_on_server(spark: Any, parts: tuple[str, ...]) -> NamedTable | Foreign | None:
    """``look_up`` on Spark Connect. Raises: Spark's exceptions."""
    from pyspark.sql.connect.plan import ListTables

    listed = _answer(spark, ListTables(db_name=quote_name(*parts[:-1]) or None, pattern=parts[-1]))
    # Sail answers with other columns, and has none of our names
    same = [row for row in listed if row.get("name", "").lower() == parts[-1].lower()]
    if len(parts) == 1 and any(row["isTemporary"] for row in same):
        return Foreign(_TEMPORARY)
    found = next((row for row in same if not row["isTemporary"]), None)
    if found is None:
        return None
    if found["tableType"] != "VIEW" or found["catalog"] != SESSION_CATALOG:
        return Foreign(_VIEW if found["tableType"] == "VIEW" else _TABLE)
    return _of_view(spark, quote_name(*parts)) or Foreign(_VIEW)


def _of_view(spark: SparkSession, text: str) -> NamedTable | None:
    """The table of an existing view, on Spark Connect by one request. Raises: Spark's exceptions."""
    if not is_remote(spark):
        return _of_entry(spark, spark.catalog._jcatalog.getTable(text))
    from pyspark.sql.connect.plan import SQL

    # ``spark.sql`` would run the statement at once, and need a second request for its rows
    (answer,) = _answer(spark, SQL(f"DESCRIBE TABLE EXTENDED {text} AS JSON"))
    described = json.loads(answer["json_metadata"])
    namespace = described.get("namespace") or []
    if len(namespace) != 1 or described.get("catalog_name", SESSION_CATALOG) != SESSION_CATALOG:
        return None
    mark = (described.get("table_properties") or {}).get(MARK)
    return _table_of(namespace[0], described["table_name"], described.get("view_text") or "", mark)


def _of_entry(spark: Any, view: Any) -> NamedTable | None:
    """The table of a view, which the JVM's catalog found. DESCRIBE would take ten times as long: it runs a query."""
    schema, name = view.database(), view.name()
    if schema is None or view.catalog() != SESSION_CATALOG:
        return None
    described = spark._jsparkSession.sessionState().catalog().externalCatalog().getTable(schema, name)
    text = described.viewText()
    if not text.isDefined() or entry_and_location(text.get()) is None:
        return None
    mark = described.properties().get(MARK)
    return _table_of(schema, name, text.get(), mark.get() if mark.isDefined() else None)


def _answer(spark: Any, plan: Any) -> list[dict[str, Any]]:
    """The rows of a plan, by one request."""
    from pyspark.sql.connect.dataframe import DataFrame

    table, _ = DataFrame(plan, spark)._to_table()
    return [] if table is None else table.to_pylist()


def _table_of(schema: str, name: str, view_text: str, mark: str | None) -> NamedTable | None:
    """The table of a view of the session catalog. ``mark``: the value of the view's property ``MARK``."""
    found = entry_and_location(view_text)
    if mark not in ("external", "managed") or found is None:
        return None
    table = NamedTable(schema, name, found[1], found[0], mark == "managed")
    return table if table.select == view_text else None
