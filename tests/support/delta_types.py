"""Delta schemas for tests: shorthand → JSON schema → Arrow, with column mapping.

Schemas are plain dicts as in ``schemaString``. Nothing here comes from the
package under test.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

JsonType = Any  # a primitive's name or a dict with "type"
MAPPING_ID = "delta.columnMapping.id"
MAPPING_NAME = "delta.columnMapping.physicalName"

_ALIASES = {
    "int": "integer",
    "bigint": "long",
    "smallint": "short",
    "tinyint": "byte",
    "str": "string",
    "bool": "boolean",
}
_ARROW = {
    "string": pa.string(),
    "long": pa.int64(),
    "integer": pa.int32(),
    "short": pa.int16(),
    "byte": pa.int8(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "void": pa.null(),
    "variant": pa.struct([pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)]),
}


def schema_of(schema: Any) -> dict[str, Any]:
    """A struct type as JSON from a struct type or from shorthand.

    Shorthand: ``{"id": "long not null", "d": "decimal(10,2)", "s": {"x": "int"},
    "tags": ["string"], "m": "map<string,long>", "a": "array<struct<x:int>>"}``.
    """
    return copy_of(schema) if _is_json_type(schema) else _struct(schema)


def field(
    name: str, data_type: Any, nullable: bool = True, metadata: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """One struct field as JSON; ``data_type`` may be shorthand."""
    return {"name": name, "type": type_of(data_type), "nullable": nullable, "metadata": dict(metadata or {})}


def _is_json_type(value: Any) -> bool:
    return isinstance(value, Mapping) and value.get("type") in ("struct", "array", "map")


def _struct(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": [_shorthand_field(name, spec) for name, spec in fields.items()]}


def _shorthand_field(name: str, spec: Any) -> dict[str, Any]:
    if isinstance(spec, str) and spec.lower().endswith(" not null"):
        return field(name, spec[: -len(" not null")], nullable=False)
    return field(name, spec)


def type_of(spec: Any) -> JsonType:
    """A JSON type from shorthand or from a JSON type."""
    if _is_json_type(spec):
        return copy_of(spec)
    if isinstance(spec, Mapping):
        return _struct(spec)
    if isinstance(spec, list):
        return {"type": "array", "elementType": type_of(spec[0]), "containsNull": True}
    return _parse(str(spec).strip())


def _parse(text: str) -> JsonType:
    head, _, rest = text.partition("<")
    inner = rest[:-1]
    if head.lower() == "array" and rest:
        return {"type": "array", "elementType": _parse(inner), "containsNull": True}
    if head.lower() == "map" and rest:
        key, value = _split(inner)
        return {"type": "map", "keyType": _parse(key), "valueType": _parse(value), "valueContainsNull": True}
    if head.lower() == "struct" and rest:
        return _struct(
            {name.strip(): kind.strip() for name, _, kind in (part.partition(":") for part in _split(inner))}
        )
    name = text.lower().replace(" ", "")
    return "decimal(10,0)" if name == "decimal" else _ALIASES.get(name, name)


def _split(text: str) -> list[str]:
    """Split at commas outside brackets."""
    parts, depth, start = [], 0, 0
    for i, char in enumerate(text):
        depth += (char in "<(") - (char in ">)")
        if char == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [part.strip() for part in [*parts, text[start:]]]


def copy_of(value: Any) -> Any:
    """A deep copy of a JSON value."""
    if isinstance(value, Mapping):
        return {k: copy_of(v) for k, v in value.items()}
    return [copy_of(v) for v in value] if isinstance(value, list) else value


def assign_mapping(schema: dict[str, Any], physical_names: Mapping[str, str] | None = None, first_id: int = 1) -> int:
    """Give every field that has none a column id and a physical name, in place.

    ``physical_names``: dotted logical name → physical name.
    Returns: the highest id in use.
    """
    used = [first_id - 1]
    _each_field(schema, "", lambda _path, f: used.append(int(f["metadata"].get(MAPPING_ID, 0))))
    highest = max(used)
    wanted = physical_names or {}

    def assign(path: str, f: dict[str, Any]) -> None:
        nonlocal highest
        if MAPPING_ID not in f["metadata"]:
            highest += 1
            f["metadata"][MAPPING_ID] = highest
        f["metadata"].setdefault(MAPPING_NAME, wanted.get(path, f"col-{uuid.uuid4()}"))

    _each_field(schema, "", assign)
    return highest


def _each_field(data_type: JsonType, prefix: str, visit: Callable[[str, dict[str, Any]], None]) -> None:
    if not isinstance(data_type, dict):
        return
    if data_type["type"] == "struct":
        for f in data_type["fields"]:
            path = f"{prefix}{f['name']}"
            visit(path, f)
            _each_field(f["type"], f"{path}.", visit)
    elif data_type["type"] == "array":
        _each_field(data_type["elementType"], f"{prefix}element.", visit)
    else:
        _each_field(data_type["keyType"], f"{prefix}key.", visit)
        _each_field(data_type["valueType"], f"{prefix}value.", visit)


def physical_name(f: Mapping[str, Any]) -> str:
    """A field's name in the data files."""
    return str(f["metadata"].get(MAPPING_NAME, f["name"]))


