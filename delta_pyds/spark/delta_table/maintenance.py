"""The methods of ``DeltaTable`` that keep a table in order: vacuum, restore, clone, convert, manifests."""

from __future__ import annotations

import re
from dataclasses import replace as with_fields
from functools import partial
from typing import TYPE_CHECKING, cast

import pyarrow as pa
from pyspark.sql.types import StructType

from delta_pyds.catalog.opening import table_storage
from delta_pyds.commands.maintenance.clone import CloneOptions, shallow_clone
from delta_pyds.commands.maintenance.convert import ConvertOptions, convert
from delta_pyds.commands.maintenance.generate import MODE, generate_manifests
from delta_pyds.commands.maintenance.listing import INVENTORY_COLUMNS
from delta_pyds.commands.maintenance.restore import RestoreOptions, restore
from delta_pyds.commands.maintenance.vacuum import VacuumOptions, plan_vacuum, run_vacuum
from delta_pyds.commands.row_changes.commit_rows import run_again
from delta_pyds.errors import OptionError, UnsupportedOperationError
from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.catalog_names.converted_names import parquet_name, take_over
from delta_pyds.spark.catalog_names.texts import NamedTable
from delta_pyds.spark.delta_table.identifiers import path_in_name
from delta_pyds.spark.delta_table.results import numbers_frame
from delta_pyds.spark.delta_table.settings import default_properties, for_one_command
from delta_pyds.spark.incoming import frame_of_table
from delta_pyds.spark.planning.types import from_spark
from delta_pyds.spark.row_changes.handle import TableHandle
from delta_pyds.spark.same_files import require_same_files
from delta_pyds.spark.spark_errors import errors_of_spark
from delta_pyds.spark.table_commands import argument_checks as checks
from delta_pyds.spark.task_runner import SparkRunner
from delta_pyds.storage.resolve import has_scheme, resolve_storage
from delta_pyds.storage.table_path import absolute_table_path
from delta_pyds.table.scan.read_report import remember
from delta_pyds.table.snapshot import load_snapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from typing_extensions import Self

