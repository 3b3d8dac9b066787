"""The condition on a file that a predicate becomes, and the statistics that it needs."""

from __future__ import annotations

import pytest

from delta_pyds.expr.nodes import Column, Literal
from delta_pyds.expr.parse import parse_expression, parse_predicate
from delta_pyds.expr.stats_rewrite import (
    DROP,
    KEEP,
    AllOf,
    AnyOf,
    Bounds,
    Constant,
    HasNull,
    HasValue,
    Needs,
    OnPartition,
    Prefix,
    Skip,
    Within,
    needs,
    skipping,
)
from delta_pyds.protocol.schema import DATE, DOUBLE, INTEGER, LONG, STRING, StructField, StructType

NESTED = StructType((StructField("x", LONG),))
SCHEMA = StructType(
    (
        StructField("i", INTEGER),
        StructField("j", INTEGER),
        StructField("d", DOUBLE),
        StructField("s", STRING),
        StructField("st", NESTED),
        StructField("p", INTEGER),
        StructField("q", DATE),
    )
)
S = Column(("s",), STRING)


def skip_of(text: str) -> Skip:
    return skipping(parse_predicate(text, SCHEMA, time_zone="UTC").expr, ("p", "q"))


def kinds(skip: Skip) -> list[type]:
    return [type(part) for part in skip.parts] if isinstance(skip, (AllOf, AnyOf)) else [type(skip)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i = 1", [HasValue, Bounds]),
        ("NOT i = 1", [HasValue, Bounds]),
        ("i IN (1, 2)", [HasValue, Within]),
        ("i NOT IN (1, 2)", [HasValue, Within]),
        ("i IS NULL", [HasNull]),
        ("i IS NOT NULL", [HasValue]),
        ("st.x IS NULL", [HasNull]),
        # a struct has no count of its own: to ask for one would hide those of its fields
        ("st IS NULL", [Constant]),
        ("st IS NOT NULL AND st.x = 1", [HasValue, Bounds]),
        ("s LIKE 'ab%'", [HasValue, Prefix]),
        ("s LIKE 'ab_d'", [HasValue, Prefix]),
        ("s NOT LIKE 'ab%'", [HasValue, Prefix]),
        ("s NOT LIKE 'ab%c'", [HasValue]),
        ("s LIKE '%ab'", [HasValue]),
        ("i % 2 = 1", [HasValue]),
        ("i < j", [HasValue, HasValue]),
        ("d <= 1.5", [HasValue, Bounds]),
        ("d > 1.5", [HasValue]),
        ("d >= 1.5", [HasValue]),
        ("d <> 1.5", [HasValue]),
        ("d NOT IN (1.5, 2D)", [HasValue]),
        ("d = 'NaN'", [HasValue]),
        ("p = 1", [OnPartition]),
        ("p % 2 = 1 OR q IS NULL", [OnPartition]),
        ("p = 1 AND q > '2020-01-01' AND i = 1", [OnPartition, HasValue, Bounds]),
        ("p < i", [HasValue, OnPartition]),
        ("(i = 1 AND j = 1) IS NULL", [type(KEEP)]),
        ("(i = 1) = (j IS NULL)", [type(KEEP)]),
        ("(i = 1) = (j = 1 OR i = 2)", [type(KEEP)]),
        ("(i = 1) <= (j = 1)", [HasValue, HasValue]),
    ],
)
def test_each_test_becomes_what_statistics_can_say(text: str, expected: list[type]) -> None:
    assert kinds(skip_of(text)) == expected


@pytest.mark.parametrize(
    ("negated", "same"),
    [
        ("NOT s = 'y'", "s <> 'y'"),
        ("NOT i < 3", "i >= 3"),
        ("NOT (i < 3 OR s = 'y')", "i >= 3 AND s <> 'y'"),
        ("NOT (i < 3 AND NOT s = 'y')", "i >= 3 OR s = 'y'"),
        ("NOT NOT i = 3", "i = 3"),
    ],
)
def test_a_negation_beside_a_function_means_its_opposite(negated: str, same: str) -> None:
    def skip(text: str) -> Skip:
        # the function makes it an expression of a command, which keeps negations as they were written
        expr = parse_expression(f"coalesce(j, 5) = 5 AND ({text})", SCHEMA, time_zone="UTC", ansi=True).expr
        return skipping(expr, ("p", "q"))

    assert skip(negated) == skip_of(same)


def test_constants_decide_at_once() -> None:
    assert skip_of("1 = 1") == KEEP
    assert skip_of("i = NULL") == DROP
    assert skip_of("i = 1 AND NULL") == DROP
    assert skip_of("i = 1.5") == DROP
    assert skip_of("i = 1 OR true") == KEEP


def test_a_disjunction_skips_only_where_all_its_parts_do() -> None:
    skip = skip_of("i = 1 OR (i = 1 AND j = 1) IS NULL")
    assert skip == KEEP
    assert isinstance(skip_of("i = 1 OR j % 2 = 1"), AnyOf)


def test_in_lists_are_sorted_as_the_values_compare() -> None:
    skip = skip_of("s IN ('\\uFFFF', 'b', '\\U0001F600', 'a')")
    assert isinstance(skip, AllOf)
    assert skip.parts[1] == Within(S, ("a", "b", "\uffff", "\U0001f600"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i < 1", Needs(bounds=frozenset({("i",)}), null_count=frozenset({("i",)}), num_records=True)),
        ("i > 1", Needs(bounds=frozenset({("i",)}), null_count=frozenset({("i",)}), num_records=True)),
        ("st.x IS NULL", Needs(null_count=frozenset({("st", "x")}))),
        ("p = 1 AND q IS NULL", Needs(partition_columns=frozenset({"p", "q"}))),
        ("1 = 1", Needs()),
    ],
)
def test_only_the_facts_that_matter_are_asked_for(text: str, expected: Needs) -> None:
    assert needs(skip_of(text)) == expected


def test_of_very_many_branches_a_column_keeps_its_least_and_greatest_bound() -> None:
    one = "(i = {0} AND j > {0} AND d = {0}) OR (i BETWEEN {0} AND {1} AND j >= 3 AND d < 1)"
    branches = [one.format(n, n + 5) for n in range(5, 2000)]
    bounds = {
        (part.column.path[0], part.op): part.value.value
        for part in getattr(skip_of(" OR ".join(branches)), "parts", ())
        if isinstance(part, Bounds)
    }
    assert bounds == {("i", ">="): 5, ("i", "<="): 2004, ("j", ">="): 3, ("d", "<="): 1999.0}
    assert skip_of(" OR ".join([*branches, "j = 1"])) == Bounds(Column(("j",), INTEGER), ">=", Literal(1, INTEGER))
    assert skip_of(" OR ".join([*branches, "i % 2 = 1"])) != DROP
    assert skip_of(" OR ".join([*branches, "s = 'x'"])) == KEEP


@pytest.mark.parametrize(
    "text",
    ["coalesce(i, 14) = 14", "coalesce(i, j) IN (1, 2)", "NOT coalesce(s, 'a') LIKE 'b%'",
     "CASE WHEN i > 1 THEN 2 END = 2", "IF(i IS NULL, 1, 2) = 1", "nvl(i, 1) <=> 1", "concat_ws(',', s) = ''"],
)  # fmt: skip
def test_what_makes_something_of_a_null_leaves_no_file_of_nulls_out(text: str) -> None:
    condition = parse_expression(text, SCHEMA, time_zone="UTC", ansi=True).expr
    assert skipping(condition, ("p", "q")) == KEEP
