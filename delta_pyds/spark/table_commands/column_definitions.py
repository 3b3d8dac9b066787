"""A column as a user defines it: its type from SQL text or from PySpark, and the values that the table computes.

Protocol: "Generated Columns", "Identity Columns".
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import types as spark_types

from delta_pyds.commands.definition.alter_column import ColumnChange
from delta_pyds.errors import OptionError
from delta_pyds.protocol.char_types import CHAR_VARCHAR_TYPE, declared_type, text_limits
from delta_pyds.protocol.schema import (
    CURRENT_DEFAULT,
    GENERATION_EXPRESSION,
    IDENTITY_ALLOW_EXPLICIT_INSERT,
    IDENTITY_START,
    IDENTITY_STEP,
    StructField,
    StructType,
    type_to_json,
)
from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.planning.types import from_spark
from delta_pyds.table.definition.schema_paths import Path, Position, one_path

_COMMENT = "comment"


@dataclass
class IdentityGenerator:
    """The numbers of an identity column.

    Attributes:
        start: The first number.
        step: The difference between two numbers; negative to count down, not 0.

    Protocol: "Identity Columns".

    >>> DeltaTable.create(spark).addColumn("id", "BIGINT", generatedAlwaysAs=IdentityGenerator(start=1, step=1))
    """

    start: int = 1
    step: int = 1


def column(
    spark: SparkSession,
    name: Any,
    data_type: Any,
    *,
    nullable: Any = True,
    generated_always_as: Any = None,
    generated_by_default_as: Any = None,
    comment: Any = None,
    default: Any = None,
) -> StructField:
    """The field of a column, whose metadata says how its values are computed.

    Raises: TypeError and ValueError for invalid arguments, as the reference does; Spark's ParseException for an
        invalid type; UserError for a type that no table has.
    """
    require_text("Column name must be str.", name)
    if type(data_type) is not str and not isinstance(data_type, spark_types.DataType):
        raise _wrong("Column data type must be str or DataType.", data_type)
    if type(nullable) is not bool:
        raise _wrong("Column nullable must be bool.", nullable)
    metadata = _made_by(generated_always_as, generated_by_default_as)
    if comment is not None:
        require_text("Column comment must be str.", comment)
        metadata[_COMMENT] = comment
    if default is not None:
        require_text("Column default must be str, an expression in SQL.", default)
        metadata[CURRENT_DEFAULT] = default
    parsed = data_type_of(spark, data_type) if isinstance(data_type, str) else data_type
    return _field(spark_types.StructField(name, parsed, nullable, metadata))


def column_change(
    spark: SparkSession,
    name: str,
    *,
    data_type: str | spark_types.DataType | None = None,
    comment: str | None = None,
    nullable: bool | None = None,
    default: str | None = None,
    drop_default: bool = False,
    position: Position | None = None,
) -> tuple[Path, ColumnChange]:
    """An existing column, and its change. Raises: OptionError if nothing is to change; what ``column`` raises."""
    field = None if data_type is None else column(spark, "c", data_type)
    change = ColumnChange(field, comment, nullable, default, drop_default, position)
    if change == ColumnChange():
        raise OptionError(f"no change is given for the column '{name}'.", option="name")
    return one_path(name), change


def columns(fields: Any) -> tuple[StructField, ...]:
    """The fields of a schema of PySpark, or a list of its fields. Raises: TypeError for anything else."""
    if isinstance(fields, list):
        for one in fields:
            if type(one) is not spark_types.StructField:
                raise _wrong("Column in existing schema must be StructField.", one)
    elif type(fields) is spark_types.StructType:
        fields = fields.fields
    else:
        raise _wrong("Schema must be StructType or a list of StructField.", fields)
    return tuple(_field(one) for one in fields)


def data_type_of(spark: SparkSession, text: str) -> spark_types.DataType:
    """The type that a text means in the session. Raises: Spark's ParseException; ValueError for more than a type."""
    # a name before it: a text with a comma is then no type, but two columns
    ddl = f"`c` {text}"
    session: Any = spark
    schema = session._parse_ddl(ddl) if is_remote(spark) else spark_types.DataType.fromDDL(ddl)
    fields = schema.fields if isinstance(schema, spark_types.StructType) else []
    if len(fields) != 1 or fields[0].name != "c" or fields[0].metadata or not fields[0].nullable:
        raise ValueError(f"{text!r:.200} is not a single data type.")
    found: spark_types.DataType = fields[0].dataType
    return found


def for_pyspark(field: StructField) -> spark_types.StructField:
    """The field as PySpark's class, with all its metadata."""
    found: spark_types.StructField = spark_types.StructType.fromJson(type_to_json(StructType((field,)))).fields[0]
    return found


def _field(field: spark_types.StructField) -> StructField:
    """The protocol's field. The lengths of texts, which its type cannot have, are in its metadata."""
    [made] = from_spark(spark_types.StructType([field])).fields
    if _has_text_lengths(json.loads(field.dataType.json())):
        metadata = {**made.metadata, CHAR_VARCHAR_TYPE: field.dataType.simpleString()}
        limits = text_limits(replace(made, metadata=metadata))
        # rewritten: PySpark quotes no name with backticks, but Spark's parser needs some
        return replace(made, metadata={**metadata, CHAR_VARCHAR_TYPE: declared_type(made.data_type, limits)})
    return made


def _has_text_lengths(value: Any) -> bool:
    if isinstance(value, str):
        return value.startswith(("char(", "varchar("))
    if isinstance(value, dict):
        parts = [value.get(key) for key in ("type", "elementType", "keyType", "valueType")]
        parts += [f.get("type") for f in value.get("fields") or ()]
        return any(map(_has_text_lengths, parts))
    return False


def _made_by(always: Any, by_default: Any) -> dict[str, Any]:
    if always is not None and by_default is not None:
        raise ValueError("generatedByDefaultAs and generatedAlwaysAs cannot both be set.", [by_default, always])
    if always is not None:
        if type(always) is str:
            return {GENERATION_EXPRESSION: always}
        if not _is_identity(always):
            raise _wrong("Generated always as expression must be str or IdentityGenerator.", always)
        return _identity(always, explicit=False)
    if by_default is not None:
        if not _is_identity(by_default):
            raise _wrong("Generated by default expression must be IdentityGenerator.", by_default)
        return _identity(by_default, explicit=True)
    return {}


def _is_identity(value: Any) -> bool:
    """Whether it is our class, or the reference's if a program imports that."""
    return isinstance(value, IdentityGenerator) or type(value).__name__ == "IdentityGenerator"


def _identity(generator: Any, *, explicit: bool) -> dict[str, Any]:
    if generator.step == 0:
        raise ValueError("Column identity generation requires step to be non-zero.")
    return {
        IDENTITY_START: int(generator.start),
        IDENTITY_STEP: int(generator.step),
        IDENTITY_ALLOW_EXPLICIT_INSERT: explicit,
    }


def require_text(message: str, value: Any) -> None:
    """Raises: TypeError with the reference's ``message`` if the value is not a str."""
    if type(value) is not str:
        raise _wrong(message, value)


def _wrong(message: str, value: Any) -> TypeError:
    return TypeError(f"{message} Found {value!s:.200} with type {type(value)}")
