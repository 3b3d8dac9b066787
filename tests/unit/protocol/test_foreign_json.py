"""Decoding any text gives a value or says why it cannot."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec
import pytest

from delta_pyds.protocol.actions import AddFile, SingleAction
from delta_pyds.protocol.foreign_json import (
    MAX_DEPTH,
    InvalidJSONError,
    convert_json,
    decode_json,
    decode_json_lines,
    decode_json_with,
    load_json,
)

_ACTIONS = msgspec.json.Decoder(SingleAction)


# Python 3.14 reads 50,000 levels where nobody asked for the value
_DEPTH = 1_000_000


def _nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


BROKEN = {
    "nothing": b"",
    "cut": b'{"add":{"path":"a',
    "not UTF-8": b'{"add":{"path":"\xff\xfe"}}',
    "deep": b'{"add":' + _nested(_DEPTH) + b"}",
    "deep in what nobody asked for": b'{"tomorrow":' + _nested(_DEPTH) + b"}",
    "deep objects": b'{"a":' * _DEPTH + b"1" + b"}" * _DEPTH,
    "half of a surrogate pair": b'{"add":{"path":"\\ud800"}}',
    "a number of 5,000 digits": b'{"tomorrow":[' + b"9" * 5_000 + b"]}",
    "UTF-16": '{"add":null}'.encode("utf-16-le"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_json_is_said_to_be_none(name: str) -> None:
    text = BROKEN[name]
    for decode in (decode_json, load_json):
        if name == "UTF-16" and decode is load_json:
            continue  # Python's decoder finds the encoding out
        with pytest.raises(InvalidJSONError) as failure:
            decode(text)
        assert 0 < len(str(failure.value)) < 400
        assert not str(failure.value).endswith(".")


@pytest.mark.parametrize("name", sorted(BROKEN.keys() - {"a number of 5,000 digits"}))
def test_typed_decoding_says_so_too(name: str) -> None:
    with pytest.raises(InvalidJSONError):
        decode_json_with(_ACTIONS, BROKEN[name])
    with pytest.raises(InvalidJSONError):
        decode_json_lines(_ACTIONS, BROKEN[name] or b'"x"')


def test_text_that_is_no_unicode_is_no_json() -> None:
    for decode in (decode_json, load_json):
        with pytest.raises(InvalidJSONError):
            decode('"\ud800"')


@pytest.mark.parametrize("decode", [decode_json, load_json])
def test_the_depth_has_a_limit_that_is_stated_and_exact(decode: Any) -> None:
    assert decode(_nested(MAX_DEPTH)) != []
    with pytest.raises(InvalidJSONError, match=f"{MAX_DEPTH} levels"):
        decode(_nested(MAX_DEPTH + 1))
    wide = b"[" + b",".join([b'{"a":[]}'] * (2 * MAX_DEPTH)) + b"]"
    assert len(decode(wide)) == 2 * MAX_DEPTH


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**30])
def test_numbers_of_the_log_are_of_64_bits(number: int) -> None:
    text = b'{"add":{"path":"a","partitionValues":{},"size":%d,"modificationTime":0,"dataChange":true}}' % number
    with pytest.raises(InvalidJSONError, match="size"):
        decode_json_with(_ACTIONS, text)
    with pytest.raises(InvalidJSONError):
        convert_json({"path": "a", "size": number}, AddFile)


def test_hooks_see_numbers_as_they_were_written() -> None:
    assert load_json('{"a": 1.10}', parse_float=Decimal) == {"a": Decimal("1.10")}
    assert load_json('{"a": "\\ud83d\\ude00"}') == {"a": "\U0001f600"}
