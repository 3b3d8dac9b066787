"""Columns that are called by the whole name of their table, in conditions and values."""

from __future__ import annotations

import pytest

from delta_pyds.errors import UserError
from delta_pyds.statements.qualified_names import QualifiedTable, by_alias

AT_PATH = QualifiedTable.at_path("/x", lambda: ["id", "n", "a`b"])
NAMED = QualifiedTable.of_schema("Sales", "T", lambda: ["id", "N", "sales"])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("s.id = id", None),
        ("s.id = delta.`/x`.id", "s.id = `/x`.id"),
        ("`spark_catalog` . Delta.`/x` .id+`/x`.n.m", "`/x` .id+`/x`.n.m"),
        ("DELTAPY.`/x`.`a``b` > 1", "`/x`.`a``b` > 1"),
        ("a = 'delta.`/x`.id' -- delta.`/x`.id", None),
        ("delta.`/y`.id = other.delta.`/x`.id", None),
        ("delta.`/X`.id = 1", None),
        ("spark_catalog.`/x`.id = delta.`/x`", None),
        ("delta.`/x`.nothing", None),
        ("a = 'open", None),
    ],
)
def test_of_a_path_all_that_stands_before_it_goes(text: str, found: str | None) -> None:
    assert by_alias(text, [AT_PATH]) == (text if found is None else found)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("sales.t.id = s.id", "t.id = s.id"),
        ("Spark_Catalog.SALES.T.n.m + t.id", "T.n.m + t.id"),
        ("other.sales.t.id + hr.t.id", None),
        ("sales.t.x", None),  # the field x of a struct t in the column sales
        ("x.sales.t.id", None),
        ("EXISTS (SELECT 1 FROM u WHERE u.id = sales.t.id)", "EXISTS (SELECT 1 FROM u WHERE u.id = t.id)"),
        # here it may be the subquery's own
        ("id = (SELECT max(sales.t.id) FROM sales.t)", None),
        ("id = (SELECT max(sales.t.id) FROM hr.t)", None),
        ("id = (SELECT max(sales.t.id) FROM u AS t)", None),
        ("id IN (SELECT sales.t.id FROM t)", None),
        ("exists(a, x -> x > sales.t.id)", "exists(a, x -> x > t.id)"),
        ("aggregate(a, 0, (t, x) -> t.id + sales.t.id)", None),
    ],
)
def test_of_a_name_all_goes_that_can_be_nothing_else(text: str, found: str | None) -> None:
    assert by_alias(text, [NAMED]) == (text if found is None else found)


def test_the_alias_may_be_another_word() -> None:
    """Then the last part alone means it, too, but in a subquery, where that may be a column."""
    one = QualifiedTable("t", (("a",), ("spark_catalog",)), "a.t", lambda: ["id"])
    two = QualifiedTable("t", (("b",), ("spark_catalog",)), "b.t", lambda: ["id"])
    assert one.is_in("x = `A` . T .id") and not one.is_in("a.t = xa.t.id")
    assert not one.is_in("UPDATE a.t SET s = 'a.t.id' -- a.t.id") and one.is_in("a.t.id = 'open")
    assert by_alias("a.t.id = 1 AND t.id = t.x", [one]) == "`a.t`.id = 1 AND `a.t`.id = t.x"
    of_lambda = "a.t.id = 1 AND exists(x, t -> t.id = 2)"
    assert by_alias(of_lambda, [one]) == "`a.t`.id = 1 AND exists(x, t -> t.id = 2)"
    subquery = "EXISTS (SELECT 1 FROM u WHERE u.id = {} AND t.id = 1)"
    assert by_alias(subquery.format("a.t.id"), [one]) == subquery.format("`a.t`.id")
    # FROM alone is not a subquery, and beside one the last part means the table as well
    assert by_alias("a.t.id IS DISTINCT FROM t.id", [one]) == "`a.t`.id IS DISTINCT FROM `a.t`.id"
    beside = "{}.id IN (SELECT t.x FROM u WHERE {}.id > 0) AND {}.id = 1"
    assert by_alias(beside.format("t", "a.t", "t"), [one]) == beside.format("`a.t`", "`a.t`", "`a.t`")
    # within a subquery that reads a table of this name, all names that use it are left
    other = "{0}.id = {1}.id AND id IN (SELECT a.t.id FROM t WHERE t.id > 0)"
    assert by_alias(other.format("a.t", "t"), [one]) == other.format("`a.t`", "`a.t`")
    assert by_alias("a.t.id = 1 AND f(1, TABLE (u)) = t.id", [one]) == "`a.t`.id = 1 AND f(1, TABLE (u)) = t.id"
    assert by_alias("a.t.id = spark_catalog.b.t.id AND t.id > 0", [one, two]) == "`a.t`.id = `b.t`.id AND t.id > 0"


def test_what_is_given_a_value_may_be_a_new_column() -> None:
    assert by_alias("sales.t.new", [NAMED], is_target=True) == "sales.t.new"  # sales is a column
    other = QualifiedTable.of_schema("hr", "t", lambda: ["id"])
    assert by_alias("hr.t.new", [other], is_target=True) == "t.new"
    assert by_alias("hr.t.new", [other]) == "hr.t.new"


def test_a_source_may_have_the_last_part_for_its_own_name() -> None:
    """Then that alone means the one that has the column."""
    whole = NAMED.under_whole_name()
    assert by_alias("sales.t.id = t.id", [whole]) == "`sales.T`.id = `sales.T`.id"
    found = by_alias("sales.t.id = t.k AND t.n > 0", [whole], others={"t": ["id", "k"]})
    assert found == "`sales.T`.id = t.k AND `sales.T`.n > 0"
    with pytest.raises(UserError) as error:
        by_alias("sales.t.id = t.id", [whole], others={"t": ["id", "k"]})
    assert error.value.code == "AMBIGUOUS_REFERENCE"
    assert NAMED.is_in_alone("T . id = 1") and NAMED.is_in_alone("sales.t.id = t.id")
    assert not NAMED.is_in_alone("sales.t.id = 't.id' -- t.id") and not NAMED.is_in_alone("id = 1")
    assert AT_PATH.under_whole_name() is AT_PATH
