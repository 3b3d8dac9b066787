"""The tokens of a Spark SQL predicate, or of a whole statement, with their positions in the text.

Follows the lexical rules of Spark 4: comments (nested ones too), strings with
either quote, a doubled quote for one quote, backslash escapes, raw strings,
backticks, and numbers with a suffix for their type.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import NamedTuple

from delta_pyds.errors import ExpressionError

# a backslash at the end of a line continues the comment in the next line
_BLANK = re.compile(
    "[ \t\r\n\f\v\u00a0\u1680\u2000-\u200a\u2028\u202f\u205f\u3000]+" + r"|--[^\\\r\n]*(?:\\\n?[^\\\r\n]*)*"
)
# a hint within a comment opens no nested comment: for Spark the outer comment ends with the hint
_COMMENT_EDGE = re.compile(r"/\*(?!\+)|\*/")
# A part of the text between quotes, by the quote. A repetition of alternatives takes tens of bytes of memory for each
# round. So the number of rounds is bounded, and a loop reads the rest of the text.
_QUOTED = {
    "'": re.compile(r"[^'\\]*(?:(?:''|\\.)[^'\\]*){0,1000}", re.DOTALL),
    '"': re.compile(r'[^"\\]*(?:(?:""|\\.)[^"\\]*){0,1000}', re.DOTALL),
    "`": re.compile(r"[^`]*(?:``[^`]*){0,1000}"),
}
_RAW = re.compile(r"""[rR](?:'([^']*)'|"([^"]*)")""")
_NUMBER = re.compile(
    r"(?P<point>(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?(?=(?:BD|[DF])?(?a:(?![A-Z0-9_\u017f\u0131])))"
    # no word contains a sign: 1e+12L is a number and a word, 1e12L is one word
    r"|[0-9]+e[+-][0-9]+|[0-9]+e[0-9]+(?=(?:BD|[DF])?(?!\w)))(?P<fraction_suffix>BD|[DF])?"
    r"|(?P<whole>[0-9]+)(?P<suffix>BD|[DFLSY])?(?!\w)",
    re.IGNORECASE,
)
# a word that begins no raw string and precedes no quote, a small whole number, or a symbol of one character
_SIMPLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?![\w'\"]|://)|([0-9]{1,18})(?![\w.])|([(),+%=]|\*(?!/))(?![=>])")
_BLANKS = " \t\r\n\f\v"
_LONG_LIST = 1_000
_NUMBERS = re.compile(r"\(([-0-9, \t\r\n]{1000,})\)")
# few enough digits for every type, so no number can be out of range
_FRACTIONS = re.compile(r"\(([-+0-9.dDeE, \t\r\n]{1000,})\)")
_DOUBLE = re.compile(
    r"[ \t\r\n]*(-?(?:\d{1,40}\.?\d{0,40}|\.\d{1,40})(?:(?:[eE][+-]?\d{1,2})[dD]?|[dD]))[ \t\r\n]*", re.ASCII
)
_DECIMAL = re.compile(r"[ \t\r\n]*-?(?:\d{1,18}\.\d{0,18}|\.\d{1,18}|\d{1,18})[ \t\r\n]*", re.ASCII)
_STRINGS = re.compile(r"\(([ \t\r\n]*'[^\\\")(]*')[ \t\r\n]*\)")
# a word may be an address: `gs://bucket/day=1`
_WORD = re.compile(r"[^\W\d_]+://[\w/.?=&#%-]+|\w+")
# of these characters, a word may have only letters
_OUTSIDE_OF_ASCII = re.compile(r"[^\W\x00-\x7f]")
_SYMBOL = re.compile(r"<=>|<=|>=|<>|!=|!<|!>|==|\|\||\|>|::|<<|>>>|>>|->|=>|[-=<>!+*/%(),.&|^~\[\]:?]")
_OF_STATEMENTS = re.compile(r"[@;{}$#\\]")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([01][0-7]{2})|(.))", re.DOTALL)
_ESCAPE_OR_QUOTES = re.compile(rf"{_ESCAPE.pattern}|''|\"\"", re.DOTALL)
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}

_SURROGATE = re.compile("[\ud800-\udfff]")
# an error shows this many characters on both sides of a position
_SHOWN = 200


