"""Parse strings in Arrow arrays as values of other types, with the semantics of Spark's CAST.

Arrow kernels parse strings in plain forms. If a batch has any other string, each distinct string is parsed once,
by the same rules as constants.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.columnar.kernel import any_true
from delta_pyds.columnar.rows import Rows
from delta_pyds.columnar.values import value_type, values_array
from delta_pyds.columnar.zones import wall_to_instant, zone_of
from delta_pyds.errors import ExpressionError
from delta_pyds.expr.casts import cast_literal
from delta_pyds.expr.nodes import Call, Literal, LiteralValue
from delta_pyds.expr.types import is_floating, is_integral
from delta_pyds.protocol.schema import BINARY, DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ, DataType, DecimalType, display

_PLAIN_DATE = r"\A\d{4}-\d{2}-\d{2}\z"
_PLAIN_MOMENT = r"\A\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2}(?:\.\d{1,6})?\z"
_PLAIN_WHOLE = r"\A-?\d{1,18}\z"
_PLAIN_NUMBER = r"\A-?\d{1,15}(?:\.\d{1,15})?\z"
# Java's trim removes the first set of characters, Spark's trimAll the second
_BLANK = "".join(map(chr, range(0x21)))
_BLANK_AND_CONTROL = _BLANK + "\x7f"
_LEGACY_WHOLE = re.compile(r"([+-]?\d*)(?:\.\d*)?", re.ASCII)
# Spark reads these forms, but we do not: times without a date, short zone names, hexadecimal doubles
_DOUBTFUL_MOMENT = re.compile(
    r"T?\d{1,2}:\d.*|[+-]?\d{4,7}-\d{1,2}-\d{1,2}[ T]\d[\d:.]* *[A-Za-z+-].*|T\d{1,2}.*", re.DOTALL | re.ASCII
)
_DOUBTFUL_NUMBER = re.compile(r"[+-]?0[xX].*|.*[eE][+-]?\d{7,}.*", re.DOTALL | re.ASCII)


_DATED = re.compile(r"([+-]?\d{4,7}-\d{1,2}-\d{1,2})[ T]", re.ASCII)


class _Invalid:
    """A string that is not a value of the type."""


class _Doubtful:
    """A string that Spark may be able to read."""


def parse_texts(call: Call, texts: Any, rows: Rows) -> Any:
    """Parse strings as ``call.data_type``. An invalid string is an error in an ANSI CAST, else null.

    Raises: ExpressionError (CAST_INVALID_INPUT), or DELTA_UNSUPPORTED_EXPRESSION for an unsupported form.
    """
    target = call.data_type
    if target == BINARY:
        return texts.cast(pa.binary())
    plain = _plain(call, texts, target)
    return _by_text(call, texts, target, rows) if plain is None else plain


def _plain(call: Call, texts: Any, target: DataType) -> Any | None:
    to = value_type(target)
    pattern = None
    if target == DATE:
        pattern = _PLAIN_DATE
    elif target in (TIMESTAMP, TIMESTAMP_NTZ):
        pattern = _PLAIN_MOMENT
    elif is_integral(target):
        pattern = _PLAIN_WHOLE
    elif is_floating(target):
        pattern = _PLAIN_NUMBER
    if pattern is None:
        return None
    try:
        if any_true(pc.invert(pc.match_substring_regex(texts, pattern))):
            return None
        if target == TIMESTAMP:
            wall = texts.cast(pa.timestamp("us")).cast(pa.int64())
            return wall_to_instant(wall, call.zone).cast(to)
        return texts.cast(to)
    except pa.ArrowInvalid:
        return None


def _by_text(call: Call, texts: Any, target: DataType, rows: Rows) -> Any:
    encoded = texts.dictionary_encode()
    read = _reader(call, target)
    results = [read(text) for text in _decoded(encoded.dictionary)]
    values: list[LiteralValue] = [None if isinstance(r, (_Invalid, _Doubtful)) else r for r in results]
    doubtful = pa.array([isinstance(r, _Doubtful) for r in results], pa.bool_()).take(encoded.indices)
    rows.fail(
        doubtful,
        "DELTA_UNSUPPORTED_EXPRESSION",
        f"reading a string in this form as {display(target).upper()} is not supported",
        texts,
    )
    if call.ansi and call.function == "cast":
        invalid = pa.array([isinstance(r, _Invalid) for r in results], pa.bool_()).take(encoded.indices)
        rows.fail(invalid, "CAST_INVALID_INPUT", f"a string is not a valid {display(target).upper()}", texts)
    return values_array(tuple(values), target).take(encoded.indices)


def _decoded(texts: Any) -> list[str]:
    try:
        return [str(text) for text in texts.to_pylist()]
    except UnicodeDecodeError:
        return [text.decode("utf-8", "replace") for text in texts.cast(pa.binary()).to_pylist()]


_Result = LiteralValue | _Invalid | _Doubtful


def _reader(call: Call, target: DataType) -> Callable[[str], _Result]:
    zone = zone_of(call.zone or "UTC")
    strict = call.ansi or call.function == "try_cast"
    number = is_floating(target) or isinstance(target, DecimalType)
    moment = target in (TIMESTAMP, TIMESTAMP_NTZ)

    def read(text: str) -> _Result:
        text = text.strip(_BLANK if number else _BLANK_AND_CONTROL)
        if target == DATE:
            # text after a complete date is ignored
            match = _DATED.match(text)
            text = match[1] if match else text
        if not text.isascii():
            if not isinstance(target, DecimalType):
                return _Invalid()
            # Java accepts digits of any script here
            text = "".join(str(int(c)) if c.isdecimal() else c for c in text)
        if is_integral(target) and not strict:
            match = _LEGACY_WHOLE.fullmatch(text)
            if not match or text in ("", "+", "-"):
                return _Invalid()
            text = match[1] if match[1].strip("+-") else "0"
        try:
            return cast_literal(Literal(text, STRING), target, zone).value
        except ExpressionError:
            if moment and _DOUBTFUL_MOMENT.fullmatch(text):
                return _Doubtful()
            if number and _DOUBTFUL_NUMBER.fullmatch(text):
                return _Doubtful()
            return _Invalid()

    return read
