"""Values in statistics: their forms in the log, and equality of two forms.

Protocol: "Per-file Statistics".
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from delta_pyds.errors import DeltaError
from delta_pyds.expr.casts import nearest_float
from delta_pyds.protocol.foreign_json import InvalidJSONError, load_json
from delta_pyds.protocol.schema import DataType, DecimalType, PrimitiveType
from delta_pyds.protocol.temporal import TimeZone, parse_date, parse_timestamp, show_date, show_timestamp

Leaf = tuple[str, ...]

_UTC = TimeZone("UTC")
# more digits than any integer or decimal of a table has
_MAX_DIGITS = 40
_INTEGERS = ("byte", "short", "integer", "long")
_NOT_FINITE = {"nan": math.nan, "infinity": math.inf, "-infinity": -math.inf, "inf": math.inf, "-inf": -math.inf}


def parse_statistics(text: str) -> dict[str, Any] | None:
    """The parsed object, with decimals unrounded; None if the text is not a JSON object."""
    try:
        value = load_json(text, parse_float=Decimal, parse_constant=float)
    except InvalidJSONError:
        return None
    return value if isinstance(value, dict) else None


def leaves(tree: Any) -> Iterator[tuple[Leaf, Any]]:
    """All values at any depth that are neither objects nor null, by their paths."""
    pending: list[tuple[Leaf, Any]] = [((), tree)]
    while pending:
        path, value = pending.pop()
        if isinstance(value, Mapping):
            pending.extend(((*path, name), value[name]) for name in reversed(value))
        elif value is not None:
            yield path, value


def typed(value: Any, data_type: DataType) -> Any:
    """A value of the JSON in a comparable form: dates are days, timestamps microseconds.

    Raises: ValueError if it is not a value of the type.
    """
    try:
        if isinstance(data_type, DecimalType):
            number = Decimal(str(value))
            if not number.is_finite():
                raise ValueError(value)
            return number
        name = data_type.name if isinstance(data_type, PrimitiveType) else ""
        if name in _INTEGERS:
            number = Decimal(str(value))
            # int() of 1e999999999 would not return
            if isinstance(value, bool) or not -_MAX_DIGITS < number.adjusted() < _MAX_DIGITS or number != int(number):
                raise ValueError(value)
            return int(number)
        if name in ("float", "double"):
            if isinstance(value, str):
                return _NOT_FINITE[value.strip().lower()]
            double = float(value)
            if math.isinf(double) and not isinstance(value, float):
                raise ValueError(value)
            return double
        if name == "boolean":
            return {"true": True, "false": False}[str(value).lower()]
        if name == "string" and isinstance(value, str):
            return value
        if name == "date" and isinstance(value, str):
            return parse_date(value)
        if name == "timestamp" and isinstance(value, str):
            return parse_timestamp(value, _UTC)
        if name == "timestamp_ntz" and isinstance(value, str):
            return parse_timestamp(value.removesuffix("Z"), None)
    except (KeyError, InvalidOperation, TypeError, OverflowError, DeltaError):
        pass
    raise ValueError(value)


def same(recorded: Any, parsed: Any) -> bool:
    """Whether a value of the JSON and one of ``stats_parsed`` are equal.

    ``parsed`` has dates as days and timestamps as microseconds; the JSON truncates timestamps to milliseconds.
    """
    try:
        return _same(recorded, parsed)
    except (ValueError, TypeError, ArithmeticError):
        # a list, or a number that fits no column
        return False


def _same(recorded: Any, parsed: Any) -> bool:
    if isinstance(parsed, bool) or isinstance(recorded, bool):
        return str(recorded).lower() == str(parsed).lower()
    if isinstance(parsed, bytes):
        return str(recorded).encode() == parsed
    if isinstance(parsed, str):
        return bool(recorded == parsed)
    if isinstance(recorded, str):
        return _same_text(recorded, parsed)
    if isinstance(parsed, float):
        if math.isnan(parsed):
            return math.isnan(recorded)
        return float(recorded) == parsed or nearest_single(float(recorded)) == nearest_single(parsed)
    if isinstance(parsed, Decimal) and isinstance(recorded, Decimal):
        return recorded == parsed or float(recorded) == float(parsed)
    return bool(Decimal(recorded) == parsed)


def _same_text(recorded: str, parsed: Any) -> bool:
    if isinstance(parsed, float):
        wanted = _NOT_FINITE.get(recorded.strip().lower())
        return wanted is not None and (wanted == parsed or (math.isnan(wanted) and math.isnan(parsed)))
    try:
        if isinstance(parsed, int) and "T" not in recorded and ":" not in recorded:
            return parse_date(recorded) == parsed
        micros = parse_timestamp(recorded, _UTC)
        return bool(micros == parsed or micros // 1000 == parsed // 1000)
    except (ValueError, DeltaError, TypeError):
        return False


def nearest_single(value: float) -> float:
    """The nearest float of 32 bits."""
    return nearest_float(value) if math.isfinite(value) else value


def to_json(values: Mapping[Leaf, Any], kinds: Mapping[Leaf, str]) -> str:
    """Statistics as JSON from ``stats_parsed``. ``kinds``: the leaves that are a ``date`` or a ``timestamp``."""
    tree: dict[str, Any] = {}
    for path, value in values.items():
        node = tree
        for name in path[:-1]:
            node = node.setdefault(name, {})
        node[path[-1]] = _text(value, kinds.get(path))
    return json.dumps(tree, default=str)


def _text(value: Any, kind: str | None) -> Any:
    if kind == "date":
        return show_date(value)
    if kind == "timestamp":
        return show_timestamp(value).replace(" ", "T") + "Z"
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value
