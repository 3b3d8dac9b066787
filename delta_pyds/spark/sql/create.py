"""CREATE and REPLACE TABLE, clones, temporary views."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from delta_pyds.errors import TableNotFoundError, UnsupportedOperationError, UserError
from delta_pyds.protocol.properties import CATALOG_PREFIXES, CONSTRAINT_PREFIX
from delta_pyds.protocol.quoting import quote_name
from delta_pyds.protocol.schema import (
    IDENTITY_HIGH_WATER_MARK,
    StructField,
    change_fields,
)
from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.catalog_names import tracked_views
from delta_pyds.spark.catalog_names.creation import NewTable
from delta_pyds.spark.catalog_names.creation import create as create_table
from delta_pyds.spark.catalog_names.locations import Location, location_of, no_table_to_replace, refuse_existing, settle
from delta_pyds.spark.catalog_names.statement_names import at_path, refuse_in_catalog
from delta_pyds.spark.same_files import shared_path
from delta_pyds.spark.session import Mode, write
from delta_pyds.spark.sql.context import StatementContext
from delta_pyds.spark.sql.target_reads import reads_target
from delta_pyds.spark.table_commands import column_definitions as definitions
from delta_pyds.spark.table_commands import maintenance
from delta_pyds.spark.table_commands.column_definitions import IdentityGenerator
from delta_pyds.spark.table_commands.settings import default_properties, user_metadata
from delta_pyds.statements.kinds import Clone, ColumnText, Create, SqlText, TableReference, TemporaryView
from delta_pyds.statements.parse import parse_statement
from delta_pyds.storage.resolve import has_scheme
from delta_pyds.table.definition.clustering import logical_clustering_columns
from delta_pyds.table.snapshot import Snapshot

OURS = (None, "delta", "deltapy")
# properties of one table, which LIKE does not copy
_OF_ONE_TABLE = (
    "delta.columnMapping.maxColumnId",
    "delta.rowTracking.materialized",
    "delta.inCommitTimestampEnablement",
    *CATALOG_PREFIXES,
)


def create(context: StatementContext, statement: Create) -> None:
    """Raises: as the builders of ``DeltaTable``, and as ``delta_pyds.write`` for AS SELECT."""
    provider = statement.provider
    if provider is not None and provider.lower() not in OURS:
        raise UserError(
            f"the name {statement.target.text} is the path of a Delta table, so USING {provider} is not possible. "
            "Write USING delta, or omit USING.",
            code="DELTA_INVALID_PROVIDER",
        )
    if statement.query is not None:
        _as_select(context, statement)
        return
    new = _new_table(context, statement)
    if statement.like is not None:
        new = _like(context, statement.like, new)
    _check_names(statement)
    constraints = {
        f"{CONSTRAINT_PREFIX}{name.lower()}": context.parsed.expression(condition)
        for name, condition in statement.constraints
    }
    create_table(
        context.spark,
        replace(
            new,
            columns=(*new.columns, *(_column(context, column) for column in statement.columns)),
            partition_columns=statement.partition_by or new.partition_columns,
            clustering_columns=statement.cluster_by or new.clustering_columns,
            comment=new.comment if statement.comment is None else statement.comment,
            properties={**new.properties, **constraints, **statement.properties},
        ),
    )


def _check_names(statement: Create) -> None:
    """Raises: UserError for two columns of one name, with Spark's code."""
    names = [column.path[0].lower() for column in statement.columns]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UserError(
            f"the table {statement.target.text} would have two columns '{twice}'. Choose another name for one.",
            code="COLUMN_ALREADY_EXISTS",
            column=twice,
        )


def _new_table(context: StatementContext, statement: Create) -> NewTable:
    target = statement.target
    managed = context.names.in_catalog(target)
    if managed is not None:
        catalog, table = managed
        return NewTable(statement.mode, managed=(table, catalog), location=statement.location)
    name = None if target.path is not None else quote_name(*target.parts)
    return NewTable(statement.mode, path=target.path, name=name, location=statement.location)


def _column(context: StatementContext, column: ColumnText) -> StructField:
    identity = None if column.identity is None else IdentityGenerator(column.identity.start, column.identity.step)
    always = column.identity is not None and column.identity.always
    return definitions.column(
        context.spark,
        column.path[0],
        column.data_type,
        nullable=column.nullable,
        comment=column.comment,
        default=None if column.default is None else context.parsed.expression(column.default),
        generated_always_as=identity
        if always
        else (None if column.generated is None else context.parsed.expression(column.generated)),
        generated_by_default_as=None if always else identity,
    )


def _like(context: StatementContext, like: TableReference, new: NewTable) -> NewTable:
    """Copy the columns, the layout and the properties of a Delta table; of other tables or views only the first two."""
    if not context.names.is_ours(like):
        return _like_sparks(context, like.text, new)
    snapshot = context.snapshot(like)
    clustering = logical_clustering_columns(snapshot.schema, snapshot.domain_metadata)
    return replace(
        new,
        columns=change_fields(snapshot.schema, _without_own).fields,
        partition_columns=tuple(snapshot.configuration.partition_columns),
        clustering_columns=tuple(quote_name(*path) for path in clustering),
        comment=snapshot.metadata.description or None,
        properties={
            key: value
            for key, value in (snapshot.metadata.configuration or {}).items()
            if value is not None and not key.startswith(_OF_ONE_TABLE)
        },
    )


