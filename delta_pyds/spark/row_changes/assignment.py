"""Values become values of the table's columns: store assignment, structs by the names of their fields.

Invariant: a value that does not fit is an error for its row, whatever the session's ANSI mode (the policy LEGACY of
``spark.sql.storeAssignmentPolicy`` aside); fields are matched by place only for an update, which the reference does
where names differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - the same

from delta_pyds.errors import UserError

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

_POLICY = "spark.sql.storeAssignmentPolicy"
_ANSI = "spark.sql.ansi.enabled"


@dataclass(frozen=True)
class StoreAssignment:
    """How values are assigned in one command. ``casts_may_wrap``: values that do not fit become others (LEGACY).

    ``ansi``: of the session. ``fill``: fields of structs that the value lacks become null, or keep the old value where
    there is one; else they are an error. ``by_place``: a struct of as many fields under other names is taken field by
    field.
    """

    ansi: bool = True
    casts_may_wrap: bool = False
    fill: bool = False
    table: str = ""
    by_place: bool = False

    @staticmethod
    def of(spark: SparkSession, *, fill: bool = False, table: str = "") -> StoreAssignment:
        """As the session's settings have it."""
        policy = (spark.conf.get(_POLICY, None) or "ANSI").upper()
        ansi = (spark.conf.get(_ANSI, None) or "true").lower() == "true"
        return StoreAssignment(ansi, policy == "LEGACY", fill, table)

    def assign(
        self, value: Column, source: T.DataType, target: T.DataType, column: str, old: Column | None = None
    ) -> Column:
        """The value as one of the target's type.

        ``column``: for messages. ``old``: what the column held, for fields that the value lacks.
        Raises: UserError (DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION) for structs whose fields differ.
        """
        if same_type(source, target):
            return value
        if isinstance(source, T.NullType):
            return F.lit(None).cast(target)
        if isinstance(source, T.StructType) and isinstance(target, T.StructType):
            return self._struct(value, source, target, column, old)
        if isinstance(source, T.ArrayType) and isinstance(target, T.ArrayType):
            inner, wanted = source.elementType, target.elementType
            return F.transform(value, lambda element: self.assign(element, inner, wanted, column))
        if isinstance(source, T.MapType) and isinstance(target, T.MapType):
            return self._map(value, source, target, column)
        return self._cast(value, target, column)

    def _struct(
        self, value: Column, source: T.StructType, target: T.StructType, column: str, old: Column | None
    ) -> Column:
        given = {field.name.lower(): field for field in source.fields}
        wanted = {field.name.lower() for field in target.fields}
        if self.by_place and len(source.fields) == len(target.fields) and given.keys() != wanted:
            return self._struct_by_place(value, source, target, column)
        if len(given) < len(source.fields) or given.keys() - wanted or (wanted - given.keys() and not self.fill):
            raise UserError(
                f"Cannot cast {source.simpleString()} to {target.simpleString()}, the type of column {column} of table "
                f"{self.table}. All nested columns must match.",
                code="DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION",
                table=self.table,
                column=column,
            )
        parts = []
        for field in target.fields:
            before = None if old is None else old.getField(field.name)
            have = given.get(field.name.lower())
            if have is None:
                part = F.lit(None).cast(field.dataType) if before is None else before
            else:
                inner = f"{column}.{field.name}"
                part = self.assign(value.getField(have.name), have.dataType, field.dataType, inner, before)
            parts.append(part.alias(field.name))
        present = value.isNotNull()
        if old is not None and wanted - given.keys():
            # what the source does not know of stays, also where it has no struct at all
            present = present | old.isNotNull()
        return F.when(present, F.struct(*parts))

    def _struct_by_place(self, value: Column, source: T.StructType, target: T.StructType, column: str) -> Column:
        renamed = T.StructType(
            [T.StructField(want.name, have.dataType) for have, want in zip(source.fields, target.fields, strict=True)]
        )
        # such a cast goes by place, and changes nothing but names
        return self._struct(value.cast(renamed), renamed, target, column, None)

    def _map(self, value: Column, source: T.MapType, target: T.MapType, column: str) -> Column:
        changed = value
        if not same_type(source.keyType, target.keyType):
            changed = F.transform_keys(changed, lambda k, _: self.assign(k, source.keyType, target.keyType, column))
        if not same_type(source.valueType, target.valueType):
            changed = F.transform_values(
                changed, lambda _, v: self.assign(v, source.valueType, target.valueType, column)
            )
        return changed

    def _cast(self, value: Column, target: T.DataType, column: str) -> Column:
        if self.casts_may_wrap or self.ansi:
            return value.cast(target)
        # the session's own cast would make null, or another number, of what does not fit
        fitting = value.try_cast(target)
        message = f"[CAST_OVERFLOW_IN_TABLE_INSERT] a value does not fit the column {column} of table {self.table}."
        return F.when(value.isNotNull() & fitting.isNull(), F.raise_error(F.lit(message)).cast(target)).otherwise(
            fitting
        )


@dataclass(frozen=True)
class Assigned:
    """What one column, or one field at any depth, is set to. ``fields``: parts of a struct, by their names."""

    value: Column | None = None
    fields: Mapping[str, Assigned] | None = None

    def of(self, old: Column, data_type: T.DataType) -> Column:
        """The new value of the whole column: a struct of which a field is set is never null."""
        if self.value is not None:
            return self.value
        assert isinstance(data_type, T.StructType)
        parts = []
        for field in data_type.fields:
            inner = (self.fields or {}).get(field.name)
            before = old.getField(field.name)
            parts.append((before if inner is None else inner.of(before, field.dataType)).alias(field.name))
        return F.struct(*parts)


def same_type(one: T.DataType, other: T.DataType) -> bool:
    """Whether values of one type are values of the other as they are, whatever may be null."""
    if isinstance(one, T.StructType) and isinstance(other, T.StructType):
        return len(one.fields) == len(other.fields) and all(
            a.name == b.name and same_type(a.dataType, b.dataType)
            for a, b in zip(one.fields, other.fields, strict=True)
        )
    if isinstance(one, T.ArrayType) and isinstance(other, T.ArrayType):
        return same_type(one.elementType, other.elementType)
    if isinstance(one, T.MapType) and isinstance(other, T.MapType):
        return same_type(one.keyType, other.keyType) and same_type(one.valueType, other.valueType)
    return one == other
