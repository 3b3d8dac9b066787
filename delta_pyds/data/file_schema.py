"""The columns of one Parquet file as a tree that knows its leaf column indices.

Invariant: leaves are counted as the file counts its column chunks, so that
columns are read by index and no name is ever taken apart at its dots.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as pt

from delta_pyds.columnar.cast import is_list_like

_FIELD_ID = b"PARQUET:field_id"


@dataclass(frozen=True)
class FileColumn:
    """A column or nested field of a file. Its leaves are ``range(first_leaf, last_leaf)``.

    ``children``: of a struct its fields, of a list its element, of a map key and value.
    ``is_extension``: decoded arrays wear an Arrow extension type around ``data_type``.
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
    """The top-level columns of a file, given the Arrow schema that its footer decodes to."""
    columns, at = [], 0
    for field in schema:
        column = _column(field, at)
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
