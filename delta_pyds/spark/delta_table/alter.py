"""The methods of ``DeltaTable`` that do what ``ALTER TABLE`` does. The reference has most of them in SQL only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import types as spark_types

from delta_pyds.commands.definition.columns import NewColumn
from delta_pyds.errors import OptionError
from delta_pyds.spark.row_changes.handle import TableHandle
from delta_pyds.spark.spark_errors import errors_of_spark
from delta_pyds.spark.table_commands import alter
from delta_pyds.spark.table_commands import argument_checks as checks
from delta_pyds.spark.table_commands import column_definitions as definitions
from delta_pyds.table.definition.schema_paths import Position, one_path


class AlterMethods:
    """``ALTER TABLE`` as methods. Column names are texts: ``address.zip``, ``items.element.price``, ``a.`b c```."""

    _handle: TableHandle

    def addColumn(
        self,
        name: str,
        dataType: str | spark_types.DataType,
        comment: str | None = None,
        *,
        first: bool = False,
        after: str | None = None,
    ) -> None:
        """Add a column or nested field, which is null in all existing rows.

        Args:
            name: The column; with dots a nested field, as ``address.country``.
            dataType: The type, as SQL or as PySpark's class.
            comment: The column's description.
            first: Whether to add it before its siblings; by default it is the last.
            after: The sibling to add it after; not together with ``first``.

        Raises:
            TypeError: ``dataType`` or ``comment`` has the wrong type.
            ValueError: Another argument has the wrong type, or ``dataType`` is not a single type.
            ParseException: ``dataType`` is not a type of Spark SQL.
            UserError: The column cannot be added (FIELD_ALREADY_EXISTS, DELTA_ADD_COLUMN_PARENT_NOT_STRUCT, ...).
            OptionError: ``first`` and ``after`` are both given.
            ConflictError: A conflicting commit came first.

        >>> table.addColumn("address.country", "STRING", comment="ISO 3166", after="zip")
        """
        checks.text(name, "name")
        with errors_of_spark():
            path = one_path(name)
            field = definitions.column(self._handle.spark, path[-1], dataType, comment=comment)
            alter.add_columns(self._handle, [NewColumn(field, path[:-1], _position(first, after))])

    def addColumns(self, cols: spark_types.StructType | list[spark_types.StructField]) -> None:
        """Add the columns of a schema after those that the table has. They are null in all existing rows.

        Args:
            cols: A schema of PySpark, or a list of its fields.

        Raises:
            TypeError: ``cols`` is neither.
            UserError: A column cannot be added (FIELD_ALREADY_EXISTS, ...).
            ConflictError: A conflicting commit came first.

        >>> table.addColumns(StructType().add("country", "string").add("zip", "integer"))
        """
        with errors_of_spark():
            alter.add_columns(self._handle, [NewColumn(field) for field in definitions.columns(cols)])

    def renameColumn(self, name: str, newName: str) -> None:
        """Rename a column or nested field of a table with column mapping. Files stay as they are.

        Args:
            name: The column; with dots a nested field.
            newName: The new name of the column or field, without its parents.

        Raises:
            ValueError: An argument is not a str.
            ColumnNotFoundError: The table does not have the column.
            UserError: The table has no column mapping (DELTA_UNSUPPORTED_RENAME_COLUMN), or the new name is taken
                (FIELD_ALREADY_EXISTS). Or a constraint or generated column depends on the column; the error names it.
            ConflictError: A conflicting commit came first.

        Protocol: "Column Mapping".

        >>> table.setProperties({"delta.columnMapping.mode": "name"})
        >>> table.renameColumn("address.zip", "postcode")
        """
        checks.text(name, "name")
        checks.text(newName, "newName")
        with errors_of_spark():
            alter.rename_column(self._handle, name, newName)

    def dropColumns(self, *names: str) -> None:
        """Drop columns or nested fields of a table with column mapping. Files stay as they are.

        Args:
            *names: The columns; with dots nested fields.

        Raises:
            ValueError: A name is not a str.
            ColumnNotFoundError: The table does not have a column.
            UserError: The table has no column mapping (DELTA_UNSUPPORTED_DROP_COLUMN), or partitioning, clustering, a
                constraint or a generated column needs a column; the error names it.
            ConflictError: A conflicting commit came first.

        Protocol: "Column Mapping".

        >>> table.dropColumns("address.zip", "visits")
        """
        for name in names:
            checks.text(name, "name")
        with errors_of_spark():
            alter.drop_columns(self._handle, names)

    def replaceColumns(self, cols: spark_types.StructType | list[spark_types.StructField]) -> None:
        """Replace the columns of the table, in this order. Columns with an existing name keep their values.

        Args:
            cols: A schema of PySpark, or a list of its fields.

        Raises:
            TypeError: ``cols`` is neither.
            UserError: A column has another type, or columns are left out without column mapping or together with new
                ones (DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP).
            ConflictError: A conflicting commit came first.

        >>> table.replaceColumns(StructType().add("city", "string").add("id", "long"))
        """
        with errors_of_spark():
            alter.replace_columns(self._handle, definitions.columns(cols))

    def moveColumn(self, name: str, *, first: bool = False, after: str | None = None) -> None:
        """Move a column among the columns, or a field among its siblings. Give ``first`` or ``after``.

        Args:
            name: The column; with dots a nested field.
            first: Whether to move it before its siblings.
            after: The sibling to move it after.

        Raises:
            ValueError: An argument has the wrong type.
            ColumnNotFoundError: The table does not have the column.
            OptionError: Neither or both of ``first`` and ``after`` are given.
            ConflictError: A conflicting commit came first.

        >>> table.moveColumn("id", first=True)
        """
        self.alterColumn(name, first=first, after=after)

    def alterColumn(
        self,
        name: str,
        *,
        dataType: str | spark_types.DataType | None = None,
        comment: str | None = None,
        nullable: bool | None = None,
        default: str | None = None,
        dropDefault: bool = False,
        first: bool = False,
        after: str | None = None,
    ) -> None:
        """Change type, comment, nullability, default or position of a column or nested field.

        None leaves a part as it is.

        Args:
            name: The column; with dots a nested field.
            dataType: A wider type, on a table with ``delta.enableTypeWidening``.
            comment: The column's description.
            nullable: False: no existing or future row may have a null there. True: nulls are allowed.
            default: SQL of a constant, for future rows that lack the column.
            dropDefault: Whether to remove the default.
            first: Whether to move it before its siblings.
            after: The sibling to move it after; not together with ``first``.

        Raises:
            TypeError: ``dataType`` has the wrong type.
            ValueError: Another argument has the wrong type.
            OptionError: No change is given, or ``first`` and ``after`` are both given.
            ColumnNotFoundError: The table does not have the column.
            UserError: The change is not allowed; the error names the reason.
            ConstraintViolationError: A row has a null (DELTA_NEW_NOT_NULL_VIOLATION).
            ConflictError: A conflicting commit came first.

        Protocol: "Type Widening", "Default Columns".

        >>> table.alterColumn("visits", dataType="BIGINT", comment="since 2020")
        >>> table.alterColumn("city", nullable=False, default="'Bern'")
        """
        with errors_of_spark():
            checks.text(name, "name")
            change = definitions.column_change(
                self._handle.spark,
                name,
                data_type=dataType,
                comment=comment,
                nullable=nullable,
                default=default,
                drop_default=dropDefault,
                position=_position(first, after),
            )
            alter.alter_columns(self._handle, [change])

    def syncIdentity(self, name: str) -> None:
        """Let an identity column continue after all values of the table, including those that users gave.

        The high-water mark never moves back, not even with the reference's setting
        ``identityColumn.allowSyncIdentityToLowerHighWaterMark``.

        Args:
            name: The column.

        Raises:
            ValueError: ``name`` is not a str.
            UserError: The column is not an identity column (DELTA_IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN).
            ExpressionError: BIGINT has no value left (ARITHMETIC_OVERFLOW).
            ConflictError: A conflicting commit came first.

        Protocol: "Identity Columns".

        >>> table.syncIdentity("id")  # ALTER TABLE ... ALTER COLUMN id SYNC IDENTITY
        """
        checks.text(name, "name")
        with errors_of_spark():
            alter.sync_identity(self._handle, name)

    def addConstraint(self, name: str, condition: str) -> None:
        """Add a CHECK constraint, for all existing and future rows.

        Args:
            name: The name of the constraint.
            condition: SQL over the columns of a row.

        Raises:
            ValueError: An argument is not a str.
            UserError: The name is taken (DELTA_CONSTRAINT_ALREADY_EXISTS), or the condition is not boolean
                (DELTA_NON_BOOLEAN_CHECK_CONSTRAINT).
            ConstraintViolationError: Rows violate it (DELTA_NEW_CHECK_CONSTRAINT_VIOLATION); the error counts them.
            ConflictError: A conflicting commit came first.

        Protocol: "CHECK Constraints".

        >>> table.addConstraint("positive", "amount > 0")
        """
        checks.text(name, "name")
        checks.text(condition, "condition")
        with errors_of_spark():
            alter.add_constraint(self._handle, name, condition)

    def dropConstraint(self, name: str, *, ifExists: bool = False) -> None:
        """Drop a CHECK constraint.

        Args:
            name: The name of the constraint.
            ifExists: Whether a missing constraint is allowed.

        Raises:
            ValueError: An argument has the wrong type.
            UserError: The constraint does not exist (DELTA_CONSTRAINT_DOES_NOT_EXIST).
            ConflictError: A conflicting commit came first.

        Protocol: "CHECK Constraints".

        >>> table.dropConstraint("positive", ifExists=True)
        """
        checks.text(name, "name")
        checks.flag(ifExists, "ifExists")
        with errors_of_spark():
            alter.drop_constraint(self._handle, name, if_exists=ifExists)

    def setProperties(self, properties: Mapping[str, str]) -> None:
        """Set properties of the table; ``comment`` is the table's description.

        Some properties change files first: ``delta.enableRowTracking`` gives row ids to the existing files, and
        ``delta.columnMapping.mode=none`` rewrites all of them.

        Args:
            properties: Names to values, both texts.

        Raises:
            ValueError: ``properties`` is not a dict of texts.
            OptionError: No table can have such a property.
            UserError: This table cannot have such a property.
            ConflictError: A conflicting commit came first.

        Protocol: "Change Metadata".

        >>> table.setProperties({"delta.enableChangeDataFeed": "true", "delta.columnMapping.mode": "name"})
        """
        given = checks.properties(properties)
        with errors_of_spark():
            alter.set_properties(self._handle, given)

    def unsetProperties(self, *keys: str, ifExists: bool = False) -> None:
        """Unset properties, as if they had never been set.

        Args:
            *keys: The names of the properties.
            ifExists: Whether a missing property is allowed.

        Raises:
            ValueError: An argument has the wrong type.
            OptionError: The table does not have such a property (DELTA_UNSET_NON_EXISTENT_PROPERTY).
            ConflictError: A conflicting commit came first.

        >>> table.unsetProperties("delta.logRetentionDuration", "owner")
        """
        for key in keys:
            checks.text(key, "key")
        checks.flag(ifExists, "ifExists")
        with errors_of_spark():
            alter.unset_properties(self._handle, keys, if_exists=ifExists)

    def upgradeTableProtocol(self, readerVersion: int, writerVersion: int) -> None:
        """Add all features of the given versions to the protocol. A protocol is never lowered.

        Versions 3 and 7 include no feature by themselves: ``addFeatureSupport`` adds one by its name.

        Args:
            readerVersion: The reader version, 1 to 3.
            writerVersion: The writer version, 1 to 7.

        Raises:
            ValueError: An argument is not an int.
            OptionError: The version does not exist.
            ConflictError: A conflicting commit came first.

        Protocol: "Protocol Evolution".

        >>> table.upgradeTableProtocol(2, 5)  # column mapping, and all earlier features
        """
        checks.whole_number(readerVersion, "readerVersion")
        checks.whole_number(writerVersion, "writerVersion")
        self.setProperties({"delta.minReaderVersion": str(readerVersion), "delta.minWriterVersion": str(writerVersion)})

    def addFeatureSupport(self, featureName: str) -> None:
        """Add a feature to the protocol, and the features that it needs.

        Args:
            featureName: The feature, as the protocol names it.

        Raises:
            ValueError: ``featureName`` is not a str.
            OptionError: delta_pyds does not write the feature (DELTA_UNSUPPORTED_FEATURES_IN_CONFIG).
            ConflictError: A conflicting commit came first.

        Protocol: "Table Features".

        >>> table.addFeatureSupport("timestampNtz")
        """
        checks.text(featureName, "featureName")
        self.setProperties({f"delta.feature.{featureName}": "supported"})

    def dropFeatureSupport(self, featureName: str, truncateHistory: bool | None = None) -> None:
        """Drop a feature from the protocol, after removing its artifacts from the table. No row changes.

        Files with deletion vectors, mapped names or narrower types are rewritten; row ids and properties are removed.
        The table's history still has a feature that readers must support. By default the history is protected: the
        protocol gets ``checkpointProtection``, and only engines that support the feature can open versions before this
        one. With ``truncateHistory`` those versions are deleted instead. The first call removes the artifacts and is
        refused (``DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD``). A call 24 hours later
        (``delta.dropFeatureTruncateHistory.retentionDuration``) truncates the history and drops the feature.

        Features that can be dropped: ``checkConstraints`` (without constraints), ``checkpointProtection`` (with
        ``truncateHistory``), ``columnMapping``, ``deletionVectors``, ``domainMetadata``, ``inCommitTimestamp``,
        ``materializePartitionColumns``, ``rowTracking``, ``typeWidening``, ``v2Checkpoint``, ``vacuumProtocolCheck``.

        Args:
            featureName: The feature, as the protocol names it.
            truncateHistory: Whether to delete the versions that have the feature. None means False.

        Raises:
            ValueError: An argument has the wrong type.
            UserError: The feature cannot be dropped (DELTA_FEATURE_DROP_...); the error names the reason.
            ConflictError: Other writers still use the feature.

        Protocol: "Table Features".

        >>> table.dropFeatureSupport("deletionVectors")
        """
        checks.text(featureName, "featureName")
        if truncateHistory is not None:
            checks.flag(truncateHistory, "truncateHistory")
        with errors_of_spark():
            alter.drop_feature(self._handle, featureName, truncate_history=bool(truncateHistory))


def _position(first: Any, after: Any) -> Position | None:
    checks.flag(first, "first")
    if after is not None:
        checks.text(after, "after")
    if first and after is not None:
        raise OptionError("first and after are both given: give first or after, not both.", option="after")
    if after is not None:
        return Position(one_path(after)[-1])
    return Position() if first else None
