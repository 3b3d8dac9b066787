"""Functions of strings over Arrow arrays, which count characters as Spark does.

Invariant: invalid UTF-8 is refused where characters matter, and passes unchanged where only bytes matter.
"""

from __future__ import annotations

import hashlib
import unicodedata
import zlib
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.columnar.kernel import Kernel, any_true, as_arrays, by_row, by_value, null_where, regex_search
from delta_pyds.columnar.rows import Rows
from delta_pyds.errors import ExpressionError
from delta_pyds.expr.nodes import Call, Literal

_INT_MAX = (1 << 31) - 1
# the characters whose case differs between Unicode 14 and 17; all other characters were compared
_CHANGED = frozenset("\u019b\u0264\u0295\ua7d3\ua7d5\U0001171e")


def _checked(values: Any) -> Any:
    """The strings, if they are UTF-8. Raises: ExpressionError."""
    try:
        if isinstance(values, pa.Scalar):
            pa.array([values.as_py()], pa.string())
        else:
            values.validate(full=True)
    except (pa.ArrowInvalid, UnicodeDecodeError):
        raise ExpressionError(
            "a string is not UTF-8, so its characters cannot be determined: convert the column to BINARY.",
            code="INVALID_UTF8_STRING",
        ) from None
    return values


def _constant(call: Call, index: int) -> int | None:
    arg = call.args[index]
    return arg.value if isinstance(arg, Literal) and isinstance(arg.value, int) else None


def _cased(call: Call, args: list[Any], rows: Rows) -> Any:
    """ASCII by a kernel, other strings by Python's Unicode tables."""
    values = _checked(args[0])
    upper = call.function == "upper"
    if not any_true(pc.invert(pc.string_is_ascii(values))):
        return (pc.ascii_upper if upper else pc.ascii_lower)(values)

    def cased(text: str) -> str:
        for character in text:
            if character > "\x7f" and (character in _CHANGED or unicodedata.category(character) == "Cn"):
                raise ExpressionError(
                    f"{call.function} of a string with the character U+{ord(character):04X} is not supported: versions "
                    "of Unicode differ in it."
                )
        return text.upper() if upper else text.lower()

    return by_value(values, cased, pa.string())


def _ascii(call: Call, args: list[Any], rows: Rows) -> Any:
    """The code point of the first character; 0 for an empty string."""
    first = pc.utf8_slice_codeunits(_checked(args[0]), 0, 1)
    return by_value(first, lambda text: ord(text) if text else 0, pa.int32())


def _length(call: Call, args: list[Any], rows: Rows) -> Any:
    values = args[0]
    if call.function != "length" or pa.types.is_binary(values.type):
        size = pc.binary_length(values)
        return pc.multiply(size, pa.scalar(8, pa.int32())) if call.function == "bit_length" else size
    return pc.utf8_length(_checked(values))


def _trimmed(call: Call, args: list[Any], rows: Rows) -> Any:
    kernel = {"trim": pc.utf8_trim, "ltrim": pc.utf8_ltrim, "rtrim": pc.utf8_rtrim}[call.function]
    characters = str(call.options[0])
    return kernel(_checked(args[0]), characters=characters) if characters else args[0]


def _concat(call: Call, args: list[Any], rows: Rows) -> Any:
    if len(args) == 1:
        return args[0]
    empty = pa.scalar("" if pa.types.is_string(args[0].type) else b"", args[0].type)
    return pc.binary_join_element_wise(*args, empty, null_handling="emit_null")


def _concat_ws(call: Call, args: list[Any], rows: Rows) -> Any:
    """Join without nulls; null only if the separator is null."""
    separator, *parts = as_arrays(args)
    if not parts:
        return pc.if_else(pc.is_valid(separator), pa.scalar(""), pa.scalar(None, pa.string()))
    # Arrow's kernel for this loses rows in which all parts are null
    result = parts[0]
    for part in parts[1:]:
        joined = pc.binary_join_element_wise(result, part, separator, null_handling="emit_null")
        result = pc.if_else(pc.is_null(result), part, pc.if_else(pc.is_null(part), result, joined))
    return null_where(pc.is_null(separator), pc.fill_null(result, ""))


def _substring(call: Call, args: list[Any], rows: Rows) -> Any:
    """Positions count from 1, or from the end if negative. Computed in Python unless they are constant."""
    text = _checked(args[0])
    start, size = _constant(call, 1), _constant(call, 2) if len(call.args) == 3 else _INT_MAX
    if start is None or size is None:
        return by_row([text, *args[1:]], _slice, pa.string())
    if size <= 0:
        return pc.utf8_slice_codeunits(text, 0, 0)
    if start >= 0:
        first = max(start - 1, 0)
        return pc.utf8_slice_codeunits(text, first, min(first + size, _INT_MAX))
    end = start + size
    return pc.utf8_slice_codeunits(text, start, end if end < 0 else None)


def _slice(text: str, position: int, size: int = _INT_MAX) -> str:
    start = position - 1 if position > 0 else len(text) + position if position < 0 else 0
    end = min(start + size, _INT_MAX)
    return text[max(start, 0) : max(end, 0)] if end > start else ""


