"""Columns and nested fields added, renamed, dropped, moved, and changed in type, comment, nullability and default.

Invariant: no file is read or written; every row that the table has means after the change what it meant before, under
the new names and types. What an expression, the partitioning or the clustering forbids is refused naming it.

Protocol: "Change Metadata", "Column Mapping", "Type Widening", "Default Columns".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import msgspec

from delta_pyds.commands.definition.change import DefinitionChange, clustered_by, with_schema
from delta_pyds.errors import UnsupportedOperationError, UserError
from delta_pyds.protocol.actions import Metadata
from delta_pyds.protocol.features import ICEBERG_COMPAT_FEATURES, Feature
from delta_pyds.protocol.properties import Property
from delta_pyds.protocol.schema import (
    CURRENT_DEFAULT,
    GENERATION_EXPRESSION,
    IDENTITY_STEP,
    TYPE_CHANGES,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    display,
    type_to_json,
)
from delta_pyds.protocol.type_changes import can_widen, record_type_changes
from delta_pyds.table.configuration import TableConfiguration
from delta_pyds.table.definition.dependents import check_nothing_depends
from delta_pyds.table.definition.schema_paths import (
    Path,
    Position,
    change_field,
    change_struct,
    field_at,
    placed,
    spelled_path,
    struct_at,
)
from delta_pyds.table.definition.schema_rules import IDENTITY_KEYS, check_added
from delta_pyds.table.definition.statistics_columns import parse_columns, physical_path, show_path
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.table.transaction.commit_info import Operation

_KINDS: dict[type[DataType], str] = {StructType: "struct", ArrayType: "array", MapType: "map"}


@dataclass(frozen=True)
class NewColumn:
    """``parent``: the path of the struct that gets the field; empty for a column."""

    field: StructField
    parent: Path = ()
    position: Position | None = None


@dataclass(frozen=True)
class ColumnChange:
    """What is to be of a column; None leaves it. ``drop_default`` takes the default away."""

    field_type: StructField | None = None
    comment: str | None = None
    nullable: bool | None = None
    default: str | None = None
    drop_default: bool = False
    position: Position | None = None


def add_columns(snapshot: Snapshot, columns: Sequence[NewColumn]) -> DefinitionChange:
    """New columns and fields, which are null in every row that is there.

    Raises: UserError (FIELD_ALREADY_EXISTS, DELTA_ADD_COLUMN_PARENT_NOT_STRUCT,
        DELTA_ADDING_COLUMN_... and those of ``schema_rules``); UnsupportedOperationError for a column that is NOT NULL,
        generated, an identity, or has a default.
    """
    configuration = snapshot.configuration
    table = configuration.table_root
    schema = configuration.schema
    added: dict[Path, StructField] = {}
    logged = []
    for column in columns:
        parent, struct = struct_at(schema, column.parent, table)
        path = (*parent, column.field.name)
        _check_new(column.field, path, struct, table)
        added[path] = column.field
        position = _position(column.position, struct, path, table)
        schema = change_struct(schema, parent, partial(placed, field=column.field, position=position, table=table))
        logged.append({"column": _logged(column.field, path), **_logged_position(position)})
    mapped = configuration.column_mapping_mode != "none"
    check_added(added, mapped=mapped, reserved=configuration.hidden_columns)
    return DefinitionChange(Operation("ADD COLUMNS", {"columns": logged}), with_schema(configuration, schema))


def rename_column(snapshot: Snapshot, path: Path, new_name: str) -> DefinitionChange:
    """Another name for a column or a field; its files stay as they are.

    Raises: UserError (DELTA_UNSUPPORTED_RENAME_COLUMN) without column mapping, FIELD_ALREADY_EXISTS, and what
        ``check_nothing_depends`` raises.
    """
    configuration = snapshot.configuration
    table = configuration.table_root
    _require_mapping(configuration, "rename", "DELTA_UNSUPPORTED_RENAME_COLUMN")
    old = spelled_path(configuration.schema, path, table)
    check_nothing_depends(configuration, old, "rename")
    parent, struct = struct_at(configuration.schema, old[:-1], table)
    new = (*parent, new_name)
    if any(f.name.lower() == new_name.lower() for f in struct if f.name != old[-1]):
        raise _exists(new, table)
    check_added(
        {new: replace(field_at(configuration.schema, old), name=new_name)},
        mapped=True,
        reserved=configuration.hidden_columns,
    )
    schema = change_field(configuration.schema, old, lambda f: replace(f, name=new_name))
    metadata = _with_statistics_renamed(with_schema(configuration, schema), old, new)
    if len(old) == 1:
        partitions = [new_name if name == old[0] else name for name in metadata.partition_columns or ()]
        metadata = msgspec.structs.replace(metadata, partition_columns=partitions)
    parameters = {"oldColumnPath": show_path(old), "newColumnPath": show_path(new)}
    return DefinitionChange(Operation("RENAME COLUMN", parameters), metadata)


def drop_columns(snapshot: Snapshot, paths: Sequence[Path]) -> DefinitionChange:
    """Columns and fields that the table shall no longer have; their values stay in the files, and nobody reads them.

    Raises: UserError (DELTA_UNSUPPORTED_DROP_COLUMN without column mapping, DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN,
        DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN, DELTA_UNSUPPORTED_DROP_NESTED_COLUMN_FROM_NON_STRUCT_TYPE) and what
        ``check_nothing_depends`` raises.
    """
    configuration = snapshot.configuration
    table = configuration.table_root
    _require_mapping(configuration, "drop", "DELTA_UNSUPPORTED_DROP_COLUMN")
    schema = configuration.schema
    metadata_paths = [spelled_path(schema, path, table) for path in paths]
    for path in metadata_paths:
        check_nothing_depends(configuration, path, "drop")
        if path[0] in configuration.partition_columns:
            raise _refused_drop(path, table, "is partitioned by it", "DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN")
        physical = _physical(configuration, path)
        if any(column[: len(physical)] == physical for column in clustered_by(snapshot)):
            raise _refused_drop(
                path,
                table,
                "is clustered by it: cluster the table by other columns first (clusterBy)",
                "DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN",
            )
    for path in metadata_paths:
        schema = change_struct(schema, path[:-1], partial(_without, path=path, table=table))
    metadata = _without_statistics(with_schema(configuration, schema), metadata_paths)
    return DefinitionChange(Operation("DROP COLUMNS", {"columns": [show_path(p) for p in metadata_paths]}), metadata)


def alter_column(snapshot: Snapshot, path: Path, change: ColumnChange) -> DefinitionChange:
    """Another type, comment, nullability, default or place for one column or field.

    Whether rows are null where NOT NULL is asked for is for the caller to look at: the change then depends on the rows.

    Raises: UserError (DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP for a type that is not wider or a table without type
        widening, WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED, ...); what ``check_nothing_depends`` raises.
    """
    configuration = snapshot.configuration
    table = configuration.table_root
    spelled = spelled_path(configuration.schema, path, table)
    before = field_at(configuration.schema, spelled)
    after = before
    if change.field_type is not None and change.field_type.data_type != before.data_type:
        after = _retyped(configuration, spelled, before, change.field_type)
    if change.comment is not None:
        after = replace(after, metadata={**after.metadata, "comment": change.comment})
    if change.nullable is not None:
        after = _with_nullability(configuration, spelled, after, change.nullable)
    if change.default is not None or change.drop_default:
        after = _with_default(configuration, spelled, after, change.default)
    schema = change_field(configuration.schema, spelled, lambda _: after)
    # the reference notes the column without what the change itself adds to the record of its types
    told = {k: v for k, v in after.metadata.items() if k != TYPE_CHANGES or k in before.metadata}
    if TYPE_CHANGES in told:
        told[TYPE_CHANGES] = before.metadata[TYPE_CHANGES]
    parameters: dict[str, object] = {"column": _logged(replace(after, metadata=told), spelled)}
    if change.position is not None:
        _, struct = struct_at(schema, spelled[:-1], table)
        position = _position(change.position, struct, spelled, table)
        assert position is not None
        schema = change_struct(schema, spelled[:-1], lambda s: placed(s, after, position, table))
        parameters |= _logged_position(position)
    metadata = with_schema(configuration, schema)
    return DefinitionChange(
        Operation("CHANGE COLUMN", parameters),
        metadata,
        depends_on_rows=before.nullable and not after.nullable,
    )


def _check_new(field: StructField, path: Path, struct: StructType, table: str) -> None:
    if any(f.name.lower() == field.name.lower() for f in struct):
        raise _exists(path, table)
    why, code = None, "DELTA_OPERATION_NOT_ALLOWED"
    if not field.nullable:
        why = (
            "NOT NULL, which no row that the table has could be: add it nullable, give it values, and set NOT NULL then"
        )
    elif GENERATION_EXPRESSION in field.metadata:
        why = "generated, and rows that are there have no value of it: overwrite the table with the new schema"
    elif any(key in field.metadata for key in IDENTITY_KEYS):
        why = "an identity column, and rows that are there have no value of it: create the table with it"
    elif CURRENT_DEFAULT in field.metadata:
        code = "WRONG_COLUMN_DEFAULTS_FOR_DELTA_ALTER_TABLE_ADD_COLUMN_NOT_SUPPORTED"
        why = "given a default, which rows that are there would not have: add it without, and set the default then"
    if why is not None:
        raise UnsupportedOperationError(
            f"the column '{show_path(path)}' cannot be added to table {table}: it is {why}.",
            code=code,
            table=table,
            column=show_path(path),
        )


def _retyped(configuration: TableConfiguration, path: Path, before: StructField, wanted: StructField) -> StructField:
    table = configuration.table_root
    changed = f"from {display(before.data_type)} to {display(wanted.data_type)}"
    for_iceberg = any(configuration.supports(ICEBERG_COMPAT_FEATURES[v]) for v in (1, 2))
    problem = None
    if not can_widen(before.data_type, wanted.data_type, for_iceberg=for_iceberg):
        problem = (
            f"not every {display(before.data_type)} is a {display(wanted.data_type)} that files of the old type hold"
        )
    elif not (configuration.properties.type_widening and configuration.supports(Feature.TYPE_WIDENING)):
        problem = "the table does not allow it: set delta.enableTypeWidening=true first"
    elif path[0] in configuration.partition_columns:
        problem = "the table is partitioned by it, and the log has its values as texts of the old type"
    elif any(key in before.metadata for key in IDENTITY_KEYS):
        problem = "it is an identity column, which is a bigint"
    elif GENERATION_EXPRESSION in before.metadata:
        problem = "it is a generated column, whose expression has the type"
    if problem is not None:
        raise UserError(
            f"the type of the column '{show_path(path)}' of table {table} cannot change {changed}: {problem}.",
            code="DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP",
            table=table,
            column=show_path(path),
        )
    check_nothing_depends(configuration, path, "change the type of")
    return record_type_changes(replace(before, data_type=wanted.data_type), before.data_type)


def _with_nullability(configuration: TableConfiguration, path: Path, f: StructField, nullable: bool) -> StructField:
    if IDENTITY_STEP in f.metadata and nullable != f.nullable:
        raise UserError(
            f"the column '{show_path(path)}' of table {configuration.table_root} is an identity column, whose "
            "nullability is that of its values.",
            code="DELTA_IDENTITY_COLUMNS_ALTER_COLUMN_NOT_SUPPORTED",
            table=configuration.table_root,
            column=show_path(path),
        )
    return replace(f, nullable=nullable)


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
    if any(key in f.metadata for key in (GENERATION_EXPRESSION, *IDENTITY_KEYS)):
        raise UserError(
            f"the column '{show_path(path)}' of table {table} cannot have a default: the table computes its values.",
            code="DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP",
            table=table,
            column=show_path(path),
        )
    return replace(f, metadata={**metadata, CURRENT_DEFAULT: default})


def _without(struct: StructType, path: Path, table: str) -> StructType:
    left = tuple(f for f in struct if f.name != path[-1])
    if not left:
        raise UserError(
            f"'{show_path(path)}' is the last of its kind in table {table}, and what is left would have no columns. "
            "Drop what it is in, or add another first.",
            code="DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA",
            table=table,
            column=show_path(path),
        )
    return StructType(left)


def _require_mapping(configuration: TableConfiguration, verb: str, code: str) -> None:
    if configuration.column_mapping_mode == "none":
        raise UserError(
            f"cannot {verb} a column of table {configuration.table_root}, whose files find columns by their names. Set "
            "delta.columnMapping.mode=name first: no file is written anew for that.",
            code=code,
            table=configuration.table_root,
        )


def _physical(configuration: TableConfiguration, path: Path) -> Path:
    """The physical path, up to the first array or map: clustering columns are in structs alone."""
    names: list[str] = []
    struct: object = configuration.schema
    for name in path:
        if not isinstance(struct, StructType):
            break
        names.append(name)
        struct = field_at(struct, (name,)).data_type
    return physical_path(configuration.schema, tuple(names)) if len(names) == len(path) else ("",)


def _with_statistics_renamed(metadata: Metadata, old: Path, new: Path) -> Metadata:
    """``delta.dataSkippingStatsColumns`` names columns: it goes with them."""
    return _with_statistics(metadata, lambda path: (*new, *path[len(old) :]) if _begins(path, old) else path)


def _without_statistics(metadata: Metadata, dropped: Sequence[Path]) -> Metadata:
    return _with_statistics(metadata, lambda path: None if any(_begins(path, one) for one in dropped) else path)


def _with_statistics(metadata: Metadata, change: object) -> Metadata:
    configuration = dict(metadata.configuration or {})
    text = configuration.get(Property.DATA_SKIPPING_STATS_COLUMNS)
    if text is None:
        return metadata
    assert callable(change)
    paths = [found for path in parse_columns(text) if (found := change(path)) is not None]
    configuration[Property.DATA_SKIPPING_STATS_COLUMNS] = ",".join(map(show_path, paths))
    return msgspec.structs.replace(metadata, configuration=configuration)


def _begins(path: Path, with_: Path) -> bool:
    return [p.lower() for p in path[: len(with_)]] == [p.lower() for p in with_]


def _position(position: Position | None, struct: StructType, path: Path, table: str) -> Position | None:
    """The position in the schema's spelling. Raises: ColumnNotFoundError for a neighbour that is not there."""
    if position is None or position.after is None:
        return position
    neighbour = struct.find(position.after)
    if neighbour is None or neighbour.name == path[-1]:
        placed(
            StructType(tuple(f for f in struct if f.name != path[-1])),
            StructField(path[-1], StructType(())),
            position,
            table,
        )
    assert neighbour is not None
    return Position(neighbour.name)


def _logged(field: StructField, path: Path) -> dict[str, object]:
    kind = _KINDS.get(type(field.data_type)) or type_to_json(field.data_type)
    return {
        "name": show_path(path),
        "type": kind,
        "nullable": field.nullable,
        "metadata": dict(field.metadata),
    }


def _logged_position(position: Position | None) -> dict[str, object]:
    if position is None:
        return {}
    return {"position": "FIRST" if position.after is None else f"AFTER {position.after}"}


def _exists(path: Path, table: str) -> UserError:
    return UserError(
        f"table {table} has a column '{show_path(path)}' already (names are compared without case). Choose another.",
        code="FIELD_ALREADY_EXISTS",
        table=table,
        column=show_path(path),
    )


def _refused_drop(path: Path, table: str, why: str, code: str) -> UserError:
    return UserError(
        f"the column '{show_path(path)}' of table {table} cannot be dropped: the table {why}.",
        code=code,
        table=table,
        column=show_path(path),
    )