class Token(NamedTuple):
    """``kind``: word, name (in backticks), number, string, symbol, list, end.

    ``text``: as written. ``value``: its meaning. ``suffix``: the type letter of a number, in capitals.
    ``values``: those of a list in parentheses: whole numbers and decimals, doubles, or strings.
    """

    kind: str
    text: str
    start: int
    value: str = ""
    suffix: str = ""
    values: tuple[int | Decimal, ...] | tuple[float, ...] | tuple[str, ...] = ()

    @property
    def is_name(self) -> bool:
        """Whether the token may be a name: it is a word, or in backticks."""
        return self.kind in ("word", "name")

    def is_word(self, *words: str) -> bool:
        return self.kind == "word" and self.text.upper() in words

    def is_symbol(self, *symbols: str) -> bool:
        return self.kind == "symbol" and self.text in symbols


def tokenize(text: str, *, statement: bool = False) -> list[Token]:
    """Split a predicate; the last token is of kind ``end``.

    ``statement``: the text is a whole statement, which may have some additional symbols.
    Raises: ExpressionError (PARSE_SYNTAX_ERROR) with ``position`` and ``reason``.
    """
    if (surrogate := _SURROGATE.search(text)) is not None:
        # a text with a surrogate cannot be printed, stored or compared
        printable = _SURROGATE.sub("\ufffd", text)
        raise syntax_error(
            printable,
            surrogate.start(),
            f"near '\\u{ord(surrogate[0]):04x}': half of a surrogate pair is not a character",
        )
    tokens: list[Token] = []
    position = 0
    while True:
        position = _skip_blank(text, position, statement)
        if position == len(text):
            return [*tokens, Token("end", "", position)]
        token = _plain_list(text, position) if text[position] == "(" and tokens and tokens[-1].is_word("IN") else None
        token = token or _token(text, position, statement)
        tokens.append(token)
        position += len(token.text)


def _plain_list(text: str, position: int) -> Token | None:
    """A long list of plain numbers or strings after IN, as one token: there may be a million of them."""
    match = _NUMBERS.match(text, position)
    if match is not None:
        try:
            numbers = tuple(map(int, match[1].split(",")))
        except ValueError:
            return None  # a comment, two signs or a missing number
        return (
            Token("list", match[0], position, values=numbers)
            if -(1 << 63) <= min(numbers) <= max(numbers) < 1 << 63
            else None
        )
    match = _FRACTIONS.match(text, position)
    if match is not None:
        fractions = _fractions(match[1].split(","))
        return None if fractions is None else Token("list", match[0], position, values=fractions)
    match = _STRINGS.match(text, position)
    if match is None or len(match[0]) < _LONG_LIST:
        return None
    # there is no quote or backslash between the quotes, so every second piece is a string
    pieces = match[1].split("'")
    if len(pieces) % 2 == 0 or any(between.strip(_BLANKS) != "," for between in pieces[2:-1:2]):
        return None
    return Token("list", match[0], position, values=tuple(pieces[1::2]))


def _fractions(pieces: list[str]) -> tuple[float, ...] | tuple[int | Decimal, ...] | None:
    """The numbers if all are doubles, or all are decimals and whole numbers; else None."""
    if _DOUBLE.fullmatch(pieces[0]):
        doubles = list(map(_DOUBLE.fullmatch, pieces))
        return None if None in doubles else tuple([float(match[1].rstrip("dD")) for match in doubles if match])
    if all(map(_DECIMAL.fullmatch, pieces)):
        return tuple([Decimal(piece.strip()) if "." in piece else int(piece) for piece in pieces])
    return None


def _token(text: str, position: int, statement: bool) -> Token:
    # most tokens are words, numbers and symbols
    match = _SIMPLE.match(text, position)
    if match:
        kind = "word" if match[1] else "number" if match[2] else "symbol"
        return Token(kind, match[0], position, "" if match[3] else match[0])
    match = _RAW.match(text, position)
    if match:
        return Token("string", match[0], position, match[1] if match[1] is not None else match[2])
    if text[position] in _QUOTED:
        quoted = _quoted(text, position)
        if text[position] == "`":
            return Token("name", quoted, position, quoted[1:-1].replace("``", "`"))
        return Token("string", quoted, position, unescape(quoted))
    match = _NUMBER.match(text, position)
    if match:
        digits = match["point"] or match["whole"]
        return Token("number", match[0], position, digits, (match["fraction_suffix"] or match["suffix"] or "").upper())
    match = _WORD.match(text, position)
    if match:
        for letter in _OUTSIDE_OF_ASCII.finditer(match[0]):
            if not letter[0].isalpha():
                raise _no_such_character(text, position + letter.start())
        return Token("word", match[0], position, match[0])
    if text.startswith("*/", position):
        raise syntax_error(text, position, "near '*/': there is no comment to close")
    match = _SYMBOL.match(text, position) or (_OF_STATEMENTS.match(text, position) if statement else None)
    if match:
        return Token("symbol", match[0], position)
    raise _no_such_character(text, position)


