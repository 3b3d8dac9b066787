"""Items that a thread computes one ahead of the caller."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_T = TypeVar("_T")


def one_ahead(items: Iterator[_T]) -> Generator[_T, None, None]:
    """Yield the items, none of which is None. Each is computed while the caller processes the previous one."""
    with ThreadPoolExecutor(1, thread_name_prefix="deltapy-ahead") as pool:
        pending = pool.submit(next, items, None)
        while (item := pending.result()) is not None:
            pending = pool.submit(next, items, None)
            yield item
