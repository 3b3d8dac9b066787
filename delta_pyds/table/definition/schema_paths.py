"""Columns and nested fields by their paths: find, replace, add, move and remove them in a schema.

A path has the names of fields from the outside in. ``element``, ``key`` and ``value`` name the parts of arrays and
maps, as in Spark's ALTER TABLE. Names match without case, and are returned in the schema's spelling.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from delta_pyds.errors import ColumnNotFoundError, UserError
from delta_pyds.protocol.schema import ArrayType, DataType, MapType, StructField, StructType, parts_of, with_parts
from delta_pyds.table.definition.statistics_columns import parse_columns, show_path

Path = tuple[str, ...]


@dataclass(frozen=True)
class Position:
    """The position of a field among its siblings: first, or right after another one."""

    after: str | None = None


def one_path(text: str) -> Path:
    """A path from a string such as ``a.`b c`.element``. Raises: ColumnNotFoundError if it is not one path."""
    paths = parse_columns(text)
    if len(paths) != 1:
        raise ColumnNotFoundError(f"'{text}' does not name one column.", column=text)
    return paths[0]


def spelled_path(schema: StructType, path: Path, table: str, *, inner: bool = False) -> Path:
    """The path of a field, in the schema's spelling.

    Args:
        inner: the path may also end at an element, key or value.
    Raises:
        ColumnNotFoundError: no such field (lists the existing ones), or the path ends at an element, key or value.
    """
    found, _, is_field = _walk(schema, path, table)
    if not is_field and not inner:
        raise ColumnNotFoundError(
            f"'{show_path(path)}' of table {table} is the element, key or value of an array or map, not a named field: "
            "name the column, or a field of a struct.",
            code="DELTA_COLUMN_NOT_FOUND",
            table=table,
            column=show_path(path),
        )
    return found


def field_at(schema: StructType, path: Path) -> StructField:
    """The field at a path in the schema's own spelling.

    An element, key or value is returned as a field with that name, without metadata.
    """
    data_type: DataType = schema
    field: StructField | None = None
    for name in path:
        if isinstance(data_type, StructType):
            field = next(f for f in data_type if f.name == name)
        else:
            field = StructField(name, parts_of(data_type)[name], nullable=_may_hold_null(data_type, name))
        data_type = field.data_type
    assert field is not None
    return field


def innermost_field(schema: StructType, path: Path) -> Path:
    """The path of the innermost field on a path in the schema's own spelling.

    Protocol: "Type Change Metadata": that field records changes of its elements, keys and values.
    """
    data_type: DataType = schema
    count = 0
    for number, name in enumerate(path, 1):
        if isinstance(data_type, StructType):
            data_type, count = next(f for f in data_type if f.name == name).data_type, number
        else:
            data_type = parts_of(data_type)[name]
    return path[:count]


def with_inner_type(outer: DataType, path: Path, data_type: DataType) -> DataType:
    """A type with another type at a path of ``element``, ``key`` and ``value``; an empty path returns that type."""
    if not path:
        return data_type
    return with_parts(outer, lambda part, name: with_inner_type(part, path[1:], data_type) if name == path[0] else part)


def struct_at(schema: StructType, path: Path, table: str) -> tuple[Path, StructType]:
    """The struct at a path: the type of a column, an element, a key or a value, with its path in the schema's spelling.

    Raises:
        ColumnNotFoundError: no such path.
        UserError: the path does not end at a struct (DELTA_ADD_COLUMN_PARENT_NOT_STRUCT).
    """
    found, data_type, _ = _walk(schema, path, table)
    if not isinstance(data_type, StructType):
        raise UserError(
            f"'{show_path(path)}' of table {table} is not a struct, so it cannot have fields. To name the element of "
            "an array append '.element'; in a map append '.key' or '.value'.",
            code="DELTA_ADD_COLUMN_PARENT_NOT_STRUCT",
            table=table,
            column=show_path(path),
        )
    return found, data_type


def change_field(schema: StructType, path: Path, change: Callable[[StructField], StructField]) -> StructType:
    """The schema with a changed field at a path in the schema's spelling."""

    def within(struct: StructType) -> StructType:
        return StructType(tuple(change(f) if f.name == path[-1] else f for f in struct))

    return change_struct(schema, path[:-1], within)