def _quoted(text: str, position: int) -> str:
    """The quoted text that begins at the position, with both of its quotes."""
    piece = _QUOTED[text[position]]
    end, start = position + 1, position
    while end > start:
        start, end = end, piece.match(text, end).end()  # type: ignore[union-attr]
    if not text.startswith(text[position], end):
        raise syntax_error(text, position, f"near '{text[position : position + 20]}': a quote is not closed")
    return text[position : end + 1]


def _no_such_character(text: str, position: int) -> ExpressionError:
    return syntax_error(text, position, f"near '{text[position : position + 20]}': no such character in an expression")


def _skip_blank(text: str, position: int, statement: bool) -> int:
    while True:
        match = _BLANK.match(text, position)
        if match:
            position = match.end()
        elif not statement and text.startswith("/*+", position):
            raise syntax_error(text, position, "near '/*+': only a query can have a hint")
        elif text.startswith("/*", position):
            position = _skip_comment(text, position)
        else:
            return position


def after_hints(text: str, tokens: Sequence[Token]) -> Iterator[int]:
    """The numbers of the tokens after a hint such as ``/*+ BROADCAST(t) */``."""
    end = 0
    for number, token in enumerate(tokens):
        position, end = end, token.start + len(token.text)
        while position < token.start:
            match = _BLANK.match(text, position)
            if match is None and text.startswith("/*+", position):
                yield number
            position = _skip_comment(text, position) if match is None else match.end()


def _skip_comment(text: str, start: int) -> int:
    depth, position = 1, start + 2
    while True:
        edge = _COMMENT_EDGE.search(text, position)
        if edge is None:
            raise syntax_error(text, start, "near '/*': the comment is not closed")
        depth += 1 if edge[0] == "/*" else -1
        position = edge.end()
        if depth == 0:
            return position


def unescape(quoted: str) -> str:
    """The value of a string literal in quotes."""
    quote, body = quoted[0], quoted[1:-1]
    if "\\" not in body:
        return body.replace(quote * 2, quote)
    joined = _ESCAPE_OR_QUOTES.sub(lambda match: _escaped(match) if match[0][0] == "\\" else _half(match, quote), body)
    try:
        # two escapes may encode one character in UTF-16, as in Java
        return joined.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise ExpressionError(
            f"the string {shortened(quoted)} contains half of a surrogate pair, which is not a character.",
            code="PARSE_SYNTAX_ERROR",
        ) from None


def _half(match: re.Match[str], quote: str) -> str:
    """One quote for two quotes of the string's own kind; other quotes stay."""
    return quote if match[0][0] == quote else match[0]


def _escaped(match: re.Match[str]) -> str:
    if match[1]:
        return chr(int(match[1], 16))
    if match[2]:
        code = int(match[2], 16)
        if code > 0x10FFFF:
            raise ExpressionError(f"'{match[0]}' is not a character.", code="PARSE_SYNTAX_ERROR")
        return chr(code)
    if match[3]:
        return chr(int(match[3], 8))
    return _ESCAPED.get(match[4], match[4])


def shortened(text: str, position: int = 0) -> str:
    """The text for an error; for a long text, the part around a position."""
    first, last = max(0, position - _SHOWN), position + _SHOWN
    if len(text) <= 2 * _SHOWN:
        return text
    return f"{'...' if first else ''}{text[first:last]}{'...' if last < len(text) else ''}"


def syntax_error(text: str, position: int, reason: str) -> ExpressionError:
    """A syntax error that shows the text with a mark under the position."""
    return ExpressionError(
        f"the predicate is not Spark SQL: syntax error {reason} {marked_position(text, position)}",
        code="PARSE_SYNTAX_ERROR",
        multiline=True,
        position=position,
        reason=reason,
    )


def marked_position(text: str, position: int) -> str:
    """Line and position, the line itself, and a mark below it."""
    line_start = text.rfind("\n", 0, position) + 1
    line_end = text.find("\n", position)
    number = text.count("\n", 0, position) + 1
    column = position - line_start
    # of a long line, only the part around the position is shown
    first = max(line_start, position - _SHOWN)
    line = text[first : min(line_end if line_end >= 0 else len(text), position + _SHOWN)]
    return f"(line {number}, pos {column})\n{line}\n{'-' * (position - first)}^^^"
