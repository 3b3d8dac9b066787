"""Generated predicates over a table of all types, each with what it may at most keep where the reference knows more.

Invariants: the same seed gives the same predicates; ``relaxed`` is true wherever ``text`` is.

There are three things that we do not take from statistics and the reference does, because another writer may have put
something else there (see "Rules that keep data right" in ARCHITECTURE.md):

- The maximum of a floating column rules nothing out for ``>``: several writers leave NaN out of it.
- NaN as a bound of a floating column says nothing.
- Bounds of decimals of more than 15 digits are widened, because some writers print them as doubles.

There ``relaxed`` is what the reference would have to be asked to know no more than that. Elsewhere it is ``text``.
"""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

_NEGATED = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_MIRRORED = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
_OPERATORS = tuple(_NEGATED)
_LONG_DECIMAL = Decimal(10) ** 11  # of a scale of 4, from here on there are more than 15 digits


@dataclass(frozen=True)
class Column:
    """``kind``: which literals it is compared with. ``values``: what it holds, and what is near to that."""

    name: str
    kind: str
    values: Sequence[Any]


@dataclass(frozen=True)
class Predicate:
    """``relaxed``, ``relaxed_negation``: of itself, and of NOT of it; ``is_exception``: whether they know less."""

    text: str
    relaxed: str
    relaxed_negation: str
    is_exception: bool = True


def generate(columns: Mapping[str, tuple[str, Sequence[Any]]], count: int, seed: str) -> list[Predicate]:
    """``columns``: of each name its kind and some of its values."""
    rng = random.Random(seed)
    known = [Column(name, kind, values) for name, (kind, values) in columns.items()]
    found: dict[str, Predicate] = {}
    turn = 0
    while len(found) < count:
        # each column in turn, so that none is missed
        predicate = _tree(rng, known, known[turn % len(known)], rng.choice((0, 0, 1, 1, 2)))
        turn += 1
        found.setdefault(predicate.text, predicate)
    return list(found.values())


def _tree(rng: random.Random, columns: Sequence[Column], first: Column, depth: int) -> Predicate:
    if depth == 0:
        return _leaf(rng, first)
    kind = rng.choice(("AND", "AND", "OR", "OR", "NOT"))
    parts = [_tree(rng, columns, first, depth - 1)]
    if kind == "NOT":
        inner = parts[0]
        text = f"NOT ({inner.text})"
        return Predicate(text, inner.relaxed_negation, inner.relaxed) if inner.is_exception else _exact(text)
    parts += [_tree(rng, columns, rng.choice(columns), depth - 1) for _ in range(rng.choice((1, 1, 2)))]
    text = _joined(kind, [p.text for p in parts])
    if not any(p.is_exception for p in parts):
        return _exact(text)
    negation = _joined("OR" if kind == "AND" else "AND", [p.relaxed_negation for p in parts])
    return Predicate(text, _joined(kind, [p.relaxed for p in parts]), negation)


def _joined(word: str, parts: Sequence[str]) -> str:
    return "(" + f" {word} ".join(parts) + ")"


def _leaf(rng: random.Random, column: Column) -> Predicate:
    kinds = ["null", "not null"]
    if column.kind == "boolean":
        kinds += ["itself", "truth", "op"]
    elif column.kind not in ("struct", "binary"):
        kinds += ["op"] * 8 + ["in"] * 3 + ["not in", "between", "not between", "equal null", "of comparison"]
    if column.kind == "string":
        kinds += ["prefix"] * 4
    return _LEAVES[(kind := rng.choice(kinds)).removeprefix("not ")](rng, column, kind)


def _exact(text: str) -> Predicate:
    return Predicate(text, text, f"NOT ({text})", is_exception=False)


def _null(_: random.Random, column: Column, kind: str) -> Predicate:
    return _exact(f"{column.name} IS {kind.upper()}")


def _itself(_: random.Random, column: Column, __: str) -> Predicate:
    return _exact(column.name)


def _truth(rng: random.Random, column: Column, _: str) -> Predicate:
    return _exact(f"{column.name} IS {rng.choice(('', 'NOT '))}{rng.choice(('TRUE', 'FALSE'))}")


def _op(rng: random.Random, column: Column, _: str) -> Predicate:
    operator, value = rng.choice(_OPERATORS), rng.choice(column.values)
    text = f"{column.name} {operator} {literal(value, column.kind)}"
    if rng.random() < 0.25:
        text = f"{literal(value, column.kind)} {_MIRRORED[operator]} {column.name}"
    if not _may_differ(column, [value]):
        return _exact(text)
    return Predicate(text, _relaxed(column, operator, value), _relaxed(column, _NEGATED[operator], value))


def _in(rng: random.Random, column: Column, kind: str) -> Predicate:
    values = [rng.choice(column.values) for _ in range(rng.choice((1, 2, 3, 5)))]
    shown = [literal(v, column.kind) for v in values]
    if kind == "in" and rng.random() < 0.2:
        shown.append("NULL")
    text = f"{column.name} {kind.upper()} ({', '.join(shown)})"
    if not _may_differ(column, values):
        return _exact(text)
    inside, outside = _relaxed_in(column, values), f"{column.name} IS NOT NULL"
    return Predicate(text, *((inside, outside) if kind == "in" else (outside, inside)))


