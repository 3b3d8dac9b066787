"""Columns and nested fields by their paths: found, replaced, added, moved and taken out of a schema.

A path has the names of fields from the outside in, and ``element``, ``key`` and ``value`` for what is in arrays and
maps, as Spark's ALTER TABLE names them. Names are found whatever their case, and
returned in the schema's spelling.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from delta_pyds.errors import ColumnNotFoundError, UserError
from delta_pyds.protocol.schema import ArrayType, DataType, MapType, StructField, StructType
from delta_pyds.table.definition.statistics_columns import parse_columns, show_path

Path = tuple[str, ...]


@dataclass(frozen=True)
class Position:
    """Where a field stands among its neighbours: first, or right after another one."""

    after: str | None = None


def one_path(text: str) -> Path:
    """A path of a text such as ``a.`b c`.element``. Raises: UserError (DELTA_COLUMN_NOT_FOUND) for any other text."""
    paths = parse_columns(text)
    if len(paths) != 1:
        raise ColumnNotFoundError(f"'{text}' does not name one column.", column=text)
    return paths[0]


def spelled_path(schema: StructType, path: Path, table: str, *, inner: bool = False) -> Path:
    """The path of a field, in the schema's spelling. ``inner``: it may end at an element, key or value.

    Raises: ColumnNotFoundError naming the fields that are there, and for a path that ends where it may not.
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
    if not is_field and not inner:
        raise ColumnNotFoundError(
            f"'{show_path(path)}' of table {table} is what is in an array or a map, and has no name of its own: name "
            "the column, or a field of a struct.",
            code="DELTA_COLUMN_NOT_FOUND",
            table=table,
            column=show_path(path),
        )
    return tuple(found)


def field_at(schema: StructType, path: Path) -> StructField:
    """The field at a path in the schema's own spelling.

    What is in an array or a map comes as a field named ``element``, ``key`` or ``value``, without metadata.
    """
    data_type: DataType = schema
    field: StructField | None = None
    for name in path:
        if isinstance(data_type, StructType):
            field = next(f for f in data_type if f.name == name)
        else:
            field = StructField(name, _inside(data_type, name), nullable=_holds_null(data_type, name))
        data_type = field.data_type
    assert field is not None
    return field


def owner_of(schema: StructType, path: Path) -> Path:
    """The path of the field that a path in the schema's own spelling ends at, or of the nearest around it.

    Protocol: "Type Change Metadata" names that field the one that records changes of elements, keys and values.
    """
    data_type: DataType = schema
    count = 0
    for number, name in enumerate(path, 1):
        if isinstance(data_type, StructType):
            data_type, count = next(f for f in data_type if f.name == name).data_type, number
        else:
            data_type = _inside(data_type, name)
    return path[:count]


def with_inner_type(outer: DataType, path: Path, data_type: DataType) -> DataType:
    """A type with another type at a path of ``element``, ``key`` and ``value``; the other type itself at none."""
    if not path:
        return data_type
    inner = with_inner_type(_inside(outer, path[0]), path[1:], data_type)
    if isinstance(outer, ArrayType):
        return replace(outer, element_type=inner)
    assert isinstance(outer, MapType)
    return replace(outer, key_type=inner) if path[0] == "key" else replace(outer, value_type=inner)


def struct_at(schema: StructType, path: Path, table: str) -> tuple[Path, StructType]:
    """The struct whose fields a path leads to: a column of that type, an element, a key or a value.

    Raises: ColumnNotFoundError; UserError (DELTA_ADD_COLUMN_PARENT_NOT_STRUCT) for what is no struct.
    """
    found: list[str] = []
    data_type: DataType = schema
    for name in path:
        step = _step(data_type, name)
        if step is None:
            raise _not_found(path, tuple(found), data_type, table)
        spelled, data_type, _ = step
        found.append(spelled)
    if not isinstance(data_type, StructType):
        raise UserError(
            f"'{show_path(path)}' of table {table} is no struct, so no field can be in it. The element of an array is "
            "named with '.element' behind, and what is in a map with '.key' and '.value'.",
            code="DELTA_ADD_COLUMN_PARENT_NOT_STRUCT",
            table=table,
            column=show_path(path),
        )
    return tuple(found), data_type


def change_field(schema: StructType, path: Path, change: Callable[[StructField], StructField]) -> StructType:
    """The schema with the field at a path, in the schema's spelling, changed."""

    def within(struct: StructType) -> StructType:
        return StructType(tuple(change(f) if f.name == path[-1] else f for f in struct))

    return change_struct(schema, path[:-1], within)


def change_struct(schema: StructType, path: Path, change: Callable[[StructType], StructType]) -> StructType:
    """The schema with the struct at a path, in the schema's spelling, changed."""
    changed = _changed(schema, path, change)
    assert isinstance(changed, StructType)
    return changed


def placed(struct: StructType, field: StructField, position: Position | None, table: str) -> StructType:
    """The struct with a field more, or with its own field of that name moved. ``position``: None for the end.

    After itself a field stays where it is.
    Raises: ColumnNotFoundError for a neighbour that is not there.
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
            f"'{field.name}' of table {table} cannot stand after '{position.after}', which is not beside it: there is "
            f"{', '.join(f.name for f in others)}.",
            code="DELTA_COLUMN_NOT_FOUND",
            table=table,
            column=position.after,
        )
    at = others.index(neighbour) + 1
    return StructType((*others[:at], field, *others[at:]))


def _step(data_type: DataType, name: str) -> tuple[str, DataType, bool] | None:
    """One step of a path: the spelling, what is there, and whether that is a field."""
    if isinstance(data_type, StructType):
        field = data_type.find(name)
        return None if field is None else (field.name, field.data_type, True)
    lower = name.lower()
    if isinstance(data_type, ArrayType) and lower == "element":
        return lower, data_type.element_type, False
    if isinstance(data_type, MapType) and lower in ("key", "value"):
        return lower, _inside(data_type, lower), False
    return None


def _inside(data_type: DataType, name: str) -> DataType:
    if isinstance(data_type, ArrayType):
        return data_type.element_type
    assert isinstance(data_type, MapType)
    return data_type.key_type if name == "key" else data_type.value_type


def _holds_null(data_type: DataType, name: str) -> bool:
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
    if isinstance(data_type, ArrayType):
        return replace(data_type, element_type=_changed(data_type.element_type, path[1:], change))
    assert isinstance(data_type, MapType)
    if path[0] == "key":
        return replace(data_type, key_type=_changed(data_type.key_type, path[1:], change))
    return replace(data_type, value_type=_changed(data_type.value_type, path[1:], change))


def _not_found(path: Path, found: Path, inside: DataType, table: str) -> ColumnNotFoundError:
    if isinstance(inside, StructType):
        there = ", ".join(inside.names)
    else:
        there = {ArrayType: "element", MapType: "key, value"}.get(type(inside), "nothing")
    where = f"In '{show_path(found)}' there are" if found else "The columns are"
    return ColumnNotFoundError(
        f"there is no column '{show_path(path)}' in table {table}. {where}: {there}.",
        code="DELTA_COLUMN_NOT_FOUND",
        table=table,
        column=show_path(path),
    )
