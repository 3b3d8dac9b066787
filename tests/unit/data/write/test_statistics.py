"""The statistics of a file's rows in the log."""

from __future__ import annotations

import datetime as dt
import itertools
import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_pyds.data.write import writer as writer_module
from delta_pyds.data.write.statistics import cut_maximum, show_milliseconds
from delta_pyds.protocol.schema import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    LONG,
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
from tests.support.scans import struct
from tests.support.writes import batch_of, statistics, write_files, write_rows, write_state

UTC = dt.timezone.utc


def _of(root: Path, data_type: DataType, values: list[Any], **given: Any) -> dict[str, Any]:
    """The statistics of one column ``c`` with these values."""
    schema = struct(("c", data_type))
    (file,) = write_rows(write_state(root, schema, **given), [{"c": v} for v in values])
    return statistics(file)


@pytest.mark.parametrize(
    ("data_type", "values", "low", "high"),
    [
        (LONG, [3, None, -(2**63)], -(2**63), 3),
        (BYTE, [-128, 127], -128, 127),
        (DATE, [dt.date(1969, 12, 31), dt.date(2024, 2, 29)], "1969-12-31", "2024-02-29"),
        (DATE, [dt.date(1, 1, 1), dt.date(9999, 12, 31)], "0001-01-01", "9999-12-31"),
        (STRING, ["b", "a", None, ""], "", "b"),
        (STRING, ['é"\n', "z"], "z", 'é"\n'),
        # bytes order these the other way round than UTF-16 does
        (STRING, ["\uffee", "\U0001f600"], "\uffee", "\U0001f600"),
        (FLOAT, [0.1, -1.5], -1.5, 0.1),
        (FLOAT, [3.4028235e38, 1e-45], 1e-45, 3.4028235e38),
        (DOUBLE, [0.1, 1e300], 0.1, 1e300),
        (DOUBLE, [1.0, math.nan], 1.0, "NaN"),
        (DOUBLE, [1.0, -math.nan, -2.0], -2.0, "NaN"),
        (DOUBLE, [math.nan, None], "NaN", "NaN"),
        (FLOAT, [math.nan, math.inf], "Infinity", "NaN"),
        (DOUBLE, [math.inf, -math.inf], "-Infinity", "Infinity"),
        (DOUBLE, [-5.0, -0.25], -5.0, -0.25),
        (DOUBLE, [5.0, 0.25], 0.25, 5.0),
        (
            TIMESTAMP,
            [dt.datetime(2024, 1, 1, 0, 0, 0, 1999, UTC), dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)],
            "1969-12-31T23:59:59.999Z",
            "2024-01-01T00:00:00.001Z",
        ),
        (
            TIMESTAMP_NTZ,
            [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999_999)],
            "0001-01-01T00:00:00.000",
            "9999-12-31T23:59:59.999",
        ),
    ],
)
def test_bounds_are_the_least_and_the_greatest_value(
    tmp_path: Path, data_type: DataType, values: list[Any], low: Any, high: Any
) -> None:
    found = _of(tmp_path, data_type, values)
    assert found["minValues"] == {"c": low}
    assert found["maxValues"] == {"c": high}
    assert found["nullCount"] == {"c": values.count(None)}
    assert found["numRecords"] == len(values)
    assert "tightBounds" not in found


@pytest.mark.parametrize(("precision", "scale"), [(9, 2), (18, 4), (38, 10), (38, 0), (19, 19)])
def test_decimals_are_exact_numbers(tmp_path: Path, precision: int, scale: int) -> None:
    digits = int("9" * precision)
    low, high = (Decimal(f"{sign}{digits}E-{scale}") for sign in ("-", ""))
    schema = struct(("c", DecimalType(precision, scale)))
    (file,) = write_rows(write_state(tmp_path, schema), [{"c": v} for v in (high, None, low)])
    found = json.loads(file.statistics, parse_float=Decimal, parse_int=Decimal)
    assert (found["minValues"]["c"], found["maxValues"]["c"]) == (low, high)
    assert "E" not in file.statistics


def test_negative_decimals_order_by_value_not_by_bytes(tmp_path: Path) -> None:
    found = _of(tmp_path, DecimalType(38, 0), [Decimal(-1), Decimal(5), Decimal(-300)])
    assert (found["minValues"]["c"], found["maxValues"]["c"]) == (-300, 5)


