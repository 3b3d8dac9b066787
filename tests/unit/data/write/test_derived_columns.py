from __future__ import annotations

import pyarrow as pa
import pytest

from delta_pyds.data.write.derived_columns import (
    IdentityValues,
    computed_column,
    default_column,
    first_identity_value,
    szudzik_pair,
)
from delta_pyds.data.write.task_session import TaskSession
from delta_pyds.errors import ExpressionError
from delta_pyds.expr.nodes import Cast, Column, Literal
from delta_pyds.protocol.schema import INTEGER, LONG, STRING, VOID
from delta_pyds.tasks.write_state import ColumnSource, IdentityColumn, SessionExpression
from tests.support.write_states import SESSION, TABLE, batch, column, expression

LAST = (1 << 63) - 1


def identity(start: int = 1, step: int = 1, mark: int | None = None) -> IdentityColumn:
    return IdentityColumn(start, step, mark, False)


def numbered(rows: int, *, partition: int = 0, **more: int | None) -> list[int]:
    values = IdentityValues("id", identity(**more), partition).next(rows)
    return list(values.to_pylist())


def test_one_small_task_numbers_densely_from_the_start() -> None:
    assert numbered(5) == [1, 2, 3, 4, 5]
    assert numbered(2048) == list(range(1, 2049))
    assert numbered(3, start=100, step=-10) == [100, 90, 80]


def test_numbers_go_on_after_the_high_water_mark() -> None:
    assert numbered(3, start=1, step=5, mark=21) == [26, 31, 36]
    assert numbered(2, start=1, step=-5, mark=-9) == [-14, -19]


@pytest.mark.parametrize(
    ("start", "step", "mark", "first"),
    [
        (1, 5, None, 1),
        (1, 5, 1, 6),
        (1, 5, 3, 6),  # a mark that no step reaches: a user's own value
        (1, 5, 5, 6),
        (1, 5, -100, 1),
        (1, -5, None, 1),
        (1, -5, 1, -4),
        (1, -5, -2, -4),
        (1, -5, 100, 1),
    ],
)
def test_the_first_value_is_a_step_beyond_the_mark(start: int, step: int, mark: int | None, first: int) -> None:
    assert first_identity_value(identity(start, step, mark)) == first


def test_batches_do_not_change_the_numbers() -> None:
    whole = numbered(5000, partition=3)
    values = IdentityValues("id", identity(), 3)
    parts = [values.next(n).to_pylist() for n in (1, 0, 1022, 1, 1025, 2951)]
    assert [v for part in parts for v in part] == whole
    assert values.mark == max(whole)


def test_the_mark_is_the_value_furthest_along() -> None:
    up, down, idle = (IdentityValues("id", identity(step=s), 2) for s in (3, -3, 1))
    # blocks of one task do not only move on: the first blocks of task 2 are 6, 7, 8 and then 11
    assert up.mark is None
    given = up.next(3000).to_pylist()
    assert up.mark == max(given)
    assert down.next(3000).to_pylist() == [2 - v for v in given]
    assert down.mark == 2 - max(given)
    assert idle.next(0).to_pylist() == []
    assert idle.mark is None


def test_pairs_are_distinct() -> None:
    pairs = {szudzik_pair(x, y) for x in range(60) for y in range(60)}
    assert pairs == set(range(3600))


@pytest.mark.parametrize(
    ("start", "step", "good"), [(LAST - 4, 1, 5), (-LAST - 1 + 4, -1, 5), (-LAST - 1, LAST, 3), (LAST, -LAST, 3)]
)
def test_values_end_with_64_bits(start: int, step: int, good: int) -> None:
    values = IdentityValues("id", identity(start, step), 0)
    assert values.next(good).to_pylist() == [start + i * step for i in range(good)]
    with pytest.raises(ExpressionError, match=r"'id' of table .* has no values left") as e:
        values.next(1)
    assert e.value.code == "ARITHMETIC_OVERFLOW"


def test_a_batch_that_overflows_in_the_middle_fails() -> None:
    with pytest.raises(ExpressionError, match="no values left"):
        numbered(6, start=LAST - 4)


def test_a_default_is_its_value_in_every_row() -> None:
    source = ColumnSource(column("c", STRING), "default", expression=expression(Literal("x", STRING)))
    constant = default_column(source, SESSION, TABLE)
    assert constant.array(3).to_pylist() == ["x"] * 3
    assert constant.array(1).to_pylist() == ["x"]


def test_a_default_of_null_is_null_of_the_columns_type() -> None:
    source = ColumnSource(column("c", STRING), "default", expression=expression(Literal(None, VOID)))
    assert default_column(source, SESSION, TABLE).array(2).type == pa.string()


def test_a_default_uses_no_column() -> None:
    source = ColumnSource(column("c"), "default", expression=expression(Column(("a",), LONG), "a"))
    with pytest.raises(ExpressionError, match=r"the default of column 'c' of table .*, a, .* defaults are constants"):
        default_column(source, SESSION, TABLE)


def test_a_generated_column_is_computed_from_the_others() -> None:
    tree = Cast(Column(("a",), INTEGER), LONG)
    compute = computed_column(ColumnSource(column("g"), "generated", expression=expression(tree)), SESSION, TABLE)
    rows = batch({"a": [1, None]}, {"a": pa.int32()})
    result = compute(lambda path: rows.column(path[0]), 2)
    assert result.type == pa.int64()
    assert result.to_pylist() == [1, None]


def test_an_expression_of_another_type_is_not_stored() -> None:
    source = ColumnSource(column("g"), "generated", expression=expression(Column(("a",), INTEGER), "a"))
    rows = batch({"a": [1]}, {"a": pa.int32()})
    with pytest.raises(ExpressionError, match=r"'g', a, gives int32, but the column has type BIGINT"):
        computed_column(source, SESSION, TABLE)(lambda path: rows.column(path[0]), 1)


def test_the_session_chooses_the_meaning() -> None:
    both = SessionExpression("x", Literal(1, LONG), Literal(2, LONG))
    source = ColumnSource(column("c"), "default", expression=both)
    assert default_column(source, TaskSession(0, ansi=True), TABLE).value.as_py() == 1
    assert default_column(source, TaskSession(0, ansi=False), TABLE).value.as_py() == 2


def test_an_expression_without_meaning_in_the_session_is_refused_with_the_reason() -> None:
    only_ansi = SessionExpression("f(x)", Literal(1, LONG), legacy_refusal="f has no such form.")
    source = ColumnSource(column("c"), "generated", expression=only_ansi)
    with pytest.raises(ExpressionError, match=r"'c' of table .*, f\(x\), .*ansi\.enabled is false: f has no such form"):
        computed_column(source, TaskSession(0, ansi=False), TABLE)
