"""``apply_changes``: changes of a batch, or of a stream, applied to a table by one merge for each batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, overload

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from delta_pyds.commands.row_changes.commit_rows import run_again
from delta_pyds.commands.row_changes.result import RowChangeResult
from delta_pyds.errors import ConflictError, OptionError
from delta_pyds.protocol.char_types import is_padded
from delta_pyds.protocol.quoting import quote_name
from delta_pyds.protocol.schema import COLLATIONS
from delta_pyds.redaction import safe_logger
from delta_pyds.spark.apply_changes.history import changed_history, merge_of_history
from delta_pyds.spark.apply_changes.newest import merge_of_newest, newest_changes
from delta_pyds.spark.apply_changes.prepared import PreparedChanges, prepared_changes
from delta_pyds.spark.apply_changes.refusals import RepeatedSequenceError, refusals_as_user_errors
from delta_pyds.spark.apply_changes.rules import (
    END_COLUMN,
    START_COLUMN,
    ChangeRules,
    Expression,
    Names,
    change_rules,
)
from delta_pyds.spark.apply_changes.target import (
    CHANGES_ALIAS,
    ChangeColumns,
    Target,
    change_columns,
    new_columns,
    require_columns,
)
from delta_pyds.spark.arguments import number_argument, text_argument
from delta_pyds.spark.delta_table.table import DeltaTable
from delta_pyds.spark.loading import load
from delta_pyds.spark.options.read import ReadOptions
from delta_pyds.spark.options.values import application_option
from delta_pyds.spark.row_changes.handle import TableHandle
from delta_pyds.spark.row_changes.matching import key_predicate
from delta_pyds.spark.row_changes.merge import merge_rows
from delta_pyds.spark.row_changes.merge_source import MergeSource, materialize_source, with_materialized_source
from delta_pyds.spark.row_sources import depends_on_table
from delta_pyds.spark.spark_errors import errors_of_spark
from delta_pyds.spark.table_commands import rows
from delta_pyds.storage.resolve import scheme_of
from delta_pyds.storage.table_path import PathLike
from delta_pyds.tasks.changed_rows import SOURCE_ROW_COLUMN

if TYPE_CHECKING:
    from delta_pyds.catalog import Catalog

logger = safe_logger(__name__)


@overload
def apply_changes(
    target: DeltaTable | PathLike | None = None,
    changes: None = None,
    *,
    table: str | None = None,
    catalog: str | Catalog | None = None,
    keys: Names,
    sequence_by: Expression,
    delete_when: Expression | None = None,
    scd: Literal[1, 2] = 1,
    tombstones: bool = True,
    column_list: Names | None = None,
    except_column_list: Names | None = None,
    ignore_null_updates: bool = False,
    track_history_column_list: Names | None = None,
    track_history_except_column_list: Names | None = None,
    txn_app_id: str | None = None,
    txn_version: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Callable[[DataFrame, int], None]: ...


@overload
def apply_changes(
    target: DeltaTable | PathLike | None = None,
    changes: DataFrame = ...,
    *,
    table: str | None = None,
    catalog: str | Catalog | None = None,
    keys: Names,
    sequence_by: Expression,
    delete_when: Expression | None = None,
    scd: Literal[1, 2] = 1,
    tombstones: bool = True,
    column_list: Names | None = None,
    except_column_list: Names | None = None,
    ignore_null_updates: bool = False,
    track_history_column_list: Names | None = None,
    track_history_except_column_list: Names | None = None,
    txn_app_id: str | None = None,
    txn_version: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> DataFrame: ...


def apply_changes(
    target: DeltaTable | PathLike | None = None,
    changes: DataFrame | None = None,
    *,
    table: str | None = None,
    catalog: str | Catalog | None = None,
    keys: Names,
    sequence_by: Expression,
    delete_when: Expression | None = None,
    scd: Literal[1, 2] = 1,
    tombstones: bool = True,
    column_list: Names | None = None,
    except_column_list: Names | None = None,
    ignore_null_updates: bool = False,
    track_history_column_list: Names | None = None,
    track_history_except_column_list: Names | None = None,
    txn_app_id: str | None = None,
    txn_version: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> DataFrame | Callable[[DataFrame, int], None]:
    """Keep a table equal to a stream of changes: insert, update and delete rows by their keys, in any order.

    The table depends on the set of changes only, not on their order or their batches, except with
    ``tombstones=False``. Each batch is one commit. A change that comes again changes nothing. Arguments have the names
    of ``create_auto_cdc_flow``, where that has them.

    With ``scd=1`` the table has the newest change of each key. It remembers the sequence of each row: in the column
    that ``sequence_by`` names, or else in ``__SEQUENCE``. A deleted key keeps a row, its tombstone: the key, the
    sequence and ``__DELETED = true``; all else is null. So a late change cannot bring the row back. Read the table with
    ``__DELETED IS NOT TRUE``. Delete tombstones when no older change can come.

    With ``scd=2`` the table has a row for each change, valid from ``__START_AT`` until before ``__END_AT``. The current
    row has no ``__END_AT``. A delete ends a row. A delete that ends none is a tombstone: a row that ends where it
    starts, so it is never valid. Consecutive equal rows are not combined.

    Args:
        target: The table: a DeltaTable or a path. The first call creates a table that does not exist, with the
            columns of the changes.
        changes: The changes, a DataFrame; without it a function for ``foreachBatch`` of a stream is returned.
        table: Instead of ``target``, a name, as ``delta_pyds.read`` takes it.
        catalog: The catalog that manages the table, as ``load_snapshot`` takes it.
        keys: The columns that identify a row, as a list or as text with commas. They are never null.
        sequence_by: What orders the changes of a key: SQL text or a Column, such as ``"struct(time, number)"``. It is
            never null, nor is a field of a struct.
        delete_when: Which changes are deletes: SQL text or a Column; by default none.
        scd: 1 keeps the newest row of a key, 2 keeps its history.
        tombstones: With ``scd=1``, whether deleted keys keep a row. With False a delete removes the row, and a late
            change brings it back: only for changes that come in order.
        column_list: The columns of the changes that the table gets; by default all.
        except_column_list: Instead, the columns that it does not get.
        ignore_null_updates: Only False is supported.
        track_history_column_list: Not supported.
        track_history_except_column_list: Not supported.
        txn_app_id: An id for idempotent batches: the table gets a version of it once, and a repeated batch is not
            read. In a stream it is optional, and the version is the batch's number.
        txn_version: With ``txn_app_id`` and ``changes``, the version.
        storage_options: Options of the store of a path, as its fsspec package takes them.

    Returns:
        With ``changes``, one row as ``DeltaMergeBuilder.execute`` returns it, with numbers of rows of the table. A
        function of a batch and its number otherwise.

    Raises:
        OptionError: An argument is invalid.
        UnsupportedOperationError: An argument is not supported.
        ColumnNotFoundError: The changes or the table lack a column.
        UserError: A key or a sequence is null, or different changes have one key and one sequence. In two batches,
            that is not seen if they differ only in variants, or in nested values of another type than the table's.
        ConstraintViolationError: A new row breaks a constraint of the table.
        ConflictError: A conflicting commit came first. Call it again, or restart the stream.
        DeltaError: The table cannot be opened or created; see ``load_snapshot`` and ``write``.

    Protocol: "Transaction Identifiers".

    >>> delta_pyds.apply_changes(
    ...     "/data/customers", changes, keys="id", sequence_by="changed_at", delete_when="operation = 'DELETE'"
    ... )
    >>> save = delta_pyds.apply_changes("/data/history", keys=["id"], sequence_by="changed_at", scd=2)
    >>> events.writeStream.foreachBatch(save).option("checkpointLocation", "/data/checkpoints/history").start()
    """
    with errors_of_spark():
        rules = change_rules(
            keys=keys,
            sequence_by=sequence_by,
            delete_when=delete_when,
            scd=scd,
            tombstones=tombstones,
            column_list=column_list,
            except_column_list=except_column_list,
            ignore_null_updates=ignore_null_updates,
            track_history_column_list=track_history_column_list,
            track_history_except_column_list=track_history_except_column_list,
        )
        destination = Target.of(target, table, catalog, storage_options)
        app_id, version = (
            text_argument("txn_app_id", txn_app_id),
            number_argument("txn_version", txn_version, least=0),
        )
        if changes is None:
            if version is not None:
                raise OptionError(
                    "txn_version is given without changes: in a stream it is the number of the batch. Leave it out.",
                    option="txn_version",
                )
            return partial(_apply_batch, destination, rules, app_id)
        if not isinstance(changes, DataFrame):
            raise OptionError(
                f"the argument changes is {changes!r:.200}, but must be a DataFrame of Spark.", option="changes"
            )
        if changes.isStreaming:
            raise OptionError(
                "the changes are a stream: leave them out, and pass the returned function to writeStream.foreachBatch.",
                option="changes",
            )
        txn = application_option(app_id, None if version is None else str(version))
        return _apply(destination, rules, changes, txn)


def _apply_batch(target: Target, rules: ChangeRules, app_id: str | None, batch: DataFrame, batch_id: int) -> None:
    """The function of a stream. It runs in the session of the batch, on Spark Connect in a process of the server."""
    with errors_of_spark():
        _apply(target, rules, batch, None if app_id is None else application_option(app_id, str(batch_id)))


def _apply(target: Target, rules: ChangeRules, changes: DataFrame, txn: tuple[str, int] | None) -> DataFrame:
    columns = change_columns(changes, rules)
    prepared = prepared_changes(changes, rules, columns)
    sequence = prepared.sequence_type
    handle = target.open(changes.sparkSession, new_columns(columns, rules, prepared.schema, sequence))
    handle = replace(handle, txn=txn)
    # opened without the transaction: one that the table has is found by the merge
    snapshot = replace(handle, txn=None).open()
    require_columns(snapshot, columns, rules, prepared.schema, sequence)

    def run(*, compares: bool) -> DataFrame:
        with refusals_as_user_errors(handle.path):
            if rules.history:
                return rows.merged(handle, lambda now: _merge_history(now, prepared, columns, compares=compares))
            newest = newest_changes(prepared, columns)
            condition, clauses = merge_of_newest(columns, prepared.schema, snapshot.schema, compares=compares)
            return rows.merge(handle, newest.alias(CHANGES_ALIAS), condition, clauses, evolves=False)

    try:
        return run(compares=False)
    except RepeatedSequenceError:
        logger.info("Changes for %s come again: their values are compared with those of the table.", handle.path)
        return run(compares=True)


def _merge_history(
    handle: TableHandle, prepared: PreparedChanges, columns: ChangeColumns, *, compares: bool
) -> RowChangeResult:
    def once() -> RowChangeResult:
        # the history is computed from the version that the merge changes
        pinned = replace(handle, pinned=handle.open(), max_runs=1)
        try:
            return with_materialized_source(
                lambda level: _merge_history_of(pinned, prepared, columns, level, compares=compares)
            )
        except ConflictError as error:
            # the next run reads the table again, but not changes that come from it
            error.may_run_again = depends_on_table(prepared.frame, handle.path) is False
            raise

    return run_again(handle.max_runs, once)


def _merge_history_of(
    handle: TableHandle, prepared: PreparedChanges, columns: ChangeColumns, level: StorageLevel, *, compares: bool
) -> RowChangeResult:
    """``handle``: with the pinned version. The changes are computed once, and read for the keys and for the rows."""
    assert handle.pinned is not None
    changes = materialize_source(prepared.frame, level)
    events = replace(prepared, frame=changes.frame.drop(SOURCE_ROW_COLUMN))
    found = _rows_of_keys(handle, changes, columns)
    history = changed_history(events, found, columns, compares=compares)
    condition, clauses = merge_of_history(columns, prepared.schema, handle.pinned.schema, compares=compares)
    return merge_rows(handle, history.alias(CHANGES_ALIAS), condition, clauses)


def _rows_of_keys(handle: TableHandle, changes: MergeSource, columns: ChangeColumns) -> DataFrame:
    """Keys, start and end of the table's rows that have a key of the changes, in the names of the changes."""
    assert handle.pinned is not None
    names = (*columns.keys, START_COLUMN, END_COLUMN)
    fields = [handle.pinned.schema.find(name) for name in columns.keys]
    plain = [one for one in fields if one is not None and not is_padded(one) and COLLATIONS not in one.metadata]
    path = f"file://{handle.path}" if handle.remote and scheme_of(handle.path) == "file" else handle.path
    options = ReadOptions(
        "",
        where=key_predicate(plain, changes),
        columns=",".join(quote_name(name) for name in names),
        storage_options=handle.storage_options,
    )
    # not a version that a user chose: the merge's source depends on what a winner of a race changes
    stored = load(handle.spark, path, options, pinned_version=handle.pinned.version)
    found = stored.selectExpr(*(f"{quote_name(name)} AS {quote_name(name)}" for name in names))
    wanted = changes.frame.selectExpr(*(quote_name(name) for name in columns.keys)).distinct()
    wanted = F.broadcast(wanted) if changes.is_small else wanted
    return found.join(wanted, list(columns.keys), "left_semi")
