"""The names of one SQL statement: the Delta tables among them, and the statements that we refuse because of them.

Invariants: a statement looks a name that ``create_table`` gave up once, and then uses the path. A table of
the session's own catalog whose format is unknown counts as a Delta table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from delta_pyds.catalog.address import locate
from delta_pyds.errors import DeltaError, TableNotFoundError, UnsupportedOperationError, UserError
from delta_pyds.protocol.quoting import quote_name
from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.catalog_names import tracked_views
from delta_pyds.spark.catalog_names.locations import refresh_entry
from delta_pyds.spark.catalog_names.lookup import (
    find,
    find_all,
    find_quietly,
    is_about_name,
    is_session_catalog,
    require,
)
from delta_pyds.spark.catalog_names.managed import name_in_catalog
from delta_pyds.spark.catalog_names.texts import NamedTable
from delta_pyds.spark.reference import DELTA, has_reference
from delta_pyds.spark.same_files import shared_path
from delta_pyds.spark.settings import DEFAULT_FORMAT
from delta_pyds.statements import kinds
from delta_pyds.statements.parse import parse_statement
from delta_pyds.statements.spark_statements import name_of

OURS = "deltapy"
S = TypeVar("S")
_NO_PATTERN = re.compile(r"[^\w ]")
_PROVIDER = re.compile(r"^Provider: (\S+)", re.MULTILINE)
_IS_VIEW = re.compile(r"^Type: VIEW\b", re.MULTILINE)


class Names:
    """The names of one statement."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._found: dict[tuple[str, ...], NamedTable | None] = {}
        self._managed: dict[tuple[str, ...], tuple[str, str] | None] = {}
        self._refreshed: set[str] = set()

    def find(self, reference: kinds.TableReference) -> NamedTable | None:
        """The table of the name, also for a reference that ``by_path`` returned; None if it is not ours.

        Raises: CatalogError if Spark does not answer the lookup.
        """
        if reference.path is not None:
            return self._found.get(reference.parts)
        if reference.parts not in self._found:
            managed = self.in_catalog(reference) is not None
            self._found[reference.parts] = None if managed else find_quietly(self._spark, reference.parts)
        return self._found[reference.parts]

    def look_up(self, references: Iterable[kinds.TableReference]) -> None:
        """On Spark Connect, look the names up in parallel, because each is a request to the server."""
        if not is_remote(self._spark):
            return
        unknown = [one.parts for one in references if one.path is None and one.parts not in self._found]
        asked = [parts for parts in dict.fromkeys(unknown) if self.in_catalog(kinds.TableReference(parts, "")) is None]
        self._found.update(zip(asked, find_all(self._spark, asked), strict=True))

    def in_catalog(self, reference: kinds.TableReference) -> tuple[str, str] | None:
        """The catalog that manages the table, and its name there; None for any other reference, and for a path."""
        if reference.path is not None:
            return None
        if reference.parts not in self._managed:
            self._managed[reference.parts] = name_in_catalog(self._spark, reference.parts)
        return self._managed[reference.parts]

    def is_ours_by_name(self, reference: kinds.TableReference) -> bool:
        return self.in_catalog(reference) is not None or self.find(reference) is not None

    def is_ours(self, reference: kinds.TableReference) -> bool:
        return reference.path is not None or self.is_ours_by_name(reference)

    def is_read(self, reference: kinds.TableReference) -> bool:
        """Whether a name without a version is our table, which ``delta_pyds.read`` reads."""
        # the tables of our catalogs are found separately
        return self.in_catalog(reference) is None and self.is_ours(reference)

    def refresh_entries(self, references: Iterable[kinds.TableReference]) -> None:
        """Update the entries of our tables among these: other writers may have added columns."""
        references = tuple(references)
        self.look_up(references)
        found = (self.find(reference) for reference in references if reference.path is None)
        stale = {named.name: named for named in found if named is not None and named.name not in self._refreshed}
        self._refreshed.update(stale)
        for named in stale.values():
            refresh_entry(self._spark, named)
        if stale and not _has_no_cached_rows(self._spark):
            for named in stale.values():
                self._refresh_cached(named)

    def refresh(self, named: NamedTable) -> None:
        """Let Spark drop the cached rows of a table that may have changed."""
        if not _has_no_cached_rows(self._spark):
            self._refresh_cached(named)

    def _refresh_cached(self, named: NamedTable) -> None:
        if self._spark.catalog.isCached(named.quoted):
            self._spark.catalog.refreshTable(named.quoted)

    def by_path(self, reference: kinds.TableReference) -> kinds.TableReference:
        """The same table, named by its path.

        Raises: TableNotFoundError; UnsupportedOperationError for a table or view that is not ours; the errors of
            the catalog.
        """
        if reference.path is not None:
            return reference
        managed = self.in_catalog(reference)
        if managed is not None:
            address = locate(table=managed[1], catalog=managed[0])
            return replace(at_path(reference, address.table_root), storage_options=address.storage_options)
        named = self.find(reference) or _required(self._spark, reference)
        found = at_path(reference, str(shared_path(self._spark, named.location)))
        self._found[found.parts] = named
        return found


