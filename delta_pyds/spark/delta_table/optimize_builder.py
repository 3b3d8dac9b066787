"""``DeltaTable.optimize`` and ``clusterBy``: how the rows of a table lie in files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from delta_pyds.commands.layout.cluster_by import cluster_by
from delta_pyds.commands.layout.operation import LayoutResult
from delta_pyds.commands.layout.optimize import plan_optimize, plan_purge, plan_zorder
from delta_pyds.commands.layout.plan import LayoutPlan
from delta_pyds.commands.layout.run import run_layout
from delta_pyds.commands.row_changes.commit_rows import run_again
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.spark.delta_table.layout_frame import layout_frame
from delta_pyds.spark.delta_table.private_hooks import WithoutJvm
from delta_pyds.spark.delta_table.settings import layout_sizes
from delta_pyds.spark.row_changes.handle import TableHandle
from delta_pyds.spark.row_changes.place import command_options, place_of_known
from delta_pyds.spark.source.error_transport import errors_as_they_were
from delta_pyds.spark.spark_errors import errors_of_spark
from delta_pyds.spark.table_commands import argument_checks as checks
from delta_pyds.table.snapshot import Snapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class LayoutMethods:
    """The methods of ``DeltaTable`` that lay its rows out anew."""

    _now: Callable[[], TableHandle]

    def optimize(self, *, full: bool = False) -> DeltaOptimizeBuilder:
        """Begin to lay the table's rows out anew; the builder says how. No row changes, and no stream sees it.

        ``full``: of a clustered table, files are clustered again too that were clustered by other columns.

        >>> table.optimize().executeCompaction()
        >>> table.optimize().where("day >= '2026-01-01'").executeZOrderBy("city", "visits")
        """
        checks.flag(full, "full")
        return DeltaOptimizeBuilder(self._now, full=full)

    def clusterBy(self, *cols: str | Sequence[str]) -> None:
        """Let the table be clustered by these columns from now on; by none, where none is named.

        Files that are there are clustered by the next ``optimize``.

        >>> table.clusterBy("city", "address.zip")
        >>> table.optimize().executeCompaction()

        Raises: TypeError for what is no name; UserError for columns that no table can be clustered by, and for a
            partitioned table (DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED); a ConflictError.
        """
        columns = checks.column_names(cols, "Clustering column")
        with errors_of_spark():
            handle = _without_transaction(self._now())
            run_again(handle.max_runs, lambda: cluster_by(handle.open(), columns, command_options(handle)))


class DeltaOptimizeBuilder(WithoutJvm):
    """How a table's rows are laid out anew: choose partitions by ``where``, then execute.

    Each execution returns one row: the table's path, and the struct of metrics that the reference returns;
    ``delta_pyds.explain`` of it says where the command ran.
    """

    def __init__(self, now: Callable[[], TableHandle], *, full: bool, filters: tuple[str, ...] = ()) -> None:
        # use DeltaTable.optimize
        self._now = now
        self._full = full
        self._filters = filters

    def where(self, partitionFilter: str) -> DeltaOptimizeBuilder:
        """Only partitions for which the filter is true; several filters are all to be true.

        >>> table.optimize().where("day >= '2026-01-01'").executeCompaction()
        """
        checks.text(partitionFilter, "partitionFilter")
        self._filters = (*self._filters, partitionFilter)
        return self

    def executeCompaction(self) -> DataFrame:
        """Small files become few, and rows that deletion vectors mark leave the files that are written anew.

        A clustered table is clustered as far as it needs to be.

        >>> table.optimize().executeCompaction().select("metrics.numFilesRemoved").show()

        Raises: UserError (DELTA_NON_PARTITION_COLUMN_REFERENCE) for a filter over other columns than the partition's;
            ConcurrentDeleteReadError where another commit took one of the files.
        """

        def plan(snapshot: Snapshot, options: CommandOptions, handle: TableHandle) -> LayoutPlan:
            sizes = layout_sizes(handle.spark)
            return plan_optimize(snapshot, self._filters, options, sizes=sizes, full=self._full)

        return self._execute(plan)

    def executeZOrderBy(self, *cols: str | Sequence[str]) -> DataFrame:
        """All files of the partitions are written anew, so that rows that are near in these columns are in few files.

        >>> table.optimize().executeZOrderBy("city", "visits")

        Raises: TypeError for what is no name; OptionError for columns that a Z-order cannot be by; as
            ``executeCompaction``.
        """
        columns = checks.column_names(cols, "Z-order column")

        def plan(snapshot: Snapshot, options: CommandOptions, handle: TableHandle) -> LayoutPlan:
            return plan_zorder(snapshot, columns, self._filters, options, sizes=layout_sizes(handle.spark))

        return self._execute(plan)

    def executePurge(self) -> DataFrame:
        """Files with rows that deletion vectors mark are written anew without them: REORG TABLE ... APPLY (PURGE).

        Rows that were deleted are gone from storage once vacuum has removed the old files.

        >>> table.optimize().executePurge()

        Raises: as ``executeCompaction``.
        """

        def plan(snapshot: Snapshot, options: CommandOptions, handle: TableHandle) -> LayoutPlan:
            return plan_purge(snapshot, self._filters, options, sizes=layout_sizes(handle.spark))

        return self._execute(plan)

    def _execute(self, plan: Callable[[Snapshot, CommandOptions, TableHandle], LayoutPlan]) -> DataFrame:
        with errors_of_spark(), errors_as_they_were():
            handle = _without_transaction(self._now())

            def once() -> LayoutResult:
                planned = plan(handle.open(), command_options(handle), handle)
                return run_layout(planned, *place_of_known(handle, planned.bytes_to_read))

            return layout_frame(handle.spark, run_again(handle.max_runs, once))


def _without_transaction(handle: TableHandle) -> TableHandle:
    """Layout is no write of an application: what the session says of those is not for it."""
    return replace(handle, txn=None)
