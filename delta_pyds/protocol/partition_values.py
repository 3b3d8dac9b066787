"""Partition values: strings in the log, typed values in memory.

Protocol: "Partition Value Serialization".
"""

from __future__ import annotations

import re
from decimal import Context, Decimal
from functools import lru_cache

from delta_pyds.errors import ExpressionError, ProtocolError
from delta_pyds.protocol.floating_text import java_double, java_float, to_float
from delta_pyds.protocol.schema import DataType, DecimalType, PrimitiveType, display
from delta_pyds.protocol.temporal import TimeZone, parse_date, parse_timestamp, show_date, show_timestamp

PartitionValue = bool | int | float | str | bytes | Decimal | None

_INTEGER = re.compile(r"[+-]?\d{1,30}", re.ASCII)
_INTEGER_RANGES = {"byte": 8, "short": 16, "integer": 32, "long": 64}
# the default context rounds to 28 digits, and decimals of the protocol have up to 38
_EXACT = Context(prec=100)
# the error code for a text that is not a value of the column's type
INVALID_VALUE = "DELTA_PARTITION_COLUMN_CAST_FAILED"
# a decimal has at most 38 digits; larger exponents are refused before the number is expanded
_MAX_DIGITS = 50


def parse_partition_value(text: str | None, data_type: DataType, time_zone: str = "UTC") -> PartitionValue:
    """Turn one partition string into a typed value.

    Args:
        text: the string of the log. None and the empty string are null, for every type.
        data_type: the column's type.
        time_zone: the session's. It applies to a timestamp without a zone, as in the reference.

    Returns: dates as days since 1970-01-01, timestamps as microseconds since then (UTC), in any year.
    Raises: ProtocolError if the text is not a value of the type.
    Protocol: "Partition Value Serialization".
    """
    if text is None or text == "":
        return None
    try:
        if isinstance(data_type, DecimalType):
            return _decimal(text, data_type)
        if isinstance(data_type, PrimitiveType):
            return _primitive(text, data_type.name, time_zone)
    except (ValueError, ArithmeticError, ExpressionError):
        pass
    raise ProtocolError(
        f"the partition value {text[:200]!r}{'...' if len(text) > 200 else ''} is not a {display(data_type)}: "
        "the log is damaged, or its writer does not follow the protocol.",
        code=INVALID_VALUE,
        value=text[:200],
        type=display(data_type),
    )


def invalid_in_file(error: ProtocolError, table: str, path: str, column: str) -> ProtocolError:
    """An error of ``parse_partition_value`` with the file of the value; unchanged if it names a file already."""
    if "file" in error.parameters:
        return error
    return ProtocolError(
        f"the log of table '{table}' has an invalid value for column '{column}' of the file '{path}': {error.message}",
        code=error.code,
        file=path,
        **error.parameters,
    )


def _primitive(text: str, name: str, time_zone: str) -> PartitionValue:
    if name == "string":
        text.encode("utf-8")  # raises for half of a surrogate pair
        return text
    if name in _INTEGER_RANGES:
        if not _INTEGER.fullmatch(text.strip()):
            raise ValueError(text)
        value = int(text)
        limit = 1 << (_INTEGER_RANGES[name] - 1)
        if not -limit <= value < limit:
            raise ValueError(text)
        return value
    if name in ("float", "double"):
        if "_" in text:
            raise ValueError(text)  # Python alone accepts underscores in numbers
        number = float(text)  # accepts NaN and Infinity in upper and lower case
        return to_float(number) if name == "float" else number
    if name == "boolean":
        if (word := text.strip().lower()) not in ("true", "false"):
            raise ValueError(text)
        return word == "true"
    if name == "date":
        return parse_date(text)
    if name == "timestamp":
        return parse_timestamp(text, _zone(time_zone))
    if name == "timestamp_ntz":
        return parse_timestamp(text, None)
    if name == "binary":
        # one character per byte: JSON decoding has already undone the protocol's escapes
        return text.encode("utf-8")
    raise ValueError(text)


def format_partition_value(value: PartitionValue, data_type: DataType) -> str | None:
    """The log's string for a typed value; the inverse of ``parse_partition_value``.

    Timestamps are written in UTC with the zone, as the protocol recommends, so
    that every reader sees the same instant. Floating point numbers are written
    as Spark writes them on Java 19 and later.

    Args:
        value: as ``parse_partition_value`` returns it. The empty string is null.
        data_type: the column's type.

    Raises: ProtocolError for bytes that are not UTF-8: a string of the log cannot hold them.
    Protocol: "Partition Value Serialization".
    """
    if value is None or value == "":
        return None
    name = data_type.name if isinstance(data_type, PrimitiveType) else ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8") or None
        except UnicodeDecodeError:
            raise ProtocolError(
                f"the bytes X'{value.hex()}' cannot be a partition value: the log stores text, and they are not valid "
                "UTF-8. Partition by another column.",
                code="DELTA_INVALID_PARTITION_VALUE",
            ) from None
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, float):
        return java_float(to_float(value)) if name == "float" else java_double(value)
    if isinstance(value, int):
        if name == "date":
            return show_date(value)
        if name in ("timestamp", "timestamp_ntz"):
            day, time = show_timestamp(value).rsplit(" ", 1)
            if name == "timestamp_ntz":
                return f"{day} {time}"
            # always with microseconds, as in the reference: equal values should have equal texts
            seconds, _, fraction = time.partition(".")
            return f"{day}T{seconds}.{fraction:0<6}Z"
    return str(value)


@lru_cache(maxsize=16)
def _zone(name: str) -> TimeZone:
    return TimeZone(name)


def _decimal(text: str, data_type: DecimalType) -> Decimal:
    if "_" in text:
        raise ValueError(text)  # Python alone accepts underscores in numbers
    value = Decimal(text.strip())
    if not value.is_finite() or (value and not -_MAX_DIGITS <= value.adjusted() <= _MAX_DIGITS):
        raise ValueError(text)
    if not value:
        return Decimal(0)
    scaled = _EXACT.scaleb(value, data_type.scale)
    if scaled != scaled.to_integral_value() or scaled.adjusted() >= data_type.precision:
        raise ValueError(text)
    # at most the type's digits after the point: further ones could only be zeros
    exponent = value.as_tuple().exponent
    return (
        value
        if exponent == 0 or int(exponent) >= -data_type.scale
        else _EXACT.scaleb(scaled.to_integral_value(), -data_type.scale)
    )
