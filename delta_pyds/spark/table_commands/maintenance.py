"""VACUUM, RESTORE, CLONE, CONVERT and GENERATE.

None of them writes rows of an application, so the session's transaction settings do not apply to them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType as SparkStruct

from delta_pyds.catalog.opening import table_storage
from delta_pyds.commands.maintenance.clone import CloneOptions, shallow_clone
from delta_pyds.commands.maintenance.convert import ConvertOptions
from delta_pyds.commands.maintenance.convert import convert as convert_directory
from delta_pyds.commands.maintenance.generate import MODE, generate_manifests
from delta_pyds.commands.maintenance.listing import INVENTORY_COLUMNS
from delta_pyds.commands.maintenance.restore import RestoreOptions
from delta_pyds.commands.maintenance.restore import restore as restore_snapshot
from delta_pyds.commands.maintenance.vacuum import VacuumOptions, plan_vacuum, run_vacuum
from delta_pyds.commands.row_changes.commit_rows import run_again
from delta_pyds.errors import OptionError
from delta_pyds.protocol.schema import StructType
from delta_pyds.spark.empty_frame import empty_frame
from delta_pyds.spark.incoming import frame_of_table
from delta_pyds.spark.log_rows import from_log
from delta_pyds.spark.planning.types import from_spark
from delta_pyds.spark.row_changes.handle import TableHandle
from delta_pyds.spark.settings import IGNORE_MISSING_FILES, RETENTION_CHECK, VACUUM_LITE, VACUUM_LOGGING
from delta_pyds.spark.table_commands.identifiers import path_in_name
from delta_pyds.spark.table_commands.results import numbers_frame
from delta_pyds.spark.table_commands.settings import default_properties, without_transaction
from delta_pyds.spark.task_runner import SparkRunner
from delta_pyds.storage.resolve import has_scheme, resolve_storage
from delta_pyds.storage.table_path import absolute_table_path
from delta_pyds.table.scan.read_report import remember
from delta_pyds.table.snapshot import load_snapshot

_RESTORED = (
    "table_size_after_restore", "num_of_files_after_restore", "num_removed_files", "num_restored_files",
    "removed_files_size", "restored_files_size",
)  # fmt: skip
_CLONED = (
    "source_table_size", "source_num_of_files", "num_removed_files", "num_copied_files", "removed_files_size",
    "copied_files_size",
)  # fmt: skip


def vacuum(
    handle: TableHandle,
    *,
    retention_hours: float | None = None,
    lite: bool | None = None,
    dry_run: bool = False,
    inventory: DataFrame | None = None,
) -> DataFrame:
    """Delete the files that no version within the retention needs: see ``DeltaTable.vacuum``."""
    now = without_transaction(handle)
    spark = now.spark
    options = VacuumOptions(
        retention_hours=retention_hours,
        check_retention=_flag(spark, RETENTION_CHECK, True) is not False,
        lite=bool(_flag(spark, VACUUM_LITE, False) if lite is None else lite),
        inventory=None if inventory is None else _batches(inventory),
        log_entries=_flag(spark, VACUUM_LOGGING, None),
        user_metadata=now.user_metadata,
    )
    plan = plan_vacuum(table_storage(now.path, now.storage_options), now.path, options)
    if dry_run:
        return from_log(frame_of_table(spark, pa.table({"path": pa.array(plan.paths, pa.string())})))
    result = run_vacuum(plan)
    frame = empty_frame(spark)
    remember(frame, result)
    return frame


def restore(handle: TableHandle, *, version: int | None = None, timestamp: str | None = None) -> DataFrame:
    """Commit a version with the files of an earlier one. If that changes nothing, the answer has no row."""
    now = without_transaction(handle)
    options = RestoreOptions(
        version,
        timestamp,
        now.time_zone,
        ignore_missing_files=bool(_flag(now.spark, IGNORE_MISSING_FILES, False)),
        user_metadata=now.user_metadata,
    )
    result = run_again(now.max_runs, lambda: restore_snapshot(now.open(), options))
    if result is None:
        # the reference's DataFrame has no columns either
        return empty_frame(now.spark)
    now.update_catalog()
    return numbers_frame(now.spark, result, _RESTORED)


def clone(
    handle: TableHandle,
    target: str,
    *,
    replace: bool = False,
    properties: Mapping[str, str] | None = None,
    version: int | None = None,
    timestamp: str | None = None,
) -> DataFrame:
    """Create a table at ``target`` that names this table's files. ``target``: a path, or ``delta.`/data/copy```.

    Raises: UnsupportedOperationError for a name of a catalog; what the clone raises.
    """
    now = without_transaction(handle)
    path = target if has_scheme(target) or target.startswith("/") else path_in_name(target)
    root = absolute_table_path(path, remote=now.remote)
    source = load_snapshot(
        now.path,
        version=version,
        timestamp=timestamp,
        time_zone=now.time_zone,
        storage_options=now.storage_options,
    )
    options = CloneOptions(replace, dict(properties or {}), now.user_metadata)
    storage = resolve_storage(root, now.storage_options)
    result = run_again(now.max_runs, lambda: shallow_clone(source, storage, root, options))
    return numbers_frame(now.spark, result, _CLONED)


def generate(handle: TableHandle, mode: str) -> None:
    """Write manifests. Raises: OptionError (DELTA_MODE_NOT_SUPPORTED); what writing them raises."""
    if not isinstance(mode, str) or mode.lower() != MODE:
        raise OptionError(
            f"generate does not support the mode {mode!r:.100}, only {MODE!r}.",
            code="DELTA_MODE_NOT_SUPPORTED",
            option="mode",
        )
    generate_manifests(without_transaction(handle).open())


def convert(
    spark: SparkSession,
    root: str,
    partition_schema: SparkStruct | None,
    *,
    properties: Mapping[str, str] | None = None,
    check: Callable[[Sequence[str], StructType], StructType] | None = None,
    catalog_table: str | None = None,
) -> bool:
    """Write a log for a directory of Parquet files.

    ``properties``, ``check``, ``catalog_table``: see ``ConvertOptions``.
    Returns: False if a Delta table is at the path already; it stays as it is.
    """
    now = without_transaction(TableHandle(spark, root))
    options = ConvertOptions(
        from_spark(partition_schema or SparkStruct([])),
        time_zone=now.time_zone,
        user_metadata=now.user_metadata,
        properties={**default_properties(spark), **(properties or {})},
        check=check,
        catalog_table=catalog_table,
    )
    return convert_directory(resolve_storage(root), root, options, SparkRunner(spark)) is not None


def _flag(spark: SparkSession, name: str, default: bool | None) -> bool | None:
    value = spark.conf.get(name, None)
    return default if value is None else value.strip().lower() == "true"


def _batches(inventory: DataFrame) -> list[pa.RecordBatch]:
    present = [name for name in INVENTORY_COLUMNS if name in inventory.columns]
    rows: pa.Table = inventory.select(*present).toArrow()
    return list(rows.to_batches())
