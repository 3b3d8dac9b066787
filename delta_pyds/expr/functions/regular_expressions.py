"""Regular expressions that mean the same in Java and in RE2: a subset of Java's, translated for RE2.

Invariant: a pattern is translated only if every part of it matches the same
texts in both; any other construct is refused by its name.
"""

from __future__ import annotations

import re

from delta_pyds.errors import ExpressionError
from delta_pyds.expr.functions.patterns import MAX_PATTERN
from delta_pyds.expr.parser.lexer import shortened

_LINE_ENDS = r"\n\r\x{85}\x{2028}\x{2029}"
_CLASSES = {
    "d": "0-9", "w": "a-zA-Z0-9_", "s": r" \t\n\x0B\f\r",
}  # fmt: skip
_ESCAPABLE = frozenset("\\.^$|?*+()[]{}-/!\"#%&',:;<=>@_`~ ")
_REPEAT = re.compile(r"[*+?]|\{\d{1,3}(?:,(?:\d{1,3})?)?\}")


class _Translator:
    def __init__(self, pattern: str, replacing: bool) -> None:
        self.pattern = pattern
        self.replacing = replacing
        self.position = 0

    def refuse(self, what: str) -> ExpressionError:
        return ExpressionError(
            f"the regular expression '{self.pattern}' is not supported: {what}. It may have plain characters, classes, "
            "groups, alternatives, repeats, ^ and $.",
            construct="RLIKE",
        )

    def peek(self) -> str:
        return self.pattern[self.position : self.position + 1]

    def take(self) -> str:
        character = self.peek()
        self.position += 1
        return character

    def alternatives(self, depth: int) -> tuple[str, bool]:
        """The translation up to the closing bracket, and whether it may match an empty text."""
        texts, empty = [], False
        while True:
            text, may_be_empty = self.sequence(depth)
            texts.append(text)
            empty = empty or may_be_empty
            if self.peek() != "|":
                return "|".join(texts), empty
            self.take()

    def sequence(self, depth: int) -> tuple[str, bool]:
        texts, empty = [], True
        while self.peek() not in ("", "|", ")"):
            text, may_be_empty, repeatable = self.atom(depth)
            match = _REPEAT.match(self.pattern, self.position)
            if match:
                if not repeatable:
                    raise self.refuse("an anchor is repeated")
                if may_be_empty:
                    raise self.refuse("a part that may match an empty text is repeated")
                bounds = [int(n) for n in re.findall(r"\d+", match[0])]
                if len(bounds) == 2 and bounds[0] > bounds[1]:
                    raise self.refuse("the lower bound of a repeat exceeds the upper one")
                self.position = match.end()
                text += match[0]
                may_be_empty = match[0][0] in "*?" or (bool(bounds) and bounds[0] == 0)
                if self.peek() == "?":
                    text += self.take()
                if self.peek() in ("*", "+", "?", "{"):
                    raise self.refuse("a repeat is repeated or possessive")
            texts.append(text)
            empty = empty and may_be_empty
        return "".join(texts), empty

    def atom(self, depth: int) -> tuple[str, bool, bool]:
        character = self.take()
        if character == "(":
            if self.peek() == "?":
                if self.pattern[self.position : self.position + 2] != "?:":
                    raise self.refuse("a group begins with (?")
                self.position += 2
            if depth > 20:
                raise self.refuse("groups are nested too deeply")
            text, empty = self.alternatives(depth + 1)
            if self.take() != ")":
                raise self.refuse("a group is not closed")
            return f"(?:{text})", empty, True
        if character == "[":
            return self.character_class(), False, True
        if character == ".":
            return f"[^{_LINE_ENDS}]", False, True
        if character == "^":
            return r"\A", True, False
        if character == "$":
            if self.replacing:
                raise self.refuse("$ in a replacement")
            if self.position != len(self.pattern):
                raise self.refuse("$ is not at the end")
            if r"\r" in self.pattern or "\r" in self.pattern:
                raise self.refuse("$ is combined with a carriage return")
            return rf"(?:\r\n|[{_LINE_ENDS}])?\z", True, False
        if character == "\\":
            return self.escaped(), False, True
        if character in ("*", "+", "?", "{", "}", "]"):
            raise self.refuse(f"'{character}' is misplaced")
        return self.literal(character), False, True

    def escaped(self) -> str:
        character = self.take()
        if character in _CLASSES:
            return f"[{_CLASSES[character]}]"
        if character.lower() in _CLASSES and character:
            return f"[^{_CLASSES[character.lower()]}]"
        return self.escaped_literal(character)

    def escaped_literal(self, character: str) -> str:
        if character in ("t", "n", "r", "f"):
            return "\\" + character
        if character and character in _ESCAPABLE:
            return self.literal(character)
        raise self.refuse(f"the escape \\{character}")

    def literal(self, character: str) -> str:
        if not character.isprintable() and character not in "\t\n\r":
            raise self.refuse("a character that cannot be printed")
        return rf"\x{{{ord(character):x}}}"

    def character_class(self) -> str:
        negated = self.peek() == "^"
        if negated:
            self.take()
        parts: list[str] = []
        while True:
            character = self.take()
            if character == "]" and parts:
                return f"[{'^' if negated else ''}{''.join(parts)}]"
            low = self.class_member(character)
            following = self.pattern[self.position + 1 : self.position + 2]
            if self.peek() == "-" and following not in ("]", "") and len(low) == 1:
                self.take()
                high = self.class_member(self.take())
                if len(high) != 1 or high < low:
                    raise self.refuse("a range of characters in the wrong order")
                parts.append(f"{self.literal(low)}-{self.literal(high)}")
            else:
                parts.append(self.literal(low) if len(low) == 1 else low)

    def class_member(self, character: str) -> str:
        """One character, or the inside of a class."""
        if character == "\\":
            escaped = self.take()
            if escaped in _CLASSES:
                return _CLASSES[escaped]
            if escaped in ("t", "n", "r", "f"):
                return {"t": "\t", "n": "\n", "r": "\r"}.get(escaped, "\\f")
            if escaped and escaped in _ESCAPABLE:
                return escaped
            raise self.refuse(f"the escape \\{escaped} in a class")
        if character in ("", "[", "]", "&", "^"):
            raise self.refuse(f"'{character or 'the end'}' in a class")
        return character


def portable_pattern(pattern: str, *, replacing: bool = False) -> str:
    """The pattern for RE2 that finds a match in the same texts as Java's ``find``; with
    ``replacing``, the same matches.

    Raises: ExpressionError for anything outside of the subset.
    """
    return _translated(pattern, replacing)[0]


def cannot_match_empty(pattern: str) -> bool:
    """Whether every match has at least one character."""
    return not _translated(pattern, True)[1]


def _translated(pattern: str, replacing: bool) -> tuple[str, bool]:
    translator = _Translator(shortened(pattern), replacing)
    if len(pattern) > MAX_PATTERN:
        raise translator.refuse(f"it has {len(pattern)} characters, but at most {MAX_PATTERN} are supported")
    translator.pattern = pattern
    if not all(ord(c) >= 0x20 and not 0xD800 <= ord(c) < 0xE000 for c in pattern):
        raise translator.refuse("it contains control characters")
    text, empty = translator.alternatives(0)
    if translator.position != len(pattern):
        raise translator.refuse("a bracket is not opened")
    return text, empty
