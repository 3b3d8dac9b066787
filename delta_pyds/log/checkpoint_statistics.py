"""Statistics of files in a checkpoint: from JSON to a struct, and back.

Conversions work on whole columns. A file with statistics in one form gets the
other form too. A value that is not of its column's type becomes unknown, never wrong.

Protocol: "Per-file Statistics", "Checkpoints" (``stats``, ``stats_parsed``).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.columnar.statistics_json import StatisticsReader
from delta_pyds.errors import ProtocolError
from delta_pyds.protocol.partition_values import parse_partition_value
from delta_pyds.protocol.schema import DATE, TIMESTAMP, TIMESTAMP_NTZ, DataType

_NEEDS_ESCAPE = '["\\\\\\x00-\\x1f]'
_YEAR_10000_MS = 253_402_300_800_000
_YEAR_10000_DAY = 2_932_897
_MICROS_PER_MS = 1_000


class StatisticsConverter:
    """Converts statistics of files to a struct. ``target``: the type of ``stats_parsed``."""

    def __init__(self, target: pa.StructType) -> None:
        self.target = target
        self._reader = StatisticsReader(_json_type(target))

    def to_struct(self, texts: pa.StringArray, parsed: pa.StructArray | None = None) -> pa.StructArray:
        """``stats_parsed`` of each file: from ``parsed`` of an older checkpoint if possible, else from the text.

        If ``parsed`` lacks a wanted column, the text is preferred.
        """
        if parsed is None:
            return self._read(texts)
        struct = _conform(parsed, self.target)
        # the first field is the number of records: without it the statistics are unknown
        if _has_all(parsed.type, self.target):
            from_text = pc.and_(pc.is_null(pc.struct_field(struct, [0])), texts.is_valid())
        else:
            from_text = texts.is_valid()
        if not from_text.true_count:
            return struct
        if from_text.true_count == len(texts):
            return self._read(texts)
        read = self._read(texts.filter(from_text))
        return _replace(struct, from_text, read)

    def _read(self, texts: pa.StringArray) -> pa.StructArray:
        read = self._reader.read(texts)
        rows = [_conform(read.field(f.name), f.type) for f in self.target]
        return pa.StructArray.from_arrays(rows, fields=list(self.target), mask=texts.is_null())


def to_json(texts: pa.StringArray, parsed: pa.StructArray | None) -> pa.StringArray:
    """``stats`` of each file: its own text, else one made from ``parsed``."""
    if parsed is None or not texts.null_count:
        return texts
    missing = texts.is_null()
    made = _text(parsed if texts.null_count == len(texts) else parsed.filter(missing))
    if made is None:
        return texts
    return made if len(made) == len(texts) else pc.replace_with_mask(texts, missing, made)


def _replace(array: pa.StructArray, mask: pa.BooleanArray, values: pa.StructArray) -> pa.StructArray:
    """The array with its masked rows replaced by ``values``, in order."""
    places = pa.array(range(len(array)), pa.int64())
    moved = pc.add(pc.cumulative_sum(mask.cast(pa.int64())), len(array) - 1)
    return pa.concat_arrays([array, values]).take(pc.if_else(mask, moved, places))


def _json_type(target: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(target):
        return pa.struct([(f.name, _json_type(f.type)) for f in target])
    if pa.types.is_integer(target):
        return pa.int64()
    if pa.types.is_floating(target):
        return pa.float64()
    return pa.string() if pa.types.is_temporal(target) else target


def _has_all(have: pa.DataType, wanted: pa.DataType) -> bool:
    if not pa.types.is_struct(wanted):
        return True
    if not pa.types.is_struct(have):
        return False
    types = {f.name: f.type for f in have}
    # a missing tightBounds means that no file had it
    return all(f.name == "tightBounds" or (f.name in types and _has_all(types[f.name], f.type)) for f in wanted)


# --- to the types of the columns


def _conform(array: pa.Array, target: pa.DataType) -> pa.Array:
    if array.type.equals(target):
        return array
    if not pa.types.is_struct(target):
        return _conform_leaf(array, target)
    if not pa.types.is_struct(array.type):
        return pa.nulls(len(array), target)
    have = {f.name: i for i, f in enumerate(array.type)}
    children = [
        _conform(array.field(have[f.name]), f.type) if f.name in have else pa.nulls(len(array), f.type) for f in target
    ]
    return pa.StructArray.from_arrays(children, fields=list(target), mask=array.is_null())


def _conform_leaf(array: pa.Array, target: pa.DataType) -> pa.Array:
    if pa.types.is_struct(array.type):
        return pa.nulls(len(array), target)
    try:
        # statistics of a float were printed from a float: rounding back is exact
        return array.cast(target, safe=not pa.types.is_floating(target))
    except pa.ArrowException:
        return pa.array([_fit(v, target) for v in _values(array)], target)


def _values(array: pa.Array) -> list[Any]:
    try:
        return list(array.to_pylist())
    except (ValueError, OverflowError):
        return [None] * len(array)  # times outside of Python's range


def _fit(value: Any, target: pa.DataType) -> Any:
    if value is None:
        return None
    try:
        if isinstance(value, str) and pa.types.is_temporal(target):
            return _temporal(value, target)
        return pa.scalar(value, target).as_py()
    except (pa.ArrowException, ProtocolError, ValueError, TypeError, OverflowError):
        return None


def _temporal(text: str, target: pa.DataType) -> Any:
    kind: DataType = DATE if pa.types.is_date(target) else TIMESTAMP if target.tz else TIMESTAMP_NTZ
    # a timestamp that lacks its zone is ambiguous, so it is not used
    if kind == TIMESTAMP and not text.rstrip().endswith(("Z", "UTC")):
        return None
    return parse_partition_value(text, kind, "UTC")


# --- to JSON


def _text(array: pa.Array) -> pa.StringArray | None:
    """The JSON of each value, null for a null; None for a type without a JSON form."""
    data_type = array.type
    if pa.types.is_struct(data_type):
        return _object_text(array)
    write = next((write for is_type, write in _WRITERS if is_type(data_type)), None)
    return None if write is None else write(array)


def _object_text(array: pa.StructArray) -> pa.StringArray:
    members = []
    for i, field in enumerate(array.type):
        text = _text(pc.struct_field(array, [i]))
        if text is not None:
            members.append(pc.binary_join_element_wise(f",{json.dumps(field.name, ensure_ascii=False)}:", text, ""))
    if not members:
        return pa.nulls(len(array), pa.string())
    # not "skip", which drops rows without any member
    joined = pc.binary_join_element_wise(*members, "}", "", null_handling="replace", null_replacement="")
    objects = pc.binary_replace_slice(joined, start=0, stop=1, replacement="{")
    return pc.if_else(pc.equal(joined, "}"), pa.scalar(None, pa.string()), objects)


def _string_text(array: pa.Array) -> pa.StringArray:
    array = array.cast(pa.string())
    escaped = pc.match_substring_regex(array, _NEEDS_ESCAPE)
    quoted = _quote(array)
    if not escaped.true_count:
        return quoted
    texts = [json.dumps(v, ensure_ascii=False) for v in array.filter(escaped).to_pylist()]
    return pc.replace_with_mask(quoted, escaped.fill_null(False), pa.array(texts, pa.string()))


def _quote(array: pa.StringArray) -> pa.StringArray:
    return pc.binary_join_element_wise('"', array, '"', "")


def _float_text(array: pa.Array) -> pa.StringArray:
    # the shortest text that reads back as the same number
    texts = array.cast(pa.string())
    if pc.all(pc.is_finite(array)).as_py() is not False:
        return texts
    named = pc.if_else(pc.is_nan(array), "NaN", pc.if_else(pc.greater(array, 0.0), "Infinity", "-Infinity"))
    return pc.if_else(pc.is_finite(array), texts, _quote(named))


def _date_text(array: pa.Array) -> pa.StringArray:
    days = array.cast(pa.date32())
    return _quote(_signed_years(days.cast(pa.string()), days.cast(pa.int32()), _YEAR_10000_DAY))


def _timestamp_text(array: pa.Array) -> pa.StringArray:
    """Truncated to milliseconds towards the past, as the protocol requires for timestamps in statistics."""
    zone = array.type.tz
    micros = array.cast(pa.timestamp("us", zone), safe=False).cast(pa.int64())
    ms = pc.divide(micros, _MICROS_PER_MS)
    ms = pc.if_else(pc.greater(pc.multiply(ms, _MICROS_PER_MS), micros), pc.subtract(ms, 1), ms)
    texts = pc.replace_substring(ms.cast(pa.timestamp("ms")).cast(pa.string()), " ", "T", max_replacements=1)
    texts = _signed_years(texts, ms, _YEAR_10000_MS)
    return _quote(texts if zone is None else pc.binary_join_element_wise(texts, "Z", ""))


def _signed_years(texts: pa.StringArray, values: pa.Array, year_10000: int) -> pa.StringArray:
    """The texts with a sign before years of five digits, which Java needs to parse them."""
    late = pc.greater_equal(values, pa.scalar(year_10000, values.type))
    if not late.true_count:
        return texts
    return pc.if_else(late, pc.binary_join_element_wise("+", texts, ""), texts)


def _plain_text(array: pa.Array) -> pa.StringArray:
    return array.cast(pa.string())


_WRITERS: list[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], pa.StringArray]]] = [
    (pa.types.is_integer, _plain_text),
    (pa.types.is_boolean, _plain_text),
    (pa.types.is_decimal, _plain_text),
    (pa.types.is_floating, _float_text),
    (lambda t: pa.types.is_string(t) or pa.types.is_large_string(t), _string_text),
    (pa.types.is_date, _date_text),
    (pa.types.is_timestamp, _timestamp_text),
]
