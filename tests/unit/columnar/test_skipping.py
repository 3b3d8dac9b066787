"""Statistics against conditions, one file per line: what drops a file and what must not."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from delta_pyds.columnar.skipping import first_ruling_out, keep
from delta_pyds.expr.nodes import conjuncts
from delta_pyds.expr.parse import parse_predicate
from delta_pyds.expr.stats_rewrite import skipping
from delta_pyds.protocol.schema import BOOLEAN, DOUBLE, INTEGER, STRING, StructField, StructType

SCHEMA = StructType(
    (
        StructField("i", INTEGER),
        StructField("d", DOUBLE),
        StructField("s", STRING),
        StructField("b", BOOLEAN),
        StructField("p", STRING),
    )
)
ARROW = {"i": pa.int32(), "d": pa.float64(), "s": pa.string(), "b": pa.bool_(), "p": pa.string()}


@dataclass
class Statistics:
    """(minimum, maximum, null count) of one column, per file."""

    column: str
    files: list[tuple[Any, Any, int | None]]
    records: list[int | None] | None = None
    partitions: list[str | None] = field(default_factory=list)

    @property
    def num_files(self) -> int:
        return len(self.files)

    def partition(self, name: str) -> pa.Array:
        return pa.array(self.partitions, ARROW[name])

    def _column(self, path: tuple[str, ...], number: int) -> pa.Array | None:
        if path != (self.column,):
            return None
        return pa.array([file[number] for file in self.files], pa.int64() if number == 2 else ARROW[self.column])

    def minimum(self, path: tuple[str, ...]) -> pa.Array | None:
        return self._column(path, 0)

    def maximum(self, path: tuple[str, ...]) -> pa.Array | None:
        return self._column(path, 1)

    def null_count(self, path: tuple[str, ...]) -> pa.Array | None:
        return self._column(path, 2)

    def num_records(self) -> pa.Array | None:
        return None if self.records is None else pa.array(self.records, pa.int64())


def kept(text: str, statistics: Statistics) -> list[bool]:
    expr = parse_predicate(text, SCHEMA, time_zone="UTC").expr
    return keep(skipping(expr, ("p",)), statistics).to_pylist()


# values 1 to 3; only 2; no bounds; no maximum; no minimum; all null; nothing known
INTEGERS = Statistics(
    "i",
    [(1, 3, 0), (2, 2, 1), (None, None, 1), (2, None, 0), (None, 2, 0), (None, None, 4), (None, None, None)],
    [4, 4, 4, 4, 4, 4, None],
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i = 2", [1, 1, 1, 1, 1, 0, 1]),
        ("i = 3", [1, 0, 1, 1, 0, 0, 1]),
        ("i < 2", [1, 0, 1, 0, 1, 0, 1]),
        ("i <= 2", [1, 1, 1, 1, 1, 0, 1]),
        ("i > 2", [1, 0, 1, 1, 0, 0, 1]),
        ("i >= 3", [1, 0, 1, 1, 0, 0, 1]),
        ("i <> 2", [1, 0, 1, 1, 1, 0, 1]),
        ("NOT (i = 2)", [1, 0, 1, 1, 1, 0, 1]),
        ("i IN (0, 4)", [0, 0, 1, 1, 1, 0, 1]),
        ("i IN (0, 2, 4)", [1, 1, 1, 1, 1, 0, 1]),
        ("i NOT IN (2, 5)", [1, 0, 1, 1, 1, 0, 1]),
        ("i IS NULL", [0, 1, 1, 0, 0, 1, 1]),
        ("i IS NOT NULL", [1, 1, 1, 1, 1, 0, 1]),
        ("i <=> 3", [1, 0, 1, 1, 0, 0, 1]),
        ("NOT (i <=> 2)", [1, 1, 1, 1, 1, 1, 1]),
        ("i = 2 AND i = 3", [1, 0, 1, 1, 0, 0, 1]),
        ("i = 3 OR i IS NULL", [1, 1, 1, 1, 0, 1, 1]),
        ("NOT (i < 3 OR i IS NULL)", [1, 0, 1, 1, 0, 0, 1]),
        ("i % 2 = 0", [1, 1, 1, 1, 1, 0, 1]),
        ("s = 'a'", [1, 1, 1, 1, 1, 1, 1]),
        ("i = 2 OR s = 'a'", [1, 1, 1, 1, 1, 1, 1]),
        ("i = NULL", [0, 0, 0, 0, 0, 0, 0]),
        ("1 = 1", [1, 1, 1, 1, 1, 1, 1]),
    ],
)
def test_whole_numbers(text: str, expected: list[int]) -> None:
    assert kept(text, INTEGERS) == [bool(e) for e in expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("d = 1.5", [1, 0, 1, 1]),
        ("d = 5", [0, 0, 1, 1]),
        ("d < 1", [0, 0, 1, 1]),
        ("d > 5", [1, 1, 1, 1]),
        ("d >= 5", [1, 1, 1, 1]),
        ("d <> 2", [1, 1, 1, 1]),
        ("d = 'NaN'", [1, 1, 1, 1]),
        ("d NOT IN (2)", [1, 1, 1, 1]),
        ("d NOT IN (2, 7)", [1, 1, 1, 1]),
        ("NOT (d <= 2)", [1, 1, 1, 1]),
        ("d IN (0, 0.5)", [0, 0, 1, 1]),
    ],
)
def test_a_maximum_of_floats_may_have_left_out_nan(text: str, expected: list[int]) -> None:
    statistics = Statistics(
        "d", [(1.0, 2.0, 0), (2.0, 2.0, 0), (math.nan, math.nan, 0), (math.nan, None, None)], [9] * 4
    )
    assert kept(text, statistics) == [bool(e) for e in expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("s LIKE 'ab%'", [1, 1, 0, 0, 1, 1]),
        ("s NOT LIKE 'ab%'", [0, 1, 1, 1, 1, 1]),
        ("s LIKE 'abcd%'", [1, 1, 0, 0, 1, 1]),
        ("s LIKE 'a_x'", [1, 1, 0, 1, 1, 1]),
        ("s LIKE '%x'", [1, 1, 1, 1, 1, 1]),
        ("startswith(s, 'zz')", [0, 1, 1, 0, 1, 1]),
        ("s = 'ab'", [1, 1, 0, 0, 1, 1]),
        ("s > 'abz'", [1, 1, 1, 1, 1, 1]),
        ("s IN ('abq', 'c')", [1, 1, 1, 0, 1, 1]),
    ],
)
def test_strings_may_have_bounds_that_are_cut(text: str, expected: list[int]) -> None:
    # inside "ab"; around everything; after; after "ab", before "b"; half known; unknown
    files = [
        ("ab", "ab\U0010ffff", 0),
        ("a", "zz\x7f", 0),
        ("b", "zz", 0),
        ("ac", "az", 0),
        ("a", None, 0),
        (None, None, 0),
    ]
    assert kept(text, Statistics("s", files, [2] * 6)) == [bool(e) for e in expected]


def test_booleans_skip_where_bounds_are_known() -> None:
    statistics = Statistics("b", [(True, True, 0), (False, False, 0), (False, True, 0), (None, None, 0)], [1] * 4)
    assert kept("b", statistics) == [True, False, True, True]
    assert kept("NOT b", statistics) == [False, True, True, True]
    assert kept("b = false", statistics) == [False, True, True, True]
    assert kept("b IS NOT TRUE", statistics) == [False, True, True, True]


def test_partition_values_are_exact_for_any_expression() -> None:
    statistics = Statistics("i", [(1, 3, 0)] * 4, [1] * 4, ["abc", "b", None, ""])
    assert kept("p LIKE '%c'", statistics) == [True, False, False, False]
    assert kept("p IS NULL", statistics) == [False, False, True, False]
    assert kept("p = 'b' OR i = 2", statistics) == [True] * 4
    assert kept("p = 'b' OR i = 9", statistics) == [False, True, False, False]
    assert kept("NOT (p = 'b') AND i = 2", statistics) == [True, False, False, True]
    assert kept("p < s", statistics) == [True, True, False, True]


def test_a_long_list_is_looked_at_in_ranges() -> None:
    statistics = Statistics("i", [(1, 3, 0), (100_001, 100_003, 0), (5_000, 5_000, 0), (None, None, None)], [9] * 4)
    values = ", ".join(str(n) for n in range(1000, 9001))
    assert kept(f"i IN ({values})", statistics) == [False, False, True, True]


def test_unknown_counts_of_records_prove_nothing() -> None:
    assert kept("i IS NOT NULL", Statistics("i", [(None, None, 0), (None, None, 3)], None)) == [True, True]
    assert kept("i IS NOT NULL", Statistics("i", [(None, None, 3), (None, None, 3)], [3, None])) == [False, True]
    # writers that do not know the number say 0
    assert kept("i IS NOT NULL", Statistics("i", [(None, None, 0), (1, 3, 0)], [0, 0])) == [True, True]
    assert kept("i > 2", Statistics("i", [(None, None, 0), (1, 3, 0)], [0, 0])) == [True, True]


def test_nulls_alone_have_no_bounds() -> None:
    statistics = Statistics("i", [(1, 3, 3), (1, None, 3), (None, 3, 3), (None, None, 3)], [3] * 4)
    for text in ("i IS NOT NULL", "i = 2", "i >= 2"):
        assert kept(text, statistics) == [True, True, True, False], text


def test_the_first_part_that_rules_a_file_out_is_told() -> None:
    expr = parse_predicate("p = 'a' AND i > 2 AND i IS NOT NULL", SCHEMA, time_zone="UTC").expr
    statistics = Statistics(
        "i", [(1, 3, 0), (1, 3, 0), (1, 2, 0), (None, None, 5), (1, 2, 0)], [5] * 5, ["a", "b", "a", "a", "b"]
    )
    parts = [skipping(part, ("p",)) for part in conjuncts(expr)]
    ruled_out = first_ruling_out(parts, statistics)
    assert ruled_out.type == pa.int32()
    assert ruled_out.to_pylist() == [None, 0, 1, 1, 0]
    assert first_ruling_out([], statistics).to_pylist() == [None] * 5


def test_counts_below_zero_prove_nothing() -> None:
    assert kept("i IS NOT NULL", Statistics("i", [(None, None, -1), (None, None, 4)], [-1, 4])) == [True, False]
    assert kept("i = 1", Statistics("i", [(1, 1, -1)], [-1])) == [True]
    assert kept("i IS NULL", Statistics("i", [(1, 1, -1)], [4])) == [True]
