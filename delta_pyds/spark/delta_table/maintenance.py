"""Methods of ``DeltaTable`` for maintenance: vacuum, restore, clone, convert, manifests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_pyds.errors import OptionError
from delta_pyds.spark.catalog_names.converted_names import convert
from delta_pyds.spark.catalog_names.opening import OpenTable
from delta_pyds.spark.row_changes.handle import TableHandle
from delta_pyds.spark.spark_errors import errors_of_spark
from delta_pyds.spark.table_commands import argument_checks as checks
from delta_pyds.spark.table_commands import maintenance

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType
    from typing_extensions import Self


class MaintenanceMethods:
    """The methods of ``DeltaTable`` for maintenance."""

    _handle: TableHandle

    def vacuum(
        self,
        retentionHours: float | None = None,
        *,
        lite: bool | None = None,
        dry_run: bool = False,
        inventory: DataFrame | None = None,
    ) -> DataFrame:
        """Delete the files that no version of the table within the retention needs.

        Args:
            retentionHours: The retention in hours; by default ``delta.deletedFileRetentionDuration`` (7 days). Less is
                refused unless the session's ``spark.databricks.delta.retentionDurationCheck.enabled`` is false.
            lite: Whether to take removed files from the log, and list nothing; by default the session's setting
                ``spark.databricks.delta.vacuum.lite.enabled`` decides.
            dry_run: Whether to delete nothing, and return the paths.
            inventory: A listing of the table's files, if you have one of your bucket: ``path``, ``length`` (in bytes),
                ``isDir``, ``modificationTime`` (in milliseconds since the epoch). By default vacuum lists them.

        Returns:
            A DataFrame without columns, whose ``delta_pyds.explain`` names the deleted files; with ``dry_run`` one with
            ``path``.

        Raises:
            OptionError: The retention is invalid, or too short (DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT).
            StorageError: A file could not be deleted.
            UnsupportedOperationError: The log no longer names all removed files (DELTA_CANNOT_VACUUM_LITE), or the
                catalog of the table deletes files itself.

        >>> table.vacuum(200, dry_run=True).show(truncate=False)
        >>> table.vacuum(200)
        """
        hours = None if retentionHours is None else float(retentionHours)
        with errors_of_spark():
            return maintenance.vacuum(
                self._handle, retention_hours=hours, lite=lite, dry_run=dry_run, inventory=inventory
            )

    def restoreToVersion(self, version: int) -> DataFrame:
        """Restore the table to an earlier version, by a new version.

        Args:
            version: The version to restore.

        Returns:
            One row with numbers and sizes of files, as the reference's. The current version needs no restore: no row,
            and no new version.

        Raises:
            ValueError: ``version`` is not an int.
            UserError: The table does not have the version (DELTA_CANNOT_RESTORE_TABLE_VERSION), or files of it are gone
                (DELTA_RESTORE_MISSING_FILES), unless the session's ``spark.sql.files.ignoreMissingFiles`` is true.
            ConflictError: A conflicting commit came first.

        >>> table.restoreToVersion(7).collect()[0].num_restored_files
        """
        checks.whole_number(version, "version")
        with errors_of_spark():
            return maintenance.restore(self._handle, version=version)

    def restoreToTimestamp(self, timestamp: str) -> DataFrame:
        """Restore the table to the version at a time, by a new version.

        Args:
            timestamp: The time, as text: the last commit up to this time. Without a zone it is in the session's.

        Returns:
            One row, as ``restoreToVersion`` returns it.

        Raises:
            ValueError: ``timestamp`` is not a str.
            OptionError: ``timestamp`` is not a time (DELTA_TIMESTAMP_INVALID).
            TimeTravelError: The time is before the first version or after the last
                (DELTA_CANNOT_RESTORE_TIMESTAMP_EARLIER, DELTA_CANNOT_RESTORE_TIMESTAMP_GREATER).
            UserError: Files of the version are gone; see ``restoreToVersion``.
            ConflictError: A conflicting commit came first.

        >>> table.restoreToTimestamp("2026-01-31 18:00:00")
        """
        checks.text(timestamp, "timestamp")
        with errors_of_spark():
            return maintenance.restore(self._handle, timestamp=timestamp)

    def clone(
        self, target: str, isShallow: bool = False, replace: bool = False, properties: dict[str, str] | None = None
    ) -> DataFrame:
        """Create a table at ``target`` that names this table's files: a shallow clone, which copies no data.

        A vacuum of this table ignores its clones, and may delete files that they need.

        Args:
            target: An absolute path, or ``delta.`/data/copy```.
            isShallow: Must be True, as in the reference.
            replace: Whether an existing table becomes the clone, by a new version.
            properties: Properties of the clone, names to values, both texts.

        Returns:
            One row with numbers and sizes of files, as the reference's.

        Raises:
            ValueError: An argument has the wrong type.
            OptionError: The clone is deep (DELTA_UNSUPPORTED_DEEP_CLONE), or ``target`` is invalid
                (DELTA_INVALID_CLONE_PATH).
            UserError: The target has files (DELTA_UNSUPPORTED_NON_EMPTY_CLONE).
            UnsupportedOperationError: ``target`` is a name of a catalog, or a catalog manages one of the two tables.
            ConflictError: A conflicting commit came first.

        >>> table.clone("/data/copy", isShallow=True)
        """
        return self._clone(target, isShallow, replace, properties)

    def cloneAtVersion(
        self,
        version: int,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: dict[str, str] | None = None,
    ) -> DataFrame:
        """Clone an earlier version.

        Args:
            version: The version to clone.
            target: An absolute path, or ``delta.`/data/copy```.
            isShallow: Must be True, as in the reference.
            replace: Whether an existing table becomes the clone, by a new version.
            properties: Properties of the clone, names to values, both texts.

        Returns:
            One row, as ``clone`` returns it.

        Raises:
            ValueError: An argument has the wrong type.
            TimeTravelError: The table does not have the version.
            DeltaError: The table cannot be cloned; see ``clone``.

        >>> table.cloneAtVersion(7, "/data/copy", isShallow=True)
        """
        checks.whole_number(version, "version")
        return self._clone(target, isShallow, replace, properties, version=version)

    def cloneAtTimestamp(
        self,
        timestamp: str,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: dict[str, str] | None = None,
    ) -> DataFrame:
        """Clone the version at a time.

        Args:
            timestamp: The time, as text: the last commit up to this time. Without a zone it is in the session's.
            target: An absolute path, or ``delta.`/data/copy```.
            isShallow: Must be True, as in the reference.
            replace: Whether an existing table becomes the clone, by a new version.
            properties: Properties of the clone, names to values, both texts.

        Returns:
            One row, as ``clone`` returns it.

        Raises:
            ValueError: An argument has the wrong type.
            TimeTravelError: The table has no version at that time.
            DeltaError: The table cannot be cloned; see ``clone``.

        >>> table.cloneAtTimestamp("2026-01-31 18:00:00", "/data/copy", isShallow=True)
        """
        checks.text(timestamp, "timestamp")
        return self._clone(target, isShallow, replace, properties, timestamp=timestamp)

    def _clone(
        self,
        target: str,
        is_shallow: bool,
        replace: bool,
        properties: dict[str, str] | None,
        version: int | None = None,
        timestamp: str | None = None,
    ) -> DataFrame:
        checks.text(target, "target")
        checks.flag(is_shallow, "isShallow")
        checks.flag(replace, "replace")
        if properties is not None:
            checks.properties(properties)
        with errors_of_spark():
            if not is_shallow:
                raise OptionError(
                    "a deep clone, which copies the data, is not supported, as in the reference. Give "
                    "isShallow=True for one that names the files, or write the rows to another path.",
                    code="DELTA_UNSUPPORTED_DEEP_CLONE",
                    option="isShallow",
                )
            return maintenance.clone(
                self._handle,
                target,
                replace=replace,
                properties=properties,
                version=version,
                timestamp=timestamp,
            )

    def generate(self, mode: str) -> None:
        """Write manifests, which name the table's files for engines that only read Parquet.

        The manifests are in ``_symlink_format_manifest`` below the table, one for each partition. Later commits do not
        change them.

        Args:
            mode: ``symlink_format_manifest``, in any case.

        Raises:
            OptionError: The mode is unknown (DELTA_MODE_NOT_SUPPORTED).
            UserError: The table has deletion vectors or column mapping.
            StorageError: A manifest cannot be written.

        >>> table.generate("symlink_format_manifest")
        """
        with errors_of_spark():
            maintenance.generate(self._handle, mode)

    @classmethod
    def convertToDelta(
        cls, sparkSession: SparkSession, identifier: str, partitionSchema: str | StructType | None = None
    ) -> Self:
        """Convert a directory of Parquet files to a table in place: only a log is written.

        An existing Delta table stays as it is. Statistics come from the files' footers.

        Args:
            sparkSession: The session, classic or of Spark Connect.
            identifier: ``parquet.`/data/events```, or the name of an EXTERNAL table of Parquet files in Spark's
                catalog. The Delta table gets the name.
            partitionSchema: The columns of directories such as ``day=2026-01-31``, in their order, as SQL or as
                PySpark's class. The default is an empty schema, or for a name the columns of the catalog.

        Returns:
            The table.

        Raises:
            UserError: Directories have other columns or values than the schema
                (DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME for instance), or files have incompatible
                columns.
            UnsupportedOperationError: The files have another format, or the name is a managed table's.
            ConflictError: Another process has created a table there.

        >>> DeltaTable.convertToDelta(spark, "parquet.`/data/events`", "day date")
        """
        assert sparkSession is not None
        with errors_of_spark():
            return cls._of(convert(sparkSession, identifier, partitionSchema))

    if TYPE_CHECKING:

        @classmethod
        def _of(cls, opened: OpenTable) -> Self: ...
