"""The columns that a scan returns: all, a list of names, or a user's schema."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from delta_pyds.errors import ColumnNotFoundError, OptionError, UserError
from delta_pyds.protocol.schema import (
    COLUMN_MAPPING_PHYSICAL_NAME,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    display,
)


def parse_column_list(text: str, option: str = "columns") -> tuple[tuple[str, ...], ...]:
    """Read ``a,b.c,`odd.name```: names separated by commas, nested by dots, quoted by backticks.

    Raises: OptionError if the text is not such a list.
    """
    paths: list[tuple[str, ...]] = []
    path: list[str] = []
    name, quoted, was_quoted = "", False, False

    def end_of_name() -> None:
        nonlocal name, was_quoted
        part = name if was_quoted else name.strip()
        if not part:
            raise OptionError(
                f"the option {option} is '{text}', which has an empty name. Write it like a,b.c,`odd.name`.",
                option=option,
            )
        path.append(part)
        name, was_quoted = "", False

    i = 0
    while i < len(text):
        c = text[i]
        if quoted:
            if c == "`" and text[i + 1 : i + 2] == "`":
                name, i = name + "`", i + 1
            elif c == "`":
                quoted = False
            else:
                name += c
        elif c == "`" and not name.strip():
            name, quoted, was_quoted = "", True, True
        elif c in ".,":
            end_of_name()
            if c == ",":
                paths.append(tuple(path))
                path.clear()
        elif not (was_quoted and c.isspace()):
            name += c
        i += 1
    if quoted:
        raise OptionError(f"the option {option} is '{text}', which has an unclosed backtick.", option=option)
    end_of_name()
    paths.append(tuple(path))
    return tuple(paths)


def select_columns(schema: StructType, paths: Iterable[Sequence[str]], table: str) -> StructType:
    """The columns of the given names, in that order; nested fields are pruned, several of one struct are merged.

    Names match without case; the table's spelling stays.
    Raises: ColumnNotFoundError naming the missing column and the existing ones.
    """
    selected: dict[str, StructField] = {}
    for path in paths:
        field = _select(schema, tuple(path), tuple(path), table)
        known = selected.get(field.name)
        selected[field.name] = field if known is None else _merge(known, field, schema)
    return StructType(tuple(selected.values()))


def _select(schema: StructType, path: tuple[str, ...], whole: tuple[str, ...], table: str) -> StructField:
    field = schema.find(path[0])
    if field is None:
        raise ColumnNotFoundError(
            f"the table {table} has no column `{'.'.join(whole)}`. It has: {', '.join(schema.names)}.",
            table=table,
            column=".".join(whole),
        )
    if len(path) == 1:
        return field
    if not isinstance(field.data_type, StructType):
        raise ColumnNotFoundError(
            f"the column `{field.name}` of table {table} is of type {display(field.data_type)}, "
            f"so it has no field `{'.'.join(path[1:])}`. Only structs have fields to select.",
            table=table,
            column=".".join(whole),
        )
    inner = _select(field.data_type, path[1:], whole, table)
    return replace(field, data_type=StructType((inner,)))


def _merge(left: StructField, right: StructField, within: StructType) -> StructField:
    """Two selections from one field, merged; nested fields in the table's order."""
    if left == right:
        return left
    full = within.find(left.name)
    assert full is not None
    if not (
        isinstance(left.data_type, StructType)
        and isinstance(right.data_type, StructType)
        and isinstance(full.data_type, StructType)
    ):
        return full
    merged = {f.name: f for f in left.data_type}
    for f in right.data_type:
        merged[f.name] = _merge(merged[f.name], f, full.data_type) if f.name in merged else f
    order = full.data_type.names
    return replace(left, data_type=StructType(tuple(merged[n] for n in order if n in merged)))


def match_user_schema(schema: StructType, asked: StructType, table: str) -> StructType:
    """The table's columns in the order, spelling and nullability of the user's schema.

    Types must be the table's; nested fields may be left out. NOT NULL is accepted only if the table guarantees it, too.
    Raises:
        ColumnNotFoundError: the table lacks a column or field.
        UserError: the type or nullability differs (DELTA_READ_SCHEMA_CONFLICT).
    """
    fields = []
    for want in asked:
        have = schema.find(want.name)
        if have is None:
            raise ColumnNotFoundError(
                f"the schema given for table {table} has a column `{want.name}` that the table does not have. "
                f"It has: {', '.join(schema.names)}.",
                table=table,
                column=want.name,
            )
        fields.append(_match_field(have, want, want.name, table))
    return StructType(tuple(fields))


def _match_field(have: StructField, want: StructField, path: str, table: str) -> StructField:
    # the result has the user's spelling; the physical name finds the data
    metadata = {**have.metadata, COLUMN_MAPPING_PHYSICAL_NAME: have.physical_name}
    _check_nullable(have.nullable, want.nullable, path, table)
    return StructField(want.name, _match_type(have.data_type, want.data_type, path, table), want.nullable, metadata)


def _check_nullable(have: bool, want: bool, path: str, table: str) -> None:
    if have and not want:
        raise UserError(
            f"the schema given for table {table} says that `{path}` is never null, but the table allows nulls there.",
            code="DELTA_READ_SCHEMA_CONFLICT",
            table=table,
            column=path,
        )


def _match_type(have: DataType, want: DataType, path: str, table: str) -> DataType:
    if isinstance(have, StructType) and isinstance(want, StructType):
        fields = []
        for f in want:
            inner = have.find(f.name)
            if inner is None:
                raise ColumnNotFoundError(
                    f"the schema given for table {table} has a field `{path}.{f.name}` that the table does not have.",
                    table=table,
                    column=f"{path}.{f.name}",
                )
            fields.append(_match_field(inner, f, f"{path}.{f.name}", table))
        return StructType(tuple(fields))
    if isinstance(have, ArrayType) and isinstance(want, ArrayType):
        _check_nullable(have.contains_null, want.contains_null, path + ".element", table)
        return ArrayType(
            _match_type(have.element_type, want.element_type, path + ".element", table), want.contains_null
        )
    if isinstance(have, MapType) and isinstance(want, MapType):
        _check_nullable(have.value_contains_null, want.value_contains_null, path + ".value", table)
        return MapType(
            _match_type(have.key_type, want.key_type, path + ".key", table),
            _match_type(have.value_type, want.value_type, path + ".value", table),
            want.value_contains_null,
        )
    if have != want:
        raise UserError(
            f"the schema given for table {table} says that `{path}` is {display(want)}, but it is {display(have)}. "
            "Leave the schema out, or give the table's types and cast the columns afterwards.",
            code="DELTA_READ_SCHEMA_CONFLICT",
            table=table,
            column=path,
        )
    return have
