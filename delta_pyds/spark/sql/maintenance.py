"""OPTIMIZE, VACUUM, REORG, RESTORE, CONVERT, GENERATE."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from delta_pyds.spark.delta_table.table import DeltaTable
from delta_pyds.spark.native.files import spark_path
from delta_pyds.spark.sql.context import StatementContext
from delta_pyds.statements.kinds import Convert, Generate, Optimize, Purge, Restore, Vacuum

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def optimize(context: StatementContext, statement: Optimize) -> DataFrame:
    builder = context.table(statement.target).optimize(full=statement.full)
    if statement.condition is not None:
        builder = builder.where(context.parsed.expression(statement.condition))
    if statement.zorder_by:
        return builder.executeZOrderBy(*statement.zorder_by)
    return builder.executeCompaction()


def purge(context: StatementContext, statement: Purge) -> DataFrame:
    builder = context.table(statement.target).optimize()
    if statement.condition is not None:
        builder = builder.where(context.parsed.expression(statement.condition))
    return builder.executePurge()


def vacuum(context: StatementContext, statement: Vacuum) -> DataFrame:
    """Returns: with DRY RUN the paths that would be deleted, else the table's."""
    table = context.table(statement.target)
    inventory = None if statement.inventory is None else context.source(statement.inventory)
    done = table.vacuum(statement.retention_hours, lite=statement.lite, dry_run=statement.dry_run, inventory=inventory)
    if statement.dry_run:
        return done
    root = spark_path(table._handle.path)
    return context.spark.createDataFrame(pa.table({"path": [root]}))


def restore(context: StatementContext, statement: Restore) -> DataFrame:
    table = context.table(statement.target)
    if statement.target.version is not None:
        return table.restoreToVersion(statement.target.version)
    assert statement.target.timestamp is not None
    return table.restoreToTimestamp(context.frames.time(statement.target.timestamp))


def convert(context: StatementContext, statement: Convert) -> DataFrame:
    DeltaTable.convertToDelta(context.spark, statement.target.text, statement.partition_schema)
    return context.nothing()


def generate(context: StatementContext, statement: Generate) -> DataFrame:
    context.table(statement.target).generate(statement.mode)
    return context.nothing()
