"""A store whose listings lag behind, or show what is gone: an older version, or an error, and never other rows."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from delta_pyds.errors import DeltaError, FileNotFoundInStorageError
from delta_pyds.table.transaction.transaction import CommitPolicy, Operation
from tests.support.memory_storage import MemoryStorage
from tests.support.transactions import Table

ALL = CommitPolicy()
LAST = 23


@pytest.fixture
def table() -> Table:
    """Checkpoints at 10 and 20."""
    table = Table(MemoryStorage())
    table.creation(properties={"delta.checkpointInterval": "10"}).commit(Operation("CREATE TABLE"))
    for version in range(1, LAST + 1):
        table.append(f"f{version}", policy=ALL)
    return table


def hiding(*parts: str) -> Callable[[str, list[str]], list[str]]:
    return lambda _, names: [name for name in names if not any(part in name for part in parts)]


def gone(*parts: str) -> Callable[[str, str], None]:
    """Listed, and not there when it is asked for."""

    def on_call(operation: str, path: str) -> None:
        if operation in ("read", "parquet_source", "status") and any(part in path for part in parts):
            raise FileNotFoundInStorageError(f"There is no file at {path!r}.", path=path)

    return on_call


def storage_of(table: Table) -> MemoryStorage:
    assert isinstance(table.storage, MemoryStorage)
    return table.storage


@pytest.mark.parametrize("hidden", [f"{20:020d}.checkpoint", ".checkpoint."])
def test_a_checkpoint_that_no_listing_shows_yet(table: Table, hidden: str) -> None:
    live = table.live()
    storage_of(table).listed = hiding(hidden)
    assert (table.snapshot().version, table.live()) == (LAST, live)
    table.append("mine", policy=ALL)
    assert table.snapshot().version == LAST + 1


@pytest.mark.parametrize("shown", [20, 21, 22])
def test_commits_that_no_listing_shows_yet(table: Table, shown: int) -> None:
    live = table.live()
    storage_of(table).listed = hiding(*(f"{version:020d}." for version in range(shown + 1, LAST + 1)))
    stale = table.snapshot()
    assert (stale.version, len(table.live())) == (shown, shown)
    assert table.append("mine", policy=ALL).version == LAST + 1
    storage_of(table).listed = None
    assert sorted(table.live()) == sorted([*live, "mine"])
    assert table.snapshot().verify_checksum()


@pytest.mark.parametrize("part", [f"{20:020d}.checkpoint", f"{21:020d}.json", f"{LAST:020d}.json", "_last_checkpoint"])
def test_what_is_listed_and_not_there(table: Table, part: str) -> None:
    live = table.live()
    storage_of(table).on_call = gone(part)
    try:
        assert (table.snapshot().version, table.live()) == (LAST, live)
    except DeltaError as error:
        # a commit cannot be done without, and is named
        assert part.endswith(".json") and part in error.message
    else:
        assert not part.endswith(".json")
    storage_of(table).on_call = None
    assert table.append("mine", policy=ALL).version == LAST + 1
    assert sorted(table.live()) == sorted([*live, "mine"])
