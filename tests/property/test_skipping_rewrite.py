"""Random tables, random predicates, random statistics: a file with a matching row is never skipped."""

from __future__ import annotations

import math
import pickle
import random
import struct
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from delta_pyds.columnar.evaluate import evaluate, matches
from delta_pyds.columnar.skipping import first_ruling_out, keep
from delta_pyds.columnar.values import value_type
from delta_pyds.expr import stats_rewrite
from delta_pyds.expr.binder.build import Builder, bind_column
from delta_pyds.expr.functions.patterns import like
from delta_pyds.expr.logic import and_, as_filter, is_null, not_, or_
from delta_pyds.expr.nodes import Expr, Literal, Not, conjuncts, references
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
from tests.support.sampling import examples

SMALL_DECIMAL = DecimalType(4, 2)
TYPES: dict[str, DataType] = {
    "b": BOOLEAN, "y": BYTE, "l": LONG, "f": FLOAT, "d": DOUBLE, "n": SMALL_DECIMAL, "s": STRING, "x": BINARY,
    "t": DATE, "p": INTEGER, "q": STRING,
}  # fmt: skip
SCHEMA = StructType(tuple(StructField(name, kind) for name, kind in TYPES.items()))
PARTITIONS = ("p", "q")


def _float(value: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


_NUMBERS = [0.0, -0.0, 0.1, 0.5, 1.0, 1.5, 2.0, -1.0, 16777217.0, 2.0**53, 1e20, math.inf, -math.inf, math.nan]
_STRINGS = [
    "",
    "a",
    "b",
    "ab",
    "aab",
    "abb",
    "a\nb",
    "\n",
    "é",
    "aé",
    "\U0001f600",
    "\uffff",
    "a%",
    "a_b",
    "\\",
    "a\uffffb",
]
POOLS: dict[str, list[Any]] = {
    "b": [False, True],
    "y": [-128, -3, -1, 0, 1, 2, 7, 127],
    "l": [-(2**63), -7, -1, 0, 1, 2, 2**53, 2**53 + 1, 2**62 + 1, 2**63 - 1],
    "f": [_float(x) for x in _NUMBERS],
    "d": _NUMBERS,
    "n": [Decimal(n).scaleb(-2) for n in (-9999, -150, -100, -10, 0, 10, 49, 50, 51, 100, 150, 200, 9999)],
    "s": _STRINGS,
    "x": [b"", b"\x00", b"a", b"a\xff", b"\xff"],
    "t": [-719_529, -1, 0, 1, 2, 2_932_897],
    "p": [0, 1, 2, -3],
    "q": ["a", "b", "ab", ""],
}

# what a column is compared with; numbers of other types meet it in a common type
_MIXED = [
    *(Literal(n, LONG) for n in (-129, -128, -1, 0, 1, 2, 127, 128, 300, 2**53, 2**53 + 1, 2**62 + 1, -(2**63))),
    *(Literal(x, DOUBLE) for x in (*_NUMBERS, 9.3e18, -9.3e18, 99.99, 0.49)),
    *(Literal(_float(x), FLOAT) for x in (*_NUMBERS, 0.49)),
    *(
        Literal(Decimal(n).scaleb(-s), DecimalType(9, s))
        for n, s in ((1, 1), (15, 1), (1505, 3), (0, 0), (49, 2), (-1, 5))
    ),
]
LITERALS = {
    name: [
        *(Literal(value, TYPES[name]) for value in POOLS[name]),
        Literal(None, TYPES[name]),
        *(_MIXED if name in ("y", "l", "f", "d", "n", "p") else ()),
    ]
    for name in TYPES
}
OPS = ("=", "<>", "<", "<=", ">", ">=", "<=>")


def _leaf(name: str) -> st.SearchStrategy[tuple[Any, ...]]:
    column, literal = st.just(name), st.sampled_from(LITERALS[name])
    own = st.sampled_from(LITERALS[name][: len(POOLS[name])])
    kinds = [
        st.tuples(st.just("compare"), column, st.sampled_from(OPS), literal),
        st.tuples(st.just("in"), column, st.lists(literal, min_size=1, max_size=4).map(tuple)),
        st.tuples(st.just("in"), column, st.lists(own, min_size=1, max_size=6).map(tuple)),
        st.tuples(st.just("null"), column),
    ]
    if name in ("s", "q"):
        patterns = [
            "a%",
            "ab%",
            "%",
            "",
            "_",
            "a_b",
            "a%b",
            "%b",
            "%a%",
            "_%",
            "é%",
            "\uffff%",
            "a\nb",
            "%\n%",
            "__",
            "a_%",
        ]
        kinds.append(st.tuples(st.just("like"), column, st.sampled_from(patterns)))
    if name == "b":
        kinds.append(st.tuples(st.just("column"), column))
    if name in ("y", "l", "p"):
        divisors = st.sampled_from([1, -1, 2, -3, 10])
        kinds.append(st.tuples(st.just("remainder"), column, divisors, st.integers(-3, 3)))
    return st.one_of(kinds)


_PAIRS = [("y", "l"), ("f", "d"), ("y", "d"), ("n", "y"), ("s", "q"), ("n", "d"), ("p", "l"), ("l", "f"), ("d", "f")]
_leaves = st.one_of(
    st.sampled_from(["l", "d", "s", "p", "q", "b"]).flatmap(_leaf),
    st.tuples(st.just("columns"), st.sampled_from(_PAIRS), st.sampled_from(OPS)),
    st.just(("constant", None)),
)
SPECS = st.recursive(
    _leaves,
    lambda inner: st.one_of(
        st.tuples(st.just("and"), inner, inner),
        st.tuples(st.just("or"), inner, inner),
        st.tuples(st.just("not"), inner),
        # expressions of commands keep a negation as it was written
        st.tuples(st.just("written not"), inner),
        st.tuples(st.just("booleans"), st.sampled_from(OPS), inner, inner),
        st.tuples(st.just("unknown"), inner),
    ),
    max_leaves=6,
)


def build(spec: tuple[Any, ...]) -> Expr:
    from delta_pyds.expr.binder.build import remainder

    builder, kind = Builder("UTC"), spec[0]
    if kind in ("and", "or"):
        return (and_ if kind == "and" else or_)([build(spec[1]), build(spec[2])])
    if kind == "not":
        return not_(build(spec[1]))
    if kind == "written not":
        return Not(build(spec[1]))
    if kind == "constant":
        return Literal(spec[1], BOOLEAN)
    if kind == "unknown":
        return is_null(build(spec[1]))
    if kind == "booleans":
        left, right = build(spec[2]), build(spec[3])
        return builder.null_safe_equal(left, right) if spec[1] == "<=>" else builder.compare(spec[1], left, right)
    if kind == "columns":
        left, right = (bind_column([name], SCHEMA) for name in spec[1])
        return builder.null_safe_equal(left, right) if spec[2] == "<=>" else builder.compare(spec[2], left, right)
    column = bind_column([spec[1].upper()], SCHEMA)
    if kind == "compare":
        op, literal = spec[2:]
        return builder.null_safe_equal(column, literal) if op == "<=>" else builder.compare(op, column, literal)
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
    if kind in ("not", "written not"):
        inner = naive(spec[1], row)
        return None if inner is None else not inner
    if kind == "constant":
        return None
    if kind == "unknown":
        return naive(spec[1], row) is None
    if kind == "booleans":
        return _compare(spec[1], naive(spec[2], row), BOOLEAN, naive(spec[3], row), BOOLEAN)
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
            None if value is None or lit.value is None else _key(number(value)) == _key(number(lit.value))
            for lit in spec[2]
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
    """Statistics of some files, as a log would give them."""

    rows: list[list[dict[str, Any]]]
    bounds: dict[str, list[tuple[Any, Any]]] = field(default_factory=dict)
    nulls: dict[str, list[int | None]] = field(default_factory=dict)
    records: list[int | None] | None = None

    @property
    def num_files(self) -> int:
        return len(self.rows)

    def partition(self, name: str) -> pa.Array:
        return pa.array([rows[0][name] for rows in self.rows], value_type(TYPES[name]))

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
    kind = value_type(data_type)
    return pa.array(values, pa.int32()).cast(kind) if data_type == DATE else pa.array(values, kind)


def make_files(expr: Expr, seed: int, num_files: int = 40) -> Files:
    """Small files of few different values, so that their bounds say much, and statistics of every quality."""
    rng = random.Random(seed)
    names = [name for name in TYPES if (name,) in references(expr) or name in PARTITIONS]
    rows = []
    for _ in range(num_files):
        fixed = {name: rng.choice([None, *POOLS[name]]) for name in PARTITIONS}
        pools = {name: [None] * (rng.random() < 0.1) or rng.sample(POOLS[name], 2) for name in names}
        nulls = rng.choice([0, 0, 0.3])
        rows.append(
            [
                {n: None if rng.random() < nulls else rng.choice(pools[n]) for n in names} | fixed
                for _ in range(rng.randint(1, 3))
            ]
        )
    files = Files(rows)
    for name in names:
        if name not in PARTITIONS and rng.random() < 0.9:
            columns = [[row[name] for row in file] for file in rows]
            if TYPES[name] != BINARY:
                files.bounds[name] = [_bounds(rng, name, values) for values in columns]
            files.nulls[name] = [_null_count(rng, values) for values in columns]
    if rng.random() < 0.9:
        files.records = [None if rng.random() < 0.1 else len(file) for file in rows]
    return files


_TEXTS = ["", "a", "ab", "abb", "axb", "b", "bc", "a\nb", "aé"]
_PATTERNS = [
    "a%",
    "ab%",
    "a_%",
    "a%b",
    "a%b%",
    "a_b",
    "a__%",
    "_%",
    "%b",
    "%a%",
    "ab_%",
    "b%_",
    "a%%",
    "ab",
    "é%",
    "a_",
]


@pytest.mark.parametrize("pattern", _PATTERNS)
@pytest.mark.parametrize("negated", [False, True])
def test_no_pattern_skips_a_file_with_a_matching_row(pattern: str, negated: bool) -> None:
    """All pairs of texts as a file with tight bounds: for a prefix that both have, the rest of the pattern decides."""
    spec = ("like", "s", pattern)
    expr = build(("not", spec) if negated else spec)
    files = Files([[{"s": low}, {"s": high}] for low in _TEXTS for high in _TEXTS if low <= high])
    files.bounds["s"] = [(file[0]["s"], file[1]["s"]) for file in files.rows]
    files.nulls["s"], files.records = [0] * files.num_files, [2] * files.num_files
    check_skipping(expr, files)
    kept = keep(skipping(expr, PARTITIONS), files).to_pylist()
    prefix = pattern.rstrip("%")
    if pattern.endswith("%") and "%" not in prefix and "_" not in prefix:
        # bounds tell all there is to know of these
        inside = [[row["s"].startswith(prefix) != negated for row in file] for file in files.rows]
        assert [any(i) for i in inside] == kept or not negated


def _bounds(rng: random.Random, name: str, values: list[Any]) -> tuple[Any, Any]:
    present = [v for v in values if v is not None]
    plain = [v for v in present if v == v]  # writers leave NaN out
    if not plain:
        return (math.nan, math.nan) if present and rng.random() < 0.5 else (None, None)
    low, high = min(plain, key=_key), max(plain, key=_key)
    how = rng.choice(["tight", "tight", "tight", "wide", "truncated", "no minimum", "no maximum", "contaminated"])
    if how == "wide":
        others = [v for v in rng.sample(POOLS[name], 2) if v == v]
        low, high = min([low, *others], key=_key), max([high, *others], key=_key)
    elif how == "truncated" and isinstance(low, str):
        low, cut = low[: rng.randint(0, 2)], rng.randint(0, 2)
        high = high if len(high) <= cut else high[:cut] + "\U0010ffff"
    elif how == "contaminated" and len(plain) < len(present):
        # the reference counts NaN as the maximum; others have been seen to lose the minimum to it
        low, high = rng.choice([low, math.nan]), math.nan
    return None if how == "no minimum" else low, None if how == "no maximum" else high


def _null_count(rng: random.Random, values: list[Any]) -> int | None:
    count = sum(v is None for v in values)
    if rng.random() < 0.1:
        return None
    # under wide bounds only the two ends are exact
    return count if count in (0, len(values)) or rng.random() < 0.5 else rng.randint(1, len(values) - 1)


def _batch(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [_array([row[name] for row in rows], TYPES[name]) for name in rows[0]], names=list(rows[0])
    )


def check_skipping(expr: Expr, files: Files) -> None:
    """Against the rows: kept where they match, and ruled out by a part that none of them fulfils."""
    skip = pickle.loads(pickle.dumps(skipping(expr, PARTITIONS)))
    kept = keep(skip, files)
    assert kept.null_count == 0
    rows = [row for file in files.rows for row in file]
    owners = [number for number, file in enumerate(files.rows) for _ in file]
    parts = conjuncts(expr)
    ruled_out = first_ruling_out([skipping(part, PARTITIONS) for part in parts], files).to_pylist()
    batch = _batch(rows)
    holds = {owner for owner, held in zip(owners, matches(expr, batch, len(rows)).to_pylist(), strict=True) if held}
    dropped = {number for number, keeps in enumerate(kept.to_pylist()) if not keeps}
    assert not holds & dropped, (expr, [(n, files.rows[n]) for n in holds & dropped])
    for index, part in enumerate(parts):
        held = matches(part, batch, len(rows)).to_pylist()
        wrong = {n for n, found in zip(owners, held, strict=True) if found and ruled_out[n] == index}
        assert not wrong, (part, [files.rows[n] for n in wrong])
    assert dropped <= {number for number, index in enumerate(ruled_out) if index is not None}


_SETTINGS = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
_seeds = st.integers(0, 2**32)


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("name", TYPES)
def test_every_comparison_agrees_with_a_naive_one_and_skips_no_match(name: str, op: str) -> None:
    rows = [{name: value} for value in (None, *POOLS[name])]
    batch = _batch(rows)
    column = bind_column([name], SCHEMA)
    files = make_files(is_null(column), 17, 60)
    for literal in LITERALS[name]:
        spec = ("compare", name, op, literal)
        for one in (spec, ("not", spec)):
            expr = build(one)
            expected = [naive(one, row) for row in rows]
            assert evaluate(expr, batch, len(rows)).to_pylist() == expected, (one, expr)
            check_skipping(expr, files)


@pytest.mark.parametrize("name", TYPES)
def test_no_file_with_a_matching_row_is_skipped(name: str) -> None:
    @settings(_SETTINGS, max_examples=examples(100))
    @given(_leaf(name), st.booleans(), _seeds)
    def check(spec: tuple[Any, ...], negated: bool, seed: int) -> None:
        expr = build(("not", spec) if negated else spec)
        files = make_files(expr, seed)
        check_skipping(expr, files)
        check_skipping(as_filter(expr), files)

    check()


@settings(_SETTINGS, max_examples=examples(400))
@given(SPECS, _seeds)
def test_no_file_is_skipped_by_a_compound_predicate_that_matches_it(spec: tuple[Any, ...], seed: int) -> None:
    expr = build(spec)
    files = make_files(expr, seed)
    check_skipping(expr, files)
    check_skipping(as_filter(expr), files)


@given(st.lists(SPECS, min_size=2, max_size=4), _seeds)
def test_nor_by_what_all_branches_of_a_long_or_say_of_a_column(specs: list[tuple[Any, ...]], seed: int) -> None:
    expr = or_([build(spec) for spec in specs])
    with mock.patch.object(stats_rewrite, "_MAX_BRANCHES", 1):
        check_skipping(expr, make_files(expr, seed))


@given(st.sampled_from(list(TYPES)), st.data())
def test_nor_where_all_branches_are_of_one_column(name: str, data: st.DataObject) -> None:
    expr = or_([build(data.draw(_leaf(name))) for _ in range(3)])
    with mock.patch.object(stats_rewrite, "_MAX_BRANCHES", 1):
        check_skipping(expr, make_files(expr, data.draw(_seeds)))


@pytest.mark.parametrize("name", TYPES)
def test_evaluation_agrees_with_a_naive_one(name: str) -> None:
    rows = [dict.fromkeys(TYPES) | {name: value} for value in (None, *POOLS[name])]
    batch = _batch(rows)

    @settings(_SETTINGS, max_examples=examples(150))
    @given(_leaf(name))
    def check(spec: tuple[Any, ...]) -> None:
        for one in (spec, ("not", spec)):
            expected = [naive(one, row) for row in rows]
            expr = build(one)
            assert evaluate(expr, batch, len(rows)).to_pylist() == expected, expr
            assert matches(as_filter(expr), batch, len(rows)).to_pylist() == [v is True for v in expected]

    check()


@settings(_SETTINGS, max_examples=examples(200))
@given(SPECS, _seeds)
def test_evaluation_of_compound_predicates_agrees_with_a_naive_one(spec: tuple[Any, ...], seed: int) -> None:
    expr = build(spec)
    rows = [row for file in make_files(expr, seed).rows for row in file]
    expected = [naive(spec, dict.fromkeys(TYPES) | row) for row in rows]
    assert evaluate(expr, _batch(rows), len(rows)).to_pylist() == expected
    assert matches(as_filter(expr), _batch(rows), len(rows)).to_pylist() == [value is True for value in expected]


@pytest.mark.parametrize("pair", _PAIRS)
@pytest.mark.parametrize("op", OPS)
def test_two_columns_compare_as_a_naive_evaluation_says(pair: tuple[str, str], op: str) -> None:
    left, right = pair
    rows = [dict.fromkeys(TYPES) | {left: a, right: b} for a in (None, *POOLS[left]) for b in (None, *POOLS[right])]
    expected = [naive(("columns", pair, op), row) for row in rows]
    assert evaluate(build(("columns", pair, op)), _batch(rows), len(rows)).to_pylist() == expected


@settings(_SETTINGS, max_examples=examples(200))
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
            return pa.nulls(1, value_type(TYPES[name]))

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
    named |= {(bound, path) for bound in ("minimum", "maximum") for path in wanted.bounds}
    named |= {("null_count", path) for path in wanted.null_count}
    named |= {("num_records", None)} if wanted.num_records else set()
    assert looked <= named
    assert {path for kind, path in named if kind in ("minimum", "maximum", "null_count")} <= references(expr)
