"""``delta_pyds.sql``: a statement by its kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from delta_pyds.errors import CatalogError, DeltaError, OptionError, UnsupportedOperationError
from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.catalog_names import listings
from delta_pyds.spark.catalog_names import statement_names as names
from delta_pyds.spark.catalog_names.lookup import is_about_name
from delta_pyds.spark.catalog_names.persistent_views import create_view
from delta_pyds.spark.empty_frame import empty_frame
from delta_pyds.spark.reference import has_reference
from delta_pyds.spark.spark_errors import errors_of_spark
from delta_pyds.spark.sql import (
    aggregates,
    alter,
    cached_rows,
    caching,
    create,
    describe,
    insert,
    maintenance,
    row_changes,
    scripts,
)
from delta_pyds.spark.sql.context import StatementContext
from delta_pyds.spark.sql.frames import as_views
from delta_pyds.spark.sql.statement_errors import errors_about_relative_paths, errors_about_views, errors_with_positions
from delta_pyds.spark.table_commands import alter as alter_table
from delta_pyds.spark.table_commands import describe as describe_table
from delta_pyds.spark.table_commands import layout, rows
from delta_pyds.spark.table_commands.maintenance import generate
from delta_pyds.statements import kinds
from delta_pyds.statements.parse import OF_DELTA_ALONE, begins_as_of_delta, parse_statement
from delta_pyds.statements.scripts import Script, script_of
from delta_pyds.statements.spark_statements import takes_frames

# the text of a statement about our tables, its arguments, and its context if its names were looked up
OurStatement = tuple[str, Any, StatementContext | None]

_RUN: dict[type, Callable[[StatementContext, Any], DataFrame | None]] = {
    kinds.Delete: row_changes.delete,
    kinds.Update: row_changes.update,
    kinds.Merge: row_changes.merge,
    kinds.Truncate: lambda c, s: rows.truncate(c.table(s.target)),
    kinds.Insert: insert.insert,
    kinds.Create: create.create,
    kinds.Clone: create.clone,
    kinds.DropTable: alter.drop_table,
    kinds.RenameTable: alter.rename_table,
    kinds.SetLocation: alter.set_location,
    kinds.AddColumns: alter.add_columns,
    kinds.ReplaceColumns: alter.replace_columns,
    kinds.RenameColumn: lambda c, s: alter_table.rename_column(c.table(s.target), s.column, s.new_name),
    kinds.DropColumns: alter.drop_columns,
    kinds.AlterColumn: lambda c, s: alter.alter_columns(c, s.target, [s]),
    kinds.AlterColumns: lambda c, s: alter.alter_columns(c, s.target, s.columns),
    kinds.SyncIdentity: lambda c, s: alter_table.sync_identity(c.table(s.target), s.column),
    kinds.SetProperties: lambda c, s: alter_table.set_properties(c.table(s.target), s.properties),
    # IF EXISTS is never required, as in the reference
    kinds.UnsetProperties: lambda c, s: alter_table.unset_properties(c.table(s.target), s.keys, if_exists=True),
    kinds.AddConstraint: alter.add_constraint,
    kinds.DropConstraint: alter.drop_constraint,
    kinds.ClusterBy: lambda c, s: layout.cluster_by(c.table(s.target), s.columns),
    kinds.DropFeature: lambda c, s: alter_table.drop_feature(
        c.table(s.target), s.feature, truncate_history=s.truncate_history
    ),
    kinds.Optimize: maintenance.optimize,
    kinds.Purge: lambda c, s: layout.purge(c.table(s.target), maintenance.filters(c, s.condition)),
    kinds.Vacuum: maintenance.vacuum,
    kinds.Restore: maintenance.restore,
    kinds.Convert: maintenance.convert,
    kinds.Generate: lambda c, s: generate(c.table(s.target), s.mode),
    kinds.DescribeHistory: lambda c, s: describe_table.history(c.table(s.target), s.limit),
    kinds.DescribeDetail: lambda c, s: describe_table.detail(c.table(s.target)),
    kinds.Describe: describe.describe,
    kinds.ShowProperties: describe.show_properties,
    kinds.ShowColumns: describe.show_columns,
    kinds.ShowPartitions: describe.show_partitions,
    kinds.ShowCreate: describe.show_create,
    kinds.Explain: describe.explain,
    kinds.CacheTable: caching.cache_table,
    kinds.Refresh: caching.refresh,
}
# these statements are about the name, not the table
_MAKES_OR_MOVES = (kinds.Create, kinds.Clone, kinds.DropTable, kinds.RenameTable, kinds.SetLocation)
_QUESTIONS = (
    kinds.DescribeHistory, kinds.DescribeDetail, kinds.Describe, kinds.ShowProperties,
    kinds.ShowColumns, kinds.ShowPartitions, kinds.ShowCreate, kinds.Refresh, kinds.CacheTable,
    kinds.Explain,
)  # fmt: skip
# the first words of statements that may read a table by name
_QUERIES = ("SELECT", "WITH", "FROM", "TABLE", "INSERT", "CREATE", "CACHE", "EXPLAIN", "MERGE")
# words of statements that may have changed something before they failed
_CHANGING = re.compile(r"\b(?:INSERT|MERGE|UPDATE|DELETE|CREATE|REPLACE)\b", re.IGNORECASE)


def sql(spark: SparkSession, text: str, args: dict[str, Any] | list[Any] | None = None) -> DataFrame:
    """Run one statement: Delta's here, any other by Spark, with tables by path wherever Spark takes a table.

    ``delta.`/data/events``` and ``deltapy.`/data/events``` name tables, also with ``VERSION AS OF 3``,
    ``TIMESTAMP AS OF '2026-01-31'`` or ``@v3``, and ``table_changes('/data/events', 3)``; ``STREAM t`` is read as a
    stream. ``t CHANGES FROM VERSION 1 TO VERSION 3`` gives changes, on Spark 4.2 and later. Names that
    ``delta_pyds.create_table`` or CREATE TABLE ... USING deltapy gave are taken like paths. So is ``prod.main.db.t``,
    the table ``main.db.t`` of a catalog ``prod`` (see ``delta_pyds.catalog``), if the session has no catalog of that
    name. Other names are Spark's.

    Args:
        spark: The session, classic or of Spark Connect.
        text: The statement.
        args: Values for ``:name`` (a dict) or ``?`` (a list).

    Returns:
        The DataFrame of Spark's ``sql``; for a command, one with the reference's columns. A command has run when this
        returns.

    Raises:
        SqlSyntaxError: A statement of Delta is invalid; the error has the position in the text, and is a ParseException
            too.
        UnsupportedOperationError: The reference has the statement, and this version does not.
        OptionError: ``text`` is not a text.
        DeltaError: The command failed; see the same method of ``DeltaTable``. Errors of Spark's own statements are
            Spark's.

    >>> delta_pyds.sql(spark, "SELECT city, count(*) FROM delta.`/data/events` VERSION AS OF 3 GROUP BY city").show()
    >>> delta_pyds.sql(spark, "DELETE FROM delta.`/data/events` WHERE day < :day", {"day": date(2026, 1, 1)})
    """
    if not isinstance(text, str):
        raise OptionError(f"the statement is a {type(text).__name__}, but must be a text.", option="text")
    return run(spark, text, args)


def run(
    spark: SparkSession,
    text: str,
    args: Any = None,
    context: StatementContext | None = None,
    *,
    frames: Mapping[str, DataFrame] | None = None,
) -> DataFrame:
    """Run a statement. ``frames``: DataFrames by their names in the text; no table or view has these names.

    ``context``: the context of this statement from ``statement_on_ours``, which has looked its names up.
    """
    with errors_of_spark(), errors_about_relative_paths(text), as_views(frames or {}):
        if context is None:
            script = script_of(text)
            if script is not None and _changes_ours(spark, script, args):
                return scripts.run_script(spark, script, args, run)
            within = scripts.immediate(spark, text, args)
            if within is not None and (found := _by_path_or_name(spark, *within)) is not None:
                return run(spark, *found)
            context = StatementContext(spark, text, parse_statement(text, args), args, frames)
            context.names.look_up(context.parsed.names_in(None))
        parsed = context.parsed
        statement = parsed.statement
        if isinstance(statement, (kinds.TemporaryView, kinds.CachedView)):
            if not parsed.tables_in(statement.query, context.names.is_ours):
                return _pass_through(context, parsed.as_pass_through())
            if isinstance(statement, kinds.TemporaryView):
                create.temporary_view(context, statement)
            else:
                caching.cached_view(context, statement)
            return empty_frame(spark)
        if isinstance(statement, kinds.PassThrough):
            if parsed.refused is not None and (
                context.names.is_ours_by_name(parsed.refused[0]) or _refuses_creation(context)
            ):
                raise parsed.refused[1]
            with errors_about_views(spark, text, args):
                return _pass_through(context, statement)
        if isinstance(statement, kinds.CacheTable):
            names.refuse_in_catalog(context.names, statement.target, "CACHE TABLE")
        if statement.target.path is None and not isinstance(statement, kinds.Convert):
            if not _is_ours_by_name(context, statement):
                with errors_about_views(spark, text, args):
                    return _pass_through(context, parsed.as_pass_through())
            if not isinstance(statement, _MAKES_OR_MOVES):
                statement = replace(statement, target=context.names.by_path(statement.target))
        parsed.check_complete()
        named = None if isinstance(statement, _MAKES_OR_MOVES) else context.names.find(statement.target)
        with errors_with_positions(parsed, text):
            answer = _RUN[type(statement)](context, statement)
        if named is not None and not isinstance(statement, _QUESTIONS):
            context.names.refresh(named)
        return empty_frame(spark) if answer is None else answer


def statement_on_ours(spark: SparkSession, text: str, args: Any = None) -> OurStatement | None:
    """The statement for ``run`` if it is about our tables by name, else None. A statement that we cannot parse is
    Spark's, unless it begins with words that Spark does not know.

    Raises: CatalogError if Spark does not answer the lookup of a name.
    """
    with errors_of_spark():
        script = script_of(text)
        if script is not None and _changes_ours(spark, script, args):
            return text, args, None
        within = scripts.immediate(spark, text, args)
        if within is not None and (found := _by_path_or_name(spark, *within)) is not None:
            return found
        try:
            context = StatementContext(spark, text, parse_statement(text, args), args)
            context.names.look_up(context.parsed.names_in(None))
            return (text, args, context) if _is_about_names(context) else None
        except CatalogError:
            raise
        except DeltaError as error:
            # an unreadable file of catalogs may have any table
            of_catalogs = isinstance(error, OptionError) and error.parameters.get("option") == "catalog"
            is_ours = of_catalogs or (begins_as_of_delta(text) and not has_reference(spark))
            return (text, args, None) if is_ours else None
        except PySparkException as error:
            if is_about_name(error):
                return None  # Spark reports the error of the name
            raise


def _changes_ours(spark: SparkSession, script: Script, args: Any) -> bool:
    """Whether a statement of a script is about our tables, by path or name."""
    return any(_by_path_or_name(spark, statement, args) is not None for statement in script.statements)


def _by_path_or_name(spark: SparkSession, text: str, args: Any) -> OurStatement | None:
    """``statement_on_ours`` for a statement in a script, or of EXECUTE IMMEDIATE: its tables may be given by path."""
    try:
        statement = parse_statement(text, args).statement
    except DeltaError:
        return (text, args, None) if begins_as_of_delta(text) else None
    if isinstance(statement, kinds.PassThrough):
        if any(isinstance(span.table, kinds.TableReference) and span.table.path for span in statement.tables):
            return text, args, None
    elif isinstance(statement, kinds.Statement) and statement.target.path is not None:
        return text, args, None
    return statement_on_ours(spark, text, args)


def reads_names_of_ours(spark: SparkSession, text: str) -> bool:
    """Whether a statement of Spark reads one of our names; False if that is unknown."""
    try:
        context = StatementContext(spark, text, parse_statement(text), None)
        return any(map(context.names.is_ours, context.parsed.names_in(None)))
    except (DeltaError, PySparkException):
        return False


def _is_about_names(context: StatementContext) -> bool:
    spark, parsed = context.spark, context.parsed
    statement = parsed.statement
    if isinstance(statement, (kinds.TemporaryView, kinds.CachedView)):
        return bool(parsed.tables_in(statement.query, context.names.is_ours))
    if isinstance(statement, kinds.PassThrough):
        if _refuses_creation(context):
            return True
        about = [parsed.refused[0]] if parsed.refused is not None else []
        about += [one for one in statement.changed if isinstance(one, kinds.TableReference)]
        about += statement.changed_views
        about += [
            span.table for span in (*statement.tables, *statement.named) if isinstance(span.table, kinds.TableReference)
        ]
        if is_remote(spark):
            # these names are looked up; Spark would use the view's old columns, and report the difference too late
            about += parsed.names_in(None)
        if statement.verb == "CLEAR CACHE":
            return cached_rows.any_cached(spark)
        if listings.lists_tables(statement.verb):
            return True
        changes = any(isinstance(span.table, kinds.TableChanges) for span in statement.tables)
        return changes or any(map(context.names.is_ours, about))
    if isinstance(statement, OF_DELTA_ALONE) and not has_reference(spark):
        return True  # Spark has no such statement
    if isinstance(statement, kinds.Clone) and not context.names.is_ours_by_name(statement.source):
        return context.names.is_ours_by_name(statement.target)
    if isinstance(statement, kinds.Convert):
        return False
    if _is_ours_by_name(context, statement):
        return True
    of_spark = parsed.as_pass_through()
    return any(
        isinstance(span.table, kinds.TableChanges) or context.names.is_ours(span.table)
        for span in (*of_spark.tables, *of_spark.named)
    )


def _refuses_creation(context: StatementContext) -> bool:
    """Whether the statement would create our table if delta_pyds ran it."""
    provider = context.parsed.refused_provider
    return provider is not None and names.creates_ours(context.spark, provider)


def _is_ours_by_name(context: StatementContext, statement: kinds.Statement) -> bool:
    """Whether a statement about a name is Delta's. Any other is Spark's, if Spark supports it.

    Raises: TableNotFoundError and UnsupportedOperationError for a statement that only Delta has.
    """
    if statement.target.path is not None or context.names.is_ours_by_name(statement.target):
        return True
    if isinstance(statement, kinds.Create):
        like = statement.like
        takes_format = like is not None and statement.provider is None and context.names.is_ours(like)
        return takes_format or names.creates_ours(context.spark, statement.provider)
    if isinstance(statement, kinds.Clone):
        return True
    if isinstance(statement, OF_DELTA_ALONE):
        context.names.by_path(statement.target)
    return False


def _pass_through(context: StatementContext, statement: kinds.PassThrough) -> DataFrame:
    """Run a statement of Spark."""
    if statement.verb == "CLEAR CACHE":
        cached_rows.forget_all(context.spark)
    names.refuse_changes_of_ours(context.spark, statement, context.args)
    spans = tuple(
        span
        for span in statement.tables
        if not isinstance(span.table, kinds.TableReference) or context.names.is_ours(span.table)
    )
    if spans and (view := context.parsed.made_view) is not None:
        return create_view(context.spark, context.text, context.args, view, spans, open_table=context.snapshot)
    if spans and not takes_frames(statement.verb):
        named = context.text[spans[0].start : spans[0].end]
        raise UnsupportedOperationError(
            f"{statement.verb.split(' ')[0]} does not support {named!r:.200} in this version, because it is a table by "
            "path or of a catalog of delta_pyds. Queries, INSERT, CREATE TABLE and CREATE VIEW support such tables.",
            code="DELTA_OPERATION_NOT_ALLOWED",
        )
    if statement.verb.startswith(_QUERIES):
        context.names.refresh_entries(context.parsed.names_in(None))
    by_name = tuple(span for span in statement.named if context.names.is_read(cast("kinds.TableReference", span.table)))
    frame = _answer(context, spans, by_name)
    if listings.lists_tables(statement.verb):
        return listings.shown(context.spark, context.parsed.listed_in, frame)
    if not statement.aggregates or len(spans) + len(by_name) != 1:
        return frame
    table = (*spans, *by_name)[0].table
    assert isinstance(table, kinds.TableReference)
    return aggregates.answered(context, table, statement.aggregates, frame)


def _answer(
    context: StatementContext, spans: tuple[kinds.TableSpan, ...], named: tuple[kinds.TableSpan, ...]
) -> DataFrame:
    """Spark's answer. If Spark cannot resolve a query whose names we replaced, it gets the user's text. Then it reports
    the error in that text, or resolves names that we do not know.
    """
    every = sorted((*spans, *named), key=lambda span: span.start)
    asks_for_files = bool(every) and context.parsed.asks_for_files
    stars = context.parsed.stars_in(None) if asks_for_files else ()
    try:
        return context.frames.run(context.text, every, _remaining(context, every), stars=stars)
    except (AnalysisException, ParseException) as error:
        if stars and not isinstance(error, DeltaError) and "`_metadata`" in str(error).split("SQLSTATE")[0]:
            raise UnsupportedOperationError(
                "this query has the column _metadata and a star, and Spark cannot exclude the column from the star. "
                f"Name the columns instead. {str(error).splitlines()[0]:.500}",
                feature="_metadata",
            ) from error
        if asks_for_files or not named or isinstance(error, DeltaError) or _CHANGING.search(context.text):
            raise
    return context.frames.run(context.text, spans, _remaining(context, spans))


def _remaining(context: StatementContext, spans: Sequence[kinds.TableSpan]) -> Any:
    """The arguments for the rest of the text, after the tables are replaced."""
    if not isinstance(context.args, (list, tuple)):
        return context.args
    taken = {
        number
        for number, position in enumerate(context.parsed.positional)
        if any(span.start <= position < span.end for span in spans)
    }
    return [value for number, value in enumerate(context.args) if number not in taken]
