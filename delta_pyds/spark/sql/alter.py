"""ALTER TABLE in its forms: one statement, one version. DROP TABLE and RENAME of names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from delta_pyds.commands.definition.columns import NewColumn, add_columns
from delta_pyds.errors import ColumnNotFoundError, UnsupportedOperationError, UserError
from delta_pyds.spark.catalog_names.create_and_drop import change_location
from delta_pyds.spark.catalog_names.create_and_drop import drop_table as drop_name
from delta_pyds.spark.catalog_names.lookup import require
from delta_pyds.spark.catalog_names.naming import change_name, full_name
from delta_pyds.spark.catalog_names.statement_names import refuse_in_catalog
from delta_pyds.spark.catalog_names.texts import quoted
from delta_pyds.spark.delta_table import column_definitions as definitions
from delta_pyds.spark.delta_table.column_changes import AlteredColumn
from delta_pyds.spark.sql import kept_rows
from delta_pyds.spark.sql.context import StatementContext
from delta_pyds.statements.kinds import (
    AddColumns,
    AddConstraint,
    AlterColumn,
    AlterColumns,
    ClusterBy,
    ColumnText,
    DropColumns,
    DropConstraint,
    DropFeature,
    DropTable,
    RenameColumn,
    RenameTable,
    ReplaceColumns,
    SetLocation,
    SetProperties,
    SyncIdentity,
    TableReference,
    UnsetProperties,
)
from delta_pyds.table.definition.schema_paths import Position, one_path, spelled_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from delta_pyds.table.snapshot import Snapshot

# the reference's setting: a constraint that is not there is none to drop
_DROP_IF_EXISTS = "spark.databricks.delta.constraints.assumesDropIfExists.enabled"


def drop_table(context: StatementContext, statement: DropTable) -> DataFrame:
    """The name goes, and the data with it where Spark's schema chose the place, as in the reference.

    Raises: UnsupportedOperationError for a table that a catalog manages.
    """
    refuse_in_catalog(context.names, statement.target, "DROP VIEW" if statement.view else "DROP TABLE")
    if statement.view:
        raise UserError(
            f"{statement.target.text} is a Delta table, and no view of a user's. Write DROP TABLE.",
            code="EXPECT_VIEW_NOT_TABLE.NO_ALTERNATIVE",
            table=statement.target.text,
        )
    named = require(context.spark, statement.target.parts)
    kept_rows.forget(context.spark, context.root(statement.target))
    drop_name(context.spark, quoted(statement.target.parts), named.managed)
    return context.nothing()


def rename_table(context: StatementContext, statement: RenameTable) -> DataFrame:
    """The table stays where it is, under another name. Raises: as ``drop_table``."""
    refuse_in_catalog(context.names, statement.target, "ALTER TABLE ... RENAME TO")
    named = require(context.spark, statement.target.parts)
    new = statement.new_name.parts
    change_name(context.spark, named, full_name(context.spark, (named.schema, *new) if len(new) == 1 else new))
    return context.nothing()


def set_location(context: StatementContext, statement: SetLocation) -> DataFrame:
    """The name means another table. That which it meant stays where it is. Raises: as ``drop_table``."""
    refuse_in_catalog(context.names, statement.target, "ALTER TABLE ... SET LOCATION")
    change_location(context.spark, require(context.spark, statement.target.parts), statement.location)
    return context.nothing()


def add_columns_to(context: StatementContext, statement: AddColumns) -> DataFrame:
    new = [_new_column(context, column) for column in statement.columns]
    context.table(statement.target)._change(lambda snapshot: add_columns(snapshot, new))
    return context.nothing()


def _new_column(context: StatementContext, column: ColumnText) -> NewColumn:
    if column.generated is not None or column.identity is not None:
        raise UnsupportedOperationError(
            f"the new column '{column.path[-1]}' is GENERATED, which a column of an existing table cannot be.",
            code="DELTA_UNSUPPORTED_ADD_GENERATED_COLUMN",
            column=column.path[-1],
        )
    field = definitions.column(
        context.spark,
        column.path[-1],
        column.data_type,
        nullable=column.nullable,
        comment=column.comment,
        default=None if column.default is None else context.parsed.expression(column.default),
    )
    position = None
    if column.after is not None:
        position = Position(one_path(column.after)[-1]) if column.after else Position()
    return NewColumn(field, column.path[:-1], position)


def replace_columns(context: StatementContext, statement: ReplaceColumns) -> DataFrame:
    fields = [definitions.for_pyspark(_new_column(context, column).field) for column in statement.columns]
    context.table(statement.target).replaceColumns(fields)
    return context.nothing()


def rename_column(context: StatementContext, statement: RenameColumn) -> DataFrame:
    context.table(statement.target).renameColumn(statement.column, statement.new_name)
    return context.nothing()


def drop_columns(context: StatementContext, statement: DropColumns) -> DataFrame:
    table = context.table(statement.target)
    columns = statement.columns
    if statement.if_exists:
        snapshot = context.snapshot(statement.target)
        columns = tuple(name for name in columns if _has(snapshot, name))
    if columns:
        table.dropColumns(*columns)
    return context.nothing()


def _has(snapshot: Snapshot, name: str) -> bool:
    try:
        spelled_path(snapshot.schema, one_path(name), snapshot.table_root)
    except ColumnNotFoundError:
        return False
    return True


def alter_column(context: StatementContext, statement: AlterColumn) -> DataFrame:
    return _alter_columns(context, statement.target, [statement])


def alter_columns(context: StatementContext, statement: AlterColumns) -> DataFrame:
    return _alter_columns(context, statement.target, statement.columns)


def _alter_columns(context: StatementContext, target: TableReference, columns: Iterable[AlterColumn]) -> DataFrame:
    context.table(target)._alter_columns([_altered(context, one) for one in columns])
    return context.nothing()


def _altered(context: StatementContext, one: AlterColumn) -> AlteredColumn:
    return AlteredColumn(
        one.column,
        one.data_type,
        one.comment,
        one.nullable,
        None if one.default is None else context.parsed.expression(one.default),
        one.drop_default,
        first=one.after == "",
        after=one.after or None,
    )


def sync_identity(context: StatementContext, statement: SyncIdentity) -> DataFrame:
    context.table(statement.target).syncIdentity(statement.column)
    return context.nothing()


def set_properties(context: StatementContext, statement: SetProperties) -> DataFrame:
    context.table(statement.target).setProperties(dict(statement.properties))
    return context.nothing()


def unset_properties(context: StatementContext, statement: UnsetProperties) -> DataFrame:
    # as in the reference, which asks for IF EXISTS nowhere
    context.table(statement.target).unsetProperties(*statement.keys, ifExists=True)
    return context.nothing()


def add_constraint(context: StatementContext, statement: AddConstraint) -> DataFrame:
    context.table(statement.target).addConstraint(statement.name, context.parsed.expression(statement.condition))
    return context.nothing()


def drop_constraint(context: StatementContext, statement: DropConstraint) -> DataFrame:
    if_exists = statement.if_exists or (context.spark.conf.get(_DROP_IF_EXISTS, None) or "").strip().lower() == "true"
    context.table(statement.target).dropConstraint(statement.name, ifExists=if_exists)
    return context.nothing()


def cluster_by(context: StatementContext, statement: ClusterBy) -> DataFrame:
    context.table(statement.target).clusterBy(*statement.columns)
    return context.nothing()


def drop_feature(context: StatementContext, statement: DropFeature) -> DataFrame:
    truncates = True if statement.truncate_history else None
    context.table(statement.target).dropFeatureSupport(statement.feature, truncates)
    return context.nothing()
