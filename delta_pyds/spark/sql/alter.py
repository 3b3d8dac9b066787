"""ALTER TABLE in its forms: one statement, one version. DROP TABLE and RENAME of names."""

from __future__ import annotations

from collections.abc import Iterable

from delta_pyds.commands.definition.alter_column import ColumnChange
from delta_pyds.commands.definition.columns import NewColumn
from delta_pyds.errors import ColumnNotFoundError, UnsupportedOperationError, UserError
from delta_pyds.protocol.quoting import quote_name
from delta_pyds.spark.catalog_names.create_and_drop import change_location
from delta_pyds.spark.catalog_names.create_and_drop import drop_table as drop_name
from delta_pyds.spark.catalog_names.lookup import require
from delta_pyds.spark.catalog_names.naming import change_name, full_name
from delta_pyds.spark.catalog_names.statement_names import refuse_in_catalog
from delta_pyds.spark.settings import DROP_CONSTRAINT_IF_EXISTS
from delta_pyds.spark.sql import cached_rows
from delta_pyds.spark.sql.context import StatementContext
from delta_pyds.spark.table_commands import alter
from delta_pyds.spark.table_commands import column_definitions as definitions
from delta_pyds.statements import kinds
from delta_pyds.table.definition.schema_paths import Path, Position, one_path, spelled_path
from delta_pyds.table.snapshot import Snapshot


def drop_table(context: StatementContext, statement: kinds.DropTable) -> None:
    """Drop the name, and also the data if Spark's schema chose the location, as in the reference.

    Raises: UnsupportedOperationError for a table that a catalog manages.
    """
    refuse_in_catalog(context.names, statement.target, "DROP VIEW" if statement.view else "DROP TABLE")
    if statement.view:
        raise UserError(
            f"{statement.target.text} is a Delta table, not a view. Write DROP TABLE.",
            code="EXPECT_VIEW_NOT_TABLE.NO_ALTERNATIVE",
            table=statement.target.text,
        )
    named = require(context.spark, statement.target.parts)
    cached_rows.forget(context.spark, context.root(statement.target))
    drop_name(context.spark, quote_name(*statement.target.parts), data=named.managed)


def rename_table(context: StatementContext, statement: kinds.RenameTable) -> None:
    """Rename the table, which stays at its location. Raises: as ``drop_table``."""
    refuse_in_catalog(context.names, statement.target, "ALTER TABLE ... RENAME TO")
    named = require(context.spark, statement.target.parts)
    new = statement.new_name.parts
    change_name(context.spark, named, full_name(context.spark, (named.schema, *new) if len(new) == 1 else new))


def set_location(context: StatementContext, statement: kinds.SetLocation) -> None:
    """Point the name at another table. The previous table stays at its location. Raises: as ``drop_table``."""
    refuse_in_catalog(context.names, statement.target, "ALTER TABLE ... SET LOCATION")
    change_location(context.spark, require(context.spark, statement.target.parts), statement.location)


def add_columns(context: StatementContext, statement: kinds.AddColumns) -> None:
    new = [_new_column(context, column) for column in statement.columns]
    alter.add_columns(context.table(statement.target), new)


def _new_column(context: StatementContext, column: kinds.ColumnText) -> NewColumn:
    if column.generated is not None or column.identity is not None:
        raise UnsupportedOperationError(
            f"the new column '{column.path[-1]}' cannot be GENERATED: an existing table gets no generated columns.",
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
    return NewColumn(field, column.path[:-1], _position(column.after))


def _position(after: str | None) -> Position | None:
    """``after``: an empty text means FIRST."""
    if after is None:
        return None
    return Position(one_path(after)[-1]) if after else Position()


def replace_columns(context: StatementContext, statement: kinds.ReplaceColumns) -> None:
    fields = tuple(_new_column(context, column).field for column in statement.columns)
    alter.replace_columns(context.table(statement.target), fields)


def drop_columns(context: StatementContext, statement: kinds.DropColumns) -> None:
    table = context.table(statement.target)
    columns = statement.columns
    if statement.if_exists:
        snapshot = context.snapshot(statement.target)
        columns = tuple(name for name in columns if _has_column(snapshot, name))
    if columns:
        alter.drop_columns(table, columns)


def _has_column(snapshot: Snapshot, name: str) -> bool:
    try:
        spelled_path(snapshot.schema, one_path(name), snapshot.table_root)
    except ColumnNotFoundError:
        return False
    return True


def alter_columns(
    context: StatementContext, target: kinds.TableReference, columns: Iterable[kinds.AlterColumn]
) -> None:
    alter.alter_columns(context.table(target), [_change(context, one) for one in columns])


def _change(context: StatementContext, one: kinds.AlterColumn) -> tuple[Path, ColumnChange]:
    return definitions.column_change(
        context.spark,
        one.column,
        data_type=one.data_type,
        comment=one.comment,
        nullable=one.nullable,
        default=None if one.default is None else context.parsed.expression(one.default),
        drop_default=one.drop_default,
        position=_position(one.after),
    )


def add_constraint(context: StatementContext, statement: kinds.AddConstraint) -> None:
    table = context.table(statement.target)
    alter.add_constraint(table, statement.name, context.parsed.expression(statement.condition))


def drop_constraint(context: StatementContext, statement: kinds.DropConstraint) -> None:
    setting = context.spark.conf.get(DROP_CONSTRAINT_IF_EXISTS, None) or ""
    if_exists = statement.if_exists or setting.strip().lower() == "true"
    alter.drop_constraint(context.table(statement.target), statement.name, if_exists=if_exists)
