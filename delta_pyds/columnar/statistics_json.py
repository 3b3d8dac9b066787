"""Statistics in the log, one JSON text per file, as Arrow columns.

Only the wanted leaves are decoded, a batch of files at a time. A value that cannot be parsed is null, which means
unknown.
Protocol: "Per-file Statistics".
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from decimal import Decimal
from operator import attrgetter
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

_MAX_INT64 = (1 << 63) - 1
_MAX_DIGITS = 40
_ODD_NAME = re.compile(r'["\\\x00-\x1f]')


class StatisticsReader:
    """Reads the fields of ``wanted``, a struct of structs, from statistics.

    Leaves of ``wanted`` are int64, double, decimal128, string or bool.
    """

    def __init__(self, wanted: pa.StructType) -> None:
        self.wanted = wanted
        self._decoder: msgspec.json.Decoder[Any] | None = None
        # msgspec cannot have fields whose names have quotes, backslashes or control characters
        if not _has_odd_names(wanted):
            self._decoder = msgspec.json.Decoder(_struct_class(wanted))

    def read(self, stats: pa.Array) -> pa.StructArray:
        """One row per text; null fields for a text that is null or not a JSON object.

        All texts are decoded in one call. If any is unusual (a field of another type, invalid JSON), the batch is read
        again, text by text.
        """
        texts = stats.cast(pa.string())
        rows = self._decode(texts)
        if rows is None:
            return pa.array(
                [_row(text or b"{}", self.wanted) for text in texts.cast(pa.binary()).to_pylist()], self.wanted
            )
        return _to_struct(rows, self.wanted)

    def _decode(self, texts: pa.StringArray) -> list[Any] | None:
        if self._decoder is None:
            return None
        # If each line is at least one object, and there are as many rows as lines, each line is exactly one row.
        objects = pc.and_(pc.starts_with(texts, "{"), pc.ends_with(texts, "}"))
        if not pc.all(objects, min_count=0).as_py():
            return None
        lines = pc.binary_join_element_wise(
            texts, pa.scalar(""), pa.scalar("\n"), null_handling="replace", null_replacement="{}"
        )
        try:
            rows = self._decoder.decode_lines(_contents(lines))
        except (msgspec.MsgspecError, RecursionError):
            # a writer chooses the depth of JSON, even of fields that are not wanted
            return None
        return rows if len(rows) == len(texts) else None


def _contents(strings: pa.StringArray) -> memoryview:
    """The bytes of all strings of a column, contiguous."""
    _, offsets, data = strings.buffers()
    positions = memoryview(offsets).cast("i")
    return memoryview(data or b"")[positions[strings.offset] : positions[strings.offset + len(strings)]]


def _has_odd_names(wanted: pa.DataType) -> bool:
    return pa.types.is_struct(wanted) and any(_ODD_NAME.search(f.name) or _has_odd_names(f.type) for f in wanted)


def _struct_class(wanted: pa.StructType) -> type[msgspec.Struct]:
    """A class whose attributes f0, f1 ... decode the fields; not tracked by the garbage collector."""
    fields: list[tuple[str, Any, Any]] = []
    for index, field in enumerate(wanted):
        if pa.types.is_struct(field.type):
            inner = _struct_class(field.type)
            fields.append((f"f{index}", inner, msgspec.field(default_factory=inner)))
        else:
            fields.append((f"f{index}", _leaf_type(field.type) | None, None))
    names = {f"f{index}": field.name for index, field in enumerate(wanted)}
    return msgspec.defstruct("Statistics", fields, rename=names, gc=False)


def _leaf_type(data_type: pa.DataType) -> Any:
    if pa.types.is_floating(data_type):
        return float | str  # the reference writes NaN and the infinities as strings
    if pa.types.is_decimal(data_type):
        return Decimal
    return str if pa.types.is_string(data_type) else bool if pa.types.is_boolean(data_type) else int


def _to_struct(rows: Sequence[Any], wanted: pa.StructType) -> pa.StructArray:
    if wanted.num_fields == 0:
        return pa.array([{}] * len(rows), wanted)
    arrays = []
    for index, field in enumerate(wanted):
        values = list(map(attrgetter(f"f{index}"), rows))
        is_struct = pa.types.is_struct(field.type)
        arrays.append(_to_struct(values, field.type) if is_struct else _to_array(values, field.type))
    return pa.StructArray.from_arrays(arrays, fields=list(wanted))


def _to_array(values: list[Any], data_type: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(data_type) and any(v is not None and not _has_few_digits(v) for v in values):
        return pa.array([_fit(v, data_type) for v in values], data_type)
    try:
        return pa.array(values, data_type)
    except (pa.ArrowException, OverflowError, TypeError):
        return pa.array([_fit(v, data_type) for v in values], data_type)


def _has_few_digits(value: Decimal) -> bool:
    """Whether a number can be expanded to all its digits: 1e9999999 cannot."""
    return value.is_finite() and abs(value.adjusted()) <= _MAX_DIGITS


def _row(text: bytes, wanted: pa.StructType) -> dict[str, Any]:
    try:
        value = json.loads(text, parse_float=Decimal)
    except (ValueError, ArithmeticError, RecursionError):
        return {}
    read = _fit(value, wanted)
    return read if isinstance(read, dict) else {}


def _fit(value: Any, wanted: pa.DataType) -> Any:
    """A JSON value converted for the Arrow type; None if it does not fit."""
    if value is None:
        return None
    if pa.types.is_struct(wanted):
        return {f.name: _fit(value.get(f.name), f.type) for f in wanted} if isinstance(value, dict) else None
    try:
        if pa.types.is_boolean(wanted):
            return value if isinstance(value, bool) else None
        if pa.types.is_string(wanted):
            # half of a surrogate pair cannot be encoded
            return value.encode().decode() if isinstance(value, str) else None
        if isinstance(value, bool):
            return None
        if pa.types.is_floating(wanted):
            return _floating(value)
        if pa.types.is_int64(wanted):
            if isinstance(value, Decimal) and not _has_few_digits(value):
                return None  # int() of 1e9999999 would take forever
            return int(value) if value == int(value) and abs(int(value)) <= _MAX_INT64 else None
        if pa.types.is_decimal(wanted):
            number = Decimal(value)
            return pa.scalar(number, wanted).as_py() if _has_few_digits(number) else None
    except (ValueError, ArithmeticError, TypeError, pa.ArrowException):
        return None
    return None


def _floating(value: Any) -> float | None:
    """Infinities and NaN are strings; a number that is too large for a double is invalid."""
    number = float(value)
    return number if isinstance(value, (str, float)) or math.isfinite(number) else None


def struct_of(tree: dict[str, Any]) -> pa.StructType:
    """Nested dictionaries of types as a struct type."""
    return pa.struct([(n, struct_of(value) if isinstance(value, dict) else value) for n, value in tree.items()])
