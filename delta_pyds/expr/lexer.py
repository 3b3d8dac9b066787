"""The words of a Spark SQL predicate: tokens with their places in the text.

Follows the lexical rules of Spark 4: comments (nested ones too), strings with
either quote, a doubled quote for one quote, backslash escapes, raw strings,
backticks, and numbers with a suffix for their type.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from delta_pyds.errors import ExpressionError

_BLANK = re.compile(r"[ \t\r\n\f\v]+|--[^\r\n]*")
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_STRING = re.compile(r"""'(?:''|\\.|[^'\\])*'|"(?:""|\\.|[^"\\])*\"""", re.DOTALL)
_RAW = re.compile(r"""[rR](?:'([^']*)'|"([^"]*)")""")
_NAME = re.compile(r"`((?:``|[^`])*)`")
_NUMBER = re.compile(
    r"(?P<point>\d+\.\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)(?P<fraction_suffix>BD|[DF])?(?!\w)"
    r"|(?P<whole>\d+)(?P<suffix>BD|[DFLSY])?(?!\w)",
    re.IGNORECASE | re.ASCII,
)
_WORD = re.compile(r"\w+")
_SYMBOL = re.compile(r"<=>|<=|>=|<>|!=|==|\|\||::|<<|>>|->|=>|[-=<>!+*/%(),.&|^~\[\]:?]")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([01][0-7]{2})|(.))", re.DOTALL)
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}

_SURROGATE = re.compile("[\ud800-\udfff]")
# characters of a text on either side of a place that are shown in an error
_SHOWN = 200


@dataclass(frozen=True)
class Token:
    """``kind``: word, name (in backticks), number, string, symbol, end.

    ``text`` is as written, ``value`` what it stands for, ``suffix`` the type letter of a number, in capitals.
    """

    kind: str
    text: str
    start: int
    value: str = ""
    suffix: str = ""

    def is_word(self, *words: str) -> bool:
        return self.kind == "word" and self.text.upper() in words

    def is_symbol(self, *symbols: str) -> bool:
        return self.kind == "symbol" and self.text in symbols


def tokenize(text: str) -> list[Token]:
    """Split a predicate; the last token is of kind ``end``.

    Raises: ExpressionError (PARSE_SYNTAX_ERROR).
    """
    if (surrogate := _SURROGATE.search(text)) is not None:
        # no text that could be printed, stored or compared holds one
        printable = _SURROGATE.sub("\ufffd", text)
        raise syntax_error(
            printable, surrogate.start(), f"near '\\u{ord(surrogate[0]):04x}': half of a surrogate pair is no character"
        )
    tokens: list[Token] = []
    position = 0
    while True:
        position = _skip_blank(text, position)
        if position == len(text):
            return [*tokens, Token("end", "", position)]
        token = _token(text, position)
        tokens.append(token)
        position += len(token.text)


def _token(text: str, position: int) -> Token:
    match = _RAW.match(text, position)
    if match:
        return Token("string", match[0], position, match[1] if match[1] is not None else match[2])
    match = _STRING.match(text, position)
    if match:
        return Token("string", match[0], position, unescape(match[0]))
    match = _NAME.match(text, position)
    if match:
        return Token("name", match[0], position, match[1].replace("``", "`"))
    match = _NUMBER.match(text, position)
    if match:
        digits = match["point"] or match["whole"]
        return Token("number", match[0], position, digits, (match["fraction_suffix"] or match["suffix"] or "").upper())
    match = _WORD.match(text, position)
    if match:
        return Token("word", match[0], position, match[0])
    match = _SYMBOL.match(text, position)
    if match:
        return Token("symbol", match[0], position)
    problem = "a quote is not closed" if text[position] in "'\"`" else "no such character in an expression"
    raise syntax_error(text, position, f"near '{text[position : position + 20]}': {problem}")


def _skip_blank(text: str, position: int) -> int:
    while True:
        match = _BLANK.match(text, position)
        if match:
            position = match.end()
        elif text.startswith("/*", position):
            position = _skip_comment(text, position)
        else:
            return position


def _skip_comment(text: str, start: int) -> int:
    depth, position = 0, start
    while True:
        edge = _COMMENT_EDGE.search(text, position)
        if edge is None:
            raise syntax_error(text, start, "near '/*': the comment is not closed")
        depth += 1 if edge[0] == "/*" else -1
        position = edge.end()
        if depth == 0:
            return position


def unescape(quoted: str) -> str:
    """The text that a string literal in quotes stands for."""
    quote, body = quoted[0], quoted[1:-1]
    if "\\" not in body:
        return body.replace(quote * 2, quote)
    pieces = []
    position = 0
    while position < len(body):
        match = _ESCAPE.match(body, position)
        if match:
            pieces.append(_escaped(match))
            position = match.end()
        elif body.startswith(quote * 2, position):
            pieces.append(quote)
            position += 2
        else:
            pieces.append(body[position])
            position += 1
    joined = "".join(pieces)
    try:
        # two escapes may spell one character in UTF-16, as in Java
        return joined.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise ExpressionError(
            f"the string {shortened(quoted)} holds half of a surrogate pair, which is no character.", code="PARSE_SYNTAX_ERROR"
        ) from None


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
    """The text, or of a long one what is around a place in it, for an error."""
    first, last = max(0, position - _SHOWN), position + _SHOWN
    if len(text) <= 2 * _SHOWN:
        return text
    return f"{'...' if first else ''}{text[first:last]}{'...' if last < len(text) else ''}"


def syntax_error(text: str, position: int, reason: str) -> ExpressionError:
    """A syntax error that shows the text with a mark under the place."""
    line_start = text.rfind("\n", 0, position) + 1
    line_end = text.find("\n", position)
    number = text.count("\n", 0, position) + 1
    column = position - line_start
    # of a long line, what is around the place
    first = max(line_start, position - _SHOWN)
    line = text[first : min(line_end if line_end >= 0 else len(text), position + _SHOWN)]
    return ExpressionError(
        f"the predicate is not Spark SQL: syntax error {reason} (line {number}, pos {column})\n"
        f"{line}\n{'-' * (position - first)}^^^",
        code="PARSE_SYNTAX_ERROR",
        multiline=True,
        position=position,
    )
