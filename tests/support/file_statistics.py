"""Per-file statistics by the protocol's rules, computed row by row in plain Python.

Protocol: "Per-file Statistics". Strings are cut to 32 characters, timestamps to
milliseconds, as the reference writes them.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tests.support.delta_types import JsonType, physical_name, primitive_arrow

STRING_PREFIX_LENGTH = 32
_TIE_BREAKER = "\U0010ffff"
_NO_BOUNDS = {"boolean", "binary", "void", "variant"}


def collect_statistics(
    rows: list[Mapping[str, Any]],
    fields: Iterable[Mapping[str, Any]],
    *,
    indexed_columns: int = 32,
    tight_bounds: bool | None = None,
) -> dict[str, Any]:
    """Statistics of physical ``rows`` (dicts by physical name) over the schema's data ``fields``.

    ``indexed_columns``: how many leaves, in schema order, have statistics; -1 for all.
    Returns: the ``stats`` object, values as Python values.
    """
    budget = [indexed_columns if indexed_columns >= 0 else 1 << 30]
    stats: dict[str, Any] = {"numRecords": len(rows)}
    low, high, nulls = _struct(list(rows), list(fields), budget)
    stats |= {"minValues": low, "maxValues": high, "nullCount": nulls}
    if tight_bounds is not None:
        stats["tightBounds"] = tight_bounds
    return stats


def _struct(rows: list[Any], fields: list[Mapping[str, Any]], budget: list[int]) -> tuple[Any, Any, Any]:
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    nulls: dict[str, Any] = {}
    for f in fields:
        name, kind = physical_name(f), f["type"]
        values = [None if row is None else row.get(name) for row in rows]
        if isinstance(kind, dict) and kind["type"] == "struct":
            inner = _struct(values, kind["fields"], budget)
            for target, part in zip((low, high, nulls), inner, strict=True):
                if part:
                    target[name] = part
            continue
        if budget[0] <= 0:
            break
        budget[0] -= 1
        nulls[name] = sum(v is None for v in values)
        if isinstance(kind, str) and kind not in _NO_BOUNDS:
            bounds = _bounds([v for v in values if v is not None], kind)
            if bounds:
                low[name], high[name] = bounds
    return low, high, nulls


def _bounds(values: list[Any], kind: str) -> tuple[Any, Any] | None:
    if not values:
        return None
    if kind in ("float", "double"):
        # NaN is the greatest value, as in Spark
        order = [v for v in values if not math.isnan(v)]
        has_nan = len(order) < len(values)
        return (min(order) if order else math.nan), (math.nan if has_nan else max(order))
    low, high = min(values), max(values)
    if kind == "string":
        cut = high[:STRING_PREFIX_LENGTH]
        return low[:STRING_PREFIX_LENGTH], (high if len(high) == len(cut) else cut + _TIE_BREAKER)
    if kind in ("timestamp", "timestamp_ntz"):
        return _to_milliseconds(low), _to_milliseconds(high)
    return low, high


def _to_milliseconds(value: dt.datetime) -> dt.datetime:
    return value.replace(microsecond=value.microsecond // 1000 * 1000)


def stats_to_json(stats: Mapping[str, Any]) -> str:
    """The ``stats`` string of an add action."""
    return _json(stats)


def _json(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{json.dumps(k, ensure_ascii=False)}:{_json(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_json, value)) + "]"
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, dt.datetime):
        text = value.strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0") + f".{value.microsecond // 1000:03d}"
        return json.dumps(text if value.tzinfo is None else text + "Z")
    if isinstance(value, dt.date):
        return json.dumps(value.isoformat())
    if isinstance(value, float) and not math.isfinite(value):
        return '"NaN"' if math.isnan(value) else ('"Infinity"' if value > 0 else '"-Infinity"')
    return json.dumps(value, ensure_ascii=False)


def stats_struct_type(fields: list[Mapping[str, Any]]) -> pa.StructType:
    """The Arrow type of ``stats_parsed`` for the schema's data fields."""
    bounds, nulls = _bounds_type(fields), _nulls_type(fields)
    return pa.struct(
        [
            ("numRecords", pa.int64()),
            ("minValues", bounds),
            ("maxValues", bounds),
            ("nullCount", nulls),
            ("tightBounds", pa.bool_()),
        ]
    )


def _bounds_type(fields: list[Mapping[str, Any]]) -> pa.StructType:
    out = []
    for f in fields:
        kind = f["type"]
        if isinstance(kind, dict):
            inner = _bounds_type(kind["fields"]) if kind["type"] == "struct" else None
            if inner is not None and inner.num_fields:
                out.append(pa.field(physical_name(f), inner))
        elif kind not in _NO_BOUNDS:
            out.append(pa.field(physical_name(f), primitive_arrow(kind)))
    return pa.struct(out)


def _nulls_type(fields: list[Mapping[str, Any]]) -> pa.StructType:
    nested = {physical_name(f): f["type"]["fields"] for f in fields if _is_struct(f["type"])}
    return pa.struct(
        [pa.field(n, _nulls_type(nested[n]) if n in nested else pa.int64()) for n in map(physical_name, fields)]
    )


def _is_struct(kind: JsonType) -> bool:
    return isinstance(kind, dict) and kind["type"] == "struct"


def parse_stats(text: str | None, fields: list[Mapping[str, Any]]) -> dict[str, Any] | None:
    """A ``stats`` string as a row of ``stats_parsed``."""
    if text is None:
        return None
    raw = json.loads(text, parse_float=Decimal)
    row = {k: raw.get(k) for k in ("numRecords", "nullCount", "tightBounds")}
    for bound in ("minValues", "maxValues"):
        row[bound] = _typed_struct(raw.get(bound), fields)
    return row


def _typed_struct(values: Mapping[str, Any] | None, fields: list[Mapping[str, Any]]) -> dict[str, Any] | None:
    if values is None:
        return None
    out: dict[str, Any] = {}
    for f in fields:
        name, kind = physical_name(f), f["type"]
        value = values.get(name)
        if value is None:
            continue
        out[name] = _typed_struct(value, kind["fields"]) if _is_struct(kind) else typed(value, kind)
    return out


def typed(value: Any, kind: str) -> Any:
    """A JSON or partition string value as the Python value that Arrow takes for ``kind``."""
    if kind in ("timestamp", "timestamp_ntz"):
        moment = dt.datetime.fromisoformat(str(value).replace("Z", "+00:00"))
        if kind == "timestamp_ntz":
            return moment.replace(tzinfo=None)
        return moment if moment.tzinfo else moment.replace(tzinfo=dt.timezone.utc)
    if kind == "date":
        return dt.date.fromisoformat(str(value))
    if kind in ("long", "integer", "short", "byte"):
        return int(value)
    if kind in ("float", "double"):
        return float(value)
    if kind.startswith("decimal"):
        return Decimal(str(value)).quantize(Decimal(1).scaleb(-int(kind[:-1].split(",")[1])))
    if kind == "boolean":
        return value if isinstance(value, bool) else str(value).lower() == "true"
    if kind == "binary":
        return str(value).encode()
    return value
