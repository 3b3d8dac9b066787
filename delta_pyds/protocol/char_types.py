"""The lengths of ``char(n)`` and ``varchar(n)``, whose type in the schema is ``string``.

The key ``__CHAR_VARCHAR_TYPE_STRING`` in a field's metadata holds the field's
whole declared type, such as ``array<varchar(3)>``. This is a convention of
Spark that writers should respect; the protocol has no section on it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from delta_pyds.errors import ProtocolError
from delta_pyds.protocol.quoting import quote_name
from delta_pyds.protocol.schema import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
    display,
    parts_of,
)

CHAR_VARCHAR_TYPE = "__CHAR_VARCHAR_TYPE_STRING"

_TEXT = re.compile(r"(char|varchar)\s*\(\s*(\d+)\s*\)(?:\s+collate\s+(\w+))?", re.IGNORECASE)
_SPACE = re.compile(r"\s*")
_WORD = re.compile(r"\w+", re.ASCII)
# names of other types, with the parentheses after them
_PLAIN = re.compile(r"(?!(?:var)?char\b)\w+(?:\s*\([^()]*\))?(?:\s+collate\s+\w+)?", re.IGNORECASE)


@dataclass(frozen=True)
class TextLimit:
    """At most ``length`` characters. ``padded`` (char): exactly that many, with trailing spaces."""

    length: int
    padded: bool
    # does not change the limit, but the declared type must repeat it
    collation: str = field(default="", compare=False)


@dataclass(frozen=True)
class TextLimits:
    """The limits of the parts of a type: a struct's fields, an array's element, a map's key and value."""

    parts: tuple[Limits, ...]


Limits = TextLimit | TextLimits | None


def text_limits(field: StructField) -> Limits:
    """The limits of a column and of everything nested in it; None if there is no limit.

    Raises: ProtocolError (DELTA_INVALID_SCHEMA) if the declared type is malformed or does not match the column's type.
    """
    declared = field.metadata.get(CHAR_VARCHAR_TYPE)
    if declared is None:
        return _nested(field.data_type)
    reader = _Reader(str(declared))
    found = reader.limits(field.data_type)
    if found is _INVALID or not reader.at_end():
        raise ProtocolError(
            f"the declared type '{declared}' of the column '{field.name}' does not match its type "
            f"{display(field.data_type)}, so its length limits are unknown. Restore the commit that holds "
            "this schema.",
            code="DELTA_INVALID_SCHEMA",
            column=field.name,
        )
    return found


def declared_type(data_type: DataType, limits: Limits) -> str:
    """The type with its limits, as in ``__CHAR_VARCHAR_TYPE_STRING``: ``struct<x:varchar(3),y:int>``.

    Names that Spark's parser does not read as one word are in backticks.
    """
    if isinstance(limits, TextLimit):
        collation = f" collate {limits.collation}" if limits.collation else ""
        return f"{'char' if limits.padded else 'varchar'}({limits.length}){collation}"

    def part(of: DataType, number: int) -> str:
        return declared_type(of, limits.parts[number] if isinstance(limits, TextLimits) else None)

    if isinstance(data_type, StructType):
        return "struct<" + ",".join(f"{_quoted(f.name)}:{part(f.data_type, i)}" for i, f in enumerate(data_type)) + ">"
    if isinstance(data_type, ArrayType):
        return f"array<{part(data_type.element_type, 0)}>"
    if isinstance(data_type, MapType):
        return f"map<{part(data_type.key_type, 0)},{part(data_type.value_type, 1)}>"
    return display(data_type)


def _quoted(name: str) -> str:
    return name if _WORD.fullmatch(name) else quote_name(name)


def is_padded(field: StructField) -> bool:
    """Whether the column is a ``char`` or contains one.

    Spark pads its values, and the constants that they are compared with. Files may hold them padded or bare.
    Raises: as ``text_limits``.
    """
    return any_padded(text_limits(field))


def any_padded(limits: Limits) -> bool:
    """Whether one of the limits is that of a ``char``."""
    if isinstance(limits, TextLimits):
        return any(map(any_padded, limits.parts))
    return limits is not None and limits.padded


def _nested(data_type: DataType) -> Limits:
    """The limits in the metadata of nested fields."""
    if isinstance(data_type, StructType):
        return combine_limits(tuple(text_limits(f) for f in data_type))
    return combine_limits(tuple(map(_nested, parts_of(data_type).values())))


def combine_limits(parts: tuple[Limits, ...]) -> Limits:
    """The limits of a type with these parts; None if no part has any."""
    return TextLimits(parts) if any(p is not None for p in parts) else None


_INVALID = TextLimits(())


class _Reader:
    """Parses a declared type against the column's type, whose field names may hold any character."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def at_end(self) -> bool:
        self._skip()
        return self._at == len(self._text)

    def limits(self, data_type: DataType) -> Limits:
        if isinstance(data_type, StructType):
            parts: list[Limits] = []
            good = self._take("struct") and self._take("<")
            for i, field in enumerate(data_type):
                good = good and (i == 0 or self._take(",")) and self._name(field.name) and self._take(":")
                parts.append(self.limits(field.data_type) if good else _INVALID)
            return self._closed(good, parts)
        if isinstance(data_type, ArrayType):
            good = self._take("array") and self._take("<")
            return self._closed(good, [self.limits(data_type.element_type) if good else _INVALID])
        if isinstance(data_type, MapType):
            good = self._take("map") and self._take("<")
            key = self.limits(data_type.key_type) if good else _INVALID
            good = good and self._take(",")
            return self._closed(good, [key, self.limits(data_type.value_type) if good else _INVALID])
        self._skip()
        match = _TEXT.match(self._text, self._at)
        if match is not None and not isinstance(data_type, DecimalType) and data_type.name == "string":
            self._at = match.end()
            return TextLimit(int(match[2]), match[1].lower() == "char", match[3] or "")
        plain = _PLAIN.match(self._text, self._at)
        if plain is None:
            return _INVALID
        self._at = plain.end()
        return None

    def _closed(self, good: bool, parts: list[Limits]) -> Limits:
        if not good or not self._take(">") or any(p is _INVALID for p in parts):
            return _INVALID
        return combine_limits(tuple(parts))

    def _name(self, name: str) -> bool:
        return self._take(quote_name(name)) or self._take(name)

    def _take(self, token: str) -> bool:
        self._skip()
        found = self._text[self._at : self._at + len(token)].lower() == token.lower()
        self._at += len(token) if found else 0
        return found

    def _skip(self) -> None:
        match = _SPACE.match(self._text, self._at)
        assert match is not None
        self._at = match.end()
