"""Spellings of what no expression of a table may call, around comments, quotes, namespaces and escapes.

Each of them, where Spark runs it, sets the property ``MARK`` of the JVM: by itself, or through the body of a function
or a view of the session's user (``VICTIM``). Some spellings are broken on the way: what they mean is for Spark to say.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

MARK = "delta_pyds.fuzz"
_BODY = f"RETURNS STRING RETURN reflect('java.lang.System', 'setProperty', '{MARK}', 'ran')"
# built-in functions that the session's user has under the same name, and operators that Spark resolves by a name
_SHADOWED = {
    "upper": "x STRING",
    "concat": "x STRING, y STRING",
    "coalesce": "x STRING, y STRING",
    "between": "x STRING, y STRING, z STRING",
    "timestampadd": "x STRING, y STRING",
    "dateadd": "x STRING, y STRING",
    "when": "x BOOLEAN",
    "interval": "x INT",
}
VICTIM = (
    f"CREATE OR REPLACE TEMPORARY FUNCTION secret() {_BODY}",
    f"CREATE OR REPLACE FUNCTION spark_catalog.default.persisted() {_BODY}",
    *(f"CREATE TEMPORARY FUNCTION {name}({given}) {_BODY}" for name, given in _SHADOWED.items()),
    "CREATE OR REPLACE TEMPORARY VIEW of_victim AS SELECT secret() AS x",
)
# settings under which texts are read, or names found, in another way
SETTINGS: tuple[dict[str, str], ...] = (
    {},
    {"spark.sql.ansi.doubleQuotedIdentifiers": "true"},
    {"spark.sql.parser.escapedStringLiterals": "true"},
    {"spark.sql.parser.quotedRegexColumnNames": "true"},
    {"spark.sql.functionResolution.sessionOrder": "first"},
    {"spark.sql.functionResolution.sessionOrder": "last"},
    {"spark.sql.ansi.enabled": "false"},
)

_BLANKS = (" ", "\t", "\n", "\r\n", "\u00a0", "\u2003", "\u3000", "\x0b")
# where one lexer may see a beginning and another an end
_NASTY = (
    "'", '"', "`", "''", '""', "``", "\\", "\\'", '\\"', "\\\\", "--", "/*", "*/", "/*+", "/**/", "/*/**/*/", "-- \\\n",
    "\n", "\r", "r'", 'R"', "x'", "(", ")", "[", "]", ",", ".", "||", "|>", "::", ":", "?", "->", "=>", "!", "a://",
    "$$", "${spark.app.name}", "@", ";", "*", "1e", ".5", "1.", "SELECT ", "FROM ", "WHEN ", "THEN ", "END ", "AS ",
    "NOT ", "IN ", "IS ", "INTERVAL ", "DATE ", "LIKE ", "OVER ", "IDENTIFIER", "CASE ", "\u017f", "\u0130",
    "\u212a", "\u200b",
)  # fmt: skip
_COMMENTED = (*_NASTY, "x", "secret()", "*", "/", "comment")


class _Speller:
    def __init__(self, random: Random) -> None:
        self.random = random

    def chance(self, one_in: int) -> bool:
        return self.random.randrange(one_in) == 0

    def gap(self) -> str:
        """Nothing, blanks, and comments of either kind, with anything in them that does not end them."""
        random, pieces = self.random, []
        while self.chance(2):
            kind = random.randrange(4)
            if kind == 0:
                pieces.append(random.choice(_BLANKS))
            elif kind == 1:
                pieces.append("/*" + self.within_comment(2) + "*/")
            elif kind == 2:
                line = "".join(random.choice(_COMMENTED) for _ in range(random.randrange(3)))
                pieces.append(
                    "--" + line.replace("\n", "").replace("\r", "") + random.choice(("\n", "\\\n x\n", "\r\n"))
                )
            else:
                pieces.append("/*/**/*/")
        return "".join(pieces)

    def within_comment(self, depth: int) -> str:
        pieces = []
        for _ in range(self.random.randrange(4)):
            if depth and self.chance(3):
                pieces.append("/*" + self.within_comment(depth - 1) + "*/")
            else:
                pieces.append(self.random.choice(_COMMENTED).replace("/*", "").replace("*/", ""))
        # a sign at its end would begin another edge
        return "".join(pieces).rstrip("*/") + " "

    def word(self, text: str) -> str:
        """A name, in any case, in backticks, in double quotes."""
        kind = self.random.randrange(8)
        if kind == 0:
            text = text.upper()
        elif kind == 1:
            text = "".join(self.random.choice((c.upper(), c)) for c in text)
        elif kind in (2, 3):
            return f"`{text}`"
        elif kind == 4 and self.chance(3):
            return f'"{text}"'
        elif kind == 5 and self.chance(3):
            return text.replace("s", "\u017f", 1).replace("k", "\u212a", 1)
        return text

    def string(self, text: str) -> str:
        random = self.random
        if self.chance(4):
            at = random.randrange(len(text)) if text else 0
            code = f"\\u{ord(text[at]):04x}" if text else ""
            text = text[:at] + code + text[at + 1 :]
        if self.chance(5) and len(text) > 2:
            return f"'{text[:2]}'{self.gap()}'{text[2:]}'"
        return random.choice(("'{}'", "'{}'", '"{}"', "r'{}'")).format(text)

    def name(self, text: str) -> str:
        """A function's name, with what may qualify it."""
        random = self.random
        if self.chance(6):
            inside = self.string(text)
            return f"{self.word('identifier')}{self.gap()}({self.gap()}{inside}{self.gap()})"
        qualifiers = random.choice(
            ((), (), (), ("builtin",), ("system", "builtin"), ("session",), ("system", "session"), ("x",))
        )
        if text == "persisted" and self.chance(2):
            qualifiers = random.choice((("default",), ("spark_catalog", "default")))
        return f"{self.gap()}.{self.gap()}".join(self.word(part) for part in (*qualifiers, text))

    def call(self) -> str:
        kind = self.random.randrange(10)
        if kind < 5:
            name = self.random.choice(("reflect", "java_method", "try_reflect"))
            given = ("java.lang.System", "setProperty", MARK, "ran")
            return self.called(name, [self.string(one) for one in given])
        if kind < 7:
            return self.called(self.random.choice(("secret", "persisted")), [])
        if kind < 9:
            return self.shadowed()
        inside = self.random.choice(("SELECT x FROM of_victim", "TABLE of_victim", "FROM of_victim", "SELECT secret()"))
        return f"({self.gap()}{inside.replace(' ', self.gap() + ' ')}{self.gap()})"

    def shadowed(self) -> str:
        """A text that calls the user's function only where it goes before Spark's own."""
        return self.random.choice(
            (
                lambda: self.called("upper", ["'a'"]),
                lambda: self.called("concat", ["'a'", "s"]),
                lambda: self.called("coalesce", ["s", "'b'"]),
                lambda: f"s{self.gap()} BETWEEN{self.gap()} 'a' AND 'b'",
                lambda: self.called(self.random.choice(("timestampadd", "dateadd")), ["day", "s"]),
                lambda: f"CASE {self.called('when', ['true'])} WHEN 'ran' THEN 1 END",
                lambda: f"CASE{self.gap()} WHEN{self.gap()}(true){self.gap()}THEN{self.gap()}(s) END",
                lambda: self.called("interval", ["1"]),
            )
        )()

    def called(self, name: str, given: list[str]) -> str:
        between = f"{self.gap()},{self.gap()}"
        return f"{self.name(name)}{self.gap()}({self.gap()}{between.join(given)}{self.gap()})"

    def decoy(self) -> str:
        """A text that holds what looks like an end of it."""
        inside = "".join(self.random.choice(_NASTY) for _ in range(self.random.randrange(4)))
        quote = self.random.choice("'\"")
        if self.chance(3):
            return f"r{quote}{inside.replace(quote, '')}{quote}"
        # an odd number of backslashes before a quote is what escapes it
        return f"{quote}{inside.replace(quote, quote * 2).rstrip(chr(92))}{quote}"

    def around(self, inner: str) -> str:
        """A larger expression that has one in it."""
        gap, forms = self.gap, _FORMS
        before, after = self.random.choice(forms)
        return f"{before}{gap()}{inner}{gap()}{after}"

    def broken(self, text: str) -> str:
        random = self.random
        for _ in range(random.randrange(1, 3)):
            at = random.randrange(len(text) + 1)
            kind = random.randrange(3)
            if kind == 0:
                text = text[:at] + random.choice(_NASTY) + text[at:]
            elif kind == 1:
                text = text[:at] + text[at + random.randrange(1, 4) :]
            else:
                end = min(len(text), at + random.randrange(1, 8))
                text = text[:end] + text[at:end] + text[end:]
        return text