_RETENTION_CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"
_VACUUM_LITE = "spark.databricks.delta.vacuum.lite.enabled"
_VACUUM_LOGGING = "spark.databricks.delta.vacuum.logging.enabled"
# a table of ours is no error, as in the reference: it stays as it is
_PARQUET_NAME = re.compile(r"(?:parquet|delta|deltapy)\.`((?:[^`]|``)+)`", re.IGNORECASE)
_IGNORE_MISSING = "spark.sql.files.ignoreMissingFiles"
_RESTORED = (
    "table_size_after_restore", "num_of_files_after_restore", "num_removed_files", "num_restored_files",
    "removed_files_size", "restored_files_size",
)  # fmt: skip
_CLONED = (
    "source_table_size", "source_num_of_files", "num_removed_files", "num_copied_files", "removed_files_size",
    "copied_files_size",
)  # fmt: skip


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

        ``retentionHours``: obeyed as it is given; less than ``delta.deletedFileRetentionDuration`` (7 days, and the
        default) is refused unless the session's ``spark.databricks.delta.retentionDurationCheck.enabled`` is false.
        ``lite``: look at the files that the log says were removed, and list nothing; by default as the session's
        ``spark.databricks.delta.vacuum.lite.enabled`` says. ``dry_run``: delete nothing, and return the paths.
        ``inventory``: the table's files, if you have a listing of your bucket: ``path``, ``length``, ``isDir``,
        ``modificationTime`` (in milliseconds).

        >>> table.vacuum(200, dry_run=True).show(truncate=False)
        >>> table.vacuum(200)

        Returns: a DataFrame without columns, of which ``delta_pyds.explain`` says what was deleted; with ``dry_run``
            one with ``path``.
        Raises: OptionError (DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT); StorageError where a file could not be deleted;
            UnsupportedOperationError (DELTA_CANNOT_VACUUM_LITE) where the log no longer knows what was removed.
        """
        hours = None if retentionHours is None else float(retentionHours)
        with errors_of_spark():
            handle = _now(self._handle)
            spark = handle.spark
            options = VacuumOptions(
                retention_hours=hours,
                check_retention=_flag(spark, _RETENTION_CHECK, True) is not False,
                lite=bool(_flag(spark, _VACUUM_LITE, False) if lite is None else lite),
                inventory=None if inventory is None else _batches(inventory),
                log_entries=_flag(spark, _VACUUM_LOGGING, None),
                user_metadata=handle.user_metadata,
            )
            plan = plan_vacuum(table_storage(handle.path, handle.storage_options), handle.path, options)
            if dry_run:
                return frame_of_table(spark, pa.table({"path": pa.array(plan.paths, pa.string())}))
            result = run_vacuum(plan)
            frame = spark.createDataFrame([], StructType([]))
            remember(frame, result)
            return frame

    def restoreToVersion(self, version: int) -> DataFrame:
        """Make the table again what it was at a version, by a new version.

        >>> table.restoreToVersion(7).collect()[0].num_restored_files

        Returns: one row with numbers and sizes of files, as the reference's. To the version that the table has nothing
            is restored: no row, and no new version.
        Raises: UserError (DELTA_CANNOT_RESTORE_TABLE_VERSION), and (DELTA_RESTORE_MISSING_FILES) where files of the
            version are gone, unless the session's ``spark.sql.files.ignoreMissingFiles`` is true; a ConflictError.
        """
        checks.whole_number(version, "version")
        return self._restore(version=version)

    def restoreToTimestamp(self, timestamp: str) -> DataFrame:
        """The same of the version that the table had at a time, of the session's zone where it names none.

        >>> table.restoreToTimestamp("2026-01-31 18:00:00")

        Raises: as ``restoreToVersion``, and TimeTravelError for a time before the first version or after the last.
        """
        checks.text(timestamp, "timestamp")
        return self._restore(timestamp=timestamp)

    def _restore(self, version: int | None = None, timestamp: str | None = None) -> DataFrame:
        with errors_of_spark():
            handle = _now(self._handle)
            options = RestoreOptions(
                version,
                timestamp,
                handle.time_zone,
                ignore_missing_files=bool(_flag(handle.spark, _IGNORE_MISSING, False)),
                user_metadata=handle.user_metadata,
            )
            result = run_again(handle.max_runs, lambda: restore(handle.open(), options))
            if result is None:
                # the reference's frame has no columns either
                return handle.spark.createDataFrame([], StructType())
            handle.followed()
            return numbers_frame(handle.spark, result, _RESTORED)

    def clone(
        self, target: str, isShallow: bool = False, replace: bool = False, properties: dict[str, str] | None = None
    ) -> DataFrame:
        """Make a table at ``target`` that names this table's files: a shallow clone, which copies no data.

        ``target``: an absolute path, or ``delta.`/data/copy```. ``isShallow``: must be true, as in the reference.
        ``replace``: a table that is there becomes the clone, by a new version. ``properties``: of the clone.
        A vacuum of this table knows nothing of its clones.

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
        """The same of an earlier version.

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
        """The same of the version that the table had at a time, of the session's zone where it names none.

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
                    "a deep clone, which copies the data, is not supported, nor is it by the reference. Give "
                    "isShallow=True for one that names the files, or write the rows to another path.",
                    code="DELTA_UNSUPPORTED_DEEP_CLONE",
                    option="isShallow",
                )
            handle = _now(self._handle)
            root = absolute_table_path(_clone_path(target), remote=handle.remote)
            source = load_snapshot(
                handle.path,
                version=version,
                timestamp=timestamp,
                time_zone=handle.time_zone,
                storage_options=handle.storage_options,
            )
            options = CloneOptions(replace, properties or {}, handle.user_metadata)
            storage = resolve_storage(root, handle.storage_options)
            result = run_again(handle.max_runs, lambda: shallow_clone(source, storage, root, options))
            return numbers_frame(handle.spark, result, _CLONED)

    def generate(self, mode: str) -> None:
        """Write manifests, which name the table's files for engines that read Parquet alone.

        ``mode``: ``symlink_format_manifest``, in any case. They stand in ``_symlink_format_manifest`` below the
        table, one for each partition, and are as old as this call: later commits do not change them.

        >>> table.generate("symlink_format_manifest")

        Raises: OptionError (DELTA_MODE_NOT_SUPPORTED); UserError for a table with deletion vectors or column mapping.
        """
        with errors_of_spark():
            if not isinstance(mode, str) or mode.lower() != MODE:
                raise OptionError(
                    f"the mode {mode!r:.100} of generate is not known; {MODE!r} is.",
                    code="DELTA_MODE_NOT_SUPPORTED",
                    option="mode",
                )
            generate_manifests(_now(self._handle).open())

    @classmethod
    def convertToDelta(
        cls, sparkSession: SparkSession, identifier: str, partitionSchema: str | StructType | None = None
    ) -> Self:
        """Make a table of a directory of Parquet files, where they are: only a log is written.

        ``identifier``: ``parquet.`/data/events```, or the name of an EXTERNAL table of Parquet files in Spark's
        catalog, which then is the Delta table's. ``partitionSchema``: the columns that directories such as
        ``day=2026-01-31`` name, in their order. A table that is there already stays as it is. Statistics come from the
        files' footers.

        >>> DeltaTable.convertToDelta(spark, "parquet.`/data/events`", "day date")

        Raises: UserError for directories that name other columns or values than the schema says
            (DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME and its like), and for files whose columns do not go
            together; UnsupportedOperationError for other formats.
        """
        assert sparkSession is not None
        with errors_of_spark():
            remote = is_remote(sparkSession)
            schema = None if partitionSchema is None else partitionSchema
            if isinstance(schema, str):
                schema = cast(StructType, StructType.fromDDL(schema))
            named = None if _is_path(identifier) else parquet_name(sparkSession, identifier)
            if isinstance(named, NamedTable):
                return cls.forName(sparkSession, identifier)
            path = _parquet_path(identifier) if named is None else named.location
            root = absolute_table_path(path, remote=remote)
            if remote and not has_scheme(path):
                require_same_files(sparkSession, root)
            handle = _now(TableHandle(sparkSession, root))
            if named is not None:
                schema = named.partition_schema(schema)
            options = ConvertOptions(
                from_spark(schema or StructType([])),
                time_zone=handle.time_zone,
                user_metadata=handle.user_metadata,
                properties={**default_properties(sparkSession), **({} if named is None else named.properties)},
                check=None if named is None else partial(named.check, root),
                catalog_table=None if named is None else named.quoted,
            )
            converted = convert(resolve_storage(root), root, options, SparkRunner(sparkSession))
            if named is None:
                return cls.forPath(sparkSession, root)
            if converted is None:
                named.refuse_table()
            take_over(sparkSession, named, root, load_snapshot(root).schema)
            return cls.forName(sparkSession, identifier)

    if TYPE_CHECKING:

        @classmethod
        def forPath(cls, sparkSession: SparkSession, path: str) -> Self: ...

        @classmethod
        def forName(cls, sparkSession: SparkSession, tableOrViewName: str) -> Self: ...


