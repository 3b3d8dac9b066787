"""An extension of griffe: docstrings as Markdown.

Examples (``>>>``) become code. A name in backticks stays code. ``Raises: ...`` in one paragraph stays a paragraph. A
block below it is a section.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^(?: *(?:>>>|\.\.\.)(?: .*)?\n?)+", re.MULTILINE)
_INLINE = re.compile(r"^(Args|Returns|Raises|Attributes|Yields): (?=\S)((?:.+\n?(?!\s*\n))*.*)", re.MULTILINE)
# Markdown ends code at the same number of backticks that began it, so a name that ends with one needs a space
_CODE_WITH_BACKTICKS = re.compile(r"(?<!`)``([^`\n]*`[^`\n]+`)``(?!`)")
_SECTION_END = re.compile(r" *\n *")


class Docstrings(griffe.Extension):
    """Changes each docstring once, after griffe has read it."""

    def on_instance(self, *, obj: Any, **kwargs: Any) -> None:
        del kwargs
        if not obj.is_alias and obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(docstring: str) -> str:
    """The text of a docstring as Markdown that griffe reads as Google's style."""
    text = _INLINE.sub(lambda m: f"**{m[1]}:** {_SECTION_END.sub(' ', m[2].strip())}\n", docstring)
    text = _CODE_WITH_BACKTICKS.sub(r"`` \1 ``", text)
    return _EXAMPLE.sub(_fenced, text)


def _fenced(example: re.Match[str]) -> str:
    lines = [re.sub(r"^ *(?:>>>|\.\.\.) ?", "", line) for line in example[0].rstrip("\n").split("\n")]
    return "\n".join(["", "```python", *lines, "```", ""]) + "\n"
