"""Changes of a column's or field's type, comment, nullability, default or position; of the type of elements and keys.

Invariant: no file is read or written; every existing value is the same value of the new type. A change that an
expression, the partitioning or the protocol of the table forbids is refused, naming it.

Protocol: "Type Widening", "Default Columns", "Column Invariants".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from delta_pyds.commands.definition.change import DefinitionChange
from delta_pyds.commands.definition.columns import logged, logged_position, position_of
from delta_pyds.errors import UnsupportedOperationError, UserError
from delta_pyds.protocol.actions import Metadata
from delta_pyds.protocol.char_types import (
    CHAR_VARCHAR_TYPE,
    Limits,
    TextLimits,
    any_padded,
    declared_type,
    text_limits,
)
from delta_pyds.protocol.features import ICEBERG_COMPAT_FEATURES, Feature
from delta_pyds.protocol.schema import (
    CURRENT_DEFAULT,
    GENERATION_EXPRESSION,
    TYPE_CHANGES,
    VOID,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    display,
    parts_of,
)
from delta_pyds.protocol.type_changes import can_widen, record_type_changes
from delta_pyds.table.configuration import TableConfiguration
from delta_pyds.table.definition.dependents import check_nothing_depends
from delta_pyds.table.definition.schema_evolution import evolve_metadata
from delta_pyds.table.definition.schema_paths import (
    Path,
    Position,
    change_field,
    change_struct,
    field_at,
    innermost_field,
    placed,
    spelled_path,
    struct_at,
    with_inner_type,
)
from delta_pyds.table.definition.schema_rules import IDENTITY_KEYS
from delta_pyds.table.definition.statistics_columns import show_path
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.table.transaction.commit_info import Operation


@dataclass(frozen=True)
class ColumnChange:
    """A change of a column; None leaves a property unchanged. ``drop_default`` removes the default."""

    field_type: StructField | None = None
    comment: str | None = None
    nullable: bool | None = None
    default: str | None = None
    drop_default: bool = False
    position: Position | None = None


def alter_column(snapshot: Snapshot, path: Path, change: ColumnChange) -> DefinitionChange:
    """Change the type, comment, nullability, default or position of one column or field.

    For NOT NULL the caller must check that no row is null: the change then depends on the rows.

    Raises: UserError (DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP for a type that is not wider or a table without type
        widening, WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED, ...); what ``check_nothing_depends`` raises.
    """
    altered = _altered(snapshot.configuration, path, change)
    operation = Operation("CHANGE COLUMN", altered.parameters)
    return DefinitionChange(
        operation,
        altered.metadata,
        depends_on_rows=altered.depends_on_rows,
        # it only repeats the type; as in the reference, other changes without effect make a version
        nothing_to_do=change == ColumnChange(change.field_type) and altered.metadata == snapshot.metadata,
    )


def alter_columns(snapshot: Snapshot, changes: Sequence[tuple[Path, ColumnChange]]) -> DefinitionChange:
    """Change several columns, one after another, in one version.

    Raises: as ``alter_column``; UserError for a column that is named twice, or together with a field inside it.
    """
    if len(changes) == 1:
        return alter_column(snapshot, *changes[0])
    configuration = snapshot.configuration
    table = configuration.table_root
    seen: set[Path] = set()
    altered = []
    for path, change in changes:
        spelled = spelled_path(snapshot.schema, path, table, inner=True)
        if any(spelled[: len(other)] == other[: len(spelled)] for other in seen):
            raise UserError(
                f"the column '{show_path(spelled)}' of table {table}, or a field in it, is changed twice.",
                code="NOT_SUPPORTED_CHANGE_SAME_COLUMN",
                table=table,
                column=show_path(spelled),
            )
        seen.add(spelled)
        altered.append(_altered(configuration, path, change))
        configuration = configuration.redefined(configuration.version, snapshot.protocol, altered[-1].metadata)
    return DefinitionChange(
        Operation("CHANGE COLUMNS", {"columns": [_in_list(one.parameters) for one in altered]}),
        altered[-1].metadata,
        depends_on_rows=any(one.depends_on_rows for one in altered),
    )


@dataclass(frozen=True)
class _Altered:
    """``parameters``: the operation parameters in the log."""

    metadata: Metadata
    parameters: dict[str, object]
    depends_on_rows: bool


def _in_list(parameters: dict[str, Any]) -> dict[str, Any]:
    """The column with its position, as the reference's history shows changes of several columns."""
    return {**parameters["column"], **{key: value for key, value in parameters.items() if key != "column"}}


