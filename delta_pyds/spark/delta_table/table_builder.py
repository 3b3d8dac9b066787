"""The builders of tables: ``DeltaTable.create`` and its sisters.

Invariant: nothing is read or written before ``execute``. Arguments are checked when they are given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from delta_pyds.commands.definition.create import CreateMode
from delta_pyds.redaction import without_secrets
from delta_pyds.spark.arguments import catalog_argument
from delta_pyds.spark.catalog_names.creation import NewTable, create
from delta_pyds.spark.catalog_names.opening import OpenTable
from delta_pyds.spark.delta_table.private_hooks import WithoutJvm
from delta_pyds.spark.spark_errors import errors_of_spark
from delta_pyds.spark.table_commands import column_definitions as definitions
from delta_pyds.spark.table_commands.column_definitions import IdentityGenerator
from delta_pyds.spark.table_commands.identifiers import path_if_in_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql import types as spark_types

    from delta_pyds.catalog import Catalog


# of the table that a builder gives: DeltaTable, whose module imports this one
T = TypeVar("T")


class DeltaTableBuilder(WithoutJvm, Generic[T]):
    """A table to create: columns, layout, properties. ``execute`` creates it. Each method returns the builder.

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
        """The table's name in Spark's catalog, or with ``catalog`` in that one.

        The table at ``location``, or where Spark's schema puts tables, gets the name. An existing table gets it if its
        columns are those of the builder. ``delta.`/data/events``` is a path.

        >>> DeltaTable.create(spark).tableName("sales.orders").location("/data/orders").addColumn("id", "INT").execute()
        >>> DeltaTable.create(spark).tableName("main.sales.orders", catalog="prod").addColumn("id", "BIGINT").execute()

        Raises: TypeError.
        """
        _require_text("Identifier must be str.", identifier)
        with errors_of_spark():
            if catalog is not None:
                return self._with(managed=(identifier, catalog_argument(catalog) or ""))
            path = path_if_in_name(identifier)
            return self._with(path=path, name=None if path is not None else identifier)

    def location(self, location: str) -> DeltaTableBuilder[T]:
        """The path of the table's directory, on any store."""
        _require_text("Location must be str.", location)
        return self._with(location=location)

    def comment(self, comment: str) -> DeltaTableBuilder[T]:
        """The table's description."""
        _require_text("Table comment must be str.", comment)
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
        """Add a column.

        ``generatedAlwaysAs``: SQL over other columns, or an IdentityGenerator. ``generatedByDefaultAs``: an
        IdentityGenerator whose values rows may bring themselves. ``default``: SQL of a constant, for rows without the
        column.

        Raises: TypeError and ValueError for invalid arguments; Spark's ParseException for an invalid type.
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
        """Add the columns of a schema."""
        with errors_of_spark():
            return self._with(columns=(*self._new.columns, *definitions.columns(cols)))

    def partitionedBy(self, *cols: Any) -> DeltaTableBuilder[T]:
        """The partition columns: names, or one list of them."""
        return self._with(partition_columns=_names("Partitioning column must be str.", cols))

    def clusterBy(self, *cols: Any) -> DeltaTableBuilder[T]:
        """The columns, or fields of structs with dots, that ``optimize`` clusters rows by."""
        return self._with(clustering_columns=_names("Clustering column must be str.", cols))

    def property(self, key: str, value: str) -> DeltaTableBuilder[T]:
        """Set a property of the table."""
        if type(key) is not str or type(value) is not str:
            raise TypeError(
                "Key and value of property must be string. "
                + " ".join(f"Found {one!s:.200} with type {type(one)}" for one in (key, value))
            )
        return self._with(properties={**self._new.properties, key: value})

    def execute(self) -> T:
        """Create the table, or leave an existing one, as the builder says.

        Raises: UserError (TABLE_OR_VIEW_ALREADY_EXISTS, TABLE_OR_VIEW_NOT_FOUND), and errors about columns,
            expressions and properties, before anything is written; a ConflictError if another commit was first.
        """
        with errors_of_spark():
            return self._opened(create(self._spark, self._new))

    def _with(self, **changes: Any) -> DeltaTableBuilder[T]:
        self._new = replace(self._new, **changes)
        return self

    def __repr__(self) -> str:
        place = self._new.name or self._new.location or self._new.path or ""
        return f"DeltaTableBuilder({self._new.mode!r}, {without_secrets(place)!r})"


class DeltaColumnBuilder:
    """One column, described step by step, as in the reference's Scala. ``build`` gives a field for ``addColumns``.

    >>> DeltaTable.columnBuilder(spark, "day").dataType("DATE").generatedAlwaysAs("CAST(at AS DATE)").build()
    """

    def __init__(self, spark: SparkSession, name: str) -> None:
        _require_text("Column name must be str.", name)
        self._spark = spark
        self._name = name
        self._said: dict[str, Any] = {}
        self._type: Any = None

    def dataType(self, dataType: str | spark_types.DataType) -> DeltaColumnBuilder:
        """The type, as SQL or as PySpark's class."""
        self._type = dataType
        return self

    def nullable(self, nullable: bool) -> DeltaColumnBuilder:
        """Whether values may be null."""
        self._said["nullable"] = nullable
        return self

    def generatedAlwaysAs(self, expr: str) -> DeltaColumnBuilder:
        """SQL over other columns, which computes each value."""
        _require_text("Generated always as expression must be str.", expr)
        self._said["generated_always_as"] = expr
        return self

    def generatedAlwaysAsIdentity(self, start: int = 1, step: int = 1) -> DeltaColumnBuilder:
        """Numbers that the table assigns, and that rows never bring."""
        self._said["generated_always_as"] = IdentityGenerator(start, step)
        return self

    def generatedByDefaultAsIdentity(self, start: int = 1, step: int = 1) -> DeltaColumnBuilder:
        """Numbers that the table assigns to rows without one."""
        self._said["generated_by_default_as"] = IdentityGenerator(start, step)
        return self

    def default(self, expr: str) -> DeltaColumnBuilder:
        """SQL of a constant, for rows without the column."""
        self._said["default"] = expr
        return self

    def comment(self, comment: str) -> DeltaColumnBuilder:
        """The column's description."""
        self._said["comment"] = comment
        return self

    def build(self) -> spark_types.StructField:
        """The field. Raises: as ``DeltaTableBuilder.addColumn``."""
        with errors_of_spark():
            made = definitions.column(self._spark, self._name, self._type, **self._said)
            return definitions.for_pyspark(made)


