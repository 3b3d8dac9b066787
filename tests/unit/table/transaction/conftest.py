"""Tables in memory that transactions change."""

from __future__ import annotations

import pytest

from tests.support.memory_storage import MemoryStorage
from tests.support.transactions import Table


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage()


@pytest.fixture
def table(storage: MemoryStorage) -> Table:
    made = Table(storage)
    made.create()
    return made


@pytest.fixture
def partitioned(storage: MemoryStorage) -> Table:
    made = Table(storage)
    made.create(partitioned=True)
    return made
