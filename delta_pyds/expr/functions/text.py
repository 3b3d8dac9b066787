"""Functions of strings: their types by Spark's rules."""

from __future__ import annotations

from delta_pyds.errors import ExpressionError
from delta_pyds.expr.functions.patterns import like_parts, match_parts
from delta_pyds.expr.functions.regular_expressions import cannot_match_empty, portable_pattern
from delta_pyds.expr.functions.session_context import (
    Registry,
    SessionContext,
    constant_argument,
    expect_count,
    refuse_argument,
    text_argument,
    whole_argument,
)
from delta_pyds.expr.logic import require_comparable
from delta_pyds.expr.nodes import (
    ANY_STRING,
    Comparison,
    Expr,
    Like,
    Literal,
    Wildcard,
    type_of,
)
from delta_pyds.protocol.schema import BINARY, BOOLEAN, INTEGER, LONG, STRING, VOID, ArrayType

TEXT_FUNCTIONS = Registry()
_function = TEXT_FUNCTIONS.function


def _texts(context: SessionContext, name: str, args: tuple[Expr, ...]) -> list[Expr]:
    return [text_argument(context, name, arg) for arg in args]


@_function("upper", "ucase", "lower", "lcase", "reverse", "ascii", counts=(1,))
def of_text(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    name = {"ucase": "upper", "lcase": "lower"}.get(name, name)
    return context.call(name, _texts(context, name, args), INTEGER if name == "ascii" else STRING)


@_function("length", "char_length", "character_length", "len", "octet_length", "bit_length", counts=(1,))
def size_of_text(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    kernel = name if name in ("octet_length", "bit_length") else "length"
    value = args[0] if type_of(args[0]) == BINARY else text_argument(context, name, args[0])
    return context.call(kernel, (value,), INTEGER)


@_function("trim", "ltrim", "rtrim", "btrim", "trim from", "ltrim from", "rtrim from")
def trim(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    """The second argument is the characters to trim."""
    expect_count(name, args, *((1, 2) if name == "btrim" else (2,) if name.endswith(" from") else (1,)))
    name = name.removesuffix(" from").removeprefix("b")
    texts = _texts(context, name, args)
    characters = constant_argument(name, texts[1], "set of characters") if len(texts) == 2 else " "
    if characters is None:
        return Literal(None, STRING)
    return context.call(name, texts[:1], STRING, str(characters))


@_function("concat", "||")
def concat(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    if any(isinstance(type_of(arg), ArrayType) for arg in args):
        raise ExpressionError("concat of arrays is not supported.", construct="concat")
    if args and all(type_of(arg) == BINARY for arg in args):
        return context.call("concat", args, BINARY)
    if not args:
        return Literal("", STRING)
    return context.call("concat", _texts(context, "concat", args), STRING)


@_function("concat_ws")
def concat_ws(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    if not args:
        expect_count(name, args, 1)
    return context.call(name, _texts(context, name, args), STRING)


@_function("substring", "substr", counts=(2, 3))
def substring(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    text = text_argument(context, name, args[0])
    numbers = [whole_argument(context, name, arg) for arg in args[1:]]
    return context.call("substring", (text, *numbers), STRING)


@_function("left", "right", counts=(2,))
def edge(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    return context.call(name, (text_argument(context, name, args[0]), whole_argument(context, name, args[1])), STRING)


@_function("lpad", "rpad", counts=(2, 3))
def pad(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    text, size = text_argument(context, name, args[0]), whole_argument(context, name, args[1])
    filler = text_argument(context, name, args[2]) if len(args) == 3 else Literal(" ", STRING)
    return context.call(name, (text, size, filler), STRING)


@_function("repeat", counts=(2,))
def repeat(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    count = constant_argument(name, args[1], "number of times")
    if not isinstance(count, int) or isinstance(count, bool) or count > 10_000:
        raise ExpressionError("the function repeat needs a whole number of times up to 10000.", construct=name)
    return context.call(name, (text_argument(context, name, args[0]),), STRING, max(count, 0))


@_function("replace", counts=(2, 3))
def replace(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    texts = _texts(context, name, args if len(args) == 3 else (*args, Literal("", STRING)))
    return context.call(name, texts, STRING)


@_function("instr", "locate", "position")
def locate(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    """``instr(text, part)``, ``locate(part, text)``: the position of the first occurrence, from 1; 0 for none."""
    if len(args) == 3 and name != "instr":
        raise ExpressionError(f"{name} with a start is not supported.", construct=name)
    expect_count(name, args, 2)
    texts = _texts(context, name, args)
    return context.call("instr", texts if name == "instr" else texts[::-1], INTEGER)


@_function("split_part", counts=(3,))
def split_part(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    texts = _texts(context, name, args[:2])
    number = constant_argument(name, args[2], "number of a part")
    if not isinstance(number, int) or isinstance(number, bool) or number == 0:
        raise ExpressionError("the function split_part needs the number of a part, other than 0.", construct=name)
    return context.call(name, texts, STRING, number)


@_function("md5", "sha", "sha1", "sha2", "crc32", "hex")
def digest(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    expect_count(name, args, 2 if name == "sha2" else 1)
    value = args[0]
    if type_of(value) not in (STRING, BINARY, VOID):
        raise refuse_argument(name, value, "STRING or BINARY")
    if type_of(value) == VOID:
        value = Literal(None, STRING)
    if name == "sha2":
        bits = constant_argument(name, args[1], "number of bits")
        if bits not in (0, 224, 256, 384, 512):
            raise ExpressionError("the function sha2 takes 0, 224, 256, 384 or 512 bits.", construct=name)
        return context.call(f"sha{bits or 256}", (value,), STRING)
    return context.call("sha1" if name == "sha" else name, (value,), LONG if name == "crc32" else STRING)


# patterns


@_function("like", "ilike", counts=(2, 3))
def like(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    value = text_argument(context, name.upper(), args[0])
    require_comparable(value)
    pattern = constant_argument(name.upper(), text_argument(context, name, args[1]), "pattern")
    escape = constant_argument(name.upper(), args[2], "escape") if len(args) == 3 else "\\"
    if pattern is None or (isinstance(value, Literal) and value.value is None):
        return Literal(None, BOOLEAN)
    if name == "ilike":
        if not str(pattern).isascii():
            raise ExpressionError("ILIKE is supported with a pattern of ASCII characters only.", construct="ILIKE")
        value, pattern = context.call("lower", (value,), STRING), str(pattern).lower()
    return _matching(value, like_parts(str(pattern), str(escape)))


@_function("startswith", "endswith", "contains", counts=(2,))
def text_match(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    value = text_argument(context, name, args[0])
    wanted = constant_argument(name, text_argument(context, name, args[1]), "text")
    return Literal(None, BOOLEAN) if wanted is None else _matching(value, match_parts(name, str(wanted)))


def _matching(value: Expr, parts: list[str | Wildcard]) -> Expr:
    if all(isinstance(part, str) for part in parts):
        return Comparison("=", value, Literal("".join(str(part) for part in parts), STRING))
    if parts == [ANY_STRING]:
        # true for every value, null for null
        return Comparison(">=", value, Literal("", STRING))
    return Like(value, tuple(parts))


@_function("rlike", "regexp", "regexp_like", counts=(2,))
def regexp_like(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    value = text_argument(context, name, args[0])
    pattern = constant_argument(name.upper(), text_argument(context, name, args[1]), "pattern")
    if pattern is None:
        return Literal(None, BOOLEAN)
    return context.call("rlike", (value,), BOOLEAN, portable_pattern(str(pattern)))


@_function("regexp_replace", counts=(3,))
def regexp_replace(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
    value = text_argument(context, name, args[0])
    pattern = constant_argument(name, text_argument(context, name, args[1]), "pattern")
    replacement = constant_argument(name, text_argument(context, name, args[2]), "replacement")
    if not isinstance(pattern, str) or not isinstance(replacement, str):
        return Literal(None, STRING)
    portable = portable_pattern(pattern, replacing=True)
    if any(character in replacement for character in "$\\") or not cannot_match_empty(pattern):
        raise ExpressionError(
            f"regexp_replace with the pattern '{pattern}' and the replacement '{replacement}' is not supported: the "
            "pattern must not match an empty text, and the replacement must not contain $ or \\.",
            construct=name,
        )
    return context.call(name, (value,), STRING, portable, replacement)
