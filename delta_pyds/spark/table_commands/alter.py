"""``ALTER TABLE``: columns, constraints, properties and features changed.

Invariant: one call commits one version. The exception is a property that needs the files to be prepared first. After
an error the table is as before, or as one of those steps left it, which changes no row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from delta_pyds.commands.definition import columns, constraints
from delta_pyds.commands.definition import properties as table_properties
from delta_pyds.commands.definition.alter_column import ColumnChange
from delta_pyds.commands.definition.alter_column import alter_columns as plan_alteration
from delta_pyds.commands.definition.change import DefinitionChange, DefinitionOptions, run_change
from delta_pyds.commands.definition.columns import NewColumn
from delta_pyds.commands.definition.drop_feature import drop_feature as remove_feature
from delta_pyds.commands.definition.feature_artifacts import Dropping
from delta_pyds.commands.definition.replace_columns import replace_columns as plan_replacement
from delta_pyds.commands.definition.row_tracking import backfill
from delta_pyds.commands.definition.sync_identity import sync_identity as plan_sync
from delta_pyds.commands.definition.unmapping import remove_mapping
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.errors import ConstraintViolationError, OptionError
from delta_pyds.protocol.quoting import quote_name
from delta_pyds.protocol.schema import CURRENT_DEFAULT, StructField, StructType
from delta_pyds.spark.loading import load
from delta_pyds.spark.options.read import ReadOptions
from delta_pyds.spark.row_changes.handle import TableHandle
from delta_pyds.spark.row_changes.place import place_of_supported
from delta_pyds.spark.table_commands.expression_checks import check_condition, check_default
from delta_pyds.spark.table_commands.settings import without_transaction
from delta_pyds.spark.task_runner import SparkRunner
from delta_pyds.table.definition.schema_paths import Path, field_at, one_path, spelled_path
from delta_pyds.table.definition.statistics_columns import show_path
from delta_pyds.table.snapshot import Snapshot


def add_columns(handle: TableHandle, new: Sequence[NewColumn]) -> None:
    _change(handle, lambda snapshot: columns.add_columns(snapshot, new))


def rename_column(handle: TableHandle, name: str, new_name: str) -> None:
    _change(handle, lambda snapshot: columns.rename_column(snapshot, one_path(name), new_name))


def drop_columns(handle: TableHandle, names: Sequence[str]) -> None:
    """Raises: OptionError if no column is named."""
    if not names:
        raise OptionError("no column is named to drop.", option="names")
    _change(handle, lambda snapshot: columns.drop_columns(snapshot, [one_path(name) for name in names]))


def replace_columns(handle: TableHandle, wanted: tuple[StructField, ...]) -> None:
    _change(handle, lambda snapshot: plan_replacement(snapshot, wanted))


def alter_columns(handle: TableHandle, changes: Sequence[tuple[Path, ColumnChange]]) -> None:
    """Change several columns in one version."""

    def plan(snapshot: Snapshot) -> DefinitionChange:
        planned = plan_alteration(snapshot, changes)
        for path, change in changes:
            spelled = spelled_path(snapshot.schema, path, snapshot.table_root, inner=True)
            before = field_at(snapshot.schema, spelled)
            if change.default is not None:
                with_default = {**before.metadata, CURRENT_DEFAULT: change.default}
                check_default(handle.spark, replace(before, metadata=with_default))
            if change.nullable is False and before.nullable:
                _check_no_null(handle, snapshot, spelled)
        return planned

    _change(handle, plan)


def sync_identity(handle: TableHandle, name: str) -> None:
    path = one_path(name)

    def plan(snapshot: Snapshot) -> DefinitionChange:
        return plan_sync(snapshot, path, lambda kind, column: _furthest(handle, snapshot, kind, column))

    _change(handle, plan)


def add_constraint(handle: TableHandle, name: str, condition: str) -> None:
    def plan(snapshot: Snapshot) -> DefinitionChange:
        planned = constraints.add_constraint(snapshot, name, condition)
        check_condition(handle.spark, snapshot.schema, name, condition)
        _check_kept(handle, snapshot, name, condition)
        return planned

    _change(handle, plan)


def drop_constraint(handle: TableHandle, name: str, *, if_exists: bool) -> None:
    _change(handle, lambda snapshot: constraints.drop_constraint(snapshot, name, if_exists=if_exists))


def set_properties(handle: TableHandle, given: Mapping[str, str]) -> None:
    """Set properties, and do first what they need: see ``DeltaTable.setProperties``."""
    snapshot = handle.open()
    options = _options(handle)
    if table_properties.removes_mapping(snapshot, given):
        table_properties.check_alone(given)
        command = _command(handle)
        remove_mapping(snapshot, SparkRunner(handle.spark), options, command)
        return
    if table_properties.enables_row_tracking(snapshot, given):
        table_properties.set_properties(snapshot, given)  # refuses invalid properties before any file is changed
        backfill(handle.open, options)
    _change(handle, lambda snapshot: table_properties.set_properties(snapshot, given))


def unset_properties(handle: TableHandle, keys: Sequence[str], *, if_exists: bool) -> None:
    _change(handle, lambda snapshot: table_properties.unset_properties(snapshot, keys, if_exists=if_exists))


def drop_feature(handle: TableHandle, name: str, *, truncate_history: bool) -> None:
    """Remove a feature from the protocol: see ``DeltaTable.dropFeatureSupport``."""
    dropping = Dropping(
        handle.open, _options(handle), _command(handle), lambda size: place_of_supported(handle, size)[1]
    )
    remove_feature(dropping, name, truncate_history=truncate_history)


def _change(handle: TableHandle, plan: Callable[[Snapshot], DefinitionChange]) -> None:
    run_change(handle.open, plan, _options(handle))
    handle.update_catalog()


def _options(handle: TableHandle) -> DefinitionOptions:
    now = without_transaction(handle)
    return DefinitionOptions(now.user_metadata, now.isolation_level, now.max_runs)


def _command(handle: TableHandle) -> CommandOptions:
    now = without_transaction(handle)
    return CommandOptions(storage_options=now.storage_options, time_zone=now.time_zone)


def _rows(handle: TableHandle, snapshot: Snapshot) -> DataFrame:
    path = f"file://{handle.path}" if handle.remote and handle.path.startswith("/") else handle.path
    options = ReadOptions("", version=snapshot.version, storage_options=handle.storage_options)
    return load(handle.spark, path, options)


def _furthest(handle: TableHandle, snapshot: Snapshot, kind: str, column: str) -> int | None:
    """The smallest or the largest value; None for a table without values."""
    function = F.min if kind == "min" else F.max
    (row,) = _rows(handle, snapshot).agg(function(F.col(quote_name(column)))).collect()
    found: int | None = row[0]
    return found


def _check_kept(handle: TableHandle, snapshot: Snapshot, name: str, condition: str) -> None:
    """Raises: ConstraintViolationError if rows break the condition, or it is null for them."""
    broken = _rows(handle, snapshot).where(~F.coalesce(F.expr(condition), F.lit(False))).count()
    if broken:
        raise ConstraintViolationError(
            f"{broken} rows of table {snapshot.table_root} break the new constraint '{name}', {condition}, or it is "
            "null for them. Change or delete these rows first.",
            code="DELTA_NEW_CHECK_CONSTRAINT_VIOLATION",
            table=snapshot.table_root,
            constraint=name,
            rows=broken,
        )


def _check_no_null(handle: TableHandle, snapshot: Snapshot, path: Path) -> None:
    """Raises: ConstraintViolationError if a row has a null there. A null of an enclosing struct does not count."""
    column: Column = F.col(quote_name(path[0]))
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