@pytest.mark.parametrize("data_type", [DOUBLE, FLOAT])
@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        ([0.0, -0.0, 1.0], "-0.0", "1.0"),
        ([0.0, 1.0], "0.0", "1.0"),
        ([-0.0, -1.0], "-1.0", "0.0"),
        ([-1.0, -0.0, 0.0], "-1.0", "0.0"),
        ([-0.0], "-0.0", "0.0"),
    ],
)
def test_zeros_lie_within_the_bounds_whatever_their_signs(
    tmp_path: Path, data_type: DataType, values: list[float], low: str, high: str
) -> None:
    found = _of(tmp_path, data_type, values)
    assert (str(found["minValues"]["c"]), str(found["maxValues"]["c"])) == (low, high)


def test_footers_have_no_bounds_of_floating_columns(tmp_path: Path) -> None:
    """They would leave NaN out, and Spark's reader, for which it is the greatest value, would lose rows by them."""
    schema = struct(
        ("id", LONG),
        ("f", FLOAT),
        ("xs", ArrayType(DOUBLE)),
        ("m", MapType(STRING, FLOAT)),
        ("st", struct(("d", DOUBLE), ("s", STRING))),
    )
    row = {"id": 1, "f": 1.0, "xs": [1.0], "m": [("k", 1.0)], "st": {"d": 1.0, "s": "x"}}
    (file,) = write_rows(write_state(tmp_path, schema), [row, {**row, "f": math.nan}])
    [path] = tmp_path.glob("*.parquet")
    group = pq.ParquetFile(path).metadata.row_group(0)
    columns = [group.column(i) for i in range(group.num_columns)]
    with_bounds = {c.path_in_schema for c in columns if c.statistics is not None}
    assert with_bounds == {"id", "m.key_value.key", "st.s"}
    assert statistics(file)["maxValues"]["f"] == "NaN"
    assert statistics(file)["nullCount"]["f"] == statistics(file)["nullCount"]["st"]["d"] == 0


@pytest.mark.parametrize(
    ("data_type", "value"),
    [
        (BOOLEAN, True),
        (BINARY, b"x"),
        (ArrayType(LONG), [1, None]),
        (MapType(STRING, LONG), [("a", None)]),
        (VARIANT, {"value": b"\x0c\x05", "metadata": b"\x01\x00\x00"}),
    ],
)
def test_other_types_only_count_nulls(tmp_path: Path, data_type: DataType, value: Any) -> None:
    assert _of(tmp_path, data_type, [value, None, value, None, None]) == {"numRecords": 5, "nullCount": {"c": 3}}


def test_empty_arrays_are_no_nulls(tmp_path: Path) -> None:
    assert _of(tmp_path, ArrayType(LONG), [[], None, [None]])["nullCount"] == {"c": 1}


@pytest.mark.parametrize("data_type", [LONG, STRING, DOUBLE, DecimalType(38, 1), TIMESTAMP])
def test_nothing_but_nulls_has_no_bounds(tmp_path: Path, data_type: DataType) -> None:
    assert _of(tmp_path, data_type, [None, None]) == {"numRecords": 2, "nullCount": {"c": 2}}


def test_void_columns_are_null_throughout(tmp_path: Path) -> None:
    schema = struct(("a", LONG), ("v", VOID), ("s", struct(("v", VOID), ("x", LONG))))
    (file,) = write_rows(write_state(tmp_path, schema), [{"a": 1, "v": None, "s": {"v": None, "x": 2}}] * 3)
    assert statistics(file)["nullCount"] == {"a": 0, "v": 3, "s": {"v": 3, "x": 0}}


def test_leaves_below_a_null_struct_are_null(tmp_path: Path) -> None:
    inner = struct(("x", LONG), ("d", DOUBLE), ("l", ArrayType(LONG)), ("t", struct(("y", STRING))))
    schema = struct(("s", inner))
    rows = [
        {"s": None},
        {"s": {"x": 1, "d": 2.5, "l": [], "t": None}},
        {"s": {"x": None, "d": None, "l": None, "t": {"y": "q"}}},
    ]
    (file,) = write_rows(write_state(tmp_path, schema), rows)
    found = statistics(file)
    assert found["nullCount"] == {"s": {"x": 2, "d": 2, "l": 2, "t": {"y": 2}}}
    assert found["minValues"] == {"s": {"x": 1, "d": 2.5, "t": {"y": "q"}}} == found["maxValues"]


