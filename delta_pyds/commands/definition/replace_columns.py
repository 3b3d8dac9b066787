"""The columns of a table replaced by a list: some added, dropped or moved; the others keep their values.

Invariant: no file is read or written. A struct may either gain or lose fields: both at once could be a renamed field.

Protocol: "Change Metadata", "Column Mapping".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from delta_pyds.commands.definition.change import DefinitionChange
from delta_pyds.commands.definition.columns import check_can_go, check_new, logged, without_statistics
from delta_pyds.errors import UserError
from delta_pyds.protocol.char_types import CHAR_VARCHAR_TYPE
from delta_pyds.protocol.schema import (
    CURRENT_DEFAULT,
    GENERATION_EXPRESSION,
    IDENTITY_STEP,
    DataType,
    StructField,
    StructType,
    display,
    merge_parts,
)
from delta_pyds.table.definition.schema_evolution import evolve_metadata
from delta_pyds.table.definition.schema_paths import Path
from delta_pyds.table.definition.schema_rules import check_added
from delta_pyds.table.definition.statistics_columns import show_path
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.table.transaction.commit_info import Operation

# keys of the metadata that produce values for a column that a write omits
_MADE = (CURRENT_DEFAULT, GENERATION_EXPRESSION, IDENTITY_STEP)


def replace_columns(snapshot: Snapshot, columns: Sequence[StructField]) -> DefinitionChange:
    """Replace the columns. An existing column may only change its position, its comment, and NOT NULL.

    Raises: UserError (DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP) for another type or default, for NOT NULL on a
        nullable column, and for dropped columns without column mapping or together with new ones;
        (DELTA_IDENTITY_COLUMNS_REPLACE_COLUMN_NOT_SUPPORTED); errors of dropping and adding columns.
    """
    configuration = snapshot.configuration
    if any(IDENTITY_STEP in column.metadata for column in snapshot.schema):
        raise UserError(
            f"the columns of table {snapshot.table_root} cannot be replaced, because one of them is an identity "
            "column. Add, rename and drop columns instead.",
            code="DELTA_IDENTITY_COLUMNS_REPLACE_COLUMN_NOT_SUPPORTED",
            table=snapshot.table_root,
        )
    plan = _Plan(snapshot)
    schema = plan.struct(snapshot.schema, StructType(tuple(columns)), ())
    for path in plan.dropped:
        check_can_go(snapshot, path)
    mapped = configuration.column_mapping_mode != "none"
    check_added(plan.added, mapped=mapped, reserved=configuration.hidden_columns)
    metadata = without_statistics(evolve_metadata(configuration, schema), plan.dropped)
    shown = [logged(column, (column.name,)) for column in columns]
    return DefinitionChange(Operation("REPLACE COLUMNS", {"columns": shown}), metadata)


@dataclass
class _Plan:
    """``dropped``, ``added``: paths of columns and fields, collected during the comparison."""

    snapshot: Snapshot
    dropped: list[Path] = field(default_factory=list)
    added: dict[Path, StructField] = field(default_factory=dict)

    def struct(self, old: StructType, new: StructType, above: Path) -> StructType:
        names = [wanted.name.lower() for wanted in new]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise UserError(
                f"'{show_path((*above, twice))}' is named twice.",
                code="DELTA_DUPLICATE_COLUMNS_FOUND",
                column=twice,
            )
        gone = [(*above, one.name) for one in old if one.name.lower() not in names]
        come = {(*above, one.name): one for one in new if old.find(one.name) is None}
        if gone and come:
            raise self._refused(
                gone[0],
                f"is missing while {show_path(next(iter(come)))} is new, which could also be a renamed column. "
                "Rename the column, or drop and add columns in separate steps",
            )
        if gone and self.snapshot.configuration.column_mapping_mode == "none":
            raise self._refused(gone[0], "is missing, and dropping columns requires delta.columnMapping.mode=name")
        for path, one in come.items():
            check_new(one, path, old, self.snapshot.table_root)
        self.dropped += gone
        self.added |= come
        return StructType(tuple(self._field(old.find(wanted.name), wanted, above) for wanted in new))

    def _field(self, old: StructField | None, wanted: StructField, above: Path) -> StructField:
        if old is None:
            return wanted
        path = (*above, old.name)
        if old.nullable and not wanted.nullable:
            raise self._refused(path, "is nullable, but the list has NOT NULL. Use ALTER COLUMN ... SET NOT NULL")
        made = next((key for key in _MADE if wanted.metadata.get(key) not in (None, old.metadata.get(key))), None)
        if made is not None:
            raise self._refused(path, "has another default in the list. Use ALTER COLUMN ... SET DEFAULT")
        comment = wanted.metadata.get("comment")
        metadata = old.metadata if comment is None else {**old.metadata, "comment": comment}
        if wanted.metadata.get(CHAR_VARCHAR_TYPE) != old.metadata.get(CHAR_VARCHAR_TYPE):
            raise self._refused(path, "has another text length in the list. Use ALTER COLUMN ... TYPE")
        data_type = self._type(old.data_type, wanted.data_type, path)
        return replace(old, data_type=data_type, nullable=wanted.nullable, metadata=metadata)

    def _type(self, old: DataType, new: DataType, path: Path) -> DataType:
        if isinstance(old, StructType) and isinstance(new, StructType):
            return self.struct(old, new, path)
        merged = merge_parts(old, new, lambda part, other, name: self._type(part, other, (*path, name)))
        if merged is not None:
            return merged
        if old != new:
            kinds = f"is {display(old)}, but {display(new)} in the list"
            raise self._refused(path, f"{kinds}. Use ALTER COLUMN ... TYPE for a wider type")
        return old

    def _refused(self, path: Path, why: str) -> UserError:
        return UserError(
            f"the columns of table {self.snapshot.table_root} cannot be replaced: '{show_path(path)}' {why}.",
            code="DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP",
            table=self.snapshot.table_root,
            column=show_path(path),
        )
