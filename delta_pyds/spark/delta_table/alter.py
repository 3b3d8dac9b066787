"""What a table is, changed: columns, constraints, properties. The reference has most of it in SQL only.

Invariant: one call is one version of the table, but where a property needs the files to be made ready first; after an
error the table is as before, or as one of those steps left it, which changes no row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from delta_pyds.commands.definition import columns as column_changes
from delta_pyds.commands.definition import constraints
from delta_pyds.commands.definition import properties as property_changes
from delta_pyds.commands.definition.alter_column import alter_columns
from delta_pyds.commands.definition.change import DefinitionChange, DefinitionOptions, run_change
from delta_pyds.commands.definition.drop_feature import drop_feature
from delta_pyds.commands.definition.feature_traces import Dropping
from delta_pyds.commands.definition.replace_columns import replace_columns
from delta_pyds.commands.definition.row_tracking import backfill
from delta_pyds.commands.definition.sync_identity import sync_identity
from delta_pyds.commands.definition.unmapping import remove_mapping
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.errors import ConstraintViolationError, OptionError
from delta_pyds.protocol.schema import StructField, StructType
from delta_pyds.spark.delta_table import column_definitions as definitions
from delta_pyds.spark.delta_table.column_changes import AlteredColumn, position
from delta_pyds.spark.delta_table.expression_checks import check_condition, check_default
from delta_pyds.spark.delta_table.settings import for_one_command
from delta_pyds.spark.row_changes.handle import TableHandle
from delta_pyds.spark.row_changes.place import place_of_known
from delta_pyds.spark.session import read
from delta_pyds.spark.spark_errors import errors_of_spark
from delta_pyds.spark.table_commands import argument_checks as checks
from delta_pyds.spark.task_runner import SparkRunner
from delta_pyds.table.definition.schema_paths import Path, field_at, one_path, spelled_path
from delta_pyds.table.definition.statistics_columns import show_path
from delta_pyds.table.snapshot import Snapshot

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql import types as spark_types


class AlterMethods:
    """``ALTER TABLE`` as methods. Names of columns are texts: ``address.zip``, ``items.element.price``, ``a.`b c```."""

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
        """One column or nested field more, null in all rows that are there.

        >>> table.addColumn("address.country", "STRING", comment="ISO 3166", after="zip")

        Raises: UserError (FIELD_ALREADY_EXISTS, DELTA_ADD_COLUMN_PARENT_NOT_STRUCT, ...).
        """
        checks.text(name, "name")
        with errors_of_spark():
            path = one_path(name)
            field = definitions.column(self._handle.spark, path[-1], dataType, comment=comment)
            new = column_changes.NewColumn(field, path[:-1], position(first, after))
            self._change(lambda snapshot: column_changes.add_columns(snapshot, [new]))

    def addColumns(self, cols: spark_types.StructType | list[spark_types.StructField]) -> None:
        """The columns of a schema, behind those that the table has, null in all rows that are there.

        >>> table.addColumns(StructType().add("country", "string").add("zip", "integer"))
        """
        with errors_of_spark():
            new = [column_changes.NewColumn(field) for field in definitions.columns(cols)]
            self._change(lambda snapshot: column_changes.add_columns(snapshot, new))

    def renameColumn(self, name: str, newName: str) -> None:
        """Another name for a column or nested field, on a table with column mapping.

        >>> table.setProperties({"delta.columnMapping.mode": "name"})
        >>> table.renameColumn("address.zip", "postcode")

        Raises: UserError (DELTA_UNSUPPORTED_RENAME_COLUMN without column mapping; FIELD_ALREADY_EXISTS; naming
            the constraint or generated column that depends on it).
        """
        checks.text(name, "name")
        checks.text(newName, "newName")
        with errors_of_spark():
            self._change(lambda snapshot: column_changes.rename_column(snapshot, one_path(name), newName))

    def dropColumns(self, *names: str) -> None:
        """The table without columns or nested fields, on a table with column mapping. Files stay as they are.

        >>> table.dropColumns("address.zip", "visits")

        Raises: UserError (DELTA_UNSUPPORTED_DROP_COLUMN without column mapping; naming the partitioning, clustering,
            constraint or generated column that needs it).
        """
        for name in names:
            checks.text(name, "name")
        with errors_of_spark():
            if not names:
                raise OptionError("no column is named to drop.", option="names")
            self._change(lambda snapshot: column_changes.drop_columns(snapshot, [one_path(name) for name in names]))

    def replaceColumns(self, cols: spark_types.StructType | list[spark_types.StructField]) -> None:
        """The columns that the table is to have, in their order. Those of a name that it has keep their rows.

        >>> table.replaceColumns(StructType().add("city", "string").add("id", "long"))

        Raises: UserError (DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP) for another type of a column, for columns that
            are left out without column mapping or beside new ones.
        """
        with errors_of_spark():
            wanted = definitions.columns(cols)
            self._change(lambda snapshot: replace_columns(snapshot, wanted))

    def moveColumn(self, name: str, *, first: bool = False, after: str | None = None) -> None:
        """Another place for a column among the columns, or for a field among those beside it.

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
        """Another type, comment, nullability, default or place for a column or nested field.

        ``dataType``: a wider one, on a table with ``delta.enableTypeWidening``. ``nullable=False``: no row may have a
        null there, nor ever will. ``default``: SQL of a constant, for rows to come that do not bring the column.

        >>> table.alterColumn("visits", dataType="BIGINT", comment="since 2020")
        >>> table.alterColumn("city", nullable=False, default="'Bern'")

        Raises: UserError naming what forbids it; ConstraintViolationError (DELTA_NOT_NULL_CONSTRAINT_VIOLATED).
        """
        given = AlteredColumn(name, dataType, comment, nullable, default, dropDefault, first, after)
        with errors_of_spark():
            self._alter_columns([given])

    def _alter_columns(self, columns: Sequence[AlteredColumn]) -> None:
        """Several columns in one version."""
        handle = self._handle
        changes = [one.change(handle.spark) for one in columns]

        def plan(snapshot: Snapshot) -> DefinitionChange:
            planned = alter_columns(snapshot, changes)
            for path, change in changes:
                spelled = spelled_path(snapshot.schema, path, snapshot.table_root, inner=True)
                before = field_at(snapshot.schema, spelled)
                if change.default is not None:
                    check_default(handle.spark, _with_default(before, change.default))
                if change.nullable is False and before.nullable:
                    _check_no_null(handle, snapshot, spelled)
            return planned

        self._change(plan)

    def syncIdentity(self, name: str) -> None:
        """Have an identity column go on numbering behind the values that the table has, also those that users gave.

        The high-water mark never moves back, not even with the reference's setting
        ``identityColumn.allowSyncIdentityToLowerHighWaterMark``.

        >>> table.syncIdentity("id")  # ALTER TABLE ... ALTER COLUMN id SYNC IDENTITY

        Raises: UserError (DELTA_IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN); ExpressionError (ARITHMETIC_OVERFLOW)
            where BIGINT has no value left.
        """
        checks.text(name, "name")
        with errors_of_spark():
            handle, path = self._handle, one_path(name)

            def plan(snapshot: Snapshot) -> DefinitionChange:
                return sync_identity(snapshot, path, lambda kind, column: _furthest(handle, snapshot, kind, column))

            self._change(plan)

    def addConstraint(self, name: str, condition: str) -> None:
        """A CHECK constraint, which all rows keep that there are, and will be.

        >>> table.addConstraint("positive", "amount > 0")

        Raises: UserError (DELTA_CONSTRAINT_ALREADY_EXISTS, DELTA_NON_BOOLEAN_CHECK_CONSTRAINT);
            ConstraintViolationError (DELTA_NEW_CHECK_CONSTRAINT_VIOLATION) with the number of rows that break it.
        """
        checks.text(name, "name")
        checks.text(condition, "condition")
        with errors_of_spark():

            def plan(snapshot: Snapshot) -> DefinitionChange:
                planned = constraints.add_constraint(snapshot, name, condition)
                check_condition(self._handle.spark, snapshot.schema, name, condition)
                _check_kept(self._handle, snapshot, name, condition)
                return planned

            self._change(plan)

    def dropConstraint(self, name: str, ifExists: bool = False) -> None:
        """The table without a CHECK constraint.

        Raises: UserError (DELTA_CONSTRAINT_DOES_NOT_EXIST), but not with ``ifExists``.
        """
        checks.text(name, "name")
        checks.flag(ifExists, "ifExists")
        with errors_of_spark():
            self._change(lambda snapshot: constraints.drop_constraint(snapshot, name, if_exists=ifExists))

    def setProperties(self, properties: Mapping[str, str]) -> None:
        """Properties of the table with new values; ``comment`` is the table's description.

        What a property needs is done first: ``delta.enableRowTracking`` gives row ids to the files that are there, and
        ``delta.columnMapping.mode=none`` writes them all anew.

        >>> table.setProperties({"delta.enableChangeDataFeed": "true", "delta.columnMapping.mode": "name"})

        Raises: OptionError for properties that no table has; UserError for what this table cannot be given.
        """
        given = checks.properties(properties)
        with errors_of_spark():
            snapshot = self._handle.open()
            options = self._options()
            if property_changes.removes_mapping(snapshot, given):
                property_changes.check_alone(given)
                command = self._command()
                runner = SparkRunner(self._handle.spark)
                remove_mapping(snapshot, runner, options, command)
                return
            if property_changes.enables_row_tracking(snapshot, given):
                property_changes.set_properties(snapshot, given)  # what is wrong with it is said before
                backfill(self._handle.open, options)
            self._change(lambda snapshot: property_changes.set_properties(snapshot, given))

    def unsetProperties(self, *keys: str, ifExists: bool = False) -> None:
        """Properties as if they had never been set.

        >>> table.unsetProperties("delta.logRetentionDuration", "owner")

        Raises: OptionError (DELTA_UNSET_NON_EXISTENT_PROPERTY), but not with ``ifExists``.
        """
        for key in keys:
            checks.text(key, "key")
        checks.flag(ifExists, "ifExists")
        with errors_of_spark():
            self._change(lambda snapshot: property_changes.unset_properties(snapshot, keys, if_exists=ifExists))

    def upgradeTableProtocol(self, readerVersion: int, writerVersion: int) -> None:
        """The protocol with all features that the versions stand for; it only grows.

        Versions 3 and 7 stand for no feature: ``addFeatureSupport`` adds one by its name.

        >>> table.upgradeTableProtocol(2, 5)  # column mapping, and all that came before it
        """
        checks.whole_number(readerVersion, "readerVersion")
        checks.whole_number(writerVersion, "writerVersion")
        self.setProperties({"delta.minReaderVersion": str(readerVersion), "delta.minWriterVersion": str(writerVersion)})

    def addFeatureSupport(self, featureName: str) -> None:
        """The protocol with one feature more, and what that needs.

        >>> table.addFeatureSupport("timestampNtz")

        Raises: OptionError (DELTA_UNSUPPORTED_FEATURES_IN_CONFIG) for a feature that this software does not write.
        """
        checks.text(featureName, "featureName")
        self.setProperties({f"delta.feature.{featureName}": "supported"})

    def dropFeatureSupport(self, featureName: str, truncateHistory: bool | None = None) -> None:
        """The protocol without a feature, once the table has nothing left of it; no row changes.

        What the table has of the feature goes first: files with deletion vectors, mapped names or narrower types are
        written anew, row ids and properties go. A feature that readers have to know is still in the table's history.
        By default that is protected: ``checkpointProtection`` joins the protocol, and versions before this one can be
        opened by engines alone that know the feature. With ``truncateHistory`` those versions are deleted instead:
        the first call takes the traces away and is refused
        (``DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD``), one that comes 24 hours later
        (``delta.dropFeatureTruncateHistory.retentionDuration``) truncates and drops.

        Features that can go: ``checkConstraints`` (without constraints), ``checkpointProtection`` (with
        ``truncateHistory``), ``columnMapping``, ``deletionVectors``, ``domainMetadata``, ``inCommitTimestamp``,
        ``materializePartitionColumns``, ``rowTracking``, ``typeWidening``, ``v2Checkpoint``, ``vacuumProtocolCheck``.

        >>> table.dropFeatureSupport("deletionVectors")

        Raises: UserError (DELTA_FEATURE_DROP_...) naming what stands against it; a ConflictError where other writers
            go on using the feature.
        """
        checks.text(featureName, "featureName")
        if truncateHistory is not None:
            checks.flag(truncateHistory, "truncateHistory")
        with errors_of_spark():
            handle = self._handle
            dropping = Dropping(
                handle.open, self._options(), self._command(), lambda size: place_of_known(handle, size)[1]
            )
            drop_feature(dropping, featureName, truncate_history=bool(truncateHistory))

    def _change(self, plan: Callable[[Snapshot], DefinitionChange]) -> None:
        run_change(self._handle.open, plan, self._options())
        self._handle.followed()

    def _options(self) -> DefinitionOptions:
        handle = for_one_command(self._handle)
        return DefinitionOptions(handle.user_metadata, handle.isolation_level, handle.max_runs)

    def _command(self) -> CommandOptions:
        handle = for_one_command(self._handle)
        return CommandOptions(storage_options=handle.storage_options, time_zone=handle.time_zone)


