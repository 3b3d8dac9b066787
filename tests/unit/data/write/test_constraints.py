from __future__ import annotations

import datetime as dt
import math
import pickle
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from delta_pyds.data.write.constraints import Constraints
from delta_pyds.data.write.task_session import TaskSession
from delta_pyds.errors import ConstraintViolationError, ExpressionError
from delta_pyds.expr.nodes import And, Cast, Column, Comparison, IsNull, Literal, Not
from delta_pyds.protocol.schema import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    VOID,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)
from delta_pyds.tasks.write_state import Check, ColumnSource, SessionExpression
from tests.support.write_states import SESSION, TABLE, batch, column, expression, given, greater, state_of


def checked(columns: dict[str, Any], *checks: Check, types: dict[str, pa.DataType] | None = None) -> None:
    rows = batch(columns, types)
    Constraints(state_of(given(*(column(name) for name in columns)), checks), SESSION).check(rows)


def refused(columns: dict[str, Any], *checks: Check) -> ConstraintViolationError:
    with pytest.raises(ConstraintViolationError) as e:
        checked(columns, *checks)
    return e.value


def not_null(field: StructField, values: list[Any], data_type: pa.DataType) -> str:
    """The column that was found to be null; empty if none was."""
    rows = batch({field.name: pa.array(values, data_type)})
    try:
        Constraints(state_of(given(field)), SESSION).check(rows)
    except ConstraintViolationError as e:
        assert e.code == "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"
        assert TABLE in e.message
        return str(e.parameters["column"])
    return ""


# --- NOT NULL


def test_a_null_in_a_not_null_column_is_refused() -> None:
    assert not_null(column("a", nullable=False), [1, 2], pa.int64()) == ""
    assert not_null(column("a", nullable=False), [1, None], pa.int64()) == "a"
    assert not_null(column("a"), [None], pa.int64()) == ""
    assert not_null(column("a", VOID, nullable=False), [None], pa.null()) == ""


def test_a_field_of_a_struct_may_be_null_only_below_a_null_struct() -> None:
    inner = StructType((StructField("y", LONG, False),))
    field = column("s", StructType((StructField("x", STRING), StructField("t", inner))))
    arrow = pa.struct([("x", pa.string()), ("t", pa.struct([("y", pa.int64())]))])
    good = [None, {"x": None, "t": None}, {"x": "x", "t": {"y": 1}}]
    assert not_null(field, good, arrow) == ""
    assert not_null(field, [*good, {"x": "x", "t": {"y": None}}], arrow) == "s.t.y"
    assert not_null(column("s", StructType((StructField("x", STRING, False),)), False), [None], arrow) == "s"


def test_elements_and_values_may_not_be_null_where_the_type_says_so() -> None:
    field = column("a", ArrayType(StructType((StructField("x", LONG, False),)), False))
    arrow = pa.list_(pa.struct([("x", pa.int64())]))
    assert not_null(field, [None, [], [{"x": 1}]], arrow) == ""
    assert not_null(field, [[{"x": 1}, None]], arrow) == "a.element"
    assert not_null(field, [None, [{"x": None}]], arrow) == "a.element.x"
    mapped = column("m", MapType(STRING, ArrayType(LONG, False), False))
    entries = pa.map_(pa.string(), pa.list_(pa.int64()))
    assert not_null(mapped, [None, [], [("k", [1])]], entries) == ""
    assert not_null(mapped, [[("k", [1])], [("k", None)]], entries) == "m.value"
    assert not_null(mapped, [None, [("k", [None])]], entries) == "m.value.element"


def test_only_the_rows_of_a_slice_count() -> None:
    field = column("m", MapType(STRING, LONG, False))
    rows = batch({"m": pa.array([[("a", None)], [("b", 1)], None, [("c", None)]], pa.map_(pa.string(), pa.int64()))})
    constraints = Constraints(state_of(given(field)), SESSION)
    constraints.check(rows.slice(1, 2))
    with pytest.raises(ConstraintViolationError):
        constraints.check(rows.slice(2, 2))


# --- CHECK constraints, invariants, replaceWhere


@pytest.mark.parametrize("bad", [0, -5, None])
def test_a_row_for_which_a_constraint_is_false_or_null_is_refused(bad: int | None) -> None:
    check = Check("check", "positive", greater("a", 0))
    checked({"a": [1, 2, 3]}, check)
    error = refused({"a": [1, bad, -7], "b": [9, 8, 7]}, check)
    assert error.code == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
    shown = "null" if bad is None else str(bad)
    assert error.message == (
        f"CHECK constraint 'positive' (a > 0) of table {TABLE} violated by row with values:\n - a : {shown}"
    )


def test_the_values_are_those_of_the_first_row_that_fails() -> None:
    tree = And((greater("a", 0).ansi, greater("b", 0).ansi))
    error = refused({"b": [1, 1, -3], "a": [1, -2, 1]}, Check("check", "both", expression(tree, "a > 0 AND b > 0")))
    assert error.message.endswith(":\n - a : -2\n - b : 1")


def test_every_check_counts() -> None:
    checks = [Check("check", f"c{i}", greater("a", i)) for i in range(3)]
    assert "'c2'" in refused({"a": [2]}, *checks).message


def test_an_invariant_is_refused_by_the_name_of_its_column() -> None:
    error = refused({"x": [4, 3]}, Check("invariant", "x", greater("x", 3)))
    assert error.code == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
    assert "invariant of column 'x' (x > 3)" in error.message


def test_a_row_outside_of_replace_where_is_refused() -> None:
    error = refused({"x": [4, None]}, Check("replace_where", "replaceWhere", greater("x", 3)))
    assert error.code == "DELTA_REPLACE_WHERE_MISMATCH"
    assert "x > 3" in error.message
    assert " - x : null" in error.message