def _is_path(identifier: object) -> bool:
    """Whether it is none that a catalog may have."""
    return (
        not isinstance(identifier, str) or "`/" in identifier or "://" in identifier or "iceberg." in identifier.lower()
    )


def _parquet_path(identifier: str) -> str:
    """Raises: UnsupportedOperationError for anything but ``parquet.`/path```."""
    match = _PARQUET_NAME.fullmatch(identifier.strip()) if isinstance(identifier, str) else None
    if match is None:
        is_iceberg = isinstance(identifier, str) and identifier.strip().lower().startswith("iceberg.")
        raise UnsupportedOperationError(
            f"{identifier!r:.200} cannot be converted: only directories of Parquet files can, by their path. Write "
            "parquet.`/data/events`.",
            code="DELTA_MISSING_ICEBERG_CLASS" if is_iceberg else "DELTA_MISSING_PROVIDER_FOR_CONVERT",
            name=str(identifier),
        )
    return match[1].replace("``", "`")


def _clone_path(target: str) -> str:
    """Raises: UnsupportedOperationError for a name of a catalog."""
    return target if has_scheme(target) or target.startswith("/") else path_in_name(target)


def _now(handle: TableHandle) -> TableHandle:
    """With what the session says, but its transaction, which is for commands that write rows."""
    return with_fields(for_one_command(handle), txn=None)


def _flag(spark: SparkSession, name: str, default: bool | None) -> bool | None:
    value = spark.conf.get(name, None)
    return default if value is None else value.strip().lower() == "true"


def _batches(inventory: DataFrame) -> list[pa.RecordBatch]:
    present = [name for name in INVENTORY_COLUMNS if name in inventory.columns]
    rows: pa.Table = inventory.select(*present).toArrow()
    return list(rows.to_batches())
