"""The builders of tables: ``DeltaTable.create`` and its sisters.

Invariant: nothing is looked at or written before ``execute``; arguments are checked when they are given.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from delta_pyds.catalog.address import TableAddress, locate, locate_or_reserve
from delta_pyds.commands.definition.create import CreateMode, CreateRequest, create_table, existing_table
from delta_pyds.errors import OptionError, UserError
from delta_pyds.protocol.properties import CONSTRAINT_PREFIX
from delta_pyds.protocol.schema import CURRENT_DEFAULT, StructField, StructType
from delta_pyds.redaction import without_secrets
from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.arguments import catalog_argument
from delta_pyds.spark.catalog_names.locations import (
    Place,
    is_same_table,
    no_table_to_replace,
    place_of,
    refuse_existing,
    settle,
)
from delta_pyds.spark.delta_table import column_definitions as definitions
from delta_pyds.spark.delta_table.column_definitions import IdentityGenerator
from delta_pyds.spark.delta_table.expression_checks import check_condition, check_default, check_generated
from delta_pyds.spark.delta_table.identifiers import path_if_in_name
from delta_pyds.spark.delta_table.private_hooks import WithoutJvm
from delta_pyds.spark.delta_table.settings import default_properties, user_metadata
from delta_pyds.spark.registration import register
from delta_pyds.spark.spark_errors import errors_of_spark
from delta_pyds.storage.table_path import absolute_table_path
from delta_pyds.table.definition.schema_paths import one_path
from delta_pyds.table.definition.schema_rules import check_duplicates

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql import types as spark_types

    from delta_pyds.catalog import Catalog


# of the table that a builder gives: DeltaTable, whose module imports this one
T = TypeVar("T")


class DeltaTableBuilder(WithoutJvm, Generic[T]):
    """A table that shall be: columns, layout, properties; ``execute`` makes it. Each method returns the builder.

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

    def __init__(
        self,
        spark: SparkSession,
        mode: CreateMode,
        open_table: Callable[..., T],
        open_named: Callable[..., T],
        storage_options: Any,
    ) -> None:
        # use DeltaTable.create: the session is checked there
        self._spark = spark
        self._mode = mode
        self._open_table = open_table
        self._open_named = open_named
        self._storage_options: Mapping[str, Any] = dict(storage_options or {})
        self._path: str | None = None
        self._named: tuple[str, str] | None = None
        self._name: str | None = None
        self._location: str | None = None
        self._columns: list[StructField] = []
        self._partitions: tuple[str, ...] = ()
        self._clustering: tuple[str, ...] = ()
        self._properties: dict[str, str] = {}
        self._comment: str | None = None

    def tableName(self, identifier: str, *, catalog: str | Catalog | None = None) -> DeltaTableBuilder[T]:
        """The name that the table has or shall have in Spark's catalog, or with ``catalog`` there.

        It is given to the table at ``location``, or where Spark's schema puts tables. A table that is there already is
        given the name where its columns are those of the builder. ``delta.`/data/events``` is a path.

        >>> DeltaTable.create(spark).tableName("sales.orders").location("/data/orders").addColumn("id", "INT").execute()
        >>> DeltaTable.create(spark).tableName("main.sales.orders", catalog="prod").addColumn("id", "BIGINT").execute()

        Raises: TypeError.
        """
        _require_text("Identifier must be str.", identifier)
        with errors_of_spark():
            if catalog is None:
                self._path = path_if_in_name(identifier)
                self._name = None if self._path is not None else identifier
            else:
                self._named = identifier, catalog_argument(catalog) or ""
        return self

    def location(self, location: str) -> DeltaTableBuilder[T]:
        """The path of the table's directory, on any store."""
        _require_text("Location must be str.", location)
        self._location = location
        return self

    def comment(self, comment: str) -> DeltaTableBuilder[T]:
        """What the table is, in words."""
        _require_text("Table comment must be str.", comment)
        self._comment = comment
        return self

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
        """One column more.

        ``generatedAlwaysAs``: SQL over other columns, or an IdentityGenerator; ``generatedByDefaultAs``: an
        IdentityGenerator whose values rows may bring themselves. ``default``: SQL of a constant, for rows that do not
        bring the column.

        Raises: TypeError and ValueError for arguments that are none; Spark's ParseException for a type that is none.
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
        self._columns.append(made)
        return self

    def addColumns(self, cols: spark_types.StructType | list[spark_types.StructField]) -> DeltaTableBuilder[T]:
        """The columns of a schema."""
        with errors_of_spark():
            self._columns += definitions.columns(cols)
        return self

    def partitionedBy(self, *cols: Any) -> DeltaTableBuilder[T]:
        """The columns whose values files are put together by: names, or one list of them."""
        self._partitions = _names("Partitioning column must be str.", cols)
        return self

    def clusterBy(self, *cols: Any) -> DeltaTableBuilder[T]:
        """The columns, or fields of structs with dots, that ``optimize`` clusters rows by."""
        self._clustering = _names("Clustering column must be str.", cols)
        return self

    def property(self, key: str, value: str) -> DeltaTableBuilder[T]:
        """A property of the table."""
        if type(key) is not str or type(value) is not str:
            raise TypeError(
                "Key and value of property must be string. "
                + " ".join(f"Found {one!s:.200} with type {type(one)}" for one in (key, value))
            )
        self._properties[key] = value
        return self

    def execute(self) -> T:
        """Make the table, or leave one that is there, as the builder says.

        Raises: UserError (TABLE_OR_VIEW_ALREADY_EXISTS, TABLE_OR_VIEW_NOT_FOUND) and what is wrong with
            columns, expressions and properties, before anything is written; a ConflictError where another commit was
            first.
        """
        with errors_of_spark():
            if self._name is not None:
                return self._execute_by_name(self._name)
            request = self._request()
            there = existing_table(request)
            if there is None or request.mode != "create_if_not_exists":
                self._check_expressions(request.columns)
            try:
                create_table(request)
            except UserError as error:
                if self._named is None or self._mode == "create" or error.code != "TABLE_OR_VIEW_ALREADY_EXISTS":
                    raise
                # another writer has given the name to a table since it was looked for: the mode says what of that
                create_table(self._request())
            return self._open_table(self._spark, request.table_root, storage_options=self._address().storage_options)

    def _execute_by_name(self, name: str) -> T:
        register(self._spark)
        place = place_of(self._spark, name, self._location, stays=self._mode == "create_if_not_exists")
        if place.table is not None:
            refuse_existing(self._mode, name)
        elif self._mode == "replace":
            raise no_table_to_replace(name)
        if place.table is None or self._mode != "create_if_not_exists":
            at_place = copy.copy(self)
            at_place._name, at_place._location = None, place.location
            if place.table is not None or not self._is_there(place):
                at_place.execute()
            settle(self._spark, place, self._storage_options)
        return self._open_named(self._spark, name, {"storage_options": self._storage_options})

    def _is_there(self, place: Place) -> bool:
        """Whether the table that shall get the name is at its location already. Raises: UserError for another one."""
        if self._mode == "create_or_replace":
            return False
        root = absolute_table_path(place.location, remote=is_remote(self._spark))
        clustering = tuple(map(one_path, self._clustering))
        columns = StructType(tuple(self._columns))
        return is_same_table(root, self._storage_options, columns, self._partitions, clustering, self._properties)

    def __repr__(self) -> str:
        place = self._name or self._location or self._path or ""
        return f"DeltaTableBuilder({self._mode!r}, {without_secrets(place)!r})"

    def _address(self) -> TableAddress:
        """Where the table is, or shall be."""
        if self._named is not None:
            if self._path is not None or self._location is not None:
                raise UserError(
                    f"the table {self._named[0]} lies where its catalog puts it: leave the location out.",
                    code="DELTA_CREATE_TABLE_IDENTIFIER_LOCATION_MISMATCH",
                )
            find = locate if self._mode == "replace" else locate_or_reserve
            return find(table=self._named[0], catalog=self._named[1], storage_options=self._storage_options)
        given = self._location if self._location is not None else self._path
        if given is None:
            raise OptionError(
                "the table has no place: call location('/data/events'), or tableName('delta.`/data/events`').",
                code="DELTA_CREATE_TABLE_MISSING_TABLE_NAME_OR_LOCATION",
                option="location",
            )
        if self._path is not None and self._location is not None and self._path != self._location:
            raise UserError(
                f"the name says that the table is at '{self._path}', and the location '{self._location}'. Give one.",
                code="DELTA_CREATE_TABLE_IDENTIFIER_LOCATION_MISMATCH",
            )
        return TableAddress(absolute_table_path(given, remote=is_remote(self._spark)), self._storage_options)

    def _request(self) -> CreateRequest:
        address = self._address()
        return CreateRequest(
            address.table_root,
            self._mode,
            StructType(tuple(self._columns)),
            self._partitions,
            self._clustering,
            {**default_properties(self._spark, self._properties), **self._properties},
            self._comment,
            user_metadata(self._spark),
            address.storage_options,
        )

    def _check_expressions(self, columns: StructType) -> None:
        check_duplicates(columns, "METADATA_UPDATE")
        check_generated(self._spark, columns)
        for f in columns:
            if CURRENT_DEFAULT in f.metadata:
                check_default(self._spark, f)
        for key, text in self._properties.items():
            if key.lower().startswith(CONSTRAINT_PREFIX):
                check_condition(self._spark, columns, key[len(CONSTRAINT_PREFIX) :], text)


class DeltaColumnBuilder:
    """One column, said step by step, as the reference's Scala has it; ``build`` gives a field for ``addColumns``.

    >>> DeltaTable.columnBuilder(spark, "day").dataType("DATE").generatedAlwaysAs("CAST(at AS DATE)").build()
    """

    def __init__(self, spark: SparkSession, name: str) -> None:
        _require_text("Column name must be str.", name)
        self._spark = spark
        self._name = name
        self._said: dict[str, Any] = {}
        self._type: Any = None

    def dataType(self, dataType: str | spark_types.DataType) -> DeltaColumnBuilder:
        """The type, as SQL or as PySpark has it."""
        self._type = dataType
        return self

    def nullable(self, nullable: bool) -> DeltaColumnBuilder:
        """Whether values may be null."""
        self._said["nullable"] = nullable
        return self

    def generatedAlwaysAs(self, expr: str) -> DeltaColumnBuilder:
        """SQL over other columns, which gives each value."""
        _require_text("Generated always as expression must be str.", expr)
        self._said["generated_always_as"] = expr
        return self

    def generatedAlwaysAsIdentity(self, start: int = 1, step: int = 1) -> DeltaColumnBuilder:
        """Numbers that the table gives, and rows never bring."""
        self._said["generated_always_as"] = IdentityGenerator(start, step)
        return self

    def generatedByDefaultAsIdentity(self, start: int = 1, step: int = 1) -> DeltaColumnBuilder:
        """Numbers that the table gives to rows that bring none."""
        self._said["generated_by_default_as"] = IdentityGenerator(start, step)
        return self

    def default(self, expr: str) -> DeltaColumnBuilder:
        """SQL of a constant, for rows that do not bring the column."""
        self._said["default"] = expr
        return self

    def comment(self, comment: str) -> DeltaColumnBuilder:
        """What the column is, in words."""
        self._said["comment"] = comment
        return self

    def build(self) -> spark_types.StructField:
        """The field. Raises: as ``DeltaTableBuilder.addColumn``."""
        with errors_of_spark():
            made = definitions.column(self._spark, self._name, self._type, **self._said)
            return definitions.for_pyspark(made)


class CreateMethods:
    """How a ``DeltaTable`` begins."""

    @classmethod
    def create(
        cls: type[T], sparkSession: SparkSession | None = None, *, storage_options: Mapping[str, Any] | None = None
    ) -> DeltaTableBuilder[T]:
        """A new table; an error where there is one.

        >>> DeltaTable.create(spark).location("/data/events").addColumn("id", "BIGINT").execute()
        """
        return _builder(cls, sparkSession, "create", storage_options)

    @classmethod
    def createIfNotExists(
        cls: type[T], sparkSession: SparkSession | None = None, *, storage_options: Mapping[str, Any] | None = None
    ) -> DeltaTableBuilder[T]:
        """A new table, where there is none; else the one that is there, as it is."""
        return _builder(cls, sparkSession, "create_if_not_exists", storage_options)

    @classmethod
    def replace(
        cls: type[T], sparkSession: SparkSession | None = None, *, storage_options: Mapping[str, Any] | None = None
    ) -> DeltaTableBuilder[T]:
        """Another table in the place of one, whose history it goes on; an error where there is none."""
        return _builder(cls, sparkSession, "replace", storage_options)

    @classmethod
    def createOrReplace(
        cls: type[T], sparkSession: SparkSession | None = None, *, storage_options: Mapping[str, Any] | None = None
    ) -> DeltaTableBuilder[T]:
        """A new table, or another one in the place of one."""
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
    return DeltaTableBuilder(session, mode, table.forPath, table._named, storage_options)


def _require_text(message: str, value: Any) -> None:
    if type(value) is not str:
        raise TypeError(f"{message} Found {value!s:.200} with type {type(value)}")


def _names(message: str, given: tuple[Any, ...]) -> tuple[str, ...]:
    names = tuple(given[0]) if len(given) == 1 and isinstance(given[0], (list, tuple)) else given
    for name in names:
        _require_text(message, name)
    return cast("tuple[str, ...]", names)
