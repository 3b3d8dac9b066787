"""Files of narrower types than the table's are rewritten, so that readers need not support widened columns.

Invariant: a file stays only if its footer shows that each column has the table's own type; no row changes.

Protocol: "Type Widening".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import msgspec
import pyarrow.parquet as pq
import pyarrow.types as pt

from delta_pyds.columnar.schema import arrow_type
from delta_pyds.commands.definition.change import DefinitionChange, DefinitionOptions, commit_change
from delta_pyds.commands.definition.columns import logged
from delta_pyds.commands.definition.footers import look_at_footers
from delta_pyds.commands.layout.optimize import plan_reorg
from delta_pyds.commands.layout.run import run_layout
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.row_changes.result import Place
from delta_pyds.commands.task_runner import TaskRunner
from delta_pyds.data.file_schema import FileColumn, file_columns
from delta_pyds.protocol.actions import AddFile
from delta_pyds.protocol.schema import (
    TIMESTAMP_NTZ,
    TYPE_CHANGES,
    DataType,
    DecimalType,
    PrimitiveType,
    StructField,
    StructType,
    change_fields,
    parts_of,
    schema_to_string,
)
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.table.transaction.commit_info import Operation

_NUMBERS = ("byte", "short", "integer", "long", "float", "double")
_PLACE = Place("process", "a feature is dropped")


def has_type_changes(schema: StructType) -> bool:
    """Whether any field records a change of its type."""
    return bool(_changed(schema))


def rewrite_narrow_files(snapshot: Snapshot, options: CommandOptions, runner: Callable[[int], TaskRunner]) -> bool:
    """Rewrite the files whose footers show other types than the table's. Returns: whether there were any.

    Reads the footer of each file, several at once. Raises: CorruptDataFileError; what ``run_layout`` raises.
    """
    if not has_type_changes(snapshot.schema):
        return False

    by_id = snapshot.configuration.column_mapping_mode == "id"

    def is_narrow(parquet: pq.ParquetFile) -> bool:
        return _differ(file_columns(parquet.schema_arrow), snapshot.schema, by_id)

    def chosen(files: Iterable[AddFile]) -> list[AddFile]:
        return [file for file, narrow in look_at_footers(snapshot, files, is_narrow) if narrow]

    # after a lost race the files are looked at again
    plan = plan_reorg(snapshot, (), replace(options, row_level_concurrency=False), chosen)
    if not plan.bins:
        return False
    run_layout(plan, _PLACE, runner(plan.bytes_to_read))
    return True


def forget_type_changes(snapshot: Snapshot, options: DefinitionOptions) -> None:
    """Remove the record of type changes from the schema.

    Raises: a ConflictError if another commit added or removed files since the snapshot, whose files were checked.
    """
    changed = _changed(snapshot.schema)
    if not changed:
        return
    schema = change_fields(
        snapshot.schema, lambda f: replace(f, metadata={k: v for k, v in f.metadata.items() if k != TYPE_CHANGES})
    )
    metadata = msgspec.structs.replace(snapshot.metadata, schema_string=schema_to_string(schema))
    operation = Operation("DROP FEATURE", {"columns": changed})
    commit_change(snapshot, DefinitionChange(operation, metadata, depends_on_rows=True), options)


def _changed(schema: StructType) -> list[dict[str, object]]:
    """The fields that record a type change, as history shows them."""
    found: list[dict[str, object]] = []

    def within(data_type: DataType, path: tuple[str, ...]) -> None:
        if isinstance(data_type, StructType):
            for f in data_type:
                if TYPE_CHANGES in f.metadata:
                    found.append(logged(f, (*path, f.name)))
                within(f.data_type, (*path, f.name))
        for name, part in parts_of(data_type).items():
            within(part, (*path, name))

    within(schema, ())
    return found


# --- footers


def _differ(columns: Sequence[FileColumn], struct: StructType, by_id: bool) -> bool:
    """Whether a column has another type than the table's. A missing column is always null, so it has none."""
    return any(_differs_from(columns, f, by_id) for f in struct)


def _differs_from(columns: Sequence[FileColumn], f: StructField, by_id: bool) -> bool:
    """Compare the column that a reader would choose. If the choice is not clear, the file counts as narrow."""
    if by_id and any(column.has_field_ids() for column in columns):
        found = [column for column in columns if column.field_id == f.field_id]
    else:
        found = [column for column in columns if column.name == f.physical_name]
        folded = f.physical_name.lower()
        if not found and any(column.name.lower() == folded for column in columns):
            return True
    return len(found) > 1 or any(_differs(column, f.data_type, by_id) for column in found)


def _differs(column: FileColumn, data_type: DataType, by_id: bool) -> bool:
    if isinstance(data_type, StructType):
        return _differ(column.children, data_type, by_id)
    if parts := parts_of(data_type).values():
        pairs = zip(column.children, parts, strict=False)
        return len(column.children) != len(parts) or any(_differs(child, part, by_id) for child, part in pairs)
    if data_type == TIMESTAMP_NTZ:
        # the column may be widened from dates
        return not pt.is_timestamp(column.data_type)
    if isinstance(data_type, DecimalType) or (isinstance(data_type, PrimitiveType) and data_type.name in _NUMBERS):
        return bool(column.data_type != arrow_type(data_type))
    return False
