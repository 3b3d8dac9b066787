"""Statistics of written files hold for every row, are as tight as they can be, and never make a scan lose one."""

from __future__ import annotations

import datetime as dt
import json
import math
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_pyds.columnar.evaluate import matches
from delta_pyds.columnar.rows import batch_resolver
from delta_pyds.columnar.schema import arrow_schema
from delta_pyds.data.read.reader import output_schema, read
from delta_pyds.data.write import writer as writer_module
from delta_pyds.data.write.statistics import cut_maximum
from delta_pyds.expr.parse import parse_predicate
from delta_pyds.protocol.schema import (
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    ArrayType,
    DataType,
    DecimalType,
    StructType,
)
from delta_pyds.table.scan.scan import Scan, plan_scan
from delta_pyds.table.snapshot import load_snapshot
from tests.support.sampling import examples
from tests.support.scans import struct
from tests.support.writes import batch_of, committed, write_files, write_state

UTC = dt.timezone.utc
SCHEMA = struct(
    ("b", BYTE),
    ("n", LONG),
    ("f", FLOAT),
    ("d", DOUBLE),
    ("m", DecimalType(38, 3)),
    ("k", DecimalType(12, 2)),
    ("t", STRING),
    ("day", DATE),
    ("ts", TIMESTAMP),
    ("ntz", TIMESTAMP_NTZ),
    ("s", struct(("x", LONG), ("d", DOUBLE), ("a", ArrayType(LONG)))),
)

doubles = st.sampled_from([0.0, -0.0, 1.5, -1.5, math.nan, math.inf, -math.inf, 1e300, 5e-324]) | st.floats()
floats = st.sampled_from([0.0, -0.0, 0.5, math.nan, math.inf, -math.inf]) | st.floats(width=32)
moments = st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999_999))
texts = st.text(st.sampled_from("ab~\x7f\x80é\uffee\U0001f600\U0010ffff"), max_size=8) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=5
)
longs = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)
values = {
    "b": st.integers(-128, 127),
    "n": longs,
    "f": floats,
    "d": doubles,
    "m": st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: Decimal(f"{n}E-3")),
    "k": st.integers(-(10**12) + 1, 10**12 - 1).map(lambda n: Decimal(f"{n}E-2")),
    "t": texts,
    "day": st.dates(),
    "ts": moments.map(lambda m: m.replace(tzinfo=UTC)),
    "ntz": moments,
    "s": st.fixed_dictionaries(
        {"x": st.none() | longs, "d": st.none() | doubles, "a": st.none() | st.lists(st.none() | longs, max_size=2)}
    ),
}
rows = st.lists(st.fixed_dictionaries({k: st.none() | v for k, v in values.items()}), min_size=1, max_size=12)
PREFIX = 3


@settings(deadline=None, max_examples=examples(150))
@given(rows, st.lists(st.integers(1, 5), max_size=6), st.sampled_from([1, 2, 1000]), st.sampled_from([0, 3]))
def test_statistics_are_those_of_a_model(content: list[Any], cuts: list[int], group: int, limit: int) -> None:
    state_options: dict[str, Any] = {"string_prefix_length": PREFIX, "max_records_per_file": limit}
    batch = batch_of(SCHEMA, content)
    batches, start = [], 0
    for cut in [*cuts, len(content)]:
        batches.append(batch.slice(start, cut))
        start += cut
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as root:
        patch.setattr(writer_module, "_ROW_GROUP_ROWS", group)
        files = write_files(write_state(root, SCHEMA, **state_options), *batches)
    # as Arrow has them: floats are 32 bits wide
    kept = batch.to_pylist()
    start = 0
    for file in files:
        found = json.loads(file.statistics, parse_float=Decimal, parse_int=Decimal)
        _check(found, SCHEMA, kept[start : start + file.num_records])
        start += file.num_records
    assert start == len(content)


def _check(found: dict[str, Any], schema: StructType, rows: list[dict[str, Any]]) -> None:
    assert found.pop("numRecords") == len(rows)
    bounds = {kind: found.pop(kind, {}) for kind in ("minValues", "maxValues", "nullCount")}
    assert not found
    for f in schema:
        parts = {kind: tree.get(f.name) for kind, tree in bounds.items()}
        below = [r.get(f.name) for r in rows]
        if isinstance(f.data_type, StructType):
            nested = {kind: part for kind, part in parts.items() if part is not None}
            _check({"numRecords": Decimal(len(rows)), **nested}, f.data_type, [r or {} for r in below])
            continue
        given = [v for v in below if v is not None]
        assert parts["nullCount"] == len(rows) - len(given)
        if isinstance(f.data_type, ArrayType) or not given:
            assert parts["minValues"] is None
            assert parts["maxValues"] is None
            continue
        low, high = _model(given, f.data_type)
        assert (parts["minValues"], parts["maxValues"]) == (low, high), f.name


