"""Where in a statement stands what Spark quotes of one of its pieces.

Invariant: a place is given only where it is certain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass

from delta_pyds.statements.kinds import SqlText
from delta_pyds.statements.reader import StatementReader


def place_of_fragment(
    reader: StatementReader,
    pieces: Iterable[SqlText],
    fragment: str,
    start: int,
    befores: Callable[[SqlText], Iterable[str]],
) -> int | None:
    """The place in the user's text of a fragment that is not empty; None if it is not there, or in more places.

    ``start``: of the fragment in the piece as Spark got it. ``befores``: what may stand before a piece there.
    """
    bound, starts = reader.bound, [token.start for token in reader.tokens]
    found = [place for place in starts if bound.text.startswith(fragment, place)]
    if len(found) > 1:
        begins: set[int] = set()
        for piece in pieces:
            if piece.last:
                first = starts[piece.first]
                places = {first + start - len(before) for before in befores(piece)}
                begins |= {place for place in places if first <= place < first + len(piece.text)}
        found = [place for place in found if place in begins]
    return bound.original_position(found[0]) if len(found) == 1 else None


def pieces_of(value: object) -> Iterator[SqlText]:
    """The expressions and queries of a statement."""
    if isinstance(value, SqlText):
        yield value
    elif isinstance(value, (tuple, list)):
        for one in value:
            yield from pieces_of(one)
    elif is_dataclass(value):
        for one in fields(value):
            yield from pieces_of(getattr(value, one.name))