def test_a_constant_condition_counts_for_every_row() -> None:
    checked({"a": [1]}, Check("check", "fine", expression(Literal(True, BOOLEAN))))
    assert refused({"a": [1]}, Check("check", "never", expression(Literal(None, BOOLEAN), "NULL"))).code
    checked({"a": []}, Check("check", "never", expression(Literal(False, BOOLEAN))))


def test_fields_of_structs_are_shown_by_their_path() -> None:
    kind = StructType((StructField("x", LONG),))
    tree = Not(IsNull(Column(("s", "x"), LONG)))
    state = state_of(given(column("s", kind)), [Check("check", "there", expression(tree, "s.x IS NOT NULL"))])
    rows = batch({"s": pa.array([{"x": 1}, None])})
    with pytest.raises(ConstraintViolationError, match=r" - s\.x : null"):
        Constraints(state, SESSION).check(rows)


@pytest.mark.parametrize(
    ("data_type", "array", "shown"),
    [
        (STRING, pa.array(["it's"]), "it's"),
        (STRING, pa.array(["x" * 300]), "x" * 200 + "... (300 characters)"),
        (BINARY, pa.array([b"\x01\xff"]), "X'01FF'"),
        (BOOLEAN, pa.array([False]), "false"),
        (DOUBLE, pa.array([math.nan]), "nan"),
        (DATE, pa.array([dt.date(2024, 2, 29)]), "2024-02-29"),
        (DATE, pa.array([2_932_897], pa.int32()).cast(pa.date32()), "+10000-01-01"),
        (TIMESTAMP, pa.array([1], pa.timestamp("us", "UTC")), "1970-01-01 00:00:00.000001Z"),
        (LONG, pa.array([None], pa.int64()), "null"),
    ],
)
def test_values_are_shown_readably(data_type: DataType, array: pa.Array, shown: str) -> None:
    tree = Comparison("=", Literal(1, LONG), Literal(2, LONG))
    both = And((tree, Not(IsNull(Column(("c",), data_type)))))
    state = state_of(given(column("c", data_type)), [Check("check", "no", expression(both))])
    with pytest.raises(ConstraintViolationError) as e:
        Constraints(state, SESSION).check(batch({"c": array}))
    assert e.value.message.endswith(f" - c : {shown}")


def test_the_session_chooses_the_meaning_of_a_check() -> None:
    both = SessionExpression("strict?", greater("a", 5).ansi, greater("a", 0).ansi)
    state = state_of(given(column("a")), [Check("check", "c", both)])
    rows = batch({"a": [3]})
    Constraints(state, TaskSession(0, ansi=False)).check(rows)
    with pytest.raises(ConstraintViolationError):
        Constraints(state, TaskSession(0, ansi=True)).check(rows)
    only_ansi = SessionExpression("f(a)", both.ansi, None, "f is strict.")
    with pytest.raises(
        ExpressionError, match=r"constraint 'c' of table .*, f\(a\).*f is strict\. Set spark\.sql\.ansi\.enabled"
    ):
        Constraints(state_of(given(column("a")), [Check("check", "c", only_ansi)]), TaskSession(0, ansi=False))


# --- generated columns that rows bring


def generated(data_type: DataType = LONG) -> tuple[ColumnSource, ...]:
    source = ColumnSource(column("a", data_type), "input", 0)
    made = expression(Column(("a",), data_type), "a")
    return source, ColumnSource(column("g", data_type), "generated", 1, made)


def test_given_values_of_a_generated_column_must_be_the_generated_ones() -> None:
    constraints = Constraints(state_of(generated()), SESSION)
    constraints.check(batch({"a": [1, None], "g": [1, None]}))
    for a, g in ((1, 2), (None, 2), (1, None)):
        with pytest.raises(ConstraintViolationError) as e:
            constraints.check(batch({"a": [7, a], "g": [7, g]}))
        assert e.value.code == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
        show = {None: "null"}
        assert e.value.message == (
            f"CHECK constraint Generated Column (g <=> a) of table {TABLE} violated by row with values:\n"
            f" - g : {show.get(g, g)}\n - a : {show.get(a, a)}"
        )


def test_nan_is_nan_and_zero_has_no_sign_for_generated_columns() -> None:
    constraints = Constraints(state_of(generated(DOUBLE)), SESSION)
    constraints.check(batch({"a": pa.array([math.nan, 0.0, None]), "g": pa.array([math.nan, -0.0, None])}))
    for a, g in ((math.nan, 1.0), (1.0, math.nan), (None, math.nan), (math.nan, None)):
        with pytest.raises(ConstraintViolationError):
            constraints.check(batch({"a": pa.array([a], pa.float64()), "g": pa.array([g], pa.float64())}))


def test_generated_columns_that_the_task_computed_are_not_computed_again() -> None:
    source, brought = generated()
    wrong = batch({"a": [1], "g": [2]})
    with pytest.raises(ConstraintViolationError):
        Constraints(state_of([source, brought]), SESSION).check(wrong)
    Constraints(state_of([source, replace(brought, input=None)]), SESSION).check(wrong)


def test_an_expression_that_fails_for_a_row_names_the_constraint() -> None:
    tree = IsNull(Cast(Column(("nowhere",), INTEGER), LONG))
    with pytest.raises(ExpressionError, match=r"the CHECK constraint 'odd' of table .*, f\(x\), cannot be computed"):
        checked({"a": [1]}, Check("check", "odd", expression(tree, "f(x)")))


def test_violations_survive_the_way_to_the_driver() -> None:
    error = refused({"a": [0]}, Check("check", "positive", greater("a", 0)))
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), copy.parameters) == (type(error), str(error), error.parameters)