def _model(given: list[Any], data_type: DataType) -> tuple[Any, Any]:
    """The bounds as JSON gives them, numbers as Decimals."""
    if isinstance(given[0], float):
        ordered = sorted((v for v in given if not math.isnan(v)), key=lambda v: (v, math.copysign(1, v)))
        shown = [_number(v, data_type) for v in (ordered[0], ordered[-1] + 0.0)] if ordered else ["NaN"]
        return shown[0], "NaN" if len(ordered) < len(given) else shown[-1]
    if isinstance(given[0], str):
        least, greatest = (choose(given, key=str.encode) for choose in (min, max))
        cut = cut_maximum(greatest, PREFIX)
        assert cut is None or all(v.encode() <= cut.encode() for v in given)
        return least[:PREFIX], cut
    if isinstance(given[0], dt.datetime):
        zone = "Z" if given[0].tzinfo else ""
        return tuple(v.replace(tzinfo=None).isoformat(timespec="milliseconds") + zone for v in (min(given), max(given)))
    if isinstance(given[0], dt.date):
        return min(given).isoformat(), max(given).isoformat()
    return Decimal(min(given)), Decimal(max(given))


def _number(value: float, data_type: DataType) -> Any:
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return _Single(value) if data_type == FLOAT else _Double(value)


class _Double:
    """Equal to each decimal that reads back as the same number with the same sign."""

    def __init__(self, value: float) -> None:
        self.value = value

    def back(self, text: Decimal) -> float:
        return float(text)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Decimal):
            return NotImplemented
        back = self.back(other)
        return back == self.value and math.copysign(1, back) == math.copysign(1, self.value)

    def __hash__(self) -> int:
        return hash(self.value)


class _Single(_Double):
    """The same for numbers of 32 bits."""

    def back(self, text: Decimal) -> float:
        return float(pa.scalar(float(text), pa.float32()).as_py())


OPERANDS = {
    "n": ["-1", "0", "2"],
    "f": ["0", "0.5", "CAST('NaN' AS FLOAT)", "CAST('-Infinity' AS FLOAT)"],
    "d": ["0", "-1.5", "CAST('NaN' AS DOUBLE)", "CAST('Infinity' AS DOUBLE)", "-0e0"],
    "m": ["0", "1.5"],
    "t": ["''", "'a'", "'ab~'", "'é'"],
    "day": ["DATE '2000-01-01'"],
    "ts": ["TIMESTAMP '2000-01-01 00:00:00'", "TIMESTAMP '1969-12-31 23:59:59.9995'"],
    "ntz": ["TIMESTAMP_NTZ '2000-01-01 00:00:00'"],
    "s.x": ["0", "1"],
    "s.d": ["0"],
}


@st.composite
def predicates(draw: st.DrawFn) -> str:
    column = draw(st.sampled_from(list(OPERANDS)))
    kind = draw(st.sampled_from(["=", "<", "<=", ">", ">=", "<>", "<=>", "IS NULL", "IS NOT NULL"]))
    return f"{column} {kind}" if kind.startswith("IS") else f"{column} {kind} {draw(st.sampled_from(OPERANDS[column]))}"


@settings(deadline=None, max_examples=examples(40))
@given(rows, st.lists(predicates(), min_size=8, max_size=8), st.integers(1, 3))
def test_scans_that_skip_by_the_statistics_lose_no_row(content: list[Any], texts: list[str], limit: int) -> None:
    batch = batch_of(SCHEMA, content)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        state = write_state(root, SCHEMA, max_records_per_file=limit, string_prefix_length=PREFIX)
        committed(root, state, write_files(state, batch))
        snapshot = load_snapshot(folder)
        for text in texts:
            predicate = parse_predicate(text, snapshot.schema, time_zone="UTC").expr
            want = batch.filter(matches(predicate, batch_resolver(batch), batch.num_rows))
            assert _rows(_scanned(plan_scan(snapshot, where=text))) == _rows(want), text


def _scanned(scan: Scan) -> pa.Table:
    found = [b for file in scan.files() for b in read(scan.state, file)]
    table = pa.Table.from_batches(found, output_schema(scan.state))
    assert table.schema.equals(arrow_schema(SCHEMA))
    return table


def _rows(table: Any) -> list[str]:
    return sorted(map(repr, table.to_pylist()))
