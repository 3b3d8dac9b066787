"""Checks whether a text is one Spark expression over the columns of a row, and finds the functions that it calls.

Invariants: a recognized text never has two adjacent values. Queries over tables, windows and clauses of aggregates need
a word before or after a value, so they are not recognized. An opening bracket follows an operator, or the name of a
function, which is reported.

It knows the whole grammar of expressions, including constructs that our own ``grammar`` refuses. It builds no tree:
open brackets are on a stack, so any depth is possible.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from delta_pyds.expr.parser.lexer import Token, shortened
from delta_pyds.expr.parser.token_reader import Purpose, TokenReader

_PURPOSE = Purpose("an", "expression", max_depth=0)
_PREFIXES = ("-", "+", "~", "!")
_INFIXES = frozenset(
    ("=", "==", "<>", "!=", "<", "<=", "!>", ">", ">=", "!<", "<=>", "+", "-", "*", "/", "%", "||", "|", "&", "^",
     "<<", ">>", ">>>", "->", "=>")
)  # fmt: skip
_INFIX_WORDS = ("AND", "OR", "DIV", "BETWEEN", "RLIKE", "REGEXP", "ESCAPE")
_NEGATED = ("IN", "BETWEEN", "LIKE", "ILIKE", "RLIKE", "REGEXP")
_TYPED = ("DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "X", "BINARY")
_UNITS = (
    "YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DAYOFYEAR", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND",
)  # fmt: skip
# operators if the brackets contain a unit and two values, otherwise functions
_WITH_UNIT = frozenset(("timestampadd", "timestampdiff", "dateadd", "date_add", "datediff", "date_diff"))
# words that separate the arguments of a function, like commas
_PARTED = {
    "trim": ("FROM",),
    "extract": ("FROM",),
    "position": ("IN",),
    "substr": ("FROM", "FOR"),
    "substring": ("FROM", "FOR"),
    "overlay": ("PLACING", "FROM", "FOR"),
}
_CASTS = ("cast", "try_cast")
_CLOSED_BY = {"[": "]", "case": "END"}


@dataclass(frozen=True)
class Call:
    """``name``: its parts as written, without quotes."""

    name: tuple[str, ...]
    position: int = field(compare=False)


@dataclass
class _Open:
    """An open construct.

    ``kind``: "(", "[", "case", "cast", "call"; "unit" after a word such as DAY; or the name of a function whose
    arguments are separated by words. ``part``: the last word of a CASE; for a cast, whether the type was read.
    ``call``: the function of a "unit". It is an operator, not a call, if exactly two values follow (``commas``), and
    these are not conditions (``condition``).
    """

    kind: str
    part: str = ""
    call: Call | None = None
    commas: int = 0
    condition: bool = False


def called_functions(text: str) -> tuple[Call, ...]:
    """The functions that an expression calls by name, in the order of the text.

    ``CAST``, operators and words such as ``CASE`` are not functions.

    Raises: ExpressionError: PARSE_SYNTAX_ERROR for a text that Spark's lexer does not read;
        DELTA_UNSUPPORTED_EXPRESSION naming a construct that is not part of an expression over a row.
    """
    recognizer = _Recognizer(text)
    recognizer.whole()
    return tuple(recognizer.calls)


class _Recognizer(TokenReader):
    def __init__(self, text: str) -> None:
        super().__init__(text, _PURPOSE)
        self.calls: list[Call] = []
        self.open: list[_Open] = []

    def whole(self) -> None:
        after_value = False
        while self.token.kind != "end" or not after_value or self.open:
            if self.token.kind == "end":
                self.fail("the expression is not complete")
            after_value = self.go_on() if after_value else self.value()

    # methods for a position before a value; each returns whether the value is complete

    def value(self) -> bool:
        token = self.token
        if token.kind == "number":
            self.take()
        elif token.kind == "string":
            self.string()
        elif token.is_symbol(*_PREFIXES) or self.at("NOT"):
            self.note_condition(token.is_symbol("!") or token.kind == "word")
            self.take()
            return False
        elif token.is_symbol("("):
            return self.begin("(")
        elif token.is_name:
            return self.name()
        elif token.is_symbol("*"):
            self.refuse("a * that stands for columns")
        elif token.is_symbol(":", "?"):
            self.refuse("a parameter marker")
        elif token.is_symbol(")") and self.tokens[self.index - 1].is_symbol("(") and self.inside() not in ("", "("):
            return self.end_bracket()
        else:
            self.fail("a value is expected")
        return True

    def name(self) -> bool:
        following = self.following
        if self.token.kind == "word":
            word = self.token.text.upper()
            if word == "CASE" and not (
                following.kind == "symbol" and following.text in (*_INFIXES, ".", ",", ")", "]")
            ):
                return self.begin_case()
            if word == "INTERVAL" and (following.kind in ("number", "string") or following.is_symbol("-", "+")):
                return self.interval_value()
            if word in _TYPED and following.kind == "string":
                self.take()
                self.string()
                return True
        return self.path()

    def path(self) -> bool:
        """A column with its fields, or a function's name and the bracket after it."""
        start = self.token.start
        parts = [self.take()]
        while self.token.is_symbol("."):
            self.take()
            parts.append(self.field_name())
        if not self.token.is_symbol("("):
            return True
        call = Call(tuple(part.value for part in parts), start)
        lower = parts[0].text.lower() if len(parts) == 1 and parts[0].kind == "word" else ""
        if lower in _CASTS:
            return self.begin("cast")
        if lower in _WITH_UNIT and self.following.is_word(*_UNITS) and self.tokens[self.index + 2].is_symbol(","):
            self.begin("unit")
            self.open[-1].call = call
            self.take()
            return True  # at the comma after the unit
        self.calls.append(call)
        self.begin(lower if lower in _PARTED or lower == "struct" else "call")
        if lower == "trim" and self.at("BOTH", "LEADING", "TRAILING") and not self.following.is_symbol(",", ")", "."):
            self.take()
            self.accept("FROM")
        return False

    def field_name(self) -> Token:
        if self.token.is_symbol("*"):
            self.refuse("a * that stands for columns")
        if not self.token.is_name:
            self.fail("the name of a field is expected")
        return self.take()

    def begin(self, kind: str) -> bool:
        self.take()
        self.open.append(_Open(kind))
        return False

    def begin_case(self) -> bool:
        self.begin("case")
        if self.accept("WHEN"):
            self.open[-1].part = "WHEN"
        return False

    def interval_value(self) -> bool:
        self.take()
        while self.token.kind in ("number", "string") or self.token.is_symbol("-", "+"):
            # a sign is an operator if no number with a unit follows
            ahead = self.index + self.token.is_symbol("-", "+")
            if self.tokens[ahead].kind not in ("number", "string") or self.tokens[ahead + 1].kind != "word":
                return True
            self.index = ahead + 2
            if self.accept("TO"):
                self.take()
        return True

    # methods for a position after a value

    def go_on(self) -> bool:
        token = self.token
        if token.kind == "symbol":
            return self.symbol(token)
        if token.kind != "word":
            self.fail("an operator is expected between two values")
        word = token.text.upper()
        inside = self.inside()
        if inside == "case" and word in ("WHEN", "THEN", "ELSE", "END"):
            return self.part_of_case(word)
        if word in _PARTED.get(inside, ()):
            self.take()
            return False
        if word == "AS" and inside in ("cast", "struct"):
            return self.named() if inside == "struct" else self.type_of_cast()
        self.note_condition(word not in ("DIV", "COLLATE"))
        self.take()
        if word == "NOT":
            if not self.at(*_NEGATED):
                self.fail()
            word = self.take().text.upper()
        if word in _INFIX_WORDS:
            return False
        if word == "IS":
            return self.tested()
        if word == "IN":
            return self.in_list()
        if word in ("LIKE", "ILIKE"):
            if self.at("ANY", "SOME", "ALL") and self.following.is_symbol("("):
                self.take()
            return False
        if word == "COLLATE":
            self.dotted()
            return True
        self.index -= 1
        return self.refuse(f"the word {shortened(token.text)} after a value")

    def symbol(self, token: Token) -> bool:
        text = token.text
        if text in (")", "]"):
            return self.end_bracket()
        self.take()
        if text in _INFIXES:
            self.note_condition(text in ("->", "=>"))
            return False
        if text == "," and self.inside() not in ("", "[", "case", "cast"):
            self.open[-1].commas += 1
            return False
        if text == "[":
            self.index -= 1
            return self.begin("[")
        if text == "::":
            self.type_name()
            return True
        if text in (".", ":"):
            # a field, or the beginning of a path into a variant
            if not (text == ":" and self.token.is_symbol("[")):
                self.field_name()
            return True
        self.index -= 1
        if text == "(":
            self.refuse("a call of something other than a function")
        return self.fail()

    def end_bracket(self) -> bool:
        inside = self.inside()
        closing = _CLOSED_BY.get(inside, ")") if inside else ""
        if self.token.text != closing or (inside == "cast" and not self.open[-1].part):
            self.fail()
        self.take()
        closed = self.open.pop()
        if closed.call is not None and (closed.condition or closed.commas != 2):
            self.calls.append(closed.call)
        return True

    def part_of_case(self, word: str) -> bool:
        before = self.open[-1].part
        fits = {"WHEN": ("", "THEN"), "THEN": ("WHEN",), "ELSE": ("THEN",), "END": ("THEN", "ELSE")}
        if before not in fits[word]:
            self.fail()
        self.take()
        if word == "END":
            self.open.pop()
            return True
        self.open[-1].part = word
        return False

    def tested(self) -> bool:
        self.accept("NOT")
        if self.accept("DISTINCT"):
            self.expect("FROM")
            return False
        if not self.at("NULL", "TRUE", "FALSE", "UNKNOWN"):
            self.fail()
        self.take()
        return True

    def in_list(self) -> bool:
        if self.token.kind == "list":
            self.take()
            return True
        if not self.token.is_symbol("("):
            self.fail("expected (")
        return self.begin("(")

    def named(self) -> bool:
        self.take()
        if not self.token.is_name:
            self.fail("a name is expected")
        self.take()
        return True

    def type_of_cast(self) -> bool:
        self.take()
        self.type_name()
        self.open[-1].part = "AS"
        if not self.token.is_symbol(")"):
            self.fail("expected )")
        return True

    def type_name(self) -> None:
        """A type, also a nested one: its fields have names and types, and no values."""
        if self.token.kind != "word":
            self.fail("a type is expected")
        word = self.take().text.upper()
        if self.token.is_symbol("("):
            self.sizes()
        elif self.token.is_symbol("<>"):
            self.take()
        elif self.token.is_symbol("<") and word in ("ARRAY", "MAP", "STRUCT"):
            self.in_angles()
        elif word == "INTERVAL":
            if self.at(*_UNITS):
                self.take()
                if self.accept("TO"):
                    self.take()
        elif word == "TIMESTAMP" and self.at("WITH", "WITHOUT"):
            self.take()
            self.accept("LOCAL")
            self.expect("TIME")
            self.expect("ZONE")
        if self.accept("COLLATE"):
            self.dotted()

    def in_angles(self) -> None:
        depth = 0
        while True:
            token = self.token
            if token.is_symbol("("):
                self.sizes()
                continue
            if not (token.is_name or token.kind == "string" or token.is_symbol("<", ">", ">>", ">>>", "<>", ",", ":")):
                self.fail("a type is expected")
            self.take()
            if token.kind == "symbol":
                depth += {"<": 1, ">": -1, ">>": -2, ">>>": -3}.get(token.text, 0)
                if depth < 0:
                    self.fail("a type has more closing brackets than opening ones")
                if depth == 0:
                    return

    def sizes(self) -> None:
        self.take()
        while self.token.kind == "number" or self.at("ANY"):
            self.take()
            if not self.accept(","):
                break
        self.expect(")")

    def dotted(self) -> None:
        while self.token.is_name:
            self.take()
            if not self.accept("."):
                return
        self.fail("a name is expected")

    def note_condition(self, condition: bool) -> None:
        if condition and self.open:
            self.open[-1].condition = True

    def inside(self) -> str:
        """The innermost open construct; empty if nothing is open."""
        return self.open[-1].kind if self.open else ""
