"""OPTIMIZE, VACUUM, RESTORE, CONVERT."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame

from delta_pyds.spark.catalog_names.converted_names import convert as convert_directory
from delta_pyds.spark.sql.context import StatementContext
from delta_pyds.spark.table_commands import layout
from delta_pyds.spark.table_commands import maintenance as commands
from delta_pyds.statements.kinds import Convert, Optimize, Restore, SqlText, Vacuum
from delta_pyds.storage.resolve import hadoop_path


def optimize(context: StatementContext, statement: Optimize) -> DataFrame:
    table = context.table(statement.target)
    where = filters(context, statement.condition)
    if statement.zorder_by:
        return layout.z_order(table, statement.zorder_by, where)
    return layout.compact(table, where, full=statement.full)


def filters(context: StatementContext, condition: SqlText | None) -> tuple[str, ...]:
    return () if condition is None else (context.parsed.expression(condition),)


def vacuum(context: StatementContext, statement: Vacuum) -> DataFrame:
    """Returns: with DRY RUN the paths that would be deleted, else the table's path."""
    table = context.table(statement.target)
    inventory = None if statement.inventory is None else context.source(statement.inventory)
    hours = None if statement.retention_hours is None else float(statement.retention_hours)
    done = commands.vacuum(
        table, retention_hours=hours, lite=statement.lite, dry_run=statement.dry_run, inventory=inventory
    )
    if statement.dry_run:
        return done
    return context.spark.createDataFrame(pa.table({"path": [hadoop_path(table.path)]}))


def restore(context: StatementContext, statement: Restore) -> DataFrame:
    table = context.table(statement.target)
    if statement.target.version is not None:
        return commands.restore(table, version=statement.target.version)
    assert statement.target.timestamp is not None
    return commands.restore(table, timestamp=context.frames.time(statement.target.timestamp))


def convert(context: StatementContext, statement: Convert) -> None:
    convert_directory(context.spark, statement.target.text, statement.partition_schema)
