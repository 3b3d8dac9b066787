"""NOT NULL of columns, of fields in structs, and of elements and values.

A field inside a null struct, list or map is not a value of the row, and is not checked.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from delta_pyds.errors import ConstraintViolationError
from delta_pyds.protocol.schema import VOID, ArrayType, DataType, MapType, StructField, StructType

Inspect = Callable[[pa.Array], None]


class NotNull:
    """The NOT NULL parts of a table's columns. Columns without such parts cost nothing."""

    def __init__(self, schema: StructType, table: str) -> None:
        self._table = table
        found = ((f.name, self._inspect_field(f, f.name)) for f in schema)
        self._columns = [(name, inspect) for name, inspect in found if inspect is not None]

    def check(self, batch: pa.RecordBatch) -> None:
        """Raises: ConstraintViolationError (DELTA_NOT_NULL_CONSTRAINT_VIOLATED) naming the column."""
        for name, inspect in self._columns:
            inspect(batch.column(name))

    def _inspect_field(self, field: StructField, column: str) -> Inspect | None:
        return self._inspect(field.data_type, field.nullable or field.data_type == VOID, column)

    def _inspect(self, data_type: DataType, nullable: bool, column: str) -> Inspect | None:
        below = self._below(data_type, column)
        if nullable:
            return below

        def inspect(array: pa.Array) -> None:
            if array.null_count:
                raise ConstraintViolationError(
                    f"the column '{column}' of table {self._table} is NOT NULL, but a row to be written has a null "
                    "in it.",
                    code="DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
                    table=self._table,
                    column=column,
                )
            if below is not None:
                below(array)

        return inspect

    def _below(self, data_type: DataType, column: str) -> Inspect | None:
        if isinstance(data_type, StructType):
            fields = [(f.name, self._inspect_field(f, f"{column}.{f.name}")) for f in data_type]
            wanted = [(name, inspect) for name, inspect in fields if inspect is not None]
            return (lambda array: _fields(array, wanted)) if wanted else None
        if isinstance(data_type, ArrayType):
            nullable = data_type.contains_null or data_type.element_type == VOID
            element = self._inspect(data_type.element_type, nullable, f"{column}.element")
            return None if element is None else lambda array: element(array.flatten())
        if isinstance(data_type, MapType):
            nullable = data_type.value_contains_null or data_type.value_type == VOID
            key = self._inspect(data_type.key_type, True, f"{column}.key")
            value = self._inspect(data_type.value_type, nullable, f"{column}.value")
            return None if key is None and value is None else lambda array: _entries(array, key, value)
        return None


def _fields(array: pa.Array, wanted: list[tuple[str, Inspect]]) -> None:
    if array.null_count:
        # values inside a null struct do not count
        array = array.drop_null()
    for name, inspect in wanted:
        inspect(array.field(name))


def _entries(array: pa.Array, key: Inspect | None, value: Inspect | None) -> None:
    if array.null_count:
        array = array.drop_null()
    if not len(array):
        return
    start, end = array.offsets[0].as_py(), array.offsets[-1].as_py()
    if key is not None:
        key(array.keys.slice(start, end - start))
    if value is not None:
        value(array.items.slice(start, end - start))
