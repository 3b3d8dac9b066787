"""The builder of a table: ``DeltaTable.create``, ``replace`` and the like.

Invariant: nothing is read or written before ``execute``. Arguments are checked when they are given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from pyspark.sql import SparkSession
from pyspark.sql import types as spark_types

from delta_pyds.commands.definition.create import CreateMode
from delta_pyds.redaction import without_secrets
from delta_pyds.spark.arguments import catalog_argument
from delta_pyds.spark.catalog_names.creation import NewTable, create
from delta_pyds.spark.catalog_names.opening import OpenTable
from delta_pyds.spark.delta_table.column_builder import DeltaColumnBuilder
from delta_pyds.spark.delta_table.private_hooks import WithoutJvm
from delta_pyds.spark.spark_errors import errors_of_spark
from delta_pyds.spark.table_commands import column_definitions as definitions
from delta_pyds.spark.table_commands.column_definitions import IdentityGenerator, require_text
from delta_pyds.spark.table_commands.identifiers import path_if_in_name

if TYPE_CHECKING:
    from delta_pyds.catalog import Catalog


# the class of the table that ``execute`` returns: DeltaTable, whose module imports this one
T = TypeVar("T")


class DeltaTableBuilder(WithoutJvm, Generic[T]):
    """A table to create: columns, layout, properties. ``execute`` creates it.

    ``DeltaTable.create``, ``replace`` and the like begin one. Nothing is read or written before ``execute``. Each
    method changes this builder and returns it.

    >>> table = (
    ...     DeltaTable.createOrReplace(spark)
    ...     .location("/data/events")
    ...     .addColumn("id", "BIGINT", generatedAlwaysAs=IdentityGenerator())
    ...     .addColumn("at", "TIMESTAMP", nullable=False)
    ...     .addColumn("day", "DATE", generatedAlwaysAs="CAST(at AS DATE)")
    ...     .partitionedBy("day")
    ...     .property("delta.enableDeletionVectors", "true")
    ...     .execute()
    ... )
    """

    def __init__(self, spark: SparkSession, new: NewTable, opened: Callable[[OpenTable], T]) -> None:
        # use DeltaTable.create: the session is checked there
        self._spark = spark
        self._new = new
        self._opened = opened

    def tableName(self, identifier: str, *, catalog: str | Catalog | None = None) -> DeltaTableBuilder[T]:
        """Set the table's name in Spark's catalog, or in ``catalog``.

        The name is for the table at ``location``; by default the location that Spark's schema gives. A table that
        exists there gets the name if its columns are those of the builder.

        Args:
            identifier: The name; or a path, as ``delta.`/data/events```.
            catalog: The catalog that manages the table, as ``delta_pyds.load_snapshot`` takes it.

        Returns:
            This builder.

        Raises:
            TypeError: ``identifier`` is not a str.
            OptionError: ``catalog`` is neither a name nor a catalog.

        >>> DeltaTable.create(spark).tableName("sales.orders").location("/data/orders").addColumn("id", "INT").execute()
        >>> DeltaTable.create(spark).tableName("main.sales.orders", catalog="prod").addColumn("id", "BIGINT").execute()
        """
        require_text("Identifier must be str.", identifier)
        with errors_of_spark():
            if catalog is not None:
                return self._with(managed=(identifier, catalog_argument(catalog) or ""))
            path = path_if_in_name(identifier)
            return self._with(path=path, name=None if path is not None else identifier)

    def location(self, location: str) -> DeltaTableBuilder[T]:
        """Set the path of the table's directory.

        Args:
            location: The path, on any store.

        Returns:
            This builder.

        Raises:
            TypeError: ``location`` is not a str.

        >>> DeltaTable.create(spark).location("s3://lake/events")
        """
        require_text("Location must be str.", location)
        return self._with(location=location)

    def comment(self, comment: str) -> DeltaTableBuilder[T]:
        """Set the table's description.

        Args:
            comment: The description.

        Returns:
            This builder.

        Raises:
            TypeError: ``comment`` is not a str.

        >>> DeltaTable.create(spark).location("/data/events").comment("Visits by day")
        """
        require_text("Table comment must be str.", comment)
        return self._with(comment=comment)

    def addColumn(
        self,
        colName: str,
        dataType: str | spark_types.DataType,
        nullable: bool = True,
        generatedAlwaysAs: str | IdentityGenerator | None = None,
        generatedByDefaultAs: IdentityGenerator | None = None,
        comment: str | None = None,
        *,
        default: str | None = None,
    ) -> DeltaTableBuilder[T]:
        """Add a column after those that the builder has.

        Args:
            colName: The column's name.
            dataType: The type, as SQL or as PySpark's class.
            nullable: Whether values may be null.
            generatedAlwaysAs: SQL over other columns, which computes each value; or an ``IdentityGenerator``.
            generatedByDefaultAs: An ``IdentityGenerator`` for rows without a value.
            comment: The column's description.
            default: SQL of a constant, for rows without the column.

        Returns:
            This builder.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: Both generators are given, a step is 0, or ``dataType`` is not a single type.
            ParseException: ``dataType`` is not a type of Spark SQL.
            UserError: Tables do not support the type.

        Protocol: "Generated Columns", "Identity Columns", "Default Columns".

        >>> DeltaTable.create(spark).addColumn("day", "DATE", generatedAlwaysAs="CAST(at AS DATE)")
        """
        with errors_of_spark():
            made = definitions.column(
                self._spark,
                colName,
                dataType,
                nullable=nullable,
                generated_always_as=generatedAlwaysAs,
                generated_by_default_as=generatedByDefaultAs,
                comment=comment,
                default=default,
            )
        return self._with(columns=(*self._new.columns, made))

    def addColumns(self, cols: spark_types.StructType | list[spark_types.StructField]) -> DeltaTableBuilder[T]:
        """Add the columns of a schema after those that the builder has.

        Args:
            cols: A schema of PySpark, or a list of its fields.

        Returns:
            This builder.

        Raises:
            TypeError: ``cols`` is neither.

        >>> DeltaTable.create(spark).location("/data/events").addColumns(df.schema)
        """
        with errors_of_spark():
            return self._with(columns=(*self._new.columns, *definitions.columns(cols)))

    def partitionedBy(self, *cols: Any) -> DeltaTableBuilder[T]:
        """Set the partition columns.

        Args:
            *cols: Names of columns, or one list of them.

        Returns:
            This builder.

        Raises:
            TypeError: A name is not a str.

        >>> DeltaTable.create(spark).addColumn("day", "DATE").partitionedBy("day")
        """
        return self._with(partition_columns=_names("Partitioning column must be str.", cols))

    def clusterBy(self, *cols: Any) -> DeltaTableBuilder[T]:
        """Set the columns that ``optimize`` clusters rows by.

        Args:
            *cols: Names of columns, or of fields with dots; or one list of them.

        Returns:
            This builder.

        Raises:
            TypeError: A name is not a str.

        Protocol: "Clustered Table".

        >>> DeltaTable.create(spark).addColumn("city", "STRING").clusterBy("city")
        """
        return self._with(clustering_columns=_names("Clustering column must be str.", cols))

    def property(self, key: str, value: str) -> DeltaTableBuilder[T]:
        """Set a property of the table.

        Args:
            key: The name of the property, as ``delta.enableChangeDataFeed``.
            value: The value.

        Returns:
            This builder.

        Raises:
            TypeError: ``key`` or ``value`` is not a str.

        >>> DeltaTable.create(spark).property("delta.enableChangeDataFeed", "true")
        """
        if type(key) is not str or type(value) is not str:
            raise TypeError(
                "Key and value of property must be string. "
                + " ".join(f"Found {one!s:.200} with type {type(one)}" for one in (key, value))
            )
        return self._with(properties={**self._new.properties, key: value})

    def execute(self) -> T:
        """Create or replace the table, or leave an existing one, depending on the method that began the builder.

        Errors about columns, expressions, properties and names are raised before anything is written.

        Returns:
            The table, a ``DeltaTable``.

        Raises:
            UserError: The table exists or does not exist (TABLE_OR_VIEW_ALREADY_EXISTS, TABLE_OR_VIEW_NOT_FOUND), or
                its definition is invalid.
            OptionError: A property is invalid, or neither name nor location is given.
            ConflictError: A conflicting commit came first.
            CatalogError: The catalog failed.

        >>> DeltaTable.createIfNotExists(spark).location("/data/events").addColumn("id", "BIGINT").execute()
        """
        with errors_of_spark():
            return self._opened(create(self._spark, self._new))

    def _with(self, **changes: Any) -> DeltaTableBuilder[T]:
        self._new = replace(self._new, **changes)
        return self

    def __repr__(self) -> str:
        table = self._new.name or self._new.location or self._new.path or ""
        return f"DeltaTableBuilder({self._new.mode!r}, {without_secrets(table)!r})"


class CreateMethods:
    """The methods of ``DeltaTable`` that begin a new table."""

    @classmethod
    def create(
        cls: type[T], sparkSession: SparkSession | None = None, *, storage_options: Mapping[str, Any] | None = None
    ) -> DeltaTableBuilder[T]:
        """Begin a new table; ``execute`` fails if one exists.

        Args:
            sparkSession: The session; by default the active one.
            storage_options: Options of the store, as its fsspec package takes them.

        Returns:
            A builder, whose ``execute`` returns the table.

        >>> DeltaTable.create(spark).location("/data/events").addColumn("id", "BIGINT").execute()
        """
        return _builder(cls, sparkSession, "create", storage_options)

    @classmethod
    def createIfNotExists(
        cls: type[T], sparkSession: SparkSession | None = None, *, storage_options: Mapping[str, Any] | None = None
    ) -> DeltaTableBuilder[T]:
        """Begin a new table; an existing one stays as it is.

        Args:
            sparkSession: The session; by default the active one.
            storage_options: Options of the store, as its fsspec package takes them.

        Returns:
            A builder, whose ``execute`` returns the table.

        >>> DeltaTable.createIfNotExists(spark).location("/data/events").addColumn("id", "BIGINT").execute()
        """
        return _builder(cls, sparkSession, "create_if_not_exists", storage_options)

    @classmethod
    def replace(
        cls: type[T], sparkSession: SparkSession | None = None, *, storage_options: Mapping[str, Any] | None = None
    ) -> DeltaTableBuilder[T]:
        """Begin the replacement of a table, which continues its history; ``execute`` fails if none exists.

        Args:
            sparkSession: The session; by default the active one.
            storage_options: Options of the store, as its fsspec package takes them.

        Returns:
            A builder, whose ``execute`` returns the table.

        >>> DeltaTable.replace(spark).location("/data/events").addColumn("id", "BIGINT").execute()
        """
        return _builder(cls, sparkSession, "replace", storage_options)

    @classmethod
    def createOrReplace(
        cls: type[T], sparkSession: SparkSession | None = None, *, storage_options: Mapping[str, Any] | None = None
    ) -> DeltaTableBuilder[T]:
        """Begin a new table, or the replacement of an existing one, which continues its history.

        Args:
            sparkSession: The session; by default the active one.
            storage_options: Options of the store, as its fsspec package takes them.

        Returns:
            A builder, whose ``execute`` returns the table.

        >>> DeltaTable.createOrReplace(spark).location("/data/events").addColumn("id", "BIGINT").execute()
        """
        return _builder(cls, sparkSession, "create_or_replace", storage_options)

    @classmethod
    def columnBuilder(cls, sparkSession: SparkSession, colName: str) -> DeltaColumnBuilder:
        """Begin one column for ``addColumns`` of a builder.

        Args:
            sparkSession: The session, whose parser reads the type.
            colName: The column's name.

        Returns:
            A builder, whose ``build`` returns the field.

        Raises:
            TypeError: ``colName`` is not a str.

        >>> DeltaTable.columnBuilder(spark, "city").dataType("STRING").nullable(False).build()
        """
        assert sparkSession is not None
        return DeltaColumnBuilder(sparkSession, colName)


def _builder(table: Any, spark: SparkSession | None, mode: CreateMode, storage_options: Any) -> DeltaTableBuilder[Any]:
    session = spark if spark is not None else SparkSession.getActiveSession()
    assert session is not None
    return DeltaTableBuilder(session, NewTable(mode, storage_options=dict(storage_options or {})), table._of)


def _names(message: str, given: tuple[Any, ...]) -> tuple[str, ...]:
    names = tuple(given[0]) if len(given) == 1 and isinstance(given[0], (list, tuple)) else given
    for name in names:
        require_text(message, name)
    return cast("tuple[str, ...]", names)