def _altered(configuration: TableConfiguration, path: Path, change: ColumnChange) -> _Altered:
    table = configuration.table_root
    spelled = spelled_path(configuration.schema, path, table, inner=True)
    if innermost_field(configuration.schema, spelled) != spelled:
        return _inner_altered(configuration, spelled, change)
    before = field_at(configuration.schema, spelled)
    _check_no_identity(configuration, spelled, before, change)
    after = before
    if change.field_type is not None:
        after = _with_text_lengths(configuration, spelled, before, change.field_type)
    if change.field_type is not None and change.field_type.data_type != before.data_type:
        after = _retyped(configuration, spelled, after, change.field_type.data_type)
    if change.comment is not None:
        after = replace(after, metadata={**after.metadata, "comment": change.comment})
    if change.nullable is not None:
        after = replace(after, nullable=change.nullable)
    if change.default is not None or change.drop_default:
        after = _with_default(configuration, spelled, after, change.default)
    schema = change_field(configuration.schema, spelled, lambda _: after)
    # as in the reference, history shows the column without the type change that this change records
    shown = {k: v for k, v in after.metadata.items() if k != TYPE_CHANGES or k in before.metadata}
    if TYPE_CHANGES in shown:
        shown[TYPE_CHANGES] = before.metadata[TYPE_CHANGES]
    parameters: dict[str, object] = {"column": logged(replace(after, metadata=shown), spelled)}
    if change.position is not None:
        _, struct = struct_at(schema, spelled[:-1], table)
        position = position_of(change.position, struct, spelled, table)
        assert position is not None
        schema = change_struct(schema, spelled[:-1], lambda s: placed(s, after, position, table))
        parameters |= logged_position(position)
    metadata = evolve_metadata(configuration, schema)
    return _Altered(metadata, parameters, before.nullable and not after.nullable)


def _inner_altered(configuration: TableConfiguration, path: Path, change: ColumnChange) -> _Altered:
    """Change the type of an element, a key or a value. The field around it has the type, and records type changes.

    The schema cannot represent other changes. As in the reference, a change without effect is accepted.
    """
    before = field_at(configuration.schema, path)
    problem = None
    if change.comment is not None:
        problem = "have a comment", "DELTA_UNSUPPORTED_COMMENT_MAP_ARRAY"
    elif change.default is not None:
        problem = "have a default", "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"
    elif change.nullable not in (None, before.nullable):
        kind = "nullable" if change.nullable else "NOT NULL"
        problem = f"become {kind}", "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"
    elif change.position is not None:
        problem = "be moved", "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"
    if problem is not None:
        what, code = problem
        raise UserError(
            f"'{show_path(path)}' of table {configuration.table_root} is inside an array or a map, so it cannot "
            f"{what}: only its type can change. Name the column instead, or a field of a struct.",
            code=code,
            table=configuration.table_root,
            column=show_path(path),
        )
    metadata, after = configuration.metadata, before
    if change.field_type is not None:
        _with_text_lengths(configuration, path, before, change.field_type)
        if change.field_type.data_type != before.data_type:
            after = replace(before, data_type=change.field_type.data_type)
            owner = innermost_field(configuration.schema, path)
            field = field_at(configuration.schema, owner)
            wanted = with_inner_type(field.data_type, path[len(owner) :], after.data_type)
            changed = _retyped(configuration, owner, field, wanted)
            metadata = evolve_metadata(configuration, change_field(configuration.schema, owner, lambda _: changed))
    return _Altered(metadata, {"column": logged(after, path)}, depends_on_rows=False)


def _with_text_lengths(
    configuration: TableConfiguration, path: Path, before: StructField, wanted: StructField
) -> StructField:
    """The column with the text lengths of ``wanted``; every existing text must be valid for the new type.

    In the protocol, types that differ only in lengths are equal, so a change of a length is compared here. The
    same changes are refused as in the reference. It refuses or ignores changes of nested fields; here all are refused.
    """
    table = configuration.table_root
    old, new = _limits_at(configuration.schema, path), text_limits(wanted)
    if old == new:
        return before
    if len(path) > 1 or not _may_become(old, new):
        raise UserError(
            f"the column '{show_path(path)}' of table {table} is {declared_type(before.data_type, old)}, and cannot "
            f"become {declared_type(wanted.data_type, new)}: only a whole column of type char(n) or varchar(n) can "
            "become a longer varchar or a string. A text without a limit cannot get one.",
            code="DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP",
            table=table,
            column=show_path(path),
        )
    if any_padded(old):
        # comparisons with a char ignore trailing spaces
        check_nothing_depends(configuration, path, "change the type of")
    metadata = {key: value for key, value in before.metadata.items() if key != CHAR_VARCHAR_TYPE}
    if new is not None:
        metadata[CHAR_VARCHAR_TYPE] = declared_type(wanted.data_type, new)
    return replace(before, metadata=metadata)


