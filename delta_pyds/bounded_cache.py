"""A cache of bounded size; the least recently used entries are evicted first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """A thread-safe mapping whose values together never exceed ``limit``.

    Args:
        limit: the largest total size.
        size_of: the size of a value in the unit of ``limit``, always the same for one value. By default each value
            counts as one, so that ``limit`` is a number of entries.

    >>> cache: BoundedCache[str, bytes] = BoundedCache(1 << 20, size_of=len)
    """

    def __init__(self, limit: int, *, size_of: Callable[[V], int] = lambda _: 1) -> None:
        self.limit = limit
        self._size_of = size_of
        self._size = 0
        self._values: OrderedDict[K, V] = OrderedDict()
        self._lock = threading.RLock()

    def __contains__(self, key: K) -> bool:
        """Whether the key has a value; this does not count as a use."""
        return key in self._values

    def __iter__(self) -> Iterator[K]:
        """The current keys, the least recently used first."""
        with self._lock:
            return iter(list(self._values))

    def get(self, key: K) -> V | None:
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key]

    def put(self, key: K, value: V) -> None:
        """Store the value, unless it alone exceeds the limit. It replaces a value with the same key."""
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
        """Evict entries until one of ``size`` fits, except those that ``keep`` selects.

        Returns: whether it fits; if not, nothing is evicted.
        """
        with self._lock:
            excess = self._size + size - self.limit
            evicted = []
            for key, value in self._values.items():
                if excess <= 0:
                    break
                if not keep(key):
                    evicted.append(key)
                    excess -= self._size_of(value)
            if excess > 0:
                return False
            for key in evicted:
                self.forget(key)
            return True