class FileNaming:
    """The names and numbers of one data file's columns.

    ``names`` and ``ids`` override the schema's by dotted logical name;
    ``with_ids`` False leaves all field ids out.
    """

    def __init__(
        self, names: Mapping[str, str] | None = None, ids: Mapping[str, int] | None = None, with_ids: bool = True
    ) -> None:
        self.names, self.ids, self.with_ids = dict(names or {}), dict(ids or {}), with_ids

    def arrow_field(self, f: Mapping[str, Any], prefix: str = "") -> pa.Field:
        """The physical Arrow field of a schema field, ids as ``PARQUET:field_id``."""
        path = f"{prefix}{f['name']}"
        name = self.names.get(path, physical_name(f))
        number = self.ids.get(path, f["metadata"].get(MAPPING_ID))
        metadata = {"PARQUET:field_id": str(number)} if number is not None and self.with_ids else None
        return pa.field(name, self.arrow_type(f["type"], f"{path}."), bool(f["nullable"]), metadata)

    def arrow_type(self, data_type: JsonType, prefix: str = "") -> pa.DataType:
        """The physical Arrow type of a JSON type."""
        if isinstance(data_type, str):
            return primitive_arrow(data_type)
        if data_type["type"] == "struct":
            return pa.struct([self.arrow_field(f, prefix) for f in data_type["fields"]])
        if data_type["type"] == "array":
            element = self.arrow_type(data_type["elementType"], f"{prefix}element.")
            return pa.list_(pa.field("element", element, bool(data_type["containsNull"])))
        key = self.arrow_type(data_type["keyType"], f"{prefix}key.")
        value = self.arrow_type(data_type["valueType"], f"{prefix}value.")
        return pa.map_(pa.field("key", key, False), pa.field("value", value, bool(data_type["valueContainsNull"])))


def primitive_arrow(name: str) -> pa.DataType:
    """The Arrow type of a primitive's name."""
    decimal = re.fullmatch(r"decimal\((\d+),\s*(-?\d+)\)", name)
    if decimal:
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    return _ARROW[name]


def to_physical(value: Any, data_type: JsonType) -> Any:
    """Rename the keys of nested structs to their physical names; missing fields become null."""
    return _rename(value, data_type, lambda f: str(f["name"]), physical_name)


def to_logical(value: Any, data_type: JsonType) -> Any:
    """The reverse of ``to_physical``, by the names of the given schema."""
    return _rename(value, data_type, physical_name, lambda f: str(f["name"]))


def _rename(value: Any, data_type: JsonType, source: Callable[[Any], str], target: Callable[[Any], str]) -> Any:
    if value is None or isinstance(data_type, str):
        return value
    if data_type["type"] == "struct":
        return {target(f): _rename(value.get(source(f)), f["type"], source, target) for f in data_type["fields"]}
    if data_type["type"] == "array":
        return [_rename(v, data_type["elementType"], source, target) for v in value]
    pairs = value.items() if isinstance(value, Mapping) else value
    return [
        (_rename(k, data_type["keyType"], source, target), _rename(v, data_type["valueType"], source, target))
        for k, v in pairs
    ]


def keep_mapping(new: dict[str, Any], old: dict[str, Any]) -> None:
    """Give fields of ``new`` without mapping the one that the same name has in ``old``."""
    known = {f["name"]: f for f in old["fields"]}
    for f in new["fields"]:
        before = known.get(f["name"])
        if before is None:
            continue
        for key, value in before["metadata"].items():
            if key.startswith("delta.columnMapping."):
                f["metadata"].setdefault(key, value)
        _keep_nested(f["type"], before["type"])


def _keep_nested(new: Any, old: Any) -> None:
    if not (isinstance(new, dict) and isinstance(old, dict) and new["type"] == old["type"]):
        return
    if new["type"] == "struct":
        keep_mapping(new, old)
    for key in ("elementType", "keyType", "valueType"):
        if key in new:
            _keep_nested(new[key], old[key])