def _required(spark: SparkSession, reference: kinds.TableReference) -> NamedTable:
    """Raises: as ``require``, but a missing name has Spark's code, as in the reference's statements."""
    try:
        return require(spark, reference.parts)
    except TableNotFoundError as error:
        raise TableNotFoundError(error.message, code="TABLE_OR_VIEW_NOT_FOUND", **error.parameters) from None


def _has_no_cached_rows(spark: SparkSession) -> bool:
    """Whether Spark has no cached rows that it can find again. To ask for one name takes 80 calls of the JVM.

    On Spark Connect Spark never finds the cached rows of a Python source again.
    """
    return is_remote(spark) or bool(spark._jsparkSession.sharedState().cacheManager().isEmpty())


def refuse_in_catalog(names: Names, reference: kinds.TableReference, what: str) -> None:
    """Raises: UnsupportedOperationError for a table that a catalog manages. ``what``: the words of the statement."""
    managed = names.in_catalog(reference)
    if managed is not None:
        raise UnsupportedOperationError(
            f"{what} is not supported for {reference.text!r:.200}, a table that the catalog {managed[0]!r} manages. "
            "Nothing was changed. Use the catalog's own tools.",
            code="DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION",
            table=reference.text,
            operation=what,
        )


def at_path(reference: kinds.TableReference, location: str) -> kinds.TableReference:
    return replace(reference, parts=(OURS, location))


def by_view(spark: SparkSession, statement: S) -> S:
    """The statement with the table as its target, if its target is a temporary view of a whole table."""
    if (
        not isinstance(statement, (kinds.Delete, kinds.Update, kinds.Merge, kinds.Insert))
        or len(statement.target.parts) != 1
    ):
        return statement
    if statement.target.path is not None:
        return statement
    name = statement.target.parts[0]
    source = tracked_views.whole_table(spark, name)
    if source is None:
        return statement
    target = replace(at_path(statement.target, source.path), storage_options=source.storage_options)
    if isinstance(statement, kinds.Insert):
        return replace(statement, target=target)
    return replace(statement, target=target, alias=statement.alias or name)


def refuse_changes_of_ours(spark: SparkSession, statement: kinds.PassThrough, args: Any = None) -> None:
    """Raises: UnsupportedOperationError if Spark would change our catalog entry and not the Delta table."""
    for view in statement.changed_views:
        if find(spark, view.parts) is not None:
            raise UserError(
                f"{view.text!r:.200} is a Delta table. The view of this name in Spark's catalog belongs to it. Choose "
                "another name for the view, or use ALTER TABLE.",
                code="EXPECT_VIEW_NOT_TABLE.NO_ALTERNATIVE",
                table=view.text,
            )
    for reference in _changed(spark, statement, args):
        refuse_if_ours(spark, reference)