def test_values_hidden_below_a_null_struct_do_not_count(tmp_path: Path) -> None:
    schema = struct(("s", struct(("x", LONG), ("d", DOUBLE), ("t", STRING))))
    fields = [pa.array([1, 99]), pa.array([1.0, math.nan]), pa.array(["a", "z" * 5000])]
    column = pa.StructArray.from_arrays(fields, ["x", "d", "t"], mask=pa.array([False, True]))
    (file,) = write_files(write_state(tmp_path, schema), pa.RecordBatch.from_arrays([column], ["s"]))
    found = statistics(file)
    assert found["maxValues"] == {"s": {"x": 1, "d": 1.0, "t": "a"}} == found["minValues"]
    assert found["nullCount"] == {"s": {"x": 1, "d": 1, "t": 1}}


def test_names_are_physical_and_need_not_be_plain(tmp_path: Path) -> None:
    def mapped(name: str, data_type: DataType, physical: str) -> StructField:
        return StructField(name, data_type, True, {"delta.columnMapping.physicalName": physical})

    schema = struct(mapped("a", LONG, 'col".\\1'), mapped("s", struct(mapped("x", LONG, "p.x")), "é"))
    state = write_state(tmp_path, schema, column_mapping_mode="name")
    (file,) = write_rows(state, [{"a": 1, "s": {"x": 2}}])
    assert statistics(file)["minValues"] == {'col".\\1': 1, "é": {"p.x": 2}}


def test_only_the_wanted_columns_have_statistics(tmp_path: Path) -> None:
    schema = struct(("a", LONG), ("s", struct(("x", LONG), ("y", LONG))), ("p", LONG))
    state = write_state(
        tmp_path, schema, stats_columns=(("s", "y"), ("p",)), partition_columns=("p",), partition_columns_in_files=True
    )
    row = {"a": 1, "s": {"x": 2, "y": 3}, "p": 4}
    (file,) = write_rows(state, [row])
    assert statistics(file) == {
        "numRecords": 1, "minValues": {"s": {"y": 3}}, "maxValues": {"s": {"y": 3}}, "nullCount": {"s": {"y": 0}},
    }  # fmt: skip
    (file,) = write_rows(write_state(tmp_path, schema, stats_columns=()), [row])
    assert statistics(file) == {"numRecords": 1}


def test_bounds_are_called_tight_where_the_table_asks_for_it(tmp_path: Path) -> None:
    assert _of(tmp_path, LONG, [1], tight_bounds=True)["tightBounds"] is True


def test_bounds_span_batches_and_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "_ROW_GROUP_ROWS", 2)
    schema = struct(("a", LONG), ("d", DOUBLE), ("t", STRING), ("l", ArrayType(LONG)))
    rows = [
        {"a": 5, "d": math.nan, "t": "y" * 5000, "l": None},
        {"a": None, "d": 1.0, "t": None, "l": [1]},
        {"a": None, "d": None, "t": None, "l": None},
        {"a": None, "d": None, "t": None, "l": None},
        {"a": -1, "d": -0.0, "t": "x", "l": []},
        {"a": 9, "d": -7.5, "t": "z", "l": None},
        {"a": 1, "d": 0.0, "t": "b" * 5000, "l": [1]},
    ]
    batch = batch_of(schema, rows)
    state = write_state(tmp_path, schema)
    (file,) = write_files(state, *(batch.slice(i, 1) for i in range(7)))
    found = statistics(file)
    assert found["minValues"] == {"a": -1, "d": -7.5, "t": "b" * 32}
    assert found["maxValues"] == {"a": 9, "d": "NaN", "t": "z"}
    assert found["nullCount"] == {"a": 3, "d": 2, "t": 3, "l": 4}


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
def test_bounds_and_counts_are_those_of_every_row_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: tuple[int, ...]
) -> None:
    """Of texts too long for a footer, of floats and of lists we keep the bounds and counts of the row groups before."""
    monkeypatch.setattr(writer_module, "_ROW_GROUP_ROWS", 1)
    schema = struct(
        ("t", STRING), ("d", DOUBLE), ("l", ArrayType(LONG)), ("s", StructType((StructField("t", STRING),)))
    )
    texts = ["a" * 5000, "m" * 5000, "z" * 5000]
    rows = [
        {"t": texts[i], "d": float(i), "l": None if i == 1 else [i], "s": {"t": None if i == 2 else texts[i]}}
        for i in order
    ]
    batch = batch_of(schema, rows)
    (file,) = write_files(write_state(tmp_path, schema), *(batch.slice(i, 1) for i in range(3)))
    assert pq.ParquetFile(Path(tmp_path) / file.path).num_row_groups == 3
    found = statistics(file)
    assert found["minValues"] == {"t": "a" * 32, "d": 0.0, "s": {"t": "a" * 32}}
    assert found["maxValues"] == {"t": "z" * 32 + "\x7f", "d": 2.0, "s": {"t": "m" * 32 + "\x7f"}}
    assert found["nullCount"] == {"t": 0, "d": 0, "l": 1, "s": {"t": 1}}


