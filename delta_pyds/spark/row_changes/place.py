"""Where a command runs, and why: in this process, in Spark tasks that get files, or as a query of Spark.

Our own evaluator is preferred if it supports every expression. Small commands then need no Spark job, and in large
ones no row enters the JVM.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame

from delta_pyds.commands.commit import discard_files
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.row_changes.result import Place
from delta_pyds.commands.task_runner import LocalRunner, TaskRunner
from delta_pyds.errors import UnsupportedOperationError
from delta_pyds.spark.row_changes.expressions import is_ansi
from delta_pyds.spark.row_changes.handle import TableHandle
from delta_pyds.spark.row_sources import any_depends, subqueries_depend_on_table
from delta_pyds.spark.task_runner import SparkRunner


def command_options(target: TableHandle) -> CommandOptions:
    """The options of the command, from the user and the session."""
    return CommandOptions(
        storage_options=target.storage_options,
        time_zone=target.time_zone,
        ansi=is_ansi(target.spark),
        isolation_level=target.isolation_level,
        user_metadata=target.user_metadata,
        max_runs=target.max_runs,
        row_level_concurrency=target.row_level_concurrency,
        application=target.txn,
    )


def with_subqueries_of(options: CommandOptions, frame: DataFrame, table_root: str) -> CommandOptions:
    """The options, with what the subqueries of this query of Spark read."""
    of_subqueries = subqueries_depend_on_table(frame, table_root)
    where = options.reads_where if of_subqueries is False else None
    return replace(options, reads_table=any_depends((options.reads_table, of_subqueries)), reads_where=where)


def place_of_supported(target: TableHandle, bytes_to_read: int) -> tuple[Place, TaskRunner]:
    """Where a command runs if our evaluator supports all its expressions.

    Raises: UnsupportedOperationError if the session's workers must see the same files, but may see others.
    """
    size, limit = _bytes(bytes_to_read), _bytes(target.process_bytes)
    if target.engine == "process":
        return Place("process", f"the user chose engine 'process'; it must read {size}"), local_runner(target)
    if target.engine == "tasks":
        require_shared_files(target)
        return Place("tasks", f"the user chose engine 'tasks'; they must read {size}"), SparkRunner(target.spark)
    if bytes_to_read <= target.process_bytes:
        reason = f"our evaluator supports every expression; it must read {size}, within the limit of {limit}"
        return Place("process", reason), local_runner(target)
    require_shared_files(target)
    reason = f"our evaluator supports every expression; it must read {size}, more than the limit of {limit}"
    return Place("tasks", reason), SparkRunner(target.spark)


def rewrite_runner(target: TableHandle, bytes_to_read: int) -> TaskRunner:
    """The runner that rewrites files after a query of Spark has found the rows."""
    return local_runner(target) if bytes_to_read <= target.process_bytes else SparkRunner(target.spark)


def local_runner(target: TableHandle) -> LocalRunner:
    return LocalRunner(discard=lambda outputs: discard_files(target.path, target.storage_options, outputs))


def require_supported(target: TableHandle, reason: str) -> None:
    """Refuse a command that the user wants our evaluator to run, if it does not support an expression.

    Raises: UnsupportedOperationError.
    """
    if target.engine in ("process", "tasks"):
        raise UnsupportedOperationError(
            f"this command on the table {target.path} needs a Spark query: {reason} Omit engine, or set it to 'spark'.",
            table=target.path,
        )


def require_shared_files(target: TableHandle) -> None:
    """Raises: UnsupportedOperationError if the session's workers may see other files under the table's path."""
    if not target.shared_files:
        raise UnsupportedOperationError(
            f"the path {target.path} may name a different table on the Spark Connect server. This command reads the "
            "table both there and here. Give a path that means the same on both, such as s3://..., or file:///... if "
            "both run on one machine.",
            table=target.path,
        )


def _bytes(number: int) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if number < 1024 or unit == "GiB":
            return f"{number:,.0f} {unit}"
        number = -(-number // 1024)
    raise AssertionError
