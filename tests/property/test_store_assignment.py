"""A value that is stored is the value that came, or the task fails; which of the two depends on nothing else."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_pyds.columnar.schema import arrow_type
from delta_pyds.data.write.store_assignment import fits, plan_assignment
from delta_pyds.errors import ConstraintViolationError, UserError
from delta_pyds.protocol.schema import (
    BYTE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)
from tests.support.sampling import examples

_BITS = {"byte": 8, "short": 16, "integer": 32, "long": 64}
_NUMBERS: list[DataType] = [BYTE, SHORT, INTEGER, LONG, FLOAT, DOUBLE]
_kinds = st.sampled_from(_NUMBERS) | st.builds(
    lambda p, s: DecimalType(p, min(p, s)), st.integers(1, 38), st.integers(0, 38)
)


@st.composite
def _numbers(draw: st.DrawFn) -> tuple[DataType, list[Any]]:
    kind = draw(_kinds)
    if isinstance(kind, DecimalType):
        unscaled = st.integers(-(10**kind.precision) + 1, 10**kind.precision - 1)
        values: st.SearchStrategy[Any] = unscaled.map(lambda n: Decimal(f"{n}E-{kind.scale}"))
    elif isinstance(kind, PrimitiveType) and kind.name in _BITS:
        limit = 1 << (_BITS[kind.name] - 1)
        near = st.sampled_from([7, 8, 15, 16, 31, 32, 63]).flatmap(
            lambda b: st.sampled_from([s * (1 << b) + d for s in (1, -1) for d in (-1, 0, 1)])
        )
        values = (st.integers(-limit, limit - 1) | near).filter(lambda n: -limit <= n < limit)
    else:
        values = st.floats(width=32 if kind == FLOAT else 64, allow_nan=False)
    return kind, draw(st.lists(st.none() | values, max_size=8))


@given(_numbers(), _kinds, st.integers(0, 3))
@settings(max_examples=examples(600), deadline=None)
def test_numbers_are_stored_unchanged_or_refused(
    numbers: tuple[DataType, list[Any]], target: DataType, start: int
) -> None:
    kind, values = numbers
    array = pa.array(values, arrow_type(kind)).slice(start)
    try:
        assignment = plan_assignment(array.type, target, "c")
    except UserError as e:
        assert e.code == "DELTA_FAILED_TO_MERGE_FIELDS"
        assert kind != target
        return
    try:
        result = array if assignment.convert is None else assignment.convert(array)
    except ConstraintViolationError:
        assert any(v is not None and not _holds(target, v) for v in values[start:])
        return
    result.validate(full=True)
    assert fits(result.type, arrow_type(target))
    assert result.to_pylist() == array.to_pylist()


def _holds(kind: DataType, value: Any) -> bool:
    if isinstance(kind, DecimalType):
        return abs(Decimal(value)) < Decimal(10) ** (kind.precision - kind.scale)
    assert isinstance(kind, PrimitiveType)
    return -(1 << (_BITS[kind.name] - 1)) <= value < 1 << (_BITS[kind.name] - 1)


# --- nested: the same rows in other shapes

_leaves = st.sampled_from([(pa.int32(), LONG), (pa.int64(), LONG), (pa.int64(), INTEGER), (pa.int8(), DOUBLE)])


@st.composite
def _shapes(draw: st.DrawFn, depth: int = 3) -> tuple[pa.DataType, DataType, st.SearchStrategy[Any], Any]:
    """An incoming type, the table's, values of the first, and how each looks in the second."""
    shape = draw(st.sampled_from(["leaf", "array", "map", "struct"] if depth else ["leaf"]))
    if shape == "leaf":
        source, target = draw(_leaves)
        return source, target, st.integers(-100, 100), lambda v: v
    if shape == "struct":
        names = draw(st.lists(st.sampled_from("abcd"), min_size=1, max_size=3, unique=True))
        parts = {name: draw(_shapes(depth - 1)) for name in names}
        arrow = pa.struct([(name.upper() if i % 2 else name, parts[name][0]) for i, name in enumerate(names)])
        fields = [StructField(name, parts[name][1]) for name in sorted(names)] + [StructField("lacking", LONG)]
        spelled = {name: field.name for name, field in zip(names, arrow, strict=True)}
        values = st.fixed_dictionaries({spelled[name]: st.none() | parts[name][2] for name in names})

        def look(value: Any) -> Any:
            if value is None:
                return None
            shown = {name: _seen(parts[name][3], value[spelled[name]]) for name in sorted(names)}
            return shown | {"lacking": None}

        return arrow, StructType(tuple(fields)), values, look
    source, target, values, look_inside = draw(_shapes(depth - 1))
    if shape == "array":
        kind = draw(st.sampled_from([pa.list_, pa.large_list]))
        rows = st.lists(st.none() | values, max_size=3)
        return kind(source), ArrayType(target), rows, lambda v: [_seen(look_inside, e) for e in v]
    entries = st.lists(st.tuples(st.integers(0, 9), st.none() | values), max_size=3)
    mapped = MapType(LONG, target)
    return pa.map_(pa.int16(), source), mapped, entries, lambda v: [(k, _seen(look_inside, e)) for k, e in v]


def _seen(look: Any, value: Any) -> Any:
    return None if value is None else look(value)


@given(st.data(), _shapes(), st.integers(0, 4))
@settings(max_examples=examples(250), deadline=None)
def test_nested_rows_keep_every_value(data: st.DataObject, shape: Any, start: int) -> None:
    source, target, values, look = shape
    rows = data.draw(st.lists(st.none() | values, max_size=6))
    array = pa.array(rows, source).slice(start)
    assignment = plan_assignment(source, target, "c")
    result = array if assignment.convert is None else assignment.convert(array)
    result.validate(full=True)
    assert result.type == assignment.data_type
    assert fits(result.type, arrow_type(target))
    assert result.to_pylist() == [_seen(look, row) for row in rows[start:]]
