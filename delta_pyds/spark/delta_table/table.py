"""``DeltaTable``: one table at a path, and the commands that change its rows.

Invariant: an object holds no state of the table. Each method opens the current version. An object and its aliases are
the same table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, overload

from delta_pyds.catalog.address import locate
from delta_pyds.html_table import pairs
from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.arguments import catalog_argument
from delta_pyds.spark.catalog_names import tracked_views
from delta_pyds.spark.catalog_names.opening import OpenTable, open_name
from delta_pyds.spark.delta_table.alter import AlterMethods
from delta_pyds.spark.delta_table.called_by_name import renamed, renamed_values
from delta_pyds.spark.delta_table.maintenance import MaintenanceMethods
from delta_pyds.spark.delta_table.merge_builder import DeltaMergeBuilder
from delta_pyds.spark.delta_table.optimize_builder import LayoutMethods
from delta_pyds.spark.delta_table.private_hooks import WithoutJvm
from delta_pyds.spark.delta_table.table_builder import CreateMethods
from delta_pyds.spark.row_changes.frame_identity import resolving_columns_of
from delta_pyds.spark.row_changes.handle import DEFAULT_PROCESS_BYTES, Engine, TableHandle
from delta_pyds.spark.session import read
from delta_pyds.spark.spark_errors import errors_of_spark
from delta_pyds.spark.table_commands import argument_checks as checks
from delta_pyds.spark.table_commands import describe, rows
from delta_pyds.spark.table_commands.argument_checks import ColumnMapping, ExpressionOrColumn
from delta_pyds.spark.table_commands.identifiers import is_table
from delta_pyds.spark.table_commands.opening import open_path
from delta_pyds.statements.qualified_names import QualifiedTable
from delta_pyds.storage.resolve import scheme_of
from delta_pyds.storage.table_path import PathLike, absolute_table_path
from delta_pyds.table.scan.read_report import remember, report_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from delta_pyds.catalog import Catalog


class DeltaTable(CreateMethods, AlterMethods, MaintenanceMethods, LayoutMethods, WithoutJvm):
    """A Delta table, with the methods of ``delta.tables.DeltaTable``: a program changes its import and runs.

    ``DeltaTable.forPath`` and ``forName`` make one. It holds no state of the table: each method opens the current
    version. It works on classic sessions and on Spark Connect, where the server needs nothing but this package for its
    tasks. Errors are DeltaErrors and, for the same mistakes, the exceptions of PySpark that the reference raises.

    >>> from delta_pyds import DeltaTable
    >>> table = DeltaTable.forPath(spark, "/data/events")
    >>> table.delete("day < '2026-01-01'")
    >>> table.update("city = 'Bern'", {"visits": "visits + 1"})
    >>> table.alias("t").merge(updates.alias("u"), "t.id = u.id").whenMatchedUpdateAll().execute()
    """

    def __init__(
        self,
        handle: TableHandle,
        frames: dict[str | None, DataFrame] | None = None,
        called: QualifiedTable | None = None,
    ) -> None:
        # use forPath: the handle is checked there
        self._handle = handle
        # the name that conditions may use for a table without an alias
        self._called = called
        # the first results of toDF, by alias and without one, shared with all aliases: a Column of any of them means
        # this table
        self._frames: dict[str | None, DataFrame] = {} if frames is None else frames

    @classmethod
    def forPath(
        cls,
        sparkSession: SparkSession,
        path: PathLike,
        hadoopConf: Mapping[str, str] | None = None,
        *,
        storage_options: Mapping[str, Any] | None = None,
        engine: Engine = "auto",
        process_bytes: int = DEFAULT_PROCESS_BYTES,
        max_runs: int = 1,
        row_level_concurrency: bool = True,
        isolation_level: str | None = None,
        user_metadata: str | None = None,
    ) -> DeltaTable:
        """Open the table at a path.

        Args:
            sparkSession: The session, classic or of Spark Connect.
            path: The path of the table: absolute, relative to this process, ``~/...`` or of a store. On Spark Connect
                it is absolute.
            hadoopConf: Settings of Hadoop for the store: keys of ``fs.s3a`` or of an Azure account. Prefer
                ``storage_options``, which win.
            storage_options: Options of the store, as its fsspec package takes them.
            engine: Where commands run; it is not the engine of ``delta_pyds.read``. ``process``: in this process, with
                delta_pyds's own evaluator. ``tasks``: the same in tasks of the session. ``spark``: a query of the
                session finds the rows. ``auto`` takes ``process`` if at most ``process_bytes`` must be read, else
                ``tasks``, and ``spark`` if the session may read the expressions in another way.
            process_bytes: The most bytes that ``auto`` reads in this process.
            max_runs: How often a command may run in all, if conflicting commits come first; 1 or more. A command whose
                source or subquery may read the table runs once.
            row_level_concurrency: Whether a command that lost a race decides again on the rows that others changed,
                and on nothing else. Such a race is then no conflict.
            isolation_level: ``Serializable`` or ``WriteSerializable``, in any case; by default the table's.
            user_metadata: Text for the commit info of every commit; by default the session's, in the reference's
                setting.

        Returns:
            The table.

        Raises:
            TableNotFoundError: There is no table; it is an AnalysisException too.
            OptionError: An argument is invalid.
            UnsupportedOperationError: A setting of Hadoop is not supported; or, on Spark Connect, a path without a
                scheme is not the same on the server.
            WorkerPythonError: Spark's workers run a Python without this package.
            DeltaError: The table cannot be opened; see ``delta_pyds.load_snapshot``.

        >>> DeltaTable.forPath(spark, "s3://lake/events", storage_options={"key": "...", "secret": "..."}, max_runs=5)
        """
        assert sparkSession is not None
        with errors_of_spark():
            return cls(
                open_path(
                    sparkSession,
                    path,
                    hadoopConf,
                    storage_options=storage_options,
                    engine=engine,
                    process_bytes=process_bytes,
                    max_runs=max_runs,
                    row_level_concurrency=row_level_concurrency,
                    isolation_level=isolation_level,
                    user_metadata=user_metadata,
                )
            )

    @classmethod
    def forName(
        cls, sparkSession: SparkSession, tableOrViewName: str, *, catalog: str | Catalog | None = None, **options: Any
    ) -> DeltaTable:
        """Open the table with a name. Conditions and values may use the name: ``orders.id``, ``sales.orders.id``.

        When this object changes the columns of the table, Spark's catalog gets them too.

        Args:
            sparkSession: The session, classic or of Spark Connect.
            tableOrViewName: A name that ``delta_pyds.create_table`` or CREATE TABLE gave; or a path, as
                ``delta.`/data/events```.
            catalog: The catalog that manages the table by this name, as ``delta_pyds.load_snapshot`` takes it; by
                default Spark's.
            **options: The keyword arguments of ``forPath``.

        Returns:
            The table.

        Raises:
            TableNotFoundError: Nothing has the name.
            UnsupportedOperationError: Another table or view has the name.
            DeltaError: The table cannot be opened; see ``forPath``.

        >>> DeltaTable.forName(spark, "sales.orders").delete("day < '2026-01-01'")
        >>> DeltaTable.forName(spark, "main.sales.orders", catalog="prod").toDF().show()
        """
        assert sparkSession is not None
        with errors_of_spark():
            if catalog is None:
                return cls._of(open_name(sparkSession, tableOrViewName, **options))
            storage_options = options.pop("storage_options", None)
            address = locate(table=tableOrViewName, catalog=catalog_argument(catalog), storage_options=storage_options)
            return cls.forPath(sparkSession, address.table_root, storage_options=address.storage_options, **options)

    @classmethod
    def _of(cls, opened: OpenTable) -> DeltaTable:
        return cls(opened.handle, called=opened.called)

    @classmethod
    def isDeltaTable(
        cls, sparkSession: SparkSession, identifier: PathLike, *, storage_options: Mapping[str, Any] | None = None
    ) -> bool:
        """Whether a Delta table is at a path, or above it.

        On Spark Connect this process looks, because it also commits.

        Args:
            sparkSession: The session, classic or of Spark Connect.
            identifier: The path; on Spark Connect it is absolute.
            storage_options: Options of the store, as its fsspec package takes them.

        Returns:
            True if there is one, even a damaged one.

        Raises:
            OptionError: The path is invalid.

        >>> DeltaTable.isDeltaTable(spark, "/data/events")
        True
        """
        assert sparkSession is not None
        with errors_of_spark():
            root = absolute_table_path(identifier, remote=is_remote(sparkSession))
            return is_table(root, storage_options or {})

    def toDF(self) -> DataFrame:
        """Return the rows of the table's current version. The DataFrame stays at this version.

        Commands of this object and of its aliases may use its columns in their conditions.

        Returns:
            A DataFrame as ``delta_pyds.read`` returns it.

        Raises:
            DeltaError: The table cannot be read; see ``delta_pyds.read``.

        >>> table.delete(table.toDF().id == 7)
        """
        handle = self._handle
        with errors_of_spark():
            # a path without a scheme is the same on the server: that was proved when the table was opened
            path = f"file://{handle.path}" if handle.remote and scheme_of(handle.path) == "file" else handle.path
            frame = read(handle.spark, path, storage_options=handle.storage_options)
            first = self._frames.setdefault(None, frame)
            own = self._frames.get(handle.alias)
            others = [one for one in (first, own) if one is not None and one is not frame]
            shown = resolving_columns_of(frame, others if first is not own else others[:1], handle.alias)
            self._frames.setdefault(handle.alias, shown)
            report = report_of(frame)
            remember(shown, report)
            again = partial(read, handle.spark, path, storage_options=handle.storage_options)
            source = tracked_views.Source(path, handle.storage_options)
            tracked_views.remember(shown, tracked_views.Origin((source,), again, whole=True, version=report.version))
            return shown

    def alias(self, aliasName: str) -> DeltaTable:
        """Return the same table under an alias for conditions, values and ``toDF``.

        Args:
            aliasName: The alias.

        Returns:
            The table with the alias.

        >>> table.alias("t").merge(updates.alias("u"), "t.id = u.id")
        """
        return type(self)(replace(self._handle, alias=aliasName), self._frames)

    def history(self, limit: int | None = None) -> DataFrame:
        """Return the commits that the log still has, newest first.

        Args:
            limit: The most commits to return; by default all.

        Returns:
            One row for each commit, with the reference's columns.

        Raises:
            TypeError: ``limit`` is not an int.
            DeltaError: The table cannot be opened; see ``delta_pyds.load_snapshot``.

        Protocol: "Commit Provenance Information".

        >>> table.history(1).select("operation", "operationMetrics").show()
        """
        count = checks.row_limit(limit)
        with errors_of_spark():
            return describe.history(self._handle, count)

    def detail(self) -> DataFrame:
        """Return the table's identity, location, layout, number and size of files, properties and protocol.

        Returns:
            One row, with the reference's columns.

        Raises:
            DeltaError: The table cannot be opened; see ``delta_pyds.load_snapshot``.

        >>> table.detail().select("numFiles", "sizeInBytes", "tableFeatures").show()
        """
        with errors_of_spark():
            return describe.detail(self._handle)

    def delete(self, condition: ExpressionOrColumn | None = None) -> DataFrame:
        """Delete the rows for which the condition is true.

        Args:
            condition: SQL text or a Column; by default all rows.

        Returns:
            One row with ``num_affected_rows``; ``delta_pyds.explain`` of it says where the command ran, and why.

        Raises:
            TypeError: ``condition`` has the wrong type.
            ConflictError: A conflicting commit came first.
            UserError: The table takes appends only (DELTA_CANNOT_MODIFY_APPEND_ONLY).
            AnalysisException: The condition is invalid.

        >>> table.delete("day < '2026-01-01'").collect()[0].num_affected_rows
        """
        checked = checks.optional_condition(condition)
        with errors_of_spark():
            if self._called is not None and checked is not None:
                checked = renamed(checked, self._called)
            return rows.delete(self._with_frames(), checked)

    @overload
    def update(self, condition: ExpressionOrColumn, set: ColumnMapping) -> DataFrame: ...

    @overload
    def update(self, *, set: ColumnMapping) -> DataFrame: ...

    def update(
        self,
        condition: ExpressionOrColumn | None = None,
        set: ColumnMapping | None = None,  # noqa: A002 - the reference's name
    ) -> DataFrame:
        """Assign new values in the rows for which the condition is true.

        Args:
            condition: SQL text or a Column; by default all rows.
            set: Column names, nested ones with dots, to SQL text or Columns over the old row.

        Returns:
            One row with ``num_affected_rows``; ``delta_pyds.explain`` of it says where the command ran, and why.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: ``set`` is missing.
            ConflictError: A conflicting commit came first.
            UserError: The table takes appends only (DELTA_CANNOT_MODIFY_APPEND_ONLY).
            ConstraintViolationError: A new row breaks a constraint of the table.
            AnalysisException: The condition or a value is invalid.

        >>> table.update("city = 'Bern'", {"visits": "visits + 1", "address.zip": "3000"})
        """
        assigned = checks.assignments(set, "'set'")
        checked = checks.optional_condition(condition)
        with errors_of_spark():
            if self._called is not None:
                assigned = renamed_values(assigned, self._called)
                checked = None if checked is None else renamed(checked, self._called)
            return rows.update(self._with_frames(), checked, assigned)

    def merge(self, source: DataFrame, condition: ExpressionOrColumn) -> DeltaMergeBuilder:
        """Begin a merge of the rows of ``source``. Add clauses to the builder; nothing runs before its ``execute``.

        Args:
            source: The rows, a DataFrame; give it an alias if columns have the same names as the table's.
            condition: SQL text or a Column over both tables, which says which rows match.

        Returns:
            A builder.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: An argument is None.

        >>> table.alias("t").merge(updates.alias("u"), "t.id = u.id").whenNotMatchedInsertAll().execute()
        """
        checked = checks.merge_condition(condition)
        return DeltaMergeBuilder(self._with_frames, checks.source_frame(source), checked, _called=self._called)

    def __repr__(self) -> str:
        return f"DeltaTable({self._handle.path!r})"

    def _repr_html_(self) -> str:
        try:
            return describe.detail_html(self._handle.open())
        except Exception as error:
            # a notebook shows the last value of a cell, and must not fail for it
            return pairs([("path", self._handle.path), ("cannot be opened", str(error))], caption="Delta table")

    def _with_frames(self) -> TableHandle:
        """The handle of one command, which knows what ``toDF`` has returned."""
        return replace(self._handle, known_frames=tuple(self._frames.values()))


def handle_of(table: DeltaTable) -> TableHandle:
    """The handle of a table, for the other functions of this package that take a ``DeltaTable``."""
    return table._handle
