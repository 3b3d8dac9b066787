"""The logical types of a table and their serialised form, the ``schemaString``.

Protocol: "Schema Serialization Format".
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from delta_pyds.errors import ProtocolError
from delta_pyds.protocol.foreign_json import InvalidJSONError, decode_json, short

PRIMITIVE_NAMES = frozenset(
    {
        "string", "long", "integer", "short", "byte", "float", "double", "boolean", "binary",
        "date", "timestamp", "timestamp_ntz", "void", "variant",
    }
)  # fmt: skip

_ORDERED = PRIMITIVE_NAMES - {"boolean", "binary", "void", "variant"}

# spellings found in tables of other writers
_ALIASES = {"null": "void", "int": "integer", "bigint": "long", "smallint": "short", "tinyint": "byte"}
_DECIMAL = re.compile(r"decimal\(\s*(\d{1,9})\s*,\s*(-?\d{1,9})\s*\)")
_NUMBER = re.compile(r"-?[0-9]{1,10}")
_CHAR = re.compile(r"(?:var)?char\(\s*\d+\s*\)")

COLUMN_MAPPING_ID = "delta.columnMapping.id"
COLUMN_MAPPING_PHYSICAL_NAME = "delta.columnMapping.physicalName"
COLUMN_MAPPING_NESTED_IDS = "delta.columnMapping.nested.ids"
COLLATIONS = "__COLLATIONS"
TYPE_CHANGES = "delta.typeChanges"
CURRENT_DEFAULT = "CURRENT_DEFAULT"
GENERATION_EXPRESSION = "delta.generationExpression"
INVARIANTS = "delta.invariants"
IDENTITY_START = "delta.identity.start"
IDENTITY_STEP = "delta.identity.step"
IDENTITY_HIGH_WATER_MARK = "delta.identity.highWaterMark"
IDENTITY_ALLOW_EXPLICIT_INSERT = "delta.identity.allowExplicitInsert"

# The limit of nested types; the columns are the first level. Code that walks a type takes a few frames for each level,
# and Python has 1,000.
MAX_TYPE_DEPTH = 100


@dataclass(frozen=True)
class PrimitiveType:
    """A type without nested types; ``name`` is one of ``PRIMITIVE_NAMES``."""

    name: str


@dataclass(frozen=True)
class DecimalType:
    """A fixed-point number of ``precision`` digits (1 to 38), ``scale`` of them after the point."""

    precision: int
    scale: int

    def __post_init__(self) -> None:
        if not (1 <= self.precision <= 38 and 0 <= self.scale <= self.precision):
            raise ProtocolError(
                f"decimal({self.precision},{self.scale}) is not a type of the protocol: the precision is 1 to 38, "
                "the scale 0 to the precision.",
                code="DELTA_INVALID_SCHEMA",
            )


@dataclass(frozen=True)
class ArrayType:
    element_type: DataType
    contains_null: bool = True


@dataclass(frozen=True)
class MapType:
    key_type: DataType
    value_type: DataType
    value_contains_null: bool = True


@dataclass(frozen=True)
class StructField:
    """One column or nested field. ``metadata`` is as in the ``schemaString``."""

    name: str
    data_type: DataType
    nullable: bool = True
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def physical_name(self) -> str:
        """The name in Parquet files and statistics; the logical name without column mapping."""
        return str(self.metadata.get(COLUMN_MAPPING_PHYSICAL_NAME, self.name))

    @property
    def field_id(self) -> int | None:
        """The column mapping id, the ``field_id`` in Parquet files; None if the field has none.

        Raises: ProtocolError (DELTA_INVALID_SCHEMA) for an invalid id.
        """
        value = self.metadata.get(COLUMN_MAPPING_ID)
        if value is None:
            return None
        number = int(value) if isinstance(value, str) and _NUMBER.fullmatch(value) else value
        if isinstance(number, int) and not isinstance(number, bool) and abs(number) < 1 << 31:
            return number
        raise ProtocolError(
            f"the column '{self.name}' has the {COLUMN_MAPPING_ID} {short(value)}, which is not a 32-bit integer. "
            "Restore the commit that holds this schema.",
            code="DELTA_INVALID_SCHEMA",
            column=self.name,
        )


@dataclass(frozen=True)
class StructType:
    fields: tuple[StructField, ...]

    def __iter__(self) -> Iterator[StructField]:
        return iter(self.fields)

    def __reduce__(self) -> tuple[type[StructType], tuple[tuple[StructField, ...]]]:
        # the cached lookups are not pickled
        return StructType, (self.fields,)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.fields)

    @cached_property
    def _by_name(self) -> Mapping[str, StructField]:
        # of several fields of one name, the first
        return {f.name: f for f in reversed(self.fields)}

    @cached_property
    def _by_folded_name(self) -> Mapping[str, list[StructField]]:
        found: dict[str, list[StructField]] = {}
        for f in self.fields:
            found.setdefault(f.name.lower(), []).append(f)
        return found

    def find(self, name: str) -> StructField | None:
        """The field of that name: the exact match, else the only match without case; None for none or several."""
        exact = self._by_name.get(name)
        if exact is not None:
            return exact
        close = self._by_folded_name.get(name.lower(), ())
        return close[0] if len(close) == 1 else None


DataType = PrimitiveType | DecimalType | ArrayType | MapType | StructType

STRING = PrimitiveType("string")
LONG = PrimitiveType("long")
INTEGER = PrimitiveType("integer")
SHORT = PrimitiveType("short")
BYTE = PrimitiveType("byte")
FLOAT = PrimitiveType("float")
DOUBLE = PrimitiveType("double")
BOOLEAN = PrimitiveType("boolean")
BINARY = PrimitiveType("binary")
DATE = PrimitiveType("date")
TIMESTAMP = PrimitiveType("timestamp")
TIMESTAMP_NTZ = PrimitiveType("timestamp_ntz")
VOID = PrimitiveType("void")
VARIANT = PrimitiveType("variant")


def parse_schema(schema_string: str) -> StructType:
    """Parse a ``schemaString``.

    Raises: ProtocolError (DELTA_INVALID_SCHEMA) if the text is not a schema.
    Protocol: "Schema Serialization Format".
    """
    try:
        value = decode_json(schema_string)
    except (InvalidJSONError, TypeError) as e:
        raise ProtocolError(f"the schemaString is not JSON: {e}.", code="DELTA_INVALID_SCHEMA") from None
    parsed = parse_type(value)
    if not isinstance(parsed, StructType):
        raise ProtocolError("the schemaString is not a struct of columns.", code="DELTA_INVALID_SCHEMA")
    return parsed


def parse_type(value: Any) -> DataType:
    """Parse one type of a decoded ``schemaString``: a name, or an object with ``type``.

    Raises: ProtocolError (DELTA_INVALID_SCHEMA) for an invalid type, and for one nested deeper than ``MAX_TYPE_DEPTH``.
    """
    return _parse_type(value, 0)


def _parse_type(value: Any, depth: int) -> DataType:
    if depth > MAX_TYPE_DEPTH:
        raise ProtocolError(
            f"the schema has a column whose type is nested more than {MAX_TYPE_DEPTH} levels deep, more than this "
            "release reads. Store such values as variant or as text.",
            code="DELTA_INVALID_SCHEMA",
        )
    try:
        if isinstance(value, str):
            return _parse_name(value)
        kind = value["type"]
        if kind == "struct":
            return StructType(tuple(_parse_field(f, depth + 1) for f in value["fields"]))
        if kind == "array":
            return ArrayType(_parse_type(value["elementType"], depth + 1), bool(value.get("containsNull", True)))
        if kind == "map":
            return MapType(
                _parse_type(value["keyType"], depth + 1),
                _parse_type(value["valueType"], depth + 1),
                bool(value.get("valueContainsNull", True)),
            )
        if kind == "udt":
            return _parse_type(value["sqlType"], depth + 1)
    except (KeyError, TypeError, AttributeError):
        pass
    raise ProtocolError(
        f"the schema has an invalid type: {short(value)}. Read a version before this schema, or restore the commit "
        "that holds it.",
        code="DELTA_INVALID_SCHEMA",
    )


def _parse_field(value: Any, depth: int) -> StructField:
    metadata = value.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise TypeError("the metadata of a field is an object")
    return StructField(
        name=str(value["name"]),
        data_type=_parse_type(value["type"], depth),
        nullable=bool(value.get("nullable", True)),
        metadata=metadata,
    )


def _parse_name(text: str) -> DataType:
    name = text.strip().lower()
    name = _ALIASES.get(name, name)
    if name in PRIMITIVE_NAMES:
        return PrimitiveType(name)
    if name == "decimal":
        return DecimalType(10, 0)
    match = _DECIMAL.fullmatch(name)
    if match:
        return DecimalType(int(match[1]), int(match[2]))
    if _CHAR.fullmatch(name) or name.startswith("string collate"):
        return STRING
    raise ProtocolError(
        f"the schema has a column of type {short(text)}, which this release does not support.",
        code="DELTA_UNSUPPORTED_DATA_TYPES",
        type=text[:200],
    )


def holds(data_type: DataType, part: PrimitiveType) -> bool:
    """Whether a type is ``part`` or contains it at any depth."""
    if isinstance(data_type, StructType):
        return any(holds(f.data_type, part) for f in data_type)
    parts = parts_of(data_type)
    return any(holds(inner, part) for inner in parts.values()) if parts else data_type == part


def num_leaves(data_type: DataType) -> int:
    """The number of Parquet leaf columns of a type: one for each type without nested types."""
    if isinstance(data_type, StructType):
        return sum(num_leaves(f.data_type) for f in data_type)
    parts = parts_of(data_type)
    return sum(map(num_leaves, parts.values())) if parts else 1


def parts_of(data_type: DataType) -> dict[str, DataType]:
    """The parts of an array (``element``) or a map (``key``, ``value``), by name; empty for other types."""
    if isinstance(data_type, ArrayType):
        return {"element": data_type.element_type}
    if isinstance(data_type, MapType):
        return {"key": data_type.key_type, "value": data_type.value_type}
    return {}


def with_parts(data_type: DataType, change: Callable[[DataType, str], DataType]) -> DataType:
    """The type with each part of an array or a map changed by ``change(part, name)``; other types stay."""
    if isinstance(data_type, ArrayType):
        return replace(data_type, element_type=change(data_type.element_type, "element"))
    if isinstance(data_type, MapType):
        key = change(data_type.key_type, "key")
        return replace(data_type, key_type=key, value_type=change(data_type.value_type, "value"))
    return data_type


def common_parts(left: DataType, right: DataType) -> list[tuple[str, DataType, DataType]]:
    """The parts of two arrays or two maps: name, type in ``left``, type in ``right``; empty for other types."""
    others = parts_of(right) if type(left) is type(right) else {}
    return [(name, part, others[name]) for name, part in parts_of(left).items() if others]


def merge_parts(
    left: DataType, right: DataType, merge: Callable[[DataType, DataType, str], DataType]
) -> DataType | None:
    """The type ``left`` with each part replaced by ``merge(part, part of right, name)``.

    None unless both types are arrays or both are maps.
    """
    merged = {name: merge(part, other, name) for name, part, other in common_parts(left, right)}
    return with_parts(left, lambda _, name: merged[name]) if merged else None


def change_fields(schema: StructType, change: Callable[[StructField], StructField]) -> StructType:
    """The schema with ``change`` applied to every field at every level, inner ones first."""

    def within(data_type: DataType, _: str = "") -> DataType:
        return change_fields(data_type, change) if isinstance(data_type, StructType) else with_parts(data_type, within)

    return StructType(tuple(change(replace(f, data_type=within(f.data_type))) for f in schema))


def has_minimum(data_type: DataType) -> bool:
    """Whether statistics of the type have a minimum and a maximum, so that files can be skipped."""
    return isinstance(data_type, DecimalType) or (isinstance(data_type, PrimitiveType) and data_type.name in _ORDERED)


def nullable_throughout(data_type: DataType) -> DataType:
    """The type with every field, element and value nullable. Keys of maps are never nullable, but their fields are."""
    if isinstance(data_type, StructType):
        # not change_fields, which visits inner fields first: each level would repeat all levels below it
        fields = (replace(f, data_type=nullable_throughout(f.data_type), nullable=True) for f in data_type)
        return StructType(tuple(fields))
    if isinstance(data_type, ArrayType):
        return ArrayType(nullable_throughout(data_type.element_type), True)
    if isinstance(data_type, MapType):
        return MapType(nullable_throughout(data_type.key_type), nullable_throughout(data_type.value_type), True)
    return data_type


def type_to_json(data_type: DataType) -> Any:
    """The inverse of ``parse_type``: a value for ``json.dumps``."""
    if isinstance(data_type, PrimitiveType):
        return data_type.name
    if isinstance(data_type, DecimalType):
        return f"decimal({data_type.precision},{data_type.scale})"
    if isinstance(data_type, ArrayType):
        return {
            "type": "array",
            "elementType": type_to_json(data_type.element_type),
            "containsNull": data_type.contains_null,
        }
    if isinstance(data_type, MapType):
        return {
            "type": "map",
            "keyType": type_to_json(data_type.key_type),
            "valueType": type_to_json(data_type.value_type),
            "valueContainsNull": data_type.value_contains_null,
        }
    return {
        "type": "struct",
        "fields": [
            {"name": f.name, "type": type_to_json(f.data_type), "nullable": f.nullable, "metadata": dict(f.metadata)}
            for f in data_type.fields
        ],
    }


def schema_to_string(schema: StructType) -> str:
    """The ``schemaString`` of a schema."""
    return json.dumps(type_to_json(schema), separators=(",", ":"))


def display(data_type: DataType) -> str:
    """The type as Spark's SQL writes it, for messages: ``bigint``, ``array<struct<a:int>>``."""
    if isinstance(data_type, PrimitiveType):
        return {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}.get(
            data_type.name, data_type.name
        )
    if isinstance(data_type, DecimalType):
        return f"decimal({data_type.precision},{data_type.scale})"
    if isinstance(data_type, ArrayType):
        return f"array<{display(data_type.element_type)}>"
    if isinstance(data_type, MapType):
        return f"map<{display(data_type.key_type)},{display(data_type.value_type)}>"
    return "struct<" + ",".join(f"{f.name}:{display(f.data_type)}" for f in data_type.fields) + ">"


def structs(data_type: DataType) -> Iterator[StructType]:
    """Every struct at every depth, outer ones first."""
    if isinstance(data_type, StructType):
        yield data_type
        for f in data_type:
            yield from structs(f.data_type)
    for part in parts_of(data_type).values():
        yield from structs(part)
