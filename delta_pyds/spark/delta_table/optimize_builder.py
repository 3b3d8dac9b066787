"""``DeltaTable.optimize`` and ``clusterBy``: how the rows of a table lie in files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from delta_pyds.spark.delta_table.private_hooks import WithoutJvm
from delta_pyds.spark.row_changes.handle import TableHandle
from delta_pyds.spark.spark_errors import errors_of_spark
from delta_pyds.spark.table_commands import argument_checks as checks
from delta_pyds.spark.table_commands import layout

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class LayoutMethods:
    """The methods of ``DeltaTable`` that lay its rows out anew."""

    _handle: TableHandle

    def optimize(self, *, full: bool = False) -> DeltaOptimizeBuilder:
        """Begin to lay the table's rows out anew; the builder says how. No row changes, and no stream sees it.

        ``full``: of a clustered table, files are clustered again too that were clustered by other columns.

        >>> table.optimize().executeCompaction()
        >>> table.optimize().where("day >= '2026-01-01'").executeZOrderBy("city", "visits")
        """
        checks.flag(full, "full")
        return DeltaOptimizeBuilder(self._handle, full=full)

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
            layout.cluster_by(self._handle, columns)


class DeltaOptimizeBuilder(WithoutJvm):
    """How a table's rows are laid out anew: choose partitions by ``where``, then execute.

    Each execution returns one row: the table's path, and the struct of metrics that the reference returns;
    ``delta_pyds.explain`` of it says where the command ran.
    """

    def __init__(self, handle: TableHandle, *, full: bool, filters: tuple[str, ...] = ()) -> None:
        # use DeltaTable.optimize
        self._handle = handle
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
        with errors_of_spark():
            return layout.compact(self._handle, self._filters, full=self._full)

    def executeZOrderBy(self, *cols: str | Sequence[str]) -> DataFrame:
        """All files of the partitions are written anew, so that rows that are near in these columns are in few files.

        >>> table.optimize().executeZOrderBy("city", "visits")

        Raises: TypeError for what is no name; OptionError for columns that a Z-order cannot be by; as
            ``executeCompaction``.
        """
        columns = checks.column_names(cols, "Z-order column")
        with errors_of_spark():
            return layout.z_order(self._handle, columns, self._filters)

    def executePurge(self) -> DataFrame:
        """Files with rows that deletion vectors mark are written anew without them: REORG TABLE ... APPLY (PURGE).

        Rows that were deleted are gone from storage once vacuum has removed the old files.

        >>> table.optimize().executePurge()

        Raises: as ``executeCompaction``.
        """
        with errors_of_spark():
            return layout.purge(self._handle, self._filters)