def refuse_if_ours(spark: SparkSession, reference: kinds.TableReference) -> None:
    """Raises: UnsupportedOperationError for a table that has this format in the catalog."""
    if find(spark, reference.parts) is not None:
        raise UnsupportedOperationError(
            f"{reference.text!r:.200} is a Delta table: Spark would change only its entry in the catalog, not the "
            "table. Run the statement on its own, in a form that delta_pyds supports.",
            name=reference.text,
        )
    found = _format(spark, reference.parts)
    if found not in (OURS, ""):
        return
    known = f"has the format {OURS}" if found else "has an unknown format"
    raise UnsupportedOperationError(
        f"the table {reference.text!r:.200} {known} in Spark's catalog: Spark would change only its entry there, "
        "not the table. Name the table by its path: delta.`/data/events`.",
        name=reference.text,
    )


def creates_ours(spark: SparkSession, provider: str | None) -> bool:
    """Whether CREATE TABLE with this USING clause, or without a clause, creates a table of this format."""
    name = (provider or spark.conf.get(DEFAULT_FORMAT, None) or "").lower()
    return name == OURS or (name == DELTA and not has_reference(spark))


def _format(spark: SparkSession, parts: tuple[str, ...]) -> str | None:
    """The format of a table of the catalog, in lower case; None if the name is unknown or a view.

    Empty for a table of unknown format: DESCRIBE and SHOW CREATE TABLE show no format for a table of a Python source.
    """
    *namespace, name = parts
    quoted = quote_name(*parts)
    catalog = parts[0] if len(parts) > 2 else None
    of_namespace = f" IN {quote_name(*namespace)}" if namespace else ""
    try:
        # the pattern is a regular expression: each special character is replaced by one that matches any character
        rows = spark.sql(f"SHOW TABLE EXTENDED{of_namespace} LIKE '{_NO_PATTERN.sub('.', name)}'").collect()
        same = [str(row["information"]) for row in rows if str(row["tableName"]).lower() == name.lower()]
        if not same:
            return "" if is_session_catalog(spark, catalog) and spark.catalog.tableExists(quoted) else None
    except PySparkException:
        return "" if is_session_catalog(spark, catalog) and _exists(spark, quoted) else None
    for information in same:
        found = _PROVIDER.search(information)
        if found is not None:
            return found[1].lower()
    return None if any(_IS_VIEW.search(information) for information in same) else ""


def _exists(spark: SparkSession, name: str) -> bool:
    try:
        return spark.catalog.tableExists(name)
    except PySparkException as error:
        if is_about_name(error):
            return False  # Spark reports the error of the name
        raise


# --- the tables that a statement of Spark changes


def _changed(
    spark: SparkSession, statement: kinds.PassThrough, args: Any, depth: int = 0
) -> Iterator[kinds.TableReference]:
    for changed in statement.changed:
        yield from (changed,) if isinstance(changed, kinds.TableReference) else _named_by(spark, changed, args)
    for immediate in statement.immediate:
        text = _text_of(spark, immediate, args)
        if text is not None and depth < 3:
            try:
                inner = parse_statement(text)
            except UnsupportedOperationError:
                raise  # Spark might do half of the statement, or silently nothing
            except DeltaError:
                continue  # Spark reports the error
            created = inner.statement
            if (
                isinstance(created, kinds.Create)
                and created.target.path is None
                and creates_ours(spark, created.provider)
            ):
                raise UnsupportedOperationError(
                    f"CREATE TABLE {created.target.text:.200} is not supported within EXECUTE IMMEDIATE: run it as a "
                    "separate statement.",
                    name=created.target.text,
                )
            yield from _changed(spark, inner.as_pass_through(), None, depth + 1)


def _named_by(spark: SparkSession, expression: kinds.SqlText, args: Any) -> Iterator[kinds.TableReference]:
    """The table that IDENTIFIER(expression) names, and the tables that it names if its last parts are columns."""
    text = _text_of(spark, expression, args)
    parts = None if text is None else name_of(text)
    for end in range(len(parts or ()), 0, -1):
        yield kinds.TableReference((parts or ())[:end], text or "")


def _text_of(spark: SparkSession, expression: kinds.SqlText, args: Any) -> str | None:
    given = args if isinstance(args, dict) else None
    try:
        found = spark.sql(f"SELECT {expression.text} AS text", given).collect()[0][0]
    except PySparkException as error:
        if error.getCondition() is None:
            raise  # Spark did not answer
        return None  # Spark reports the error when it runs the statement
    return found if isinstance(found, str) else None
