"""DELETE, UPDATE, MERGE and TRUNCATE."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from pyspark.sql import Column, DataFrame

from delta_pyds.commands.layout.auto_compact import compact_after
from delta_pyds.commands.row_changes.resolved import MergeClause
from delta_pyds.commands.row_changes.result import Place, RowChangeResult
from delta_pyds.spark.options.auto_compact import session_rule
from delta_pyds.spark.row_changes.delete import delete_rows, truncate_rows
from delta_pyds.spark.row_changes.handle import AlreadyWrittenError, TableHandle
from delta_pyds.spark.row_changes.merge import merge_rows
from delta_pyds.spark.row_changes.update import update_rows
from delta_pyds.spark.table_commands.results import numbers_frame
from delta_pyds.spark.table_commands.settings import for_one_command, merges_schema

_AFFECTED = ("num_affected_rows",)
_OF_MERGE = ("num_affected_rows", "num_updated_rows", "num_deleted_rows", "num_inserted_rows")


def delete(handle: TableHandle, condition: Column | str | None) -> DataFrame:
    """Delete the rows for which the condition is true; all rows for None."""
    now = for_one_command(handle)
    return numbers_frame(now.spark, _once(now, lambda: delete_rows(now, condition)), _AFFECTED)


def truncate(handle: TableHandle) -> None:
    """Delete all rows, as ``TRUNCATE TABLE``: the reference's class has no method for it."""
    now = for_one_command(handle)
    _once(now, lambda: truncate_rows(now))


def update(handle: TableHandle, condition: Column | str | None, assignments: Mapping[str, Column | str]) -> DataFrame:
    """Assign new values in the rows for which the condition is true; in all rows for None."""
    now = for_one_command(handle)
    return numbers_frame(now.spark, _once(now, lambda: update_rows(now, condition, assignments)), _AFFECTED)


def merge(
    handle: TableHandle,
    source: DataFrame,
    condition: Column | str,
    clauses: Sequence[MergeClause[Column | str]],
    *,
    evolves: bool,
) -> DataFrame:
    """Merge the rows of a source. ``evolves``: the merge may add columns. The session's setting allows it, too."""
    evolves = evolves or merges_schema(handle.spark)
    done = merged(handle, lambda now: merge_rows(now, source, condition, tuple(clauses), evolves))
    if evolves:
        handle.update_catalog()
    return done


def merged(handle: TableHandle, command: Callable[[TableHandle], RowChangeResult]) -> DataFrame:
    """The numbers of a merge, which a function runs on the handle with the session's current settings."""
    now = for_one_command(handle)
    return numbers_frame(now.spark, _once(now, lambda: command(now)), _OF_MERGE)


def _once(handle: TableHandle, command: Callable[[], RowChangeResult]) -> RowChangeResult:
    """Run a command, unless the table already has the version of its application.

    Afterwards small files are compacted if the table or the session asks for it.
    """
    try:
        result = command()
        if result.version is not None:
            setting = partial(handle.spark.conf.get, default=None)
            rule = session_rule(setting, table_wants=result.auto_compact)
            if rule is not None:
                compact_after(handle.path, result.version, handle.storage_options, rule=rule)
        return result
    except AlreadyWrittenError:
        place = Place("process", "the table already has the given transaction")
        return RowChangeResult(None, 0, 0, 0, 0, num_files_read=0, place=place)
