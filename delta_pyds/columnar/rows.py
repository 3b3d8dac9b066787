"""The rows of a batch for which an expression is evaluated, and which of them are live.

Invariant: a row that Spark would not evaluate never raises an error. Kernels compute all rows of a batch at once and
report the failed rows. Only a failed ``live`` row is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.errors import ColumnNotFoundError, ExpressionError

Resolver = Callable[[tuple[str, ...]], pa.Array]


def batch_resolver(batch: pa.RecordBatch) -> Resolver:
    """Resolve a batch's columns and nested fields by path; a field of a null struct is null."""
    index = {name: number for number, name in enumerate(batch.schema.names)}

    def resolve(path: tuple[str, ...]) -> pa.Array:
        if path[0] not in index:
            raise ColumnNotFoundError(
                f"the batch has no column '{path[0]}'; its columns: {', '.join(index) or 'none'}.",
                column=".".join(path),
            )
        return struct_field(batch.column(index[path[0]]), path[1:])

    return resolve


def struct_field(array: pa.Array, path: Sequence[str]) -> pa.Array:
    """A field inside a struct array; null where an enclosing struct is null."""
    for name in path:
        position = array.type.get_field_index(name) if pa.types.is_struct(array.type) else -1
        if position < 0:
            raise ColumnNotFoundError(f"there is no field '{name}' in {array.type}.", column=name)
        # struct_field, unlike StructArray.field, respects the parent's nulls and offset
        array = pc.struct_field(array, [position])
    return array


def column_at(batch: pa.RecordBatch, path: Sequence[str]) -> pa.Array | None:
    """A column of a batch, or a nested field; None if the batch has no such column."""
    index = batch.schema.get_field_index(path[0])
    return None if index < 0 else struct_field(batch.column(index), path[1:])


@dataclass(frozen=True)
class Rows:
    """``live``: a boolean per row, without nulls; None if all rows are live."""

    column: Resolver
    count: int
    live: pa.BooleanArray | None = None

    def only(self, mask: Any) -> Rows:
        """The live rows for which the mask is true; null counts as false."""
        if isinstance(mask, pa.Scalar):
            if mask.as_py() is True:
                return self
            mask = pa.repeat(pa.scalar(False), self.count)
        elif mask.null_count:
            mask = mask.fill_null(False)
        return replace(self, live=mask if self.live is None else pc.and_(self.live, mask))

    def fail(self, failed: Any, code: str, message: str, values: Any = None) -> None:
        """Raise an error if a live row failed.

        Args:
            failed: a boolean per row, or one for all rows; null counts as false.
            values: the evaluated values; the error shows that of the first failed row.
        """
        if isinstance(failed, pa.Scalar):
            failed = pa.array([failed.as_py()], pa.bool_())
        if failed.null_count:
            failed = failed.fill_null(False)
        if not pc.any(failed, min_count=0).as_py():
            return
        if self.live is not None:
            if len(failed) != self.count:
                failed = pa.repeat(failed[0], self.count)
            failed = pc.and_(failed, self.live)
        elif self.count == 0:
            return
        if pc.any(failed, min_count=0).as_py():
            shown = ""
            if isinstance(values, pa.Scalar):
                shown = f": {values}"
            elif values is not None:
                shown = f": {values[pc.index(failed, True).as_py() if len(values) == len(failed) else 0]}"
            raise ExpressionError(f"{message}{shown}.", code=code)
