"""Column ids and physical names: assigned once, never changed.

Protocol: "Column Mapping", "Iceberg Compatibility V2" (ids of elements, keys and values).
"""

from __future__ import annotations

import re
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from delta_pyds.errors import ProtocolError
from delta_pyds.protocol.properties import Property
from delta_pyds.protocol.schema import (
    COLUMN_MAPPING_ID,
    COLUMN_MAPPING_NESTED_IDS,
    COLUMN_MAPPING_PHYSICAL_NAME,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    merge_parts,
    structs,
    with_parts,
)

# the last two are written in Parquet files, and in schemas read from them
MAPPING_KEYS = frozenset(
    {
        COLUMN_MAPPING_ID,
        COLUMN_MAPPING_PHYSICAL_NAME,
        COLUMN_MAPPING_NESTED_IDS,
        "parquet.field.id",
        "parquet.field.nested.ids",
    }
)


def assign_columns(schema: StructType, max_id: int, *, nested_ids: bool = False) -> tuple[StructType, int]:
    """Give an id and a physical name to every field that has none, at every level.

    Invariants: existing ids and names stay; new ids are above ``max_id`` and above every id of the schema; ids are
    unique, and so are physical names within their parent. Fields get their ids before the fields inside them, and all
    fields before elements, keys and values.

    Args:
        max_id: the highest id that the table has ever assigned.
        nested_ids: elements of arrays and keys and values of maps get ids too. The nearest field stores them, under
            paths that begin with its physical name.
    Returns:
        The schema, and the highest id ever assigned, for ``delta.columnMapping.maxColumnId``.
    Raises:
        ProtocolError: the schema has a duplicate (DELTA_DUPLICATED_COLUMN_ID, DELTA_DUPLICATED_PHYSICAL_NAME).
    """
    ids = _Ids(max(max_id, max_column_id(schema)))
    assigned = _assign_fields(schema, ids)
    if nested_ids:
        assigned = _assign_nested(assigned, ids)
    check_columns(assigned, ids.last)
    return assigned, ids.last


def unmapped_field(field: StructField) -> StructField:
    """The field without its ids and its physical name."""
    return replace(field, metadata={k: v for k, v in field.metadata.items() if k not in MAPPING_KEYS})


def recorded_max_id(configuration: Mapping[str, str | None]) -> int:
    """The highest column id that the table has ever assigned, by its properties; 0 if not recorded.

    Raises: ProtocolError (DELTA_COLUMN_MAPPING_MAX_COLUMN_ID_NOT_SET_CORRECTLY) for an invalid id.
    """
    text = configuration.get(Property.COLUMN_MAPPING_MAX_COLUMN_ID) or "0"
    if re.fullmatch(r"[0-9]{1,10}", text) is None or int(text) >= 1 << 31:
        raise ProtocolError(
            f"the table property {Property.COLUMN_MAPPING_MAX_COLUMN_ID} is {text[:50]!r}, which is not a valid column "
            "id, so ids of new columns might not be unique. Set it to the highest id of the schema, or above.",
            code="DELTA_COLUMN_MAPPING_MAX_COLUMN_ID_NOT_SET_CORRECTLY",
            property=Property.COLUMN_MAPPING_MAX_COLUMN_ID,
        )
    return int(text)


def max_column_id(schema: StructType) -> int:
    """The highest id in the schema, including elements, keys and values; 0 if there are no ids."""
    return max(_ids_of(schema), default=0)


def check_columns(schema: StructType, max_id: int) -> None:
    """Refuse a schema with an inconsistent column mapping.

    Raises:
        ProtocolError: DELTA_DUPLICATED_COLUMN_ID, DELTA_DUPLICATED_PHYSICAL_NAME or
            DELTA_COLUMN_MAPPING_MAX_COLUMN_ID_NOT_SET_CORRECTLY.
    """
    seen: set[int] = set()
    for number in _ids_of(schema):
        if number in seen:
            raise ProtocolError(
                f"the column mapping assigns the id {number} twice: values of two columns would be mixed up.",
                code="DELTA_DUPLICATED_COLUMN_ID",
                id=number,
            )
        seen.add(number)
    if seen and max(seen) > max_id:
        raise ProtocolError(
            f"the highest column id of the schema is {max(seen)}, but delta.columnMapping.maxColumnId is {max_id}.",
            code="DELTA_COLUMN_MAPPING_MAX_COLUMN_ID_NOT_SET_CORRECTLY",
        )
    for struct in structs(schema):
        names = Counter(f.physical_name for f in struct)
        twice = sorted(name for name, count in names.items() if count > 1)
        if twice:
            raise ProtocolError(
                f"the column mapping assigns the physical name '{twice[0]}' twice in one struct.",
                code="DELTA_DUPLICATED_PHYSICAL_NAME",
                name=twice[0],
            )