def _edge(call: Call, args: list[Any], rows: Rows) -> Any:
    text, count = _checked(args[0]), _constant(call, 1)
    left = call.function == "left"
    if count is None:

        def edge(text: str, count: int) -> str:
            return text[: max(count, 0)] if left else text[-count:] if count > 0 else ""

        return by_row([text, args[1]], edge, pa.string())
    if count <= 0:
        return pc.utf8_slice_codeunits(text, 0, 0)
    return pc.utf8_slice_codeunits(text, 0, count) if left else pc.utf8_slice_codeunits(text, -count, None)


def _padded(call: Call, args: list[Any], rows: Rows) -> Any:
    """Computed in Python unless the size is constant and the filler is one constant character."""
    text, size = _checked(args[0]), _constant(call, 1)
    filler = call.args[2]
    left = call.function == "lpad"
    if size is None or not isinstance(filler, Literal) or not isinstance(filler.value, str) or len(filler.value) != 1:

        def padded(text: str, size: int, filler: str) -> str:
            missing, kept = max(size - len(text), 0), text[: max(size, 0)]
            added = (filler * (missing // len(filler) + 1))[:missing] if filler else ""
            return added + kept if left else kept + added

        return by_row([text, args[1], args[2]], padded, pa.string())
    cut = pc.utf8_slice_codeunits(text, 0, max(size, 0))
    return (pc.utf8_lpad if left else pc.utf8_rpad)(cut, max(size, 0), filler.value)


def _repeated(call: Call, args: list[Any], rows: Rows) -> Any:
    return pc.binary_repeat(args[0], int(call.options[0]))


def _replaced(call: Call, args: list[Any], rows: Rows) -> Any:
    """Computed in Python unless the search string and the replacement are constant."""
    wanted, by = (arg.value if isinstance(arg, Literal) else None for arg in call.args[1:])
    if isinstance(wanted, str) and isinstance(by, str):
        text = _checked(args[0])
        return pc.replace_substring(text, wanted, by) if wanted else text
    texts = [_checked(arg) for arg in args]
    return by_row(texts, lambda text, wanted, by: text.replace(wanted, by) if wanted else text, pa.string())


def _located(call: Call, args: list[Any], rows: Rows) -> Any:
    """Computed in Python unless the search string is constant and all text is ASCII."""
    text = _checked(args[0])
    wanted = call.args[1].value if isinstance(call.args[1], Literal) else None
    if isinstance(wanted, str) and not any_true(pc.invert(pc.string_is_ascii(text))):
        return pc.add(pc.find_substring(text, wanted), pa.scalar(1, pa.int32()))
    return by_row([text, _checked(args[1])], lambda text, wanted: text.find(wanted) + 1, pa.int32())


def _raised(call: Call, args: list[Any], rows: Rows) -> Any:
    failed = pa.repeat(pa.scalar(True), len(args[0]))
    rows.fail(failed, "USER_RAISED_EXCEPTION", "the expression raises an error", args[0])
    return pa.nulls(len(args[0]), pa.bool_())


def _split_part(call: Call, args: list[Any], rows: Rows) -> Any:
    """Computed in Python; an empty delimiter splits nothing."""
    number = int(call.options[0])

    def part(text: str, delimiter: str) -> str:
        parts = text.split(delimiter) if delimiter else [text]
        index = number - 1 if number > 0 else len(parts) + number
        return parts[index] if 0 <= index < len(parts) else ""

    return by_row([_checked(arg) for arg in args], part, pa.string())


def _hashed(call: Call, args: list[Any], rows: Rows) -> Any:
    """Computed in Python, once for each distinct value."""
    values = args[0].cast(pa.binary())
    if call.function == "crc32":
        return by_value(values, zlib.crc32, pa.int64())
    if call.function == "hex":
        return by_value(values, lambda value: value.hex().upper(), pa.string())
    digest = partial(hashlib.new, call.function, usedforsecurity=False)
    return by_value(values, lambda value: digest(value).hexdigest(), pa.string())


def _by_pattern(call: Call, args: list[Any], rows: Rows) -> Any:
    kernel = pc.match_substring_regex if call.function == "rlike" else pc.replace_substring_regex
    return regex_search(kernel, _checked(args[0]), *map(str, call.options))


TEXTS: dict[str, Kernel] = {
    "upper": _cased, "lower": _cased, "ascii": _ascii,
    "reverse": lambda _, args, __: pc.utf8_reverse(_checked(args[0])),
    **dict.fromkeys(("length", "octet_length", "bit_length"), _length),
    **dict.fromkeys(("trim", "ltrim", "rtrim"), _trimmed), "concat": _concat, "concat_ws": _concat_ws,
    "substring": _substring, "left": _edge, "right": _edge, "lpad": _padded, "rpad": _padded, "repeat": _repeated,
    "replace": _replaced, "instr": _located, "split_part": _split_part,
    **dict.fromkeys(("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "crc32", "hex"), _hashed),
    "rlike": _by_pattern, "regexp_replace": _by_pattern, "raise_error": _raised,
}  # fmt: skip