def _limits_at(schema: StructType, path: Path) -> Limits:
    """The text limits of a field, from the declared type of the whole column."""
    at = field_at(schema, path[:1])
    limits, data_type = text_limits(at), at.data_type
    for name in path[1:]:
        if isinstance(data_type, StructType):
            number = data_type.names.index(name)
            data_type = data_type.fields[number].data_type
        else:
            number, data_type = int(name == "value"), parts_of(data_type)[name]
        limits = limits.parts[number] if isinstance(limits, TextLimits) else None
    return limits


def _may_become(old: Limits, new: Limits) -> bool:
    if isinstance(old, TextLimits) or isinstance(new, TextLimits):
        before = old.parts if isinstance(old, TextLimits) else None
        after = new.parts if isinstance(new, TextLimits) else None
        count = len(before or after or ())
        # types of other shapes are refused by the comparison of types
        pairs = zip(before or (None,) * count, after or (None,) * count, strict=False)
        return all(_may_become(one, other) for one, other in pairs)
    if old is None or new is None:
        return new is None
    assert not isinstance(old, TextLimits) and not isinstance(new, TextLimits)
    return old == new or (not new.padded and old.length <= new.length)


def _retyped(configuration: TableConfiguration, path: Path, before: StructField, wanted: DataType) -> StructField:
    """The column with another type. A partition column may be widened too: the log has its values as texts, which
    are parsed as the new type, as in the reference.
    """
    table = configuration.table_root
    if before.data_type == VOID and wanted != VOID:
        # no file has a column of type void: it is null in every row
        check_nothing_depends(configuration, path, "change the type of")
        return replace(before, data_type=wanted)
    changed = f"from {display(before.data_type)} to {display(wanted)}"
    for_iceberg = any(configuration.supports(ICEBERG_COMPAT_FEATURES[v]) for v in (1, 2))
    wider = _widened(before.data_type, wanted, for_iceberg)
    problem = None
    if wider is None:
        problem = f"{display(before.data_type)} cannot be widened to {display(wanted)}"
    elif not (configuration.properties.type_widening and configuration.supports(Feature.TYPE_WIDENING)):
        problem = "the table does not allow it: set delta.enableTypeWidening=true first"
    elif GENERATION_EXPRESSION in before.metadata:
        problem = "it is a generated column, and its expression has the old type"
    if problem is not None:
        raise UserError(
            f"the type of the column '{show_path(path)}' of table {table} cannot change {changed}: {problem}.",
            code="DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP",
            table=table,
            column=show_path(path),
        )
    check_nothing_depends(configuration, path, "change the type of")
    assert wider is not None
    return record_type_changes(replace(before, data_type=wider), before.data_type)


def _widened(old: DataType, new: DataType, for_iceberg: bool) -> DataType | None:
    """The new type, which may widen elements, keys and values too; None if a part is not wider."""
    if isinstance(old, ArrayType) and isinstance(new, ArrayType):
        element = _widened(old.element_type, new.element_type, for_iceberg)
        return None if element is None else replace(old, element_type=element)
    if isinstance(old, MapType) and isinstance(new, MapType):
        key = _widened(old.key_type, new.key_type, for_iceberg)
        value = _widened(old.value_type, new.value_type, for_iceberg)
        return None if key is None or value is None else replace(old, key_type=key, value_type=value)
    return new if new == old or can_widen(old, new, for_iceberg=for_iceberg) else None


def _check_no_identity(
    configuration: TableConfiguration, path: Path, before: StructField, change: ColumnChange
) -> None:
    """Raises: UserError for a change of an identity column other than its comment or position."""
    retyped = change.field_type is not None and change.field_type.data_type != before.data_type
    other_nulls = change.nullable is not None and change.nullable != before.nullable
    has_default = change.default is not None or change.drop_default
    if (retyped or other_nulls or has_default) and any(key in before.metadata for key in IDENTITY_KEYS):
        raise UserError(
            f"the column '{show_path(path)}' of table {configuration.table_root} is an identity column: its type, "
            "nullability and default are fixed, and only its comment and its position can change.",
            code="DELTA_IDENTITY_COLUMNS_ALTER_COLUMN_NOT_SUPPORTED",
            table=configuration.table_root,
            column=show_path(path),
        )


def _with_default(configuration: TableConfiguration, path: Path, f: StructField, default: str | None) -> StructField:
    table = configuration.table_root
    metadata = {key: value for key, value in f.metadata.items() if key != CURRENT_DEFAULT}
    if default is None:
        return replace(f, metadata=metadata)
    if len(path) > 1:
        raise UnsupportedOperationError(
            f"the field '{show_path(path)}' of table {table} cannot have a default: only whole columns can.",
            code="DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP",
            table=table,
            column=show_path(path),
        )
    if GENERATION_EXPRESSION in f.metadata:
        raise UserError(
            f"the column '{show_path(path)}' of table {table} cannot have a default: the table computes its values.",
            code="DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP",
            table=table,
            column=show_path(path),
        )
    return replace(f, metadata={**metadata, CURRENT_DEFAULT: default})
