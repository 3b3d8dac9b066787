"""The methods of ``DeltaTable`` that keep a table in order: vacuum, restore, clone, convert, manifests."""

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
    """Of ``DeltaTable``."""

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

        ``retentionHours``: by default ``delta.deletedFileRetentionDuration`` (7 days). Less is refused unless the
        session's ``spark.databricks.delta.retentionDurationCheck.enabled`` is false. ``lite``: take removed files from
        the log, and list nothing; by default as the session's ``spark.databricks.delta.vacuum.lite.enabled``.
        ``dry_run``: delete nothing, and return the paths. ``inventory``: a listing of the table's files, if you have
        one of your bucket: ``path``, ``length``, ``isDir``, ``modificationTime`` (in milliseconds).

        >>> table.vacuum(200, dry_run=True).show(truncate=False)
        >>> table.vacuum(200)

        Returns: a DataFrame without columns, whose ``delta_pyds.explain`` names the deleted files; with ``dry_run``
            one with ``path``.
        Raises: OptionError (DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT); StorageError if a file could not be deleted;
            UnsupportedOperationError (DELTA_CANNOT_VACUUM_LITE) if the log no longer names all removed files.
        """
        hours = None if retentionHours is None else float(retentionHours)
        with errors_of_spark():
            return maintenance.vacuum(
                self._handle, retention_hours=hours, lite=lite, dry_run=dry_run, inventory=inventory
            )

    def restoreToVersion(self, version: int) -> DataFrame:
        """Restore the table to an earlier version, by a new version.

        >>> table.restoreToVersion(7).collect()[0].num_restored_files

        Returns: one row with numbers and sizes of files, as the reference's. The current version needs no restore: no
            row, and no new version.
        Raises: UserError (DELTA_CANNOT_RESTORE_TABLE_VERSION), and (DELTA_RESTORE_MISSING_FILES) if files of the
            version are gone, unless the session's ``spark.sql.files.ignoreMissingFiles`` is true; a ConflictError.
        """
        checks.whole_number(version, "version")
        with errors_of_spark():
            return maintenance.restore(self._handle, version=version)

    def restoreToTimestamp(self, timestamp: str) -> DataFrame:
        """Restore the table to the version at a time, which is in the session's zone if it names none.

        >>> table.restoreToTimestamp("2026-01-31 18:00:00")

        Raises: as ``restoreToVersion``, and TimeTravelError for a time before the first version or after the last.
        """
        checks.text(timestamp, "timestamp")
        with errors_of_spark():
            return maintenance.restore(self._handle, timestamp=timestamp)

    def clone(
        self, target: str, isShallow: bool = False, replace: bool = False, properties: dict[str, str] | None = None
    ) -> DataFrame:
        """Create a table at ``target`` that names this table's files: a shallow clone, which copies no data.

        ``target``: an absolute path, or ``delta.`/data/copy```. ``isShallow``: must be true, as in the reference.
        ``replace``: an existing table becomes the clone, by a new version. ``properties``: of the clone.
        A vacuum of this table ignores its clones.

        >>> table.clone("/data/copy", isShallow=True)

        Returns: one row with numbers and sizes of files, as the reference's.
        Raises: OptionError (DELTA_UNSUPPORTED_DEEP_CLONE, DELTA_INVALID_CLONE_PATH); UserError
            (DELTA_UNSUPPORTED_NON_EMPTY_CLONE); UnsupportedOperationError for names of a catalog.
        """
        checks.clone_arguments(target, isShallow, replace, properties)
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

        >>> table.cloneAtVersion(7, "/data/copy", isShallow=True)
        """
        checks.whole_number(version, "version")
        checks.clone_arguments(target, isShallow, replace, properties)
        return self._clone(target, isShallow, replace, properties, version=version)

    def cloneAtTimestamp(
        self,
        timestamp: str,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: dict[str, str] | None = None,
    ) -> DataFrame:
        """Clone the version at a time, which is in the session's zone if it names none.

        >>> table.cloneAtTimestamp("2026-01-31 18:00:00", "/data/copy", isShallow=True)
        """
        checks.text(timestamp, "timestamp")
        checks.clone_arguments(target, isShallow, replace, properties)
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

        ``mode``: ``symlink_format_manifest``, in any case. The manifests are in ``_symlink_format_manifest`` below the
        table, one for each partition. Later commits do not change them.

        >>> table.generate("symlink_format_manifest")

        Raises: OptionError (DELTA_MODE_NOT_SUPPORTED); UserError for a table with deletion vectors or column mapping.
        """
        with errors_of_spark():
            maintenance.generate(self._handle, mode)

    @classmethod
    def convertToDelta(
        cls, sparkSession: SparkSession, identifier: str, partitionSchema: str | StructType | None = None
    ) -> Self:
        """Convert a directory of Parquet files to a table in place: only a log is written.

        ``identifier``: ``parquet.`/data/events```, or the name of an EXTERNAL table of Parquet files in Spark's
        catalog, which the Delta table gets. ``partitionSchema``: the columns of directories such as
        ``day=2026-01-31``, in their order. An existing Delta table stays as it is. Statistics come from the files'
        footers.

        >>> DeltaTable.convertToDelta(spark, "parquet.`/data/events`", "day date")

        Raises: UserError for directories whose columns or values differ from the schema
            (DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME for instance), and for files with incompatible
            columns; UnsupportedOperationError for other formats.
        """
        assert sparkSession is not None
        with errors_of_spark():
            return cls._of(convert(sparkSession, identifier, partitionSchema))

    if TYPE_CHECKING:

        @classmethod
        def _of(cls, opened: OpenTable) -> Self: ...