@pytest.mark.parametrize("size", [33, 4096, 4097, 100_000])
def test_long_strings_are_cut(tmp_path: Path, size: int) -> None:
    found = _of(tmp_path, STRING, ["a" * size, None, "é" * size])
    assert found["minValues"] == {"c": "a" * 32}
    assert found["maxValues"] == {"c": "é" * 32 + "\U0010ffff"}


def test_the_length_of_strings_counts_code_points_and_can_be_set(tmp_path: Path) -> None:
    values = ["\U0001f600" * 5, "\U0001f601" * 5]
    found = _of(tmp_path, STRING, values, string_prefix_length=4)
    assert found["minValues"] == {"c": "\U0001f600" * 4}
    assert found["maxValues"] == {"c": "\U0001f601" * 4 + "\U0010ffff"}
    none = _of(tmp_path, STRING, values, string_prefix_length=0)
    assert none["minValues"] == {"c": ""}
    assert "maxValues" not in none


@pytest.mark.parametrize("size", [1, 5000])
def test_strings_that_are_no_utf8_have_no_bounds(tmp_path: Path, size: int) -> None:
    broken = pa.array([b"\xff" * size, b"a"]).view(pa.string())
    (file,) = write_files(write_state(tmp_path, struct(("c", STRING))), pa.RecordBatch.from_arrays([broken], ["c"]))
    assert statistics(file) == {"numRecords": 2, "nullCount": {"c": 0}}


LAST = "\U0010ffff"


@pytest.mark.parametrize(
    ("text", "length", "bound"),
    [
        ("", 0, ""),
        ("a", 0, None),
        ("abc", 3, "abc"),
        ("abcd", 3, "abc\x7f"),
        ("abc~", 3, "abc\x7f"),
        ("abc\x7f", 3, "abc" + LAST),
        ("abcé", 3, "abc" + LAST),
        ("ab" + LAST, 2, "ab" + LAST),
        ("ab" + LAST + "c", 2, "ab" + LAST + "\x7f"),
        ("ab" + LAST * 2 + "c", 2, None),
        ("ab" + LAST * 2, 2, None),
        (LAST * 3, 2, None),
        ("abcd" + LAST * 2 + "é", 4, "abcd" + LAST * 2 + LAST),
        ("abcd" + LAST * 3 + "é", 4, None),
    ],
)
def test_maxima_of_strings_are_cut_as_the_reference_does(text: str, length: int, bound: str | None) -> None:
    assert cut_maximum(text, length) == bound


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (0, "1970-01-01T00:00:00.000"),
        (-1, "1969-12-31T23:59:59.999"),
        (999, "1970-01-01T00:00:00.000"),
        (1_000, "1970-01-01T00:00:00.001"),
        (253_402_300_800_000_000, "+10000-01-01T00:00:00.000"),
        (-62_167_219_200_000_001, "-0001-12-31T23:59:59.999"),
    ],
)
def test_timestamps_are_cut_down_to_milliseconds(micros: int, text: str) -> None:
    assert show_milliseconds(micros) == text


def test_the_first_timestamps_of_all_have_no_bound_below_them(tmp_path: Path) -> None:
    values = pa.array([-(2**63), 2**63 - 1], pa.int64()).view(pa.timestamp("us"))
    (file,) = write_files(
        write_state(tmp_path, struct(("c", TIMESTAMP_NTZ))), pa.RecordBatch.from_arrays([values], ["c"])
    )
    found = statistics(file)
    assert "minValues" not in found
    assert found["maxValues"] == {"c": "+294247-01-10T04:00:54.775"}