def keep_mapping(schema: StructType, existing: StructType, *, any_type: bool = False) -> StructType:
    """The schema with the ids and physical names that fields of the same name and type have in ``existing``.

    Names are compared without case; nullability of types is ignored. A field with another type is a new field: its old
    values must not be read with the new type. Its nested fields may still match.

    Args:
        any_type: a field keeps its id and name even with another type; set if the change of type is intended.
    """
    return StructType(tuple(_field_with_mapping(f, existing, any_type) for f in schema))


def _field_with_mapping(field: StructField, existing: StructType, any_type: bool) -> StructField:
    old = existing.find(field.name)
    if old is None:
        return field
    kept = replace(field, data_type=_type_with_mapping(field.data_type, old.data_type, any_type))
    if not any_type and _comparable(field.data_type) != _comparable(old.data_type):
        return kept
    return replace(kept, metadata={**field.metadata, **{k: v for k, v in old.metadata.items() if k in MAPPING_KEYS}})


def _type_with_mapping(data_type: DataType, old: DataType, any_type: bool) -> DataType:
    if isinstance(data_type, StructType) and isinstance(old, StructType):
        return keep_mapping(data_type, old, any_type=any_type)
    return merge_parts(data_type, old, lambda part, other, _: _type_with_mapping(part, other, any_type)) or data_type


def _comparable(data_type: DataType) -> DataType:
    """The type without nullability, with lower-case field names; equality ignores metadata anyway."""
    if isinstance(data_type, ArrayType):
        return ArrayType(_comparable(data_type.element_type))
    if isinstance(data_type, MapType):
        return MapType(_comparable(data_type.key_type), _comparable(data_type.value_type))
    if isinstance(data_type, StructType):
        return StructType(tuple(StructField(f.name.lower(), _comparable(f.data_type)) for f in data_type))
    return data_type


class _Ids:
    def __init__(self, last: int) -> None:
        self.last = last

    def next(self) -> int:
        self.last += 1
        return self.last


def _assign_fields(schema: StructType, ids: _Ids) -> StructType:
    fields = []
    for f in schema:
        metadata = dict(f.metadata)
        if COLUMN_MAPPING_ID not in metadata:
            metadata[COLUMN_MAPPING_ID] = ids.next()
        if COLUMN_MAPPING_PHYSICAL_NAME not in metadata:
            metadata[COLUMN_MAPPING_PHYSICAL_NAME] = f"col-{uuid.uuid4()}"
        fields.append(replace(f, metadata=metadata, data_type=_assign_within(f.data_type, ids)))
    return StructType(tuple(fields))


def _assign_within(data_type: DataType, ids: _Ids) -> DataType:
    if isinstance(data_type, StructType):
        return _assign_fields(data_type, ids)
    return with_parts(data_type, lambda part, _: _assign_within(part, ids))


def _assign_nested(schema: StructType, ids: _Ids) -> StructType:
    fields = []
    for f in schema:
        nested = dict(_nested_ids(f))
        data_type = _number_parts(f.data_type, f.physical_name, nested, ids)
        # the reference writes the key on every field, empty if there are no nested ids
        fields.append(replace(f, data_type=data_type, metadata={**f.metadata, COLUMN_MAPPING_NESTED_IDS: nested}))
    return StructType(tuple(fields))


def _number_parts(data_type: DataType, path: str, nested: dict[str, int], ids: _Ids) -> DataType:
    def number(part: DataType, name: str) -> DataType:
        inner = f"{path}.{name}"
        if inner not in nested:
            nested[inner] = ids.next()
        return _number_parts(part, inner, nested, ids)

    return _assign_nested(data_type, ids) if isinstance(data_type, StructType) else with_parts(data_type, number)


def _ids_of(schema: StructType) -> Iterator[int]:
    for struct in structs(schema):
        for f in struct:
            if f.field_id is not None:
                yield f.field_id
            yield from _nested_ids(f).values()


def _nested_ids(field: StructField) -> dict[str, int]:
    """Raises: ProtocolError if the nested ids are invalid: a new id might be equal to one of them."""
    found = field.metadata.get(COLUMN_MAPPING_NESTED_IDS) or {}
    if not isinstance(found, dict) or any(type(number) is not int for number in found.values()):
        raise ProtocolError(
            f"{COLUMN_MAPPING_NESTED_IDS} of the column '{field.name}' is not an object of column ids, so ids of new "
            "columns might not be unique. Correct it with the engine that wrote it.",
            code="DELTA_INVALID_SCHEMA",
            column=field.name,
        )
    return found
