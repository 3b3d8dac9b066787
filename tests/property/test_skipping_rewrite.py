"""Random tables, random predicates, random statistics: a file with a matching row is never skipped."""

from __future__ import annotations

import math
import pickle
import struct
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from delta_pyds.columnar.evaluate import arrow_type, evaluate, matches
from delta_pyds.columnar.skipping import first_ruling_out, keep
from delta_pyds.expr.build import Builder, bind_column
from delta_pyds.expr.logic import and_, as_filter, is_null, not_, or_
from delta_pyds.expr.nodes import Expr, Literal, conjuncts, references
from delta_pyds.expr.patterns import like
from delta_pyds.expr.stats_rewrite import needs, skipping
from delta_pyds.protocol.schema import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    DataType,
    DecimalType,
    StructField,
    StructType,
)

SMALL_DECIMAL = DecimalType(4, 2)
TYPES: dict[str, DataType] = {
    "b": BOOLEAN, "y": BYTE, "l": LONG, "f": FLOAT, "d": DOUBLE, "n": SMALL_DECIMAL, "s": STRING, "x": BINARY, "t": DATE,
    "p": INTEGER, "q": STRING,
}  # fmt: skip
SCHEMA = StructType(tuple(StructField(name, kind) for name, kind in TYPES.items()))
PARTITIONS = ("p", "q")


def _float(value: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


_numbers = st.sampled_from([0.0, -0.0, 0.1, 0.5, 1.0, 1.5, 2.0, -1.0, 16777217.0, 1e20, math.inf, -math.inf, math.nan])
_letters = st.text(alphabet="ab%_\\é\n\uffff\U0001f600", max_size=4)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "b": st.booleans(),
    "y": st.sampled_from([-128, -1, 0, 1, 2, 3, 7, 127]),
    "l": st.sampled_from([-(2**63), -1, 0, 1, 2, 2**53, 2**53 + 1, 2**62 + 1, 2**63 - 1]),
    "f": _numbers.map(_float),
    "d": _numbers,
    "n": st.integers(-250, 250).map(lambda n: Decimal(n).scaleb(-2)) | st.sampled_from([Decimal("99.99"), Decimal("-99.99")]),
    "s": _letters,
    "x": st.binary(max_size=2),
    "t": st.integers(-3, 3),
    "p": st.integers(0, 3),
    "q": st.sampled_from(["a", "b", "ab", ""]),
}  # fmt: skip

# what a column may be compared with; its values come as they are, numbers of the common type below
_integers = st.sampled_from([-129, -128, -1, 0, 1, 2, 127, 128, 300, 2**53 + 1, 2**62 + 1, 2**63 - 1, -(2**63)]).map(
    lambda n: Literal(n, LONG)
)
_doubles = _numbers.map(lambda x: Literal(x, DOUBLE))
_floats = _numbers.map(lambda x: Literal(_float(x), FLOAT))
_decimals = st.builds(
    lambda n, s: Literal(Decimal(n).scaleb(-s), DecimalType(9, s)), st.integers(-30_000, 30_000), st.integers(0, 5)
)
_numeric = st.one_of(_integers, _doubles, _floats, _decimals)
LITERALS = {name: VALUES[name].map(lambda v, kind=kind: Literal(v, kind)) for name, kind in TYPES.items()}
LITERALS |= {name: LITERALS[name] | _numeric for name in ("y", "l", "f", "d", "n", "p")}
OPS = ("=", "<>", "<", "<=", ">", ">=", "<=>")


def _leaf(name: str) -> st.SearchStrategy[tuple[Any, ...]]:
    literal = LITERALS[name] | st.just(Literal(None, TYPES[name]))
    kinds = [
        st.tuples(st.just("compare"), st.just(name), st.sampled_from(OPS), literal),
        st.tuples(st.just("in"), st.just(name), st.lists(literal, min_size=1, max_size=4).map(tuple)),
        st.tuples(st.just("null"), st.just(name)),
    ]
    if name in ("s", "q"):
        kinds.append(st.tuples(st.just("like"), st.just(name), st.text(alphabet="ab%_é\n", max_size=4)))
    if name == "b":
        kinds.append(st.tuples(st.just("column"), st.just(name)))
    return st.one_of(kinds)


