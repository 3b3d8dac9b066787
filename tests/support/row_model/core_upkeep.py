"""Steps that keep a table, by the core: what ``DeltaTable`` does, without Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from delta_pyds.columnar.schema import arrow_schema
from delta_pyds.commands.definition.alter_column import ColumnChange, alter_column
from delta_pyds.commands.definition.change import DefinitionOptions, run_change
from delta_pyds.commands.definition.columns import NewColumn, add_columns, drop_columns, rename_column
from delta_pyds.commands.definition.constraints import drop_constraint
from delta_pyds.commands.definition.drop_feature import drop_feature
from delta_pyds.commands.definition.feature_artifacts import Dropping
from delta_pyds.commands.definition.properties import enables_row_tracking, removes_mapping, set_properties
from delta_pyds.commands.definition.row_tracking import backfill
from delta_pyds.commands.definition.unmapping import remove_mapping
from delta_pyds.commands.layout.cluster_by import cluster_by
from delta_pyds.commands.layout.optimize import plan_optimize, plan_purge, plan_zorder
from delta_pyds.commands.layout.run import run_layout
from delta_pyds.commands.maintenance.clone import CloneOptions, shallow_clone
from delta_pyds.commands.maintenance.convert import ConvertOptions, convert
from delta_pyds.commands.maintenance.restore import RestoreOptions, restore
from delta_pyds.commands.maintenance.vacuum import VacuumOptions, plan_vacuum, run_vacuum
from delta_pyds.commands.row_changes.delete import plan_truncate, run_delete
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.row_changes.result import Place
from delta_pyds.commands.task_runner import LocalRunner
from delta_pyds.protocol.schema import LONG, StructField
from delta_pyds.storage.local import LocalStorage
from delta_pyds.table.definition.schema_paths import Position
from delta_pyds.table.snapshot import Snapshot, load_snapshot
from tests.support.row_model.model import Model
from tests.support.row_model.steps import Upkeep, next_column, schema_of
from tests.support.row_model.upkeep import (
    CONSTRAINT_NAME,
    AddColumn,
    Clone,
    Cluster,
    Convert,
    DropColumn,
    DropFeature,
    Move,
    Optimize,
    Purge,
    RenameColumn,
    Restore,
    StayColumn,
    Truncate,
    Turn,
    Vacuum,
    ZOrder,
    moved,
)
from tests.support.table_writes import read_rows, struct

_HERE = Place("process", "a test says so.")
_COMMAND = CommandOptions()
_OPTIONS = DefinitionOptions()


def keep(path: Path, step: Upkeep, model: Model) -> Path:
    """Take the step. ``model``: of the table, which has not taken it yet. Returns: where the table is then."""
    if isinstance(step, Convert):
        export(path, model)
    _STEPS[type(step)](_Table(path), step, model)
    return moved(path) if isinstance(step, Move) else path


def export(path: Path, model: Model) -> None:
    """The rows of the table as Parquet files, in the directories that Spark gives partitions."""
    names = [name for name in model.columns if not (model.layout.partitioned and name == "p")]
    schema = arrow_schema(struct(schema_of(names)))
    by_directory: dict[str, list[dict[str, Any]]] = {}
    for row in read_rows(path):
        directory = f"p={_hive_value(row['p'])}" if model.layout.partitioned else ""
        by_directory.setdefault(directory, []).append(row)
    for directory, rows in by_directory.items():
        folder = moved(path) / directory
        folder.mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), folder / "part-0.parquet", row_group_size=2)


def _hive_value(value: str | None) -> str:
    if value is None:
        return "__HIVE_DEFAULT_PARTITION__"
    return "".join(f"%{ord(c):02X}" if c in "/=%" else c for c in value)


class _Table:
    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def open(self) -> Snapshot:
        return load_snapshot(self.path)

    def change(self, plan: Callable[[Snapshot], Any]) -> None:
        run_change(self.open, plan, _OPTIONS)


def _optimize(table: _Table, step: Optimize, _: Model) -> None:
    filters = [] if step.partition is None else [step.where]
    run_layout(plan_optimize(table.open(), filters, _COMMAND), _HERE, LocalRunner(1))


def _zorder(table: _Table, step: ZOrder, _: Model) -> None:
    run_layout(plan_zorder(table.open(), step.columns, [], _COMMAND), _HERE, LocalRunner(1))


def _purge(table: _Table, _: Purge, __: Model) -> None:
    run_layout(plan_purge(table.open(), [], _COMMAND), _HERE, LocalRunner(1))


def _cluster(table: _Table, step: Cluster, model: Model) -> None:
    cluster_by(table.open(), step.columns, _COMMAND)
    if step.columns:
        _optimize(table, Optimize(), model)


def _vacuum(table: _Table, step: Vacuum, _: Model) -> None:
    options = VacuumOptions(retention_hours=0, check_retention=False, lite=step.lite)
    run_vacuum(plan_vacuum(LocalStorage(), table.path, options))


def _restore(table: _Table, step: Restore, model: Model) -> None:
    restore(table.open(), RestoreOptions(version=step.target(model).version))


def _truncate(table: _Table, _: Truncate, __: Model) -> None:
    run_delete(plan_truncate(table.open(), _COMMAND), _HERE)


def _stay(table: _Table, step: StayColumn, _: Model) -> None:
    change = ColumnChange(position=Position(step.column))
    table.change(lambda snapshot: alter_column(snapshot, (step.column,), change))


def _clone(table: _Table, step: Clone, model: Model) -> None:
    source = load_snapshot(table.path, version=step.target(model).version)
    shallow_clone(source, LocalStorage(), str(moved(Path(table.path))), CloneOptions())


def _convert(table: _Table, _: Convert, model: Model) -> None:
    partitions = struct({"p": "string"}) if model.layout.partitioned else struct({})
    assert convert(LocalStorage(), str(moved(Path(table.path))), ConvertOptions(partitions))


def _add(table: _Table, _: AddColumn, model: Model) -> None:
    new = NewColumn(StructField(next_column(model.columns), LONG))
    table.change(lambda snapshot: add_columns(snapshot, [new]))


def _rename(table: _Table, step: RenameColumn, model: Model) -> None:
    old, new = step.names(model)
    table.change(lambda snapshot: rename_column(snapshot, (str(old),), new))


def _drop(table: _Table, step: DropColumn, model: Model) -> None:
    table.change(lambda snapshot: drop_columns(snapshot, [(str(step.name(model)),)]))


def _turn(table: _Table, step: Turn, _: Model) -> None:
    if removes_mapping(table.open(), step.properties):
        remove_mapping(table.open(), LocalRunner(1), _OPTIONS, _COMMAND)
        return
    if enables_row_tracking(table.open(), step.properties):
        backfill(table.open, _OPTIONS)
    table.change(lambda snapshot: set_properties(snapshot, step.properties))


def _drop_feature(table: _Table, step: DropFeature, _: Model) -> None:
    if step.feature == "checkConstraints":
        table.change(lambda snapshot: drop_constraint(snapshot, CONSTRAINT_NAME))
    drop_feature(Dropping(table.open, _OPTIONS), step.feature)


_STEPS: dict[type, Any] = {
    Optimize: _optimize,
    ZOrder: _zorder,
    Purge: _purge,
    Cluster: _cluster,
    Vacuum: _vacuum,
    Restore: _restore,
    Truncate: _truncate,
    StayColumn: _stay,
    Clone: _clone,
    Convert: _convert,
    AddColumn: _add,
    RenameColumn: _rename,
    DropColumn: _drop,
    Turn: _turn,
    DropFeature: _drop_feature,
}
