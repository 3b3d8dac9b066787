"""Decoding of JSON that other writers produced.

Invariant: any bytes give a value or ``InvalidJSONError``, and no other exception.
Callers react differently: a commit is damaged, a hint is ignored, statistics are unknown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Annotated, Any, TypeVar, overload

import msgspec

# the protocol's integers: decoding refuses a number that does not fit, which Arrow, Parquet and the JVM could not hold
Int32 = Annotated[int, msgspec.Meta(ge=-(1 << 31), le=(1 << 31) - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
_T = TypeVar("_T")

# The limit of nested objects and arrays in a value of any shape. Code that walks such a value takes a few frames for
# each level, and Python has 1,000. The types of a schema take three levels each.
MAX_DEPTH = 400

_MAX_REASON = 300
# before release 0.20, an error of msgspec is not a ValueError
_ERRORS = (ValueError, msgspec.MsgspecError, RecursionError)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class InvalidJSONError(ValueError):
    """The text is not JSON, or not of the requested type. The message is a short reason without a full stop."""


@overload
def decode_json(text: bytes | str) -> Any: ...
@overload
def decode_json(text: bytes | str, as_type: type[_T]) -> _T: ...
def decode_json(text: bytes | str, as_type: Any = Any) -> Any:
    """Decode JSON text.

    Args:
        text: the JSON; bytes are UTF-8.
        as_type: the type of the value; by default any.

    Raises: InvalidJSONError; without ``as_type`` also for a value that is nested deeper than ``MAX_DEPTH``.
    """
    try:
        value = msgspec.json.decode(text, type=as_type)
    except _ERRORS as error:
        raise InvalidJSONError(_reason(error)) from None
    if as_type is Any:
        _check_depth(text, value)
    return value


def decode_json_with(decoder: msgspec.json.Decoder[_T], text: bytes | str) -> _T:
    """Decode JSON text with ``decoder``. Raises: InvalidJSONError."""
    try:
        return decoder.decode(text)
    except _ERRORS as error:
        raise InvalidJSONError(_reason(error)) from None


def decode_json_lines(decoder: msgspec.json.Decoder[_T], text: bytes | memoryview) -> list[_T]:
    """Decode each line with ``decoder``. Raises: InvalidJSONError if a line is invalid."""
    try:
        return decoder.decode_lines(text)
    except _ERRORS as error:
        raise InvalidJSONError(_reason(error)) from None


def convert_json(value: Any, as_type: type[_T]) -> _T:
    """Convert a decoded value to a type. Raises: InvalidJSONError."""
    try:
        return msgspec.convert(value, as_type)
    except (*_ERRORS, OverflowError) as error:
        raise InvalidJSONError(_reason(error)) from None


def load_json(
    text: bytes | str,
    *,
    parse_float: Callable[[str], Any] | None = None,
    parse_constant: Callable[[str], Any] | None = None,
    object_pairs_hook: Callable[[list[tuple[str, Any]]], Any] | None = None,
) -> Any:
    """Decode JSON text with Python's decoder, whose hooks handle special numbers and duplicate keys.

    Args: as of ``json.loads``.
    Raises: InvalidJSONError, as ``decode_json``.
    """
    try:
        if isinstance(text, str) and not text.isascii():
            text.encode()  # raises for half of a surrogate pair
        value = json.loads(
            text, parse_float=parse_float, parse_constant=parse_constant, object_pairs_hook=object_pairs_hook
        )
    except _ERRORS as error:
        raise InvalidJSONError(_reason(error)) from None
    _check_depth(text, value)
    _check_surrogates(text, value)
    return value


def short(value: object, limit: int = 200) -> str:
    """The ``repr`` of a value for a message, at most ``limit`` characters."""
    text = repr(value)
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def _check_depth(text: bytes | str, value: Any) -> None:
    brackets = text.count(b"[") + text.count(b"{") if isinstance(text, bytes) else text.count("[") + text.count("{")
    if brackets <= MAX_DEPTH:
        return
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for outer in level
            if isinstance(outer, (dict, list))
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return
    raise InvalidJSONError(f"it is nested more than {MAX_DEPTH} levels deep")


def _check_surrogates(text: bytes | str, value: Any) -> None:
    """Refuse halves of surrogate pairs: Python's decoder accepts them, but no file or Arrow array can hold them."""
    if _SURROGATE.search(text if isinstance(text, str) else text.decode("utf-8", "replace")):
        try:
            json.dumps(value, ensure_ascii=False, default=str).encode()
        except UnicodeEncodeError:
            raise InvalidJSONError("it contains half of a surrogate pair, which is not valid text") from None


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, UnicodeError):
        return "it is not UTF-8"
    text = str(error).rstrip(".")
    return text if len(text) <= _MAX_REASON else text[:_MAX_REASON] + " ..."
