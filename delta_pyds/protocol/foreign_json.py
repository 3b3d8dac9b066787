"""Decoding of JSON written by others.

Whatever the bytes are, decoding gives a value or ``InvalidJSONError``: never another
exception, however deep, long or strange the text is. What the caller then
does differs: a commit is damaged, a hint is ignored, statistics are unknown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, TypeVar, overload

import msgspec

_T = TypeVar("_T")

# Objects and arrays within each other, where a value may have any shape. Code that walks such a value takes a few
# frames a level, of the 1,000 that Python has. The types of a schema take three levels each.
MAX_DEPTH = 400

_MAX_REASON = 300
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class InvalidJSONError(ValueError):
    """The text is not the JSON that was asked for. The message says why, shortly and without a final point."""


@overload
def decode_json(text: bytes | str) -> Any: ...
@overload
def decode_json(text: bytes | str, as_type: type[_T]) -> _T: ...
def decode_json(text: bytes | str, as_type: Any = Any) -> Any:
    """The value of a text, of the type if one is given.

    Raises: InvalidJSONError, also for values of any shape that are nested deeper than ``MAX_DEPTH``.
    """
    try:
        value = msgspec.json.decode(text, type=as_type)
    except (ValueError, RecursionError) as error:
        raise InvalidJSONError(_reason(error)) from None
    if as_type is Any:
        _check_depth(text, value)
    return value


def decode_json_with(decoder: msgspec.json.Decoder[_T], text: bytes | str) -> _T:
    """What ``decoder`` makes of a text. Raises: InvalidJSONError."""
    try:
        return decoder.decode(text)
    except (ValueError, RecursionError) as error:
        raise InvalidJSONError(_reason(error)) from None


def decode_json_lines(decoder: msgspec.json.Decoder[_T], text: bytes | memoryview) -> list[_T]:
    """What ``decoder`` makes of each line. Raises: InvalidJSONError if one of them is at fault."""
    try:
        return decoder.decode_lines(text)
    except (ValueError, RecursionError) as error:
        raise InvalidJSONError(_reason(error)) from None


def convert_json(value: Any, as_type: type[_T]) -> _T:
    """A decoded value as one of the type. Raises: InvalidJSONError."""
    try:
        return msgspec.convert(value, as_type)
    except (ValueError, RecursionError, OverflowError) as error:
        raise InvalidJSONError(_reason(error)) from None


def load_json(
    text: bytes | str,
    *,
    parse_float: Callable[[str], Any] | None = None,
    parse_constant: Callable[[str], Any] | None = None,
    object_pairs_hook: Callable[[list[tuple[str, Any]]], Any] | None = None,
) -> Any:
    """The value of a text whose numbers or keys need care, by Python's own decoder and with its hooks.

    Raises: InvalidJSONError, as ``decode_json``.
    """
    try:
        if isinstance(text, str) and not text.isascii():
            text.encode()  # says so if a character of it is none
        value = json.loads(
            text, parse_float=parse_float, parse_constant=parse_constant, object_pairs_hook=object_pairs_hook
        )
    except (ValueError, RecursionError) as error:
        raise InvalidJSONError(_reason(error)) from None
    _check_depth(text, value)
    _check_surrogates(text, value)
    return value


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
    """Python's decoder lets halves of surrogate pairs pass, which no file and no Arrow array can hold."""
    if _SURROGATE.search(text if isinstance(text, str) else text.decode("utf-8", "replace")):
        try:
            json.dumps(value, ensure_ascii=False, default=str).encode()
        except UnicodeEncodeError:
            raise InvalidJSONError("it holds half of a surrogate pair, which is no text") from None


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, UnicodeError):
        return "it is not UTF-8"
    text = str(error).rstrip(".")
    return text if len(text) <= _MAX_REASON else text[:_MAX_REASON] + " ..."
