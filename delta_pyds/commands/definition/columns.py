"""Columns and nested fields added, renamed and dropped.

Invariant: no file is read or written; every existing row keeps its values, under the new names and types. A change that
an expression, the partitioning or the clustering forbids is refused, naming it.

Protocol: "Change Metadata", "Column Mapping", "Type Widening", "Default Columns".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import msgspec

from delta_pyds.commands.definition.change import DefinitionChange
from delta_pyds.errors import UnsupportedOperationError, UserError
from delta_pyds.protocol.actions import Metadata
from delta_pyds.protocol.char_types import CHAR_VARCHAR_TYPE
from delta_pyds.protocol.properties import Property
from delta_pyds.protocol.schema import (
    CURRENT_DEFAULT,
    GENERATION_EXPRESSION,
    STRING,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    structs,
    type_to_json,
)
from delta_pyds.table.configuration import TableConfiguration
from delta_pyds.table.definition.clustering import clustering_columns
from delta_pyds.table.definition.dependents import check_nothing_depends
from delta_pyds.table.definition.schema_evolution import evolve_metadata
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


def add_columns(snapshot: Snapshot, columns: Sequence[NewColumn]) -> DefinitionChange:
    """Add columns and fields, which are null in every existing row.

    Raises: UserError (FIELD_ALREADY_EXISTS, DELTA_ADD_COLUMN_PARENT_NOT_STRUCT,
        DELTA_ADDING_COLUMN_... and those of ``schema_rules``); UnsupportedOperationError for a column that is NOT NULL,
        generated, an identity column, or has a default.
    """
    configuration = snapshot.configuration
    table = configuration.table_root
    schema = configuration.schema
    added: dict[Path, StructField] = {}
    logged_columns = []
    for column in columns:
        parent, struct = struct_at(schema, column.parent, table)
        path = (*parent, column.field.name)
        check_new(column.field, path, struct, table)
        added[path] = column.field
        position = position_of(column.position, struct, path, table)
        schema = change_struct(schema, parent, partial(placed, field=column.field, position=position, table=table))
        logged_columns.append({"column": _logged_new(column.field, path), **logged_position(position)})
    mapped = configuration.column_mapping_mode != "none"
    check_added(added, mapped=mapped, reserved=configuration.hidden_columns)
    metadata = evolve_metadata(configuration, schema)
    return DefinitionChange(Operation("ADD COLUMNS", {"columns": logged_columns}), metadata)


def rename_column(snapshot: Snapshot, path: Path, new_name: str) -> DefinitionChange:
    """Rename a column or a field, without rewriting files.

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
    metadata = _with_statistics(
        evolve_metadata(configuration, schema), lambda path: (*new, *path[len(old) :]) if _begins(path, old) else path
    )
    if len(old) == 1:
        partitions = [new_name if name == old[0] else name for name in metadata.partition_columns or ()]
        metadata = msgspec.structs.replace(metadata, partition_columns=partitions)
    parameters = {"oldColumnPath": _name(old), "newColumnPath": _name(new)}
    return DefinitionChange(Operation("RENAME COLUMN", parameters), metadata)


def drop_columns(snapshot: Snapshot, paths: Sequence[Path]) -> DefinitionChange:
    """Drop columns and fields. Their values stay in the files, but are no longer read.

    Raises: UserError (DELTA_UNSUPPORTED_DROP_COLUMN without column mapping, DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN,
        DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN, DELTA_UNSUPPORTED_DROP_NESTED_COLUMN_FROM_NON_STRUCT_TYPE) and what
        ``check_nothing_depends`` raises.
    """
    configuration = snapshot.configuration
    table = configuration.table_root
    _require_mapping(configuration, "drop", "DELTA_UNSUPPORTED_DROP_COLUMN")
    schema = configuration.schema
    spelled = [spelled_path(schema, path, table) for path in paths]
    for path in spelled:
        check_can_go(snapshot, path)
    for path in spelled:
        schema = change_struct(schema, path[:-1], partial(_without, path=path, table=table))
    metadata = without_statistics(evolve_metadata(configuration, schema), spelled)
    return DefinitionChange(Operation("DROP COLUMNS", {"columns": [_name(p) for p in spelled]}), metadata)


def check_can_go(snapshot: Snapshot, path: Path) -> None:
    """Raises: UserError for a column or field that an expression, the partitioning or the clustering needs."""
    configuration, table = snapshot.configuration, snapshot.table_root
    check_nothing_depends(configuration, path, "drop")
    if path[0] in configuration.partition_columns:
        raise _refused_drop(path, table, "is partitioned by it", "DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN")
    physical = _physical(configuration, path)
    if any(column[: len(physical)] == physical for column in clustering_columns(snapshot.domain_metadata)):
        raise _refused_drop(
            path,
            table,
            "is clustered by it: cluster the table by other columns first (clusterBy)",
            "DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN",
        )


