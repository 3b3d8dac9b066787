"""Delta types as the Arrow types that Spark requires of a Python data source."""

from __future__ import annotations

import pyarrow as pa

from delta_pyds.errors import ProtocolError
from delta_pyds.protocol.schema import ArrayType, DataType, DecimalType, MapType, PrimitiveType, StructField, StructType

# Spark distinguishes a variant from a struct of two binaries by the metadata of the field "metadata".
VARIANT = pa.struct(
    [
        pa.field("value", pa.binary(), nullable=False),
        pa.field("metadata", pa.binary(), nullable=False, metadata={b"variant": b"true"}),
    ]
)

_PRIMITIVES: dict[str, pa.DataType] = {
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
    "variant": VARIANT,
}


def arrow_type(data_type: DataType) -> pa.DataType:
    """The Arrow type of a Delta type, equal to Spark's ``to_arrow_type(..., timezone="UTC")``.

    Raises: ProtocolError (DELTA_UNSUPPORTED_DATA_TYPES) for a primitive without an Arrow type.
    """
    if isinstance(data_type, PrimitiveType):
        known = _PRIMITIVES.get(data_type.name)
        if known is None:
            raise ProtocolError(
                f"the type '{data_type.name}' has no Arrow type.",
                code="DELTA_UNSUPPORTED_DATA_TYPES",
                type=data_type.name,
            )
        return known
    if isinstance(data_type, DecimalType):
        return pa.decimal128(data_type.precision, data_type.scale)
    if isinstance(data_type, ArrayType):
        return pa.list_(_field("element", data_type.element_type, data_type.contains_null))
    if isinstance(data_type, MapType):
        return pa.map_(
            pa.field("key", arrow_type(data_type.key_type), nullable=False),
            _field("value", data_type.value_type, data_type.value_contains_null),
        )
    return pa.struct([arrow_field(f) for f in data_type.fields])


def arrow_field(field: StructField) -> pa.Field:
    """The Arrow field of a column, without the column's metadata."""
    return _field(field.name, field.data_type, field.nullable)


def _field(name: str, data_type: DataType, nullable: bool) -> pa.Field:
    arrow = arrow_type(data_type)
    # a void column has only nulls, and Arrow requires its field to be nullable
    return pa.field(name, arrow, nullable=nullable or pa.types.is_null(arrow))


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema of a Delta schema, without metadata."""
    return pa.schema([arrow_field(f) for f in schema.fields])