_pairs = st.sampled_from([("y", "l"), ("f", "d"), ("y", "d"), ("n", "y"), ("s", "q"), ("n", "d"), ("p", "l"), ("l", "f")])
_leaves = st.one_of(
    st.sampled_from(sorted(TYPES)).flatmap(_leaf),
    st.tuples(st.just("columns"), _pairs, st.sampled_from(OPS)),
    st.tuples(st.just("remainder"), st.sampled_from(["y", "l", "p"]), st.sampled_from([1, -1, 2, -3, 10]), st.integers(-3, 3)),
    st.just(("constant", None)),
)
SPECS = st.recursive(
    _leaves,
    lambda inner: st.one_of(
        st.tuples(st.just("and"), inner, inner), st.tuples(st.just("or"), inner, inner), st.tuples(st.just("not"), inner)
    ),
    max_leaves=6,
)


def build(spec: tuple[Any, ...]) -> Expr:
    from delta_pyds.expr.build import remainder

    builder, kind = Builder("UTC"), spec[0]
    if kind in ("and", "or"):
        return (and_ if kind == "and" else or_)([build(spec[1]), build(spec[2])])
    if kind == "not":
        return not_(build(spec[1]))
    if kind == "constant":
        return Literal(spec[1], BOOLEAN)
    if kind == "columns":
        left, right = (bind_column([name], SCHEMA) for name in spec[1])
        return builder.null_safe_equal(left, right) if spec[2] == "<=>" else builder.compare(spec[2], left, right)
    column = bind_column([spec[1].upper()], SCHEMA)
    if kind == "compare":
        return builder.null_safe_equal(column, spec[3]) if spec[2] == "<=>" else builder.compare(*spec[2:3], column, spec[3])
    if kind == "in":
        return builder.is_in(column, spec[2])
    if kind == "remainder":
        return builder.compare("=", remainder(column, Literal(spec[2], INTEGER)), Literal(spec[3], INTEGER))
    if kind == "like":
        return like(column, Literal(spec[2], STRING))
    return column if kind == "column" else is_null(column)


# --- the same, naively, one row at a time in Python


def _compare(op: str, a: Any, ta: DataType, b: Any, tb: DataType) -> bool | None:
    if op == "<=>" and (a is None or b is None):
        return a is None and b is None
    if a is None or b is None:
        return None
    if ta != tb and (ta in (FLOAT, DOUBLE) or tb in (FLOAT, DOUBLE)):
        a, b = float(a), float(b)
    a, b = _key(a), _key(b)
    return {"=": a == b, "<=>": a == b, "<>": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op]


def _key(value: Any) -> Any:
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value)
    return value.encode() if isinstance(value, str) else value


def _like(text: str, pattern: str) -> bool:
    if not pattern:
        return not text
    if pattern[0] == "%":
        return any(_like(text[n:], pattern[1:]) for n in range(len(text) + 1))
    return bool(text) and pattern[0] in ("_", text[0]) and _like(text[1:], pattern[1:])


def naive(spec: tuple[Any, ...], row: dict[str, Any]) -> bool | None:
    kind = spec[0]
    if kind in ("and", "or"):
        sides = (naive(spec[1], row), naive(spec[2], row))
        decisive = kind == "or"
        return decisive if decisive in sides else None if None in sides else not decisive
    if kind == "not":
        inner = naive(spec[1], row)
        return None if inner is None else not inner
    if kind == "constant":
        return None
    if kind == "columns":
        left, right = spec[1]
        return _compare(spec[2], row[left], TYPES[left], row[right], TYPES[right])
    value, data_type = row[spec[1]], TYPES[spec[1]]
    if kind == "compare":
        return _compare(spec[2], value, data_type, spec[3].value, spec[3].data_type)
    if kind == "in":
        # all sides meet in one type: doubles as soon as one is floating
        floating = any(t in (FLOAT, DOUBLE) for t in (data_type, *(lit.data_type for lit in spec[2])))
        mixed = any(lit.data_type != data_type for lit in spec[2])
        number = float if floating and mixed else lambda v: v
        found = [
            None if value is None or lit.value is None else _key(number(value)) == _key(number(lit.value)) for lit in spec[2]
        ]
        return True if True in found else None if None in found else False
    if kind == "remainder":
        return None if value is None else int(math.copysign(1, value)) * (abs(value) % abs(spec[2])) == spec[3]
    if kind == "like":
        return None if value is None else _like(value, spec[2])
    return value if kind == "column" else value is None


