"""Row groups of a checkpoint's file in a store, asked for before their turn."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Sequence

import pyarrow as pa

from delta_pyds.log.checkpoint_part import CheckpointPart
from delta_pyds.storage.read_ahead import Expectation

_MAX_BYTES_AHEAD = 32 << 20


class RowsAhead:
    """The rows of row groups, which are asked for in the order of ``groups``, and the next ones while one is read.

    Nothing is held of a row group that was read. To be closed, as not all may have been.
    """

    def __init__(self, part: CheckpointPart, kind: str, names: Sequence[str], groups: Iterable[int] = ()) -> None:
        self._part = part
        self._kind = kind
        self._names = names
        self._to_come = deque(groups)
        self._begun: dict[int, Expectation] = {}
        self._bytes: dict[int, int] = {}

    def begin(self, group: int) -> None:
        """Ask for a row group."""
        if group not in self._begun:
            expectation = self._part.expect_rows(self._kind, group, self._names)
            self._begun[group] = expectation
            self._bytes[group] = expectation.num_bytes

    def begin_next(self) -> None:
        """Ask for the first that is to come."""
        if self._to_come:
            self.begin(self._to_come.popleft())

    def rows(self, group: int) -> Generator[pa.StructArray, None, None]:
        """See ``CheckpointPart.rows``."""
        self.begin(group)
        while self._to_come and sum(self._bytes.values()) < _MAX_BYTES_AHEAD:
            self.begin_next()
        try:
            yield from self._part.rows(self._kind, group, self._names)
        finally:
            self._forget(group)

    def _forget(self, group: int) -> None:
        self._begun.pop(group, Expectation()).close()
        self._bytes.pop(group, None)

    def close(self) -> None:
        for group in list(self._begun):
            self._forget(group)