def change_struct(schema: StructType, path: Path, change: Callable[[StructType], StructType]) -> StructType:
    """The schema with a changed struct at a path in the schema's spelling."""
    changed = _changed(schema, path, change)
    assert isinstance(changed, StructType)
    return changed


def placed(struct: StructType, field: StructField, position: Position | None, table: str) -> StructType:
    """The struct with one field added, or with its own field of that name moved.

    Args:
        position: None for the end. A field that moves after itself stays.
    Raises:
        ColumnNotFoundError: the sibling does not exist.
    """
    others = [f for f in struct if f.name != field.name]
    if position is None:
        return StructType((*others, field))
    if position.after is None:
        return StructType((field, *others))
    if position.after == field.name and len(others) < len(struct.fields):
        return StructType(tuple(field if f.name == field.name else f for f in struct))
    neighbour = StructType(tuple(others)).find(position.after)
    if neighbour is None:
        raise ColumnNotFoundError(
            f"'{field.name}' of table {table} cannot be placed after '{position.after}', which is not one of its "
            f"siblings. They are: {', '.join(f.name for f in others)}.",
            code="DELTA_COLUMN_NOT_FOUND",
            table=table,
            column=position.after,
        )
    at = others.index(neighbour) + 1
    return StructType((*others[:at], field, *others[at:]))


def _walk(schema: StructType, path: Path, table: str) -> tuple[Path, DataType, bool]:
    """The path in the schema's spelling, the type at its end, and whether a field is there.

    Raises: ColumnNotFoundError: no such path.
    """
    found: list[str] = []
    data_type: DataType = schema
    is_field = False
    for name in path:
        step = _step(data_type, name)
        if step is None:
            raise _not_found(path, tuple(found), data_type, table)
        spelled, data_type, is_field = step
        found.append(spelled)
    return tuple(found), data_type, is_field


def _step(data_type: DataType, name: str) -> tuple[str, DataType, bool] | None:
    """One step of a path: the spelling, the type, and whether it is a field."""
    if isinstance(data_type, StructType):
        field = data_type.find(name)
        return None if field is None else (field.name, field.data_type, True)
    part = parts_of(data_type).get(name.lower())
    return None if part is None else (name.lower(), part, False)


def _may_hold_null(data_type: DataType, name: str) -> bool:
    if isinstance(data_type, ArrayType):
        return data_type.contains_null
    assert isinstance(data_type, MapType)
    return name == "value" and data_type.value_contains_null


def _changed(data_type: DataType, path: Path, change: Callable[[StructType], StructType]) -> DataType:
    if not path:
        assert isinstance(data_type, StructType)
        return change(data_type)
    if isinstance(data_type, StructType):
        return StructType(
            tuple(
                replace(f, data_type=_changed(f.data_type, path[1:], change)) if f.name == path[0] else f
                for f in data_type
            )
        )
    return with_parts(data_type, lambda part, name: _changed(part, path[1:], change) if name == path[0] else part)


def unresolved_column(name: str, schema: StructType, table: str) -> ColumnNotFoundError:
    """The error for a column that a statement names and the table does not have, with Spark's code."""
    return ColumnNotFoundError(
        f"the table {table} has no column '{name}'; its columns: {', '.join(schema.names)}.",
        code="UNRESOLVED_COLUMN.WITH_SUGGESTION",
        column=name,
    )


def _not_found(path: Path, found: Path, inside: DataType, table: str) -> ColumnNotFoundError:
    names = ", ".join(inside.names if isinstance(inside, StructType) else parts_of(inside) or ("nothing",))
    where = f"'{show_path(found)}' has" if found else "The columns are"
    return ColumnNotFoundError(
        f"the table {table} has no column '{show_path(path)}'. {where}: {names}.",
        code="DELTA_COLUMN_NOT_FOUND",
        table=table,
        column=show_path(path),
    )