def check_new(field: StructField, path: Path, struct: StructType, table: str) -> None:
    if any(f.name.lower() == field.name.lower() for f in struct):
        raise _exists(path, table)
    why, code = None, "DELTA_OPERATION_NOT_ALLOWED"
    if not field.nullable or any(not inner.nullable for struct in structs(field.data_type) for inner in struct):
        why = "NOT NULL, but existing rows would be null: add it as nullable, update the rows, and set NOT NULL then"
    elif GENERATION_EXPRESSION in field.metadata:
        why = "generated, and existing rows have no value of it: overwrite the table with the new schema"
    elif any(key in field.metadata for key in IDENTITY_KEYS):
        why = "an identity column, and existing rows have no value of it: create the table with it"
    elif CURRENT_DEFAULT in field.metadata:
        code = "WRONG_COLUMN_DEFAULTS_FOR_DELTA_ALTER_TABLE_ADD_COLUMN_NOT_SUPPORTED"
        why = "given a default, which existing rows would not get: add it without one, and set the default afterwards"
    if why is not None:
        raise UnsupportedOperationError(
            f"the column '{show_path(path)}' cannot be added to table {table}: it is {why}.",
            code=code,
            table=table,
            column=show_path(path),
        )


def _without(struct: StructType, path: Path, table: str) -> StructType:
    left = tuple(f for f in struct if f.name != path[-1])
    if not left:
        raise UserError(
            f"'{show_path(path)}' of table {table} is the last column or the last field of its struct. Drop the whole "
            "struct, or add another column or field first.",
            code="DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA",
            table=table,
            column=show_path(path),
        )
    return StructType(left)


def _require_mapping(configuration: TableConfiguration, verb: str, code: str) -> None:
    if configuration.column_mapping_mode == "none":
        raise UserError(
            f"cannot {verb} a column of table {configuration.table_root}: without column mapping, columns are found in "
            "files by their names. Set delta.columnMapping.mode=name first; that rewrites no file.",
            code=code,
            table=configuration.table_root,
        )


def _physical(configuration: TableConfiguration, path: Path) -> Path:
    """The physical path of a field. Inside an array or map it is not a valid path: such a field clusters no table."""
    names: list[str] = []
    struct: object = configuration.schema
    for name in path:
        if not isinstance(struct, StructType):
            break
        names.append(name)
        struct = field_at(struct, (name,)).data_type
    return physical_path(configuration.schema, tuple(names)) if len(names) == len(path) else ("",)


def without_statistics(metadata: Metadata, dropped: Sequence[Path]) -> Metadata:
    return _with_statistics(metadata, lambda path: None if any(_begins(path, one) for one in dropped) else path)


def _with_statistics(metadata: Metadata, change: Callable[[Path], Path | None]) -> Metadata:
    """The metadata with other paths in ``delta.dataSkippingStatsColumns``; None leaves one out."""
    configuration = dict(metadata.configuration or {})
    text = configuration.get(Property.DATA_SKIPPING_STATS_COLUMNS)
    if text is None:
        return metadata
    paths = [found for path in parse_columns(text) if (found := change(path)) is not None]
    configuration[Property.DATA_SKIPPING_STATS_COLUMNS] = ",".join(map(show_path, paths))
    return msgspec.structs.replace(metadata, configuration=configuration)


def _begins(path: Path, with_: Path) -> bool:
    return [p.lower() for p in path[: len(with_)]] == [p.lower() for p in with_]


def position_of(position: Position | None, struct: StructType, path: Path, table: str) -> Position | None:
    """The position in the schema's spelling. Raises: ColumnNotFoundError for an unknown neighbour."""
    if position is None or position.after is None:
        return position
    neighbour = struct.find(position.after)
    if neighbour is None:
        placed(
            StructType(tuple(f for f in struct if f.name != path[-1])),
            StructField(path[-1], StructType(())),
            position,
            table,
        )
    assert neighbour is not None
    return Position(neighbour.name)


def logged(field: StructField, path: Path) -> dict[str, object]:
    kind = _KINDS.get(type(field.data_type)) or type_to_json(field.data_type)
    return {
        "name": _name(path),
        "type": kind,
        "nullable": field.nullable,
        "metadata": dict(field.metadata),
    }


def _logged_new(field: StructField, path: Path) -> dict[str, object]:
    """A new text column as the reference's history shows it: with its declared type instead of its metadata."""
    declared = field.metadata.get(CHAR_VARCHAR_TYPE)
    bare = replace(field, metadata={k: v for k, v in field.metadata.items() if k != CHAR_VARCHAR_TYPE})
    return logged(bare, path) | ({"type": declared} if declared and field.data_type == STRING else {})


def _name(path: Path) -> str:
    """The path as the reference's history shows it: in backticks only if a name contains a dot."""
    return ".".join(f"`{part}`" if "." in part else part for part in path)


def logged_position(position: Position | None) -> dict[str, object]:
    if position is None:
        return {}
    return {"position": "FIRST" if position.after is None else f"AFTER {position.after}"}


def _exists(path: Path, table: str) -> UserError:
    return UserError(
        f"table {table} already has a column '{show_path(path)}' (names are case-insensitive). Choose another name.",
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
