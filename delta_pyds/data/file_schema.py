"""The columns of one Parquet file as a tree with leaf column indices.

Invariant: leaves are numbered as the file numbers its column chunks. So columns are read by index, and a name with
dots is never split.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as pt

from delta_pyds.columnar.cast import is_list_like

_FIELD_ID = b"PARQUET:field_id"
_VIEWS = (pa.string_view().id, pa.binary_view().id)


@dataclass(frozen=True)
class FileColumn:
    """A column or nested field of a file. Its leaves are ``range(first_leaf, last_leaf)``.

    ``children``: the fields of a struct, the element of a list, or key and value of a map.
    ``is_extension``: decoded arrays have an Arrow extension type around ``data_type``.
    """

    name: str
    data_type: pa.DataType
    field_id: int | None
    first_leaf: int
    last_leaf: int
    children: tuple[FileColumn, ...] = ()
    is_extension: bool = False

    def has_field_ids(self) -> bool:
        return self.field_id is not None or any(c.has_field_ids() for c in self.children)


def file_columns(schema: pa.Schema) -> tuple[FileColumn, ...]:
    """The top-level columns of a file, from the Arrow schema of its footer."""
    columns, at = [], 0
    for field in schema:
        column = _column(field.with_type(without_views(field.type)), at)
        columns.append(column)
        at = column.last_leaf
    return tuple(columns)


def _column(field: pa.Field, first_leaf: int) -> FileColumn:
    data_type = field.type
    while isinstance(data_type, pa.BaseExtensionType):
        data_type = data_type.storage_type
    field_id = (field.metadata or {}).get(_FIELD_ID)
    children, at = [], first_leaf
    for part in _parts(data_type):
        child = _column(part, at)
        children.append(child)
        at = child.last_leaf
    return FileColumn(
        name=field.name,
        data_type=data_type,
        field_id=None if field_id is None or int(field_id) < 0 else int(field_id),
        first_leaf=first_leaf,
        last_leaf=at if children else first_leaf + 1,
        children=tuple(children),
        is_extension=data_type is not field.type,
    )


def _parts(data_type: pa.DataType) -> Sequence[pa.Field]:
    if pt.is_struct(data_type):
        return [data_type.field(i) for i in range(data_type.num_fields)]
    if pt.is_map(data_type):
        return [data_type.key_field, data_type.item_field]
    if is_list_like(data_type):
        return [data_type.value_field]
    return []


def has_views(data_type: pa.DataType) -> bool:
    """Whether ``without_views`` may return another type. Cheap, because it runs for every batch."""
    if data_type.num_fields:
        return any(has_views(data_type.field(i).type) for i in range(data_type.num_fields))
    return data_type.id in _VIEWS


def without_views(data_type: pa.DataType) -> pa.DataType:
    """The type with string and binary views replaced by plain strings and bytes.

    A file may ask for views (deltalake's merges and updates do), for which Arrow has neither ``take`` nor ``filter``.
    """
    if pt.is_string_view(data_type):
        return pa.string()
    if pt.is_binary_view(data_type):
        return pa.binary()
    if pt.is_struct(data_type):
        return pa.struct([f.with_type(without_views(f.type)) for f in data_type])
    if pt.is_map(data_type):
        key, item = data_type.key_field, data_type.item_field
        return pa.map_(key.with_type(without_views(key.type)), item.with_type(without_views(item.type)))
    for test, make in ((pt.is_list, pa.list_), (pt.is_large_list, pa.large_list)):
        if test(data_type):
            return make(data_type.value_field.with_type(without_views(data_type.value_type)))
    return data_type