# --- tables


@dataclass
class Files:
    """Facts of some files, as a log would give them."""

    rows: list[list[dict[str, Any]]]
    bounds: dict[str, list[tuple[Any, Any]]] = field(default_factory=dict)
    nulls: dict[str, list[int | None]] = field(default_factory=dict)
    records: list[int | None] | None = None

    @property
    def num_files(self) -> int:
        return len(self.rows)

    def partition(self, name: str) -> pa.Array:
        return pa.array([rows[0][name] for rows in self.rows], arrow_type(TYPES[name]))

    def minimum(self, path: tuple[str, ...]) -> pa.Array | None:
        return self._bound(path[0], 0)

    def maximum(self, path: tuple[str, ...]) -> pa.Array | None:
        return self._bound(path[0], 1)

    def _bound(self, name: str, side: int) -> pa.Array | None:
        if name not in self.bounds:
            return None
        return _array([pair[side] for pair in self.bounds[name]], TYPES[name])

    def null_count(self, path: tuple[str, ...]) -> pa.Array | None:
        return pa.array(self.nulls[path[0]], pa.int64()) if path[0] in self.nulls else None

    def num_records(self) -> pa.Array | None:
        return None if self.records is None else pa.array(self.records, pa.int64())


def _array(values: list[Any], data_type: DataType) -> pa.Array:
    kind = arrow_type(data_type)
    return pa.array(values, pa.int32()).cast(kind) if data_type == DATE else pa.array(values, kind)


@st.composite
def tables(draw: st.DrawFn) -> Files:
    rows = []
    for _ in range(draw(st.integers(1, 3))):
        fixed = {name: draw(st.none() | VALUES[name]) for name in PARTITIONS}
        null_share = draw(st.sampled_from([0, 1, 2]))
        file = []
        for _ in range(draw(st.integers(1, 4))):
            row = dict(fixed)
            for name in TYPES:
                if name not in PARTITIONS:
                    null = null_share == 2 or (null_share == 1 and draw(st.booleans()))
                    row[name] = None if null else draw(VALUES[name])
            file.append(row)
        rows.append(file)
    files = Files(rows)
    for name, data_type in TYPES.items():
        if name in PARTITIONS:
            continue
        if draw(st.booleans()) or draw(st.booleans()):
            files.bounds[name] = [draw(_bounds([row[name] for row in file], data_type)) for file in rows]
        if draw(st.booleans()) or draw(st.booleans()):
            files.nulls[name] = [draw(_null_count([row[name] for row in file])) for file in rows]
    if draw(st.booleans()) or draw(st.booleans()):
        files.records = [draw(st.just(len(file)) | st.none()) if draw(st.booleans()) else len(file) for file in rows]
    return files


@st.composite
def _bounds(draw: st.DrawFn, values: list[Any], data_type: DataType) -> tuple[Any, Any]:
    present = [v for v in values if v is not None]
    plain = [v for v in present if v == v]  # writers leave NaN out
    if not plain or data_type == BINARY and draw(st.booleans()):
        return (math.nan, math.nan) if present and data_type in (FLOAT, DOUBLE) and draw(st.booleans()) else (None, None)
    low, high = min(plain, key=_key), max(plain, key=_key)
    if len(plain) < len(present) and draw(st.booleans()):
        high = math.nan  # the reference does count NaN
    how = draw(st.sampled_from(["tight", "wide", "truncated", "no minimum", "no maximum"]))
    if how == "wide":
        others = draw(st.lists(VALUES[{v: k for k, v in TYPES.items() if k not in PARTITIONS}[data_type]], max_size=2))
        low = min([low, *(v for v in others if v == v)], key=_key)
        high = high if high != high else max([high, *(v for v in others if v == v)], key=_key)
    elif how == "truncated" and isinstance(low, str):
        low = low[: draw(st.integers(0, 2))]
        cut = draw(st.integers(0, 2))
        high = high if len(high) <= cut else high[:cut] + "\U0010ffff"
    return None if how == "no minimum" else low, None if how == "no maximum" else high


