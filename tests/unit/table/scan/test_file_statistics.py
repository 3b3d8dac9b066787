"""Statistics of the log as columns: what can be understood is exact, anything else is unknown."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from delta_pyds.expr.stats_rewrite import Needs
from delta_pyds.protocol.schema import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
    StructField,
    StructType,
)
from delta_pyds.table.scan.file_statistics import FileStatistics, SkippingColumns


def facts(data_type: DataType, texts: list[str | None]) -> FileStatistics:
    schema = StructType((StructField("c", data_type),))
    path = frozenset({("c",)})
    columns = SkippingColumns(Needs(frozenset(), path, path, True), schema, "UTC")
    assert columns.json_fields == ("stats",)
    return columns.of(pa.array([{"stats": t} for t in texts], pa.struct([("stats", pa.string())])))


def stats(low: Any, high: Any = None, **more: Any) -> str:
    return json.dumps(
        {"numRecords": 3, "minValues": {"c": low}, "maxValues": {"c": high}, "nullCount": {"c": 1}} | more
    )


def bounds(data_type: DataType, *texts: str | None) -> list[tuple[Any, Any]]:
    found = facts(data_type, list(texts))
    low, high = found.minimum(("c",)), found.maximum(("c",))
    assert low is not None and high is not None
    return list(zip(_plain(low), _plain(high), strict=True))


def _plain(array: pa.Array) -> list[Any]:
    return array.cast(pa.int64()).to_pylist() if pa.types.is_timestamp(array.type) else array.to_pylist()


def test_counts_and_bounds_are_read_and_gaps_are_unknown() -> None:
    found = facts(LONG, [stats(1, 5), None, "{}", stats(None)])
    assert found.num_records().to_pylist() == [3, None, None, 3]
    assert found.null_count(("c",)).to_pylist() == [1, None, None, 1]
    assert found.minimum(("c",)).to_pylist() == [1, None, None, None]
    assert found.maximum(("c",)).to_pylist() == [5, None, None, None]


@pytest.mark.parametrize(
    "odd",
    [
        '{"numRecords":3,"minValues":{"c":"text"},"maxValues":{"c":9},"nullCount":{"c":1}}',
        '{"numRecords":3,"minValues":[],"maxValues":{"c":9},"nullCount":{"c":1}}',
        '{"numRecords":3,"maxValues":{"c":9},\n"nullCount":{"c":1}}',
        '{"numRecords":3,"minValues":{"c":1.5},"maxValues":{"c":9},"nullCount":{"c":1}}',
        '{"numRecords":3,"minValues":{"c":99999999999999999999999},"maxValues":{"c":9},"nullCount":{"c":1}}',
        '{"numRecords":3,"minValues":{"c":true},"maxValues":{"c":9},"nullCount":{"c":1}}',
    ],
)
def test_one_odd_file_does_not_cost_the_others_their_statistics(odd: str) -> None:
    found = facts(LONG, [stats(1, 5), odd, stats(2, 6)])
    assert found.minimum(("c",)).to_pylist() == [1, None, 2]
    assert found.maximum(("c",)).to_pylist() == [5, 9, 6]
    assert found.num_records().to_pylist() == [3, 3, 3]


@pytest.mark.parametrize("damaged", ["{", "[]", "null", "not json", '"text"', ""])
def test_statistics_that_are_no_object_are_unknown(damaged: str) -> None:
    found = facts(LONG, [damaged, stats(2, 6)])
    assert found.minimum(("c",)).to_pylist() == [None, 2]


def test_floats_are_rounded_back_and_special_values_read() -> None:
    assert bounds(FLOAT, stats(0.1, 0.30000001192092896)) == [
        (pa.scalar(0.1, pa.float32()).as_py(), pa.scalar(0.3, pa.float32()).as_py())
    ]
    assert bounds(DOUBLE, stats("-Infinity", "Infinity"), stats(1, 2)) == [(float("-inf"), float("inf")), (1.0, 2.0)]


def test_a_timestamp_maximum_is_raised_by_the_millisecond_that_the_json_cut() -> None:
    text = stats("2020-01-01T00:00:00.123Z", "2020-01-01T00:00:00.123Z")
    base = 1_577_836_800_123_000
    assert bounds(TIMESTAMP, text) == [(base, base + 1000)]
    west = stats("2019-12-31T16:00:00.123-08:00", "2019-12-31T16:00:00.123-08:00")
    assert bounds(TIMESTAMP, west) == [(base, base + 1000)]
    wall = stats("2020-01-01T00:00:00.123", "2020-01-01T00:00:00.123")
    assert bounds(TIMESTAMP_NTZ, wall) == [(base, base + 1000)]


def test_a_timestamp_without_a_zone_is_unknown_where_one_is_needed() -> None:
    found = bounds(TIMESTAMP, stats("2020-01-01T00:00:00.123", "2020-01-01T00:00:00Z"))
    assert found[0][0] is None
    assert found[0][1] == 1_577_836_800_001_000


def test_dates_beyond_pythons_range_are_read_and_nonsense_is_unknown() -> None:
    found = facts(DATE, [stats("2020-01-01", "+12000-01-01"), stats("never", "0001-01-01")])
    assert found.minimum(("c",)).cast(pa.int32()).to_pylist() == [18262, None]
    assert found.maximum(("c",)).cast(pa.int32()).to_pylist() == [3663382, -719162]


def test_long_decimals_are_widened_because_some_writers_print_doubles() -> None:
    exact = DecimalType(38, 10)
    ((low, high),) = bounds(
        exact,
        '{"minValues":{"c":1.2345678901234567e+19},"maxValues":{"c":1.2345678901234567e+19},"numRecords":1,"nullCount":{"c":0}}',
    )
    assert low < 12345678901234567890 - 1000 and high > 12345678901234567890 + 1000
    assert bounds(exact, stats(1.5, 2.5)) == [(pa.scalar(1.5).cast(pa.decimal128(38, 10)).as_py(), 2.5)]
    assert bounds(DecimalType(5, 2), stats(1.25, 999.99))[0][0] == pa.scalar(1.25).cast(pa.decimal128(5, 2)).as_py()


_SWAPPED: list[tuple[DataType, Any, Any]] = [
    (LONG, 7, -1),
    (DOUBLE, 1.5, -0.5),
    (BOOLEAN, True, False),
    (STRING, "text 1", "text"),
    # bytes decide, not UTF-16: the emoji is the greater one
    (STRING, "\U0001f600", "\uffff"),
    (DATE, "2024-01-02", "2024-01-01"),
    # what a millisecond more would hide
    (TIMESTAMP, "2024-01-01T00:00:00.0005Z", "2024-01-01T00:00:00.0001Z"),
    (TIMESTAMP_NTZ, "2024-01-01T00:00:00.0005", "2024-01-01T00:00:00.0001"),
    (DecimalType(9, 2), 1.25, -1.25),
    # what the width of a double would hide
    (DecimalType(38, 0), 12345678901234567891, 12345678901234567890),
]


@pytest.mark.parametrize(("data_type", "low", "high"), _SWAPPED, ids=lambda value: str(value)[:20])
def test_bounds_of_which_the_minimum_is_the_greater_one_are_unknown(data_type: DataType, low: Any, high: Any) -> None:
    found = bounds(data_type, stats(low, high), stats(high, low), stats(high, high))
    assert found[0] == (None, None)
    assert None not in found[1] + found[2]


def test_zeroes_are_equal_bounds() -> None:
    assert bounds(DOUBLE, stats(0.0, -0.0)) == [(0.0, 0.0)]
    assert bounds(DOUBLE, stats(1.0, "NaN"))[0][0] == 1.0


def test_parsed_bounds_of_which_the_minimum_is_the_greater_one_are_unknown() -> None:
    path = frozenset({("c",)})
    columns = SkippingColumns(Needs(bounds=path), StructType((StructField("c", TIMESTAMP),)), "UTC")
    one = pa.struct([("c", pa.timestamp("us", "UTC"))])
    parsed = pa.struct([("minValues", one), ("maxValues", one)])
    rows = [{"stats_parsed": {"minValues": {"c": low}, "maxValues": {"c": high}}} for low, high in ((2, 1), (1, 2))]
    found = columns.of(pa.array(rows, pa.struct([("stats_parsed", parsed)])))
    low, high = found.minimum(("c",)), found.maximum(("c",))
    assert low is not None and high is not None
    assert (_plain(low), _plain(high)) == ([None, 1], [None, 1002])


def test_parsed_statistics_of_a_narrower_type_are_widened() -> None:
    schema = StructType((StructField("c", LONG),))
    columns = SkippingColumns(Needs(bounds=frozenset({("c",)})), schema, "UTC")
    assert columns.parsed_fields == ("stats_parsed.minValues.c", "stats_parsed.maxValues.c")
    narrow = pa.struct([("minValues", pa.struct([("c", pa.int32())]))])
    rows = [{"stats_parsed": {"minValues": {"c": 4}}}, {"stats_parsed": None}, None]
    parsed = pa.array(rows, pa.struct([("stats_parsed", narrow)]))
    found = columns.of(parsed).minimum(("c",))
    assert found.type == pa.int64()
    assert found.to_pylist() == [4, None, None]


def test_partition_values_are_typed_once_each() -> None:
    schema = StructType((StructField("p", INTEGER), StructField("q", STRING)))
    columns = SkippingColumns(Needs(partition_columns=frozenset({"p", "q"})), schema, "UTC")
    assert columns.json_fields == columns.parsed_fields == ("partitionValues",)
    values = pa.array(
        [
            {"partitionValues": [("p", "5"), ("q", "x")]},
            {"partitionValues": [("p", None)]},
            {"partitionValues": [("p", "")]},
        ],
        pa.struct([("partitionValues", pa.map_(pa.string(), pa.string()))]),
    )
    bound = columns.of(values)
    assert bound.partition("p").to_pylist() == [5, None, None]
    assert bound.partition("q").to_pylist() == ["x", None, None]


def test_bounds_of_a_column_that_was_a_float_are_unknown() -> None:
    """Printed as 0.7, and 0.699999988 as the double that the rows now are."""
    field = StructField("c", DOUBLE, True, {"delta.typeChanges": [{"fromType": "float", "toType": "double"}]})
    path = frozenset({("c",)})
    columns = SkippingColumns(Needs(frozenset(), path, path, True), StructType((field,)), "UTC")
    found = columns.of(pa.array([{"stats": stats(0.7, 0.7)}], pa.struct([("stats", pa.string())])))
    assert found.minimum(("c",)) is None
    assert found.maximum(("c",)) is None
    assert found.null_count(("c",)).to_pylist() == [1]


def keys(field: StructField, zone: str = "UTC", *, partition: bool = False) -> dict[str, Any]:
    path = frozenset({(field.name,)})
    wanted = Needs(partition_columns=frozenset({field.name})) if partition else Needs(frozenset(), path, path)
    found: dict[str, Any] = {}
    for key in SkippingColumns(wanted, StructType((field,)), zone).keys:
        found[key if isinstance(key, str) else key[0]] = key
    return found


def test_a_key_says_all_that_makes_a_column_what_it_is() -> None:
    """What is kept under it serves other predicates, schemas and sessions."""
    plain = keys(StructField("c", DOUBLE))
    for other in (
        StructField("c", FLOAT),
        StructField("c", DOUBLE, True, {"delta.typeChanges": [{"fromType": "float", "toType": "double"}]}),
        StructField("c", DOUBLE, True, {"delta.columnMapping.physicalName": "col-1"}),
    ):
        assert keys(other)["minValues"] != plain["minValues"] != plain["maxValues"] != keys(other)["maxValues"]
    # the number of nulls has no type, and bounds know no zone
    assert keys(StructField("c", FLOAT))["nullCount"] == plain["nullCount"] != plain["minValues"]
    assert keys(StructField("c", DOUBLE), "Asia/Tokyo") == plain
    renamed = StructField("renamed", DOUBLE, True, {"delta.columnMapping.physicalName": "c"})
    assert keys(renamed) == plain
    stamps = [keys(StructField("c", TIMESTAMP), zone, partition=True) for zone in ("UTC", "Asia/Tokyo")]
    assert stamps[0] != stamps[1] != keys(StructField("c", TIMESTAMP_NTZ), "Asia/Tokyo", partition=True)


@pytest.mark.parametrize("number", ["1e9999999", "-1e9999999", "1e-9999999"])
def test_an_absurd_number_is_unknown_at_once(number: str) -> None:
    text = f'{{"numRecords":{number},"minValues":{{"c":{number}}},"maxValues":{{"c":5}}}}'
    for data_type in (LONG, DecimalType(20, 2)):
        found = facts(data_type, [text, stats(1, 5)])
        assert found.num_records().to_pylist()[1] == 3
        assert found.minimum(("c",)).to_pylist()[1] == 1


def test_half_a_surrogate_pair_is_unknown() -> None:
    text = stats("x", "y").replace('"x"', r'"\ud800"')
    assert bounds(STRING, text, stats("a", "b")) == [(None, "y"), ("a", "b")]


def test_column_names_with_quotes_and_control_characters_have_statistics() -> None:
    path = frozenset({('a"\\\t',)})
    columns = SkippingColumns(Needs(frozenset(), path, path, True), StructType((StructField('a"\\\t', LONG),)), "UTC")
    add = pa.array([{"stats": json.dumps({"minValues": {'a"\\\t': 7}})}], pa.struct([("stats", pa.string())]))
    found = columns.of(add).minimum(('a"\\\t',))
    assert found is not None and found.to_pylist() == [7]