def _like_sparks(context: StatementContext, name: str, new: NewTable) -> NewTable:
    return replace(
        new,
        columns=definitions.columns(context.spark.table(name).schema),
        partition_columns=tuple(
            column.name for column in context.spark.catalog.listColumns(name) if column.isPartition
        ),
    )


def _without_own(field: StructField) -> StructField:
    metadata = {
        key: value
        for key, value in field.metadata.items()
        if not key.startswith("delta.columnMapping.") and key != IDENTITY_HIGH_WATER_MARK
    }
    return StructField(field.name, field.data_type, field.nullable, metadata)


# --- AS SELECT


def _as_select(context: StatementContext, statement: Create) -> None:
    """Commit one version with the columns and rows of the query."""
    assert statement.query is not None
    location = _location(context, statement)
    if location is not None:
        if location.table is not None and statement.mode == "create_if_not_exists":
            return
        target = at_path(statement.target, location.path)
        _as_select(context, replace(statement, target=target, location=None))
        settle(context.spark, location)
        return
    managed = context.names.in_catalog(statement.target)
    if managed is not None and statement.mode == "replace":
        context.names.by_path(statement.target)  # the table must exist
    path = statement.target.path or ""
    if statement.location not in (None, path):
        where = f"the path '{path}'" if managed is None else "a location that the catalog chooses"
        raise UserError(
            f"the name means {where}, but LOCATION gives '{statement.location}'. Omit LOCATION.",
            code="DELTA_CREATE_TABLE_IDENTIFIER_LOCATION_MISMATCH",
        )
    modes: dict[str, tuple[Mode, str | None]] = {
        "create": ("errorifexists", None),
        "create_if_not_exists": ("ignore", None),
        "replace": ("overwrite", "replace"),
        "create_or_replace": ("overwrite", "createOrReplace"),
    }
    mode, replaces = modes[statement.mode]
    rows, version = _rows_and_version(context, statement.target, statement.query, replaces=replaces is not None)
    given = {"comment": statement.comment, "createMode": replaces, "readVersion": version}
    catalog, table = managed or (None, None)
    write(
        rows,
        path or None,
        table=table,
        catalog=catalog,
        mode=mode,
        partition_by=list(statement.partition_by) or None,
        cluster_by=list(statement.cluster_by) or None,
        properties={**default_properties(context.spark, statement.properties), **statement.properties},
        user_metadata=user_metadata(context.spark),
        options={name: value for name, value in given.items() if value is not None},
    )


def _rows_and_version(
    context: StatementContext, target: TableReference, query: SqlText, *, replaces: bool
) -> tuple[DataFrame, int | None]:
    """The rows of the query, and the version of the replaced table that they come from; None for other rows."""
    reads_any = context.parsed.reads_in(query, context.names.is_ours, context.names.is_read)
    if not replaces or not (reads_any or context.parsed.names_in(query)):
        return context.query(query), None
    there = _shared(context, target)
    if there is not None:
        # before the query reads: the commit must see all later changes
        context.pin(there)
    rows = context.query(query)
    if there is None or not reads_target(context, query, rows, there.table_root):
        return rows, None
    return rows, there.version


def _shared(context: StatementContext, reference: TableReference) -> Snapshot | None:
    """The table, if there is one; None also if the server of Spark Connect may have another one."""
    try:
        found = context.names.by_path(reference)
        path = str(shared_path(context.spark, found.path or ""))
        if is_remote(context.spark) and not has_scheme(path):
            return None
        return context.snapshot(reference)
    except TableNotFoundError:
        return None


def _location(context: StatementContext, statement: Create | Clone) -> Location | None:
    """The location of a table by name; None for a path, and for a catalog that chooses the location itself.

    Raises: UserError if the mode forbids the name.
    """
    target = statement.target
    if target.path is not None or context.names.in_catalog(target) is not None:
        return None
    stays = statement.mode == "create_if_not_exists"
    location = location_of(context.spark, target.parts, statement.location, stays=stays)
    if location.table is not None:
        refuse_existing(statement.mode, target.text)
    elif statement.mode == "replace":
        raise no_table_to_replace(target.text)
    return location


def _existing(context: StatementContext, reference: TableReference) -> Snapshot | None:
    try:
        return context.snapshot(reference)
    except TableNotFoundError:
        return None


# --- clones and views


