"""One object for each row of a table, as a sequence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar, overload

import pyarrow as pa

T = TypeVar("T")

# Objects that are built together. A caller that needs one often needs its neighbours.
_BLOCK = 32


class ObjectsOfRows(Sequence[T]):
    """The objects of the rows of a table, in their order. An object is built only if it is asked for.

    ``rows``: the table. Objects that an index asks for are kept; those of an iteration are not.
    """

    def __init__(self, rows: pa.Table, build: Callable[[pa.RecordBatch], Iterable[T]]) -> None:
        self.rows = rows
        self._build = build
        self._blocks: dict[int, list[T]] = {}

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        if isinstance(index, slice):
            return [self[n] for n in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        block, n = divmod(index % len(self), _BLOCK)
        if block not in self._blocks:
            self._blocks[block] = list(self._of(self.rows.slice(block * _BLOCK, _BLOCK)))
        return self._blocks[block][n]

    def __iter__(self) -> Iterator[T]:
        return self._of(self.rows)

    def _of(self, rows: pa.Table) -> Iterator[T]:
        for batch in rows.to_batches():
            yield from self._build(batch)
