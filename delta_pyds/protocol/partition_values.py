"""Partition values: the log's strings as typed values.

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
# the default context rounds to 28 digits, and decimals here have up to 38
_EXACT = Context(prec=100)
# the code of an error about a text that is no value
WRONG_VALUE = "DELTA_PARTITION_COLUMN_CAST_FAILED"
# a decimal has 38 digits: what lies beyond is none, and could not be held at its full length
_MAX_DIGITS = 50


def parse_partition_value(text: str | None, data_type: DataType, time_zone: str = "UTC") -> PartitionValue:
    """Turn one partition string into a typed value.

    Null and the empty string are null, for every type. Dates are days since
    1970-01-01, timestamps microseconds since then (UTC), so that no value of
    the protocol is out of Python's range. A timestamp without a zone is read
    in ``time_zone``, the session's, as the reference does.

    Raises: ProtocolError when the text is not a value of the type.
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
        "the log is damaged or was written by a "
        "program that does not follow the protocol.",
        code=WRONG_VALUE,
        value=text[:200],
        type=display(data_type),
    )


def wrong_in_file(error: ProtocolError, table: str, path: str, column: str) -> ProtocolError:
    """What ``parse_partition_value`` raised, with the file whose value it was; unchanged where it names one already."""
    if "file" in error.parameters:
        return error
    return ProtocolError(
        f"the log of table '{table}' has a wrong value for column '{column}' of the file '{path}': {error.message}",
        code=error.code,
        file=path,
        **error.parameters,
    )


def _primitive(text: str, name: str, time_zone: str) -> PartitionValue:
    if name == "string":
        text.encode("utf-8")  # half of a surrogate pair is no text
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
            raise ValueError(text)  # Python's own way to write a number
        number = float(text)  # NaN, Infinity and their like in any case
        return to_float(number) if name == "float" else number
    if name == "boolean":
        known = {"true": True, "false": False}
        return known[text.strip().lower()] if text.strip().lower() in known else _no()
    if name == "date":
        return parse_date(text)
    if name == "timestamp":
        return parse_timestamp(text, _zone(time_zone))
    if name == "timestamp_ntz":
        return parse_timestamp(text, None)
    if name == "binary":
        # one character per byte: the protocol's escapes are JSON's, already undone
        return text.encode("utf-8")
    return _no()


def format_partition_value(value: PartitionValue, data_type: DataType) -> str | None:
    """The string that the log holds for a typed value, of the form that ``parse_partition_value`` gives.

    Null and the empty string are null. Timestamps are written in UTC, with
    the zone, as the protocol recommends, so that every reader sees the same instant.
    Floating point numbers are written as Spark writes them on Java 19 and later.

    Raises: ProtocolError for bytes that are no UTF-8: a string of the log cannot hold them.
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
                f"the bytes X'{value.hex()}' cannot be a partition value: the log keeps text, and they are no UTF-8. "
                "Partition by another column.",
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
            # always with microseconds: so does the reference, and equal values should be equal texts
            seconds, _, fraction = time.partition(".")
            return f"{day}T{seconds}.{fraction:0<6}Z"
    return str(value)


@lru_cache(maxsize=16)
def _zone(name: str) -> TimeZone:
    return TimeZone(name)


def _no() -> PartitionValue:
    raise ValueError("no such value")


def _decimal(text: str, data_type: DecimalType) -> Decimal:
    if "_" in text:
        raise ValueError(text)  # Python's own way to write a number
    value = Decimal(text.strip())
    if not value.is_finite() or (value and not -_MAX_DIGITS <= value.adjusted() <= _MAX_DIGITS):
        raise ValueError(text)
    if not value:
        return Decimal(0)
    scaled = _EXACT.scaleb(value, data_type.scale)
    if scaled != scaled.to_integral_value() or scaled.adjusted() >= data_type.precision:
        raise ValueError(text)
    # as many digits after the point as the type has at most: more could only be zeros
    exponent = value.as_tuple().exponent
    return (
        value
        if exponent == 0 or int(exponent) >= -data_type.scale
        else _EXACT.scaleb(scaled.to_integral_value(), -data_type.scale)
    )