def _with_default(field: StructField, default: str) -> StructField:
    from delta_pyds.protocol.schema import CURRENT_DEFAULT

    return replace(field, metadata={**field.metadata, CURRENT_DEFAULT: default})


def _rows(handle: TableHandle, snapshot: Snapshot) -> DataFrame:
    path = f"file://{handle.path}" if handle.remote and handle.path.startswith("/") else handle.path
    return read(handle.spark, path, version=snapshot.version, storage_options=handle.storage_options)


def _furthest(handle: TableHandle, snapshot: Snapshot, kind: str, column: str) -> int | None:
    """The smallest or the largest value; None where there is none."""
    function = F.min if kind == "min" else F.max
    (row,) = _rows(handle, snapshot).agg(function(F.col(_quoted(column)))).collect()
    found: int | None = row[0]
    return found


def _check_kept(handle: TableHandle, snapshot: Snapshot, name: str, condition: str) -> None:
    """Raises: ConstraintViolationError where rows break the condition, or it is null for them."""
    broken = _rows(handle, snapshot).where(~F.coalesce(F.expr(condition), F.lit(False))).count()
    if broken:
        raise ConstraintViolationError(
            f"{broken} rows of table {snapshot.table_root} break the new constraint '{name}', {condition}, or it is "
            "null for them. Change or delete them first.",
            code="DELTA_NEW_CHECK_CONSTRAINT_VIOLATION",
            table=snapshot.table_root,
            constraint=name,
            rows=broken,
        )


def _check_no_null(handle: TableHandle, snapshot: Snapshot, path: Path) -> None:
    """Raises: ConstraintViolationError where a row has a null there; a null of what a field is in is none of it."""
    column: Column = F.col(_quoted(path[0]))
    missing = column.isNull()
    schema: Any = snapshot.schema
    for outer, name in pairwise(path):
        schema = schema.find(outer).data_type
        if not isinstance(schema, StructType):
            return  # within an array or a map: refused by the rules for schemas
        missing = column.isNotNull()
        column = column.getField(name)
        missing = missing & column.isNull()
    broken = _rows(handle, snapshot).where(missing).limit(1).count()
    if broken:
        raise ConstraintViolationError(
            f"the column '{show_path(path)}' of table {snapshot.table_root} has nulls, so it cannot be NOT NULL. Give "
            "those rows a value first, or delete them.",
            code="DELTA_NEW_NOT_NULL_VIOLATION",
            table=snapshot.table_root,
            column=show_path(path),
        )


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
