"""The idioms of ``idioms.txt`` stay out of messages, docstrings, comments and pages.

``python tests/unit/test_plain_words.py delta_pyds/log README.md`` prints what it finds below its arguments.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
IDIOMS = Path(__file__).with_name("idioms.txt")
SUFFIXES = (".py", ".md")


def idioms() -> list[tuple[re.Pattern[str], str]]:
    """Each pattern with what to write instead. A space in a pattern matches any white space."""
    found = []
    for line in IDIOMS.read_text().splitlines():
        if line and not line.startswith("#"):
            pattern, instead = re.split(r"\s{2,}", line, maxsplit=1)
            found.append((re.compile(pattern), instead))
    return found


def joined(text: str) -> tuple[str, list[int]]:
    """The text in one line, and for each character of it the line that it comes from.

    A sentence goes on over line breaks, comment signs and the seams of adjacent string literals.
    """
    pieces: list[str] = []
    lines: list[int] = []
    for number, line in enumerate(text.splitlines(), 1):
        bare = re.sub(r'^\s*(?:#+ |> |f?"(?!""))?', "", line)
        bare = re.sub(r'(?<!")"\s*$', "", bare)
        piece = re.sub(r"\s+", " ", bare.strip()) + " "
        pieces.append(piece)
        lines += [number] * len(piece)
    return "".join(pieces), lines


def hits(path: Path) -> Iterator[str]:
    """``file:line: text: instead`` for each idiom in a file."""
    text, lines = joined(path.read_text())
    for pattern, instead in idioms():
        for found in pattern.finditer(text):
            around = text[max(0, found.start() - 30) : found.end() + 30]
            yield f"{path}:{lines[found.start()]}: ...{around}...: {instead}"


def files(paths: list[Path]) -> Iterator[Path]:
    for path in paths:
        yield from [path] if path.is_file() else sorted(f for f in path.rglob("*") if f.suffix in SUFFIXES)


def test_idioms_are_found_over_line_breaks(tmp_path: Path) -> None:
    page = tmp_path / "page.py"
    page.write_text('"""It is\n    none."""\n# made\n# anew\nx = (\n    "the value is "\n    "no number"\n)\n')
    assert [hit.split(":")[1] for hit in hits(page)] == ["6", "1", "4"]


def test_text_has_no_idioms() -> None:
    places = [ROOT / name for name in ("delta_pyds", "tests", "examples", "README.md", "Makefile", ".github")]
    found = [hit for path in files([place for place in places if place.exists()]) for hit in hits(path)]
    # the example above is in this file
    assert not [hit for hit in found if Path(__file__).name not in hit], "\n".join(found[:50])


if __name__ == "__main__":
    found = [hit for path in files([Path(name) for name in sys.argv[1:]]) for hit in hits(path)]
    print("\n".join(found))
    print(len(found), "idioms")