def _between(rng: random.Random, column: Column, kind: str) -> Predicate:
    low, high = (rng.choice(column.values) for _ in range(2))
    text = f"{column.name} {kind.upper()} {literal(low, column.kind)} AND {literal(high, column.kind)}"
    if not _may_differ(column, [low, high]):
        return _exact(text)
    inside = _joined("AND", [_relaxed(column, ">=", low), _relaxed(column, "<=", high)])
    outside = _joined("OR", [_relaxed(column, "<", low), _relaxed(column, ">", high)])
    return Predicate(text, *((inside, outside) if kind == "between" else (outside, inside)))


def _equal_null(rng: random.Random, column: Column, _: str) -> Predicate:
    value = rng.choice(column.values)
    text = f"{column.name} <=> {literal(value, column.kind)}"
    return Predicate(text, _relaxed(column, "=", value), "true") if _may_differ(column, [value]) else _exact(text)


def _of_comparison(rng: random.Random, column: Column, _: str) -> Predicate:
    value = literal(rng.choice(column.values), column.kind)
    return _exact(f"({column.name} {rng.choice(_OPERATORS)} {value}) IS {rng.choice(('', 'NOT '))}NULL")


def _prefix(rng: random.Random, column: Column, _: str) -> Predicate:
    text = rng.choice(column.values)
    start = text[: rng.choice((1, 1, 2, 3, 10, 31, 32, 33, 40))]
    end = text[-1:] if rng.random() < 0.3 else ""
    if rng.random() < 0.3:
        return _exact(f"startswith({column.name}, {literal(start, 'string')})")
    pattern = rng.choice((f"{start}%", f"{start}%", f"{start}%{end}", f"{start}%", start))
    return _exact(f"{column.name} {rng.choice(('', '', 'NOT '))}LIKE {literal(pattern, 'string')}")


_LEAVES = {
    "null": _null, "itself": _itself, "truth": _truth, "op": _op, "in": _in, "between": _between,
    "equal null": _equal_null, "of comparison": _of_comparison, "prefix": _prefix,
}  # fmt: skip


# --- what the reference knows and we do not use


def _is_floating(column: Column) -> bool:
    return column.kind in ("float", "double")


def _may_differ(column: Column, values: Sequence[Any]) -> bool:
    """Whether one of the three exceptions is about this."""
    return _is_floating(column) or (column.kind == "decimal" and any(abs(v) >= _LONG_DECIMAL for v in values))


def _relaxed(column: Column, operator: str, value: Any) -> str:
    """The comparison, with as much known of the column as we use."""
    text = f"{column.name} {operator} {literal(value, column.kind)}"
    if not _may_differ(column, [value]):
        return text
    if operator == "<>":
        return f"{column.name} IS NOT NULL"
    if _is_floating(column):
        if math.isnan(value) or operator not in ("=", "<", "<="):
            return f"{column.name} IS NOT NULL"
        return _or_nan(column, text)
    low, high = (literal(v, column.kind) for v in _around(value))
    if operator == "=":
        return f"{column.name} BETWEEN {low} AND {high}"
    return f"{column.name} {operator} {high if operator.startswith('<') else low}"


def _relaxed_in(column: Column, values: Sequence[Any]) -> str:
    if _is_floating(column):
        if any(map(math.isnan, values)):
            return f"{column.name} IS NOT NULL"
        return _or_nan(column, f"{column.name} IN ({', '.join(literal(v, column.kind) for v in values)})")
    low, high = _around(min(values))[0], _around(max(values))[1]
    return f"{column.name} BETWEEN {literal(low, column.kind)} AND {literal(high, column.kind)}"


def _or_nan(column: Column, text: str) -> str:
    return f"({text} OR {column.name} >= {literal(math.nan, column.kind)})"


def _around(value: Decimal) -> tuple[Decimal, Decimal]:
    reach = (abs(value) * Decimal("2e-15") + Decimal("0.0001")).quantize(Decimal("0.0001"))
    return value - reach, value + reach


# --- values


def near(value: Any, kind: str) -> list[Any]:
    """The value and what lies just beside it, of the column's type."""
    if kind in ("byte", "short", "integer", "long"):
        bits = {"byte": 7, "short": 15, "integer": 31, "long": 63}[kind]
        return [v for v in (value - 1, value, value + 1) if -(1 << bits) <= v < 1 << bits]
    if kind in ("decimal", "small decimal"):
        step = Decimal("0.0001") if kind == "decimal" else Decimal("0.01")
        return [value - step, value, value + step]
    if kind in ("float", "double"):
        return [value, value + 0.5] if math.isfinite(value) else [value]
    if kind == "string":
        return [value, value[:-1], value + "a", value[:32], value[:33]]
    step = {"date": dt.timedelta(days=1), "timestamp": dt.timedelta(microseconds=1)}
    step["timestamp_ntz"] = step["timestamp"]
    return [value - step[kind], value, value + step[kind]] if kind in step else [value]


def literal(value: Any, kind: str) -> str:
    """A literal of exactly the column's type."""
    if kind in ("float", "double"):
        return f"CAST('{value!r}' AS {kind.upper()})"
    if kind in ("byte", "short"):
        return f"{value}{'Y' if kind == 'byte' else 'S'}"
    if kind == "decimal":
        return f"CAST('{value:f}' AS DECIMAL(24, 4))"
    if kind == "string":
        return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"
    if kind == "timestamp":
        return f"TIMESTAMP '{value.replace(tzinfo=None)}'"
    if kind in ("date", "timestamp_ntz"):
        return f"{kind.upper()} '{value}'"
    return f"{value}L" if kind == "long" else str(value)