_FORMS: tuple[tuple[str, str], ...] = (
    ("(", ")"), ("lower(", ")"), ("nvl(", ", 'x')"), ("nullif('x', ", ")"), ("CASE WHEN true THEN ", " END"),
    ("CASE ", " WHEN 'a' THEN 1 END"), ("CASE WHEN(", ") IS NULL THEN (1) ELSE (2) END"), ("if(true, ", ", 'x')"),
    ("transform(array(1), x -> ", ")"), ("exists(array(1), x -> ", " IS NULL)"), ("array(", ")[0]"),
    ("map('a', ", ")['a']"), ("named_struct('a', ", ").a"), ("struct(", " AS b).b"), ("(1, ", ") IN ((1, 'a'))"),
    ("CAST(", " AS STRING)"), ("TRY_CAST(", " AS INT)"), ("", "::STRING"), ("", " COLLATE UTF8_BINARY"),
    ("trim(BOTH 'x' FROM ", ")"), ("trim(", ")"), ("position('a' IN ", ")"), ("substring(", " FROM 1 FOR 2)"),
    ("overlay(", " PLACING 'x' FROM 1)"), ("extract(DAY FROM ", ")"), ("", " LIKE ANY ('a', 'b')"),
    ("'a' NOT LIKE ", ""), ("", " IS NOT NULL"), ("", " IS DISTINCT FROM 'a'"), ("NOT (", " IS NULL)"),
    ("", " BETWEEN 'a' AND 'b'"), ("- ", ""), ("date_add(DAY, 1, ", ")"), ("timestampadd(HOUR, 1, ", ")"),
    ("'x' IN (", ")"), ("", " IN ('a')"),
    ("from_json(", ", 'a INT')"),
    ("EXISTS(SELECT ", ")"), ("(SELECT ", ")"), ("mask(input => ", ")"), ("first(", ")"), ("", " |> SELECT 1"),
)  # fmt: skip


def spelling(random: Random) -> str:
    """A text that calls what it may not, unless it was broken."""
    speller = _Speller(random)
    text = speller.call()
    wraps: list[Callable[[str], str]] = [
        speller.around,
        lambda inner: f"{speller.decoy()}{speller.gap()} || {inner}",
        lambda inner: f"{inner}{speller.gap()} || {speller.gap()}{speller.decoy()}",
    ]
    for _ in range(random.randrange(3)):
        text = random.choice(wraps)(text)
    text = f"{speller.gap()}{text}{speller.gap()}"
    return speller.broken(text) if speller.chance(5) else text
