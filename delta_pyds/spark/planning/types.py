"""Conversion of schemas between Spark and the protocol: both have the same JSON."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import types as spark_types

from delta_pyds.errors import ProtocolError, UserError
from delta_pyds.protocol.foreign_json import InvalidJSONError, decode_json
from delta_pyds.protocol.schema import CURRENT_DEFAULT, StructField, StructType, change_fields, parse_type, type_to_json

if TYPE_CHECKING:
    import pyarrow as pa

# Metadata for Delta writers: a DataFrame that carried it into another table would bring column ids, generation
# expressions and defaults with it.
_INTERNAL = ("delta.",)
_COLLATION = re.compile(r" collate \w+")
_INTERNAL_KEYS = frozenset({CURRENT_DEFAULT, "EXISTS_DEFAULT"})


def to_spark(schema: StructType) -> spark_types.StructType:
    """The Spark schema of a table, without the writers' field metadata."""
    # PySpark writes the short names of collations into the JSON that it gets
    return spark_types.StructType.fromJson(deepcopy(type_to_json(change_fields(schema, _public))))


def describes(schema: pa.Schema, columns: StructType, extra: Sequence[spark_types.StructField]) -> bool:
    """Whether an Arrow schema has these names and types. Engines other than Spark describe columns with it.

    Arrow has no collations.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    given = from_arrow_schema(schema, prefer_timestamp_ntz=True)
    return _names_and_types(given) == _names_and_types([*to_spark(columns).fields, *extra])


def _names_and_types(fields: Iterable[spark_types.StructField]) -> list[tuple[str, str]]:
    return [(field.name, _COLLATION.sub("", field.dataType.simpleString())) for field in fields]


def from_spark(schema: spark_types.StructType) -> StructType:
    """A Spark schema as the protocol's.

    Raises: UserError (DELTA_UNSUPPORTED_DATA_TYPES) naming the first column with an unsupported type.
    """
    for field in schema.fields:
        try:
            parse_type(decode_json(field.dataType.json()))
        except (ProtocolError, InvalidJSONError):
            raise UserError(
                f"the column '{field.name}' is of type {field.dataType.simpleString().upper()}, which a Delta table "
                "cannot hold here. Cast it to another type, or leave it out.",
                code="DELTA_UNSUPPORTED_DATA_TYPES",
                column=field.name,
            ) from None
    parsed = parse_type(decode_json(schema.json()))
    assert isinstance(parsed, StructType)
    return parsed


def _public(field: StructField) -> StructField:
    metadata = {k: v for k, v in field.metadata.items() if not k.startswith(_INTERNAL) and k not in _INTERNAL_KEYS}
    return replace(field, metadata=metadata)
