"""Convert values to the types of the table's columns: store assignment, with structs by name or by position.

Invariant: a value that does not fit is an error for its row, with ANSI mode or without (except under the policy LEGACY
of ``spark.sql.storeAssignmentPolicy``). The reference decides where fields are matched by position.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - the same

from delta_pyds.errors import UserError
from delta_pyds.spark.settings import ANSI, STORE_ASSIGNMENT_POLICY

Matching = Literal["by name", "by position where names differ", "by position", "by position outside of arrays and maps"]


@dataclass(frozen=True)
class StoreAssignment:
    """The store assignment of one command. ``casts_may_wrap``: values that do not fit wrap around (LEGACY).

    ``ansi``: the session's. ``fill``: fields of structs that the value lacks become null, or keep the old value if
    there is one; otherwise they are an error. ``fields``: how fields of structs are matched; except for "by position",
    those of structs with more fields are matched by name. ``evolves``: additional fields of the value stay, for the
    table to add them; otherwise they are an error.
    """

    ansi: bool = True
    casts_may_wrap: bool = False
    fill: bool = False
    table: str = ""
    fields: Matching = "by name"
    evolves: bool = False

    @staticmethod
    def of(spark: SparkSession, *, fill: bool = False, table: str = "") -> StoreAssignment:
        """The store assignment of the session's settings."""
        policy = (spark.conf.get(STORE_ASSIGNMENT_POLICY, None) or "ANSI").upper()
        ansi = (spark.conf.get(ANSI, None) or "true").lower() == "true"
        return StoreAssignment(ansi, policy == "LEGACY", fill, table)

    def assign(
        self, value: Column, source: T.DataType, target: T.DataType, column: str, old: Column | None = None
    ) -> Column:
        """The value as one of the target's type.

        ``column``: its name, for messages. ``old``: the column's old value, for fields that the value lacks.
        Raises: UserError (DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION) for structs whose fields differ.
        """
        if same_type(source, target):
            return value
        if isinstance(source, T.NullType):
            return F.lit(None).cast(target)
        if isinstance(source, T.StructType) and isinstance(target, T.StructType):
            return self._struct(value, source, target, column, old)
        within = replace(self, fields="by name") if self.fields == "by position outside of arrays and maps" else self
        if isinstance(source, T.ArrayType) and isinstance(target, T.ArrayType):
            inner, wanted = source.elementType, target.elementType
            return F.transform(value, lambda element: within.assign(element, inner, wanted, column))
        if isinstance(source, T.MapType) and isinstance(target, T.MapType):
            return within._map(value, source, target, column)
        return self._cast(value, target, column)

    def _struct(
        self, value: Column, source: T.StructType, target: T.StructType, column: str, old: Column | None
    ) -> Column:
        given = {field.name.lower(): field for field in source.fields}
        wanted = {field.name.lower() for field in target.fields}
        if self.fields == "by position" or (
            len(source.fields) == len(target.fields)
            and self.fields != "by name"
            and (self.fields != "by position where names differ" or given.keys() != wanted)
        ):
            return self._struct_by_position(value, source, target, column)
        more = given.keys() - wanted
        inserted = self.fields == "by position outside of arrays and maps"
        if len(given) < len(source.fields) or (more and not self.evolves):
            code = "DELTA_METADATA_MISMATCH" if inserted else "DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION"
            raise self._mismatch(source, target, column, code)
        if wanted - given.keys() and not self.fill:
            code = "DELTA_INSERT_COLUMN_ARITY_MISMATCH" if inserted else "DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION"
            raise self._mismatch(source, target, column, code)
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
        parts += [value.getField(field.name).alias(field.name) for field in source.fields if field.name.lower() in more]
        present = value.isNotNull()
        if old is not None and wanted - given.keys():
            # fields that the source lacks keep their values, even if its struct is null
            present = present | old.isNotNull()
        return F.when(present, F.struct(*parts))

    def _struct_by_position(self, value: Column, source: T.StructType, target: T.StructType, column: str) -> Column:
        named = [field.name for field in target.fields]
        named += [field.name for field in source.fields[len(named) :]]
        if len(source.fields) < len(target.fields):
            raise self._mismatch(source, target, column, "DELTA_INSERT_COLUMN_ARITY_MISMATCH")
        if len(source.fields) > len(target.fields) and not self.evolves:
            raise self._mismatch(source, target, column, "DELTA_METADATA_MISMATCH")
        if len({name.lower() for name in named}) < len(named):
            raise self._mismatch(source, target, column, "DELTA_DUPLICATE_COLUMNS_FOUND.DATA")
        fields = [T.StructField(name, have.dataType) for name, have in zip(named, source.fields, strict=True)]
        # a cast between structs matches by position, and changes only names
        value = value.cast(T.StructType(fields))
        parts = []
        for number, have in enumerate(fields):
            part = value.getField(have.name)
            if number < len(target.fields):
                part = self.assign(part, have.dataType, target.fields[number].dataType, f"{column}.{have.name}")
            parts.append(part.alias(have.name))
        return F.when(value.isNotNull(), F.struct(*parts))

    def _mismatch(self, source: T.StructType, target: T.StructType, column: str, code: str) -> UserError:
        return UserError(
            f"Cannot cast {source.simpleString()} to {target.simpleString()}, the type of column {column} of table "
            f"{self.table}. All nested columns must match.",
            code=code,
            table=self.table,
            column=column,
        )

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
        # the session's own cast would turn a value that does not fit into null or another number
        fitting = value.try_cast(target)
        message = f"[CAST_OVERFLOW_IN_TABLE_INSERT] a value does not fit the column {column} of table {self.table}."
        return F.when(value.isNotNull() & fitting.isNull(), F.raise_error(F.lit(message)).cast(target)).otherwise(
            fitting
        )