class CreateMethods:
    """The methods of ``DeltaTable`` that begin a new table."""

    @classmethod
    def create(
        cls: type[T], sparkSession: SparkSession | None = None, *, storage_options: Mapping[str, Any] | None = None
    ) -> DeltaTableBuilder[T]:
        """Create a table; an error if one exists.

        >>> DeltaTable.create(spark).location("/data/events").addColumn("id", "BIGINT").execute()
        """
        return _builder(cls, sparkSession, "create", storage_options)

    @classmethod
    def createIfNotExists(
        cls: type[T], sparkSession: SparkSession | None = None, *, storage_options: Mapping[str, Any] | None = None
    ) -> DeltaTableBuilder[T]:
        """Create a table; an existing one stays as it is."""
        return _builder(cls, sparkSession, "create_if_not_exists", storage_options)

    @classmethod
    def replace(
        cls: type[T], sparkSession: SparkSession | None = None, *, storage_options: Mapping[str, Any] | None = None
    ) -> DeltaTableBuilder[T]:
        """Replace a table and continue its history; an error if none exists."""
        return _builder(cls, sparkSession, "replace", storage_options)

    @classmethod
    def createOrReplace(
        cls: type[T], sparkSession: SparkSession | None = None, *, storage_options: Mapping[str, Any] | None = None
    ) -> DeltaTableBuilder[T]:
        """Create a table, or replace an existing one."""
        return _builder(cls, sparkSession, "create_or_replace", storage_options)

    @classmethod
    def columnBuilder(cls, sparkSession: SparkSession, colName: str) -> DeltaColumnBuilder:
        """One column for ``addColumns`` of a builder."""
        assert sparkSession is not None
        return DeltaColumnBuilder(sparkSession, colName)


def _builder(table: Any, spark: SparkSession | None, mode: CreateMode, storage_options: Any) -> DeltaTableBuilder[Any]:
    from pyspark.sql import SparkSession as Session

    session = spark if spark is not None else Session.getActiveSession()
    assert session is not None
    return DeltaTableBuilder(session, NewTable(mode, storage_options=dict(storage_options or {})), table._of)


def _require_text(message: str, value: Any) -> None:
    if type(value) is not str:
        raise TypeError(f"{message} Found {value!s:.200} with type {type(value)}")


def _names(message: str, given: tuple[Any, ...]) -> tuple[str, ...]:
    names = tuple(given[0]) if len(given) == 1 and isinstance(given[0], (list, tuple)) else given
    for name in names:
        _require_text(message, name)
    return cast("tuple[str, ...]", names)
