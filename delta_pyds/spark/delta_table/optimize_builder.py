"""``DeltaTable.optimize`` and ``clusterBy``: the layout of a table's rows in files."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from delta_pyds.spark.delta_table.private_hooks import WithoutJvm
from delta_pyds.spark.row_changes.handle import TableHandle
from delta_pyds.spark.spark_errors import errors_of_spark
from delta_pyds.spark.table_commands import argument_checks as checks
from delta_pyds.spark.table_commands import layout


class LayoutMethods:
    """The methods of ``DeltaTable`` that change the layout of its rows."""

    _handle: TableHandle

    def optimize(self, *, full: bool = False) -> DeltaOptimizeBuilder:
        """Return a builder for a new layout of the table's rows. No row changes, and no stream sees the layout.

        Args:
            full: In a clustered table, whether to cluster files again that were clustered by other columns.

        Returns:
            A builder; each of its executions returns one row.

        Raises:
            ValueError: ``full`` is not a bool.

        >>> table.optimize().executeCompaction()
        >>> table.optimize().where("day >= '2026-01-01'").executeZOrderBy("city", "visits")
        """
        checks.flag(full, "full")
        return DeltaOptimizeBuilder(self._handle, full=full)

    def clusterBy(self, *cols: str | Sequence[str]) -> None:
        """Cluster the table by these columns from now on. The next ``optimize`` clusters the existing files.

        Args:
            *cols: Names of columns, or of fields with dots; or one list of them. Without any, the table is no longer
                clustered.

        Raises:
            TypeError: A name is not a str.
            UserError: A column is not usable for clustering, or the table is partitioned
                (DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED).
            ConflictError: A conflicting commit came first.

        Protocol: "Clustered Table".

        >>> table.clusterBy("city", "address.zip")
        >>> table.optimize().executeCompaction()
        """
        columns = checks.column_names(cols, "Clustering column")
        with errors_of_spark():
            layout.cluster_by(self._handle, columns)


class DeltaOptimizeBuilder(WithoutJvm):
    """A new layout of a table's rows: choose partitions by ``where``, then execute. ``DeltaTable.optimize`` begins one.

    Each execution returns one row: the table's path, and the struct of metrics that the reference returns.
    ``delta_pyds.explain`` of the result says where the command ran.

    >>> table.optimize().where("day >= '2026-01-01'").executeCompaction()
    """

    def __init__(self, handle: TableHandle, *, full: bool, filters: tuple[str, ...] = ()) -> None:
        # use DeltaTable.optimize
        self._handle = handle
        self._full = full
        self._filters = filters

    def where(self, partitionFilter: str) -> DeltaOptimizeBuilder:
        """Choose the partitions for which the filter is true. Several filters must all be true.

        Args:
            partitionFilter: SQL over partition columns.

        Returns:
            This builder.

        Raises:
            ValueError: ``partitionFilter`` is not a str.

        >>> table.optimize().where("day >= '2026-01-01'").executeCompaction()
        """
        checks.text(partitionFilter, "partitionFilter")
        self._filters = (*self._filters, partitionFilter)
        return self

    def executeCompaction(self) -> DataFrame:
        """Rewrite small files as few, without the rows that deletion vectors mark.

        A clustered table is clustered if necessary.

        Returns:
            One row with ``path`` and ``metrics``.

        Raises:
            UserError: A filter names a column that is not a partition column (DELTA_NON_PARTITION_COLUMN_REFERENCE).
            ConflictError: Another commit removed one of the files, or changed the schema or protocol.

        >>> table.optimize().executeCompaction().select("metrics.numFilesRemoved").show()
        """
        with errors_of_spark():
            return layout.compact(self._handle, self._filters, full=self._full)

    def executeZOrderBy(self, *cols: str | Sequence[str]) -> DataFrame:
        """Rewrite all files of the partitions, so that rows with close values in these columns are in few files.

        Args:
            *cols: Names of columns, or one list of them.

        Returns:
            One row with ``path`` and ``metrics``.

        Raises:
            TypeError: A name is not a str.
            OptionError: A Z-order cannot use a column.
            UserError: A filter names a column that is not a partition column (DELTA_NON_PARTITION_COLUMN_REFERENCE).
            ConflictError: Another commit removed one of the files, or changed the schema or protocol.

        >>> table.optimize().executeZOrderBy("city", "visits")
        """
        columns = checks.column_names(cols, "Z-order column")
        with errors_of_spark():
            return layout.z_order(self._handle, columns, self._filters)

    def executePurge(self) -> DataFrame:
        """Rewrite files without the rows that deletion vectors mark: REORG TABLE ... APPLY (PURGE).

        Deleted rows are gone from storage after vacuum has removed the old files.

        Returns:
            One row with ``path`` and ``metrics``.

        Raises:
            UserError: A filter names a column that is not a partition column (DELTA_NON_PARTITION_COLUMN_REFERENCE).
            ConflictError: Another commit removed one of the files, or changed the schema or protocol.

        >>> table.optimize().executePurge()
        """
        with errors_of_spark():
            return layout.purge(self._handle, self._filters)