@dataclass(frozen=True)
class Assigned:
    """The new value of one column, or of one field at any depth. ``fields``: a struct's, by name."""

    value: Column | None = None
    fields: Mapping[str, Assigned] | None = None

    def of(self, old: Column, data_type: T.DataType) -> Column:
        """The new value of the whole column. A struct with an assigned field is never null."""
        if self.value is not None:
            return self.value
        assert isinstance(data_type, T.StructType)
        parts = []
        for field in data_type.fields:
            inner = (self.fields or {}).get(field.name)
            before = old.getField(field.name)
            parts.append((before if inner is None else inner.of(before, field.dataType)).alias(field.name))
        return F.struct(*parts)

    def put(self, columns: dict[str, Assigned], path: Sequence[str]) -> None:
        """Set the column or field at ``path`` in ``columns``, which are by name."""
        if len(path) == 1:
            columns[path[0]] = self
            return
        fields = dict((columns.get(path[0]) or Assigned(fields={})).fields or {})
        self.put(fields, path[1:])
        columns[path[0]] = Assigned(fields=fields)


def same_type(one: T.DataType, other: T.DataType) -> bool:
    """Whether both types are the same apart from nullability."""
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


def is_same_by_name(source: T.DataType, target: T.DataType) -> bool:
    """Whether the source has each field of the target, with that name and type, in any order. It may have more."""
    if isinstance(source, T.StructType) and isinstance(target, T.StructType):
        given = {field.name: field.dataType for field in source.fields}
        return all(f.name in given and is_same_by_name(given[f.name], f.dataType) for f in target.fields)
    if isinstance(source, T.ArrayType) and isinstance(target, T.ArrayType):
        return is_same_by_name(source.elementType, target.elementType)
    if isinstance(source, T.MapType) and isinstance(target, T.MapType):
        return is_same_by_name(source.keyType, target.keyType) and is_same_by_name(source.valueType, target.valueType)
    return source == target