@st.composite
def _null_count(draw: st.DrawFn, values: list[Any]) -> int | None:
    count = sum(v is None for v in values)
    if draw(st.integers(0, 5)) == 0:
        return None
    # under wide bounds only the two ends are exact
    return count if count in (0, len(values)) or draw(st.booleans()) else draw(st.integers(1, len(values) - 1))


def _batch(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [_array([row[name] for row in rows], kind) for name, kind in TYPES.items()], names=list(TYPES)
    )


_SETTINGS = settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@_SETTINGS
@given(SPECS, tables())
def test_no_file_with_a_matching_row_is_skipped(spec: tuple[Any, ...], files: Files) -> None:
    for expr in (build(spec), as_filter(build(spec))):
        skip = pickle.loads(pickle.dumps(skipping(expr, PARTITIONS)))
        kept = keep(skip, files)
        assert kept.null_count == 0
        assert len(kept) == files.num_files
        for number, rows in enumerate(files.rows):
            holds = any(matches(expr, _batch(rows), len(rows)).to_pylist())
            assert kept[number].as_py() or not holds, (expr, number)
        parts = [skipping(part, PARTITIONS) for part in conjuncts(expr)]
        ruled_out = first_ruling_out(parts, files)
        for number in range(files.num_files):
            index = ruled_out[number].as_py()
            if index is None:
                assert kept[number].as_py()
            else:
                assert not any(matches(conjuncts(expr)[index], _batch(files.rows[number]), len(files.rows[number])).to_pylist())


@_SETTINGS
@given(SPECS, tables())
def test_evaluation_agrees_with_a_naive_one(spec: tuple[Any, ...], files: Files) -> None:
    rows = [row for file in files.rows for row in file]
    expected = [naive(spec, row) for row in rows]
    expr = build(spec)
    assert evaluate(expr, _batch(rows), len(rows)).to_pylist() == expected
    assert matches(as_filter(expr), _batch(rows), len(rows)).to_pylist() == [value is True for value in expected]


@_SETTINGS
@given(SPECS)
def test_a_condition_names_every_fact_that_it_looks_at(spec: tuple[Any, ...]) -> None:
    expr = build(spec)
    skip = skipping(expr, PARTITIONS)
    wanted = needs(skip)
    looked: set[tuple[str, Any]] = set()

    class Recorder:
        num_files = 1

        def partition(self, name: str) -> pa.Array:
            looked.add(("partition", name))
            return pa.nulls(1, arrow_type(TYPES[name]))

        def minimum(self, path: tuple[str, ...]) -> pa.Array | None:
            looked.add(("minimum", path))
            return None

        def maximum(self, path: tuple[str, ...]) -> pa.Array | None:
            looked.add(("maximum", path))
            return None

        def null_count(self, path: tuple[str, ...]) -> pa.Array | None:
            looked.add(("null_count", path))
            return None

        def num_records(self) -> pa.Array | None:
            looked.add(("num_records", None))
            return None

    keep(skip, Recorder())
    named = {("partition", name) for name in wanted.partition_columns}
    named |= {("minimum", path) for path in wanted.minimum} | {("maximum", path) for path in wanted.maximum}
    named |= {("null_count", path) for path in wanted.null_count}
    named |= {("num_records", None)} if wanted.num_records else set()
    assert looked <= named
    assert {path for kind, path in named if kind in ("minimum", "maximum", "null_count")} <= references(expr)
