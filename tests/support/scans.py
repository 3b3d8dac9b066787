"""A Parquet file as a scan of one file, without a log."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Context, Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from delta_pyds.data.read.reader import output_schema, read
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
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)
from delta_pyds.tasks.scan_state import ScanFile, ScanState

PRIMITIVES = (
    STRING, LONG, INTEGER, SHORT, BYTE, FLOAT, DOUBLE, BOOLEAN, BINARY, DATE, TIMESTAMP, TIMESTAMP_NTZ, VOID, VARIANT,
    DecimalType(9, 2), DecimalType(18, 0), DecimalType(38, 10),
)  # fmt: skip


def _writes_views() -> bool:
    try:
        pq.write_table(pa.table({"c": pa.array([], pa.string_view())}), pa.BufferOutputStream())
    except pa.ArrowNotImplementedError:
        return False
    return True


# pyarrow 18 writes no views, and reads those of others as plain texts
VIEW = pa.string_view() if _writes_views() else pa.string()

# the row groups and the leaf columns of each decoding
Decoded = list[tuple[tuple[int, ...], tuple[int, ...]]]


def row_groups(decoded: Decoded) -> list[int]:
    return [number for numbers, _ in decoded for number in numbers]


def every_type() -> list[DataType]:
    """Each primitive, and each inside an array, a map and a struct, with nulls allowed and not."""
    nested: list[DataType] = []
    for t in PRIMITIVES:
        # neither Arrow nor Spark knows a void that is not null
        for nullable in (True,) if t == VOID else (True, False):
            nested.append(ArrayType(t, nullable))
            nested.append(MapType(STRING, t, nullable))
            nested.append(StructType((StructField("f", t, nullable), StructField("g", ArrayType(t, nullable)))))
    deep = ArrayType(MapType(LONG, StructType((StructField("x", ArrayType(STRING, False), False),)), False))
    return [*PRIMITIVES, *nested, deep]


def struct(*fields: tuple[str, DataType] | StructField) -> StructType:
    return StructType(tuple(f if isinstance(f, StructField) else StructField(*f) for f in fields))


def struct_of(**fields: DataType) -> StructType:
    return struct(*fields.items())


def write(path: Path, table: pa.Table, **options: Any) -> ScanFile:
    """Write a table as a data file that a scan can name."""
    pq.write_table(table, path, **options)
    return ScanFile(str(path), path.stat().st_size)


def state_of(root: Path, output: StructType, **given: Any) -> ScanState:
    defaults: dict[str, Any] = {
        "table_root": str(root),
        "storage_options": {},
        "output": output,
        "inputs": StructType(()),
        "partition_columns": (),
        "column_mapping_mode": "none",
    }
    return ScanState(**(defaults | given))


def scan(state: ScanState, *files: ScanFile) -> pa.Table:
    """All rows of the files; every batch is checked to be valid and of exactly the scan's schema."""
    schema = output_schema(state)
    batches = []
    for file in files:
        for batch in read(state, file):
            assert batch.schema.equals(schema, check_metadata=True)
            batch.validate(full=True)
            assert 0 < batch.num_rows <= state.batch_rows
            batches.append(batch)
    return pa.Table.from_batches(batches, schema=schema)


def relaxed(data_type: pa.DataType) -> pa.DataType:
    """The same type with nulls allowed at every depth, but for map keys, as many writers have it."""
    if pa.types.is_struct(data_type):
        return pa.struct([pa.field(f.name, relaxed(f.type)) for f in data_type])
    if pa.types.is_map(data_type):
        return pa.map_(relaxed(data_type.key_type), relaxed(data_type.item_type))
    if pa.types.is_list(data_type):
        return pa.list_(relaxed(data_type.value_type))
    return data_type


def sample(data_type: DataType, random: Random, nullable: bool = True) -> Any:
    """A value of the type, as pyarrow takes it; null now and then where that is allowed."""
    if data_type == VOID or (nullable and random.random() < 0.2):
        return None
    if isinstance(data_type, DecimalType):
        unscaled = random.randrange(-(10**data_type.precision) + 1, 10**data_type.precision)
        return Decimal(unscaled).scaleb(-data_type.scale, Context(prec=60))
    if isinstance(data_type, ArrayType):
        count = random.randrange(4)
        return [sample(data_type.element_type, random, data_type.contains_null) for _ in range(count)]
    if isinstance(data_type, MapType):
        keys = {repr(k): k for k in (sample(data_type.key_type, random, False) for _ in range(random.randrange(4)))}
        return [(k, sample(data_type.value_type, random, data_type.value_contains_null)) for k in keys.values()]
    if isinstance(data_type, StructType):
        return {f.name: sample(f.data_type, random, f.nullable) for f in data_type.fields}
    return _PRIMITIVE_SAMPLES[data_type.name](random)


_PRIMITIVE_SAMPLES: dict[str, Callable[[Random], Any]] = {
    "string": lambda r: r.choice(["", "a", "ü😀", "x" * 70, "a.b"]),
    "long": lambda r: r.choice([0, -(2**63), 2**63 - 1, r.randrange(100)]),
    "integer": lambda r: r.choice([0, -(2**31), 2**31 - 1]),
    "short": lambda r: r.choice([0, -(2**15), 2**15 - 1]),
    "byte": lambda r: r.choice([0, -128, 127]),
    "float": lambda r: r.choice([0.5, -0.0, float("inf")]),
    "double": lambda r: r.choice([0.1, -1e300, float("-inf")]),
    "boolean": lambda r: r.random() < 0.5,
    "binary": lambda r: r.choice([b"", b"\x00\xff", b"abc"]),
    "date": lambda r: dt.date(r.choice([1, 1500, 1969, 2024, 9999]), 2, 28),
    "timestamp": lambda r: dt.datetime(r.choice([1, 1600, 1969, 2024, 9999]), 2, 3, 4, 5, 6, 7, dt.timezone.utc),
    "timestamp_ntz": lambda r: dt.datetime(r.choice([1, 1600, 1969, 2024, 9999]), 2, 3, 4, 5, 6, 7),
    "variant": lambda r: {"value": r.choice([b"\x00", b"\x0c\x05"]), "metadata": b"\x01\x00\x00"},
}
