"""Tables of files that we wrote, read by another implementation."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

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
    ArrayType,
    DecimalType,
    MapType,
    StructField,
)
from tests.support.scans import struct
from tests.support.writes import batch_of, committed, write_files, write_state

UTC = dt.timezone.utc


def _query(root: Path, text: str) -> list[dict[str, Any]]:
    found = QueryBuilder().register("t", DeltaTable(str(root))).execute(text)
    return pa.table(found).to_pylist()


SCHEMA = struct(
    ("id", LONG), ("y", BYTE), ("h", SHORT), ("i", INTEGER), ("b", BOOLEAN), ("bin", BINARY), ("f", FLOAT),
    ("d", DOUBLE), ("d9", DecimalType(9, 2)), ("d18", DecimalType(18, 3)), ("d38", DecimalType(38, 10)),
    ("t", STRING), ("day", DATE), ("ts", TIMESTAMP), ("ntz", TIMESTAMP_NTZ), ("l", ArrayType(STRING)),
    ("m", MapType(STRING, LONG)), ("s", struct(("x", LONG), ("t", STRING))),
)  # fmt: skip
ROWS: list[dict[str, Any]] = [
    {
        "id": 0, "y": -1, "h": -2, "i": -3, "b": True, "bin": b"\xff", "f": 0.5, "d": math.inf, "d9": Decimal("-1.25"),
        "d18": Decimal("5.125"), "d38": Decimal("1234567890123456789012345678.0123456789"), "t": "é" * 50,
        "day": dt.date(1969, 12, 31), "ts": dt.datetime(2024, 1, 2, 3, 4, 5, 678_901, UTC),
        "ntz": dt.datetime(1, 1, 1), "l": ["a", None], "m": [("k", 1)], "s": {"x": 1, "t": None},
    },
    dict.fromkeys(SCHEMA.names) | {"id": 1},
]  # fmt: skip


def test_all_types_and_their_statistics_are_understood(tmp_path: Path) -> None:
    state = write_state(tmp_path, SCHEMA)
    batch = batch_of(SCHEMA, ROWS)
    committed(tmp_path, state, write_files(state, batch))
    got = _query(tmp_path, "SELECT * FROM t ORDER BY id")
    assert [{k: dict(v) if k == "m" and v else v for k, v in row.items()} for row in got] == [
        {k: dict(v) if k == "m" and v else v for k, v in row.items()} for row in batch.to_pylist()
    ]
    (add,) = pa.table(DeltaTable(str(tmp_path)).get_add_actions(flatten=True)).to_pylist()
    assert add["num_records"] == 2
    assert add["null_count.s.t"] == 2
    assert add["min.d38"] == ROWS[0]["d38"] == add["max.d38"]
    assert add["min.ts"] == dt.datetime(2024, 1, 2, 3, 4, 5, 678_000, UTC)
    assert add["max.d"] == math.inf
    assert add["max.t"] == "é" * 32 + "\U0010ffff"


@pytest.mark.parametrize(
    ("condition", "ids"),
    [
        ("d > 5", [1, 3]),
        ("d = 0", [4, 5]),
        ("d < 0", [2]),
        ("t = '\U0001f600\U0001f600'", [0]),
        ("t > '\uffee'", [0, 1]),
        ("ts >= '2024-01-01T00:00:00.001Z'", [2]),
        ("day < '0002-01-01'", [3]),
        ("id = 4", [4]),
    ],
)
def test_filters_that_skip_by_the_statistics_lose_no_row(tmp_path: Path, condition: str, ids: list[int]) -> None:
    schema = struct(("id", LONG), ("d", DOUBLE), ("t", STRING), ("ts", TIMESTAMP), ("day", DATE))
    doubles = [None, math.nan, -math.inf, math.inf, -0.0, 0.0]
    texts = ["\U0001f600" * 2, "\U0010ffff" * 40, "b", "", None, "\uffee"]
    start = dt.datetime(2024, 1, 1, tzinfo=UTC)
    rows = [
        {
            "id": i,
            "d": doubles[i],
            "t": texts[i],
            "ts": start + dt.timedelta(microseconds=1000 if i == 2 else i),
            "day": dt.date(1 if i == 3 else 9999, 1, 1),
        }
        for i in range(6)
    ]
    state = write_state(tmp_path, schema, max_records_per_file=1)
    committed(tmp_path, state, write_files(state, batch_of(schema, rows)))
    assert [r["id"] for r in _query(tmp_path, f"SELECT id FROM t WHERE {condition} ORDER BY id")] == ids


@pytest.mark.parametrize("mapping", ["none", "name", "id"])
def test_partitions_of_any_value_are_read(tmp_path: Path, mapping: str) -> None:
    def mapped(name: str, data_type: Any, number: int) -> StructField:
        metadata = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number}"}
        return StructField(name, data_type, True, {} if mapping == "none" else metadata)

    schema = struct(mapped("id", LONG, 1), mapped("p", STRING, 2), mapped("q", TIMESTAMP, 3), mapped("r", DATE, 4))
    texts = ["a/b", "%20", "a b", "ü=", None, "x" * 300, "a:{}[]^\\?#\"'*", "日本"]
    start = dt.datetime(2024, 1, 1, tzinfo=UTC)
    rows = [
        {"id": i, "p": text, "q": start + dt.timedelta(microseconds=i), "r": dt.date(2024, 1, 1 + i)}
        for i, text in enumerate(texts)
    ]
    prefix = None if mapping == "none" else 2
    state = write_state(
        tmp_path, schema, partition_columns=("p", "q", "r"), column_mapping_mode=mapping, random_prefix_length=prefix
    )
    committed(tmp_path, state, write_files(state, batch_of(schema, rows)))
    assert _query(tmp_path, "SELECT id, p, q, r FROM t ORDER BY id") == rows