def _require_delta_source(source: TableReference) -> None:
    """Raises: UnsupportedOperationError for files that are not a Delta table yet."""
    if len(source.parts) == 2 and source.parts[0].lower() in ("iceberg", "parquet") and "/" in source.parts[1]:
        into = (
            "CONVERT TO DELTA makes a Delta table of them"
            if source.parts[0].lower() == "parquet"
            else "Read it as such"
        )
        raise UnsupportedOperationError(
            f"SHALLOW CLONE of {source.text} is not supported by this version of delta_pyds: a clone is of a Delta "
            f"table. {into}.",
            code="DELTA_CLONE_UNSUPPORTED_SOURCE",
            source=source.text,
        )


def clone(context: StatementContext, statement: Clone) -> DataFrame | None:
    """Raises: as ``DeltaTable.clone``; UnsupportedOperationError for a table that a catalog manages."""
    for reference in (statement.target, statement.source):
        refuse_in_catalog(context.names, reference, "SHALLOW CLONE")
    _require_delta_source(statement.source)
    location = _location(context, statement)
    if location is not None:
        if location.table is not None and statement.mode == "create_if_not_exists":
            return None
        target = at_path(statement.target, location.path)
        done = clone(context, replace(statement, target=target, location=None))
        settle(context.spark, location)
        return done
    path = statement.target.path or ""
    if statement.location not in (None, path):
        raise UserError(
            f"the name gives the path '{path}', but LOCATION gives '{statement.location}'. Omit LOCATION.",
            code="DELTA_CREATE_TABLE_IDENTIFIER_LOCATION_MISMATCH",
        )
    source = context.table(statement.source)
    there = _existing(context, statement.target)
    if statement.mode == "create_if_not_exists" and there is not None:
        return None
    if statement.mode == "replace" and there is None:
        raise TableNotFoundError(
            f"there is no table at {path} to replace. CREATE OR REPLACE TABLE creates one.",
            code="TABLE_OR_VIEW_NOT_FOUND",
            table=path,
        )
    given: dict[str, Any] = {
        "replace": statement.mode in ("replace", "create_or_replace"),
        "properties": dict(statement.properties),
    }
    if statement.source.version is not None:
        given["version"] = statement.source.version
    elif statement.source.timestamp is not None:
        given["timestamp"] = context.frames.time(statement.source.timestamp)
    return maintenance.clone(source, path, **given)


def temporary_view(context: StatementContext, statement: TemporaryView) -> None:
    """Create a view over the tables as they are now. It stays at their versions, unless ``install`` tracks the view."""
    if len(statement.name.parts) != 1:
        raise UserError(
            f"the name of a temporary view must have no dots, but {statement.name.text!r:.200} has one.",
            code="TEMP_VIEW_NAME_TOO_MANY_NAME_PARTS",
        )
    sources, whole = _tracked_sources(context, statement)
    can_track = not statement.is_global and tracked_views.can_track(context.spark, sources)
    seen = tracked_views.states(context.spark, sources) if can_track else ()
    frame = _rows_of_view(context, statement)
    name = statement.name.parts[0]
    if statement.is_global:
        frame.createOrReplaceGlobalTempView(name) if statement.replace else frame.createGlobalTempView(name)
    else:
        frame.createOrReplaceTempView(name) if statement.replace else frame.createTempView(name)
        again = partial(_rows_of_view_again, context.spark, context.text, context.args)
        origin = tracked_views.Origin(sources, again, whole) if can_track else None
        tracked_views.track(context.spark, name, frame, origin, seen)


def _tracked_sources(
    context: StatementContext, statement: TemporaryView
) -> tuple[tuple[tracked_views.Source, ...], bool]:
    """The tables by path whose current rows the view shows, and whether it shows exactly one whole table.

    A name is resolved when the view is read. Then the user's DataFrames no longer exist.
    """
    spans = context.parsed.tables_in(statement.query, context.names.is_ours)
    tables = [span.table for span in spans if isinstance(span.table, TableReference) and not span.table.travels]
    if context.frames.has_frames_of_user:
        return (), False
    found = [context.names.by_path(table) for table in tables]
    # with a scheme if the server of Spark Connect has been proved to see the same files
    paths = ((str(shared_path(context.spark, table.path or "")), table.storage_options) for table in found)
    sources = tuple(tracked_views.Source(path, options) for path, options in paths)
    text = statement.query.text
    around = "" if len(spans) != 1 else text[: spans[0].start] + text[spans[0].end :]
    whole = len(sources) == 1 and statement.columns is None and around.upper().split() == ["SELECT", "*", "FROM"]
    return sources, whole


def _rows_of_view(context: StatementContext, statement: TemporaryView) -> DataFrame:
    frame = context.query(statement.query, stays=False)
    if statement.columns is None:
        return frame
    if len(statement.columns) != len(frame.columns):
        raise UserError(
            f"the view has {len(statement.columns)} names for {len(frame.columns)} columns.",
            code="CREATE_VIEW_COLUMN_ARITY_MISMATCH",
        )
    return frame.toDF(*statement.columns)


def _rows_of_view_again(spark: SparkSession, text: str, args: Any) -> DataFrame:
    parsed = parse_statement(text, args)
    assert isinstance(parsed.statement, TemporaryView)
    return _rows_of_view(StatementContext(spark, text, parsed, args), parsed.statement)
