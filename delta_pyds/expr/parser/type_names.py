"""Spark SQL's names of types."""

from __future__ import annotations

from delta_pyds.protocol.schema import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    DataType,
    DecimalType,
)

TYPE_NAMES: dict[str, DataType] = {
    "BOOLEAN": BOOLEAN, "TINYINT": BYTE, "BYTE": BYTE, "SMALLINT": SHORT, "SHORT": SHORT,
    "INT": INTEGER, "INTEGER": INTEGER, "BIGINT": LONG, "LONG": LONG, "FLOAT": FLOAT, "REAL": FLOAT,
    "DOUBLE": DOUBLE, "DATE": DATE, "TIMESTAMP": TIMESTAMP, "TIMESTAMP_LTZ": TIMESTAMP,
    "TIMESTAMP_NTZ": TIMESTAMP_NTZ, "STRING": STRING, "BINARY": BINARY, "VOID": VOID,
    "DECIMAL": DecimalType(10, 0), "DEC": DecimalType(10, 0), "NUMERIC": DecimalType(10, 0),
}  # fmt: skip
