"""The one cache of bounded size: what was not used for longest is given up first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def _one(_: object) -> int:
    return 1


class BoundedCache(Generic[K, V]):
    """A mapping whose values together are never larger than ``limit``; safe for threads.

    ``size_of``: the size of a value, always the same for the same value, in the unit of ``limit``. By default each
    value counts as one, so that ``limit`` is a number of entries.

    >>> cache: BoundedCache[str, bytes] = BoundedCache(1 << 20, size_of=len)
    """

    def __init__(self, limit: int, *, size_of: Callable[[V], int] = _one) -> None:
        self.limit = limit
        self._size_of = size_of
        self._size = 0
        self._values: OrderedDict[K, V] = OrderedDict()
        self._lock = threading.RLock()

    def __contains__(self, key: K) -> bool:
        """Whether the key has a value. This is no use of it."""
        return key in self._values

    def __iter__(self) -> Iterator[K]:
        """The keys as they are now, beginning with the one that was not used for longest."""
        with self._lock:
            return iter(list(self._values))

    def get(self, key: K) -> V | None:
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key]

    def put(self, key: K, value: V) -> None:
        """Keep the value, unless it alone is larger than the limit. It takes the place of one with the same key."""
        with self._lock:
            self.forget(key)
            size = self._size_of(value)
            if self.make_room(size):
                self._values[key] = value
                self._size += size

    def forget(self, key: K) -> None:
        with self._lock:
            if key in self._values:
                self._size -= self._size_of(self._values.pop(key))

    def make_room(self, size: int, *, keep: Callable[[K], bool] = lambda _: False) -> bool:
        """Give up entries until one of ``size`` fits, but none that ``keep`` names; nothing, where that is not enough.

        Returns: whether it fits.
        """
        with self._lock:
            excess = self._size + size - self.limit
            given_up = []
            for key, value in self._values.items():
                if excess <= 0:
                    break
                if not keep(key):
                    given_up.append(key)
                    excess -= self._size_of(value)
            if excess > 0:
                return False
            for key in given_up:
                self.forget(key)
            return True
